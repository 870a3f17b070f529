/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    Guards whose result follows from types alone are refused with a suggestion; all others are accepted.
 * Method  A table: expression, whether refused for terms or words, a part of the sentence.  Refused guards are also run
 *	   over arguments of many types: they must have one result for all of them.
 */
#include "tracewheel/match.h"

#include "base/assert.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

enum refused { NOBODY, WORDS, TERMS };

static const struct {
	const char *text;
	enum refused refused; /* TERMS: refused for words as well */
	const char *sentence;
} guards[] = {
	{"$1 > 4096", NOBODY, NULL},
	{"$1 > 0.5", NOBODY, NULL},
	{"$1 == 1 and $6 /= 2", NOBODY, NULL},
	{"$7 > 1", WORDS, "$7: calls have $1 to $6"},
	{"$1 == 1 or $200 == 2", WORDS, "$200: "},
	{"!$1", WORDS, "$1 == 0 for C's"},
	{"not $1 > 2", TERMS, "with parentheses"},
	{"! $1 > 0", TERMS, "with parentheses"},
	{"not ($1 > 2)", NOBODY, NULL},
	{"!($1 > 2) && $2 == 0", NOBODY, NULL},
	{"$1 && $2 > 1", WORDS, "$1 /= 0"},
	{"$1 > 1 or $2", WORDS, "$1 /= 0"},
	{"$1", WORDS, "never true"},
	{"$1 band 4", TERMS, "never true"},
	{"($1 band 4) /= 0", NOBODY, NULL},
	{"1", TERMS, "never true"},
	{"not 1", TERMS, "true or false"},
	{"true", NOBODY, NULL},
	{"$1 == true", WORDS, "an integer with true or false"},
	{"($1 > 1) == true", NOBODY, NULL},
	{"($1 > 1) == yes", TERMS, "true or false with an atom"},
	{"$2 == \"hello\"", WORDS, "string_at($2) == \"text\""},
	{"\"hello\" /= $2", WORDS, "string_at($2)"},
	{"$2 == 'hello'", WORDS, "an integer with an atom"},
	{"$2 == <<\"hello\">>", WORDS, "an integer with a string"},
	{"$2 < <<\"hello\">>", WORDS, "an integer with a string"},
	{"$2 == {1}", WORDS, "a tuple"},
	{"string_at($2) == <<\"hello\">>", NOBODY, NULL},
	{"string_at($2) == 0", NOBODY, NULL},
	{"string_at($2) == \"hello\"", TERMS, "<<\"text\">>"},
	{"string_at($2) == 'hello'", TERMS, "double quotes"},
	{"string_at(<<\"x\">>) == 0", TERMS, "wants an integer"},
	{"byte_size(string_at($1)) > 3", NOBODY, NULL},
	{"byte_size($1) > 3", WORDS, "here stands an integer"},
	{"vector_double(0) > 0.5", NOBODY, NULL},
	{"vector_double(0) == \"x\"", TERMS, "a floating-point number with a list"},
	{"vector_double(0) =:= 1", TERMS, "a floating-point number with an integer"},
	{"vector_double(0) == 1", NOBODY, NULL},
	{"abs($1) + 1 == 2 * $2", NOBODY, NULL},
	{"$1 / 2 == 2", NOBODY, NULL},
	{"length(\"abc\") == $1", NOBODY, NULL},
	{"length($1) == 2", WORDS, "here stands an integer"},
	{"is_integer($1)", NOBODY, NULL},
	{"is_list($_) andalso hd($_) == 2", NOBODY, NULL},
	{"element(1, {a}) == a", NOBODY, NULL},
	{"max($1, 2) == 2", NOBODY, NULL},
};

static bool is_taken(const char *text, enum tw_match_sense sense, struct tw_match_error *error)
{
	const struct tw_match_options options = {.sense = sense};
	struct tw_match_program *program;
	int result = tw_match_compile_when(text, strlen(text), &options, &program, error);

	if (result == 0)
		tw_match_destroy(program);
	else
		assert_int_equal(result, TW_EBADARG);
	return result == 0;
}

static void guards_that_have_one_answer_are_refused(void **state)
{
	for (size_t i = 0; i < TW_COUNT_OF(guards); i++) {
		struct tw_match_error terms = {.text = ""}, words = {.text = ""};

		if (!is_taken(guards[i].text, TW_MATCH_SENSE_ANY, NULL))
			fail_msg("%s is no guard", guards[i].text);
		if (is_taken(guards[i].text, TW_MATCH_SENSE_TERMS, &terms) != (guards[i].refused != TERMS))
			fail_msg("of terms: %s: %s", guards[i].text, terms.text);
		if (is_taken(guards[i].text, TW_MATCH_SENSE_WORDS, &words) != (guards[i].refused == NOBODY))
			fail_msg("of words: %s: %s", guards[i].text, words.text);
		if (guards[i].sentence && !strstr(words.text, guards[i].sentence))
			fail_msg("%s: no '%s' in: %s", guards[i].text, guards[i].sentence, words.text);
	}
}

/* As in the run: words are integers. */
static void a_refused_guard_has_one_answer(void **state)
{
	static const char *const lists[] = {"[0,0,0,0,0,0]", "[1,1,1,1,1,1]", "[7,9,-3,5,6,2]", "[4096,1,2,3,4,5]"};

	for (size_t i = 0; i < TW_COUNT_OF(guards); i++) {
		struct tw_match_program *program;
		uint64_t first = 0;

		if (guards[i].refused == NOBODY || strstr(guards[i].text, "_at") || strstr(guards[i].text, "vector"))
			continue;
		assert_int_equal(tw_match_compile_when(guards[i].text, strlen(guards[i].text), NULL, &program, NULL),
				 0);
		for (size_t k = 0; k < TW_COUNT_OF(lists); k++) {
			struct tw_arena arena;
			struct tw_term arguments;
			struct tw_match_answer answer;

			tw_arena_init(&arena, SIZE_MAX);
			assert_int_equal(tw_term_parse(&arena, lists[k], strlen(lists[k]), &arguments, NULL), 0);
			assert_int_equal(tw_match_test(program, arguments, &arena, &answer), 0);
			if (k && answer.result.word != first)
				fail_msg("%s has two answers", guards[i].text);
			first = answer.result.word;
			tw_arena_fini(&arena);
		}
		tw_match_destroy(program);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(guards_that_have_one_answer_are_refused),
		cmocka_unit_test(a_refused_guard_has_one_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
