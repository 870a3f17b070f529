/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: specifications mean the same here as in Erlang.
 *
 * Method: 1,389 cases with the answers of erlang:match_spec_test/3 of a real system (tests/vectors/match_spec): the
 * same result, the same flags, an error if it had one.
 */
#include "tracewheel/match.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
	char *bytes;
	size_t count;
};

static struct text read_file(const char *name)
{
	char path[4096];
	struct text text;
	FILE *file;

	snprintf(path, sizeof(path), "%s/vectors/match_spec/%s", TW_TEST_DATA, name);
	file = fopen(path, "r");
	assert_non_null(file);
	fseek(file, 0, SEEK_END);
	text.count = (size_t)ftell(file);
	rewind(file);
	text.bytes = malloc(text.count);
	assert_non_null(text.bytes);
	assert_int_equal(fread(text.bytes, 1, text.count, file), text.count);
	fclose(file);
	return text;
}

/* {ok,Result,Flags}, or {error,[]} for any error. */
static struct tw_term answer_of(struct tw_arena *arena, struct tw_term c)
{
	int is_table = tw_term_tuple_count(c) == 3;
	struct tw_match_options options = {.target = is_table ? TW_MATCH_TABLE : TW_MATCH_CALL};
	struct tw_match_program *program;
	struct tw_match_answer answer;
	struct tw_term flags = tw_term_nil();
	struct tw_term tuple[3] = {tw_term_atom_z("error"), flags};
	int error = tw_match_compile(tw_term_element(c, is_table ? 2 : 1), &options, &program, NULL);

	if (error)
		return tw_term_tuple(arena, tuple, 2);
	assert_int_equal(tw_match_test(program, tw_term_element(c, is_table ? 1 : 0), arena, &answer), 0);
	tw_match_destroy(program);
	if (answer.is_exception_trace)
		flags = tw_term_cons(arena, tw_term_atom_z("exception_trace"), flags);
	if (answer.is_return_trace)
		flags = tw_term_cons(arena, tw_term_atom_z("return_trace"), flags);
	tuple[0] = tw_term_atom_z("ok");
	tuple[1] = answer.result;
	tuple[2] = flags;
	return tw_term_tuple(arena, tuple, 3);
}

static int is_error(struct tw_term answer)
{
	return tw_term_is_same(tw_term_element(answer, 0), tw_term_atom_z("error"));
}

static void same_answers(void **state)
{
	struct text cases = read_file("cases.term");
	struct text expected = read_file("expected.term");
	struct tw_parser case_parser = {.text = cases.bytes, .bytes = cases.count};
	struct tw_parser answer_parser = {.text = expected.bytes, .bytes = expected.count};
	struct tw_arena arena;
	struct tw_term c, wanted;
	char printed[3][1000];
	int count = 0;
	int wrong = 0;

	tw_arena_init(&arena, SIZE_MAX);
	while (tw_parse_next(&case_parser, &arena, &c) == 0) {
		struct tw_term got = answer_of(&arena, c);

		assert_int_equal(tw_parse_next(&answer_parser, &arena, &wanted), 0);
		count++;
		if (is_error(got) ? is_error(wanted) : tw_term_is_equal(got, wanted))
			continue;
		tw_term_format(c, TW_PRINT_WRITE, printed[0], sizeof(printed[0]));
		tw_term_format(wanted, TW_PRINT_WRITE, printed[1], sizeof(printed[1]));
		tw_term_format(got, TW_PRINT_WRITE, printed[2], sizeof(printed[2]));
		print_error("%s.\n  Erlang: %s\n  here:   %s\n", printed[0], printed[1], printed[2]);
		wrong++;
	}
	assert_int_equal(tw_parse_next(&answer_parser, &arena, &wanted), TW_ENOENT);
	assert_int_equal(count, 1389);
	assert_int_equal(wrong, 0);
	tw_arena_fini(&arena);
	free(cases.bytes);
	free(expected.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(same_answers)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
