/* SPDX-License-Identifier: Apache-2.0 */
/* system_scenarios.c - docs/semantics.md R: monitors of the system. */
#include "bed.h"

#include <sys/mman.h>
#include <unistd.h>

/* {error,badarg} or ok, of the session and its twin. */
static struct tw_term set_monitor(struct bed *b, struct sess *s, struct tw_term event, struct tw_term value)
{
	int error = tw_trace_system(s->session, event, value);

	if (s->twin && tw_trace_system(s->twin->session, event, value) != error)
		return tw_term_atom_z("twins_differ");
	return error ? lit(b, "{error,badarg}") : tw_term_atom_z("ok");
}

static struct tw_term set_text(struct bed *b, struct sess *s, const char *event, const char *value)
{
	return set_monitor(b, s, tw_term_atom_z(event), lit(b, value));
}

static struct tw_term s_system_basic(struct bed *b)
{
	static const char *const set[][2] = {{"long_gc", "10"},
					     {"long_gc", "0"},
					     {"long_gc", "true"},
					     {"long_gc", "-1"},
					     {"long_schedule", "5"},
					     {"large_heap", "1000"},
					     {"busy_port", "true"},
					     {"busy_port", "1"},
					     {"busy_dist_port", "true"},
					     {"long_message_queue", "{1,2}"},
					     {"long_message_queue", "{2,2}"},
					     {"long_message_queue", "{0,1}"},
					     {"long_message_queue", "{-1,1}"},
					     {"long_message_queue", "5"},
					     {"long_message_queue", "true"},
					     {"foo", "true"}};
	static const char *const events[] = {"long_gc",	  "long_schedule",  "large_heap",
					     "busy_port", "busy_dist_port", "long_message_queue"};
	struct sess *s = s(b, tracer_as(b, "t"));
	struct tw_term first[16], second[6], shown_first, shown_second;

	for (unsigned i = 0; i < 16; i++)
		first[i] = set_text(b, s, set[i][0], set[i][1]);
	shown_first = info(b, s, lit(b, "system"), "all");
	for (unsigned i = 0; i < 6; i++)
		second[i] = set_text(b, s, events[i], "false");
	shown_second = info(b, s, lit(b, "system"), "all");
	return lit(b, "{%t,%t,%t,%t,%t}", list_of(b, first, 16), shown_first, list_of(b, second, 6), shown_second,
		   destroy(b, s));
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
	first = set_text(b, &port, "busy_port", "true");
	second = set_text(b, &none, "busy_port", "true");
	tw_session_destroy(port.session);
	tw_session_put(port.session);
	tw_session_destroy(none.session);
	tw_session_put(none.session);
	close(tracer.stream_fd);
	return lit(b, "{port_tracer,%t,undefined_tracer,%t}", first, second);
}

static void send_many(struct bed *b, struct value to, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		send_to(b->me, to, atom("x"));
	pause_ms(20);
}

/* {take, N, From}: takes so many. */
static void take(struct bed *b, struct value from, unsigned count)
{
	struct value message;

	send_to(b->me, from, TUPLE(heap_of(b->me), atom("take"), integer(count), self_pid(b->me)));
	do {
		if (!outside_receive(b->me, 60000, &message))
			break;
	} while (!is_same(message, atom("taken")));
	pause_ms(20);
}

/* The values of the monitor's messages about p. */
static struct tw_term values(struct bed *b, struct sess *s)
{
	struct tw_term all[64];
	size_t count = 0;

	for (struct tw_term events = ev_now(b, s); tw_term_type(events) == TW_TYPE_CONS;
	     events = tw_term_tail(events)) {
		struct tw_term event = tw_term_head(events);

		if (lit_is(tw_term_element(event, 0), "monitor") && lit_is(tw_term_element(event, 1), "p") &&
		    count < 64)
			all[count++] = tw_term_element(event, 3);
	}
	return list_of(b, all, count);
}

static struct value queue_process(struct bed *b)
{
	struct value p = spawn(b->me, &tro_lmq);

	name_it(b, p, "p");
	return p;
}

static struct tw_term s_lmq_two_sessions(struct bed *b)
{
	struct sess *s1 = s(b, tracer_as(b, "t1")), *s2 = s(b, tracer_as(b, "t2"));
	struct tw_term got[4][2], settings;
	struct value p;

	set_text(b, s1, "long_message_queue", "{2,4}");
	set_text(b, s2, "long_message_queue", "{5,10}");
	p = queue_process(b);
	for (unsigned i = 0; i < 4; i++) {
		if (i < 2)
			send_many(b, p, 6);
		else
			take(b, p, i == 2 ? 8 : 4);
		got[i][0] = values(b, s1);
		got[i][1] = values(b, s2);
	}
	settings = info(b, s1, lit(b, "system"), "all");
	return lit(b, "{{%t,%t},{%t,%t},{%t,%t},{%t,%t},%t}", got[0][0], got[0][1], got[1][0], got[1][1], got[2][0],
		   got[2][1], got[3][0], got[3][1], settings);
}

static struct tw_term s_line_188_queue_of_an_actor(struct bed *b)
{
	struct sess *s = s(b, tracer_as(b, "t"));
	struct tw_term got[6];
	struct value p;

	set_text(b, s, "long_message_queue", "{5,10}");
	p = queue_process(b);
	send_many(b, p, 9);
	got[0] = values(b, s);
	send_many(b, p, 1);
	got[1] = values(b, s);
	send_many(b, p, 5);
	take(b, p, 9);
	got[2] = values(b, s);
	take(b, p, 1);
	got[3] = values(b, s);
	send_many(b, p, 4);
	got[4] = values(b, s);
	send_many(b, p, 1);
	got[5] = values(b, s);
	return list_of(b, got, 6);
}

static struct tw_term s_line_190_exit_of_a_long_queue(struct bed *b)
{
	struct sess *s = s(b, tracer_as(b, "t"));
	struct value p;
	struct tw_term before;

	set_text(b, s, "long_message_queue", "{0,1}");
	p = queue_process(b);
	send_many(b, p, 3);
	before = values(b, s);
	kill_it(b, p);
	pause_ms(20);
	return lit(b, "{%t,%t}", before, values(b, s));
}

CODE(grows_and_collects)
{
	struct value list = NIL;

	(void)env;
	KEEP(self, list);
	for (unsigned i = 0; i < 60000; i++) {
		if (i % 512 == 0)
			garbage_collect(self);
		list = cons(heap_of(self), integer(1), list);
	}
	garbage_collect(self);
	return ATOM(OK);
}

/* A heap of 16,384 words and more: its keys; another session's limit is not reached. */
static struct tw_term s_line_192_collections_of_an_actor(struct bed *b)
{
	struct sess *s1 = s(b, tracer_as(b, "t1")), *s2 = s(b, tracer_as(b, "t2"));
	struct value p = tracee(b, "p");
	struct tw_term events, event = {0};

	set_text(b, s1, "large_heap", "0");
	set_text(b, s2, "large_heap", "1000000000000");
	run(b, p, grows_and_collects);
	for (events = ev(b, s1); tw_term_type(events) == TW_TYPE_CONS; events = tw_term_tail(events))
		if (lit_is(tw_term_element(tw_term_head(events), 1), "p"))
			event = tw_term_head(events);
	if (tw_term_tuple_count(event) != 4)
		return tw_term_atom_z("none");
	return lit(b, "{%t,%t,%t,%t,%t}", tw_term_element(event, 0), tw_term_element(event, 1),
		   tw_term_element(event, 2), sorted(b, elements(b, 1, tw_term_element(event, 3))), ev(b, s2));
}

const struct scenario system_scenarios[] = {
	SCENARIO(s_system_basic),
	SCENARIO(s_system_tracer_kind),
	SCENARIO(s_lmq_two_sessions),
	SCENARIO(s_line_188_queue_of_an_actor),
	SCENARIO(s_line_190_exit_of_a_long_queue),
	SCENARIO(s_line_192_collections_of_an_actor),
	{0},
};
