/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: a specification that cannot be compiled because memory is short leaks nothing, wherever it ends; and a run
 * allocates nothing.
 *
 * Method: malloc(), calloc() and realloc() of this program fail from the n-th call on, for each n until the
 * compiler gets through; what is still allocated after each is counted.  For runs of every function, over
 * words and terms, any call counts.  Not under sanitizers, which bring their own malloc().
 */
#include "match/match.h"
#include "tests/unit/sanitized_help.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if !IS_SANITIZED

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void __libc_free(void *old);

static bool is_counting;
static long left; /* calls that still succeed */
static long live; /* blocks, while counting */

static bool fails(void)
{
	return is_counting && left-- <= 0;
}

void *malloc(size_t bytes)
{
	if (fails())
		return NULL;
	live += is_counting;
	return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
	if (fails())
		return NULL;
	live += is_counting;
	return __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
	if (fails())
		return NULL;
	live += is_counting && !old;
	return __libc_realloc(old, bytes);
}

void free(void *old)
{
	live -= is_counting && old;
	__libc_free(old);
}

typedef int (*compile_fn)(const char *text, size_t bytes, const struct tw_match_options *options,
			  struct tw_match_program **out, struct tw_match_error *error);

static void fail_everywhere(compile_fn compile, const char *text)
{
	long calls;

	for (calls = 0; calls < 100000; calls++) {
		struct tw_match_program *program = NULL;
		struct tw_match_error error;
		int result;

		left = calls;
		live = 0;
		is_counting = true;
		result = compile(text, strlen(text), NULL, &program, &error);
		if (result == 0) {
			tw_match_destroy(program);
			is_counting = false;
			assert_int_equal(live, 0);
			break;
		}
		is_counting = false;
		assert_int_equal(result, TW_ENOMEM);
		assert_null(program);
		assert_int_equal(live, 0);
	}
	assert_in_range(calls, 5, 1000);
}

static void each_call_fails_once(void **state)
{
	fail_everywhere(tw_match_compile_text,
			"[{['$1',{a,'$2'},'$3'|'_'],[{'>','$1',5},{'andalso',true,{is_list,'$3'},{'==','$2',1}}],"
			"[{message,['$$',{{1,{const,x}}},#{k => '$_'}]},{return_trace}]},"
			"{'_',[{'or',{'<',{get_tcw},3},true}],[{silent,true}]}]");
	fail_everywhere(tw_match_compile_when, "$1 > 4096 and element(1, {$2, [a|$3], #{k => 1}}) == \"users\"");
}

static const char *const bodies[] = {
	"{message,['$_','$$',{{'$1','$2'}},#{'$1' => '$2', b => #{}}]}",
	"{message,{'*',{'*','$1',123456789012345678901234567890},{'-',{'+','$2',1.5}}}}",
	"{message,[{'div',{'bsl',1,900},'$1'},{'rem',{'bsl',1,900},7},{'/',1,3},{abs,-1.5},{float,'$1'}]}",
	"{message,[{'band',{'bsl',1,900},-1},{'bor',1,{'-',{'bsl',1,300}}},{'bxor',1,'$1'},{'bnot','$1'},{'bsr',-1,3}]}",
	"{message,[{round,1.0e300},{trunc,-1.0e30},{floor,2.5},{ceil,2.5},{max,'$1','$2'},{min,'$1','$2'}]}",
	"{message,[{element,1,'$2'},{hd,'$_'},{tl,'$_'},{length,'$_'},{size,'$2'},{tuple_size,'$2'},{map_size,#{}}]}",
	"{message,[{binary_part,<<1,2,3>>,1,2},{byte_size,<<1>>},{bit_size,<<1:3>>},{map_get,a,#{a => '$1'}}]}",
	"{message,[{self},{node},{caller},{caller_line},{current_stacktrace},{process_dump},{get_seq_token}]}",
	"{message,[{set_seq_token,label,1},{enable_trace,call},{trace,[],[]},{set_tcw,0},{get_tcw},{is_seq_trace}]}",
	"{message,[{'and',true,{'<','$1','$2'}},{'orelse',false,{'=:=','$1','$2'}},{is_record,'$2',a,2},{'not',a}]}",
	"{message,[{'==',{const,[[[[a]]]]},['$1'|'$2']},{'==','$2',{const,{a,[1,2,3,#{x => 1.5}]}}}]}",
	"{return_trace},{silent,true},{display,'$_'}",
};

static void run_each(const char *body)
{
	static _Alignas(16) char scratch[TW_MATCH_SCRATCH_BYTES_MIN];
	static const char value[] = "{a,[1,2,3,#{x => 1.5}]}";
	struct tw_match_run run = {.scratch = scratch, .scratch_bytes = sizeof(scratch)};
	struct tw_match_program *program;
	struct tw_match_error error;
	uint64_t words[2] = {UINT64_MAX / 2, 5};
	struct tw_term terms[2];
	struct tw_arena arena;
	char text[1000];

	snprintf(text, sizeof(text), "[{['$1',{b,'$2'}],[{'>',{'+','$1',1},3}],[]},{['$1','$2'],[],[%s]}]", body);
	if (tw_match_compile_text(text, strlen(text), NULL, &program, &error) != 0)
		fail_msg("%s: %s", text, error.text);
	tw_arena_init(&arena, SIZE_MAX);
	terms[0] = tw_term_unsigned(&arena, UINT64_MAX);
	assert_int_equal(tw_term_parse(&arena, value, sizeof(value) - 1, &terms[1], NULL), 0);
	left = 1000;
	is_counting = true;
	tw_match_run_raw(program, words, 2, &run);
	tw_match_run(program, terms, 2, &run);
	is_counting = false;
	if (left != 1000)
		fail_msg("%s: %ld allocations", body, 1000 - left);
	tw_arena_fini(&arena);
	tw_match_destroy(program);
}

static void runs_allocate_nothing(void **state)
{
	uint32_t i;

	for (i = 0; i < TW_COUNT_OF(bodies); i++)
		run_each(bodies[i]);
}

#else

static void runs_allocate_nothing(void **state)
{
	skip();
}

static void each_call_fails_once(void **state)
{
	skip();
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(each_call_fails_once),
					   cmocka_unit_test(runs_allocate_nothing)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
