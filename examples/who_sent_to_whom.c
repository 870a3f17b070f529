/* SPDX-License-Identifier: Apache-2.0 */
/*
 * who_sent_to_whom.c - a program that loads the tracer module who_sent.so, and sends some messages.
 *
 *	cc who_sent_to_whom.c -ltracewheel -o who_sent_to_whom
 *	./who_sent_to_whom ./who_sent.so
 */
#include <tracewheel/tracewheel.h>

#include <stdio.h>

static void send_hello(struct tw_process *from, struct tw_process *to)
{
	char buffer[256];
	struct tw_arena arena;

	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	tw_process_in(from);
	tw_process_send(from, tw_term_atom_z("hello"), tw_process_term(&arena, to));
	tw_process_out();
}

int main(int argc, char **argv)
{
	struct tw_tracer tracer = {.kind = TW_TRACER_MODULE, .module_path = argc > 1 ? argv[1] : "./who_sent.so"};
	struct tw_process *collector, *a, *b;
	struct tw_session *session;
	struct tw_arena arena;
	char buffer[256];
	int error;

	tw_scheduler_declare();
	if (tw_process_create("collector", &collector) || tw_process_create("a", &a) || tw_process_create("b", &b))
		return 1;
	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	tracer.state = tw_process_term(&arena, collector);
	error = tw_session_create("who", &tracer, &session);
	if (error) {
		fprintf(stderr, "%s: %s\n", tracer.module_path, tw_strerror(error));
		return 1;
	}
	tw_trace_process(session, TW_PID_ALL, true, TW_FLAG_SEND);
	fprintf(stderr, "a is <0.%llu.0>, b is <0.%llu.0>\n", (unsigned long long)tw_process_pid(a),
		(unsigned long long)tw_process_pid(b));
	send_hello(a, b);
	send_hello(b, a);
	send_hello(collector, a);
	tw_session_destroy(session);
	send_hello(a, b);
	tw_session_put(session);
	return 0;
}
