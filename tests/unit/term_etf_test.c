/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	The output of any OTP is decoded, old forms included; damaged bytes are refused with the documented error, in
 *	bounded memory.  (term_oracle compares both directions with Erlang.)
 * Method	A table of handmade encodings and their printed form; bad ones and their error; good ones cut at every
 *	byte and with every byte changed; heads that declare more than there is.
 */
#include "term/etf.h"
#include "term/term.h"
#include "tests/common/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

struct encoding {
	const char *bytes;
	size_t count;
	const char *printed;
	int error;
};

#define GOOD(text, bytes)                            \
	{                                            \
		"\x83" bytes, sizeof(bytes), text, 0 \
	}
#define BAD(code, bytes)                                \
	{                                               \
		"\x83" bytes, sizeof(bytes), NULL, code \
	}

/* clang-format off */
static const struct encoding cases[] = {
	GOOD("a", "d\0\1a"), GOOD("a", "s\1a"), GOOD("a", "v\0\1a"), GOOD("a", "w\1a"), GOOD("\xc3\xa9", "s\1\xe9" ""),
	GOOD("\xc3\xa9", "w\2\xc3\xa9"), GOOD("''", "w\0"),
	GOOD("255", "a\xff"), GOOD("-2", "b\xff\xff\xff\xfe"), GOOD("-256", "n\2\1\0\1"), GOOD("5", "n\3\0\5\0\0"), GOOD("0", "n\0\1"),
	GOOD("18446744073709551616", "n\x9\0\0\0\0\0\0\0\0\0\1"), GOOD("1", "o\0\0\0\1\0\1"),
	GOOD("-576460752303423488", "n\x8\1\0\0\0\0\0\0\0\x8"), GOOD("576460752303423488", "n\x8\0\0\0\0\0\0\0\0\x8"),
	GOOD("1.5", "F\x3f\xf8\0\0\0\0\0\0"), GOOD("1.5", "c1.50000000000000000000e+00\0\0\0\0\0"),
	GOOD("{}", "h\0"), GOOD("{a,1}", "h\2w\1aa\1"), GOOD("{1}", "i\0\0\0\1a\1"), GOOD("[]", "j"), GOOD("[]", "k\0\0"),
	GOOD("\"ab\"", "k\0\2ab"), GOOD("[a|b]", "l\0\0\0\1w\1aw\1b"), GOOD("a", "l\0\0\0\0w\1a"),
	GOOD("<<\"ab\">>", "m\0\0\0\2ab"), GOOD("<<5:3>>", "M\0\0\0\1\3\xbf"), GOOD("<<\"a\">>", "M\0\0\0\1\x8" "a"), GOOD("<<>>", "M\0\0\0\0\0"),
	GOOD("#{a => 1,b => 2}", "t\0\0\0\2w\1ba\2w\1aa\1"),
	GOOD("<0.83.1>", "Xw\015nonode@nohost\0\0\0\x53\0\0\0\1\0\0\0\7"), GOOD("<0.83.1>", "gw\015nonode@nohost\0\0\0\x53\0\0\0\1\3"),
	GOOD("#Port<0.5>", "xw\015nonode@nohost\0\0\0\0\0\0\0\5\0\0\0\1"), GOOD("#Port<0.5>", "Yw\015nonode@nohost\0\0\0\5\0\0\0\1"),
	GOOD("#Port<0.5>", "fw\015nonode@nohost\0\0\0\5\1"),
	GOOD("#Ref<0.3.2.1>", "Z\0\3w\015nonode@nohost\0\0\0\0\0\0\0\1\0\0\0\2\0\0\0\3"),
	GOOD("#Ref<0.2.1>", "r\0\2w\015nonode@nohost\0\0\0\0\1\0\0\0\2"), GOOD("#Ref<0.9>", "ew\015nonode@nohost\0\0\0\x9\0"),
	GOOD("fun a:b/2", "qw\1aw\1ba\2"),
	GOOD("#Fun<m.3.9>", "p\0\0\0\x43\1" "0123456789abcdef" "\0\0\0\3\0\0\0\1w\1ma\3a\x9Xw\015nonode@nohost\0\0\0\1\0\0\0\0\0\0\0\0w\1x"),
	BAD(TW_EFORMAT, ""), BAD(TW_EFORMAT, "\0"), BAD(TW_EFORMAT, "R\0"), BAD(TW_ENOTSUP, "P\0\0\0\1\0\0"), BAD(TW_ENOTSUP, "y\0\0\0\1"),
	BAD(TW_EFORMAT, "w\1\xff"), BAD(TW_EFORMAT, "a\1a"), BAD(TW_EFORMAT, "F\x7f\xf0\0\0\0\0\0\0"), BAD(TW_EFORMAT, "F\x7f\xf8\0\0\0\0\0\0"),
	BAD(TW_EFORMAT, "cnan\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
	BAD(TW_EFORMAT, "c1e999\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
	BAD(TW_EFORMAT, "M\0\0\0\1\0a"), BAD(TW_EFORMAT, "M\0\0\0\1\x9" "a"), BAD(TW_EFORMAT, "M\0\0\0\0\1"),
	BAD(TW_EFORMAT, "t\0\0\0\2w\1aa\2w\1aa\1"), BAD(TW_EFORMAT, "Xa\1\0\0\0\x53\0\0\0\1\0\0\0\7"),
	BAD(TW_EFORMAT, "Z\0\0w\1a\0\0\0\0"), BAD(TW_EFORMAT, "Z\0\6w\1a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
	BAD(TW_EFORMAT, "qw\1aw\1bb\0\0\0\2"), BAD(TW_EFORMAT, "qw\1aa\1a\2"), BAD(TW_EFORMAT, "p\0\0\0\4\1"),
	BAD(TW_EFORMAT, "i\xff\xff\xff\xff" "a\1"), BAD(TW_EFORMAT, "l\xff\xff\xff\xffj"), BAD(TW_EFORMAT, "t\x7f\xff\xff\xffjj"),
	BAD(TW_EFORMAT, "m\xff\xff\xff\xff" "a"), BAD(TW_EFORMAT, "o\xff\xff\xff\xff\0a"), BAD(TW_EFORMAT, "k\xff\xff" "a"),
};
/* clang-format on */

static void by_hand(void **state)
{
	for (size_t i = 0; i < TW_COUNT_OF(cases); i++) {
		struct tw_arena arena;
		struct tw_term term = {77};
		char text[200];
		int error;

		tw_arena_init(&arena, SIZE_MAX);
		error = tw_etf_decode(&arena, cases[i].bytes, cases[i].count, NULL, NULL, &term);
		if (error != cases[i].error)
			fail_msg("case %zu (%s): %d", i, cases[i].printed ? cases[i].printed : "bad", error);
		if (error)
			assert_int_equal(term.word, 77);
		else
			tw_term_format(term, TW_PRINT_PRETTY, text, sizeof(text));
		if (!error)
			assert_string_equal(text, cases[i].printed);
		tw_arena_fini(&arena);
	}
}

/* A block of memory of exactly that size, so that a sanitizer sees each byte read past it. */
static void decode_alone(const char *bytes, size_t count, bool must_fail)
{
	struct tw_arena arena;
	struct tw_term term;
	char *copy = malloc(count ? count : 1);
	int error;

	memcpy(copy, bytes, count);
	tw_arena_init(&arena, SIZE_MAX);
	error = tw_etf_decode(&arena, copy, count, NULL, NULL, &term);
	assert_true(!must_fail || error == TW_EFORMAT || error == TW_ENOTSUP);
	tw_arena_fini(&arena);
	free(copy);
}

static void cut_and_changed(void **state)
{
	for (size_t i = 0; i < TW_COUNT_OF(cases); i++) {
		char changed[200];

		for (size_t count = 0; count < cases[i].count && !cases[i].error; count++)
			decode_alone(cases[i].bytes, count, true);
		for (size_t at = 0; at < cases[i].count; at++) {
			for (int bit = 0; bit < 8; bit++) {
				memcpy(changed, cases[i].bytes, cases[i].count);
				changed[at] ^= (char)(1 << bit);
				decode_alone(changed, cases[i].count, false);
			}
		}
	}
}

static int decode_with(const char *bytes, size_t count, size_t cap, size_t *held_bytes)
{
	struct tw_arena arena;
	struct tw_term term;
	int error;

	tw_arena_init(&arena, cap);
	error = tw_etf_decode(&arena, bytes, count, NULL, NULL, &term);
	*held_bytes = arena.held_bytes;
	tw_arena_fini(&arena);
	return error;
}

static void heads_cannot_take_memory(void **state)
{
	static char bytes[1 << 20];
	size_t held, at = 1;

	/* 900 nested lists, each of which declares nearly all that follows. */
	memset(bytes, 'j', sizeof(bytes));
	bytes[0] = (char)131;
	for (int i = 0; i < 900; i++) {
		bytes[at] = 'l';
		bytes[at + 1] = 0;
		bytes[at + 2] = 0x0e;
		at += 5;
	}
	assert_int_equal(decode_with(bytes, sizeof(bytes), SIZE_MAX, &held), TW_EFORMAT);
	assert_true(held < 40 * sizeof(bytes));
	/* More levels than are allowed. */
	for (at = 1; at + 2 < sizeof(bytes); at += 2)
		memcpy(bytes + at, "h\1", 2);
	assert_int_equal(decode_with(bytes, sizeof(bytes), SIZE_MAX, &held), TW_ELIMIT);
	memset(bytes + 1, 'g', sizeof(bytes) - 1);
	assert_int_equal(decode_with(bytes, sizeof(bytes), SIZE_MAX, &held), TW_ELIMIT);
	memcpy(bytes + 1 + 2 * TW_TERM_DEPTH_MAX, "h", 1);
	for (at = 1; at < 2 * TW_TERM_DEPTH_MAX; at += 2)
		memcpy(bytes + at, "h\1", 2);
	bytes[at] = 'j';
	assert_int_equal(decode_with(bytes, at + 1, SIZE_MAX, &held), 0);
	memcpy(bytes + at, "h\0", 2);
	assert_int_equal(decode_with(bytes, at + 2, SIZE_MAX, &held), TW_ELIMIT);
	/* A large integer. */
	memcpy(bytes + 1, "o\0\0\x20\1\0", 6);
	assert_int_equal(decode_with(bytes, 7 + 0x2001, SIZE_MAX, &held), TW_ELIMIT);
	memcpy(bytes + 1, "o\0\0\x20\0\0", 6);
	assert_int_equal(decode_with(bytes, 7 + 0x2000, SIZE_MAX, &held), 0);
	assert_int_equal(decode_with("\x83h\3a\1a\2a\3", 9, 16, &held), TW_ENOMEM);
}

/* A fun whose variable is a tuple, before 99 others: the bytes that the list still needs come after the fun. */
static void funs_stand_among_others(void **state)
{
	static const char fun[] = "p\0\0\0\x44\1"
				  "0123456789abcdef"
				  "\0\0\0\3\0\0\0\1w\1ma\3a\x9Xw\015nonode@nohost"
				  "\0\0\0\1\0\0\0\0\0\0\0\0h\1a\1";
	char bytes[300] = "\x83l\0\0\0\x64";
	struct tw_arena arena;
	struct tw_term term;
	size_t count;

	memcpy(bytes + 6, fun, sizeof(fun) - 1);
	memset(bytes + 6 + sizeof(fun) - 1, 'j', 100);
	tw_arena_init(&arena, SIZE_MAX);
	assert_int_equal(tw_etf_decode(&arena, bytes, 6 + sizeof(fun) - 1 + 100, NULL, NULL, &term), 0);
	assert_int_equal(tw_term_list_count(term, &count), 0);
	assert_int_equal(count, 100);
	assert_int_equal(tw_etf_decode(&arena, bytes, 6 + sizeof(fun) - 1 + 99, NULL, NULL, &term), TW_EFORMAT);
	tw_arena_fini(&arena);
}

static void options_count(void **state)
{
	static const char pid[] = "\x83Xw\3a@b\0\0\0\x53\0\0\0\1\0\0\0\7";
	struct tw_etf_options options = {.node = tw_term_atom_z("a@b")};
	struct tw_identifier parts;
	struct tw_arena arena;
	struct tw_term term;
	char encoded[100];
	struct tw_sink sink = {.start = encoded, .at = encoded, .end = encoded + sizeof(encoded)};
	size_t used;

	tw_arena_init(&arena, SIZE_MAX);
	assert_int_equal(tw_etf_decode(&arena, pid, sizeof(pid) - 1, &options, NULL, &term), 0);
	assert_int_equal(tw_term_get_identifier(term, &parts), 0);
	assert_true(tw_term_is_none(parts.node));
	assert_int_equal(parts.creation, 0);
	assert_int_equal(tw_etf_encode(term, options.node, &sink), 0);
	assert_memory_equal(encoded, pid, 15);
	assert_int_equal(tw_etf_encode(term, tw_small(1), &sink), TW_EBADARG);
	/* Another node's pid. */
	assert_int_equal(tw_etf_decode(&arena, pid, sizeof(pid) - 1, NULL, NULL, &term), 0);
	assert_int_equal(tw_term_get_identifier(term, &parts), 0);
	assert_string_equal(tw_term_atom_name(parts.node, NULL), "a@b");
	assert_int_equal(parts.creation, 7);
	assert_int_not_equal(parts.channel, 0);
	/* Several terms in a row. */
	assert_int_equal(tw_etf_decode(&arena,
				       "\x83"
				       "a\1rest",
				       7, NULL, &used, &term),
			 0);
	assert_int_equal(used, 3);
	options.is_safe = 1;
	assert_int_equal(tw_etf_decode(&arena, "\x83w\x0bnever seen!", 14, &options, NULL, &term), TW_ENOENT);
	options.is_safe = 0;
	assert_int_equal(tw_etf_decode(&arena, "\x83w\x0bnever seen!", 14, &options, NULL, &term), 0);
	options.is_safe = 1;
	assert_int_equal(tw_etf_decode(&arena, "\x83w\x0bnever seen!", 14, &options, NULL, &term), 0);
	tw_arena_fini(&arena);
}

/* ---- the short path of hits ---- */

static uint64_t random_state = 88172645463325252u;

static uint64_t draw(uint64_t limit)
{
	return random_word(&random_state) % limit;
}

static struct tw_term random_leaf(struct tw_arena *arena)
{
	static const int64_t edges[] = {0,
					1,
					255,
					256,
					-1,
					-256,
					INT32_MAX,
					INT32_MIN,
					(int64_t)INT32_MAX + 1,
					(int64_t)INT32_MIN - 1,
					INT64_MAX,
					INT64_MIN};
	static char name[256 * 2];
	struct tw_identifier far = {.node = tw_term_atom_z("far@away"),
				    .creation = 7,
				    .channel = 3,
				    .word_count = 2,
				    .words = {1, 2}};
	size_t bytes;

	switch (draw(8)) {
	case 0: return tw_term_integer(arena, edges[draw(sizeof edges / sizeof *edges)]);
	case 1: return tw_term_integer(arena, (int64_t)draw(300));
	case 2:
		bytes = draw(256);
		memset(name, 'a' + (int)draw(26), bytes);
		return tw_term_atom(name, bytes);
	case 3: return tw_term_pid(arena, (uint32_t)draw(1000), (uint32_t)draw(3));
	case 4: return tw_term_identifier(arena, TW_TYPE_PID, &far);
	case 5: return tw_term_binary(arena, "0123456789abcdef", draw(17));
	case 6: return tw_term_float(arena, (double)draw(1000) / 7);
	default: return tw_term_nil();
	}
}

static struct tw_term random_term(struct tw_arena *arena, unsigned depth)
{
	struct tw_term parts[80];
	size_t count = draw(draw(6) ? 5 : 80);

	if (!depth || draw(3) == 0)
		return random_leaf(arena);
	for (size_t i = 0; i < count; i++)
		parts[i] = random_term(arena, count > 5 ? 0 : depth - 1);
	switch (draw(3)) {
	case 0: return tw_term_tuple(arena, parts, count);
	case 1: return tw_term_list(arena, parts, count, tw_term_nil());
	default: return tw_term_list(arena, parts, count, random_leaf(arena));
	}
}

/*
 * The encoding in hits is identical byte for byte, in any buffer: whole, or nothing at all, and nothing past the
 * buffer.
 */
static void the_short_path_writes_the_same_bytes(void **state)
{
	static uint8_t whole[1 << 16], tried[(1 << 16) + 8];
	struct tw_arena arena;

	tw_arena_init(&arena, SIZE_MAX);
	for (int i = 0; i < 20000; i++) {
		struct tw_term term = random_term(&arena, (unsigned)draw(9));
		struct tw_sink sink = {.start = (char *)whole,
				       .at = (char *)whole,
				       .end = (char *)whole + sizeof whole};
		size_t bytes, capacity;

		assert_int_equal(tw_etf_encode(term, (struct tw_term){0}, &sink), 0);
		bytes = (size_t)(sink.at - sink.start);
		assert_int_equal(tw_etf_try_encode(term, tried, sizeof tried - 8), bytes);
		assert_memory_equal(tried, whole, bytes);
		capacity = draw(bytes + 50);
		memset(tried + capacity, 0x5a, 8);
		assert_int_equal(tw_etf_try_encode(term, tried, capacity), capacity < bytes ? 0 : bytes);
		for (size_t b = 0; b < 8; b++)
			assert_int_equal(tried[capacity + b], 0x5a);
		tw_arena_reset(&arena);
	}
	tw_arena_fini(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_hand),
		cmocka_unit_test(cut_and_changed),
		cmocka_unit_test(heads_cannot_take_memory),
		cmocka_unit_test(funs_stand_among_others),
		cmocka_unit_test(options_count),
		cmocka_unit_test(the_short_path_writes_the_same_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
