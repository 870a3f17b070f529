/* SPDX-License-Identifier: Apache-2.0 */
/* bed.h - a run-time, and a test thread outside it that exchanges messages with its actors. */
#ifndef ACTORS_TEST_BED_H
#define ACTORS_TEST_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "actors.h"

#include <stdio.h>
#include <string.h>

#define WAIT_MS 120000

static struct runtime *runtime;
static struct actor *me;

static inline void bed_start(const struct runtime_options *options)
{
	runtime = runtime_start(options);
	assert_non_null(runtime);
	me = outside_create(runtime);
	assert_non_null(me);
}

static inline int bed_setup(void **state)
{
	(void)state;
	bed_start(&(struct runtime_options){.schedulers = 2});
	return 0;
}

static inline int bed_teardown(void **state)
{
	(void)state;
	outside_destroy(me);
	runtime_stop(runtime);
	return 0;
}

/* The next message sent to the outside. */
static inline struct value next_message(void)
{
	struct value message = NONE;
	assert_true(outside_receive(me, WAIT_MS, &message));
	return message;
}

/* Runs code in the runner. */
static inline struct value run(struct value pid, fun_code *code, struct value environment)
{
	struct value value = outside_run(me, pid, code, environment, WAIT_MS);
	assert_false(is_none(value));
	return value;
}

#define assert_text(value, expected)                                                       \
	do {                                                                               \
		char text_[512];                                                           \
		assert_string_equal(value_text((value), text_, sizeof text_), (expected)); \
	} while (0)

#endif
