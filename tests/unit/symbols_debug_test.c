/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: debug information gives parameters, types, registers and lines correctly, for both compilers, with and without
 * optimisation; wrong, missing or uncertain parts are left out, with one sentence.  Method: programs compiled here;
 * values of functions from their symbols.
 */
#include "tracewheel/debug.h"
#include "tracewheel/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "built_help.h"

static const char c_source[] =
	"#include <stdio.h>\n"
	"enum mode { READ = 1, WRITE = 2, NEGATIVE = -5 };\n"
	"enum wide { SMALL = 1, LARGE = 200 };\n"
	"struct point { int x, y; };\n"
	"struct mixed { double d; long n; };\n"
	"struct big { long a, b, c; };\n"
	"struct big keep;\n"
	"__attribute__((noinline)) long typed(void *db, const char *name, unsigned size, enum mode mode, double ratio,\n"
	"	float part, _Bool on) { return (db != 0) + name[0] + size + mode + ratio + part + on; }\n"
	"__attribute__((noinline)) double by_value(struct point p, struct mixed m, struct big b, enum wide w, short s,\n"
	"	long l1, long l2) { return p.x + m.d + b.c + w + s + l1 + l2; }\n"
	"__attribute__((noinline)) struct big hidden(struct point *p, int n) { keep.a = n + p->x; return keep; }\n"
	"__attribute__((noinline)) int variadic(const char *format, ...) { return format[0]; }\n"
	"__attribute__((noinline)) static int local_sum(int a, int unused, int b) { __asm__ volatile(\"\"); return a + b; }\n"
	"__asm__(\".text\\n.globl by_hand\\n.type by_hand, @function\\nby_hand: ret\\n.size by_hand, . - by_hand\\n\");\n"
	"int main(int argc, char **argv)\n"
	"{\n"
	"	struct point p = {argc, 2}; struct mixed m = {1, 2}; struct big b = {1, 2, 3};\n"
	"	return (int)typed(argv, argv[0], 3, READ, 1.0, 2.0f, 1) + (int)by_value(p, m, b, LARGE, 1, 2, 3) +\n"
	"	       (int)hidden(&p, 1).a + variadic(\"%d\", 1) + local_sum(argc, 7, 9) + local_sum(argc + 1, 7, 3);\n"
	"}\n";

static const char cpp_source[] =
	"#include <string>\n"
	"struct Trivial { int a; };\n"
	"class Counter {\n"
	"	int n = 0;\n"
	"public:\n"
	"	__attribute__((noinline)) int add(int by, const std::string &why);\n"
	"	__attribute__((noinline)) std::string text(std::string s, Trivial t);\n"
	"};\n"
	"int Counter::add(int by, const std::string &why) { return n += by + (int)why.size(); }\n"
	"std::string Counter::text(std::string s, Trivial t) { n += t.a; return s + \"!\"; }\n"
	"int main(int argc, char **) { Counter c; return c.add(argc, \"x\") + (int)c.text(\"y\", Trivial{1}).size(); }\n";

static void write_file(const char *name, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static struct tw_debug *open_it(const char *name)
{
	struct tw_debug *debug = NULL;
	char path[128];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	assert_int_equal(tw_debug_open(path, NULL, 0, &debug), 0);
	return debug;
}

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

static uint64_t value_of(struct tw_debug *debug, const char *name)
{
	struct wanted wanted = {name, 0};

	assert_int_equal(tw_debug_each_symbol(debug, find, &wanted), 0);
	return wanted.value;
}

static const struct tw_debug_function *function_of(struct tw_debug *debug, const char *name)
{
	const struct tw_debug_function *function = NULL;
	uint64_t value = value_of(debug, name);

	assert_int_not_equal(value, 0);
	if (tw_debug_function(debug, value, name, &function))
		return NULL;
	assert_int_equal(function->value, value);
	return function;
}

static void is_parameter(const struct tw_debug_function *f, unsigned n, const char *name, enum tw_debug_kind kind,
			 int bytes, int first, int second)
{
	assert_non_null(f);
	assert_true(n < f->arity);
	assert_string_equal(f->parameters[n].name, name);
	assert_int_equal(f->parameters[n].type->kind, kind);
	assert_int_equal(f->parameters[n].type->bytes, bytes);
	assert_int_equal(f->parameters[n].registers[0], first);
	assert_int_equal(f->parameters[n].registers[1], second);
}

static void check_typed(struct tw_debug *debug)
{
	const struct tw_debug_function *f = function_of(debug, "typed");
	const struct tw_debug_type *mode;

	is_parameter(f, 0, "db", TW_DEBUG_POINTER, 8, 0, -1);
	is_parameter(f, 1, "name", TW_DEBUG_STRING, 8, 1, -1);
	is_parameter(f, 2, "size", TW_DEBUG_UNSIGNED, 4, 2, -1);
	is_parameter(f, 3, "mode", TW_DEBUG_ENUM, 4, 3, -1);
	is_parameter(f, 4, "ratio", TW_DEBUG_FLOAT, 8, TW_DEBUG_XMM0, -1);
	is_parameter(f, 5, "part", TW_DEBUG_FLOAT, 4, TW_DEBUG_XMM0 + 1, -1);
	is_parameter(f, 6, "on", TW_DEBUG_BOOL, 1, 4, -1);
	assert_int_equal(f->arity, 7);
	assert_false(f->is_variadic);
	assert_int_equal(f->result.type->kind, TW_DEBUG_SIGNED);
	assert_int_equal(f->result.registers[0], TW_DEBUG_RAX);
	mode = f->parameters[3].type;
	assert_string_equal(mode->name, "mode");
	assert_int_equal(mode->enumerator_count, 3);
	assert_string_equal(mode->enumerators[1].name, "WRITE");
	assert_int_equal(mode->enumerators[1].value, 2);
	assert_int_equal(mode->enumerators[2].value, -5);
	assert_true(mode->is_signed);
}

static void check_values(struct tw_debug *debug)
{
	const struct tw_debug_function *f = function_of(debug, "by_value");

	is_parameter(f, 0, "p", TW_DEBUG_STRUCT, 8, 0, -1);
	is_parameter(f, 1, "m", TW_DEBUG_STRUCT, 16, TW_DEBUG_XMM0, 1);
	is_parameter(f, 2, "b", TW_DEBUG_STRUCT, 24, -1, -1);
	is_parameter(f, 3, "w", TW_DEBUG_ENUM, 4, 2, -1);
	is_parameter(f, 4, "s", TW_DEBUG_SIGNED, 2, 3, -1);
	is_parameter(f, 6, "l2", TW_DEBUG_SIGNED, 8, 5, -1);
	assert_int_equal(f->parameters[3].type->enumerators[1].value, 200);
	assert_int_equal(f->result.registers[0], TW_DEBUG_XMM0);
	f = function_of(debug, "hidden");
	is_parameter(f, 0, "p", TW_DEBUG_POINTER, 8, 1, -1);
	is_parameter(f, 1, "n", TW_DEBUG_SIGNED, 4, 2, -1);
	assert_string_equal(f->parameters[0].type->name, "point *");
	assert_int_equal(f->result.registers[0], -1);
	f = function_of(debug, "variadic");
	assert_int_equal(f->arity, 1);
	assert_true(f->is_variadic);
}

/* Optimisers drop unused parameters of a local function: everything reported about it must be true. */
static void check_local(struct tw_debug *debug)
{
	struct wanted wanted = {"local_sum", 0};
	const struct tw_debug_function *f;

	assert_int_equal(tw_debug_each_symbol(debug, find, &wanted), 0);
	if (!wanted.value || tw_debug_function(debug, wanted.value, "local_sum", &f))
		return;
	assert_int_equal(f->arity, 3);
	assert_true(f->parameters[0].registers[0] <= 0);
}

static void check_lines(struct tw_debug *debug)
{
	struct tw_debug_location at;
	uint64_t value = value_of(debug, "variadic");

	assert_true(tw_debug_locate(debug, value, &at));
	assert_string_equal(at.function, "variadic");
	assert_int_equal(at.function_value, value);
	assert_non_null(strstr(at.file, "program.c"));
	assert_int_equal(at.line, 14 - 1);
	assert_false(tw_debug_locate(debug, UINT64_C(1) << 60, &at));
}

static void compilers_agree(void **state)
{
	static const char *const compilers[] = {"gcc", "clang"}, *const levels[] = {"-O0", "-O2"};

	for (unsigned i = 0; i < 8; i++) {
		const char *compiler = compilers[i & 1], *level = levels[i >> 1 & 1];
		int version = i & 4 ? 5 : 4;
		struct tw_debug *debug;

		if (!run("command -v %s >/dev/null", compiler))
			continue;
		assert_true(run("%s -w %s -gdwarf-%d -fpatchable-function-entry=9 -o program program.c", compiler,
				level, version));
		debug = open_it("program");
		assert_null(tw_debug_problem(debug));
		check_typed(debug);
		check_values(debug);
		check_local(debug);
		check_lines(debug);
		assert_null(function_of(debug, "by_hand"));
		tw_debug_close(debug);
	}
}

static void methods_have_this(void **state)
{
	for (int version = 4; version <= 5; version++) {
		const struct tw_debug_function *f;
		struct tw_debug *debug;

		assert_true(run("g++ -w -O2 -gdwarf-%d -o methods methods.cc", version));
		debug = open_it("methods");
		f = function_of(debug, "_ZN7Counter3addEiRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE");
		is_parameter(f, 0, "this", TW_DEBUG_POINTER, 8, 0, -1);
		is_parameter(f, 1, "by", TW_DEBUG_SIGNED, 4, 1, -1);
		is_parameter(f, 2, "why", TW_DEBUG_POINTER, 8, 2, -1);
		f = function_of(debug, "_ZN7Counter4textENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE7Trivial");
		assert_non_null(f);
		assert_string_equal(f->parameters[0].name, "this");
		/*
		 * The address of the result comes first, and the string is passed by address, if locations are given.
		 */
		if (f->parameters[0].registers[0] >= 0) {
			is_parameter(f, 0, "this", TW_DEBUG_POINTER, 8, 1, -1);
			is_parameter(f, 1, "s", TW_DEBUG_POINTER, 8, 2, -1);
			is_parameter(f, 2, "t", TW_DEBUG_STRUCT, 4, 3, -1);
		}
		tw_debug_close(debug);
	}
}

static void debug_files_are_found(void **state)
{
	struct tw_debug *debug;

	assert_true(run("gcc -w -O2 -g -o program program.c && objcopy --only-keep-debug program program.debug && "
			"strip program && objcopy --add-gnu-debuglink=program.debug program"));
	debug = open_it("program");
	assert_null(tw_debug_problem(debug));
	check_typed(debug);
	check_lines(debug);
	tw_debug_close(debug);
	/* Without a build-id the checksum is compared. */
	assert_true(run("gcc -w -O2 -g -Wl,--build-id=none -o program program.c && objcopy --only-keep-debug program "
			"program.debug && strip program && objcopy --add-gnu-debuglink=program.debug program"));
	debug = open_it("program");
	check_typed(debug);
	tw_debug_close(debug);
	assert_true(run("gcc -w -O1 -g -o other program.c && objcopy --only-keep-debug other program.debug"));
	debug = open_it("program");
	assert_non_null(strstr(tw_debug_problem(debug), "another build"));
	tw_debug_close(debug);
}

static void missing_parts_are_reported(void **state)
{
	static const uint8_t other[20] = {1};
	const struct tw_debug_function *function;
	struct tw_debug_location at;
	struct tw_debug *debug;
	char path[128];
	uint64_t value;

	assert_true(
		run("gcc -w -O2 -o program program.c && gcc -w -O2 -g -o second program.c && "
		    "objcopy --only-keep-debug second wrong.debug && objcopy --only-keep-debug program right.debug && "
		    "cp right.debug wrong && objcopy --add-gnu-debuglink=right.debug program && "
		    "cp wrong.debug right.debug"));
	debug = open_it("program");
	assert_non_null(strstr(tw_debug_problem(debug), "another build than"));
	value = value_of(debug, "typed");
	assert_int_equal(tw_debug_function(debug, value, "typed", &function), TW_ENOENT);
	assert_true(tw_debug_locate(debug, value + 1, &at));
	assert_string_equal(at.function, "typed");
	assert_null(at.file);
	tw_debug_close(debug);
	assert_true(run("strip program && objcopy -R .gnu_debuglink program"));
	debug = open_it("program");
	assert_non_null(strstr(tw_debug_problem(debug), "no debug information"));
	tw_debug_close(debug);
	debug = open_it("program.c");
	assert_non_null(strstr(tw_debug_problem(debug), "cannot be read"));
	assert_false(tw_debug_locate(debug, 0x1000, &at));
	tw_debug_close(debug);
	snprintf(path, sizeof path, "%s/second", folder);
	assert_int_equal(tw_debug_open(path, other, sizeof other, &debug), 0);
	assert_non_null(strstr(tw_debug_problem(debug), "another build than the one"));
	tw_debug_close(debug);
}

static int set_up(void **state)
{
	strcpy(folder, "/tmp/tracewheel-debug-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	write_file("program.c", c_source);
	write_file("methods.cc", cpp_source);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compilers_agree),
		cmocka_unit_test(methods_have_this),
		cmocka_unit_test(debug_files_are_found),
		cmocka_unit_test(missing_parts_are_reported),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
