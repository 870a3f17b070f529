/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    Names of thrown classes are shown as in the source; unknown forms are left unchanged; nothing is read or
 *         written out of bounds.
 * Method  Names as g++ 12 puts them into type_info, and every shortened form of them, into buffers of every size.
 */
#include "symbols/symbols.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static const char *const pairs[][2] = {
	{"i", "int"},
	{"PKc", "char const*"},
	{"St13runtime_error", "std::runtime_error"},
	{"*N3app3BadE", "app::Bad"},
	{"N3app3OddIiEE", "app::Odd<int>"},
	{"N3app3OddINS_3BadEEE", "N3app3OddINS_3BadEEE"}, /* a substitution */
	{"N12_GLOBAL__N_13BadE", "(anonymous namespace)::Bad"},
	{"NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
	 "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"},
	{"NSt10filesystem7__cxx1116filesystem_errorE", "std::filesystem::__cxx11::filesystem_error"},
	{"St5arrayIiLm3EE", "std::array<int, 3>"},
	{"Z4mainE3Bad", "Z4mainE3Bad"}, /* local to a function */
	{"", ""},
};

static void test_names(void **state)
{
	char out[256];

	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		tw_sym_type_name(pairs[i][0], out, sizeof out);
		assert_string_equal(out, pairs[i][1]);
	}
}

static void test_rooms(void **state)
{
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
		for (size_t length = 0; length <= strlen(pairs[i][0]); length++)
			for (size_t capacity = 1; capacity < 90; capacity++) {
				char *name = strndup(pairs[i][0], length), *out = malloc(capacity);

				tw_sym_type_name(name, out, capacity);
				assert_true(strnlen(out, capacity) < capacity);
				free(out);
				free(name);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_rooms)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
