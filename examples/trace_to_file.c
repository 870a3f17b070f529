/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_to_file.c - a program records its own calls, from two threads, into a capture.
 *
 * Only calls with a large second argument are recorded: a match specification decides that inside the call, before
 * anything is recorded.
 *
 *	cc trace_to_file.c -ltracewheel -lpthread -o trace_to_file && ./trace_to_file mine.tw
 *	tracewheel report mine.tw
 *	tracewheel print --format erlang --limit 5 mine.tw
 */
#include <tracewheel/match.h>
#include <tracewheel/tracewheel.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define CALLS 100000

TW_DEFINE_FUNCTION(parse_function, "work", "parse", 2);
TW_DEFINE_FUNCTION(store_function, "work", "store", 2);

/* Reports its end too: `tracewheel record --returns` shows what it returned, and how long it took. */
static uint64_t store(uint64_t key, uint64_t bytes)
{
	struct tw_frame frame;

	tw_enter2(&store_function, &frame, key, bytes); /* in place of tw_call2() */
	bytes += sizeof key;
	tw_leave(&frame, bytes); /* or tw_leave_term(), tw_leave_void() */
	return bytes;
}

static void *work(void *name)
{
	for (uint64_t i = 0; i < CALLS; i++) {
		tw_call2(&parse_function, (uintptr_t)name, i);
		store(i, i % 1000);
	}
	return NULL;
}

static int trace(struct tw_session *session, struct tw_match_program **program)
{
	static const char spec[] = "[{['_','$1'],[{'>=','$1',990}],[]}]";
	int result = tw_match_compile_text(spec, strlen(spec), NULL, program, NULL);

	if (result >= 0)
		result = tw_trace_process(session, TW_PID_ALL, true, TW_FLAG_CALL | TW_FLAG_MONOTONIC_TIMESTAMP);
	if (result >= 0)
		result = tw_trace_function(session, "work", "parse", 2, TW_MATCH_TRUE, TW_FUNCTION_LOCAL);
	if (result >= 0)
		result = tw_trace_function_match(session, "work", "store", 2, *program, TW_FUNCTION_LOCAL);
	return result;
}

int main(int argc, char **argv)
{
	struct tw_tracer tracer = {
		.kind = TW_TRACER_CAPTURE,
		.capture_path = argc > 1 ? argv[1] : "trace_to_file.tw",
		.force = true,
		.on_full = TW_ON_FULL_BLOCK,
	};
	struct tw_match_program *program = NULL;
	struct tw_session *session;
	pthread_t threads[2];
	int result = tw_session_create("mine", &tracer, &session);

	if (result >= 0)
		result = trace(session, &program);
	if (result < 0) {
		fprintf(stderr, "trace_to_file: %s\n", tw_strerror(result));
		return 1;
	}
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, work, "text");
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	/* The capture is complete when this returns. */
	tw_session_destroy(session);
	tw_session_put(session);
	tw_match_destroy(program);
	printf("%d calls of parse/2 and %d of store/2 are in %s\n", 2 * CALLS, 2 * CALLS / 100, tracer.capture_path);
	return 0;
}
