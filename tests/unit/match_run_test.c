/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: runs of programs on the hit path: raw arguments are equivalent to terms, the fused test to the program, host
 * functions are called as the specification says, and a lack of memory raises.
 *
 * Method: the same specifications over words and terms; a host that records its calls; scratch memory of the minimum
 * size.
 */
#include "match/match.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

static _Alignas(16) char scratch[TW_MATCH_SCRATCH_BYTES_MIN];

static struct tw_match_program *compiled_for(const char *spec, enum tw_match_target target)
{
	struct tw_match_options options = {.target = target};
	struct tw_match_program *program = NULL;
	struct tw_match_error error;

	if (tw_match_compile_text(spec, strlen(spec), &options, &program, &error) != 0)
		fail_msg("%s: %s", spec, error.text);
	return program;
}

static struct tw_match_program *compiled(const char *spec)
{
	return compiled_for(spec, TW_MATCH_CALL);
}

static struct tw_match_run fresh_run(const struct tw_match_host *host)
{
	return (struct tw_match_run){.host = host, .scratch = scratch, .scratch_bytes = sizeof(scratch)};
}

/* ---- raw and fused ---- */

static const int64_t words[] = {
	INT64_MIN, INT64_MIN + 1, TW_SMALL_MIN - 1, TW_SMALL_MIN,     -4097,	     -1,	0, 1, 2, 6, 7, 8, 4095,
	4096,	   4097,	  TW_SMALL_MAX,	    TW_SMALL_MAX + 1, INT64_MAX - 1, INT64_MAX,
};

static void check_words(const char *spec, bool is_fused)
{
	struct tw_match_program *program = compiled(spec);
	struct tw_match_run run = fresh_run(NULL);
	struct tw_arena arena;
	uint32_t i, j;

	tw_arena_init(&arena, SIZE_MAX);
	assert_int_equal(program->quick.op == TW_MATCH_QUICK_RANGE, is_fused);
	assert_int_equal(tw_match_speed(program), is_fused ? TW_MATCH_FUSED : TW_MATCH_BYTE_CODE);
	for (i = 0; i < TW_COUNT_OF(words); i++) {
		for (j = 0; j < TW_COUNT_OF(words); j++) {
			uint64_t raw[2] = {(uint64_t)words[i], (uint64_t)words[j]};
			struct tw_term terms[2] = {tw_term_integer(&arena, words[i]),
						   tw_term_integer(&arena, words[j])};
			enum tw_match_verdict by_terms = tw_match_run(program, terms, 2, &run);
			enum tw_match_verdict by_words = tw_match_run_raw(program, raw, 2, &run);

			if (by_terms != by_words)
				fail_msg("%s of %lld, %lld: %d by terms, %d by words", spec, (long long)words[i],
					 (long long)words[j], by_terms, by_words);
			if (!is_fused)
				continue;
			assert_true(tw_match_quick_fits(&program->quick, 2));
			assert_int_equal(tw_match_quick_test(&program->quick, raw), by_terms != TW_MATCH_NO);
			if (by_terms != TW_MATCH_NO)
				assert_int_equal(program->accepted.verdict, by_terms);
		}
	}
	tw_arena_fini(&arena);
	tw_match_destroy(program);
}

static void words_are_integers(void **state)
{
	static const char *const fused[] = {
		"[{['$1','$2'],[{'>','$1',4096}],[]}]",
		"[{['_','$1'],[{'<','$1',7}],[]}]",
		"[{['$1','_'],[{'=<',7,'$1'}],[]}]",
		"[{['$1','_'],[{'=:=','$1',7}],[{return_trace}]}]",
		"[{['$1','_'],[{'/=','$1',7}],[{message,false}]}]",
		"[{['$1','_'],[{'=/=',-1,'$1'}],[{message,{{a,b}}}]}]",
		"[{['$1','_'],[{'>=','$1',-4097},{'<','$1',4097}],[]}]",
		"[{['$1','_'],[{'andalso',{'>','$1',0},{'and',{'<','$1',8},{'>=','$1',2}}}],[]}]",
		"[{['$1','_'],[{'>','$1',-576460752303423489}],[]}]",
		"[{['$1','_'],[{'<','$1',9223372036854775807}],[]}]",
		"[{[7,'_'],[],[]}]",
		"[{['$1'|'_'],[{'>','$1',0}],[]}]",
		"[{['$1','$2'],[{is_integer,'$1'},{'>','$1',4096},{is_number,'$2'}],[]}]",
	};
	static const char *const others[] = {
		"[{['$1','$2'],[{'>','$1','$2'}],[]}]",
		"[{['$1','$1'],[],[]}]",
		"[{['$1','$2'],[{'>','$1',0},{'>','$2',0}],[]}]",
		"[{['$1','$2'],[{'>','$1',100000000000000000000}],[]}]",
		"[{['$1','$2'],[{'<','$1',100000000000000000000}],[]}]",
		"[{['$1','_'],[{'<','$1',-9223372036854775808}],[]}]",
		"[{['$1','_'],[{'>','$1',7},{'<','$1',3}],[]}]",
		"[{['$1','$2'],[{'<','$1',4.5}],[]}]",
		"[{['$1','$2'],[{is_list,'$1'},{'>','$1',4096}],[]}]",
		"[{['$1','$2'],[{is_atom,'$1'}],[]},{[a,'_'],[],[]},{[0,0],[],[]},{[0,'_'],[],[{message,x}]}]",
		"[{['$1','$2'],[{'==',{'band','$1',2},2}],[]}]",
		"[{['$1','$2'],[{'/=',{'band',4096,'$1'},0}],[]}]",
		"[{['$1','$2'],[{'=:=',{'band','$1',-8},-8},{'=/=',{'band','$2',7},7}],[]}]",
		"[{['$1','$2'],[{'==',{'band','$1',-9223372036854775808},-9223372036854775808}],[]}]",
		"[{['$1','$2'],[{'==',{'bor','$1',1},1}],[]},{['$1','$2'],[{'/=',{'band','$1',3},0},{'>','$2',1}],[]}]",
		"[{['$1','$2'],[{'>',{'+','$1','$2'},{'*','$1','$2'}}],[]}]",
		"[{'$1',[{'==',{length,'$1'},2}],[]}]",
		"[{['$1','$2'],[{'>',4611686018427387904,'$2'}],[{message,{'-','$1'}}]}]",
	};
	uint32_t i;

	for (i = 0; i < TW_COUNT_OF(fused); i++)
		check_words(fused[i], true);
	for (i = 0; i < TW_COUNT_OF(others); i++)
		check_words(others[i], false);
}

/* Checks that a guard over words gives the same result as a form that only the interpreter runs. */
static void check_guard(const char *guard, bool is_fused)
{
	struct tw_match_run run = fresh_run(NULL);
	struct tw_match_program *quick, *slow;
	char spec[512];
	uint32_t i;

	snprintf(spec, sizeof(spec), "[{['$1'],[%s],[]}]", guard);
	quick = compiled(spec);
	snprintf(spec, sizeof(spec), "[{['$1'],[{'orelse',%s,false}],[]}]", guard);
	slow = compiled(spec);
	assert_int_equal(tw_match_speed(slow), TW_MATCH_BYTE_CODE);
	if (is_fused && tw_match_speed(quick) != TW_MATCH_FUSED)
		fail_msg("%s is not fused", guard);
	for (i = 0; i < TW_COUNT_OF(words); i++) {
		uint64_t raw[] = {(uint64_t)words[i], (uint64_t)words[i] << 24 ^ (uint64_t)words[i],
				  (uint64_t)words[i] * 255};
		uint32_t j;

		for (j = 0; j < TW_COUNT_OF(raw); j++) {
			bool answer = tw_match_run_raw(slow, &raw[j], 1, &run) == TW_MATCH_YES;

			if ((tw_match_run_raw(quick, &raw[j], 1, &run) == TW_MATCH_YES) != answer ||
			    (tw_match_quick_fits(&quick->quick, 1) &&
			     tw_match_quick_test(&quick->quick, &raw[j]) != answer))
				fail_msg("%s of %#llx", guard, (unsigned long long)raw[j]);
		}
	}
	tw_match_destroy(quick);
	tw_match_destroy(slow);
}

/* The lower bits of a word, with or without sign, as types from debug information are written. */
static void casts_are_ranges(void **state)
{
	static const char *const operators[] = {"<", "=<", ">", ">=", "==", "/=", "=:=", "=/="};
	static const int64_t constants[] = {INT64_MIN, -32769, -129, -128, -1,	  0,	     1,	       5,
					    127,       128,    255,  256,  65535, INT32_MAX, INT64_MAX};
	static const unsigned widths[] = {1, 8, 16, 32, 63, 64};
	uint32_t i, j, k;

	for (i = 0; i < TW_COUNT_OF(widths) * 2; i++) {
		unsigned bits = widths[i / 2];
		unsigned long long mask = ~0ULL >> (64 - bits), sign = mask / 2 + 1;
		char operand[128], guard[256];

		if (i % 2)
			snprintf(operand, sizeof(operand), "{'-',{'bxor',{'band','$1',%llu},%llu},%llu}", mask, sign,
				 sign);
		else
			snprintf(operand, sizeof(operand), "{'band','$1',%llu}", mask);
		for (j = 0; j < TW_COUNT_OF(operators); j++) {
			for (k = 0; k < TW_COUNT_OF(constants); k++) {
				bool is_inside = i % 2 ? constants[k] > -(int64_t)(sign - 1) &&
								 constants[k] < (int64_t)(sign - 1)
						       : constants[k] > 0 && (uint64_t)constants[k] < mask;

				snprintf(guard, sizeof(guard), "{'%s',%s,%lld}", operators[j], operand,
					 (long long)constants[k]);
				check_guard(guard, is_inside);
				snprintf(guard, sizeof(guard), "{'not',{'%s',%lld,%s}}", operators[j],
					 (long long)constants[k], operand);
				check_guard(guard, is_inside);
			}
		}
	}
	check_guard("{'==',{'/=',{'band','$1',255},0},true}", true);
	check_guard("{'=/=',{'/=',{'band','$1',255},0},true}", true);
	check_guard("{'and',{'>',{'band','$1',255},7},{'<',{'band','$1',255},100}}", true);
	check_guard("{'and',{'>',{'band','$1',255},7},{'<','$1',100}}", false);
	check_guard("{'>',{'band','$1',254},7}", false);
	check_guard("{'>',{'-',{'bxor',{'band','$1',255},64},64},7}", false);
	check_guard("{'==',{'/=',{'band','$1',255},0},1}", false);
	check_guard("{'==',{'>',{'band','$1',255},0},{'>','$1',7}}", false);
}

/* Terms that are no small integers take the general code after a range. */
static void ranges_and_other_terms(void **state)
{
	static const struct {
		const char *spec, *args;
		bool matches;
	} cases[] = {
		{"[{['$1'],[{'>','$1',5}],[]}]", "[5.5]", true},
		{"[{['$1'],[{'>','$1',5},{'<','$1',6}],[]}]", "[5.5]", true},
		{"[{['$1'],[{'>=','$1',6}],[]}]", "[5.5]", false},
		{"[{['$1'],[{'>','$1',5}],[]}]", "[a]", true},
		{"[{['$1'],[{'<','$1',5}],[]}]", "[a]", false},
		{"[{['$1'],[{'>','$1',5},{'<','$1',9}],[]}]", "[<<>>]", false},
		{"[{['$1'],[{'==','$1',5}],[]}]", "[5.0]", true},
		{"[{['$1'],[{'=:=','$1',5}],[]}]", "[5.0]", false},
		{"[{['$1'],[{'/=','$1',5}],[]}]", "[5.0]", false},
		{"[{['$1'],[{'=/=','$1',5}],[]}]", "[5.0]", true},
		{"[{['$1'],[{'<','$1',5}],[]}]", "[-100000000000000000000]", true},
		{"[{['$1'],[{'>','$1',5}],[]}]", "[100000000000000000000]", true},
		{"[{['$1'],[{'==',{'band','$1',1},1}],[]}]", "[100000000000000000001]", true},
		{"[{['$1'],[{'==',{'band','$1',1},1}],[]}]", "[1.0]", false},
		{"[{['$1'],[{'/=',{'band','$1',1},1}],[]}]", "[a]", false},
		{"[{['$1'],[{'/=',{'band','$1',1},0}],[]}]", "[576460752303423489]", true},
		{"[{[5],[],[]}]", "[5.0]", false},
		{"[{[5],[],[]}]", "[a]", false},
	};
	uint32_t i;

	for (i = 0; i < TW_COUNT_OF(cases); i++) {
		struct tw_match_program *program = compiled(cases[i].spec);
		struct tw_match_answer answer;
		struct tw_arena arena;
		struct tw_term args;

		tw_arena_init(&arena, SIZE_MAX);
		assert_int_equal(tw_term_parse(&arena, cases[i].args, strlen(cases[i].args), &args, NULL), 0);
		assert_int_equal(tw_match_test(program, args, &arena, &answer), 0);
		if (tw_term_is_same(answer.result, tw_term_bool(1)) != cases[i].matches)
			fail_msg("%s of %s", cases[i].spec, cases[i].args);
		tw_arena_fini(&arena);
		tw_match_destroy(program);
	}
}

static void quick_programs(void **state)
{
	struct tw_match_program *always = compiled("[{'_',[],[{return_trace},{exception_trace}]}]");
	struct tw_match_program *two = compiled("[{['_','_'],[true],[]}]");
	struct tw_match_program *prefix = compiled("[{['_','$2'|'_'],[{'<','$2',9}],[]}]");

	assert_int_equal(always->quick.op, TW_MATCH_QUICK_ALWAYS);
	assert_int_equal(always->accepted.actions, TW_MATCH_RETURN_TRACE | TW_MATCH_EXCEPTION_TRACE);
	assert_int_equal(always->accepted.verdict, TW_MATCH_YES);
	assert_true(tw_match_quick_fits(&always->quick, 0) && tw_match_quick_fits(&always->quick, 6));
	assert_int_equal(two->quick.op, TW_MATCH_QUICK_ALWAYS);
	assert_true(tw_match_quick_fits(&two->quick, 2));
	assert_false(tw_match_quick_fits(&two->quick, 3));
	assert_int_equal(prefix->quick.op, TW_MATCH_QUICK_RANGE);
	assert_int_equal(prefix->quick.arg, 1);
	assert_true(tw_match_quick_fits(&prefix->quick, 2) && tw_match_quick_fits(&prefix->quick, 5));
	assert_false(tw_match_quick_fits(&prefix->quick, 1));
	tw_match_destroy(always);
	tw_match_destroy(two);
	tw_match_destroy(prefix);
}

static unsigned kept;

static void keep(void (*function)(void *), void *arg)
{
	kept++;
	function(arg);
}

/* A run that needs more than integer registers saves the others once. */
static void vectors_are_kept(void **state)
{
	static const struct {
		const char *spec;
		bool is_small;
	} cases[] = {
		{"[{['$1','$2'],[{'>','$1',1},{'<','$2',1}],[{message,false}]},{[7,8],[],[{return_trace}]},{'_',[],[]}]",
		 true},
		{"[{['$1'],[{'>','$1',1}],[{message,'$1'}]}]", false},
		{"[{['$1'],[{'==',{'band','$1',8},0}],[{message,false}]},{[7],[],[]}]", true},
		{"[{['$1'],[{'>','$1',1.5}],[]}]", false},
		{"[{['$1'],[{is_float,'$1'}],[]},{[{a}],[],[]}]", false},
	};
	uint32_t i;

	for (i = 0; i < TW_COUNT_OF(cases); i++) {
		struct tw_match_program *program = compiled(cases[i].spec);
		struct tw_match_run run = fresh_run(NULL);
		uint64_t words[2] = {2, 8};

		run.keep_vectors = keep;
		kept = 0;
		tw_match_run_raw(program, words, 2, &run);
		tw_match_run_raw(program, words, 1, &run);
		assert_int_equal(kept != 0, !cases[i].is_small);
		assert_true(kept <= 2);
		tw_match_destroy(program);
	}
}

/* ---- hosts ---- */

struct asked {
	char text[512];
	int answer; /* of trace */
};

static void note(struct tw_match_run *run, const char *what, struct tw_term a, struct tw_term b)
{
	struct asked *asked = run->context;
	size_t used = strlen(asked->text);
	char first[100] = "";
	char second[100] = "";

	if (!tw_term_is_none(a))
		tw_term_format(a, TW_PRINT_WRITE, first, sizeof(first));
	if (!tw_term_is_none(b))
		tw_term_format(b, TW_PRINT_WRITE, second, sizeof(second));
	snprintf(asked->text + used, sizeof(asked->text) - used, "%s(%s,%s) ", what, first, second);
}

static struct tw_term host_self(struct tw_match_run *run)
{
	return tw_term_pid(tw_match_arena(run), 77, 0);
}

static struct tw_term host_caller(struct tw_match_run *run)
{
	struct tw_term mfa[3] = {tw_term_atom_z("m"), tw_term_atom_z("f"), tw_term_integer(tw_match_arena(run), 2)};

	return tw_term_tuple(tw_match_arena(run), mfa, 3);
}

static struct tw_term host_stacktrace(struct tw_match_run *run, uint32_t depth)
{
	return tw_term_integer(tw_match_arena(run), depth);
}

static bool host_has_seq_token(struct tw_match_run *run)
{
	return true;
}

static struct tw_term host_set_seq_token(struct tw_match_run *run, struct tw_term component, struct tw_term value)
{
	note(run, "token", component, value);
	return tw_term_bool(1);
}

static int host_trace(struct tw_match_run *run, struct tw_term tracee, struct tw_term off, struct tw_term on)
{
	note(run, "trace", off, on);
	if (!tw_term_is_none(tracee))
		note(run, "of", tracee, (struct tw_term){0});
	return ((struct asked *)run->context)->answer;
}

static void host_display(struct tw_match_run *run, struct tw_term term)
{
	note(run, "display", term, (struct tw_term){0});
}

/* Strings at the addresses 5 and above; a vector register holds its number. */
static struct tw_term host_string_at(struct tw_match_run *run, uint64_t address)
{
	return address < 5 ? (struct tw_term){0} : tw_term_binary(tw_match_arena(run), "ab", 2);
}

static bool host_vector(struct tw_match_run *run, uint64_t number, uint64_t *bits)
{
	double wide = number == 1 ? (double)NAN : (double)number + 0.5;
	float narrow = 1.25F;

	*bits = 0;
	if (number == 7)
		memcpy(bits, &narrow, sizeof(narrow));
	else
		memcpy(bits, &wide, sizeof(wide));
	return number != 6;
}

static unsigned strings_asked;

/* As string_at has it: "ab" from 5 on. */
static bool host_is_string(struct tw_match_run *run, uint64_t address, const void *text, size_t bytes)
{
	strings_asked++;
	return address >= 5 && bytes == 2 && memcmp(text, "ab", 2) == 0;
}

static const struct tw_match_host host = {
	.string_at = host_string_at,
	.vector = host_vector,
	.self = host_self,
	.caller = host_caller,
	.stacktrace = host_stacktrace,
	.has_seq_token = host_has_seq_token,
	.set_seq_token = host_set_seq_token,
	.trace = host_trace,
	.display = host_display,
};

/* Runs over the word 5; answers the message as text. */
static void expect(const char *spec, const struct tw_match_host *with, int trace_answer, const char *message,
		   const char *asked_for, unsigned actions)
{
	struct tw_match_program *program = compiled(spec);
	struct asked asked = {.answer = trace_answer};
	struct tw_match_run run = fresh_run(with);
	uint64_t args[1] = {5};
	char text[200];

	run.context = &asked;
	assert_int_not_equal(tw_match_run_raw(program, args, 1, &run), TW_MATCH_NO);
	tw_term_format(run.result.message, TW_PRINT_WRITE, text, sizeof(text));
	assert_string_equal(text, message);
	assert_string_equal(asked.text, asked_for);
	assert_int_equal(run.result.actions, actions);
	tw_match_destroy(program);
}

#define BODY(body) "[{['$1'],[],[" body "]}]"

static void host_functions(void **state)
{
	expect(BODY("{message,{{{self},{caller},{node,{self}}}}}"), &host, 0, "{<0.77.0>,{m,f,2},nonode@nohost}", "",
	       0);
	expect(BODY("{message,[{current_stacktrace},{current_stacktrace,3}]}"), &host, 0, "[8,3]", "", 0);
	expect(BODY("{message,{is_seq_trace}}"), &host, 0, "true", "", 0);
	expect(BODY("{set_seq_token,label,'$1'}"), &host, 0, "true", "token(label,5) ", 0);
	expect(BODY("{message,{trace,[send],[call,arity]}}"), &host, 1, "true", "trace([send],[call,arity]) ", 0);
	expect(BODY("{message,{trace,[],[]}}"), &host, 0, "false", "trace([],[]) ", 0);
	expect(BODY("{message,{trace,x,[],[]}}"), &host, -1, "'EXIT'", "trace([],[]) of(x,) ", 0);
	expect(BODY("{message,{enable_trace,call}}"), &host, 0, "true", "trace([],[call]) ", 0);
	expect(BODY("{message,{disable_trace,y,call}}"), &host, 0, "true", "trace([call],[]) of(y,) ", 0);
	expect(BODY("{display,{{'$1',a}}},{message,b}"), &host, 0, "b", "display({5,a},) ", 0);
	expect(BODY("{silent,true}"), &host, 0, "true", "", TW_MATCH_SILENCE);
	expect(BODY("{silent,true},{silent,false},{silent,maybe}"), &host, 0, "true", "", TW_MATCH_UNSILENCE);
	expect(BODY("{return_trace},{message,'$1'}"), &host, 0, "5", "", TW_MATCH_RETURN_TRACE);
}

static void words_that_stand_for_more(void **state)
{
	expect(BODY("{message,{string_at,'$1'}}"), &host, 0, "<<97,98>>", "", 0);
	expect("[{['$1'],[{'==',{string_at,'$1'},<<97,98>>}],[]}]", &host, 0, "true", "", 0);
	expect(BODY("{message,[{string_at,0},{string_at,-1},{string_at,a}]}"), &host, 0, "[0,<<97,98>>,'EXIT']", "", 0);
	expect(BODY("{message,[{vector_double,0},{vector_double,'$1'},{vector_float,7}]}"), &host, 0, "[0.5,5.5,1.25]",
	       "", 0);
	/* No number, not known, no such register. */
	expect(BODY("{message,[{vector_double,1},{vector_double,6},{vector_double,8},{vector_float,-1}]}"), &host, 0,
	       "['EXIT','EXIT','EXIT','EXIT']", "", 0);
	expect(BODY("{message,[{string_at,'$1'},{vector_double,0}]}"), NULL, 0, "[5,'EXIT']", "", 0);
}

static void no_host(void **state)
{
	expect(BODY("{message,[{self},{caller},{caller_line},{current_stacktrace},{node}]}"), NULL, 0,
	       "['EXIT',undefined,undefined,[],nonode@nohost]", "", 0);
	expect(BODY("{message,[{is_seq_trace},{get_seq_token},{set_seq_token,label,1},{enable_trace,call}]}"), NULL, 0,
	       "[false,[],'EXIT','EXIT']", "", 0);
	expect(BODY("{message,{process_dump}}"), &host, 0, "<<61,112,114,111,99,58,60,48,46,55,55,46,48,62,10>>", "",
	       0);
}

static void control_word(void **state)
{
	assert_int_equal(tw_trace_control_word_set(3), 0);
	expect(BODY("{message,{{{get_tcw},{set_tcw,4294967295}}}}"), NULL, 0, "{4294967295,3}", "", 0);
	assert_int_equal(tw_trace_control_word_get(), UINT32_MAX);
	expect(BODY("{message,[{set_tcw,4294967296},{set_tcw,-1},{set_tcw,a}]}"), NULL, 0, "['EXIT','EXIT','EXIT']", "",
	       0);
	assert_int_equal(tw_trace_control_word_set(0), UINT32_MAX);
	assert_int_equal(tw_backtrace_depth_set(2), TW_BACKTRACE_DEPTH_DEFAULT);
	expect(BODY("{message,[{current_stacktrace},{current_stacktrace,3},{current_stacktrace,1}]}"), &host, 0,
	       "[2,2,1]", "", 0);
	assert_int_equal(tw_backtrace_depth_set(UINT32_MAX), 2);
	assert_int_equal(tw_backtrace_depth_set(TW_BACKTRACE_DEPTH_DEFAULT), TW_BACKTRACE_DEPTH_MAX);
}

static size_t dump_some(void *context, struct tw_term tracee, char *buffer, size_t bytes)
{
	assert_true(bytes > 3);
	memcpy(buffer, context, 3);
	return 3;
}

static void process_dump(void **state)
{
	static const struct tw_process_dumper dumper = {.dump = dump_some, .context = "abc"};

	tw_process_dump_set(&dumper);
	expect(BODY("{message,{process_dump}}"), &host, 0, "<<97,98,99>>", "", 0);
	tw_process_dump_set(NULL);
}

/* ---- memory ---- */

static void a_lack_of_memory_raises(void **state)
{
	/* 60,000 bits are 7,500 bytes: there is space for one. */
	expect(BODY("{message,[{'bsl',1,60000},{is_integer,{'bsl',1,60001}},{'+',1,2}]}"), NULL, 0, "['EXIT',true,3]",
	       "", 0);
	/* A guard that raises fails. */
	expect("[{['$1'],[{'>',{'bsl',1,60000},{'bsl',1,50000}}],[{message,fits}]},{'_',[],[{message,no}]}]", NULL, 0,
	       "no", "", 0);
	/* The large one's memory is freed, and the next run has all of it again. */
	expect(BODY("{message,{size,{{{'bsl',1,200}}}}}"), NULL, 0, "1", "", 0);
}

/* Terms that agree for more than 64 levels cannot be compared without memory. */
static void deep_terms(void **state)
{
	struct tw_match_program *program = compiled("[{['$1','$1'],[],[]}]");
	struct tw_match_run run = fresh_run(NULL);
	struct tw_term args[2];
	struct tw_arena arena;
	int i, j;

	tw_arena_init(&arena, SIZE_MAX);
	for (j = 0; j < 2; j++) {
		args[j] = tw_term_nil();
		for (i = 0; i < 100; i++)
			args[j] = tw_term_cons(&arena, args[j], tw_term_nil());
	}
	assert_int_equal(tw_match_run(program, args, 2, &run), TW_MATCH_NO);
	run.may_allocate = true;
	assert_int_equal(tw_match_run(program, args, 2, &run), TW_MATCH_YES);
	tw_arena_fini(&arena);
	tw_match_destroy(program);
}

/*
 * In the small loop if the host compares strings; otherwise, and for terms, in the interpreter: with the same results.
 */
static void strings_are_asked_for(void **state)
{
	static const struct {
		const char *guards;
		bool matches[2]; /* of the words 4, 5 */
		unsigned asked;
	} cases[] = {
		{"{'==',{string_at,'$1'},<<97,98>>}", {false, true}, 2},
		{"{'=:=',<<97,98>>,{string_at,'$1'}}", {false, true}, 2},
		{"{'/=',{string_at,'$1'},<<97,98>>}", {true, false}, 2},
		{"{'not',{'==',{string_at,'$1'},<<97,98>>}}", {true, false}, 2},
		{"{'==',{string_at,'$1'},<<97>>}", {false, false}, 2},
		{"{'==',{string_at,'$1'},<<97,0>>}", {false, false}, 0},
		{"{'==',{string_at,'$1'},4}", {true, false}, 0},
		{"{'==',{string_at,'$1'},<<97,98>>},{'>',{'band','$1',255},100}", {false, false}, 0},
		{"{'==',{string_at,'$1'},<<97,98>>},{'>',{'band','$1',255},4},{'/=',{string_at,'$1'},<<97>>}",
		 {false, true},
		 2},
		{"{'==',{string_at,'$1'},<<97,98>>},{'is_binary',{string_at,'$1'}}", {false, true}, 2},
	};
	struct tw_match_host asked = host, general = host;
	uint32_t i, j;

	asked.is_string = host_is_string;
	for (i = 0; i < TW_COUNT_OF(cases); i++) {
		struct tw_match_program *program;
		struct tw_match_run run;
		char spec[512];

		snprintf(spec, sizeof(spec), "[{['$1'],[%s],[]}]", cases[i].guards);
		program = compiled(spec);
		strings_asked = 0;
		for (j = 0; j < 2; j++) {
			uint64_t word = 4 + j;
			struct tw_term term = tw_small((int64_t)word);

			run = fresh_run(&asked);
			assert_int_equal(tw_match_run_raw(program, &word, 1, &run) == TW_MATCH_YES,
					 cases[i].matches[j]);
			run = fresh_run(&general);
			assert_int_equal(tw_match_run_raw(program, &word, 1, &run) == TW_MATCH_YES,
					 cases[i].matches[j]);
			assert_int_equal(tw_match_run(program, &term, 1, &run) == TW_MATCH_YES, cases[i].matches[j]);
		}
		assert_int_equal(strings_asked, cases[i].asked);
		tw_match_destroy(program);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_integers),
		cmocka_unit_test(casts_are_ranges),
		cmocka_unit_test(strings_are_asked_for),
		cmocka_unit_test(ranges_and_other_terms),
		cmocka_unit_test(quick_programs),
		cmocka_unit_test(vectors_are_kept),
		cmocka_unit_test(host_functions),
		cmocka_unit_test(words_that_stand_for_more),
		cmocka_unit_test(no_host),
		cmocka_unit_test(control_word),
		cmocka_unit_test(process_dump),
		cmocka_unit_test(deep_terms),
		cmocka_unit_test(a_lack_of_memory_raises),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
