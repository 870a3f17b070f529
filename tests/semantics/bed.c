/* SPDX-License-Identifier: Apache-2.0 */
#include "bed.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void want(bool is_right, const char *what, int64_t result)
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

/* Processes that spawn name their children while the tester shows what came before; a name in the table stays as it is. */
static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;

static void add_name(struct bed *b, uint64_t number, const char *name)
{
	pthread_mutex_lock(&names_lock);
	want(b->name_count < NAMES_MAX, "too many names", (int64_t)b->name_count);
	b->names[b->name_count].pid = number;
	b->names[b->name_count++].name = name;
	pthread_mutex_unlock(&names_lock);
}

static size_t count_names(const struct bed *b)
{
	pthread_mutex_lock(&names_lock);
	size_t count = b->name_count;
	pthread_mutex_unlock(&names_lock);
	return count;
}

void name_it(struct bed *b, struct value pid, const char *name)
{
	add_name(b, trace_pid(pid), name);
}

void name_port(struct bed *b, uint64_t port, const char *name)
{
	add_name(b, tw_port_number(port), name);
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
		for (size_t i = 0, count = count_names(b); i < count; i++)
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
