/* SPDX-License-Identifier: Apache-2.0 */
/* race_scenarios.c - what happens beside something else, and sessions compared with each other: docs/semantics.md B, I, K. */
#include "bed.h"

#include <stdatomic.h>

/* ---- destroyed while it runs ---- */

static struct value run_down(struct actor *self, const struct value *a)
{
	struct value result = call(self, &tro_down, integer(300000));

	send_to(self, a[0], result);
	receive_value(self, ATOM(STOP), FOREVER);
	return ATOM(OK);
}
static struct function run_down_function = FUNCTION("tro", "run_down", 1, run_down);

static struct tw_term s_destroy_in_flight(struct bed *b)
{
	struct value t = tracer_as(b, "t"), p, message = NONE;
	struct sess *s = s(b, t);
	struct tw_term ended, list;

	function(b, s, "tro:down/1", "[{'_',[],[{return_trace}]}]", "local");
	trace_process(s, TW_PID_NEW, true, "call");
	p = spawn(b->me, &run_down_function, self_pid(b->me));
	name_it(b, p, "p");
	pause_ms(5);
	ended = destroy(b, s);
	outside_receive(b->me, 20000, &message);
	tw_session_info(pid_term(b, p), &b->arena, &list);
	return lit(b, "{%t,%t,%t}", ended, is_none(message) ? lit(b, "no_answer") : shown(b, message), list);
}

/* ---- a change while functions are called ---- */

static atomic_llong calls_begun, calls_end;
static atomic_bool is_over;

/* Calls with the next number each time, on both schedulers in turn; few enough that a round's events fit. */
static struct value calls_all_the_time(struct actor *self, const struct value *a)
{
	(void)a;
	while (!atomic_load(&is_over)) {
		if (atomic_load(&calls_begun) >= atomic_load(&calls_end)) {
			receive_match(self, NULL, NONE, 1);
			continue;
		}
		call(self, &tro_f1, integer(atomic_fetch_add(&calls_begun, 1)));
		for (volatile int i = 0; i < 5000; i++)
			;
		yield(self);
	}
	return ATOM(OK);
}
static struct function calling = FUNCTION("tro", "calling", 0, calls_all_the_time);

static int64_t number_of_call(struct tw_term event)
{
	int64_t number = -1;

	tw_term_get_int64(tw_term_head(tw_term_element(tw_term_element(event, 3), 2)), &number);
	return number;
}

/* A call that begins after the setting returned has an event, one that begins after the clearing returned has none. */
static struct tw_term s_line_104_all_threads_see_it(struct bed *b)
{
	struct sess *s;
	struct value p;
	int late = 0, without = 0, unseen = 0;

	b->makes_twins = false;
	s = s(b, tracer_as(b, "t"));
	atomic_store(&is_over, false);
	trace_process(s, TW_PID_NEW, true, "call");
	p = spawn(b->me, &calling);
	/* On a busy machine a thread's first events may come before it has a ring; then all is repeated. */
	for (unsigned i = 0; i < 10 || (i < 50 && (i % 10 || without + unseen > 0)); i++) {
		int64_t set, cleared;
		struct tw_term events;

		if (i % 10 == 0)
			without = unseen = 0;
		atomic_store(&calls_end, atomic_load(&calls_begun) + 1000);
		pause_ms(1);
		function(b, s, "tro:f1/1", "true", "local");
		set = atomic_load(&calls_begun);
		atomic_store(&calls_end, set + 1000);
		pause_ms(1);
		function(b, s, "tro:f1/1", "false", "local");
		cleared = atomic_load(&calls_begun);
		events = ev(b, s);
		without += lit_count(events) == 0 && cleared > set + 1;
		unseen += lit_count(events) > 0 && number_of_call(lit_nth(events, 0)) > set;
		late += lit_count(events) > 0 && number_of_call(lit_nth(events, lit_count(events) - 1)) >= cleared;
	}
	atomic_store(&is_over, true);
	for (unsigned i = 0; i < 60000 && is_alive(b->me, p); i++)
		pause_ms(1);
	return lit(b, "{%d,%d,%d}", without, unseen, late);
}

/* ---- returns of one session beside another ---- */

CODE(calls_rt_x)
{
	(void)env;
	return call(self, &tro_rt, atom("x"));
}

static const char *const top_mid_bot[] = {"tro:top/1", "tro:mid/1", "tro:bot/1"};

static struct sess *returns_of(struct bed *b, struct value p, unsigned functions)
{
	struct sess *s = s(b, tracer_as(b, "t"));

	process(b, s, p, true, "call,return_to");
	for (unsigned i = 0; i < 3; i++)
		if (functions >> i & 1)
			function(b, s, top_mid_bot[i], "[{'_',[],[{return_trace}]}]", "local");
	return s;
}

CODE(calls_ttop_x)
{
	(void)env;
	return call(self, &tro_ttop, atom("x"));
}

#define LOOPS 20000

/* serve(N, Pid): a server loop that reports after a number of rounds, and then waits forever. */
static struct function serve_function;
static struct value serve(struct actor *self, const struct value *a)
{
	if (number_of(a[0]) == LOOPS) {
		send_to(self, a[1], atom("looped"));
		receive_value(self, atom("never"), FOREVER);
	}
	return tail_call(self, &serve_function, integer(number_of(a[0]) + 1), a[1]);
}
static struct function serve_function = FUNCTION("tro_loop", "serve", 2, serve);

/* The returns of a chain beside another process' loop, which another session traces: alive, killed, untraced. */
static struct tw_term s_line_132_beside_a_loop(struct bed *b)
{
	static const char *const names[] = {"tro:ttop/1", "tro:t1/1", "tro:t2/1", "tro:t3/1"};
	static struct function *const functions[] = {&serve_function};
	struct st x = st(b, "call");
	struct sess *other = s(b, tracer_as(b, "t2"));
	struct tw_term events[3];
	struct value looper, message;

	module_load(functions, 1);
	for (unsigned i = 0; i < 4; i++)
		function(b, x.s, names[i], "[{'_',[],[{return_trace}]}]", "local");
	function(b, other, "tro_loop:serve/2", "[{'_',[],[{return_trace}]}]", "local");
	trace_process(other, TW_PID_NEW, true, "call,return_to");
	looper = spawn(b->me, &serve_function, integer(0), self_pid(b->me));
	trace_process(other, TW_PID_NEW, false, "call,return_to");
	outside_receive(b->me, 60000, &message);
	run(b, x.p, calls_ttop_x);
	events[0] = ev(b, x.s);
	kill_it(b, looper);
	run(b, x.p, calls_ttop_x);
	events[1] = ev(b, x.s);
	destroy(b, other);
	run(b, x.p, calls_ttop_x);
	events[2] = ev(b, x.s);
	module_unload("tro_loop");
	return list_of(b, events, 3);
}

/* Every pair of different settings of three functions: the events of each session alone, and beside the other. */
static struct tw_term s_line_132_each_as_if_alone(struct bed *b)
{
	struct value p = tracee(b, "p");
	struct tw_term alone[8];
	int different = 0;

	b->makes_twins = false;
	for (unsigned i = 0; i < 8; i++) {
		struct sess *s = returns_of(b, p, i);

		b->name_count--; /* each tracer is a t: few names suffice */
		run(b, p, calls_rt_x);
		alone[i] = ev(b, s);
		destroy(b, s);
	}
	for (unsigned i = 0; i < 64; i++) {
		struct sess *first, *second;

		if (i / 8 >= i % 8)
			continue; /* twins already have equal settings */
		first = returns_of(b, p, i / 8);
		second = returns_of(b, p, i % 8);
		b->name_count -= 2;
		run(b, p, calls_rt_x);
		different += !tw_term_is_equal(ev(b, first), alone[i / 8]);
		different += !tw_term_is_equal(ev(b, second), alone[i % 8]);
		destroy(b, first);
		destroy(b, second);
	}
	return lit(b, "{%t,%d}", alone[2], different);
}

const struct scenario race_scenarios[] = {
	SCENARIO(s_destroy_in_flight),
	SCENARIO(s_line_104_all_threads_see_it),
	SCENARIO(s_line_132_beside_a_loop),
	SCENARIO(s_line_132_each_as_if_alone),
	{0},
};
