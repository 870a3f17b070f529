/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols_classes_test.c
 * Goal    Arguments of C++ functions are found where the compilers put them: which classes are passed by value and
 *         which by address, which parameters have no register, and which ones a local function no longer receives.
 * Method  The same source by g++ and clang++, DWARF 4 and 5, with sleds at the entries; a table derived from the
 *         Itanium C++ ABI has the registers of every parameter. clang's debug information says how a class is passed,
 *         g++'s does not.
 */
#include "tracewheel/debug.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "built_help.h"

static const char source[] =
	"struct plain { double x, y; };\n"
	"struct empty { };\n"
	"struct defaulted { defaulted() = default; defaulted(const defaulted &) = default; ~defaulted() = default; int a; };\n"
	"struct by_hand { by_hand(); by_hand(const by_hand &); int a; };\n"
	"struct destroyed { ~destroyed(); int a; };\n"
	"struct moved { moved(); moved(const moved &) = delete; moved(moved &&) = default; int a; };\n"
	"struct never { never(); never(const never &) = delete; int a; };\n"
	"struct assigned { assigned &operator=(const assigned &); int a; };\n"
	"struct converted { converted(int); converted(const converted &, int); int a; };\n"
	"struct virtuals { virtual int f(); int a; };\n"
	"struct base : virtual empty { base(int x); ~base(); int a; };\n"
	"struct holder { destroyed d[2]; };\n"
	"struct heir : by_hand { };\n"
	"struct wrapper { plain p; };\n"
	"template <class T> struct box { box(T t); box(const box &); template <class U> box(const box<U> &); T t; };\n"
	"template <class T> struct pair { T a, b; };\n"
	"#define OUT __attribute__((noinline))\n"
	"OUT double take_plain(plain p, int n) { return p.x + n; }\n"
	"OUT int take_empty(empty, int n) { return n; }\n"
	"OUT int take_defaulted(defaulted d, int n) { return d.a + n; }\n"
	"OUT int take_by_hand(by_hand d, int n) { return d.a + n; }\n"
	"OUT int take_destroyed(destroyed d, int n) { return d.a + n; }\n"
	"OUT int take_moved(moved d, int n) { return d.a + n; }\n"
	"OUT int take_never(never d, int n) { return d.a + n; }\n"
	"OUT int take_assigned(assigned d, int n) { return d.a + n; }\n"
	"OUT int take_virtuals(virtuals d, int n) { return d.a + n; }\n"
	"OUT int take_holder(holder d, int n) { return d.d[1].a + n; }\n"
	"OUT int take_heir(heir d, int n) { return d.a + n; }\n"
	"OUT int take_wrapper(wrapper d, int n) { return (int)d.p.y + n; }\n"
	"OUT int take_box(box<int> d, int n) { return d.t + n; }\n"
	"OUT int take_pair(pair<long> d, int n) { return (int)d.b + n; }\n"
	"OUT int take_reference(destroyed &d, int n) { return d.a + n; }\n"
	"OUT plain give_plain(int n) { return {1.0 * n, 2}; }\n"
	"OUT by_hand give_by_hand(int n) { by_hand b; b.a += n; return b; }\n"
	"OUT pair<long> give_pair(int n) { return {n, n}; }\n"
	"base::base(int x) { a = x; }\n"
	"base::~base() { a = 0; }\n"
	"by_hand::by_hand() : a(1) { }\n"
	"by_hand::by_hand(const by_hand &other) : a(other.a) { }\n"
	"destroyed::~destroyed() { a = 0; }\n"
	"moved::moved() : a(1) { }\n"
	"never::never() : a(1) { }\n"
	"int virtuals::f() { return a; }\n"
	"template <class T> box<T>::box(T t) : t(t) { }\n"
	"template <class T> box<T>::box(const box &b) : t(b.t) { }\n"
	"volatile int sink;\n"
	"static OUT int hidden(int n, long m) { sink = n; return (int)m + n; }\n"
	"static OUT double always(plain p, int n) { sink = n; return p.x + p.y + n; }\n"
	"int main(int argc, char **)\n"
	"{\n"
	"	by_hand h; moved m; virtuals v; v.a = 1; base b(argc); holder holder; heir heir;\n"
	"	auto lambda = [&](destroyed d, int n) { sink = d.a + n; };\n"
	"	lambda(destroyed{1}, 2);\n"
	"	sink = take_plain({1, 2}, 1) + take_empty({}, 1) + take_defaulted(defaulted(), 1) + take_by_hand(h, 1);\n"
	"	sink = take_destroyed(destroyed{1}, 1) + take_moved(moved(), 1) + take_never(never(), 1) + take_virtuals(v, 1);\n"
	"	sink = take_holder(holder, 1) + take_heir(heir, 1) + take_wrapper({{1, 2}}, 1) + take_box(box<int>(1), 1);\n"
	"	sink = take_pair({1, 2}, 1) + take_reference(holder.d[0], 1) + take_assigned(assigned(), 1);\n"
	"	sink = (int)give_plain(1).x + give_by_hand(1).a + (int)give_pair(1).a;\n"
	"	sink = hidden(argc, 2) + hidden(3, argc) + (int)always({1, 2}, argc) + (int)always({1, 2}, argc + 1);\n"
	"	return 0;\n"
	"}\n";

#define NO     TW_DEBUG_NOWHERE
#define XMM(n) (TW_DEBUG_XMM0 + (n))

/* The locations of the first parameter, the second, and the result. */
static const struct expected {
	const char *name;
	int8_t first[2];
	int8_t second;
} expected[] = {
	{"_Z10take_plain5plaini", {XMM(0), XMM(1)}, 0},
	{"_Z10take_empty5emptyi", {NO, NO}, 0},
	{"_Z14take_defaulted9defaultedi", {0, NO}, 1},
	{"_Z12take_by_hand7by_handi", {0, NO}, 1},
	{"_Z14take_destroyed9destroyedi", {0, NO}, 1},
	{"_Z10take_moved5movedi", {0, NO}, 1},
	{"_Z10take_never5neveri", {0, NO}, 1},
	{"_Z13take_assigned8assignedi", {0, NO}, 1},
	{"_Z13take_virtuals8virtualsi", {0, NO}, 1},
	{"_Z11take_holder6holderi", {0, NO}, 1},
	{"_Z9take_heir4heiri", {0, NO}, 1},
	{"_Z12take_wrapper7wrapperi", {XMM(0), XMM(1)}, 0},
	{"_Z8take_box3boxIiEi", {0, NO}, 1},
	{"_Z9take_pair4pairIlEi", {0, 1}, 2},
	{"_Z14take_referenceR9destroyedi", {0, NO}, 1},
	{"_Z10give_plaini", {0, NO}, NO},
	{"_Z12give_by_handi", {1, NO}, NO}, /* after the address of the result */
	{"_Z9give_pairi", {0, NO}, NO},
	{"_ZN4baseC1Ei", {0, NO}, 1}, /* no word of virtual bases */
	{"_ZN4baseD1Ev", {0, NO}, NO},
};

/* Passed by address: the address is shown. */
static const char *const by_address[] = {
	"_Z12take_by_hand7by_handi",   "_Z14take_destroyed9destroyedi", "_Z10take_never5neveri",
	"_Z13take_virtuals8virtualsi", "_Z11take_holder6holderi",	"_Z9take_heir4heiri",
	"_Z8take_box3boxIiEi",
};

struct wanted {
	const char *name;
	uint64_t value;
};

static int find(const char *name, uint64_t value, void *arg)
{
	struct wanted *wanted = arg;

	if (strcmp(name, wanted->name) == 0)
		wanted->value = value;
	return 0;
}

/* NULL: the compiler has removed or changed the function. */
static const struct tw_debug_function *function_of(struct tw_debug *debug, const char *name)
{
	const struct tw_debug_function *function = NULL;
	struct wanted wanted = {name, 0};

	assert_int_equal(tw_debug_each_symbol(debug, find, &wanted), 0);
	if (!wanted.value || tw_debug_function(debug, wanted.value, name, &function))
		return NULL;
	return function;
}

static struct tw_debug *build(const char *compiler, const char *level, int version)
{
	struct tw_debug *debug = NULL;
	char path[128];

	assert_true(run("%s -w -std=c++17 %s -gdwarf-%d -fpatchable-function-entry=9 -o classes classes.cc", compiler,
			level, version));
	snprintf(path, sizeof path, "%s/classes", folder);
	assert_int_equal(tw_debug_open(path, NULL, 0, &debug), 0);
	return debug;
}

static void check_all(struct tw_debug *debug)
{
	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
		const struct expected *e = &expected[i];
		const struct tw_debug_function *f = function_of(debug, e->name);

		if (!f)
			fail_msg("%s is not there", e->name);
		if (f->arity > 2 || !f->arity || f->parameters[0].registers[0] != e->first[0] ||
		    f->parameters[0].registers[1] != e->first[1] ||
		    (f->arity == 2 && f->parameters[1].registers[0] != e->second) || (f->arity < 2 && e->second != NO))
			fail_msg("%s: %u parameters, the first in %d and %d", e->name, f->arity,
				 f->parameters[0].registers[0], f->parameters[0].registers[1]);
	}
	for (size_t i = 0; i < sizeof by_address / sizeof *by_address; i++)
		assert_int_equal(function_of(debug, by_address[i])->parameters[0].type->kind, TW_DEBUG_POINTER);
}

static void every_class_is_where_the_abi_says(void **state)
{
	static const char *const compilers[] = {"g++", "clang++"}, *const levels[] = {"-O0", "-O2"};

	for (unsigned i = 0; i < 8; i++) {
		struct tw_debug *debug;

		/* clang has a word for it in DWARF 5 only; at -O0 it describes no parameter as in a register. */
		if (!run("command -v %s >/dev/null", compilers[i & 1]))
			continue;
		debug = build(compilers[i & 1], levels[i >> 1 & 1], i & 4 ? 5 : 4);
		print_message("%s %s, DWARF %d\n", compilers[i & 1], levels[i >> 1 & 1], i & 4 ? 5 : 4);
		check_all(debug);
		tw_debug_close(debug);
	}
}

/* clang gives registers after the sled only; for parameters that are no longer passed it gives the value. */
static void local_functions_of_clang_have_arguments(void **state)
{
	const struct tw_debug_function *f;
	struct tw_debug *debug;

	if (!run("command -v clang++ >/dev/null"))
		skip();
	debug = build("clang++", "-O2", 5);
	f = function_of(debug, "_ZL6hiddenil");
	if (f) {
		assert_int_equal(f->parameters[0].registers[0], 0);
		assert_int_equal(f->parameters[1].registers[0], 1);
	}
	f = function_of(debug, "_ZL6always5plaini");
	if (f) {
		assert_int_equal(f->arity, 2);
		assert_int_equal(f->parameters[0].registers[0], NO);
		assert_int_equal(f->parameters[1].registers[0], 0);
	}
	tw_debug_close(debug);
}

/* Each compiler describes a lambda without a result in its own way. */
static void lambdas_that_return_nothing_return_nothing(void **state)
{
	static const char *const compilers[] = {"g++", "clang++"};

	for (int i = 0; i < 2; i++) {
		const struct tw_debug_function *f;
		struct tw_debug *debug;

		if (!run("command -v %s >/dev/null", compilers[i]))
			continue;
		debug = build(compilers[i], "-O0", 5);
		f = function_of(debug, i ? "_ZZ4mainENK3$_0clE9destroyedi" : "_ZZ4mainENKUl9destroyediE_clES_i");
		if (f) {
			assert_int_equal(f->result.registers[0], NO);
			assert_int_equal(f->result.type->kind, TW_DEBUG_VOID);
			assert_int_equal(f->parameters[1].registers[0], 1);
		}
		tw_debug_close(debug);
	}
}

/* Newer compilers write the year of the language standard. */
static void languages_of_today_are_known(void **state)
{
	static const char *const numbers[] = {"0x1a", "0x2a", "0x2b", "0x3a"}; /* C++11, 17, 20, 23 */

	assert_true(run("g++ -w -std=c++17 -gdwarf-5 -dA -S -o classes.s classes.cc"));
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		const struct tw_debug_function *f;
		struct tw_debug *debug = NULL;
		char path[128];

		assert_true(run(
			"sed 's/0x21\\(.*DW_AT_language\\)/%s\\1/' classes.s >language.s && ! cmp -s classes.s language.s && "
			"g++ -o language language.s",
			numbers[i]));
		snprintf(path, sizeof path, "%s/language", folder);
		assert_int_equal(tw_debug_open(path, NULL, 0, &debug), 0);
		f = function_of(debug, "_Z14take_destroyed9destroyedi");
		assert_non_null(f);
		assert_int_equal(f->parameters[1].registers[0], 1);
		tw_debug_close(debug);
	}
}

static int set_up(void **state)
{
	FILE *file;
	char path[128];

	strcpy(folder, "/tmp/tracewheel-classes.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof path, "%s/classes.cc", folder);
	file = fopen(path, "w");
	if (!file)
		return -1;
	fputs(source, file);
	return fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_class_is_where_the_abi_says),
		cmocka_unit_test(local_functions_of_clang_have_arguments),
		cmocka_unit_test(lambdas_that_return_nothing_return_nothing),
		cmocka_unit_test(languages_of_today_are_known),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
