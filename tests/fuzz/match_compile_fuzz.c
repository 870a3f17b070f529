/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal:   no text breaks the compiler; its output always passes the verifier; and a program has the same result over
 *	   machine words, over terms and fused.
 * Method: the first byte picks the target, or a condition for 4; the rest is the text.  Programs that compile are shown
 *	   and run over a few arguments.
 */
#include "match/match.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void run_words(const struct tw_match_program *program, struct tw_match_run *run)
{
	static const int64_t values[] = {0, 1, -1, 7, 4096, INT64_C(1) << 40, TW_SMALL_MAX, TW_SMALL_MIN};
	uint32_t i;
	unsigned count;

	for (i = 0; i < TW_COUNT_OF(values); i++) {
		uint64_t words[3] = {(uint64_t)values[i], 2, (uint64_t)values[TW_COUNT_OF(values) - 1 - i]};
		struct tw_term terms[3] = {tw_small(values[i]), tw_small(2),
					   tw_small(values[TW_COUNT_OF(values) - 1 - i])};

		for (count = 0; count <= 3; count++) {
			enum tw_match_verdict verdict = tw_match_run(program, terms, count, run);

			if (tw_match_run_raw(program, words, count, run) != verdict)
				abort();
			if (tw_match_quick_fits(&program->quick, count) &&
			    tw_match_quick_test(&program->quick, words) != (verdict != TW_MATCH_NO))
				abort();
		}
	}
}

static void run_terms(const struct tw_match_program *program, struct tw_match_run *run)
{
	_Alignas(16) static char memory[4096];
	static const char text[] = "[foo,{a,1,[b|c]},#{k => \"abc\",1 => <<1,2,3:4>>},1.5,123456789012345678901]";
	struct tw_term args[5];
	struct tw_term list;
	struct tw_arena arena;
	unsigned count = 0;

	tw_arena_init_fixed(&arena, memory, sizeof(memory));
	if (tw_term_parse(&arena, text, sizeof(text) - 1, &list, NULL) != 0)
		abort();
	for (; tw_is_cons(list); list = tw_cell(list)->tail)
		args[count++] = tw_cell(list)->head;
	for (count = 0; count <= 5; count++)
		tw_match_run(program, args, count, run);
}

static void look_at(const struct tw_match_program *program, enum tw_match_target target)
{
	struct tw_match_run run = {.scratch_bytes = TW_MATCH_SCRATCH_BYTES_MIN};
	static char output[65536];
	struct tw_sink sink = {.start = output, .at = output, .end = output + sizeof(output)};

	tw_match_show(program, &sink);
	run.scratch = malloc(TW_MATCH_SCRATCH_BYTES_MIN);
	if (!run.scratch)
		abort();
	if (target == TW_MATCH_TABLE) {
		struct tw_term object = tw_term_nil();

		tw_match_run(program, &object, 1, &run);
	} else {
		run_words(program, &run);
		run_terms(program, &run);
	}
	free(run.scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct tw_match_options options = {.target = TW_MATCH_CALL};
	struct tw_match_error error = {.line = 0};
	struct tw_match_program *program;
	const char *text = (const char *)data + 1;
	int result;

	if (bytes == 0)
		return 0;
	options.target = (enum tw_match_target)(data[0] % 5 % 4);
	if (data[0] % 5 == 4)
		result = tw_match_compile_when(text, bytes - 1, &options, &program, &error);
	else
		result = tw_match_compile_text(text, bytes - 1, &options, &program, &error);
	if (result == 0) {
		look_at(program, options.target);
		tw_match_destroy(program);
	} else if (result == TW_EBADARG && (error.text[0] == '\0' || error.offset > bytes - 1)) {
		abort();
	}
	if (tw_atom_count() > 10000)
		tw_atom_table_fini();
	return 0;
}
