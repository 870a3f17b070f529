/* SPDX-License-Identifier: Apache-2.0 */
/* play_steps.c - the steps of the tester: play.c lists them. */
#include "play.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void step_fn(struct play *p, struct tw_term step);

static void play_all(struct play *p, struct tw_term steps);

static struct tw_term part(struct tw_term step, size_t index)
{
	return tw_term_element(step, index);
}

static const char *name_in(struct tw_term step, size_t index)
{
	return name_of(part(step, index));
}

static void tell(struct play *p, struct tw_term answer)
{
	if (p->count == ANSWERS_MAX)
		wrong("too many answers", answer);
	p->told[p->count++] = answer;
}

/* 1 is what is expected: it is told only inside {results,Steps}. */
static void tell_result(struct play *p, int64_t result)
{
	if (result != 1 || p->tells_all)
		tell(p, answer(p->b, result));
}

/* ---- sessions ---- */

static struct sess *session_named(const struct play *p, const char *name)
{
	for (size_t i = p->session_count; i-- > 0;)
		if (!strcmp(p->sessions[i].name, name))
			return p->sessions[i].s;
	wrong("no such session", tw_term_atom_z(name));
}

/* {session,S,T}: T is made unless it is there. */
static struct sess *make_session(struct play *p, const char *name, const char *tracer)
{
	struct bed *b = p->b;
	size_t at = p->session_count++;
	struct value pid = is_known(tracer) ? pid_named(tracer) : known(tracer, tracer_as(b, tracer));

	p->sessions[at].name = name;
	p->sessions[at].s = s_as(b, pid, at ? name : "sess");
	return p->sessions[at].s;
}

static void step_session(struct play *p, struct tw_term step)
{
	make_session(p, name_in(step, 1), name_in(step, 2));
}

static void step_in(struct play *p, struct tw_term step)
{
	struct sess *outer = p->s;

	p->s = session_named(p, name_in(step, 1));
	play_all(p, part(step, 2));
	p->s = outer;
}

static void step_destroy(struct play *p, struct tw_term step)
{
	tell(p, destroy(p->b, session_named(p, name_in(step, 1))));
}

/* {destroy_weak,S}: by its number, which stays true when it is gone. */
static void step_destroy_weak(struct play *p, struct tw_term step)
{
	struct sess *s = session_named(p, name_in(step, 1));

	if (s->twin)
		tw_session_destroy_weak(tw_session_weak_of(s->twin->session));
	tell(p, answer(p->b, tw_session_destroy_weak(tw_session_weak_of(s->session))));
}

static void step_session_info(struct play *p, struct tw_term step)
{
	tell(p, session_info(p->b, p->s, with_pids(p->b, part(step, 1))));
}

/* The name of the session, as the list of all shows it; none: it is not there. */
static void step_listed(struct play *p, struct tw_term step)
{
	struct tw_term list, found = tw_term_atom_z("none");

	(void)step;
	tw_session_info(tw_term_atom_z("all"), &p->b->arena, &list);
	for (; tw_term_type(list) == TW_TYPE_CONS; list = tw_term_tail(list)) {
		uint64_t id = 0;

		if (!tw_term_get_uint64(part(tw_term_head(list), 1), &id) && id == tw_session_weak_of(p->s->session))
			found = part(tw_term_head(list), 0);
	}
	tell(p, lit(p->b, "{listed,%t}", found));
}

/* ---- settings ---- */

/* ["a", "b"] as "a,b"; NULL: no list, or a list with other elements. */
static const char *names_in(struct tw_term list, char *text, size_t bytes)
{
	*text = '\0';
	for (; tw_term_type(list) == TW_TYPE_CONS; list = tw_term_tail(list)) {
		if (!*name_of(tw_term_head(list)))
			return NULL;
		snprintf(text + strlen(text), bytes - strlen(text), "%s%s", *text ? "," : "",
			 name_of(tw_term_head(list)));
	}
	return tw_term_type(list) == TW_TYPE_NIL ? text : NULL;
}

/* 0 is nobody. */
static tw_pid pid_in(const char *who)
{
	return !strcmp(who, "existing") ? TW_PID_EXISTING
	       : !strcmp(who, "new")	? TW_PID_NEW
	       : !strcmp(who, "all")	? TW_PID_ALL
	       : *who == '@'		? trace_pid(pid_named(who + 1))
					: 0;
}

/* The compiler refuses in C any value that is neither a boolean nor a list. */
static int64_t set_process(struct play *p, struct tw_term step)
{
	tw_pid pid = pid_in(name_in(step, 1));
	char flags[512];

	if (tw_term_type(part(step, 2)) != TW_TYPE_ATOM)
		return TW_EBADARG;
	return trace_process(p->s, pid, lit_is(part(step, 2), "true"), names_in(part(step, 3), flags, sizeof flags));
}

static void step_process(struct play *p, struct tw_term step)
{
	int64_t count = set_process(p, step);
	bool is_of_many = lit_is(part(step, 1), "existing") || lit_is(part(step, 1), "all");

	tell_result(p, is_of_many && count > 0 ? 1 : count);
}

/* Is the count that of all processes?  The number is asked of the session before: flags that it has not are taken off. */
static void step_everybody(struct play *p, struct tw_term step)
{
	int64_t there = trace_process(p->s, TW_PID_EXISTING, false, "silent"), count = set_process(p, step);

	tell(p, lit(p->b, "{everybody,%t}", boolean(there > 0 && count == there)));
}

static const char *simple_spec(struct tw_term spec)
{
	return tw_term_type(spec) == TW_TYPE_NIL ? "[]" : name_of(spec);
}

/* "m:f/1"; false: neither that nor on_load, which the compiler refuses in C. */
static bool text_of(struct tw_term mfa, char *text, size_t bytes)
{
	struct tw_term arity = part(mfa, 2);
	bool is_any = lit_is(arity, "_");

	if (lit_is(mfa, "on_load"))
		snprintf(text, bytes, "on_load");
	else if (tw_term_tuple_count(mfa) == 3 && (is_any || tw_term_type(arity) == TW_TYPE_INTEGER))
		snprintf(text, bytes, "%s:%s/%s", name_in(mfa, 0), name_in(mfa, 1), is_any ? "_" : lit_text(arity));
	else
		return false;
	return true;
}

static void step_function(struct play *p, struct tw_term step)
{
	struct tw_term spec = part(step, 2);
	char text[300], options[200];
	int64_t result = TW_EBADARG;

	if (text_of(part(step, 1), text, sizeof text) && names_in(part(step, 3), options, sizeof options)) {
		if (tw_term_type(spec) == TW_TYPE_CONS)
			result = function_term(p->b, p->s, text, with_pids(p->b, spec), options);
		else
			result = function(p->b, p->s, text, simple_spec(spec), options);
	}
	tell_result(p, result);
}

static void step_send_pattern(struct play *p, struct tw_term step)
{
	struct tw_term spec = part(step, 1);

	tell_result(p, tw_term_type(spec) == TW_TYPE_CONS ? send_pattern_term(p->s, with_pids(p->b, spec))
							  : send_pattern(p->b, p->s, simple_spec(spec)));
}

static void step_recv_pattern(struct play *p, struct tw_term step)
{
	struct tw_term spec = part(step, 1);

	tell_result(p, tw_term_type(spec) == TW_TYPE_CONS ? recv_pattern_term(p->s, with_pids(p->b, spec))
							  : recv_pattern(p->b, p->s, simple_spec(spec)));
}

/* {port,Who,How,Flags} */
static void step_port(struct play *p, struct tw_term step)
{
	char flags[512];
	uint64_t port = lit_is(part(step, 1), "new") ? TW_PORT_NEW : TW_PORT_EXISTING;
	bool how = lit_is(part(step, 2), "true");

	tell_result(p, trace_port(p->s, port, how, names_in(part(step, 3), flags, sizeof flags)));
}

/* {system_monitor,Event,Value}: trace:system/3. */
static void step_system_monitor(struct play *p, struct tw_term step)
{
	struct tw_term event = part(step, 1), value = part(step, 2);
	int result = tw_trace_system(p->s->session, event, value);

	if (p->s->twin && tw_trace_system(p->s->twin->session, event, value) != result)
		wrong("the twin answers otherwise", step);
	tell_result(p, result ? result : 1);
}

static void step_tcw(struct play *p, struct tw_term step)
{
	(void)p;
	tw_trace_control_word_set((uint32_t)number_in(part(step, 1)));
}

/* ---- processes ---- */

static void step_tracee(struct play *p, struct tw_term step)
{
	known(name_in(step, 1), tracee(p->b, name_in(step, 1)));
}

static void step_run(struct play *p, struct tw_term step)
{
	(void)p;
	ops_run(name_in(step, 1), part(step, 2));
}

static void step_value(struct play *p, struct tw_term step)
{
	tell(p, lit(p->b, "{value,%t}", ops_run(name_in(step, 1), part(step, 2))));
}

static void step_start(struct play *p, struct tw_term step)
{
	(void)p;
	ops_start(name_in(step, 1), part(step, 2));
}

static void step_await(struct play *p, struct tw_term step)
{
	tell(p, lit(p->b, "{value,%t}", ops_await(name_in(step, 1))));
}

static void step_do(struct play *p, struct tw_term step)
{
	(void)p;
	ops_do(part(step, 1));
}

static void step_tell(struct play *p, struct tw_term step)
{
	send_to(p->b->me, pid_named(name_in(step, 1)), value_in(part(step, 2)));
}

static void step_wait(struct play *p, struct tw_term step)
{
	(void)p;
	pause_ms((unsigned)number_in(part(step, 1)));
}

/* Waits until the library has forgotten it: its last event is made. */
static void step_gone(struct play *p, struct tw_term step)
{
	struct tw_term pid = pid_term(p->b, pid_named(name_in(step, 1))), list;

	for (unsigned i = 0; i < 60000; i++) {
		tw_session_info(pid, &p->b->arena, &list);
		if (lit_is(list, "undefined"))
			return;
		pause_ms(1);
	}
	wrong("it lives", pid);
}

static void step_kill(struct play *p, struct tw_term step)
{
	struct value pid = pid_named(name_in(step, 1));

	exit_signal(p->b->me, pid, ATOM(KILL));
	step_gone(p, step);
	listener_tracer_died(trace_pid(pid));
}

/* ---- answers ---- */

static void step_ev_now(struct play *p, struct tw_term step)
{
	(void)step;
	tell(p, events_of(p->b, p->s));
}

static void step_ev(struct play *p, struct tw_term step)
{
	ops_sync();
	step_ev_now(p, step);
}

/* The system tracer is that of the session, or none. */
static void step_system_tracer(struct play *p, struct tw_term step)
{
	tw_seq_set_system_tracer(lit_is(part(step, 1), "true") ? p->s->session : NULL, NULL);
}

/* The events of sequential tracing, sorted: those of branches that run side by side have no order. */
static void step_seq_ev(struct play *p, struct tw_term step)
{
	struct tw_term own[256];
	size_t count = 0;

	(void)step;
	ops_sync();
	for (struct tw_term rest = ev_now(p->b, p->s); tw_term_type(rest) == TW_TYPE_CONS; rest = tw_term_tail(rest))
		if (lit_is(tw_term_element(tw_term_head(rest), 0), "seq_trace") && count < 256)
			own[count++] = made_plain(p->b, tw_term_head(rest));
	tell(p, sorted(p->b, list_of(p->b, own, count)));
}

static void step_tags(struct play *p, struct tw_term step)
{
	(void)step;
	tell(p, elements(p->b, 3, events_of(p->b, p->s)));
}

static void step_count(struct play *p, struct tw_term step)
{
	struct tw_term events = events_of(p->b, p->s);

	(void)step;
	tell(p, lit(p->b, "{count,%d}", (int)lit_count(events)));
}

static void step_only(struct play *p, struct tw_term step)
{
	struct tw_term all[64], rest;
	size_t count = 0;

	for (rest = events_of(p->b, p->s); tw_term_type(rest) == TW_TYPE_CONS && count < 64; rest = tw_term_tail(rest))
		if (lit_is(part(tw_term_head(rest), 2), name_in(step, 1)))
			all[count++] = tw_term_head(rest);
	tell(p, list_of(p->b, all, count));
}

/* {monitored,P}: what monitors say of P: {Event,Value}, and of sizes their keys. */
static void step_monitored(struct play *p, struct tw_term step)
{
	struct tw_term all[64], rest;
	size_t count = 0;

	for (rest = events_of(p->b, p->s); tw_term_type(rest) == TW_TYPE_CONS && count < 64;
	     rest = tw_term_tail(rest)) {
		struct tw_term event = tw_term_head(rest), value = part(event, 3);

		if (!lit_is(part(event, 0), "monitor") || !lit_is(part(event, 1), name_in(step, 1)))
			continue;
		if (tw_term_type(value) == TW_TYPE_CONS)
			value = sorted(p->b, elements(p->b, 1, value));
		all[count++] = lit(p->b, "{%t,%t}", part(event, 2), value);
	}
	tell(p, list_of(p->b, all, count));
}

/* {last,Step}: of the list that it tells. */
static void step_last(struct play *p, struct tw_term step)
{
	struct tw_term list;

	play_all(p, LIST(p->b, part(step, 1)));
	list = p->told[p->count - 1];
	p->told[p->count - 1] = lit_count(list) ? lit_nth(list, lit_count(list) - 1) : list;
}

static void step_alone(struct play *p, struct tw_term step)
{
	(void)p, (void)step;
}

/* in, out, in, out ... in any case: it may be running already when it gets the flag. */
static void step_alternating(struct play *p, struct tw_term step)
{
	struct tw_term rest = events_of(p->b, p->s), last = {0};
	bool is_right = lit_count(rest) >= (size_t)number_in(part(step, 1));

	for (; tw_term_type(rest) == TW_TYPE_CONS; rest = tw_term_tail(rest)) {
		struct tw_term tag = part(tw_term_head(rest), 2);

		is_right = is_right && !tw_term_is_same(tag, last) && (lit_is(tag, "in") || lit_is(tag, "out"));
		last = tag;
	}
	tell(p, lit(p->b, "{alternating,%t}", boolean(is_right)));
}

/* {delivered,Who}: the process that the mark names, and how many events came before it. */
static void step_delivered(struct play *p, struct tw_term step)
{
	tw_pid pid = pid_in(name_in(step, 1));
	struct tw_term message, mark;
	uint64_t reference;
	int count = 0, error = tw_delivered(p->s->session, pid, &reference);

	if (error) {
		tell(p, answer(p->b, error));
		return;
	}
	mark = tw_delivered_term(&p->b->arena, reference);
	while (!tw_queue_receive(p->s->session, UINT64_C(60000000000), &p->b->arena, &message))
		if (!lit_is(part(message, 0), "trace_delivered"))
			count++;
		else if (tw_term_is_equal(part(message, 2), mark))
			break;
	tell(p, lit(p->b, "{delivered,%t,%d}", named(p->b, part(message, 1)), count));
}

static void step_info(struct play *p, struct tw_term step)
{
	tell(p, info_of(p->b, p->s, with_pids(p->b, part(step, 1)), name_in(step, 2)));
}

static void step_all_info(struct play *p, struct tw_term step)
{
	(void)step;
	tell(p, all_info(p->b, p->s));
}

static void step_get_tcw(struct play *p, struct tw_term step)
{
	(void)step;
	tell(p, lit(p->b, "{tcw,%d}", (int)tw_trace_control_word_get()));
}

/* ---- steps of steps ---- */

struct variable {
	const char *name;
	struct tw_term value;
};

static struct tw_term value_for(struct tw_arena *arena, struct tw_term term, void *context)
{
	const struct variable *variable = context;

	(void)arena;
	return lit_is(term, variable->name) ? variable->value : (struct tw_term){0};
}

static void step_each(struct play *p, struct tw_term step)
{
	struct variable variable = {.name = name_in(step, 1)};

	for (struct tw_term rest = part(step, 2); tw_term_type(rest) == TW_TYPE_CONS; rest = tw_term_tail(rest)) {
		variable.value = tw_term_head(rest);
		play_all(p, lit_map(&p->b->arena, part(step, 3), value_for, &variable));
	}
}

static void step_results(struct play *p, struct tw_term step)
{
	p->tells_all = true;
	play_all(p, part(step, 1));
	p->tells_all = false;
}

static void step_times(struct play *p, struct tw_term step)
{
	for (int64_t i = 0; i < number_in(part(step, 1)); i++)
		play_all(p, part(step, 2));
}

static const struct {
	const char *verb;
	step_fn *play;
} verbs[] = {
	{"session", step_session},
	{"in", step_in},
	{"destroy", step_destroy},
	{"destroy_weak", step_destroy_weak},
	{"session_info", step_session_info},
	{"listed", step_listed},
	{"process", step_process},
	{"function", step_function},
	{"send_pattern", step_send_pattern},
	{"recv_pattern", step_recv_pattern},
	{"everybody", step_everybody},
	{"port", step_port},
	{"system_monitor", step_system_monitor},
	{"tcw", step_tcw},
	{"tracee", step_tracee},
	{"run", step_run},
	{"value", step_value},
	{"start", step_start},
	{"await", step_await},
	{"do", step_do},
	{"tell", step_tell},
	{"wait", step_wait},
	{"gone", step_gone},
	{"kill", step_kill},
	{"ev", step_ev},
	{"ev_now", step_ev_now},
	{"tags", step_tags},
	{"system_tracer", step_system_tracer},
	{"seq_ev", step_seq_ev},
	{"count", step_count},
	{"only", step_only},
	{"monitored", step_monitored},
	{"last", step_last},
	{"alone", step_alone},
	{"alternating", step_alternating},
	{"delivered", step_delivered},
	{"info", step_info},
	{"all_info", step_all_info},
	{"get_tcw", step_get_tcw},
	{"each", step_each},
	{"results", step_results},
	{"times", step_times},
};

static void play_one(struct play *p, struct tw_term step)
{
	const char *verb = name_of(tw_term_type(step) == TW_TYPE_ATOM ? step : part(step, 0));

	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
		if (!strcmp(verbs[i].verb, verb)) {
			verbs[i].play(p, step);
			return;
		}
	wrong("no step", step);
}

static void play_all(struct play *p, struct tw_term steps)
{
	for (; tw_term_type(steps) == TW_TYPE_CONS; steps = tw_term_tail(steps))
		play_one(p, tw_term_head(steps));
}

struct tw_term play_steps(struct bed *b, struct tw_term steps)
{
	struct play *p = calloc(1, sizeof *p);
	struct tw_term list;

	p->b = b;
	ops_begin(b);
	known("me", self_pid(b->me));
	p->s = make_session(p, "s", "t");
	play_all(p, steps);
	list = list_of(b, p->told, p->count);
	free(p);
	return list;
}
