/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Exits reach linked and watching actors, with the right reason, and no others; exceptions reach their catch; tail
 *	calls need no stack.
 * Method	Runners execute functions of this file; the test thread traps exits and watches.
 */
#include "bed.h"

static struct value die(struct actor *self, struct value reason)
{
	raise_exit(self, reason);
}

static struct value fail_with(struct actor *self, struct value reason)
{
	raise_error(self, reason);
}

static struct value throw(struct actor * self, struct value value)
{
	raise_throw(self, value);
}

/* An actor that runs one fun and ends. */
static struct value run_one(struct actor *self, const struct value *arguments)
{
	fun_call(self, arguments[0]);
	return NIL;
}
static struct function one_function = FUNCTION("test", "one", 1, run_one);

static void check_end(fun_code *code, struct value environment, const char *expected)
{
	struct value pid = spawn_link(me, &one_function, fun(heap_of(me), code, environment));
	struct value message = next_message();
	assert_text(element(message, 0), "EXIT");
	assert_true(is_same(element(message, 1), pid));
	assert_text(element(message, 2), expected);
	assert_false(is_alive(me, pid));
}

static struct value nothing(struct actor *self, struct value environment)
{
	return environment;
}

static void test_reasons(void **state)
{
	check_end(nothing, NIL, "normal");
	check_end(die, atom("why"), "why");
	check_end(fail_with, atom("oops"), "{oops,[]}");
	check_end(throw, atom("ball"), "{{nocatch,ball},[]}");
}

static void test_catch(void **state)
{
	struct value pid = spawn(me, &run_loop);
	assert_text(run(pid, nothing, atom("fine")), "fine");
	assert_text(run(pid, die, atom("why")), "{EXIT,why}");
	assert_text(run(pid, fail_with, atom("oops")), "{EXIT,{oops,[]}}");
	assert_text(run(pid, throw, atom("ball")), "ball");
	assert_true(is_alive(me, pid));
}

/* ---- exit signals ---- */

static void check_signal(struct value reason, const char *expected)
{
	struct value pid = spawn(me, &run_loop), reference = monitor(me, pid);
	exit_signal(me, pid, reason);
	if (!expected) {
		assert_text(run(pid, nothing, atom("alive")), "alive");
		demonitor(me, reference);
		return;
	}
	struct value down = next_message();
	assert_int_equal(tuple_count(down), 5);
	assert_text(element(down, 0), "DOWN");
	assert_true(is_same(element(down, 1), reference) && is_same(element(down, 3), pid));
	assert_text(element(down, 4), expected);
}

static void test_signals(void **state)
{
	check_signal(atom("stop_it"), "stop_it");
	check_signal(ATOM(KILL), "killed");
	check_signal(ATOM(NORMAL), NULL);
}

static struct value trap(struct actor *self, struct value environment)
{
	process_flag(self, FLAG_TRAP_EXIT, true);
	return environment;
}

static struct value first_message(struct actor *self, struct value environment)
{
	return receive(self);
}

static void test_trap(void **state)
{
	struct value pid = spawn(me, &run_loop);
	run(pid, trap, NIL);
	exit_signal(me, pid, atom("please"));
	struct value message = run(pid, first_message, NIL);
	assert_text(element(message, 0), "EXIT");
	assert_true(is_same(element(message, 1), self_pid(me)));
	assert_text(element(message, 2), "please");
	struct value reference = monitor(me, pid);
	exit_signal(me, pid, ATOM(KILL));
	assert_true(is_same(element(next_message(), 1), reference));
}

/* ---- links ---- */

static struct value link_it(struct actor *self, struct value pid)
{
	link_to(self, pid);
	return ATOM(OK);
}

static struct value unlink_it(struct actor *self, struct value pid)
{
	unlink_from(self, pid);
	return ATOM(OK);
}

/* A chain a - b - c: when a fails all fail, except an actor that removed its link. */
static void test_links(void **state)
{
	struct value a = spawn(me, &run_loop), b = spawn(me, &run_loop), c = spawn(me, &run_loop);
	run(a, link_it, b);
	run(b, link_it, c);
	run(c, unlink_it, b);
	run(b, nothing, NIL);
	struct value on_a = monitor(me, a), on_b = monitor(me, b);
	exit_signal(me, a, atom("bad"));
	struct value first = next_message(), second = next_message();
	assert_text(element(first, 4), "bad");
	assert_text(element(second, 4), "bad");
	assert_true(is_same(element(first, 1), on_a) || is_same(element(second, 1), on_a));
	assert_true(is_same(element(first, 1), on_b) || is_same(element(second, 1), on_b));
	assert_text(run(c, nothing, atom("alive")), "alive");
}

static void test_nobody(void **state)
{
	struct value pid = spawn(me, &one_function, fun(heap_of(me), nothing, NIL)), reference = monitor(me, pid);
	assert_true(is_same(element(next_message(), 1), reference));
	link_to(me, pid);
	assert_text(element(next_message(), 2), "noproc");
	monitor(me, pid);
	assert_text(element(next_message(), 4), "noproc");
}

/* ---- calls ---- */

static struct function down_function, nontail_function;
static struct value down(struct actor *self, const struct value *arguments)
{
	int64_t n = number_of(arguments[0]);
	return n ? tail_call(self, &down_function, integer(n - 1)) : atom("bottom");
}
static struct function down_function = FUNCTION("test", "down", 1, down);

static struct value nontail(struct actor *self, const struct value *arguments)
{
	int64_t n = number_of(arguments[0]);
	return integer(n ? 1 + number_of(call(self, &nontail_function, integer(n - 1))) : 0);
}
static struct function nontail_function = FUNCTION("test", "nontail", 1, nontail);

static struct value go_down(struct actor *self, struct value n)
{
	struct value bottom = call(self, &down_function, n);
	return TUPLE(heap_of(self), bottom, call(self, &nontail_function, integer(100)));
}

static void test_calls(void **state)
{
	assert_text(run(spawn(me, &run_loop), go_down, integer(1000000)), "{bottom,100}");
}

/* An exception passes calls and drops their frames: a later collection finds the right roots. */
static struct value fail_deep(struct actor *self, const struct value *arguments)
{
	struct value kept = TUPLE(heap_of(self), arguments[0]);
	KEEP(self, kept);
	raise_error(self, kept);
}
static struct function fail_function = FUNCTION("test", "fail_deep", 1, fail_deep);

static struct value call_failing(struct actor *self, struct value environment)
{
	return call(self, &fail_function, environment);
}

static struct value catch_and_collect(struct actor *self, struct value environment)
{
	struct exception caught;
	struct value mine = TUPLE(heap_of(self), atom("mine"));
	KEEP(self, mine);
	try_call(self, call_failing, atom("deep"), &caught);
	struct value reason = caught.value;
	KEEP(self, reason);
	garbage_collect(self);
	return TUPLE(heap_of(self), integer(caught.class), reason, mine);
}

static void test_exception_passes_calls(void **state)
{
	assert_text(run(spawn(me, &run_loop), catch_and_collect, NIL), "{1,{deep},{mine}}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_reasons),
					   cmocka_unit_test(test_catch),
					   cmocka_unit_test(test_signals),
					   cmocka_unit_test(test_trap),
					   cmocka_unit_test(test_links),
					   cmocka_unit_test(test_nobody),
					   cmocka_unit_test(test_calls),
					   cmocka_unit_test(test_exception_passes_calls)};
	return cmocka_run_group_tests(tests, bed_setup, bed_teardown);
}
