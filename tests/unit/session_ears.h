/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_ears.h - sessions whose tracer is a module that logs each callback.
 *
 * Every case is played with one session and with two, whose logs must be equal.
 */
#ifndef TW_TESTS_SESSION_EARS_H
#define TW_TESTS_SESSION_EARS_H

#include "session/tracer_module.h"
#include "tracewheel/function.h"
#include "tracewheel/info.h"
#include "tracewheel/match.h"
#include "tracewheel/tracewheel.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct tw_declared_function step = TW_DECLARED_FUNCTION("vm", "step", 1),
				   inner = TW_DECLARED_FUNCTION("vm", "inner", 0);

/* ---- a module that logs its callbacks ---- */

struct ear {
	char text[8192];
	size_t used;
	struct tw_tracer_options options; /* of the last event */
	pthread_t thread;
	enum tw_term_type tracee_type;
	int answers[40];		 /* by tag; 0: TW_TRACER_TRACE */
	void (*inside)(struct ear *ear); /* called in `trace` */
	struct tw_process *process;
	int result;
	bool is_quiet; /* the status is not logged */
};

static struct ear ears[2];
static struct tw_session *sessions[2];
static unsigned session_count;
static struct tw_match_program *programs[8];
static unsigned program_count;
static struct tw_process *p;

static inline struct ear *ear_of(struct tw_term state)
{
	int64_t number = 0;

	assert_int_equal(tw_term_get_int64(tw_term_element(state, 1), &number), 0);
	return &ears[number];
}

static inline void hear(struct ear *ear, const char *callback, enum tw_tracer_tag tag, const char *term)
{
	ear->used += (size_t)snprintf(ear->text + ear->used, sizeof ear->text - ear->used, "%s %s%s%s;", callback,
				      tw_tracer_tag_name(tag), *term ? " " : "", term);
	ear->thread = pthread_self();
}

static inline enum tw_tracer_answer answer(const char *callback, enum tw_tracer_tag tag, struct tw_term state)
{
	struct ear *ear = ear_of(state);

	if (tag != TW_TRACER_TAG_STATUS || !ear->is_quiet)
		hear(ear, callback, tag, "");
	errno = EBADF;
	return ear->answers[tag] ? (enum tw_tracer_answer)ear->answers[tag] : TW_TRACER_TRACE;
}

static inline void tell(const char *callback, enum tw_tracer_tag tag, struct tw_term state, struct tw_term tracee,
			struct tw_term term, const struct tw_tracer_options *options)
{
	struct ear *ear = ear_of(state);
	char text[256];

	tw_term_format(term, TW_PRINT_WRITE, text, sizeof text);
	hear(ear, callback, tag, text);
	ear->tracee_type = tw_term_type(tracee);
	ear->options = *options;
	if (ear->inside)
		ear->inside(ear);
	errno = EBADF;
}

#define ENABLED(name)                                                                                          \
	static enum tw_tracer_answer name(enum tw_tracer_tag tag, struct tw_term state, struct tw_term tracee) \
	{                                                                                                      \
		return answer(#name, tag, state);                                                              \
	}
#define TRACE(name)                                                                                                \
	static void name(enum tw_tracer_tag tag, struct tw_term state, struct tw_term tracee, struct tw_term term, \
			 const struct tw_tracer_options *options)                                                  \
	{                                                                                                          \
		tell(#name, tag, state, tracee, term, options);                                                    \
	}
ENABLED(enabled)
TRACE(trace)
#define MANDATORY .bytes = sizeof(struct tw_tracer_module), .name = "ear", .enabled = enabled, .trace = trace
static const struct tw_tracer_module general = {MANDATORY};

/* ---- sessions ---- */

static inline void forget(void)
{
	for (unsigned i = 0; i < 2; i++) {
		ears[i].used = 0;
		ears[i].text[0] = '\0';
	}
}

static inline void open_sessions(const struct tw_tracer_module *module)
{
	for (unsigned i = 0; i < session_count; i++) {
		struct tw_tracer tracer = {.kind = TW_TRACER_MODULE, .module = module};
		struct tw_arena arena;
		char buffer[128];

		memset(&ears[i], 0, sizeof ears[i]);
		tw_arena_init_fixed(&arena, buffer, sizeof buffer);
		tracer.state =
			tw_term_tuple(&arena, (struct tw_term[]){tw_term_atom_z("state"), tw_term_integer(&arena, i)},
				      2);
		assert_int_equal(tw_session_create("heard", &tracer, &sessions[i]), 0);
		/* The library has its own copy. */
		memset(buffer, 0x55, sizeof buffer);
	}
}

static inline void close_sessions(void)
{
	for (unsigned i = 0; i < session_count; i++) {
		tw_session_destroy(sessions[i]);
		tw_session_put(sessions[i]);
	}
}

static inline void set_flags(tw_pid pid, uint32_t flags)
{
	for (unsigned i = 0; i < session_count; i++)
		assert_int_equal(tw_trace_process(sessions[i], pid, true, flags), 1);
}

static inline void set_function(const char *spec, uint32_t kinds)
{
	for (unsigned i = 0; i < session_count; i++) {
		int count;

		if (!spec) {
			count = tw_trace_function(sessions[i], "vm", "step", 1, TW_MATCH_TRUE, kinds);
		} else {
			struct tw_match_program **program = &programs[program_count++];

			assert_int_equal(tw_match_compile_text(spec, strlen(spec), NULL, program, NULL), 0);
			count = tw_trace_function_match(sessions[i], "vm", "step", 1, *program, kinds);
		}
		assert_int_equal(count, 1);
	}
}

static inline void set_answer(enum tw_tracer_tag tag, int value)
{
	for (unsigned i = 0; i < session_count; i++)
		ears[i].answers[tag] = value;
}

static inline void be_quiet(void)
{
	for (unsigned i = 0; i < session_count; i++)
		ears[i].is_quiet = true;
}

/* Checks the log of every session since the last call. */
static inline void expect(const char *text)
{
	for (unsigned i = 0; i < session_count; i++)
		assert_string_equal(ears[i].text, text);
	forget();
}

static inline struct tw_tracer_stats stats_of(unsigned i)
{
	struct tw_tracer_stats stats;

	assert_int_equal(tw_tracer_module_stats(sessions[i], &stats), 0);
	return stats;
}

static inline uint32_t flags_of(unsigned i, tw_pid pid)
{
	uint32_t flags = 77;

	assert_int_equal(tw_trace_process_flags(sessions[i], pid, &flags), 0);
	return flags;
}

/* p calls step(7) on this thread. Callbacks set errno; the program does not see it. */
static inline void call_step(void)
{
	tw_process_in(p);
	errno = ENOENT;
	tw_call1(&step, 7);
	assert_int_equal(errno, ENOENT);
	tw_process_out();
}

/* A session that traces calls of p. */
static inline void hear_calls(const struct tw_tracer_module *module)
{
	open_sessions(module);
	set_function(NULL, TW_FUNCTION_LOCAL);
	set_flags(tw_process_pid(p), TW_FLAG_CALL);
	be_quiet();
	forget();
}

static inline int open_with(unsigned count)
{
	session_count = count;
	tw_function_declare(&step);
	tw_function_declare(&inner);
	forget();
	return tw_process_create("p", &p);
}

static inline int open_one(void **state)
{
	return open_with(1);
}

static inline int open_two(void **state)
{
	return open_with(2);
}

static inline int close_all(void **state)
{
	tw_process_exit(p);
	while (program_count)
		tw_match_destroy(programs[--program_count]);
	return 0;
}

#define BOTH(f)                                              \
	{#f, f, open_one, close_all, NULL},                  \
	{                                                    \
#f "_with_two", f, open_two, close_all, NULL \
	}

#endif
