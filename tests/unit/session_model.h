/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_model.h - what session_model_test.c knows of sessions, processes, ports and functions, and expects of them.
 *
 * tell_process() and tell_port() say the events of a step, in their order; check() and CHECK() compare answers.
 */
#ifndef TW_TESTS_SESSION_MODEL_H
#define TW_TESTS_SESSION_MODEL_H

#include "tests/unit/session_events.h"
#include "tracewheel/tracer.h"

#define SESSIONS  4
#define PROCESSES 6
#define PORTS	  4
#define FUNCTIONS 3
#define LINES	  64 /* of one step, in one session */

static struct tw_declared_function f[FUNCTIONS] = {
	TW_DECLARED_FUNCTION("model", "f0", 1),
	TW_DECLARED_FUNCTION("model", "f1", 1),
	TW_DECLARED_FUNCTION("model", "f2", 1),
};

/* ---- the model ---- */

struct setting {
	bool is_local, is_global, is_counted, is_paused;
	uint64_t count;
};

/* An event that a tracer module heard. */
struct heard {
	enum tw_tracer_tag tag;
	uint32_t number; /* the tracee's */
	struct tw_term term, extra;
};

struct session {
	bool is_there, has_module;
	struct bed bed; /* with a module: the session only */
	unsigned heard_count;
	struct heard heard[LINES];
	uint32_t new_flags, new_port_flags;
	bool sends, receives; /* patterns of messages: all, or none */
	struct setting functions[FUNCTIONS];
	unsigned line_count;
	char lines[LINES][128];
};

struct process {
	struct tw_process *process; /* NULL: none */
	char name[8];
	uint32_t flags[SESSIONS];
	bool is_sensitive, is_inside_port;
	int registered; /* a number; 0: no name */
};

struct port {
	tw_port port; /* 0: none */
	char name[8];
	uint32_t flags[SESSIONS];
	bool is_in;
	int registered;
};

static struct session sessions[SESSIONS];
static struct process processes[PROCESSES];
static struct port ports[PORTS];
static struct process *running; /* which process this thread runs; NULL: none */
static tw_port closed_port;	/* one that was open */
static unsigned names;

struct step {
	uint8_t verb;
	uint32_t a, b, c;
};

static char complaint[512]; /* the first difference; empty: none */

static void __attribute__((format(printf, 1, 2))) complain(const char *format, ...)
{
	va_list list;

	if (*complaint)
		return;
	va_start(list, format);
	vsnprintf(complaint, sizeof complaint, format, list);
	va_end(list);
}

static void check(int64_t is, int64_t should_be, const char *what)
{
	if (is != should_be)
		complain("%s: %lld, not %lld", what, (long long)is, (long long)should_be);
}
#define CHECK(call, should_be) check((call), (should_be), #call)

/* ---- what a tracer module hears ---- */

/* Until the end of the step, when what it has made has a name. */
static char heard_room[64 << 10];
static struct tw_arena heard_terms;

static void forget_heard(void)
{
	for (unsigned s = 0; s < SESSIONS; s++)
		sessions[s].heard_count = 0;
	tw_arena_init_fixed(&heard_terms, heard_room, sizeof heard_room);
}

static enum tw_tracer_answer always(enum tw_tracer_tag tag, struct tw_term state, struct tw_term tracee)
{
	return TW_TRACER_TRACE;
}

static void hear(enum tw_tracer_tag tag, struct tw_term state, struct tw_term tracee, struct tw_term term,
		 const struct tw_tracer_options *options)
{
	struct tw_identifier parts = {0};
	struct session *session;
	struct heard *heard;
	int64_t number = 0;

	tw_term_get_int64(state, &number);
	session = &sessions[number];
	if (session->heard_count == LINES)
		return;
	heard = &session->heard[session->heard_count++];
	*heard = (struct heard){.tag = tag};
	tw_term_get_identifier(tracee, &parts);
	heard->number = parts.words[0];
	tw_term_copy(&heard_terms, term, SIZE_MAX, &heard->term);
	if (!tw_term_is_none(options->extra))
		tw_term_copy(&heard_terms, options->extra, SIZE_MAX, &heard->extra);
}

static void open_module(struct session *session)
{
	static const struct tw_tracer_module module = {.bytes = sizeof module,
						       .name = "model",
						       .enabled = always,
						       .trace = hear};
	struct tw_tracer tracer = {.kind = TW_TRACER_MODULE,
				   .module = &module,
				   .state = tw_term_integer(NULL, session - sessions)};

	assert_int_equal(tw_session_create("model", &tracer, &session->bed.session), 0);
}

/* As read_lines() writes what is in a ring. */
static struct lines *heard_lines(const struct session *session)
{
	static struct lines lines;
	char pid[24];

	lines.count = session->heard_count;
	for (unsigned i = 0; i < lines.count; i++) {
		const struct heard *heard = &session->heard[i];
		char *out = lines.text[i];
		size_t capacity = sizeof lines.text[i], used;

		if (heard->tag < TW_TRACER_TAG_SEND) {
			snprintf(out, capacity, "%s %s", name_of(heard->number, pid), tw_tracer_tag_name(heard->tag));
			continue;
		}
		used = (size_t)snprintf(out, capacity, "%s %s", name_of(heard->number, pid),
					tw_tracer_tag_name(heard->tag));
		if (heard->tag >= TW_TRACER_TAG_GC_MINOR_START && heard->tag <= TW_TRACER_TAG_GC_MAX_HEAP_SIZE)
			continue;
		out[used++] = ' ';
		used += put_term(heard->term, out + used, capacity - used);
		if (tw_term_is_none(heard->extra))
			continue;
		used += (size_t)snprintf(out + used, capacity - used, ", ");
		put_term(heard->extra, out + used, capacity - used);
	}
	return &lines;
}

/* ---- what is expected ---- */

static void __attribute__((format(printf, 2, 3))) tell(unsigned s, const char *format, ...)
{
	struct session *session = &sessions[s];
	va_list list;

	va_start(list, format);
	if (session->line_count < LINES)
		vsnprintf(session->lines[session->line_count++], sizeof session->lines[0], format, list);
	va_end(list);
}

/* The session wants what the process does because of one of these flags. */
static bool hears(unsigned s, const struct process *process, uint32_t flags)
{
	return sessions[s].is_there && !process->is_sensitive && (process->flags[s] & flags);
}

static void tell_process(const struct process *process, uint32_t flags, const char *what)
{
	for (unsigned s = 0; s < SESSIONS; s++)
		if (hears(s, process, flags))
			tell(s, "%s %s", process->name, what);
}

static void tell_port(const struct port *port, uint32_t flags, const char *what)
{
	for (unsigned s = 0; s < SESSIONS; s++)
		if (sessions[s].is_there && (port->flags[s] & flags))
			tell(s, "%s %s", port->name, what);
}

static const char *text(const char *format, ...)
{
	static char texts[8][128];
	static unsigned next;
	char *out = texts[next++ % 8];
	va_list list;

	va_start(list, format);
	vsnprintf(out, sizeof texts[0], format, list);
	va_end(list);
	return out;
}

/* ---- what exists ---- */

#define CHOOSE(array, number, is_there)                                       \
	for (unsigned choose_ = 0; choose_ < TW_COUNT_OF(array); choose_++) { \
		unsigned at_ = ((number) + choose_) % TW_COUNT_OF(array);     \
		if ((array)[at_].is_there)                                    \
			return &(array)[at_];                                 \
	}                                                                     \
	return NULL

static struct session *a_session(uint32_t number)
{
	CHOOSE(sessions, number, is_there);
}

static struct process *a_process(uint32_t number)
{
	CHOOSE(processes, number, process);
}

static struct port *a_port(uint32_t number)
{
	CHOOSE(ports, number, port);
}

static unsigned count_processes(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < PROCESSES; i++)
		count += processes[i].process != NULL;
	return count;
}

static unsigned count_ports(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < PORTS; i++)
		count += ports[i].port != 0;
	return count;
}

/* A few flags, of those that change events; rarely all of them. */
static uint32_t some_flags(uint32_t number)
{
	static const uint32_t flags[] = {
		TW_FLAG_CALL,	      TW_FLAG_SEND,
		TW_FLAG_RECEIVE,      TW_FLAG_PROCS,
		TW_FLAG_RUNNING,      TW_FLAG_RUNNING_PROCS,
		TW_FLAG_EXITING,      TW_FLAG_GARBAGE_COLLECTION,
		TW_FLAG_SET_ON_SPAWN, TW_FLAG_SET_ON_FIRST_SPAWN,
		TW_FLAG_SET_ON_LINK,  TW_FLAG_SET_ON_FIRST_LINK,
		TW_FLAG_PORTS,	      TW_FLAG_RUNNING_PORTS,
		TW_FLAG_SILENT,	      TW_FLAG_MONOTONIC_TIMESTAMP,
		TW_FLAG_SCHEDULER_ID,
	};
	uint32_t some = 0;

	if (number % 23 == 0)
		return TW_FLAG_ALL & ~(uint32_t)(TW_FLAG_STRICT_MONOTONIC_TIMESTAMP | TW_FLAG_SILENT);
	for (unsigned i = 0; i < 1 + number % 4; i++)
		some |= flags[(number >> (4 + 5 * i)) % TW_COUNT_OF(flags)];
	return some;
}

#endif
