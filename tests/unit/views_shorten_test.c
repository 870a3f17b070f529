/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: names of functions that do not fit still identify the function, C++ ones as well; none is longer than
 * requested.  Method: names as demanglers write them, at several widths.
 */
#include "views/output/shorten.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static const char *shorten(const char *name, size_t width)
{
	static char text[TW_NAME_SHORT_BYTES];

	tw_name_shorten(name, width, text, sizeof text);
	assert_true(strlen(text) <= width);
	return text;
}

static void names_that_fit_stay(void **state)
{
	assert_string_equal(shorten("libc:memcpy", 40), "libc:memcpy");
	assert_string_equal(shorten("app:std::vector<int>::push_back(int&&)/2", 40),
			    "app:std::vector<int>::push_back(int&&)/2");
}

static void names_of_c_lose_arity_module_and_middle(void **state)
{
	assert_string_equal(shorten("libc:memcpy", 11), "libc:memcpy");
	assert_string_equal(shorten("libsqlite3:sqlite3_step", 16), "..sqlite3_step");
	assert_string_equal(shorten("sqlite3:sqlite3VdbeMemMakeWriteable/1", 26), "..sqlite3Vdbe..Writeable/1");
	assert_string_equal(shorten("<0.17.0>", 8), "<0.17.0>");
	assert_string_equal(shorten("(not defined in the capture)", 23), "(not defin..he capture)");
	assert_string_equal(shorten("a name with spaces and no colon", 20), "a name wi.. no colon");
}

static void brackets_result_module_and_scopes_go_in_turn(void **state)
{
	const char *scan =
		"cx:bool json::v3::detail::lexer<json::v3::basic<std::map, std::vector<int> >, char const*>::scan<int>(char, int)/3";
	const char *push = "app:std::vector<char, std::allocator<char> >::push_back(char&&)/2";
	const char *local = "app:app::(anonymous namespace)::greet(std::basic_string<char> const&)/1";

	assert_string_equal(shorten(push, 65), push);
	assert_string_equal(shorten(push, 64), "app:std::vector<char>::push_back(char&&)/2");
	assert_string_equal(shorten(push, 40), "app:std::vector<..>::push_back(..)/2");
	assert_string_equal(shorten(push, 32), "..vector<..>::push_back(..)/2");
	assert_string_equal(shorten(push, 20), "..push_back(..)/2");
	assert_string_equal(
		shorten(scan, 110),
		"cx:bool json::v3::detail::lexer<json::v3::basic<..>, char const*>::scan<int>(char, int)/3");
	assert_string_equal(shorten(scan, 56), "cx:bool json::v3::detail::lexer<..>::scan<..>(..)/3");
	assert_string_equal(shorten(scan, 48), "..json::v3::detail::lexer<..>::scan<..>(..)/3");
	assert_string_equal(shorten(scan, 30), "..lexer<..>::scan<..>(..)/3");
	assert_string_equal(shorten(local, 50), "app:app::(anonymous namespace)::greet(..)/1");
}

static void default_template_arguments_go_first(void **state)
{
	assert_string_equal(shorten("app:std::vector<int, std::allocator<int> >::push_back(int const&)", 50),
			    "app:std::vector<int>::push_back(int const&)");
	assert_string_equal(
		shorten("app:f(std::map<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >, "
			"std::vector<long, std::allocator<long> >, "
			"std::less<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > >, "
			"std::allocator<std::pair<std::__cxx11::basic_string<char, std::char_traits<char>, "
			"std::allocator<char> > const, std::vector<long, std::allocator<long> > > > >&)",
			60),
		"app:f(std::map<std::string, std::vector<long> >&)");
	assert_string_equal(shorten("app:g(std::unordered_map<int, std::unique_ptr<T, std::default_delete<T> >, "
				    "std::hash<int>, std::equal_to<int>, std::allocator<std::pair<int const, "
				    "std::unique_ptr<T, std::default_delete<T> > > > >)",
				    60),
			    "app:g(std::unordered_map<int, std::unique_ptr<T> >)");
	/* Others than the default stay. */
	assert_string_equal(shorten("app:std::set<int, std::greater<int>, std::allocator<int> >::insert(int)", 60),
			    "app:std::set<int, std::greater<int> >::insert(int)");
	assert_string_equal(shorten("app:std::vector<int, std::allocator<char> >::begin(std::string)", 62),
			    "app:std::vector<int, std::allocator<..> >::begin(std::string)");
}

static void operators_are_no_brackets(void **state)
{
	const char *call = "app:main::{lambda(int, char const*)#1}::operator()(int, char const*) const/3";

	assert_string_equal(shorten("app:foo<&(bar::operator< <int>(int))>::operator->() const/1", 46),
			    "app:foo<&(..)>::operator->() const/1");
	assert_string_equal(shorten(call, 60), "app:main::{lambda(..)#1}::operator()(..) const/3");
	assert_string_equal(shorten("libx:operator new(unsigned long, std::align_val_t)/2", 30),
			    "libx:operator new(..)/2");
	assert_string_equal(shorten("libx:operator new(unsigned long, std::align_val_t)/2", 20),
			    "..operator new(..)/2");
}

static void types_that_stand_for_themselves_stay(void **state)
{
	assert_string_equal(shorten("rs:<alloc::vec::Vec<T,A> as core::ops::drop::Drop>::drop", 40),
			    "..<alloc::vec::Vec<...:drop::Drop>::drop");
}

/* Brackets that do not match, and very many of them. */
static void nonsense_is_cut_in_the_middle(void **state)
{
	char deep[9000] = "m:f";

	assert_string_equal(shorten("m:operator_without_end<<<<<<<<<(((((", 20), "..operator..<<<(((((");
	memset(deep + 3, '<', sizeof deep - 4);
	for (size_t width = 8; width < 400; width += 7)
		shorten(deep, width);
	memset(deep + 3, 'x', sizeof deep - 4);
	for (size_t width = 8; width < 400; width += 7)
		shorten(deep, width);
	for (size_t i = 3; i + 1 < sizeof deep; i++)
		deep[i] = "x<y(z)>"[i % 7];
	for (size_t width = 8; width < 400; width += 7)
		shorten(deep, width);
}

static void names_of_one_table_stay_different(void **state)
{
	static const char *const names[] = {
		"cl:int app::tw<int, long>(int, long)",
		"cl:int app::tw<long, int>(long, int)",
		"cl:int app::tw<unsigned long, char>(unsigned long, char)",
		"cl:app::S::add(int) const",
		"cl:app::S::add(long) const",
		"app:std::vector<std::map<int, long>, std::allocator<std::map<int, long> > >::push_back(std::map<int, long>&&)/2",
		"app:std::vector<std::map<int, char>, std::allocator<std::map<int, char> > >::push_back(std::map<int, char>&&)/2",
		"libsqlite3:sqlite3VdbeMemMakeWriteable",
		"libsqlite3:sqlite3VdbeMemBakeWriteable",
		"cl:int app::tw<int, long>(int, long)",
	};
	enum { COUNT = sizeof names / sizeof *names };

	for (size_t width = 20; width <= 120; width++) {
		char **texts = tw_names_shorten(names, COUNT, width);

		assert_non_null(texts);
		for (size_t i = 0; i < COUNT; i++) {
			assert_true(strlen(texts[i]) <= width && *texts[i]);
			for (size_t k = 0; k < i; k++)
				if ((strcmp(texts[i], texts[k]) == 0) != (strcmp(names[i], names[k]) == 0))
					fail_msg("at %zu columns '%s' stands for %s and %s", width, texts[i], names[i],
						 names[k]);
		}
		tw_names_shorten_free(texts, COUNT);
	}
	char **texts = tw_names_shorten(names, 3, 26);
	assert_string_equal(texts[0], "cl:int app::tw<int, long..");
	tw_names_shorten_free(texts, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_that_fit_stay),
		cmocka_unit_test(names_of_one_table_stay_different),
		cmocka_unit_test(names_of_c_lose_arity_module_and_middle),
		cmocka_unit_test(brackets_result_module_and_scopes_go_in_turn),
		cmocka_unit_test(default_template_arguments_go_first),
		cmocka_unit_test(operators_are_no_brackets),
		cmocka_unit_test(types_that_stand_for_themselves_stay),
		cmocka_unit_test(nonsense_is_cut_in_the_middle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
