/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	The parser reads what Erlang's io:read/1 reads, to the same term, and refuses the rest with a message and a
 *	position that point at the mistake.
 * Method	Tables: a text and the printed form of its term (taken from OTP 25); a text and the position of its
 *	error.  Then several terms in one text, limits of depth and size, and an arena that is full at every size.
 */
#include "term/term.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

/* clang-format off */
static const struct {
	const char *text;
	const char *printed;
} good[] = {
	{"1", "1"}, {"-1", "-1"}, {"- 1", "-1"}, {"+1", "1"}, {"1_000", "1000"}, {"16#fF_f", "4095"},
	{"36#Zz", "1295"}, {"2#-1", NULL}, {"-16#ff.", "-255"},
	{"576460752303423487", "576460752303423487"}, {"576460752303423488", "576460752303423488"},
	{"-576460752303423488", "-576460752303423488"}, {"-576460752303423489", "-576460752303423489"},
	{"18446744073709551616", "18446744073709551616"}, {"999999999999999999", "999999999999999999"},
	{"-123456789012345678901234567890", "-123456789012345678901234567890"},
	{"16#ffffffffffffffffffffffffffffffff", "340282366920938463463374607431768211455"},
	{"$a", "97"}, {"$ ", "32"}, {"$\\s", "32"}, {"$\\n", "10"}, {"$\\\\", "92"}, {"-$a", "-97"}, {"$\\^a", "1"},
	{"$\\x41", "65"}, {"$\\x{1F600}", "128512"}, {"$\xc3\xa9", "233"}, {"$%", "37"},
	{"1.0", "1.0"}, {"1.5E+3", "1.5e3"}, {"1.0e-400", "0.0"}, {"-0.0", "-0.0"}, {"1_000.5_0", "1000.5"},
	{"0.1e1_0", "1.0e9"}, {"123456789012345678.0", "1.2345678901234568e17"}, {"1.0e23", "1.0e23"},
	{"a", "a"}, {"a@B_9", "a@B_9"}, {"'a'", "a"}, {"'A b'", "'A b'"}, {"''", "''"}, {"'\\''", "'\\''"},
	{"'a\nb'", "'a\\nb'"}, {"'\\x{0}'", "'\\000'"}, {"\xc3\xa9t\xc3\xa9", "\xc3\xa9t\xc3\xa9"}, {"maybe", "'maybe'"},
	{"'and'", "'and'"}, {"andy", "andy"}, {"fund", "fund"}, {"'$1'", "'$1'"}, {"'_'", "'_'"},
	{"\"\"", "[]"}, {"\"ab\" \"cd\"", "\"abcd\""}, {"\"a\" % x\n \"b\"", "\"ab\""}, {"\"\\^a\\^?\\^@\"", "[1,31,0]"},
	{"\"a\\\nb\"", "\"a\\nb\""}, {"\"\\x41\\777\\7\\77a\"", "[65,511,7,63,97]"}, {"\"\xc3\xa9\"", "\"\xc3\xa9\""},
	{"\"\"\"a\"\"\"", "\"a\""}, {"\"\\b\\d\\e\\f\\n\\r\\s\\t\\v\"", "[8,127,27,12,10,13,32,9,11]"},
	{"{}", "{}"}, {"{ a , 1 }", "{a,1}"}, {"(1)", "1"}, {"{(a)}", "{a}"}, {"[]", "[]"}, {"[1|2]", "[1|2]"},
	{"[[a]|b]", "[[a]|b]"}, {"[a|[b]]", "[a,b]"}, {"[a,b|[c|d]]", "[a,b,c|d]"}, {"{1 , % c\n 2}", "{1,2}"},
	{"#{}", "#{}"}, {"#{b=>1,a=>2}", "#{a => 2,b => 1}"}, {"#{a=>1,a=>2}", "#{a => 2}"},
	{"#{1.0=>b,1=>a}", "#{1 => a,1.0 => b}"}, {"#{a=>#{b=>[c]}}", "#{a => #{b => [c]}}"},
	{"<<>>", "<<>>"}, {"<<1,2>>", "<<1,2>>"}, {"<<\"ab\">>", "<<\"ab\">>"}, {"<<1:3>>", "<<1:3>>"},
	{"<<-1>>", "<<255>>"}, {"<<300>>", "<<\",\">>"}, {"<<\"ab\":16>>", "<<0,97,0,98>>"}, {"<<$a>>", "<<\"a\">>"},
	{"<<1.5:32/float>>", "<<63,192,0,0>>"}, {"<<1/float>>", "<<63,240,0,0,0,0,0,0>>"}, {"<<300:12/little>>", "<<44,1:4>>"},
	{"<<16#12345:20/little>>", "<<69,35,1:4>>"}, {"<<-5:20/little-signed>>", "<<251,255,15:4>>"},
	{"<<(<<1>>)/binary>>", "<<1>>"}, {"<< <<1>>/binary>>", "<<1>>"}, {"<<\"x\"/utf8,\"\\x{e9}\"/utf16>>", "<<120,0,233>>"},
	{"<<\"\\x{1F600}\"/utf16>>", "<<216,61,222,0>>"}, {"<<\"\xc3\xa9\"/utf8>>", "<<\"\xc3\xa9\"/utf8>>"},
	{"<<1:2/unit:4>>", "<<1>>"}, {"<<1:(2)>>", "<<1:2>>"}, {"<<1:0>>", "<<>>"}, {"<<3/utf32-little>>", "<<3,0,0,0>>"},
	{"<<1:8/integer-integer>>", "<<1>>"}, {"<<\"a\" \"b\">>", "<<\"ab\">>"}, {"<<-$a>>", "<<159>>"},
	{"<<1:16#10>>", "<<0,1>>"}, {"<<5:3,1:1,255>>", "<<191,15:4>>"}, {"<<(<<5:3>>)/bits,1:5>>", "<<161>>"},
	{"<<(<<1,2>>):1/binary>>", "<<1>>"}, {"<<12345678901234567890123:96>>", "<<0,0,2,157,66,182,78,118,113,66,68,203>>"},
	{"<0.83.0>", "<0.83.0>"}, {"<7.1.2>", "<7.1.2>"}, {"#Port<0.5>", "#Port<0.5>"},
	{"#Port<0.18446744073709551615>", "#Port<0.18446744073709551615>"}, {"#Ref<0.1.2.3>", "#Ref<0.1.2.3>"},
	{"#Ref<0.9>", "#Ref<0.9>"}, {"fun a:b/1", "fun a:b/1"}, {"fun 'A':'B' / 255", "fun 'A':'B'/255"},
	{"% only a comment\n x . % and more", "x"}, {"\xc2\xa0x", "x"},
};
/* clang-format on */

/* clang-format off */
static const struct {
	const char *text;
	unsigned line, column;
	const char *message;
} bad[] = {
	{"", 1, 1, "no term"}, {"% x", 1, 4, "no term"}, {"X", 1, 1, "variable"}, {"{a,_}", 1, 4, "variable"},
	{"{a,\n b,\n C}", 3, 2, "variable"}, {"{\"\xc3\xa9\",B}", 1, 6, "variable"}, {"and", 1, 1, "reserved"},
	{"[fun]", 1, 5, "expected an atom"}, {"fun fun:a/1", 1, 5, "reserved"}, {"fun a:b/256", 1, 9, "too large"},
	{"fun a/1", 1, 6, "Module:Function"}, {"1 2", 1, 3, "full stop"}, {"a. b", 1, 4, "more text"}, {"a.b", 1, 3, "white space"},
	{"{a", 1, 3, "tuple"}, {"{a,}", 1, 4, "begins"}, {"[1,]", 1, 4, "begins"}, {"[|2]", 1, 2, "begins"},
	{"[a,b|c,d]", 1, 7, "]"}, {"[a", 1, 3, "list"}, {"(a", 1, 3, ")"}, {"#{a=>1|b}", 1, 7, "map"}, {"#{a}", 1, 4, "=>"},
	{"#{a=>1,}", 1, 8, "key"}, {"#{", 1, 3, "ends"}, {"#x", 1, 2, "#{"}, {"#Fun<a.1.2>", 1, 2, "opaque"},
	{"-a", 1, 1, "number"}, {"--1", 1, 1, "number"}, {"37#1", 1, 1, "base"}, {"1#0", 1, 1, "base"}, {"1_6#0", 1, 1, "base"},
	{"16#", 1, 4, "digit"}, {"16#g", 1, 4, "digit"}, {"1__0", 1, 2, "full stop"}, {"1_", 1, 2, "full stop"},
	{"1e5", 1, 2, "full stop"}, {"1.0e", 1, 5, "exponent"}, {"1.0e400", 1, 1, "too large"},
	{"'abc", 1, 1, "no end"}, {"\"abc", 1, 1, "no end"}, {"$", 1, 2, "ends"}, {"$\\", 1, 3, "ends"},
	{"\"\\xz\"", 1, 2, "\\x"}, {"\"\\x{d800}\"", 1, 2, "Unicode"}, {"\"\\x{110000}\"", 1, 2, "Unicode"}, {"\"\\x{}\"", 1, 2, "\\x"},
	{"\"\xff\"", 1, 2, "UTF-8"}, {"\xff", 1, 1, "UTF-8"}, {"\xd0\xb4", 1, 1, "quotes"},
	{"<0.1>", 1, 1, "three"}, {"<0.1.2", 1, 7, "numbers"}, {"<a>", 1, 2, "numbers"}, {"<0.4294967296.0>", 1, 4, "too large"},
	{"#Port<0.1.2>", 1, 2, "two"}, {"#Ref<0>", 1, 7, "numbers"}, {"#Ref<0.1.2.3.4.5.6>", 1, 18, "numbers"},
	{"<<1,>>", 1, 5, "begins"}, {"<<1.5>>", 1, 3, "integer"}, {"<<a>>", 1, 3, "integer"}, {"<<1:(-1)>>", 1, 5, "size"},
	{"<<1/bytes>>", 1, 3, "binary"}, {"<<1/unit:1>>", 1, 3, "size"}, {"<<1/little-big>>", 1, 12, "contradicts"},
	{"<<65:8/utf8>>", 1, 3, "size"}, {"<<-1/utf8>>", 1, 3, "Unicode"}, {"<<1:8:8>>", 1, 6, "binary"}, {"<<1/x>>", 1, 5, "type"},
	{"<<1:99999999999>>", 1, 5, "size"}, {"<<1:8000000,1:8000000>>", 1, 13, "1 MiB"}, {"<<1.0:16/float>>", 1, 3, "float"},
	{"<<1", 1, 4, "binary"}, {"<<(<<1>>):2/binary>>", 1, 3, "size"}, {"=", 1, 1, "begins"},
};
/* clang-format on */

static void good_texts_are_read(void **state)
{
	struct tw_arena arena;
	char printed[1000];

	tw_arena_init(&arena, SIZE_MAX);
	for (size_t i = 0; i < TW_COUNT_OF(good); i++) {
		struct tw_parse_error error = {0};
		struct tw_term term;
		int result = tw_term_parse(&arena, good[i].text, strlen(good[i].text), &term, &error);

		if (!good[i].printed) {
			assert_int_equal(result, TW_EBADARG);
			continue;
		}
		if (result != 0)
			print_error("%s: %s\n", good[i].text, error.message);
		assert_int_equal(result, 0);
		tw_term_format(term, TW_PRINT_PRETTY, printed, sizeof(printed));
		assert_string_equal(printed, good[i].printed);
	}
	tw_arena_fini(&arena);
}

static void errors_point_at_the_place(void **state)
{
	struct tw_arena arena;

	tw_arena_init(&arena, SIZE_MAX);
	for (size_t i = 0; i < TW_COUNT_OF(bad); i++) {
		struct tw_parse_error error = {0};
		struct tw_term term = {77};
		int result = tw_term_parse(&arena, bad[i].text, strlen(bad[i].text), &term, &error);

		assert_int_equal(result, TW_EBADARG);
		assert_int_equal(term.word, 77);
		if (error.line != bad[i].line || error.column != bad[i].column ||
		    !strstr(error.message, bad[i].message))
			fail_msg("%s: %u:%u: %s", bad[i].text, error.line, error.column, error.message);
	}
	tw_arena_fini(&arena);
}

static void a_text_holds_several_terms(void **state)
{
	struct tw_parser parser = {.text = "a. {b,\n1}.\n% c\n'c d'. X"};
	static const char *const printed[] = {"a", "{b,1}", "'c d'"};
	struct tw_arena arena;
	struct tw_term term;
	char text[100];
	size_t before;

	parser.bytes = strlen(parser.text);
	tw_arena_init(&arena, SIZE_MAX);
	for (size_t i = 0; i < TW_COUNT_OF(printed); i++) {
		assert_int_equal(tw_parse_next(&parser, &arena, &term), 0);
		tw_term_format(term, TW_PRINT_WRITE, text, sizeof(text));
		assert_string_equal(text, printed[i]);
	}
	before = parser.offset;
	assert_int_equal(tw_parse_next(&parser, &arena, &term), TW_EBADARG);
	assert_int_equal(parser.offset, before);
	assert_int_equal(parser.error.line, 4);
	assert_int_equal(parser.error.offset, parser.bytes - 1);
	parser.bytes--;
	assert_int_equal(tw_parse_next(&parser, &arena, &term), TW_ENOENT);
	tw_arena_fini(&arena);
}

/* @opening @count times, @middle, and @closing as often. */
static char *nested(size_t count, const char *opening, const char *middle, const char *closing)
{
	char *text = malloc(count * (strlen(opening) + strlen(closing)) + strlen(middle) + 1), *p = text;

	for (size_t i = 0; i < count; i++)
		p = stpcpy(p, opening);
	p = stpcpy(p, middle);
	for (size_t i = 0; i < count; i++)
		p = stpcpy(p, closing);
	return text;
}

static int parse(const char *text, struct tw_parse_error *error)
{
	struct tw_arena arena;
	struct tw_term term;
	int result;

	tw_arena_init(&arena, 256 << 20);
	result = tw_term_parse(&arena, text, strlen(text), &term, error);
	tw_arena_fini(&arena);
	return result;
}

static void depth_is_bounded(void **state)
{
	static const char *const brackets[][2] = {{"{", "}"},	  {"[", "]"},	{"(", ")"},
						  {"#{a=>", "}"}, {"[a|", "]"}, {"<<(", ")/binary>>"}};
	struct tw_parse_error error;

	for (size_t i = 0; i < TW_COUNT_OF(brackets); i++) {
		/* A segment in brackets is two levels. */
		size_t levels = strlen(brackets[i][0]) == 3 && brackets[i][0][0] == '<' ? 499 : TW_TERM_DEPTH_MAX;
		const char *middle = levels == 499 ? "<<1>>" : "1";
		char *text = nested(levels, brackets[i][0], middle, brackets[i][1]);

		assert_int_equal(parse(text, &error), 0);
		free(text);
		text = nested(200000, brackets[i][0], middle, brackets[i][1]);
		assert_int_equal(parse(text, &error), TW_ELIMIT);
		assert_non_null(strstr(error.message, "1000 levels"));
		free(text);
	}
	char *text = nested(300000, "fun ", "a:b/1", "");
	assert_int_equal(parse(text, &error), TW_EBADARG);
	free(text);
}

static void size_is_bounded(void **state)
{
	struct tw_parse_error error;
	char *text = nested(19728, "9", "", "");

	assert_int_equal(parse(text, &error), 0);
	free(text);
	text = nested(19730, "9", "", "");
	assert_int_equal(parse(text, &error), TW_EBADARG);
	assert_non_null(strstr(error.message, "65536 bits"));
	free(text);
	text = nested(1 << 20, "9", "", "");
	assert_int_equal(parse(text, &error), TW_EBADARG);
	free(text);
	text = nested(1 << 20, "9", ".0", "");
	assert_int_equal(parse(text, &error), TW_EBADARG);
	free(text);
	text = nested(256, "\xc3\xa9", "", "");
	assert_int_equal(parse(text, &error), TW_EBADARG);
	assert_non_null(strstr(error.message, "255 characters"));
	text[255 * 2] = '\0';
	assert_int_equal(parse(text, &error), 0);
	free(text);
	text = nested(262144, "[a,", "[]", "]");
	assert_int_equal(parse(text, &error), TW_ELIMIT);
	free(text);
	/* A mebibyte of text on one level. */
	text = malloc((1 << 20) + 3);
	memset(text, '1', 1 << 20);
	for (size_t i = 1; i < 1 << 20; i += 2)
		text[i] = ',';
	text[0] = '[';
	text[1] = '1';
	memcpy(text + (1 << 20) - 1, "1]", 3);
	assert_int_equal(parse(text, &error), 0);
	free(text);
}

static void a_full_arena_is_an_error(void **state)
{
	static const char text[] = "{trace,<0.83.0>,call,{lists,seq,[1,10]},#{a => \"text\",1.5 => <<1,2,3:4>>},"
				   "123456789012345678901234567890,#Ref<0.1.2.3>,fun a:b/1}";
	_Alignas(16) static char memory[4096];
	size_t needed = 0;

	for (size_t bytes = 0; bytes <= sizeof(memory); bytes += 16) {
		struct tw_arena arena;
		struct tw_term term;
		int result;

		tw_arena_init_fixed(&arena, memory, bytes);
		result = tw_term_parse(&arena, text, strlen(text), &term, NULL);
		if (result == 0 && !needed)
			needed = bytes;
		assert_int_equal(result, needed ? 0 : TW_ENOMEM);
		assert_true(arena.at <= memory + bytes);
	}
	assert_in_range(needed, 400, 1200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_texts_are_read),
		cmocka_unit_test(errors_point_at_the_place),
		cmocka_unit_test(a_text_holds_several_terms),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(size_is_bounded),
		cmocka_unit_test(a_full_arena_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
