/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal:   no bytes break the decoder, its memory stays within the promise, and every decoded term can be encoded and
 *	   decoded again as the same term.
 * Method: the input is an encoded term.
 */
#include "term/term.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static char output[4 << 20];

static void decode_again(struct tw_arena *arena, struct tw_term term)
{
	struct tw_sink sink = {.start = output, .at = output, .end = output + sizeof(output)};
	struct tw_term again;
	int order;

	if (tw_etf_encode(term, tw_word(0), &sink) != 0)
		return;
	if (tw_etf_decode(arena, output, (size_t)(sink.at - output), NULL, NULL, &again) != 0)
		abort();
	if (!tw_term_is_equal(term, again) || tw_term_hash(term) != tw_term_hash(again))
		abort();
	if (tw_term_try_compare(term, again, 1, &order) == 0 && order != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct tw_arena arena;
	struct tw_term term;
	size_t used_bytes;

	tw_arena_init(&arena, SIZE_MAX);
	if (tw_etf_decode(&arena, data, bytes, NULL, &used_bytes, &term) == 0) {
		if (used_bytes > bytes)
			abort();
		decode_again(&arena, term);
		tw_term_format(term, TW_PRINT_PRETTY, output, sizeof(output));
	}
	tw_arena_reset(&arena);
	if (arena.held_bytes > 4096 + 4 * 40 * bytes + (1 << 20))
		abort();
	tw_arena_fini(&arena);
	if (tw_atom_count() > 10000)
		tw_atom_table_fini();
	return 0;
}
