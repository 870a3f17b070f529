/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: an invalid match specification is refused when it is set, with the position; the targets differ as in OTP;
 * conditions are equivalent to the specifications that they stand for; size and depth are limited.
 *
 * Method: texts with one flaw each; tables of functions by target; texts that are very large or deep.
 */
#include "match/match.h"
#include "tests/common/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int compile(const char *text, enum tw_match_target target, struct tw_match_error *error)
{
	struct tw_match_options options = {.target = target};
	struct tw_match_program *program = NULL;
	int result = tw_match_compile_text(text, strlen(text), &options, &program, error);

	if (result == 0)
		tw_match_destroy(program);
	else
		assert_null(program);
	return result;
}

/* ---- places ---- */

static void places(void **state)
{
	static const struct {
		const char *text, *says;
		uint32_t line, column;
	} cases[] = {
		{"[{['$1'],[{foo,'$1'}],[]}]", "clause 1, guard 1: an unknown function: {foo,'$1'}", 1, 11},
		{"[{['$1'],[],[]},\n {['$1'], [true,\n   {is_atom}], []}]", "clause 2, guard 2: a function with", 3, 4},
		{"[{['$1'],[],[{message,\n{{1,'$2'}}}]}]", "clause 1, body 1: a variable that the head does not bind",
		 2, 5},
		{"[{[#{'$1' => 1}],[],[]}]", "clause 1, head 1: a variable cannot be a key", 1, 4},
		{"[{[\"a,b]\", %,\n '$1', [$], {x, #{'_' => 1}}]],[],[]}]", "clause 1, head 3: '_' cannot be a key", 2,
		 17},
		{"[{[1|2],[],[]}]", "clause 1, head: the head is not a proper list", 1, 3},
		{"[{a,[],[]}]", "clause 1, head: a head is a list of patterns", 1, 3},
		{"[{'_',[],[]} , {'_',[]}]", "clause 2: a clause is a tuple", 1, 16},
		{"[{'_',[]|a]", "", 1, 9},
		{"[{'_',[],[{'and',{self},{'or'}}]}]", "clause 1, body 1: a function with the wrong number", 1, 25},
		{"[{'_',[{'and',true,{'andalso',true,{nix}}}],[]}]", "clause 1, guard 1: an unknown function: {nix}", 1,
		 36},
		{"[]", "a match specification is a list of clauses: []", 1, 1},
		{"[{'_',[],[]}|a]", "the clauses are not a proper list", 1, 1},
		{"[{'_',[{return_trace}],[]}]", "clause 1, guard 1: a function that may stand in bodies only", 1, 8},
		{"[{'_',[],[{current_stacktrace,a}]}]", "clause 1, body 1: the depth of a stack trace", 1, 11},
		{"[{'_',[],[{message,{}}]}]", "clause 1, body 1: neither a call nor a tuple", 1, 20},
	};
	uint32_t i;

	for (i = 0; i < TW_COUNT_OF(cases); i++) {
		struct tw_match_error error = {.line = 0};

		assert_int_equal(compile(cases[i].text, TW_MATCH_CALL, &error), TW_EBADARG);
		if (strncmp(error.text, cases[i].says, strlen(cases[i].says)) != 0 || error.line != cases[i].line ||
		    error.column != cases[i].column)
			fail_msg("%s: %u:%u: %s", cases[i].text, error.line, error.column, error.text);
	}
}

/* ---- targets ---- */

static void targets(void **state)
{
	/* One letter for each target that accepts it: c s r t. */
	static const struct {
		const char *call, *taken;
	} cases[] = {
		{"{message,x}", "csr"},
		{"{return_trace}", "csr"},
		{"{exception_trace}", "csr"},
		{"{display,x}", "csr"},
		{"{get_tcw}", "csr"},
		{"{set_tcw,1}", "csr"},
		{"{silent,true}", "cs"},
		{"{enable_trace,send}", "cs"},
		{"{disable_trace,x,send}", "cs"},
		{"{trace,[],[]}", "cs"},
		{"{set_seq_token,label,1}", "cs"},
		{"{get_seq_token}", "cs"},
		{"{is_seq_trace}", "cs"},
		{"{process_dump}", "cs"},
		{"{caller}", "c"},
		{"{caller_line}", "c"},
		{"{current_stacktrace}", "c"},
		{"{current_stacktrace,2}", "c"},
		{"{self}", "csrt"},
		{"{node}", "csrt"},
		{"{'+',1,2}", "csrt"},
		{"{set_tcw}", ""},
		{"{message}", ""},
		{"{self,1}", ""},
		{"{string_at,1}", "c"},
		{"{vector_double,0}", "c"},
		{"{is_record,{{a}},a}", ""},
		{"{is_function,a,1}", ""},
	};
	static const char letters[] = "csrt";
	uint32_t i, j;

	for (i = 0; i < TW_COUNT_OF(cases); i++) {
		for (j = 0; j < 4; j++) {
			char text[100];
			bool is_taken = strchr(cases[i].taken, letters[j]) != NULL;

			snprintf(text, sizeof(text), "[{'_',[],[%s]}]", cases[i].call);
			if (compile(text, (enum tw_match_target)j, NULL) != (is_taken ? 0 : TW_EBADARG))
				fail_msg("%s for %c", text, letters[j]);
		}
	}
}

static void guards_take_no_actions(void **state)
{
	static const char *const calls[] = {
		"{message,x}",
		"{return_trace}",
		"{exception_trace}",
		"{display,x}",
		"{set_tcw,1}",
		"{silent,true}",
		"{enable_trace,x}",
		"{disable_trace,x}",
		"{trace,[],[]}",
		"{caller}",
		"{caller_line}",
		"{get_seq_token}",
		"{set_seq_token,label,1}",
		"{process_dump}",
		"{current_stacktrace}",
	};
	uint32_t i;

	for (i = 0; i < TW_COUNT_OF(calls); i++) {
		char text[100];

		snprintf(text, sizeof(text), "[{'_',[{'==',%s,1}],[]}]", calls[i]);
		if (compile(text, TW_MATCH_CALL, NULL) != TW_EBADARG)
			fail_msg("%s in a guard", calls[i]);
	}
	assert_int_equal(compile("[{'_',[{is_seq_trace},{'==',{get_tcw},0}],[]}]", TW_MATCH_CALL, NULL), 0);
}

/* ---- conditions ---- */

static void conditions(void **state)
{
	static const struct {
		const char *when, *spec;
	} cases[] = {
		{"$1 > 4096 and $2 == \"users\"",
		 "[{['$1','$2'|'_'],[{'and',{'>','$1',4096},{'==','$2',\"users\"}}],[]}]"},
		{"true", "[{'_',[true],[]}]"},
		{"$1 & 4 != 0 || !is_list($3)",
		 "[{['$1','$2','$3'|'_'],[{'orelse',{'/=',{'band','$1',4},0},{'not',{is_list,'$3'}}}],[]}]"},
		{"-$1 <= -0x10 && $1 % 2 == 1 + 2 * 3",
		 "[{['$1'|'_'],[{'andalso',{'=<',{'-','$1'},{'-',16}},{'==',{'rem','$1',2},{'+',1,{'*',2,3}}}}],[]}]"},
		{"element(1, $2) =:= {'a b', [1|$1], #{x => 1.5}, $a, <<\"bin\">>}",
		 "[{['$1','$2'|'_'],[{'=:=',{element,1,'$2'},{{'a b',[1|'$1'],#{x => 1.5},97,<<\"bin\">>}}}],[]}]"},
		{"($1 - 1) - (2 - $1) > -5e0 or order", NULL},
		{"(1 - $1) - (2 - $1) > -5.0e0 or order",
		 "[{['$1'|'_'],[{'or',{'>',{'-',{'-',1,'$1'},{'-',2,'$1'}},-5.0},order}],[]}]"},
		{"not is_atom($1) andalso length($_) == 2",
		 "[{['$1'|'_'],[{'andalso',{'not',{is_atom,'$1'}},{'==',{length,'$_'},2}}],[]}]"},
		{"$1 bsl 2 + 1 < 16#ff", "[{['$1'|'_'],[{'<',{'+',{'bsl','$1',2},1},255}],[]}]"},
		{"$1 > ", NULL},
		{"$1 < $2 < $3", NULL},
		{"$0 > 1", NULL},
		{"$256 > 1", NULL},
		{"$1 > X", NULL},
		{"($1 > 1", NULL},
		{"$1 > 1)", NULL},
		{"foo($1)", NULL},
		{"return_trace()", NULL},
		{"[1, 2", NULL},
		{"\"abc", NULL},
		{"<<1", NULL},
		{"#{a = 1}", NULL},
		{"$", NULL},
		{"$\\", NULL},
		{"", NULL},
	};
	uint32_t i;

	for (i = 0; i < TW_COUNT_OF(cases); i++) {
		struct tw_match_program *program;
		struct tw_match_error error;
		struct tw_arena arena;
		struct tw_term spec;
		int result = tw_match_compile_when(cases[i].when, strlen(cases[i].when), NULL, &program, &error);

		if (result != (cases[i].spec ? 0 : TW_EBADARG))
			fail_msg("%s: %d %s", cases[i].when, result, error.text);
		if (result)
			continue;
		tw_arena_init(&arena, SIZE_MAX);
		assert_int_equal(tw_term_parse(&arena, cases[i].spec, strlen(cases[i].spec), &spec, NULL), 0);
		if (!tw_term_is_equal(spec, tw_match_spec(program)))
			fail_msg("%s is not %s", cases[i].when, cases[i].spec);
		tw_match_destroy(program);
		tw_arena_fini(&arena);
	}
}

/* ---- heads ---- */

static void prefix_heads(void **state)
{
	struct tw_match_program *program;
	struct tw_match_run run = {.scratch_bytes = 0};
	uint64_t args[3] = {9, 1, 1};

	assert_int_equal(tw_match_compile_text("[{['$1'|'_'],[{'>','$1',5}],[]}]", 32, NULL, &program, NULL), 0);
	assert_int_equal(tw_match_run_raw(program, args, 1, &run), TW_MATCH_YES);
	assert_int_equal(tw_match_run_raw(program, args, 3, &run), TW_MATCH_YES);
	assert_int_equal(tw_match_run_raw(program, args + 1, 2, &run), TW_MATCH_NO);
	assert_int_equal(tw_match_run_raw(program, args, 0, &run), TW_MATCH_NO);
	tw_match_destroy(program);
}

/* ---- bounds ---- */

static double seconds(void)
{
	return (double)now_ns() * 1e-9;
}

/* prefix, count times unit, middle, count times close, suffix: compiled or refused, but quickly. */
static int nested(const char *unit, const char *middle, const char *close, int levels)
{
	size_t bytes = (strlen(unit) + strlen(close)) * (size_t)levels + 200;
	char *text = malloc(bytes);
	char *at = text;
	double start = seconds();
	int result;
	int i;

	assert_non_null(text);
	at = stpcpy(at, "[{['$1'],[],[{message,");
	for (i = 0; i < levels; i++)
		at = stpcpy(at, unit);
	at = stpcpy(at, middle);
	for (i = 0; i < levels; i++)
		at = stpcpy(at, close);
	stpcpy(at, "}]}]");
	result = compile(text, TW_MATCH_CALL, NULL);
	free(text);
	if (seconds() - start > 100)
		fail_msg("%s %d times took %.1f s", unit, levels, seconds() - start);
	return result;
}

static void nesting(void **state)
{
	static const char *const forms[][3] = {
		{"{{", "'$1'", "}}"},	     {"[", "'$1'", "]"},	 {"{'not',", "'$1'", "}"},
		{"{'+',1,", "'$1'", "}"},    {"{'+',", "'$1'", ",1}"},	 {"{'andalso',true,", "'$1'", "}"},
		{"#{a => ", "'$1'", "}"},    {"{'or',", "'$1'", "}"},	 {"{element,1,", "'$1'", "}"},
		{"#{", "'$1'", " => '$1'}"}, {"{message,", "'$1'", "}"},
	};
	uint32_t i;

	for (i = 0; i < TW_COUNT_OF(forms); i++) {
		assert_int_equal(nested(forms[i][0], forms[i][1], forms[i][2], 100), 0);
		/* Reaching either limit is reported as a limit, not as a mistake. */
		assert_int_equal(nested(forms[i][0], forms[i][1], forms[i][2], 400), TW_ELIMIT);
		assert_int_equal(nested(forms[i][0], forms[i][1], forms[i][2], (1 << 20) / 4), TW_ELIMIT);
	}
}

/* A head of patterns nested 100 times. */
static void nested_heads(void **state)
{
	char text[2000] = "[{[";
	int i;

	for (i = 0; i < 100; i++)
		strcat(text, i % 2 ? "{" : "[");
	strcat(text, "'$1'");
	for (i = 100; i-- > 0;)
		strcat(text, i % 2 ? "}" : "]");
	strcat(text, "],[],[{message,'$1'}]}]");
	assert_int_equal(compile(text, TW_MATCH_CALL, NULL), 0);
}

/* 1 MiB of text that repeats one clause. */
static int repeated(const char *unit, size_t bytes)
{
	char *text = malloc(bytes + strlen(unit) + 300);
	char *at = text;
	double start = seconds();
	int result;

	assert_non_null(text);
	at = stpcpy(at, "[{['$1'],[],[{message,'$1'}]}");
	while (at < text + bytes) {
		at = stpcpy(at, ",");
		at = stpcpy(at, unit);
	}
	stpcpy(at, "]");
	result = compile(text, TW_MATCH_CALL, NULL);
	free(text);
	if (seconds() - start > 100)
		fail_msg("%s took %.1f s", unit, seconds() - start);
	return result;
}

static void large_texts(void **state)
{
	const size_t mebibyte = (size_t)1 << 20;
	char *constant = malloc(mebibyte + 100);
	char *at;
	size_t i;

	assert_non_null(constant);
	/* 12,000 clauses or so, and more than a program may have. */
	assert_int_equal(repeated("{['$1'],[{'>','$1',123456}],[{message,false}]}", mebibyte), TW_ELIMIT);
	assert_int_equal(repeated("{['$1'],[{'>','$1',123456}],[{message,false}]}", mebibyte / 16), 0);
	assert_int_equal(repeated("{[],[],[]}", mebibyte), TW_ELIMIT);
	assert_int_equal(repeated("{[{'$1','$2','$3'}],[],['$$']}", mebibyte), TW_ELIMIT);
	/* One constant of a mebibyte is one instruction. */
	strcpy(constant, "{['$1'],[],[{message,[1");
	for (i = strlen(constant); i < mebibyte; i += 2)
		memcpy(constant + i, ",1", 3);
	strcpy(constant + i, "]}]}");
	assert_int_equal(repeated(constant, 40), 0);
	/* A head with more variables than any call has arguments. */
	at = stpcpy(constant, "{['$1'");
	for (i = 2; at < constant + mebibyte - 100; i++)
		at += sprintf(at, ",'$%zu'", i);
	strcpy(at, "],[],[]}");
	assert_int_equal(repeated(constant, 40), TW_ELIMIT);
	free(constant);
	assert_int_equal(repeated("{['$1'],[],[x]}", ((size_t)4 << 20) + 1), TW_ELIMIT);
}

/* Elements that are no constants: too many for the stack, but a list is built from its end. */
static void many_elements(void **state)
{
	char *text = malloc(100000);
	int form;

	assert_non_null(text);
	for (form = 0; form < 3; form++) {
		static const char *const opens[] = {"{{", "[", "[{message,a},"};
		static const char *const closes[] = {"}}", "]", "]"};
		char *at = stpcpy(text, "[{['$1'],[],[{message,");
		int i;

		at = stpcpy(at, opens[form]);
		for (i = 0; i < 1000; i++)
			at = stpcpy(at, "'$1',");
		at = stpcpy(at, "'$1'");
		at = stpcpy(at, closes[form]);
		stpcpy(at, "}]}]");
		assert_int_equal(compile(text, TW_MATCH_CALL, NULL), form == 1 ? 0 : TW_ELIMIT);
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places),	 cmocka_unit_test(targets),
		cmocka_unit_test(conditions),	 cmocka_unit_test(guards_take_no_actions),
		cmocka_unit_test(prefix_heads),	 cmocka_unit_test(nesting),
		cmocka_unit_test(nested_heads),	 cmocka_unit_test(large_texts),
		cmocka_unit_test(many_elements),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
