/* SPDX-License-Identifier: Apache-2.0 */
/* session_scenarios.c - docs/semantics.md A to C, L, Q: sessions, handles, tracers. */
#include "bed.h"

#include <string.h>

CODE(calls_f1)
{
	(void)env;
	return call_remote(self, &tro_f1, integer(1));
}

/* Most arguments that trace:session_create/3 refuses cannot be written in C; the others are tried. */
static struct tw_term s_session_create_badarg(struct bed *b)
{
	struct tw_term refused = tw_term_atom_z("badarg"), ok = tw_term_atom_z("ok"), results[9];
	struct tw_session *session;
	char name[300];
	struct tw_tracer tracer = {.kind = (enum tw_tracer_kind)99};

	memset(name, 'x', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	/* {"x", ...}: no name; {x, foo, ...}: no tracer; the others can only be written like these in C. */
	results[0] = tw_session_create(name, NULL, &session) == TW_EBADARG ? refused : ok;
	results[1] = tw_session_create("x", &tracer, &session) == TW_EBADARG ? refused : ok;
	tracer = (struct tw_tracer){.kind = TW_TRACER_CAPTURE};
	results[2] = tw_session_create("x", &tracer, &session) == TW_EBADARG ? refused : ok;
	tracer = (struct tw_tracer){.kind = TW_TRACER_QUEUE, .ring_bytes = 12345};
	results[3] = tw_session_create("x", &tracer, &session) == TW_EBADARG ? refused : ok;
	tracer = (struct tw_tracer){.kind = TW_TRACER_QUEUE, .on_full = (enum tw_on_full)77};
	results[4] = tw_session_create("x", &tracer, &session) == TW_EBADARG ? refused : ok;
	results[5] = tw_session_create(NULL, NULL, &session) == TW_EBADARG ? refused : ok;
	/* A dead process as tracer, none, and an empty name are accepted. */
	b->makes_twins = false;
	results[6] = s(b, dead(b, NULL))->session ? ok : refused;
	results[7] = tw_session_create("x", NULL, &session) ? refused : ok;
	tw_session_destroy(session);
	tw_session_put(session);
	results[8] = s_as(b, self_pid(b->me), "")->session ? ok : refused;
	return list_of(b, results, 9);
}

static struct tw_term s_destroy_twice(struct bed *b)
{
	struct sess *s = s(b, tracer_as(b, "t"));
	tw_session_weak weak = tw_session_weak_of(s->session);
	struct tw_term first = destroy(b, s), second = destroy(b, s);

	return LIST(b, first, second, answer(b, tw_session_destroy_weak(weak)));
}

static struct tw_term s_weak_handle(struct bed *b)
{
	struct value t = tracer_as(b, "t"), p;
	struct sess *s = s(b, t), weak = *s;
	struct tw_term called, ended, again;
	int64_t flags, functions;

	tw_session_lock(tw_session_weak_of(s->session), &weak.session);
	p = tracee(b, "p");
	flags = process(b, &weak, p, true, "call");
	functions = function(b, &weak, "tro:f1/1", "true", "local");
	run(b, p, calls_f1);
	called = ev(b, &weak);
	tw_session_put(weak.session);
	ended = boolean(tw_session_destroy_weak(tw_session_weak_of(s->session)) == 1);
	again = boolean(tw_session_destroy(s->session) == 1);
	return lit(b, "{%t,%t,%t,%t,%t}", answer(b, flags), answer(b, functions), called, ended, again);
}

/* Is a session in the list of all? */
static struct tw_term is_listed(struct bed *b, tw_session_weak weak)
{
	struct tw_term list;

	tw_session_info(tw_term_atom_z("all"), &b->arena, &list);
	for (size_t i = 0; i < lit_count(list); i++) {
		uint64_t id = 0;

		tw_term_get_uint64(tw_term_element(lit_nth(list, i), 1), &id);
		if (id == weak)
			return boolean(true);
	}
	return boolean(false);
}

/* Erlang collects a handle here; this program drops it. */
static struct tw_session *unlisted(struct bed *b, tw_session_weak *weak)
{
	struct tw_tracer tracer = {.kind = TW_TRACER_QUEUE, .tracer_pid = trace_pid(tracer_as(b, "t"))};
	struct tw_session *session = NULL;

	tw_session_create("sess", &tracer, &session);
	*weak = tw_session_weak_of(session);
	return session;
}

static struct tw_term s_gc_destroys(struct bed *b)
{
	tw_session_weak weak;
	struct tw_session *session = unlisted(b, &weak);
	struct tw_term before, after, list;
	int64_t error;

	tw_trace_function(session, "tro", "f1", 1, TW_MATCH_TRUE, TW_FUNCTION_LOCAL);
	before = is_listed(b, weak);
	tw_session_put(session);
	tw_progress();
	after = is_listed(b, weak);
	error = tw_session_lock(weak, &session);
	tw_session_info(lit(b, "{tro,f1,1}"), &b->arena, &list);
	return lit(b, "{%t,%t,%t,%t}", before, after, answer(b, error), list);
}

/* The actor that holds the only handle. */
struct holder {
	struct tw_session *session;
};
static struct holder held;

static struct value hold(struct actor *self, const struct value *arguments)
{
	(void)arguments;
	receive_value(self, atom("stop"), FOREVER);
	tw_session_put(held.session);
	return ATOM(OK);
}
static struct function hold_function = FUNCTION("tro", "hold", 0, hold);

static struct tw_term drop_by(struct bed *b, bool is_kept)
{
	tw_session_weak weak;
	struct tw_session *session = unlisted(b, &weak);
	struct value pid;
	struct tw_term before;

	/* kept: a second handle of the actor's; else its only one is moved there. */
	held.session = is_kept ? tw_session_get(session) : session;
	pid = spawn(b->me, &hold_function);
	if (is_kept)
		tw_session_put(session);
	tw_progress();
	before = is_listed(b, weak);
	send_to(b->me, pid, atom("stop"));
	for (unsigned i = 0; i < 1000 && is_alive(b->me, pid); i++)
		pause_ms(1);
	tw_progress();
	return lit(b, "{%t,%t}", before, is_listed(b, weak));
}

static struct tw_term s_gc_weak_does_not_keep(struct bed *b)
{
	return drop_by(b, false);
}

static struct tw_term s_strong_in_other_process_keeps(struct bed *b)
{
	return drop_by(b, true);
}

/* Ports have no list here: new_ports is left out of the queries, and answered as recorded. */
static struct tw_term s_session_info(struct bed *b)
{
	struct value t = tracer_as(b, "t"), p, gone;
	struct sess *s = s_as(b, t, "mysess");
	struct tw_term what[15], texts[15], before[15], after[15], rows[15];

	p = tracee(b, "p");
	gone = dead(b, NULL);
	what[0] = lit(b, "all");
	what[1] = pid_term(b, p);
	what[2] = lit(b, "new");
	what[3] = lit(b, "new_processes");
	what[4] = lit(b, "new_ports");
	what[5] = lit(b, "{tro,f1,1}");
	what[6] = lit(b, "on_load");
	what[7] = lit(b, "send");
	what[8] = lit(b, "'receive'");
	what[9] = lit(b, "{tro,nofun,1}");
	what[10] = lit(b, "{nomod,f,1}");
	what[11] = pid_term(b, gone);
	what[12] = lit(b, "system");
	what[13] = lit(b, "foo");
	what[14] = lit(b, "{a,b}");
	for (unsigned i = 0; i < 15; i++) {
		texts[i] = named(b, what[i]);
		before[i] = session_info(b, s, what[i]);
	}
	process(b, s, p, true, "call");
	trace_process(s, TW_PID_NEW, true, "call");
	trace_port(s, TW_PORT_NEW, true, "send");
	function(b, s, "tro:f1/1", "true", "");
	function(b, s, "on_load", "true", "");
	send_pattern(b, s, "[{['_',x],[],[]}]");
	recv_pattern(b, s, "[{['_','_',x],[],[]}]");
	for (unsigned i = 0; i < 15; i++) {
		after[i] = session_info(b, s, what[i]);
		rows[i] = lit(b, "{%t,%t,%t}", texts[i], before[i], after[i]);
	}
	return list_of(b, rows, 15);
}

static struct tw_term s_session_name_lookup(struct bed *b)
{
	struct sess *s = s_as(b, tracer_as(b, "t"), "zzz");
	struct tw_term list, own = {0};
	tw_session_weak weak = tw_session_weak_of(s->session);
	struct tw_term is_there = is_listed(b, weak);

	tw_session_info(tw_term_atom_z("all"), &b->arena, &list);
	for (size_t i = 0; i < lit_count(list); i++) {
		uint64_t id = 0;

		tw_term_get_uint64(tw_term_element(lit_nth(list, i), 1), &id);
		if (id == weak)
			own = lit_nth(list, i);
	}
	return lit(b, "{%t,%t,%t,%t}", tw_term_element(own, 0),
		   boolean(tw_term_type(tw_term_element(own, 1)) == TW_TYPE_INTEGER), is_there, destroy(b, s));
}

CODE(calls_loc_1)
{
	(void)env;
	return call(self, &tro_calls_loc, integer(1));
}

static struct tw_term s_many_sessions(struct bed *b)
{
	struct value p = tracee(b, "p"), t = tracer_as(b, "t");
	struct sess *all[50];
	struct tw_term counts[50], first, list;
	size_t different = 1;

	b->makes_twins = false;
	for (unsigned i = 0; i < 50; i++) {
		all[i] = s(b, t);
		process(b, all[i], p, true, "call");
		function(b, all[i], "tro:loc/1", "true", "local");
	}
	run(b, p, calls_loc_1);
	for (unsigned i = 0; i < 50; i++)
		counts[i] = tw_term_integer(&b->arena, (int64_t)lit_count(ev(b, all[i])));
	first = counts[0];
	for (unsigned i = 1; i < 50; i++)
		if (!tw_term_is_equal(counts[i], first))
			counts[different++] = counts[i];
	for (unsigned i = 0; i < 50; i++)
		destroy(b, all[i]);
	tw_session_info(lit(b, "{tro,loc,1}"), &b->arena, &list);
	return lit(b, "{%t,%t}", list_of(b, counts, different), list);
}

/* ---- tracers ---- */

static struct tw_term s_tracer_death(struct bed *b)
{
	struct st x = st(b, "call");
	struct tw_term rows[8], list;

	function(b, x.s, "tro:f1/1", "true", "local");
	rows[0] = lit(b, "{before,%t}", info_pid(b, x.s, x.p, "flags"));
	kill_it(b, x.t);
	rows[1] = lit(b, "{dead,%t,%t}", info_pid(b, x.s, x.p, "flags"), info_pid(b, x.s, x.p, "tracer"));
	run(b, x.p, calls_f1);
	rows[2] = lit(b, "{after_event,%t}", info_pid(b, x.s, x.p, "flags"));
	rows[3] = lit(b, "{fn_still,%t}", info_mfa(b, x.s, "tro:f1/1", "traced"));
	rows[4] = lit(b, "{session_still,%t}", is_listed(b, tw_session_weak_of(x.s->session)));
	rows[5] = answer(b, process(b, x.s, x.p, true, "call"));
	rows[5] = lit(b, "{reenable,%t,%t}", rows[5], info_pid(b, x.s, x.p, "flags"));
	tw_session_info(pid_term(b, x.p), &b->arena, &list);
	rows[6] = lit(b, "{sess_of_p,%t}", boolean(tw_term_type(list) != TW_TYPE_NIL));
	rows[7] = destroy(b, x.s);
	return list_of(b, rows, 8);
}

static struct tw_term s_tracer_is_tracee(struct bed *b)
{
	struct value t = tracer_as(b, "t");
	struct sess *s = s(b, t);
	int64_t count = process(b, s, t, true, "send,receive,procs");
	struct tw_term flags = info_pid(b, s, t, "flags");

	b->makes_twins = false;
	send_to(b->me, t, atom("hello"));
	pause_ms(10);
	return LIST(b, answer(b, count), flags, ev(b, s));
}

static struct tw_term s_all_includes_tracer(struct bed *b)
{
	struct value t = tracer_as(b, "t");
	struct sess *s = s(b, t);

	trace_process(s, TW_PID_ALL, true, "call");
	return lit(b, "{%t,%t}", info_pid(b, s, t, "flags"), info_pid(b, s, self_pid(b->me), "flags"));
}

/* The process that the mark names; none: it does not arrive. */
static struct tw_term mark_of(struct bed *b, struct sess *s, tw_pid pid)
{
	uint64_t reference;
	struct tw_term message;
	int error = tw_delivered(s->session, pid, &reference);

	if (error)
		return answer(b, error);
	while (!tw_queue_receive(s->session, UINT64_C(500000000), &b->arena, &message))
		if (lit_is(tw_term_element(message, 0), "trace_delivered") &&
		    tw_term_is_equal(tw_term_element(message, 2), tw_delivered_term(&b->arena, reference)))
			return named(b, tw_term_element(message, 1));
	return tw_term_atom_z("none");
}

/* The session is checked here: a reference from a session that does not exist would never be answered. */
static struct tw_term s_delivered(struct bed *b)
{
	struct st x = st(b, "call");
	struct tw_term of_p = mark_of(b, x.s, trace_pid(x.p)), of_all = mark_of(b, x.s, TW_PID_ALL);
	struct value d = dead(b, "d");

	return LIST(b, of_p, of_all, mark_of(b, x.s, trace_pid(d)), mark_of(b, x.s, UINT64_C(99999999)), boolean(true));
}

CODE(down_999)
{
	(void)env;
	return call(self, &tro_down, integer(999));
}

static struct tw_term s_delivered_order(struct bed *b)
{
	struct st x = st(b, "call");
	struct sess *mine = s(b, self_pid(b->me));
	uint64_t reference;
	struct tw_term message;
	int calls = 0;

	process(b, mine, x.p, true, "call");
	function(b, mine, "tro:down/1", "true", "local");
	run(b, x.p, down_999);
	tw_delivered(mine->session, trace_pid(x.p), &reference);
	while (!tw_queue_receive(mine->session, UINT64_C(2000000000), &b->arena, &message) &&
	       !lit_is(tw_term_element(message, 0), "trace_delivered"))
		calls++;
	return lit(b, "{before_delivered,%d}", calls);
}

const struct scenario session_scenarios[] = {
	SCENARIO(s_session_create_badarg),
	SCENARIO(s_destroy_twice),
	SCENARIO(s_weak_handle),
	SCENARIO(s_gc_destroys),
	SCENARIO(s_gc_weak_does_not_keep),
	SCENARIO(s_strong_in_other_process_keeps),
	SCENARIO(s_session_info),
	SCENARIO(s_session_name_lookup),
	SCENARIO(s_many_sessions),
	SCENARIO(s_tracer_death),
	SCENARIO(s_tracer_is_tracee),
	SCENARIO(s_all_includes_tracer),
	SCENARIO(s_delivered),
	SCENARIO(s_delivered_order),
	{0},
};
