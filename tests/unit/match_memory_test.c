/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: a specification that cannot be compiled for want of memory leaves nothing behind, wherever it ends.
 *
 * Method: malloc(), calloc() and realloc() of this program fail from the n-th call on, for each n until the
 * compiler gets through; what is still allocated after each is counted.  Not under sanitizers,
 * which bring their own malloc().
 */
#include "tracewheel/match.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define HAS_OWN_MALLOC 0
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_OWN_MALLOC 0
#endif
#endif
#ifndef HAS_OWN_MALLOC
#define HAS_OWN_MALLOC 1
#endif

#if HAS_OWN_MALLOC

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

#else

static void each_call_fails_once(void **state)
{
	skip();
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(each_call_fails_once)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
