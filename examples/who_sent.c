/* SPDX-License-Identifier: Apache-2.0 */
/*
 * who_sent.c - a tracer module that prints the sender and the receiver of each message, and nothing else.
 *
 * The example of Erlang's erl_tracer(3): only `send` is traced, and only the sender and the receiver are shown.  Built as a
 * shared object:
 *
 *	cc -shared -fPIC who_sent.c -o who_sent.so
 *
 * A program that embeds libtracewheel loads it, with a state:
 *
 *	struct tw_tracer tracer = { .kind = TW_TRACER_MODULE, .module_path = "./who_sent.so", .state = collector };
 *	tw_session_create("who", &tracer, &session);
 *	tw_trace_process(session, TW_PID_ALL, true, TW_FLAG_SEND);
 *
 * An unmodified run-time system gets it with `tracewheel record --tracer ./who_sent.so -p send -- ./mailbox`.
 *
 * It writes {trace,<0.5.0>,<0.4.0>} to the standard error for each message.  The state is the pid of the process that
 * reads the output: messages that it sends itself are left out.
 */
#include <tracewheel/tracer.h>

#include <stdio.h>
#include <unistd.h>

static unsigned number_of(struct tw_term pid)
{
	struct tw_identifier parts;

	return tw_term_get_identifier(pid, &parts) ? 0 : parts.words[0];
}

static enum tw_tracer_answer enabled(enum tw_tracer_tag tag, struct tw_term state, struct tw_term tracee)
{
	/* Any answer but TW_TRACER_REMOVE keeps this tracer. */
	if (tag == TW_TRACER_TAG_STATUS)
		return TW_TRACER_TRACE;
	/* Only messages of others: it would be called for its own. */
	if (tag != TW_TRACER_TAG_SEND || number_of(tracee) == number_of(state))
		return TW_TRACER_DISCARD;
	return TW_TRACER_TRACE;
}

/* Runs in the middle of the sending: one line by one system call, so that lines of threads do not mix. */
static void trace(enum tw_tracer_tag tag, struct tw_term state, struct tw_term tracee, struct tw_term term,
		  const struct tw_tracer_options *options)
{
	char line[64];
	int bytes = snprintf(line, sizeof line, "{trace,<0.%u.0>,<0.%u.0>}\n", number_of(tracee),
			     number_of(options->extra));

	(void)tag;
	(void)state;
	(void)term;
	if (write(STDERR_FILENO, line, (size_t)bytes) < 0)
		return;
}

const struct tw_tracer_module tracewheel_tracer = {.bytes = sizeof tracewheel_tracer,
						   .name = "who_sent",
						   .enabled = enabled,
						   .trace = trace};
