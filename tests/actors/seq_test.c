/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	241, 242, 243: what carries a token, and what leaves the receiver's as it is, in a run-time with processes of its own.
 * Method	Actors that take messages of ports, timers and monitors, and exit signals, and say what their token is then.
 */
#include "bed.h"

#include "term.h"
#include "trace.h"

#include <sys/socket.h>
#include <unistd.h>

/* The serial and the label of the token; 0 and -1: none. */
struct seen {
	int64_t label, current;
};

static struct seen seen_by(struct actor *self)
{
	struct seen seen = {-1, 0};
	struct terms terms;
	struct tw_term token;

	(void)self;
	terms_init(&terms);
	token = tw_seq_token_term(&terms.arena);
	if (tw_term_tuple_count(token) == 5) {
		tw_term_get_int64(tw_term_element(token, 1), &seen.label);
		tw_term_get_int64(tw_term_element(token, 2), &seen.current);
	}
	terms_fini(&terms);
	return seen;
}

static void start(int64_t label)
{
	assert_int_equal(tw_seq_set_label(tw_term_integer(NULL, label)), 0);
}

static struct value take_from_a_port(struct actor *self, struct value env)
{
	int ends[2];
	struct value port;

	(void)env;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	port = port_open(self, ends[0]);
	start(7);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_true(is_same(element(receive(self), 0), port));
	close(ends[1]);
	/* {Port,closed} */
	receive(self);
	return integer(seen_by(self).label);
}

static struct value take_from_a_timer(struct actor *self, struct value env)
{
	(void)env;
	start(8);
	send_after(self, 1, self_pid(self), atom("now"));
	receive(self);
	return integer(seen_by(self).label);
}

static struct value end(struct actor *self, const struct value *arguments)
{
	(void)self, (void)arguments;
	return NIL;
}
static struct function end_function = FUNCTION("test", "end", 0, end);

static struct value take_from_a_monitor(struct actor *self, struct value env)
{
	(void)env;
	start(9);
	monitor(self, spawn(self, &end_function));
	receive(self);
	return integer(seen_by(self).label);
}

/* Request 1, reply 2; the child's exit is 3, which this one takes as a message. */
static struct value take_an_exit(struct actor *self, struct value env)
{
	struct seen seen;

	(void)env;
	process_flag(self, FLAG_TRAP_EXIT, true);
	start(10);
	spawn_link(self, &end_function);
	receive(self);
	seen = seen_by(self);
	assert_int_equal(seen.label, 10);
	return integer(seen.current);
}

/* From itself, and in another order than they came. */
static struct value take_in_another_order(struct actor *self, struct value env)
{
	struct seen first, second;

	(void)env;
	start(11);
	send_to(self, self_pid(self), atom("a"));
	start(12);
	send_to(self, self_pid(self), atom("b"));
	receive_value(self, atom("b"), FOREVER);
	first = seen_by(self);
	receive_value(self, atom("a"), FOREVER);
	second = seen_by(self);
	return TUPLE(heap_of(self), integer(first.label), integer(first.current), integer(second.label),
		     integer(second.current));
}

static struct value forget(struct actor *self, struct value env)
{
	(void)self;
	tw_seq_set_token(NULL, NULL);
	return env;
}

static int64_t number_of_run(fun_code *code)
{
	struct value pid = spawn(me, &run_loop), result = run(pid, code, NIL);

	run(pid, forget, NIL);
	return number_of(result);
}

static void line_241_ports_timers_and_monitors_leave_the_token(void **state)
{
	assert_int_equal(number_of_run(take_from_a_port), 7);
	assert_int_equal(number_of_run(take_from_a_timer), 8);
	assert_int_equal(number_of_run(take_from_a_monitor), 9);
	tw_seq_reset_trace();
}

static void line_242_243_spawns_and_exits_carry_it(void **state)
{
	assert_int_equal(number_of_run(take_an_exit), 3);
	tw_seq_reset_trace();
}

static void each_message_has_its_own(void **state)
{
	struct value pid = spawn(me, &run_loop);

	assert_text(run(pid, take_in_another_order, NIL), "{12,2,11,1}");
	tw_seq_reset_trace();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(line_241_ports_timers_and_monitors_leave_the_token, bed_setup,
						bed_teardown),
		cmocka_unit_test_setup_teardown(line_242_243_spawns_and_exits_carry_it, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(each_message_has_its_own, bed_setup, bed_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
