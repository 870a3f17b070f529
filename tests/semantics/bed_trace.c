/* SPDX-License-Identifier: Apache-2.0 */
/* bed_trace.c - OTP's trace: calls, for a session and its twin, and the events that both receive. */
#include "bed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends tests that hang; nothing else depends on it. */
#define WAIT_NS UINT64_C(60000000000)

/* ---- flags, functions, messages ---- */

/* One by one: comma-separated names. */
static bool next_name(const char **text, char *name, size_t bytes)
{
	size_t length = strcspn(*text, ",");

	if (!**text)
		return false;
	snprintf(name, bytes, "%.*s", (int)length, *text);
	*text += length + ((*text)[length] == ',');
	return true;
}

static bool flags_of(const char *text, uint32_t *flags)
{
	char name[64];

	*flags = 0;
	while (next_name(&text, name, sizeof name)) {
		uint32_t flag = tw_process_flag_named(name);

		if (!flag)
			return false;
		*flags |= flag;
	}
	return true;
}

int64_t trace_process(struct sess *s, tw_pid who, bool how, const char *flags)
{
	uint32_t bits;
	int result;

	/* Invalid flags have no number: an unknown one is passed instead. */
	if (!flags || !flags_of(flags, &bits))
		bits = UINT32_C(1) << 31;
	result = tw_trace_process(s->session, who, how, bits);
	if (s->twin)
		want(tw_trace_process(s->twin->session, who, how, bits) == result, "the twin answers otherwise",
		     result);
	return result;
}

int64_t trace_port(struct sess *s, uint64_t port, bool how, const char *flags)
{
	uint32_t bits;
	int result;

	if (!flags || !flags_of(flags, &bits))
		bits = UINT32_C(1) << 31;
	result = tw_trace_port(s->session, port, how, bits);
	if (s->twin)
		want(tw_trace_port(s->twin->session, port, how, bits) == result, "the twin answers otherwise", result);
	return result;
}

int64_t process(struct bed *b, struct sess *s, struct value pid, bool how, const char *flags)
{
	(void)b;
	return trace_process(s, trace_pid(pid), how, flags);
}

struct mfa {
	char module[64], function[64];
	int arity;
};

static struct mfa mfa_of(const char *text)
{
	struct mfa mfa;
	const char *colon = strchr(text, ':'), *slash = strrchr(text, '/');

	snprintf(mfa.module, sizeof mfa.module, "%.*s", (int)(colon - text), text);
	snprintf(mfa.function, sizeof mfa.function, "%.*s", (int)(slash - colon - 1), colon + 1);
	mfa.arity = slash[1] == '_' ? TW_ARITY_ANY : atoi(slash + 1);
	return mfa;
}

static bool kinds_of(const char *text, uint32_t *kinds)
{
	static const struct {
		const char *name;
		uint32_t kind;
	} names[] = {
		{"local", TW_FUNCTION_LOCAL},	      {"global", TW_FUNCTION_GLOBAL},
		{"meta", TW_FUNCTION_META},	      {"call_count", TW_FUNCTION_CALL_COUNT},
		{"call_time", TW_FUNCTION_CALL_TIME}, {"call_memory", TW_FUNCTION_CALL_MEMORY},
	};
	char name[64];

	*kinds = 0;
	while (next_name(&text, name, sizeof name)) {
		uint32_t kind = 0;

		for (size_t i = 0; i < sizeof names / sizeof *names; i++)
			if (!strcmp(names[i].name, name))
				kind = names[i].kind;
		if (!kind)
			return false;
		*kinds |= kind;
	}
	return true;
}

static bool simple_of(const char *spec, enum tw_match *match)
{
	static const char *const names[] = {"false", "true", "restart", "pause"};

	for (unsigned i = 0; i < 4; i++)
		if (!strcmp(spec, names[i])) {
			*match = (enum tw_match)i;
			return true;
		}
	return false;
}

static int64_t set_function(struct tw_session *session, const char *mfa, enum tw_match match,
			    const struct tw_match_program *program, uint32_t kinds)
{
	struct mfa names;

	if (!strcmp(mfa, "on_load"))
		return tw_trace_on_load(session, match, program, kinds);
	names = mfa_of(mfa);
	if (program)
		return tw_trace_function_match(session, names.module, names.function, names.arity, program, kinds);
	return tw_trace_function(session, names.module, names.function, names.arity, match, kinds);
}

static int64_t function_both(struct sess *s, const char *mfa, enum tw_match match,
			     const struct tw_match_program *program, uint32_t kinds)
{
	int64_t result = set_function(s->session, mfa, match, program, kinds);

	if (s->twin)
		want(set_function(s->twin->session, mfa, match, program, kinds) == result, "the twin answers otherwise",
		     result);
	return result;
}

int64_t function_term(struct bed *b, struct sess *s, const char *mfa, struct tw_term spec, const char *options)
{
	struct tw_match_program *program;
	uint32_t kinds;
	int error;

	if (!kinds_of(options, &kinds))
		return TW_EBADARG;
	error = tw_match_compile(spec, NULL, &program, NULL);
	if (error)
		return error;
	want(b->program_count < PROGRAMS_MAX, "too many match specifications", (int64_t)b->program_count);
	b->programs[b->program_count++] = program;
	return function_both(s, mfa, TW_MATCH_TRUE, program, kinds);
}

int64_t function(struct bed *b, struct sess *s, const char *mfa, const char *spec, const char *options)
{
	enum tw_match match;
	uint32_t kinds;

	if (!kinds_of(options, &kinds))
		return TW_EBADARG;
	if (!strcmp(spec, "[]"))
		spec = "true";
	if (simple_of(spec, &match))
		return function_both(s, mfa, match, NULL, kinds);
	return function_term(b, s, mfa, lit(b, spec), options);
}

static int64_t set_messages(struct sess *s, int (*simple)(struct tw_session *, enum tw_match),
			    int (*text)(struct tw_session *, const char *, size_t, struct tw_match_error *),
			    const char *spec)
{
	enum tw_match match;
	int result = simple_of(spec, &match) ? simple(s->session, match) : text(s->session, spec, strlen(spec), NULL);

	if (s->twin)
		want((simple_of(spec, &match) ? simple(s->twin->session, match)
					      : text(s->twin->session, spec, strlen(spec), NULL)) == result,
		     "the twin answers otherwise", result);
	return result;
}

int64_t send_pattern(struct bed *b, struct sess *s, const char *spec)
{
	(void)b;
	return set_messages(s, tw_trace_send, tw_trace_send_text, spec);
}

int64_t recv_pattern(struct bed *b, struct sess *s, const char *spec)
{
	(void)b;
	return set_messages(s, tw_trace_recv, tw_trace_recv_text, spec);
}

int64_t send_pattern_term(struct sess *s, struct tw_term spec)
{
	int result = tw_trace_send_spec(s->session, spec, NULL);

	if (s->twin)
		want(tw_trace_send_spec(s->twin->session, spec, NULL) == result, "the twin answers otherwise", result);
	return result;
}

int64_t recv_pattern_term(struct sess *s, struct tw_term spec)
{
	int result = tw_trace_recv_spec(s->session, spec, NULL);

	if (s->twin)
		want(tw_trace_recv_spec(s->twin->session, spec, NULL) == result, "the twin answers otherwise", result);
	return result;
}

/* ---- queries ---- */

struct tw_term info(struct bed *b, struct sess *s, struct tw_term what, const char *item)
{
	struct tw_term out;
	int error = tw_trace_info(s->session, what, tw_term_atom_z(item), &b->arena, &out);

	want(!error || error == TW_EBADARG || error == TW_EDEAD, "info", error);
	return error ? tw_term_atom_z("badarg") : named(b, out);
}

struct tw_term session_info(struct bed *b, struct sess *s, struct tw_term what)
{
	struct tw_term list;
	int error = tw_session_info(what, &b->arena, &list);
	bool is_member = false;

	if (error)
		return answer(b, error);
	if (tw_term_type(list) == TW_TYPE_ATOM)
		return list;
	for (size_t i = 0; i < lit_count(list); i++) {
		uint64_t id = 0;

		tw_term_get_uint64(tw_term_element(lit_nth(list, i), 1), &id);
		is_member |= id == tw_session_weak_of(s->session);
	}
	return lit(b, "{member,%t}", boolean(is_member));
}

/* ---- the tracer's events ---- */

struct events {
	struct tw_term terms[4096];
	size_t count;
};

static bool is_mark(struct tw_term term, struct tw_term mark)
{
	return tw_term_tuple_count(term) == 3 && lit_is(tw_term_element(term, 0), "trace_delivered") &&
	       tw_term_is_equal(tw_term_element(term, 2), mark);
}

/* Up to the mark; if there can be none (the tracer or the session is gone), everything. */
static void drain(struct bed *b, const struct sess *s, struct events *events)
{
	struct tw_session *session = s->session;
	uint64_t reference;
	bool has_mark = tw_delivered(session, TW_PID_ALL, &reference) == 0;
	struct tw_term message, mark = tw_delivered_term(&b->arena, reference);
	int error;

	if (s->listener) {
		size_t capacity = sizeof events->terms / sizeof *events->terms - events->count;
		size_t count = listener_take(s->listener, &b->arena, events->terms + events->count, capacity);

		for (; count > 0; count--, events->count++)
			events->terms[events->count] = named(b, events->terms[events->count]);
		return;
	}
	while (!(error = tw_queue_receive(session, has_mark ? WAIT_NS : 0, &b->arena, &message))) {
		if (has_mark && is_mark(message, mark))
			return;
		if (lit_is(tw_term_element(message, 0), "trace_delivered"))
			continue;
		want(events->count < sizeof events->terms / sizeof *events->terms, "too many events", 0);
		events->terms[events->count++] = named(b, message);
	}
	want(!has_mark || error == TW_EPIPE, "the mark does not come", error);
}

/* Messages sent to the tracer as to any process. */
static void ask_collector(struct bed *b, struct value tracer, struct events *events)
{
	struct value message;
	struct heap *heap = heap_of(b->me);

	if (!is_alive(b->me, tracer))
		return;
	send_to(b->me, tracer, TUPLE(heap, atom("get"), self_pid(b->me)));
	want(outside_receive(b->me, 60000, &message), "the tracer does not answer", 0);
	for (; is_box(message, BOX_CONS); message = tail(message))
		events->terms[events->count++] = shown(b, head(message));
}

struct tw_term ev(struct bed *b, struct sess *s)
{
	pause_ms(20);
	return ev_now(b, s);
}

/*
 * Has the twin received the same? Those of one process in the same order: two processes that run at once may each be
 * ahead in one session and behind in the other.
 */
static bool are_twins(const struct events *events, const struct events *twins)
{
	bool *is_used = calloc(twins->count + 1, sizeof *is_used);
	bool result = events->count == twins->count;

	for (size_t i = 0; result && i < events->count; i++) {
		struct tw_term whose = tw_term_element(events->terms[i], 1);
		size_t at = 0;

		while (at < twins->count &&
		       (is_used[at] || !tw_term_is_equal(tw_term_element(twins->terms[at], 1), whose)))
			at++;
		result = at < twins->count && tw_term_is_equal(events->terms[i], twins->terms[at]);
		is_used[at] = true;
	}
	free(is_used);
	return result;
}

struct tw_term ev_now(struct bed *b, struct sess *s)
{
	struct events *events = calloc(1, sizeof *events), *twins = calloc(1, sizeof *twins);
	struct tw_term list, other;

	ask_collector(b, s->tracer, events);
	twins->count = events->count;
	memcpy(twins->terms, events->terms, sizeof *events->terms * events->count);
	drain(b, s, events);
	list = list_of(b, events->terms, events->count);
	if (s->twin) {
		drain(b, s->twin, twins);
		other = list_of(b, twins->terms, twins->count);
		if (!are_twins(events, twins)) {
			fprintf(stderr, "bed: the twin received\n  %s\nand not\n  %s\n", lit_text(other),
				lit_text(list));
			exit(1);
		}
	}
	free(events);
	free(twins);
	return list;
}
