/* SPDX-License-Identifier: Apache-2.0 */
/* line_more_scenarios.c - lines of the checklist by their numbers: sessions, flags, kinds of functions (B, D, F, I, L, P, Q). */
#include "bed.h"

#include <stdatomic.h>

CODE(calls_loc_1)
{
	(void)env;
	return call(self, &tro_calls_loc, integer(1));
}

static struct tw_term flags_sorted(struct bed *b, struct sess *s, struct value pid)
{
	return sorted(b, tw_term_element(info_pid(b, s, pid, "flags"), 1));
}

static struct tw_term count_of(struct bed *b, struct tw_term list)
{
	return tw_term_integer(&b->arena, (int64_t)lit_count(list));
}

/* ---- B, D: lasting effects, the processes meant ---- */

static struct tw_term s_line_19_sent_is_sent(struct bed *b)
{
	struct st x = st(b, "call");

	function(b, x.s, "tro:loc/1", "true", "local");
	run(b, x.p, calls_loc_1);
	pause_ms(20);
	destroy(b, x.s);
	run(b, x.p, calls_loc_1);
	return ev(b, x.s);
}

static struct tw_term s_line_37_all_existing_new(struct bed *b)
{
	static const tw_pid who[] = {TW_PID_ALL, TW_PID_EXISTING, TW_PID_NEW};
	struct tw_term rows[3];

	for (unsigned i = 0; i < 3; i++) {
		struct sess *s = s(b, tracer_as(b, "t"));
		struct value before = tracee(b, "before"), after;
		struct tw_term flags;

		trace_process(s, who[i], true, "send");
		after = tracee(b, "after");
		flags = flags_sorted(b, s, before);
		rows[i] = lit(b, "{%t,%t}", flags, flags_sorted(b, s, after));
		destroy(b, s);
	}
	return list_of(b, rows, 3);
}

CODE(waits_a_little)
{
	(void)env;
	receive_match(self, NULL, NONE, 5);
	return ATOM(OK);
}

/* Nothing runs inside of ports: the events of running.  It may be running already when it gets the flag. */
static struct tw_term s_line_42_running_procs(struct bed *b)
{
	struct st x = st(b, "running_procs");
	struct tw_term events;

	run(b, x.p, waits_a_little);
	events = elements(b, 3, ev(b, x.s));
	for (unsigned i = 0; i < 2 && lit_count(events) >= 3; i++)
		if (lit_is(lit_nth(events, i), "in"))
			return LIST(b, lit_nth(events, i), lit_nth(events, i + 1));
	return events;
}

/* ---- F: the limit of a heap ---- */

CODE(grows)
{
	struct value list = NIL;

	(void)env;
	KEEP(self, list);
	process_flag(self, FLAG_MAX_HEAP_WORDS, 100000);
	for (;;) {
		list = cons(heap_of(self), integer(1), list);
		receive_match(self, NULL, NIL, 0);
	}
	return NIL;
}

static struct tw_term s_line_65_heap_limit(struct bed *b)
{
	struct st x = st(b, "garbage_collection");
	struct tw_term events;
	struct heap *heap = heap_of(b->me);
	int limits = 0;

	send_to(b->me, x.p, TUPLE(heap, ATOM(RUN), self_pid(b->me), fun(heap, grows, NIL)));
	for (unsigned i = 0; i < 60000 && is_alive(b->me, x.p); i++)
		pause_ms(1);
	for (events = ev(b, x.s); tw_term_type(events) == TW_TYPE_CONS; events = tw_term_tail(events))
		if (lit_is(tw_term_element(tw_term_head(events), 2), "gc_max_heap_size"))
			limits += (int)lit_count(tw_term_element(tw_term_head(events), 3));
	return lit(b, "{%t,%d}", boolean(!is_alive(b->me, x.p)), limits);
}

/* ---- I: kinds, repetition, and when a change takes effect ---- */

static struct tw_term s_line_96_kinds_go_one_by_one(struct bed *b)
{
	static const char *const items[] = {"traced", "meta", "call_count", "call_time", "call_memory"};
	static const char *const kinds[] = {"local", "meta", "call_count", "call_time", "call_memory"};
	struct sess *s = s(b, tracer_as(b, "t"));
	struct tw_term rows[6], row[5];

	function(b, s, "tro:loc/1", "true", "local,meta,call_count,call_time,call_memory");
	for (unsigned i = 0; i < 6; i++) {
		for (unsigned k = 0; k < 5; k++)
			row[k] = tw_term_element(info_mfa(b, s, "tro:loc/1", items[k]), 1);
		rows[i] = list_of(b, row, 5);
		if (i < 5)
			function(b, s, "tro:loc/1", "false", kinds[i]);
	}
	return list_of(b, rows, 6);
}

static struct tw_term s_line_98_repeating_is_harmless(struct bed *b)
{
	struct st x = st(b, "call");
	struct tw_term counts[6];

	for (unsigned i = 0; i < 5; i++)
		counts[i] = answer(b, function(b, x.s, "tro:loc/1", "true", "local"));
	run(b, x.p, calls_loc_1);
	counts[5] = count_of(b, ev(b, x.s));
	return list_of(b, counts, 6);
}

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

/* ---- L, N, P, Q ---- */

static struct tw_term s_line_139_new_without_tracer(struct bed *b)
{
	struct value t = tracer_as(b, "t");
	struct sess *s = s(b, t);
	struct tw_term before, after;

	trace_process(s, TW_PID_NEW, true, "send");
	before = info(b, s, tw_term_atom_z("new"), "flags");
	kill_it(b, t);
	after = info(b, s, tw_term_atom_z("new"), "flags");
	return LIST(b, before, after, flags_sorted(b, s, tracee(b, "p")));
}

static struct tw_term s_line_160_counters_of_old_code(struct bed *b)
{
	struct sess *s = s(b, tracer_as(b, "t"));
	struct tw_term before;

	tro_dummy_load();
	function(b, s, "tro_dummy:hello/1", "true", "call_count");
	before = info_mfa(b, s, "tro_dummy:hello/1", "call_count");
	tro_dummy_unload();
	tro_dummy_load();
	return LIST(b, before, info_mfa(b, s, "tro_dummy:hello/1", "call_count"));
}

static struct tw_term s_line_179_no_wildcards(struct bed *b)
{
	struct sess *s = s(b, tracer_as(b, "t"));

	return LIST(b, info(b, s, lit(b, "{tro,f1,'_'}"), "traced"), info(b, s, lit(b, "{tro,'_','_'}"), "traced"),
		    info(b, s, lit(b, "{'_','_','_'}"), "traced"));
}

/* Erlang answers for a destroyed session; here there is no process to answer. */
static struct tw_term s_line_183_delivered_of_no_session(struct bed *b)
{
	struct st x = st(b, "call");
	uint64_t reference;

	destroy(b, x.s);
	return answer(b, tw_delivered(x.s->session, TW_PID_ALL, &reference));
}

const struct scenario line_more_scenarios[] = {
	SCENARIO(s_line_19_sent_is_sent),
	SCENARIO(s_line_37_all_existing_new),
	SCENARIO(s_line_42_running_procs),
	SCENARIO(s_line_65_heap_limit),
	SCENARIO(s_line_96_kinds_go_one_by_one),
	SCENARIO(s_line_98_repeating_is_harmless),
	SCENARIO(s_line_104_all_threads_see_it),
	SCENARIO(s_line_139_new_without_tracer),
	SCENARIO(s_line_160_counters_of_old_code),
	SCENARIO(s_line_179_no_wildcards),
	DIFFERS(s_line_183_delivered_of_no_session, "a mark of a session that is gone would never come"),
	{0},
};
