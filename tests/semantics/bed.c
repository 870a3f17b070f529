/* SPDX-License-Identifier: Apache-2.0 */
#include "bed.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Ends tests that hang; nothing else depends on it. */
#define WAIT_NS UINT64_C(60000000000)
#define BATCH	256

static void want(bool is_right, const char *what, int64_t result)
{
	if (is_right)
		return;
	fprintf(stderr, "bed: %s: %lld (%s)\n", what, (long long)result, result < 0 ? tw_strerror((int)result) : "");
	exit(1);
}

static void nap(unsigned ms)
{
	const struct timespec time = {ms / 1000, (long)(ms % 1000) * 1000000};

	nanosleep(&time, NULL);
}

/* A thread that waits for a processor does not sleep: R in its line of /proc. */
static bool is_at_work(const char *task)
{
	char path[300], line[512] = "";
	const char *state;
	FILE *file;

	snprintf(path, sizeof path, "/proc/self/task/%s/stat", task);
	file = fopen(path, "re");
	if (!file)
		return false;
	state = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
	fclose(file);
	return state && state[1] && (state[2] == 'R' || state[2] == 'D') && atoi(task) != gettid();
}

static bool is_anybody_at_work(void)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *task;
	bool found = false;

	while (tasks && !found && (task = readdir(tasks)))
		found = task->d_name[0] != '.' && is_at_work(task->d_name);
	if (tasks)
		closedir(tasks);
	return found;
}

void pause_ms(unsigned ms)
{
	nap(ms);
	for (unsigned i = 0; i < 5000 && is_anybody_at_work(); i++)
		nap(1);
}

/* ---- processes ---- */

void name_it(struct bed *b, struct value pid, const char *name)
{
	want(b->name_count < NAMES_MAX, "too many names", (int64_t)b->name_count);
	b->names[b->name_count].pid = trace_pid(pid);
	b->names[b->name_count++].name = name;
}

void name_port(struct bed *b, uint64_t port, const char *name)
{
	want(b->name_count < NAMES_MAX, "too many names", (int64_t)b->name_count);
	b->names[b->name_count].pid = tw_port_number(port);
	b->names[b->name_count++].name = name;
}

struct value tracee(struct bed *b, const char *name)
{
	struct value pid = spawn(b->me, &run_loop);

	name_it(b, pid, name);
	return pid;
}

/* Collects messages sent to it, in order, and runs what is sent to be run; {get,From} asks for the messages. */
static struct value collect_messages(struct actor *self, const struct value *arguments)
{
	struct value list = NIL, message, reversed;

	(void)arguments;
	KEEP(self, list);
	for (;;) {
		message = receive(self);
		if (is_tagged(message, ATOM(RUN), 3)) {
			KEEP(self, message);
			struct value result = fun_call(self, element(message, 2));

			send_to(self, element(message, 1), TUPLE(heap_of(self), ATOM(RAN), self_pid(self), result));
			continue;
		}
		if (!is_tagged(message, atom("get"), 2)) {
			list = cons(heap_of(self), message, list);
			continue;
		}
		reversed = NIL;
		for (; is_box(list, BOX_CONS); list = tail(list))
			reversed = cons(heap_of(self), head(list), reversed);
		send_to(self, element(message, 1), reversed);
		list = NIL;
	}
	return NIL;
}
static struct function collector = FUNCTION("tro", "col", 0, collect_messages);

struct value tracer_as(struct bed *b, const char *name)
{
	struct value pid = spawn(b->me, &collector);

	name_it(b, pid, name);
	return pid;
}

void kill_it(struct bed *b, struct value pid)
{
	exit_signal(b->me, pid, ATOM(KILL));
	for (unsigned i = 0; i < 60000 && is_alive(b->me, pid); i++)
		pause_ms(1);
	want(!is_alive(b->me, pid), "a process does not die", 0);
	listener_tracer_died(trace_pid(pid));
	pause_ms(20);
}

struct value dead(struct bed *b, const char *name)
{
	struct value pid = spawn(b->me, &run_loop);

	if (name)
		name_it(b, pid, name);
	kill_it(b, pid);
	return pid;
}

struct value run_with(struct bed *b, struct value pid, fun_code *code, struct value environment)
{
	struct value result = outside_run(b->me, pid, code, environment, 60000);

	want(!is_none(result), "an actor does not answer", 0);
	return result;
}

/* ---- terms ---- */

struct tw_term boolean(bool is_true)
{
	return tw_term_bool(is_true);
}

struct tw_term pid_term(struct bed *b, struct value pid)
{
	return tw_term_pid(&b->arena, (uint32_t)trace_pid(pid), 0);
}

struct tw_term shown(struct bed *b, struct value value)
{
	return named(b, term_of(&b->arena, value));
}

struct tw_term list_of(struct bed *b, const struct tw_term *terms, size_t count)
{
	return tw_term_list(&b->arena, terms, count, tw_term_nil());
}

struct tw_term answer(struct bed *b, int64_t result)
{
	if (result >= 0)
		return tw_term_integer(&b->arena, result);
	want(result == TW_EBADARG || result == TW_EDEAD, "an error of another kind", result);
	return lit(b, "{error,badarg}");
}

static struct tw_term kind_of_time(struct tw_term time)
{
	int64_t mega = 0;

	switch (tw_term_tuple_count(time)) {
	case 3:
		want(!tw_term_get_int64(tw_term_element(time, 0), &mega), "a stamp of something else", 0);
		/* As a date it is later than 2001. */
		return tw_term_atom_z(mega < 1000 ? "cpu_ts" : "ts");
	case 2: return tw_term_atom_z("strict_mono");
	default: return tw_term_type(time) == TW_TYPE_INTEGER ? tw_term_atom_z("mono") : time;
	}
}

static struct tw_term name_change(struct tw_arena *arena, struct tw_term term, void *context)
{
	const struct bed *b = context;
	struct tw_identifier parts;
	const unsigned char *bytes;
	size_t count = tw_term_tuple_count(term), bits;
	struct tw_term inner[8];

	switch (tw_term_type(term)) {
	case TW_TYPE_REFERENCE: return tw_term_atom_z("ref");
	case TW_TYPE_FUN: return tw_term_atom_z("fun");
	case TW_TYPE_BITSTRING:
		return tw_term_get_bits(term, &bytes, &bits) == 0 && bits > 320 ? tw_term_atom_z("long_binary") : term;
	case TW_TYPE_PID:
	case TW_TYPE_PORT:
		tw_term_get_identifier(term, &parts);
		for (size_t i = 0; i < b->name_count; i++)
			if (b->names[i].pid == parts.words[0])
				return tw_term_atom_z(b->names[i].name);
		return tw_term_atom_z(tw_term_type(term) == TW_TYPE_PORT ? "a_port" : "a_pid");
	case TW_TYPE_TUPLE:
		/* {listener,{Tracer,Number}} stands for the tracer. */
		if (count == 2 && lit_is(tw_term_element(term, 0), "listener"))
			return lit_map(arena, tw_term_element(tw_term_element(term, 1), 0), name_change, context);
		if (!(count >= 5 && count <= 7 && lit_is(tw_term_element(term, 0), "trace_ts")) &&
		    !(count == 4 && lit_is(tw_term_element(term, 0), "seq_trace")))
			return (struct tw_term){0};
		for (size_t i = 0; i < count; i++)
			inner[i] = i + 1 < count ? lit_map(arena, tw_term_element(term, i), name_change, context)
						 : kind_of_time(tw_term_element(term, i));
		return tw_term_tuple(arena, inner, count);
	default: return (struct tw_term){0};
	}
}

struct tw_term named(struct bed *b, struct tw_term term)
{
	return lit_map(&b->arena, term, name_change, b);
}

struct tw_term sorted(struct bed *b, struct tw_term list)
{
	struct tw_term terms[128];
	size_t count = lit_count(list);

	for (size_t i = 0; i < count; i++) {
		struct tw_term term = lit_nth(list, i);
		size_t at = i;

		for (; at > 0 && tw_term_compare(terms[at - 1], term) > 0; at--)
			terms[at] = terms[at - 1];
		terms[at] = term;
	}
	return list_of(b, terms, count);
}

struct tw_term elements(struct bed *b, size_t n, struct tw_term list)
{
	struct tw_term terms[128];
	size_t count = lit_count(list);

	for (size_t i = 0; i < count; i++)
		terms[i] = tw_term_element(lit_nth(list, i), n - 1);
	return list_of(b, terms, count);
}

/* ---- sessions ---- */

static struct sess *make(struct bed *b, struct value tracer, const char *name)
{
	struct sess *s = &b->sessions[b->session_count++];
	struct tw_tracer options = {.kind = TW_TRACER_QUEUE, .tracer_pid = trace_pid(tracer)};
	int error;

	want(b->session_count <= SESSIONS_MAX, "too many sessions", (int64_t)b->session_count);
	*s = (struct sess){.tracer = tracer};
	if (b->has_modules)
		error = listener_open(name, options.tracer_pid, !is_alive(b->me, tracer), &s->session, &s->listener);
	else
		error = tw_session_create(name, &options, &s->session);
	want(!error, "no session", error);
	return s;
}

struct bed *bed_create(bool has_twins, bool has_modules)
{
	struct bed *b = calloc(1, sizeof *b);

	want(b != NULL, "no memory", 0);
	tw_arena_init(&b->arena, SIZE_MAX);
	b->has_twins = has_twins;
	b->has_modules = has_modules;
	b->makes_twins = true;
	b->runtime = runtime_start(&(struct runtime_options){.schedulers = 2});
	b->me = outside_create(b->runtime);
	name_it(b, self_pid(b->me), "me");
	return b;
}

void bed_destroy(struct bed *b)
{
	for (size_t i = 0; i < b->session_count; i++) {
		tw_session_destroy(b->sessions[i].session);
		tw_session_put(b->sessions[i].session);
		if (b->sessions[i].listener)
			listener_close(b->sessions[i].listener);
	}
	for (size_t i = 0; i < b->program_count; i++)
		tw_match_destroy(b->programs[i]);
	outside_destroy(b->me);
	runtime_stop(b->runtime);
	tw_arena_fini(&b->arena);
	free(b);
}

struct sess *s_as(struct bed *b, struct value tracer, const char *name)
{
	struct sess *s = make(b, tracer, name);

	if (b->has_twins && b->makes_twins)
		s->twin = make(b, tracer, name);
	return s;
}

struct st st(struct bed *b, const char *flags)
{
	struct st made;

	made.t = tracer_as(b, "t");
	made.s = s(b, made.t);
	made.p = tracee(b, "p");
	want(process(b, made.s, made.p, true, flags) == 1, "flags", 0);
	return made;
}

struct tw_term destroy(struct bed *b, struct sess *s)
{
	(void)b;
	if (s->twin)
		tw_session_destroy(s->twin->session);
	return boolean(tw_session_destroy(s->session) == 1);
}

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
	if (s->twin)
		tw_trace_send_spec(s->twin->session, spec, NULL);
	return tw_trace_send_spec(s->session, spec, NULL);
}

int64_t recv_pattern_term(struct sess *s, struct tw_term spec)
{
	if (s->twin)
		tw_trace_recv_spec(s->twin->session, spec, NULL);
	return tw_trace_recv_spec(s->session, spec, NULL);
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
		size_t room = sizeof events->terms / sizeof *events->terms - events->count;
		size_t count = listener_take(s->listener, &b->arena, events->terms + events->count, room);

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
	uint64_t words[4];
	struct heap *heap = heap_of(b->me);

	(void)words;
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
		if (!tw_term_is_equal(list, other)) {
			fprintf(stderr, "bed: the twin received\n  %s\nand not\n  %s\n", lit_text(other),
				lit_text(list));
			exit(1);
		}
	}
	free(events);
	free(twins);
	return list;
}
