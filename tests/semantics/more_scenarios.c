/* SPDX-License-Identifier: Apache-2.0 */
/* more_scenarios.c - documented, but not recorded: sessions, flags, life (docs/semantics.md B to G). */
#include "bed.h"

#define CALLS(name, function, argument)                     \
	CODE(name)                                          \
	{                                                   \
		(void)env;                                  \
		return call(self, &(function), (argument)); \
	}

CALLS(calls_loc_1, tro_calls_loc, integer(1))

/* ---- B, C: sessions ---- */

static struct tw_term s_session_same_name(struct bed *b)
{
	struct value t = tracer_as(b, "t");
	struct sess *s1, *s2;
	tw_session_weak first, second;
	struct tw_term all, ids[2];

	b->makes_twins = false;
	s1 = s(b, t);
	s2 = s(b, t);
	first = tw_session_weak_of(s1->session);
	second = tw_session_weak_of(s2->session);
	ids[0] = session_info(b, s1, lit(b, "all"));
	ids[1] = session_info(b, s2, lit(b, "all"));
	tw_session_info(lit(b, "all"), &b->arena, &all);
	return LIST(b, boolean(first != second),
		    boolean(lit_count(all) >= 2 &&
			    tw_term_is_equal(tw_term_element(lit_nth(all, 0), 0), tw_term_element(lit_nth(all, 1), 0))),
		    tw_term_element(ids[0], 1), tw_term_element(ids[1], 1));
}

static struct tw_term s_destroy_badarg(struct bed *b)
{
	return LIST(b, answer(b, tw_session_destroy_weak(0)), answer(b, tw_session_destroy_weak(UINT64_MAX)));
}

static struct tw_term s_use_destroyed(struct bed *b)
{
	struct st x = st(b, "call");
	struct tw_term results[5];

	destroy(b, x.s);
	results[0] = answer(b, process(b, x.s, x.p, true, "call"));
	results[1] = answer(b, function(b, x.s, "tro:f1/1", "true", "local"));
	results[2] = answer(b, send_pattern(b, x.s, "true"));
	results[3] = answer(b, recv_pattern(b, x.s, "true"));
	results[4] = info_pid(b, x.s, x.p, "flags");
	return list_of(b, results, 5);
}

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

static struct tw_term s_two_sessions_same_fn(struct bed *b)
{
	struct sess *s1 = s(b, tracer_as(b, "t1")), *s2 = s(b, tracer_as(b, "t2"));
	struct value p = tracee(b, "p");
	struct tw_term first, second, ended;

	process(b, s1, p, true, "call");
	process(b, s2, p, true, "call");
	function(b, s1, "tro:loc/1", "true", "local");
	function(b, s2, "tro:loc/1", "true", "local");
	run(b, p, calls_loc_1);
	first = ev(b, s1);
	second = ev(b, s2);
	ended = destroy(b, s1);
	run(b, p, calls_loc_1);
	return lit(b, "{%t,%t,%t,%t}", first, second, ended, ev(b, s2));
}

/* ---- D, E: flags, time stamps ---- */

static struct tw_term s_two_sessions_flags_separate(struct bed *b)
{
	struct sess *s1 = s(b, tracer_as(b, "t1")), *s2 = s(b, tracer_as(b, "t2"));
	struct value p = tracee(b, "p");
	struct tw_term rows[4];

	process(b, s1, p, true, "send");
	process(b, s2, p, true, "procs");
	rows[0] = info_pid(b, s1, p, "flags");
	rows[1] = info_pid(b, s2, p, "flags");
	process(b, s1, p, false, "send,procs");
	rows[2] = info_pid(b, s1, p, "flags");
	rows[3] = info_pid(b, s2, p, "flags");
	return list_of(b, rows, 4);
}

static struct tw_term s_timestamps(struct bed *b)
{
	static const char *const flags[] = {"call", "call,timestamp", "call,monotonic_timestamp",
					    "call,strict_monotonic_timestamp", "call,monotonic_timestamp"};
	struct st x = st(b, "");
	struct tw_term rows[5];

	function(b, x.s, "tro:loc/1", "true", "local");
	for (unsigned i = 0; i < 5; i++) {
		process(b, x.s, x.p, false, "all");
		process(b, x.s, x.p, true, flags[i]);
		if (i == 4)
			function(b, x.s, "tro:loc/1", "[{'_',[],[{message,hi}]}]", "local");
		run(b, x.p, calls_loc_1);
		rows[i] = ev(b, x.s);
	}
	return list_of(b, rows, 5);
}

/* ---- F: life, scheduling ---- */

static struct tw_term s_exiting(struct bed *b)
{
	struct st x = st(b, "exiting");
	struct tw_term events;

	send_to(b->me, x.p, ATOM(STOP));
	pause_ms(20);
	events = ev(b, x.s);
	return lit_count(events) ? lit_nth(events, lit_count(events) - 1) : events;
}

CODE(waits_a_little)
{
	(void)env;
	for (unsigned i = 0; i < 5; i++) {
		yield(self);
		receive_match(self, NULL, NONE, 1);
	}
	return ATOM(OK);
}

/* in, out, in, out ... in any case; it may be running already when it gets the flag. */
static struct tw_term s_running_alternates(struct bed *b)
{
	struct st x = st(b, "running");
	struct tw_term events, last = {0};
	bool is_right;

	for (unsigned i = 0; i < 20; i++)
		run(b, x.p, waits_a_little);
	pause_ms(20);
	events = ev(b, x.s);
	is_right = lit_count(events) >= 40;
	for (; tw_term_type(events) == TW_TYPE_CONS; events = tw_term_tail(events)) {
		struct tw_term tag = tw_term_element(tw_term_head(events), 2);

		is_right = is_right && !tw_term_is_same(tag, last) && (lit_is(tag, "in") || lit_is(tag, "out"));
		last = tag;
	}
	return boolean(is_right);
}

static struct value dies_of_oops(struct actor *self, const struct value *a)
{
	(void)a;
	receive_value(self, atom("die"), FOREVER);
	raise_exit(self, atom("oops"));
}
static struct function dies_function = FUNCTION("tro", "dies", 0, dies_of_oops);

CODE(spawns_mortal)
{
	if (is_same(env, ATOM(TRUE)))
		process_flag(self, FLAG_TRAP_EXIT, true);
	return spawn_link(self, &dies_function);
}

static struct tw_term linked_death(struct bed *b, const char *flags, bool is_trapping)
{
	struct value t = tracer_as(b, "t"), p = tracee(b, "p"), c;
	struct sess *s = s(b, t);

	c = run_with(b, p, spawns_mortal, is_trapping ? ATOM(TRUE) : ATOM(FALSE));
	name_it(b, c, "c");
	process(b, s, p, true, flags);
	send_to(b->me, c, atom("die"));
	pause_ms(30);
	return ev_own(b, s);
}

static struct tw_term s_exit_linked(struct bed *b)
{
	return linked_death(b, "procs", false);
}

static struct tw_term s_trap_exit(struct bed *b)
{
	return linked_death(b, "receive", true);
}

/* ---- G: inheritance ---- */

CODE(spawns_one)
{
	(void)env;
	return spawn(self, &run_loop);
}

CODE(links_to)
{
	link_to(self, env);
	return ATOM(OK);
}

static struct tw_term flags_sorted(struct bed *b, struct sess *s, struct value pid)
{
	return sorted(b, tw_term_element(info_pid(b, s, pid, "flags"), 1));
}

static struct tw_term s_inherit_both_spawn(struct bed *b)
{
	struct st x = st(b, "send,set_on_spawn,set_on_first_spawn");
	struct value first = run(b, x.p, spawns_one), second = run(b, x.p, spawns_one);

	return LIST(b, lit(b, "{parent,%t}", flags_sorted(b, x.s, x.p)),
		    lit(b, "{child1,%t}", flags_sorted(b, x.s, first)),
		    lit(b, "{child2,%t}", flags_sorted(b, x.s, second)));
}

static struct tw_term s_inherit_both_link(struct bed *b)
{
	struct st x = st(b, "send,set_on_link,set_on_first_link");
	struct value first = tracee(b, "a"), second = tracee(b, "b");

	run_with(b, x.p, links_to, first);
	run_with(b, x.p, links_to, second);
	return LIST(b, lit(b, "{parent,%t}", flags_sorted(b, x.s, x.p)),
		    lit(b, "{linked1,%t}", flags_sorted(b, x.s, first)),
		    lit(b, "{linked2,%t}", flags_sorted(b, x.s, second)));
}

static struct tw_term s_inherit_link_direction(struct bed *b)
{
	struct st x = st(b, "send,set_on_link");
	struct value linker = tracee(b, "q");

	run_with(b, linker, links_to, x.p);
	pause_ms(10);
	return LIST(b, lit(b, "{traced,%t}", flags_sorted(b, x.s, x.p)),
		    lit(b, "{linker,%t}", flags_sorted(b, x.s, linker)));
}

static struct tw_term s_new_and_set_on_spawn_two_sessions(struct bed *b)
{
	struct sess *s1 = s(b, tracer_as(b, "t1")), *s2 = s(b, tracer_as(b, "t2"));
	struct value p = tracee(b, "p"), child;

	process(b, s1, p, true, "send,set_on_spawn");
	trace_process(s2, TW_PID_NEW, true, "procs");
	child = run(b, p, spawns_one);
	return lit(b, "{%t,%t}", flags_sorted(b, s1, child), flags_sorted(b, s2, child));
}

const struct scenario more_scenarios[] = {
	SCENARIO(s_session_same_name),
	SCENARIO(s_destroy_badarg),
	SCENARIO(s_use_destroyed),
	SCENARIO(s_destroy_in_flight),
	SCENARIO(s_two_sessions_same_fn),
	SCENARIO(s_two_sessions_flags_separate),
	SCENARIO(s_timestamps),
	SCENARIO(s_exiting),
	SCENARIO(s_running_alternates),
	SCENARIO(s_exit_linked),
	SCENARIO(s_trap_exit),
	SCENARIO(s_inherit_both_spawn),
	SCENARIO(s_inherit_both_link),
	SCENARIO(s_inherit_link_direction),
	SCENARIO(s_new_and_set_on_spawn_two_sessions),
	{0},
};
