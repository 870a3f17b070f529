/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    Functions of libc that wait, or return in a child as well, are told by name and object: a program's own function may have the name.
 * Method  Functions of made-up objects.
 */
#include "views/names/waits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static struct tw_capture_function function_of(const struct tw_capture_module *module, const char *name)
{
	return (struct tw_capture_function){.name = name, .module = module};
}

static void by_object(void **state)
{
	static const struct tw_capture_module libc = {.name = "libc"}, program = {.name = "dinner"}, nameless = {0};
	static const char *const forks[] = {"fork", "_Fork", "vfork"};

	(void)state;
	for (size_t i = 0; i < sizeof forks / sizeof *forks; i++) {
		const struct tw_capture_function own = function_of(&program, forks[i]),
						 of_none = function_of(NULL, forks[i]),
						 of_nameless = function_of(&nameless, forks[i]),
						 of_libc = function_of(&libc, forks[i]);

		assert_true(tw_function_forks(&of_libc));
		assert_false(tw_function_forks(&own) || tw_function_forks(&of_none) || tw_function_forks(&of_nameless));
	}
	const struct tw_capture_function wait = function_of(&libc, "__poll"), own = function_of(&program, "poll");
	const struct tw_capture_function no_name = function_of(&libc, NULL);

	assert_true(tw_function_waits(&wait));
	assert_false(tw_function_waits(&own) || tw_function_forks(&wait) || tw_function_waits(&no_name) ||
		     tw_function_forks(&no_name) || tw_function_forks(NULL) || tw_function_waits(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(by_object)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
