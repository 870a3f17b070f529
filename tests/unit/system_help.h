/* SPDX-License-Identifier: Apache-2.0 */
/*
 * system_help.h - two sessions with queues, a process that the test plays, and what of it they receive, as text.
 *
 * The test's own thread receives, and so is the tracer: other threads run the process.
 */
#ifndef TW_TESTS_SYSTEM_HELP_H
#define TW_TESTS_SYSTEM_HELP_H

#include "tracewheel/consumer.h"
#include "tracewheel/function.h"
#include "tracewheel/match.h"
#include "tracewheel/runtime.h"
#include "tracewheel/tracer.h"
#include "tracewheel/tracewheel.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static struct tw_declared_function step = TW_DECLARED_FUNCTION("vm", "step", 1),
				   stop = TW_DECLARED_FUNCTION("vm", "stop", 0);
static struct tw_arena arena;
static struct tw_session *one, *two;
static struct tw_process *p;
static char p_text[32];

/* ---- helpers ---- */

static inline struct tw_term parse(const char *text)
{
	struct tw_term term;

	assert_int_equal(tw_term_parse(&arena, text, strlen(text), &term, NULL), 0);
	return term;
}

static inline int set(struct tw_session *session, const char *event, const char *value)
{
	return tw_trace_system(session, parse(event), parse(value));
}

static inline struct tw_session *new_session(void)
{
	struct tw_tracer tracer = {.kind = TW_TRACER_QUEUE, .ring_bytes = 64 << 10};
	struct tw_session *session;

	assert_int_equal(tw_session_create("system", &tracer, &session), 0);
	return session;
}

static inline int begin(void **state)
{
	tw_arena_init(&arena, SIZE_MAX);
	tw_function_declare(&step);
	tw_function_declare(&stop);
	one = new_session();
	two = new_session();
	assert_int_equal(tw_process_create("p", &p), 0);
	snprintf(p_text, sizeof p_text, "<0.%u.0>", (unsigned)tw_process_pid(p));
	return 0;
}

static inline void end_session(struct tw_session *session)
{
	tw_session_destroy(session);
	tw_session_put(session);
}

static inline int end(void **state)
{
	if (p)
		tw_process_exit(p);
	end_session(two);
	end_session(one);
	tw_arena_fini(&arena);
	return 0;
}

/* All messages that are there, a line each; the process is P. */
static inline const char *received(struct tw_session *session)
{
	static char texts[4][4096];
	static unsigned turn;
	char *text = texts[turn++ % 4], line[2048];
	struct tw_term message;
	size_t bytes = 0;

	*text = '\0';
	while (tw_queue_receive(session, 0, &arena, &message) == 0) {
		char *at;

		tw_term_format(message, TW_PRINT_WRITE, line, sizeof line);
		at = strstr(line, p_text);
		if (at)
			bytes += (size_t)snprintf(text + bytes, sizeof texts[0] - bytes, "%.*sP%s\n", (int)(at - line),
						  line, at + strlen(p_text));
		else
			bytes += (size_t)snprintf(text + bytes, sizeof texts[0] - bytes, "%s\n", line);
		assert_true(bytes < sizeof texts[0]);
	}
	return text;
}

static inline const char *settings(struct tw_session *session)
{
	static char texts[2][1024];
	static unsigned turn;
	char *text = texts[turn++ % 2];
	struct tw_term answer;

	assert_int_equal(tw_trace_info(session, parse("system"), parse("all"), &arena, &answer), 0);
	tw_term_format(answer, TW_PRINT_WRITE, text, sizeof texts[0]);
	return text;
}

/* The test's own thread is the tracer: another one runs the process. */
static inline void on_thread(void *(*job)(void *), void *arg)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, job, arg), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static inline void sleep_ms(unsigned ms)
{
	struct timespec time = {ms / 1000, ms % 1000 * 1000000L};

	while (nanosleep(&time, &time))
		;
}

static inline void lengths(const char *text)
{
	char *at;

	for (; *text; text = at) {
		tw_process_mailbox(p, strtoull(text, &at, 10));
		if (at == text)
			break;
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

#endif
