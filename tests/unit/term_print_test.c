/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Terms print as io_lib prints them in both forms, floats as short as possible, whatever the sink.
 * Method	Tables from OTP 25; each text again through sinks of 1 to 40 bytes that drain, and into buffers
 *	that are too short; every power of two and many random doubles against strtod() and one digit less.
 */
#include "term/print.h"
#include "term/term.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "term_help.h"
#include "tests/common/random.h"

static const struct {
	const char *text;
	const char *written;
	const char *pretty;
} forms[] = {
	{"\"abc\"", "[97,98,99]", "\"abc\""},
	{"[7,8]", "[7,8]", "[7,8]"},
	{"\"a\\n\\t\\e\\\"\\\\'\"", "[97,10,9,27,34,92,39]", "\"a\\n\\t\\e\\\"\\\\'\""},
	{"[97|b]", "[97|b]", "[97|b]"},
	{"[97,300]", "[97,300]", "[97,300]"},
	{"<<\"ab\">>", "<<97,98>>", "<<\"ab\">>"},
	{"<<7>>", "<<7>>", "<<7>>"},
	{"<<\"a\\\"\">>", "<<97,34>>", "<<\"a\\\"\">>"},
	{"<<\"\xd0\xb4\"/utf8>>", "<<208,180>>", "<<\"\xd0\xb4\"/utf8>>"},
	{"<<97,255>>", "<<97,255>>", "<<97,255>>"},
	{"<<97,1:1>>", "<<97,1:1>>", "<<97,1:1>>"},
	{"'\\000\\001\\b\\t\\n\\v\\f\\r\\e\\037\\d\\200\\237'", "'\\000\\001\\b\\t\\n\\v\\f\\r\\e\\037\\d\\200\\237'",
	 "'\\000\\001\\b\\t\\n\\v\\f\\r\\e\\037\\d\\200\\237'"},
	{"#{{a,[1]} => #{}, <<>> => []}", "#{{a,[1]} => #{},<<>> => []}", "#{{a,[1]} => #{},<<>> => []}"},
	{"[[]|{[a|b]}]", "[[]|{[a|b]}]", "[[]|{[a|b]}]"},
	{"{<1.2.3>,#Port<4.5>,#Ref<6.7.8.9.10.11>,fun 'M':f/0,-1.5,123456789012345678901234567890}",
	 "{<1.2.3>,#Port<4.5>,#Ref<6.7.8.9.10.11>,fun 'M':f/0,-1.5,123456789012345678901234567890}",
	 "{<1.2.3>,#Port<4.5>,#Ref<6.7.8.9.10.11>,fun 'M':f/0,-1.5,123456789012345678901234567890}"},
};

/* Text drained so far. */
static char gathered[1000];
static size_t gathered_bytes;

static int gather(struct tw_sink *sink)
{
	memcpy(gathered + gathered_bytes, sink->start, (size_t)(sink->at - sink->start));
	gathered_bytes += (size_t)(sink->at - sink->start);
	sink->at = sink->start;
	return 0;
}

static void check_in_pieces(struct tw_term term, enum tw_print_form form, const char *expected)
{
	char piece[40];

	for (size_t bytes = 1; bytes <= sizeof(piece); bytes++) {
		struct tw_sink sink = {.start = piece, .at = piece, .end = piece + bytes, .drain = gather};

		gathered_bytes = 0;
		assert_int_equal(tw_term_print(term, form, &sink), 0);
		gather(&sink);
		assert_int_equal(gathered_bytes, strlen(expected));
		assert_memory_equal(gathered, expected, gathered_bytes);
	}
}

static void check_cut(struct tw_term term, enum tw_print_form form, const char *expected)
{
	char buffer[1000];

	for (size_t bytes = 4; bytes <= strlen(expected) + 1; bytes++) {
		size_t length;

		memset(buffer, '#', sizeof(buffer));
		length = tw_term_format(term, form, buffer, bytes);
		assert_int_equal(length, strlen(buffer));
		assert_true(length < bytes);
		if (bytes > strlen(expected)) {
			assert_string_equal(buffer, expected);
		} else {
			assert_memory_equal(buffer, expected, length - 3);
			assert_string_equal(buffer + length - 3, "...");
		}
	}
}

static void both_forms_are_those_of_io_lib(void **state)
{
	char text[1000];

	tw_arena_init(&arena, SIZE_MAX);
	for (size_t i = 0; i < TW_COUNT_OF(forms); i++) {
		struct tw_term term = read_term(forms[i].text);

		tw_term_format(term, TW_PRINT_WRITE, text, sizeof(text));
		assert_string_equal(text, forms[i].written);
		tw_term_format(term, TW_PRINT_PRETTY, text, sizeof(text));
		assert_string_equal(text, forms[i].pretty);
		check_in_pieces(term, TW_PRINT_WRITE, forms[i].written);
		check_in_pieces(term, TW_PRINT_PRETTY, forms[i].pretty);
		check_cut(term, TW_PRINT_WRITE, forms[i].written);
		check_cut(term, TW_PRINT_PRETTY, forms[i].pretty);
	}
	tw_arena_fini(&arena);
}

/* "[Pid]" of a node, in that form. */
static void check_node(const char *node, enum tw_print_form form, const char *expected)
{
	struct tw_identifier parts = {.node = tw_term_atom_z(node), .channel = 77, .word_count = 2, .words = {5, 1}};
	struct tw_term pid, list;
	char text[200];

	tw_arena_init(&arena, SIZE_MAX);
	pid = tw_term_identifier(&arena, TW_TYPE_PID, &parts);
	list = tw_term_list(&arena, &pid, 1, tw_term_nil());
	tw_term_format(list, form, text, sizeof(text));
	assert_string_equal(text, expected);
	check_in_pieces(list, form, expected);
	check_cut(list, form, expected);
	tw_arena_fini(&arena);
}

static void identifiers_of_other_nodes_can_name_them(void **state)
{
	check_node("shop@host", TW_PRINT_PRETTY, "[<77.5.1>]");
	check_node("shop@host", TW_PRINT_PRETTY | TW_PRINT_NODES, "[<0.5.1>@shop@host]");
	check_node("shop@host", TW_PRINT_CONSULT | TW_PRINT_NODES, "['<0.5.1>@shop@host']");
	check_node("tw-1-2@a", TW_PRINT_WRITE | TW_PRINT_NODES, "[<0.5.1>@tw-1-2@a]");
	check_node("a'\n@b", TW_PRINT_PRETTY | TW_PRINT_NODES, "[<0.5.1>@a\\'\\n@b]");
	check_node("a'\n@b", TW_PRINT_CONSULT | TW_PRINT_NODES, "['<0.5.1>@a\\\\\\'\\\\n@b']");
}

static int refuse(struct tw_sink *sink)
{
	return TW_EPIPE;
}

static void a_sink_can_refuse(void **state)
{
	char piece[8];
	struct tw_sink sink = {.start = piece, .at = piece, .end = piece + sizeof(piece), .drain = refuse};

	tw_arena_init(&arena, SIZE_MAX);
	assert_int_equal(tw_term_print(read_term("{abc,def,ghi}"), TW_PRINT_WRITE, &sink), TW_EPIPE);
	assert_memory_equal(piece, "{abc,def", 8);
	sink.at = piece;
	sink.drain = NULL;
	assert_int_equal(tw_term_print(read_term("{abc,def,ghi}"), TW_PRINT_WRITE, &sink), TW_ENOSPC);
	assert_int_equal(tw_term_print(tw_word(0), TW_PRINT_WRITE, &sink), TW_EBADARG);
	tw_arena_fini(&arena);
}

/* clang-format off */
static const struct {
	double value;
	const char *text;
} floats[] = {
	{0.0, "0.0"}, {-0.0, "-0.0"}, {1.0, "1.0"}, {0.1, "0.1"}, {0.001, "0.001"}, {0.0001, "0.0001"}, {1e-5, "1.0e-5"},
	{1.5e-5, "1.5e-5"}, {1.2e-4, "1.2e-4"}, {0.00123, "0.00123"}, {100.0, "100.0"}, {1000.0, "1.0e3"}, {120.0, "120.0"},
	{1200.0, "1.2e3"}, {123456.0, "123456.0"}, {12345.678, "12345.678"}, {1e21, "1.0e21"}, {1e22, "1.0e22"},
	{1e23, "1.0e23"}, {9007199254740991.0, "9007199254740991.0"}, {9007199254740992.0, "9.007199254740992e15"},
	{2251799813685248.5, "2251799813685248.5"}, {123456789012345680.0, "1.2345678901234568e17"}, {5e-324, "5.0e-324"},
	{2.2250738585072014e-308, "2.2250738585072014e-308"}, {1.7976931348623157e308, "1.7976931348623157e308"}, {-1.5, "-1.5"},
};
/* clang-format on */

/* Reads back as the same number, and no text of one digit less does. */
static void check_shortest(double value)
{
	char text[64], shorter[64];
	size_t bytes = tw_print_float(text, value), digits = 0;

	text[bytes] = '\0';
	if (strtod(text, NULL) != value)
		fail_msg("%.17g prints as %s", value, text);
	for (const char *p = text; *p && *p != 'e'; p++)
		digits += *p >= '0' && *p <= '9' && (digits || *p != '0');
	/* Trailing zeros are no digits: 1.0, 1200.0. */
	for (const char *p = strchr(text, 'e') ? strchr(text, 'e') : text + bytes;
	     p > text && (p[-1] == '0' || p[-1] == '.'); p--)
		digits -= p[-1] == '0' && digits > 0;
	if (digits < 2)
		return;
	snprintf(shorter, sizeof(shorter), "%.*e", (int)digits - 2, value);
	if (strtod(shorter, NULL) == value)
		fail_msg("%.17g prints as %s, but %s is enough", value, text, shorter);
}

static void floats_are_short_and_exact(void **state)
{
	uint64_t random = 12345;
	char text[64];

	for (size_t i = 0; i < TW_COUNT_OF(floats); i++) {
		text[tw_print_float(text, floats[i].value)] = '\0';
		assert_string_equal(text, floats[i].text);
	}
	for (int e = -1074; e <= 1023; e++) {
		check_shortest(ldexp(1.0, e));
		check_shortest(nextafter(ldexp(1.0, e), INFINITY));
		check_shortest(nextafter(ldexp(1.0, e), 1e-320));
	}
	for (int i = 0; i < 200000; i++) {
		const uint64_t word = random_word(&random);
		double value;

		memcpy(&value, &word, sizeof(value));
		if (isfinite(value) && value != 0)
			check_shortest(value);
	}
}

static void deep_terms_print(void **state)
{
	struct tw_sink sink = {0};
	struct tw_term term = tw_small(1);

	tw_arena_init(&arena, SIZE_MAX);
	for (int i = 0; i < 100000; i++)
		term = i % 2 ? tw_term_tuple(&arena, &term, 1) : tw_term_cons(&arena, term, tw_term_nil());
	sink.start = sink.at = malloc(300000);
	sink.end = sink.start + 300000;
	assert_int_equal(tw_term_print(term, TW_PRINT_PRETTY, &sink), 0);
	assert_int_equal(sink.at - sink.start, 200001);
	free(sink.start);
	tw_arena_fini(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_forms_are_those_of_io_lib),
		cmocka_unit_test(identifiers_of_other_nodes_can_name_them),
		cmocka_unit_test(a_sink_can_refuse),
		cmocka_unit_test(floats_are_short_and_exact),
		cmocka_unit_test(deep_terms_print),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
