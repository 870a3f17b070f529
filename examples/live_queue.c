/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_queue.c - a program that reads its own trace messages, while another of its threads works.
 *
 *	$ build/release/examples/example-live_queue
 *	{trace_ts,<0.2.0>,call,{machine,step,[1]},5240918211}
 *	...
 *	{trace_delivered,<0.2.0>,#Ref<0.0.1.1>}
 */
#include "tracewheel/tracewheel.h"

#include <pthread.h>
#include <stdio.h>

TW_DEFINE_FUNCTION(step, "machine", "step", 1);

static pthread_barrier_t barrier;
static tw_pid worker_pid;

/* The traced half: publishes its pid, waits until it is traced, and works. */
static void *work(void *arg)
{
	worker_pid = tw_process_self();
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	for (uint64_t i = 1; i <= 5; i++)
		tw_call1(&step, i);
	return NULL;
}

/* The tracer: the thread that receives makes no events itself. */
static void show(struct tw_session *session)
{
	struct tw_arena arena;
	struct tw_term message;
	char text[1024];

	tw_arena_init(&arena, 1 << 20);
	while (tw_queue_receive(session, UINT64_C(2000000000), &arena, &message) == 0) {
		tw_term_format(message, TW_PRINT_WRITE, text, sizeof text);
		puts(text);
		/* {trace_delivered,Pid,Ref}: all requested events have come. */
		if (tw_term_tuple_count(message) == 3)
			break;
		tw_arena_reset(&arena);
	}
	tw_arena_fini(&arena);
}

int main(void)
{
	struct tw_tracer tracer = {.kind = TW_TRACER_QUEUE};
	struct tw_session *session;
	uint64_t reference;
	pthread_t worker;
	int error = tw_session_create("live", &tracer, &session);

	if (error) {
		fprintf(stderr, "no session: %s\n", tw_strerror(error));
		return 1;
	}
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&worker, NULL, work, NULL);
	pthread_barrier_wait(&barrier);
	tw_trace_function(session, "machine", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_LOCAL);
	tw_trace_process(session, worker_pid, true, TW_FLAG_CALL | TW_FLAG_MONOTONIC_TIMESTAMP);
	pthread_barrier_wait(&barrier);
	pthread_join(worker, NULL);
	tw_delivered(session, worker_pid, &reference);
	show(session);
	tw_session_destroy(session);
	tw_session_put(session);
	return 0;
}
