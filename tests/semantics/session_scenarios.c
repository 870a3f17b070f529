/* SPDX-License-Identifier: Apache-2.0 */
/* session_scenarios.c - handles of sessions and arguments of C: docs/semantics.md A, B, R. */
#include "bed.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

/* In place of a port that is a tracer: a stream. */
static struct tw_term s_system_tracer_kind(struct bed *b)
{
	struct tw_tracer tracer = {.kind = TW_TRACER_STREAM};
	struct sess port = {0}, none = {0};
	struct tw_term first, second;

	tracer.stream_fd = memfd_create("stream", 0);
	tw_session_create("port", &tracer, &port.session);
	tw_session_create("none", NULL, &none.session);
	first = answer(b, tw_trace_system(port.session, tw_term_atom_z("busy_port"), boolean(true)));
	second = answer(b, tw_trace_system(none.session, tw_term_atom_z("busy_port"), boolean(true)));
	tw_session_destroy(port.session);
	tw_session_put(port.session);
	tw_session_destroy(none.session);
	tw_session_put(none.session);
	close(tracer.stream_fd);
	return lit(b, "{port_tracer,%t,undefined_tracer,%t}", first, second);
}

const struct scenario session_scenarios[] = {
	SCENARIO(s_session_create_badarg),
	SCENARIO(s_session_same_name),
	SCENARIO(s_destroy_badarg),
	SCENARIO(s_system_tracer_kind),
	SCENARIO(s_weak_handle),
	SCENARIO(s_gc_destroys),
	SCENARIO(s_gc_weak_does_not_keep),
	SCENARIO(s_strong_in_other_process_keeps),
	{0},
};
