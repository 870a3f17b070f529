/* SPDX-License-Identifier: Apache-2.0 */
/* kinds.c - the names of kinds of events: see payload.h. */
#include "views/names/payload.h"

/* Erlang quotes the tag that is a reserved word. */
#define TAG(number, word) ((number) == TW_CAPTURE_RECEIVE || (number) == TW_CAPTURE_SEQ_RECEIVE ? "'" word "'" : word)

static const struct tw_print_kind kinds[] = {
#define KIND(NAME, number, word, group, first, second) [number] = {word, TAG(number, word), {first, second}},
#define SEQ_KIND(NAME, number, word) \
	[number] = {"seq_" word, TAG(number, word), {"label", "serial", "from", "to", "message"}},
	TW_RECORD_KINDS(KIND) TW_TRACE_KINDS(KIND) TW_SEQ_KINDS(SEQ_KIND) TW_SYSTEM_KINDS(KIND)};

const struct tw_print_kind *tw_print_kind(unsigned kind)
{
	return kind < sizeof kinds / sizeof *kinds && kinds[kind].word ? &kinds[kind] : NULL;
}

uint32_t tw_print_term_count(const struct tw_print_kind *kind)
{
	uint32_t count = 0;
	while (kind && count < TW_PRINT_TERMS_MAX && kind->terms[count])
		count++;
	return count;
}

const char *const tw_print_gc_keys[TW_GC_SIZES_COUNT] = {
#define KEY(NAME, field) #field,
	TW_GC_SIZES(KEY)};
