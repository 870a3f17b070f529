/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    Patterns have their documented meaning, and bad ones are refused with a sentence.
 * Method  Tables: pattern, subject, does it match; and texts that must not parse.
 */
#include "tracewheel/error.h"
#include "tracewheel/pattern.h"
#include "tracewheel/symbols.h"

#include "base/assert.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANY TW_PATTERN_ARITY_UNKNOWN

struct match_case {
	const char *pattern;
	struct tw_pattern_subject subject;
	bool matches;
};

#define SQLITE(function, arity)                                                 \
	{                                                                       \
		"libsqlite3", "/usr/lib/libsqlite3.so.0", function, NULL, arity \
	}
#define CXX(name, demangled)                                  \
	{                                                     \
		"libgeo", "libgeo.so.1", name, demangled, ANY \
	}

static const struct match_case cases[] = {
	{"libsqlite3:sqlite3_step/_", SQLITE("sqlite3_step", ANY), true},
	{"libsqlite3:sqlite3_step/1", SQLITE("sqlite3_step", 1), true},
	{"libsqlite3:sqlite3_step/2", SQLITE("sqlite3_step", 1), false},
	{"libsqlite3:sqlite3_step/1", SQLITE("sqlite3_step", ANY), false},
	{"libsqlite3:sqlite3_step", SQLITE("sqlite3_step", 1), true},
	{"libsqlite3:sqlite3_*/*", SQLITE("sqlite3_step", ANY), true},
	{"libsqlite3:sqlite3_*", SQLITE("sqlite4_step", ANY), false},
	{"libsqlite3:sqlite3_ste?", SQLITE("sqlite3_step", ANY), true},
	{"libsqlite3:sqlite3_[a-s]*", SQLITE("sqlite3_step", ANY), true},
	{"libsqlite3:sqlite3_[!a-s]*", SQLITE("sqlite3_step", ANY), false},
	{"libsqlite3:_", SQLITE("sqlite3_step", ANY), true},
	{"libsqlite3:_/_", SQLITE("sqlite3_step", ANY), true},
	{"libsqlite:_", SQLITE("sqlite3_step", ANY), false},
	{"_:_", SQLITE("sqlite3_step", ANY), true},
	{"_", SQLITE("sqlite3_step", ANY), true},
	{"sqlite3_step", SQLITE("sqlite3_step", ANY), true},
	{"step", SQLITE("sqlite3_step", ANY), false},
	{"libsqlite3.so.0:_", SQLITE("sqlite3_step", ANY), true},
	{"libsqlite3.so.1:_", SQLITE("sqlite3_step", ANY), false},
	{"/usr/lib/libsqlite3.so.0:sqlite3_step", SQLITE("sqlite3_step", ANY), true},
	{"lib*:sqlite3_step/255", SQLITE("sqlite3_step", 255), true},
	{"libgeo:geo::Point::norm", CXX("_ZNK3geo5Point4normEv", "geo::Point::norm() const"), true},
	{"geo::Point::norm", CXX("_ZNK3geo5Point4normEv", "geo::Point::norm() const"), true},
	{"geo::*", CXX("_ZNK3geo5Point4normEv", "geo::Point::norm() const"), true},
	{"libgeo:geo::Point::norm() const", CXX("_ZNK3geo5Point4normEv", "geo::Point::norm() const"), true},
	{"libgeo:_ZNK3geo5Point4normEv", CXX("_ZNK3geo5Point4normEv", NULL), true},
	{"libgeo:geo::Point::norm", CXX("_ZNK3geo5Point4normEv", NULL), false},
	{"geo::operator/", CXX("_ZN3geodvERKNS_5PointEd", "geo::operator/(geo::Point const&, double)"), true},
	{"geo::operator//2", {"libgeo", NULL, "x", "geo::operator/(geo::Point const&, double)", 2}, true},
	{"geo::F::operator()", CXX("_ZN3geo1FclEi", "geo::F::operator()(int)"), true},
	{"(anonymous namespace)::f", CXX("_ZN12_GLOBAL__N_11fEi", "(anonymous namespace)::f(int)"), true},
	{"std::less<(E)1>::f", CXX("_Z", "std::less<(E)1>::f(int)"), true},
	/* Names as views print them. */
	{"libgeo:app::S::add(int) const [clone .isra.0]/_",
	 CXX("_ZNK3app1S3addEi.isra.0", "app::S::add(int) const [clone .isra.0]"), true},
	{"libgeo:app::S::add(int)", CXX("_ZNK3app1S3addEi.isra.0", "app::S::add(int) const [clone .isra.0]"), true},
	{"libgeo:app::S::add(int) const", CXX("_ZNK3app1S3addEi", "app::S::add(int) const [clone .isra.0]"), true},
	{"libgeo:app::S::add(long)", CXX("_ZNK3app1S3addEi", "app::S::add(int) const"), false},
	{"libgeo:_ZNK3app1S3addEi", CXX("_ZNK3app1S3addEi.isra.0", NULL), true},
	{"libgeo:_ZNK3app1S3addEi.isra.0", CXX("_ZNK3app1S3addEi.isra.0", NULL), true},
	{"libgeo:work", CXX("work.constprop.0.isra.0", NULL), true},
	{"libgeo:main", CXX("main.run", NULL), false},
	{"libgeo:int app::most<int>(int, int)/_", CXX("_Z", "int app::most<int>(int, int)"), true},
	{"app::most<int>", CXX("_Z", "int app::most<int>(int, int)"), true},
	{"app::most<int>(int, int)", CXX("_Z", "std::vector<int, std::allocator<int> > app::most<int>(int, int)"),
	 true},
	{"most", CXX("_Z", "int app::most<int>(int, int)"), false},
	{"libgeo:v::operator[](int) const/_", CXX("_Z", "v::operator[](int) const"), true},
	{"v::operator unsigned long", CXX("_Z", "v::operator unsigned long()"), true},
	{"long", CXX("_Z", "v::operator unsigned long()"), false},
	{"f[abi:cxx11](char*)", CXX("_Z", "f[abi:cxx11](char*)"), true},
	{"libgeo:f[abi:cxx11](char*)/_", CXX("_Z", "f[abi:cxx11](char*)"), true},
	{"libgeo:f()::{lambda(int, int)#1}::operator()(int, int) const/_",
	 CXX("_Z", "f()::{lambda(int, int)#1}::operator()(int, int) const"), true},
	{"libgeo:{{closure}}", CXX("{{closure}}", NULL), true},
	/* Functions of one readable name. */
	{"libgeo:base::~base()", CXX("_ZN4baseD0Ev", "base::~base()"), true},
	{"libgeo:base::~base() [_ZN4baseD0Ev]/_", CXX("_ZN4baseD0Ev", "base::~base()"), true},
	{"libgeo:base::~base() [_ZN4baseD0Ev]/_", CXX("_ZN4baseD2Ev", "base::~base()"), false},
	/* Several. */
	{"libsqlite3:{sqlite3_open,sqlite3_step}", SQLITE("sqlite3_step", ANY), true},
	{"libsqlite3:{sqlite3_open,sqlite3_step}", SQLITE("sqlite3_exec", ANY), false},
	{"{libc,libsqlite3}:sqlite3_{st,open}*", SQLITE("sqlite3_step", ANY), true},
	{"{libc,libm}:_", SQLITE("sqlite3_step", ANY), false},
	{"libsqlite3:{sqlite3_step/1,sqlite3_exec/5}", SQLITE("sqlite3_step", 1), true},
	{"libsqlite3:{sqlite3_step/1,sqlite3_exec/5}", SQLITE("sqlite3_step", 5), false},
	{"libsqlite3:sqlite3_{s{tep,ql},open}", SQLITE("sqlite3_sql", ANY), true},
	{"{libc:malloc,libsqlite3:_}", SQLITE("sqlite3_step", ANY), true},
	{"{f(int, long),g}", CXX("_Z", "f(int, long)"), true},
	{"libsqlite3:sqlite3_step/1", SQLITE("sqlite3_step", TW_PATTERN_ARITY_ANY), true},
};

static void patterns_match_what_they_name(void **state)
{
	for (size_t i = 0; i < TW_COUNT_OF(cases); i++) {
		struct tw_pattern *pattern;
		const char *problem = "";

		if (tw_pattern_parse(cases[i].pattern, &pattern, &problem))
			fail_msg("%s: %s", cases[i].pattern, problem);
		if (tw_pattern_match(pattern, &cases[i].subject) != cases[i].matches)
			fail_msg("case %zu: %s against %s", i, cases[i].pattern, cases[i].subject.function);
		tw_pattern_destroy(pattern);
	}
}

static void bad_patterns_are_refused_with_a_sentence(void **state)
{
	static const char *const bad[] = {"",	  ":",	  "libc:",   ":f",	"f/",	     "f/256",
					  "f/-1", "f/x",  "f/1x",    "libc:/_", "f[ab",	     "f\\",
					  "f/+1", "f/ 1", "!libc:_", "{a,}",	"libc:{,a}", "{a,b/x}"};

	for (size_t i = 0; i < TW_COUNT_OF(bad); i++) {
		struct tw_pattern *pattern = (void *)1;
		const char *problem = NULL;

		if (tw_pattern_parse(bad[i], &pattern, &problem) != TW_EBADARG)
			fail_msg("\"%s\" was taken", bad[i]);
		assert_ptr_equal(pattern, (void *)1);
		assert_non_null(problem);
		assert_true(strlen(problem) > 20);
	}
	assert_int_equal(tw_pattern_parse(NULL, (struct tw_pattern *[]){NULL}, NULL), TW_EBADARG);
}

/* A pattern that matches the demangled name must ask for it. */
static void check_demangled(const char *text, const char *name, const char *demangled)
{
	struct tw_pattern *pattern;

	if (tw_pattern_parse(text, &pattern, NULL))
		return;
	if (tw_pattern_match_function(pattern, name, demangled) && !tw_pattern_match_function(pattern, name, NULL) &&
	    !tw_pattern_wants_demangled_of(pattern, name))
		fail_msg("'%s' matches '%s' (%s), and does not ask for it", text, demangled, name);
	tw_pattern_destroy(pattern);
}

struct demangling {
	char *(*demangle)(const char *name, char *buffer, size_t *bytes, int *status);
	size_t count;
};

/* The whole name as a pattern, and a glob around each word of it. */
static int see_name(const char *name, void *arg)
{
	struct demangling *demangling = arg;
	int status;
	char *demangled = strncmp(name, "_Z", 2) ? NULL : demangling->demangle(name, NULL, NULL, &status), text[4096];

	if (!demangled)
		return 0;
	demangling->count++;
	snprintf(text, sizeof text, "_:%s", demangled);
	check_demangled(text, name, demangled);
	for (const char *word = demangled; *word;) {
		size_t bytes = strspn(word, "_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");

		snprintf(text, sizeof text, "_:*%.*s*", (int)bytes, word);
		if (bytes)
			check_demangled(text, name, demangled);
		word += bytes + (word[bytes] != '\0');
	}
	free(demangled);
	return 0;
}

static void names_are_demangled_where_it_matters(void **state)
{
	void *library = dlopen("libstdc++.so.6", RTLD_LAZY);
	struct demangling demangling = {0};
	struct tw_symbols *symbols;
	struct tw_pattern *pattern;
	struct link_map *map;

	assert_int_equal(tw_pattern_parse("_:geo::Point::move*", &pattern, NULL), 0);
	assert_true(tw_pattern_wants_demangled_of(pattern, "_ZN3geo5Point4moveEv"));
	assert_false(tw_pattern_wants_demangled_of(pattern, "_ZN3geo4Line4moveEv"));
	tw_pattern_destroy(pattern);
	/* Names inside of brackets are single letters; some types have other names in linkage names. */
	check_demangled("_:geo::[]WxyzL]ine(int)", "_ZN3geo4LineEi", "geo::Line(int)");
	check_demangled("_:geo::[[:digit:]WxyzL]ine(int)", "_ZN3geo4LineEi", "geo::Line(int)");
	check_demangled("_:*_Float16*", "_Z4halfDF16_", "half(_Float16)");
	/* Types and repeated words stand in it as other text. */
	check_demangled("_:*u32*", "_RINvNtCsfq2Zq5gqAK1_2v01m3genmEB4_", "v0::m::gen::<u32>");
	if (!library)
		return;
	*(void **)&demangling.demangle = dlsym(library, "__cxa_demangle");
	assert_non_null(demangling.demangle);
	assert_int_equal(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
	assert_int_equal(tw_symbols_open(getenv("TW_NAMES_OF") ? getenv("TW_NAMES_OF") : map->l_name, &symbols), 0);
	assert_int_equal(tw_symbols_each_function(symbols, 0, see_name, &demangling), 0);
	assert_true(demangling.count > 1000);
	tw_symbols_close(symbols);
	dlclose(library);
}

static void questions_about_a_pattern(void **state)
{
	struct tw_pattern *pattern;

	assert_int_equal(tw_pattern_parse("libm:sin/1", &pattern, NULL), 0);
	assert_int_equal(tw_pattern_arity(pattern), 1);
	assert_true(tw_pattern_wants_demangled(pattern));
	assert_false(tw_pattern_match_module(pattern, "libc", NULL));
	tw_pattern_destroy(pattern);
	assert_int_equal(tw_pattern_parse("_ZN1a*", &pattern, NULL), 0);
	assert_int_equal(tw_pattern_arity(pattern), ANY);
	assert_false(tw_pattern_wants_demangled(pattern));
	assert_true(tw_pattern_match_module(pattern, NULL, NULL));
	tw_pattern_destroy(pattern);
	assert_int_equal(tw_pattern_parse("{libc,libm}:{sin/1,cos}", &pattern, NULL), 0);
	assert_int_equal(tw_pattern_arity(pattern), 1);
	assert_string_equal(tw_pattern_alternative(pattern, 0), "libc:sin/1");
	assert_string_equal(tw_pattern_alternative(pattern, 1), "libc:cos");
	assert_string_equal(tw_pattern_alternative(pattern, 3), "libm:cos");
	assert_null(tw_pattern_alternative(pattern, 4));
	tw_pattern_destroy(pattern);
	/* 2 ** 9 names, and the deepest nesting allowed. */
	assert_int_equal(tw_pattern_parse("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", &pattern, NULL), TW_EBADARG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patterns_match_what_they_name),
		cmocka_unit_test(bad_patterns_are_refused_with_a_sentence),
		cmocka_unit_test(questions_about_a_pattern),
		cmocka_unit_test(names_are_demangled_where_it_matters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
