/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	A copy is equal and independent; one that must be cut is a valid term, is marked as cut, shows where, and never
 *	exceeds its limit.
 * Method	Terms of every type copied under every limit from 0 up, into growing and fixed arenas; the
 *	original is overwritten; deep terms into fixed arenas.
 */
#include "term/term.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

/* clang-format off */
static const char *const texts[] = {
	"1", "123456789012345678901234567890", "1.5", "a", "[]", "{}", "#{}", "<<>>", "<<1,2,3:4>>", "\"a longer string\"",
	"{trace,<0.83.0>,call,{lists,seq,[1,10]}}", "[1,2|3]", "#{a => [1,2,3],{b,\"key\"} => <<\"some bytes of a binary, 40 of them\">>}",
	"{#Port<0.1>,#Ref<0.1.2.3>,fun a:b/2,#{#{1 => 2} => #{3 => 4}}}", "[[[[[[1],2],3],4],5],6]",
	"<<\"a binary that is longer than its parts, so that it is cut in the middle somewhere\">>",
};
/* clang-format on */

static struct tw_arena source;

static struct tw_term read_term(const char *text)
{
	struct tw_term term = {0};

	assert_int_equal(tw_term_parse(&source, text, strlen(text), &term, NULL), 0);
	return term;
}

/* A term that prints can be walked; its text holds the mark if it was cut. */
static void check_mark(struct tw_term copy, bool is_cut)
{
	char text[1000];

	tw_term_format(copy, TW_PRINT_PRETTY, text, sizeof(text));
	assert_int_equal(strstr(text, "'...'") != NULL, is_cut);
}

static void check_limits(const char *text, bool is_fixed)
{
	static _Alignas(16) char memory[2000];
	struct tw_term term, copy;
	bool was_whole = false;

	for (size_t limit = 0; limit < 1000; limit++) {
		struct tw_arena arena;
		char *start;
		int result;

		tw_arena_init(&source, SIZE_MAX);
		term = read_term(text);
		if (is_fixed)
			tw_arena_init_fixed(&arena, memory, limit);
		else
			tw_arena_init(&arena, SIZE_MAX);
		start = is_fixed ? memory : tw_arena_alloc(&arena, 16);
		result = tw_term_copy(&arena, term, is_fixed ? SIZE_MAX : limit, &copy);
		assert_in_range(result, 0, 1);
		assert_true((size_t)(arena.at - start) <= limit + (is_fixed ? 0 : 16));
		assert_int_equal(tw_term_is_equal(term, copy), result == 0);
		/* More memory never gives a worse copy. */
		assert_true(!was_whole || result == 0);
		was_whole = result == 0;
		tw_arena_fini(&source);
		check_mark(copy, result == 1);
		tw_arena_fini(&arena);
	}
	assert_true(was_whole);
}

static void every_limit_is_kept(void **state)
{
	for (size_t i = 0; i < TW_COUNT_OF(texts); i++) {
		check_limits(texts[i], false);
		check_limits(texts[i], true);
	}
}

static void cuts_look_as_documented(void **state)
{
	static const struct {
		const char *text;
		size_t limit;
		const char *cut;
	} cases[] = {
		{"{a,{b,c},\"xy\"}", 32, "{a,'...','...'}"},
		{"{a,{b,c},\"xy\"}", 80, "{a,{b,c},[120|'...']}"},
		{"[1,2,3,4]", 32, "[1,2|'...']"},
		{"{1,2,3}", 31, "'...'"},
		{"#{a => [1]}", 32, "#{a => '...'}"},
		{"#{[a,b] => 1}", 48, "'...'"},
		{"<<\"0123456789012345678901234567890123456789\">>", 32, "'...'"},
		{"<<1:1,\"01234567890123456789012345678901234567890123456789012345678901234567890123456789\">"
		 ">",
		 64,
		 "{'...',<<152,24,153,25,154,26,155,27,156,28,152,24,153,25,154,26,155,27,156,28,152,24,153,"
		 "25>>,81}"},
	};

	for (size_t i = 0; i < TW_COUNT_OF(cases); i++) {
		struct tw_arena arena;
		struct tw_term copy;
		char text[300];

		tw_arena_init(&source, SIZE_MAX);
		tw_arena_init(&arena, SIZE_MAX);
		assert_int_equal(tw_term_copy(&arena, read_term(cases[i].text), cases[i].limit, &copy), 1);
		tw_term_format(copy, TW_PRINT_PRETTY, text, sizeof(text));
		assert_string_equal(text, cases[i].cut);
		tw_arena_fini(&arena);
		tw_arena_fini(&source);
	}
}

/* Tuples and maps around a term; in a map it is the first of two keys or values, so that frames stay. */
static struct tw_term deep_round(struct tw_term term, int levels, bool is_key)
{
	while (levels-- > 0) {
		struct tw_term_pair pairs[] = {
			{is_key ? term : tw_small(1), is_key ? tw_small(1) : term},
			{tw_term_nil(), tw_small(2)},
		};

		term = levels % 2 ? tw_term_map(&source, pairs, 2) : tw_term_tuple(&source, &term, 1);
	}
	return term;
}

static struct tw_term deep(int levels, bool is_key)
{
	return deep_round(tw_small(1), levels, is_key);
}

/* Two keys that would be equal if their deep parts were cut. */
static void keys_stay_different(void **state)
{
	static _Alignas(16) char memory[100000];
	static char encoded[100000];

	for (int levels = 1; levels < 100; levels++) {
		struct tw_sink sink = {.start = encoded, .at = encoded, .end = encoded + sizeof(encoded)};
		struct tw_term_pair pairs[3] = {[2] = {tw_term_nil(), tw_small(3)}};
		struct tw_arena arena;
		struct tw_term copy;

		tw_arena_init(&source, SIZE_MAX);
		pairs[0] =
			(struct tw_term_pair){deep_round(tw_term_tuple(&source, NULL, 0), levels, true), tw_small(1)};
		pairs[1] = (struct tw_term_pair){deep_round(tw_term_float(&source, 1), levels, true), tw_small(2)};
		tw_arena_init_fixed(&arena, memory, sizeof(memory));
		assert_in_range(tw_term_copy(&arena, tw_term_map(&source, pairs, 3), SIZE_MAX, &copy), 0, 1);
		assert_int_equal(tw_etf_encode(copy, tw_word(0), &sink), 0);
		assert_int_equal(tw_etf_decode(&source, encoded, (size_t)(sink.at - encoded), NULL, NULL, &copy), 0);
		tw_arena_fini(&source);
	}
}

static void depth_is_no_danger(void **state)
{
	static _Alignas(16) char memory[100000];
	struct tw_arena arena;
	struct tw_term term, copy;

	tw_arena_init(&source, SIZE_MAX);
	term = deep(100000, false);
	tw_arena_init(&arena, SIZE_MAX);
	assert_int_equal(tw_term_copy(&arena, term, SIZE_MAX, &copy), 0);
	assert_true(tw_term_is_equal(term, copy));
	tw_arena_fini(&arena);
	for (int levels = 1; levels < 200; levels++) {
		for (int is_key = 0; is_key < 2; is_key++) {
			int result;

			term = deep(levels, is_key);
			tw_arena_init_fixed(&arena, memory, sizeof(memory));
			result = tw_term_copy(&arena, term, SIZE_MAX, &copy);
			assert_int_equal(tw_term_is_equal(term, copy), result == 0);
			assert_true(levels > 32 || result == 0);
			check_mark(copy, result == 1);
		}
	}
	tw_arena_fini(&source);
}

static void memory_can_run_out(void **state)
{
	struct tw_arena arena;
	struct tw_term term, copy = {77};

	tw_arena_init(&source, SIZE_MAX);
	term = read_term(texts[12]);
	tw_arena_init(&arena, 64);
	assert_int_equal(tw_term_copy(&arena, term, SIZE_MAX, &copy), TW_ENOMEM);
	assert_int_equal(copy.word, 77);
	tw_arena_fini(&arena);
	tw_arena_fini(&source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_limit_is_kept), cmocka_unit_test(cuts_look_as_documented),
		cmocka_unit_test(depth_is_no_danger),  cmocka_unit_test(keys_stay_different),
		cmocka_unit_test(memory_can_run_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
