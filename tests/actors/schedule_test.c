/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Actors move to idle threads; a busy actor lets others run; an idle thread sleeps; a run-time stops whatever its
 *	actors do, and frees everything (leaks: the address sanitizer).
 * Method	Statistics of the run-time, the processor time of the program, and runs that would not end otherwise.
 */
#include "bed.h"

#include <time.h>
#include <unistd.h>

static struct function spin_function;
/* Calls itself until the name over is registered. */
static struct value spin(struct actor *self, const struct value *arguments)
{
	int64_t seen = number_of(arguments[0]) | 1 << scheduler_of(self);
	if (is_none(whereis(self, atom("over"))))
		return tail_call(self, &spin_function, integer(seen));
	send_to(self, atom("over"), integer(seen));
	return NIL;
}
static struct function spin_function = FUNCTION("test", "spin", 1, spin);

/* Busy actors, all spawned by one of them on one thread, are run by two; and the test thread is served meanwhile. */
static struct value spawn_some(struct actor *self, struct value environment)
{
	for (int i = 0; i < 10; i++)
		spawn(self, &spin_function, integer(0));
	return ATOM(OK);
}

static void test_stealing(void **state)
{
	int64_t seen = 0;
	run(spawn(me, &run_loop), spawn_some, NIL);
	while (runtime_figures(runtime).stolen == 0)
		usleep(1000);
	assert_text(run(spawn(me, &run_loop), spawn_some, NIL), "ok");
	register_name(me, atom("over"), self_pid(me));
	for (int i = 0; i < 20; i++)
		seen |= number_of(next_message());
	unregister_name(me, atom("over"));
	assert_int_equal(seen, 3);
}

static double processor_seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct value wait_a_little(struct actor *self, struct value environment)
{
	receive_match(self, NULL, NIL, 200);
	return ATOM(OK);
}

static void test_sleeping(void **state)
{
	struct value pid = spawn(me, &run_loop);
	double least = 1;
	/* If a processor stands still, its thread may seem to work all the time: then the test is repeated. */
	for (int i = 0; i < 50 && least >= 0.1; i++) {
		double before = processor_seconds();
		run(pid, wait_a_little, NIL);
		least = processor_seconds() - before;
	}
	assert_true(least < 0.1);
}

static struct value wait_for_ever(struct actor *self, const struct value *arguments)
{
	for (;;)
		receive(self);
	return NIL;
}
static struct function wait_function = FUNCTION("test", "wait", 0, wait_for_ever);

static void test_stop_with_everybody_there(void **state)
{
	bed_teardown(NULL);
	for (int round = 0; round < 3; round++) {
		bed_start(&(struct runtime_options){.schedulers = 3, .is_restless = round == 1});
#ifdef __SANITIZE_THREAD__
		int count = 100;
#else
		int count = 2000;
#endif
		for (int i = 0; i < count; i++) {
			struct value pid = spawn(me, i % 50 ? &wait_function : &spin_function, integer(0));
			send_to(me, pid, TUPLE(heap_of(me), atom("unread"), integer(i)));
		}
		send_after(me, 100000, self_pid(me), atom("too_late"));
		assert_int_equal(runtime_figures(runtime).spawned, count);
		bed_teardown(NULL);
	}
	bed_start(&(struct runtime_options){.schedulers = 2});
}

/* Slots are reused, and an old pid does not lead to the actor that has its slot now. */
static struct value end_at_once(struct actor *self, const struct value *arguments)
{
	return NIL;
}
static struct function end_function = FUNCTION("test", "end", 0, end_at_once);

static void test_slots(void **state)
{
	struct value old = spawn(me, &end_function);
	for (int i = 0; i < 3000; i++) {
		struct value pid = spawn(me, &end_function), reference = monitor(me, pid);
		assert_true(is_same(element(next_message(), 1), reference));
		assert_false(is_same(pid, old));
	}
	assert_false(is_alive(me, old));
	send_to(me, old, atom("nobody"));
	assert_true(runtime_figures(runtime).ended >= 3000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_stealing), cmocka_unit_test(test_sleeping),
					   cmocka_unit_test(test_slots),
					   cmocka_unit_test(test_stop_with_everybody_there)};
	return cmocka_run_group_tests(tests, bed_setup, bed_teardown);
}
