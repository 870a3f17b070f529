/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	A session also ends when memory is short: nothing of it is counted or touched afterwards.  Functions are added
 *	and found even if their table cannot grow.
 * Method	calloc() fails while one of two sessions that count the same function is destroyed; then a third takes
 *	its slot.
 */
#include "sanitized_help.h"
#include "session/session.h"
#include "tracewheel/tracewheel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static struct tw_declared_function f = TW_DECLARED_FUNCTION("memory", "f", 0);

#if !IS_SANITIZED
static int is_out_of_memory;
static size_t large = SIZE_MAX; /* more small objects than exist at once */
static unsigned refused;

extern void *__libc_calloc(size_t count, size_t bytes);

void *calloc(size_t count, size_t bytes)
{
	if (!is_out_of_memory && count < large)
		return __libc_calloc(count, bytes);
	refused++;
	return NULL;
}
#endif

static uint64_t count_of(struct tw_session *session)
{
	uint64_t count = 0;

	assert_int_equal(tw_trace_call_count(session, "memory", "f", 0, &count), 1);
	return count;
}

static struct tw_session *create(const char *name)
{
	struct tw_session *session;

	assert_int_equal(tw_session_create(name, NULL, &session), 0);
	assert_int_equal(tw_trace_function(session, "memory", "f", 0, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT), 1);
	return session;
}

static void a_session_ends_without_memory(void **state)
{
	struct tw_session *first = create("first"), *second = create("second"), *third;
	struct tw_place *place = f.place;
	uint64_t bit = UINT64_C(1) << first->slot;

#if !IS_SANITIZED
	is_out_of_memory = 1;
#endif
	assert_int_equal(tw_session_destroy(first), 1);
	tw_session_put(first);
#if !IS_SANITIZED
	is_out_of_memory = 0;
	assert_true(refused > 0);
#endif
	for (int i = 0; i < 2; i++)
		assert_false((place->gen[i].sessions | place->gen[i].counting) & bit);
	tw_call0(&f);
	assert_int_equal(count_of(second), 1);
	third = create("third");
	tw_call0(&f);
	assert_int_equal(count_of(second), 2);
	assert_int_equal(count_of(third), 1);
	tw_session_destroy(second);
	tw_session_destroy(third);
	tw_session_put(second);
	tw_session_put(third);
	assert_int_equal(f.armed, 0);
}

static void functions_are_found_in_a_table_that_cannot_grow(void **state)
{
	const struct tw_module_options options = {.name = "crowd", .is_declared = true};
	struct tw_function *functions[3000];
	struct tw_module *module;
	struct tw_permit *permit;
	char name[16];

	assert_int_equal(tw_permit_seize(&permit), 0);
	assert_int_equal(tw_bp_module_add(permit, &options, &module), 0);
#if !IS_SANITIZED
	refused = 0;
	large = 1025;
#endif
	for (unsigned i = 0; i < TW_COUNT_OF(functions); i++) {
		snprintf(name, sizeof name, "f%u", i);
		assert_int_equal(tw_bp_function_add(permit, module, name, i % 4, 0, &functions[i]), 0);
	}
#if !IS_SANITIZED
	assert_true(refused > 0);
	large = SIZE_MAX;
#endif
	for (unsigned i = 0; i < TW_COUNT_OF(functions); i++) {
		snprintf(name, sizeof name, "f%u", i);
		assert_ptr_equal(tw_bp_function_find(permit, module, name, i % 4), functions[i]);
		assert_null(tw_bp_function_find(permit, module, name, i % 4 + 1));
	}
	tw_permit_drop(permit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_session_ends_without_memory),
		cmocka_unit_test(functions_are_found_in_a_table_that_cannot_grow),
	};

	assert_int_equal(tw_function_declare(&f), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
