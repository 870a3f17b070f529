/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Each call that members tell is taken whole or counted, never both and never neither, whatever the order of the two sides;
 *	a member that dies while it writes blocks nobody; what a member writes as a name is printable.
 * Method	Threads tell calls whose fields belong together, while the owner takes them and asks for the next; the sum is exact.  A
 *	child is killed with the message half written; a name without end and with control characters.
 */
#include "ringbuf/ringset.h"
#include "sanitized_help.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

enum { THREADS = 4 };

static struct tw_rs rs;
static uint64_t calls_of_thread;

static int make(void **state)
{
	const struct tw_rs_options options = {.ring_bytes = 1 << 16, .cap_bytes = 1 << 22};

	return tw_rs_create(&rs, &options);
}

static int destroy(void **state)
{
	tw_rs_destroy(&rs);
	return 0;
}

/* Its fields belong together. */
static struct tw_rs_trigger_call call_of(uint64_t number, int thread)
{
	struct tw_rs_trigger_call call = {.ticks = number * 3 + 1,
					  .begin_ticks = number,
					  .process_id = getpid(),
					  .thread_id = thread};

	snprintf(call.function, sizeof call.function, "m:f%d_%llu", thread, (unsigned long long)number);
	return call;
}

static void assert_whole(const struct tw_rs_trigger_call *call)
{
	const struct tw_rs_trigger_call same = call_of(call->begin_ticks, call->thread_id);

	assert_memory_equal(call, &same, sizeof same);
}

static void *tell_many(void *arg)
{
	uint64_t told = 0;

	for (uint64_t i = 1; i <= calls_of_thread; i++) {
		const struct tw_rs_trigger_call call = call_of(i, (int)(intptr_t)arg);

		told += tw_rs_trigger_tell(&rs, &call, i % 16 == 0);
	}
	return (void *)(uintptr_t)told;
}

static void none_is_wanted_at_first(void **state)
{
	const struct tw_rs_trigger_call call = call_of(1, 1);
	struct tw_rs_trigger_call taken;

	assert_false(tw_rs_trigger_tell(&rs, &call, true));
	assert_false(tw_rs_trigger_take(&rs, &taken));
	assert_int_equal(tw_rs_trigger_missed(&rs), 1);
}

static void one_is_there_at_a_time(void **state)
{
	const struct tw_rs_trigger_call first = call_of(1, 1), second = call_of(2, 1);
	struct tw_rs_trigger_call taken;

	tw_rs_trigger_open(&rs, true);
	assert_true(tw_rs_trigger_tell(&rs, &first, true));
	assert_false(tw_rs_trigger_tell(&rs, &second, true));
	assert_true(tw_rs_trigger_take(&rs, &taken));
	assert_memory_equal(&taken, &first, sizeof first);
	/* No other is wanted before that is said. */
	assert_false(tw_rs_trigger_take(&rs, &taken));
	assert_false(tw_rs_trigger_tell(&rs, &second, true));
	assert_true(tw_rs_trigger_open(&rs, true));
	assert_true(tw_rs_trigger_tell(&rs, &second, true));
	/* It was not taken, and so is counted. */
	assert_true(tw_rs_trigger_open(&rs, false));
	assert_false(tw_rs_trigger_take(&rs, &taken));
	assert_int_equal(tw_rs_trigger_missed(&rs), 3);
	assert_false(tw_rs_trigger_tell(&rs, &first, true));
	tw_rs_trigger_pass_over(&rs, 5);
	assert_int_equal(tw_rs_trigger_missed(&rs), 9);
}

static void each_is_taken_or_counted(void **state)
{
	pthread_t threads[THREADS];
	struct tw_rs_trigger_call taken;
	uint64_t told = 0, seen = 0, turns = 0;

	calls_of_thread = test_rounds(200000, 10);
	tw_rs_trigger_open(&rs, true);
	for (intptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, tell_many, (void *)i), 0);
	for (uint64_t done = 0; done < THREADS * calls_of_thread; done = seen + tw_rs_trigger_missed(&rs)) {
		/* Sometimes a call is there that is not taken; and calls are not wanted for a while. */
		if (++turns % 7 == 0)
			tw_rs_trigger_open(&rs, turns % 2);
		if (!tw_rs_trigger_take(&rs, &taken)) {
			tw_rs_trigger_open(&rs, true);
			continue;
		}
		assert_whole(&taken);
		seen++;
	}
	for (unsigned i = 0; i < THREADS; i++) {
		void *count;

		assert_int_equal(pthread_join(threads[i], &count), 0);
		told += (uintptr_t)count;
	}
	assert_int_equal(seen + tw_rs_trigger_missed(&rs), THREADS * calls_of_thread);
	assert_true(told >= seen);
	assert_true(seen > 1);
}

static void the_dead_block_nobody(void **state)
{
	const struct tw_rs_trigger_call call = call_of(9, 2);
	struct tw_rs_trigger_call taken;
	pid_t child = fork();

	if (child == 0)
		for (;;)
			pause();
	tw_rs_trigger_open(&rs, true);
	/* As it is while that process writes. */
	atomic_store(&rs.control->trigger.state, TW_RS_TRIGGER_TAKEN | (uint64_t)(uint32_t)child << 32);
	assert_false(tw_rs_trigger_take(&rs, &taken));
	assert_false(tw_rs_trigger_tell(&rs, &call, true));
	/* Nor does the owner let another one write there meanwhile. */
	assert_false(tw_rs_trigger_open(&rs, true));
	assert_false(tw_rs_trigger_tell(&rs, &call, true));
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_false(tw_rs_trigger_take(&rs, &taken));
	assert_true(tw_rs_trigger_tell(&rs, &call, true));
	assert_true(tw_rs_trigger_take(&rs, &taken));
	assert_whole(&taken);
}

static void names_are_not_trusted(void **state)
{
	struct tw_rs_trigger_call call = call_of(1, 1), taken;

	memset(call.function, '\n', sizeof call.function);
	call.function[1] = 'x';
	tw_rs_trigger_open(&rs, true);
	assert_true(tw_rs_trigger_tell(&rs, &call, false));
	assert_true(tw_rs_trigger_take(&rs, &taken));
	assert_int_equal(strlen(taken.function), sizeof taken.function - 1);
	assert_int_equal(strspn(taken.function, "x?"), sizeof taken.function - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(none_is_wanted_at_first, make, destroy),
		cmocka_unit_test_setup_teardown(one_is_there_at_a_time, make, destroy),
		cmocka_unit_test_setup_teardown(each_is_taken_or_counted, make, destroy),
		cmocka_unit_test_setup_teardown(the_dead_block_nobody, make, destroy),
		cmocka_unit_test_setup_teardown(names_are_not_trusted, make, destroy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
