/* SPDX-License-Identifier: Apache-2.0 */
/* seq_help.h - parts of tokens for tests: built from a label's text, and compared. */
#ifndef TW_TESTS_SEQ_HELP_H
#define TW_TESTS_SEQ_HELP_H

#include "session/seq/parts.h"
#include "tracewheel/seq.h"
#include "pipeline/thread/seq_label.h"
#include "term/term.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

/* Labels of every type. */
/* clang-format off */
static const char *const seq_labels[] = {
	"0", "17", "-5", "123456789012345678901234567890", "1.5", "order", "'ein Wort'", "[]", "{}", "#{}", "<<>>",
	"<<\"0123456789abcdef\">>", "<<0:128>>", "<<1,2:3>>", "\"a string\"", "{any,\"term\",#{a => 1}}", "<0.83.0>",
	"#Ref<0.1.2.3>", "fun lists:map/2", "[[[1],2],3|4]",
};
/* clang-format on */

static inline struct tw_term seq_term(struct tw_arena *arena, const char *text)
{
	struct tw_term term = {0};

	assert_int_equal(tw_term_parse(arena, text, strlen(text), &term, NULL), 0);
	return term;
}

static inline struct tw_seq_parts seq_parts(struct tw_arena *arena, const char *label, int64_t previous,
					    int64_t current)
{
	return (struct tw_seq_parts){.label = seq_term(arena, label),
				     .node = tw_term_atom_z("tw-1234-56789@0a1b2c3d"),
				     .number = 5,
				     .serial = 0,
				     .creation = 3,
				     .flags = 7,
				     .previous = previous,
				     .current = current};
}

static inline void seq_assert_same(const struct tw_seq_parts *a, const struct tw_seq_parts *b)
{
	assert_true(tw_term_is_equal(a->label, b->label));
	assert_true(tw_term_is_same(a->node, b->node));
	assert_int_equal(a->number, b->number);
	assert_int_equal(a->serial, b->serial);
	assert_int_equal(a->creation, b->creation);
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->previous, b->previous);
	assert_int_equal(a->current, b->current);
}

#endif
