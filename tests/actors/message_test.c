/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Messages arrive once, whole and in the order of each sender; receive takes a matching message, present or
 *	future, and times out in time; timers send, unless cancelled; names lead to their owners.
 * Method	Runners on two schedulers execute functions of this file.
 */
#include "bed.h"

#include <time.h>
#include <unistd.h>

#define SENDERS	 8
#define MESSAGES 2000

/* ---- order, with many senders at once ---- */

static struct value sender(struct actor *self, const struct value *arguments)
{
	for (int64_t i = 0; i < MESSAGES; i++)
		send_to(self, arguments[0], TUPLE(heap_of(self), arguments[1], integer(i), atom("x")));
	return NIL;
}
static struct function sender_function = FUNCTION("test", "sender", 2, sender);

static struct value collect_from_senders(struct actor *self, struct value environment)
{
	int64_t next[SENDERS] = {0}, wrong = 0;
	for (int64_t i = 0; i < SENDERS; i++)
		spawn(self, &sender_function, self_pid(self), integer(i));
	for (int i = 0; i < SENDERS * MESSAGES; i++) {
		struct value message = receive(self);
		int64_t from = number_of(element(message, 0));
		wrong += tuple_count(message) != 3 || number_of(element(message, 1)) != next[from]++;
	}
	return integer(wrong);
}

static void test_order_of_each_sender(void **state)
{
	assert_text(run(spawn(me, &run_loop), collect_from_senders, NIL), "0");
}

/* ---- selective receive ---- */

static bool is_odd(struct value message, struct value context)
{
	return is_integer(message) && number_of(message) % 2 == 1;
}

static struct value receive_odd_first(struct actor *self, struct value environment)
{
	struct value list = NIL;
	for (int64_t i = 1; i <= 5; i++)
		send_to(self, self_pid(self), integer(i));
	KEEP(self, list);
	for (int i = 0; i < 3; i++)
		list = cons(heap_of(self), receive_match(self, is_odd, NIL, FOREVER), list);
	list = cons(heap_of(self), receive_value(self, integer(4), 0), list);
	list = cons(heap_of(self), receive(self), list);
	struct value none = receive_match(self, NULL, NIL, 0);
	return is_none(none) ? list : atom("too_many");
}

static void test_selective(void **state)
{
	assert_text(run(spawn(me, &run_loop), receive_odd_first, NIL), "[2,4,5,3,1]");
}

/* Other messages stay in the mailbox, even if the receive times out, and the matching one comes last. */
static struct value wait_for_late(struct actor *self, struct value environment)
{
	send_to(self, self_pid(self), atom("early"));
	struct value none = receive_value(self, atom("late"), 5);
	send_after(self, 10, self_pid(self), atom("late"));
	struct value late = receive_value(self, atom("late"), 100000);
	struct value early = receive(self);
	return TUPLE(heap_of(self), is_none(none) ? atom("none") : none, late, early);
}

static void test_timeout(void **state)
{
	assert_text(run(spawn(me, &run_loop), wait_for_late, NIL), "{none,late,early}");
}

static struct value measure_timeout(struct actor *self, struct value environment)
{
	struct timespec a, b;
	clock_gettime(CLOCK_MONOTONIC, &a);
	receive_match(self, NULL, NIL, 30);
	clock_gettime(CLOCK_MONOTONIC, &b);
	return integer((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000);
}

static void test_timeout_takes_its_time(void **state)
{
	assert_true(number_of(run(spawn(me, &run_loop), measure_timeout, NIL)) >= 30);
}

/* ---- timers ---- */

static struct value use_timers(struct actor *self, struct value environment)
{
	struct value never = send_after(self, 20, self_pid(self), atom("never"));
	send_after(self, 15, self_pid(self), atom("second"));
	send_after(self, 5, self_pid(self), atom("first"));
	bool is_cancelled = cancel_timer(self, never), again = cancel_timer(self, never);
	struct value first = receive(self), second = receive(self), third = receive_match(self, NULL, NIL, 30);
	return TUPLE(heap_of(self), is_cancelled ? ATOM(TRUE) : ATOM(FALSE), again ? ATOM(TRUE) : ATOM(FALSE), first,
		     second, is_none(third) ? atom("none") : third);
}

/* If an actor is not scheduled for that long, its steps between the timers are late: then the test is repeated. */
#define TRIES 50

static void test_timers(void **state)
{
	static const char wanted[] = "{true,false,first,second,none}";
	struct value got = run(spawn(me, &run_loop), use_timers, NIL);
	char text[512];

	for (int i = 1; i < TRIES && strcmp(value_text(got, text, sizeof text), wanted); i++)
		got = run(spawn(me, &run_loop), use_timers, NIL);
	assert_text(got, wanted);
}

/* ---- names ---- */

static struct value send_to_nobody(struct actor *self, struct value environment)
{
	send_to(self, atom("nobody_has_this"), atom("x"));
	return atom("sent");
}

static struct value register_twice(struct actor *self, struct value environment)
{
	register_name(self, atom("runner"), self_pid(self));
	register_name(self, atom("runner"), self_pid(self));
	return NIL;
}

static struct value name_is_gone(struct actor *self, struct value environment)
{
	struct value found = whereis(self, atom("runner"));
	return is_none(found) ? ATOM(TRUE) : ATOM(FALSE);
}

static void test_names(void **state)
{
	struct value a = spawn(me, &run_loop), b = spawn(me, &run_loop);
	assert_text(run(a, send_to_nobody, NIL), "{EXIT,{badarg,[]}}");
	assert_text(run(a, register_twice, NIL), "{EXIT,{badarg,[]}}");
	assert_true(is_same(whereis(me, atom("runner")), a));
	struct value reference = monitor(me, a);
	send_to(me, atom("runner"), ATOM(STOP));
	assert_true(is_same(element(next_message(), 1), reference));
	assert_text(run(b, name_is_gone, NIL), "true");
	register_name(me, atom("runner"), b);
	unregister_name(me, atom("runner"));
	assert_true(is_none(whereis(me, atom("runner"))));
}

/* ---- big messages ---- */

static struct value echo_list(struct actor *self, struct value environment)
{
	return environment;
}

static void test_big_message(void **state)
{
	struct value list = NIL;
	KEEP(me, list);
	for (int64_t i = 0; i < 10000; i++)
		list = cons(heap_of(me), TUPLE(heap_of(me), integer(i), binary(heap_of(me), "0123456789", 10)), list);
	struct value back = run(spawn(me, &run_loop), echo_list, list);
	assert_true(is_equal(list, back));
	assert_false(is_same(list, back));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_order_of_each_sender),
					   cmocka_unit_test(test_selective),
					   cmocka_unit_test(test_timeout),
					   cmocka_unit_test(test_timeout_takes_its_time),
					   cmocka_unit_test(test_timers),
					   cmocka_unit_test(test_names),
					   cmocka_unit_test(test_big_message)};
	return cmocka_run_group_tests(tests, bed_setup, bed_teardown);
}
