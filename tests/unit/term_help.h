/* SPDX-License-Identifier: Apache-2.0 */
/* term_help.h - terms of tests as text.  They live in `arena`. */
#ifndef TW_TESTS_TERM_HELP_H
#define TW_TESTS_TERM_HELP_H

#include "tracewheel/term.h"

#include <string.h>

static struct tw_arena arena;

static inline struct tw_term read_term(const char *text)
{
	struct tw_parse_error error = {0};
	struct tw_term term = {0};

	if (tw_term_parse(&arena, text, strlen(text), &term, &error) != 0)
		fail_msg("%s: %u: %s", text, error.column, error.message);
	return term;
}

#endif
