/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Term order is Erlang's, total, and safe at any depth; equal terms have equal hashes, and the hash is
 *	the same in every process.
 * Method	A sorted list of terms of every kind: each pair is compared both ways, with == and =:=. Numbers around
 *	the limits of doubles and smalls.  Terms 100,000 levels deep.  Hashes against recorded ones.
 */
#include "term/term.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "term_help.h"

/* In strict order; all different with == too. */
/* clang-format off */
static const char *const sorted[] = {
	"-18446744073709551616", "-576460752303423489", "-576460752303423488", "-1.0e15", "-1", "-0.5", "0", "0.5", "1",
	"9007199254740991", "9007199254740992.0", "9007199254740993", "576460752303423487", "576460752303423488",
	"9223372036854775807", "9223372036854775808.0", "9223372036854775809", "1.0e300",
	"''", "'A'", "a", "aa", "ab", "b", "'\xc3\xa9'", "'\xd0\xb4'",
	"#Ref<0.0.0.1>", "#Ref<0.0.1.0>", "#Ref<0.1.0.0>", "fun a:a/0", "fun a:a/1", "fun a:b/0", "fun b:a/0",
	"#Port<0.1>", "#Port<0.4294967296>", "<0.1.0>", "<0.2.0>", "<0.1.1>",
	"{}", "{1}", "{1,1}", "{1,2}", "{2,0}", "{1,1,1}",
	"#{}", "#{1 => b}", "#{1.0 => a}", "#{a => 1}", "#{a => 2}", "#{b => 0}", "#{1 => 1, a => 1}",
	"[]", "[1|a]", "[1]", "[1,1]", "[1,2]", "[2]", "[a|<<>>]",
	"<<>>", "<<0:1>>", "<<0>>", "<<0,0:1>>", "<<0,1:1>>", "<<1:1>>", "<<1:1,0:7,0>>", "<<255>>",
};
/* clang-format on */

static int sign(int order)
{
	return (order > 0) - (order < 0);
}

static void the_order_is_that_of_erlang(void **state)
{
	tw_arena_init(&arena, SIZE_MAX);
	for (size_t i = 0; i < TW_COUNT_OF(sorted); i++) {
		for (size_t j = 0; j < TW_COUNT_OF(sorted); j++) {
			struct tw_term a = read_term(sorted[i]), b = read_term(sorted[j]);
			int expected = (i > j) - (i < j), order = 77;

			if (sign(tw_term_compare(a, b)) != expected)
				fail_msg("%s and %s", sorted[i], sorted[j]);
			assert_int_equal(tw_term_is_equal(a, b), expected == 0);
			assert_int_equal(tw_term_try_compare(a, b, 0, &order), 0);
			assert_int_equal(sign(order), expected);
			if (expected == 0)
				assert_int_equal(tw_term_hash(a), tw_term_hash(b));
			else
				assert_int_not_equal(tw_term_hash(a), tw_term_hash(b));
		}
	}
	tw_arena_fini(&arena);
}

/* clang-format off */
static const struct {
	const char *a, *b;
	int order, exact;
} numbers[] = {
	{"1", "1.0", 0, -1}, {"0.0", "-0.0", 0, 1}, {"2.0", "1", 1, 1}, {"1", "0.5", 1, -1}, {"{1}", "{1.0}", 0, -1},
	{"[a,1.0|b]", "[a,1|b]", 0, 1}, {"#{a => 1}", "#{a => 1.0}", 0, -1}, {"#{1 => a}", "#{1.0 => a}", -1, -1},
	{"#{2 => a}", "#{1.0 => a}", -1, -1}, {"9007199254740993", "9007199254740992.0", 1, -1},
	{"9007199254740992", "9007199254740992.0", 0, -1}, {"1.0e22", "10000000000000000000000", 0, 1},
	{"1.0e22", "10000000000000000000001", -1, 1}, {"-1.0e22", "-10000000000000000000001", 1, 1},
	{"-1.5", "-1", -1, 1}, {"-1.5", "-2", 1, 1}, {"576460752303423488", "5.764607523034235e17", 0, -1},
	{"-576460752303423488", "-5.764607523034235e17", 0, -1}, {"1.0e308", "1", 1, 1}, {"-1.0e308", "-1", -1, 1},
	{"5.0e-324", "0", 1, 1}, {"18446744073709551615", "1.8446744073709552e19", -1, -1},
};
/* clang-format on */

static void numbers_compare_exactly(void **state)
{
	tw_arena_init(&arena, SIZE_MAX);
	for (size_t i = 0; i < TW_COUNT_OF(numbers); i++) {
		struct tw_term a = read_term(numbers[i].a), b = read_term(numbers[i].b);

		if (sign(tw_term_compare(a, b)) != numbers[i].order ||
		    sign(tw_term_compare_exact(a, b)) != numbers[i].exact)
			fail_msg("%s and %s", numbers[i].a, numbers[i].b);
		assert_int_equal(sign(tw_term_compare(b, a)), -numbers[i].order);
		assert_int_equal(sign(tw_term_compare_exact(b, a)), -numbers[i].exact);
	}
	tw_arena_fini(&arena);
}

/* `levels` levels of tuples, lists and maps around a leaf; the path down is never the last part. */
static struct tw_term deep(int levels, struct tw_term leaf)
{
	while (levels-- > 0) {
		struct tw_term parts[2] = {leaf, tw_small(levels)};
		struct tw_term_pair pair = {tw_small(1), leaf};

		if (levels % 3 == 0)
			leaf = tw_term_tuple(&arena, parts, 2);
		else if (levels % 3 == 1)
			leaf = tw_term_cons(&arena, leaf, tw_small(7));
		else
			leaf = tw_term_map(&arena, (struct tw_term_pair[]){pair, {tw_small(2), tw_small(3)}}, 2);
	}
	return leaf;
}

/* Pids by number, then node; ports and references by node, then number. */
static void nodes_count(void **state)
{
	static const enum tw_term_type types[] = {TW_TYPE_PID, TW_TYPE_PORT, TW_TYPE_REFERENCE};
	struct tw_term nodes[] = {tw_term_atom_z("a@a"), tw_term_atom_z("b@b")};

	tw_arena_init(&arena, SIZE_MAX);
	for (size_t i = 0; i < TW_COUNT_OF(types); i++) {
		struct tw_identifier x = {.node = nodes[0], .creation = 1, .word_count = 2, .words = {2, 0}}, y = x;
		struct tw_term a = tw_term_identifier(&arena, types[i], &x), b;

		y.node = nodes[1];
		b = tw_term_identifier(&arena, types[i], &y);
		assert_int_equal(sign(tw_term_compare(a, b)), -1);
		assert_int_equal(sign(tw_term_compare(b, a)), 1);
		y.words[0] = 1;
		b = tw_term_identifier(&arena, types[i], &y);
		assert_int_equal(sign(tw_term_compare(a, b)), types[i] == TW_TYPE_PID ? 1 : -1);
		y = x;
		y.creation = 2;
		b = tw_term_identifier(&arena, types[i], &y);
		assert_int_equal(sign(tw_term_compare(a, b)), -1);
		y.creation = 1;
		y.channel = 7;
		b = tw_term_identifier(&arena, types[i], &y);
		assert_int_equal(tw_term_compare(a, b), 0);
		assert_true(tw_term_hash(a) == tw_term_hash(b));
	}
	tw_arena_fini(&arena);
}

static void depth_is_no_danger(void **state)
{
	struct tw_term a, b, c;
	int order = 77;

	tw_arena_init(&arena, SIZE_MAX);
	a = deep(100000, tw_small(1));
	b = deep(100000, tw_small(1));
	c = deep(100000, tw_small(2));
	assert_int_equal(tw_term_compare(a, b), 0);
	assert_int_equal(sign(tw_term_compare(a, c)), -1);
	assert_int_equal(sign(tw_term_compare_exact(c, a)), 1);
	assert_true(tw_term_hash(a) == tw_term_hash(b));
	assert_int_equal(tw_term_try_compare(a, b, 1, &order), TW_ELIMIT);
	assert_int_equal(order, 77);
	assert_int_equal(tw_term_try_compare(a, a, 1, &order), 0);
	assert_int_equal(tw_term_try_compare(a, tw_small(1), 1, &order), 0);
	assert_true(order > 0);
	assert_int_equal(tw_term_try_compare(deep(30, a), deep(30, c), 1, &order), TW_ELIMIT);
	assert_int_equal(tw_term_try_compare(deep(30, tw_small(1)), deep(30, tw_small(2)), 1, &order), 0);
	assert_true(order < 0);
	tw_arena_fini(&arena);
}

static void long_lists_take_no_depth(void **state)
{
	struct tw_term a = tw_term_nil(), b = tw_small(1);
	int order;

	tw_arena_init(&arena, SIZE_MAX);
	for (int i = 0; i < 100000; i++) {
		a = tw_term_cons(&arena, tw_small(i), a);
		b = tw_term_cons(&arena, tw_small(i), b);
	}
	assert_int_equal(tw_term_try_compare(a, b, 0, &order), 0);
	assert_true(order > 0);
	tw_arena_fini(&arena);
}

static void hashes_are_those_of_every_process(void **state)
{
	static const struct {
		const char *text;
		uint64_t hash;
	} recorded[] = {
		{"a", UINT64_C(0xa423050fc6906210)},
		{"{ok,1}", UINT64_C(0xeb4bf82cca956a20)},
		{"[1,2|c]", UINT64_C(0xf9897904386f7d98)},
		{"123456789012345678901234567890", UINT64_C(0x2f1ec8d2263c007f)},
		{"1.5", UINT64_C(0xd5c5179237171149)},
		{"<<1,2:3>>", UINT64_C(0x5044a071b6f52068)},
		{"#{a => \"b\"}", UINT64_C(0x788cfca2632b8e1c)},
		{"{<0.1.2>,#Port<0.1>,#Ref<0.1.2.3>,fun lists:map/2}", UINT64_C(0xcd8c745974c6ebdf)},
	};

	tw_arena_init(&arena, SIZE_MAX);
	/* Other atoms first: the index of an atom does not count. */
	tw_term_atom_z("something else");
	for (size_t i = 0; i < TW_COUNT_OF(recorded); i++)
		assert_int_equal(tw_term_hash(read_term(recorded[i].text)), recorded[i].hash);
	tw_arena_fini(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_order_is_that_of_erlang),
		cmocka_unit_test(numbers_compare_exactly),
		cmocka_unit_test(nodes_count),
		cmocka_unit_test(depth_is_no_danger),
		cmocka_unit_test(long_lists_take_no_depth),
		cmocka_unit_test(hashes_are_those_of_every_process),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
