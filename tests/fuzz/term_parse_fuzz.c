/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal:   no text breaks the parser, and a parsed term prints as a text that parses as the same term.  Method: the
 * input is a text of several terms; each is printed in both forms, read again and compared.
 *	   A part is also copied under a tight limit, encoded and decoded.
 */
#include "term/term.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static char output[4 << 20];

static void read_again(struct tw_arena *arena, struct tw_term term, enum tw_print_form form)
{
	struct tw_sink sink = {.start = output, .at = output, .end = output + sizeof(output)};
	struct tw_term again;
	int result;

	if (tw_term_print(term, form, &sink) != 0)
		return;
	result = tw_term_parse(arena, output, (size_t)(sink.at - output), &again, NULL);
	if (result == TW_ENOMEM)
		return;
	if (result != 0 || !tw_term_is_equal(term, again) || tw_term_hash(term) != tw_term_hash(again))
		abort();
}

static void decode_again(struct tw_arena *arena, struct tw_term term)
{
	struct tw_sink sink = {.start = output, .at = output, .end = output + sizeof(output)};
	struct tw_term again;
	int result;

	if (tw_etf_encode(term, tw_word(0), &sink) != 0)
		return;
	result = tw_etf_decode(arena, output, (size_t)(sink.at - output), NULL, NULL, &again);
	if (result != 0 && result != TW_ENOMEM)
		abort();
}

static void copy(struct tw_term term)
{
	_Alignas(16) static char memory[512];
	struct tw_arena arena;
	struct tw_term out;

	tw_arena_init_fixed(&arena, memory, sizeof(memory));
	if (tw_term_copy(&arena, term, 400, &out) < 0)
		abort();
	tw_term_format(out, TW_PRINT_PRETTY, output, 300);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct tw_parser parser = {.text = (const char *)data, .bytes = bytes};
	struct tw_arena arena;
	struct tw_term term;
	int result;

	tw_arena_init(&arena, 64 << 20);
	while ((result = tw_parse_next(&parser, &arena, &term)) == 0) {
		read_again(&arena, term, TW_PRINT_WRITE);
		read_again(&arena, term, TW_PRINT_PRETTY);
		decode_again(&arena, term);
		copy(term);
	}
	if (result == TW_EBADARG && (!parser.error.message || parser.error.offset > bytes))
		abort();
	tw_arena_fini(&arena);
	if (tw_atom_count() > 10000)
		tw_atom_table_fini();
	return 0;
}
