/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.h - receive trace messages in the program itself, and learn when all have been delivered.
 *
 *	struct tw_tracer tracer = { .kind = TW_TRACER_QUEUE };
 *	tw_session_create("mine", &tracer, &session);
 *	...
 *	tw_queue_receive(session, TW_QUEUE_FOREVER, &arena, &message);	   {trace,<0.7.0>,call,{vm,step,[1]}}
 *
 * A queue has no thread of its own: the receiver drains the rings of the session and merges them.  The events of each
 * process come in its order, on whatever threads it ran; causes come before their effects; all others are ordered by
 * time.  Losses (full rings, threads without ring) come as {trace_ts,Pid,lost,[{full,N},...],Ns},
 * with the pid that lost them or <0.0.0>.
 *
 * The tracer	is the process that receives (the one that the calling thread runs, or the thread itself), or the
 *		process that struct tw_tracer names.  It may have flags, but makes no events in this session: the
 *		events of a traced process end with its first call of tw_queue_receive().  Before the first receive,
 *		tw_trace_info() returns the atom queue in place of a pid.
 *		When it exits, or after tw_queue_close(), the tracer is gone: all processes lose their flags in this
 *		session and keep no new ones (tw_trace_process() returns as always); the settings of functions stay;
 *		undelivered events are dropped.  Traced processes never wait for it.
 * Memory	is bounded by tracer.cap_bytes.  A queue that is not read fills up; then tracer.on_full applies: drop,
 *		or block: wait, but not for a tracer that has not received for a second.
 * Threads	one thread receives at a time; a second one waits for it.  Not inside a hit (TW_EDEADLK).
 * Source	OTP: a tracer that is a process; trace:delivered/2.
 */
#ifndef TRACEWHEEL_QUEUE_H
#define TRACEWHEEL_QUEUE_H

#include "tracewheel/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As a timeout: none. */
#define TW_QUEUE_FOREVER UINT64_MAX

/*
 * tw_queue_receive - the next message.
 *
 * @timeout_ns	0: do not wait.
 * @arena	where the message is built.
 * @message	set when the result is 0.
 *
 * After the session is destroyed, the events made before are still received, and then TW_EDEAD.  Errors:
 * TW_ETIMEDOUT; TW_EDEAD; TW_EPIPE: the tracer is gone; TW_EBADARG: not a queue; TW_ENOMEM: the arena is full, and
 * the message is kept for the next call; TW_EDEADLK.
 */
int tw_queue_receive(struct tw_session *session, uint64_t timeout_ns, struct tw_arena *arena, struct tw_term *message);

/*
 * The same for up to @capacity messages: the first and those available with it, in order.
 *
 * Returns their number (1 ..), or an error as above.
 */
int64_t tw_queue_receive_batch(struct tw_session *session, uint64_t timeout_ns, struct tw_arena *arena,
			       struct tw_term *messages, size_t capacity);

/* Removes the tracer.  Returns 0, also when it is gone; TW_EBADARG: not a queue; TW_EDEADLK. */
int tw_queue_close(struct tw_session *session);

struct tw_queue_stats {
	uint64_t received;  /* messages received, without `lost` and `trace_delivered` */
	uint64_t lost[4];   /* reported so far: full, too_big, nested, no_ring (enum tw_lost_cause) */
	uint64_t dropped;   /* events undelivered when the tracer exited or was removed */
	uint64_t of_tracer; /* events of the tracer itself, which are discarded */
	uint64_t malformed; /* events that could not be made messages */
};
/* May wait for a receive under way.  TW_EBADARG: not a queue; TW_EPIPE: in a forked child, the queue is the parent's. */
int tw_queue_stats(struct tw_session *session, struct tw_queue_stats *out);

/* ---- delivery ---- */

/*
 * tw_delivered - request a mark after all events that a process has made so far.
 *
 * @pid		a process, even if it has exited; or TW_PID_ALL.
 * @reference	set to the name of the mark.
 *
 * A queue receives {trace_delivered,Pid|all,Ref} after all events that @pid generated before this call; @reference as
 * a term is tw_delivered_term().  For captures and streams use tw_delivered_wait().
 * Errors: TW_EBADARG: no such process ever existed; TW_EDEAD: also where OTP would not check the session; TW_EPIPE: the
 * consumer is gone.  Source: trace:delivered/2.
 */
int tw_delivered(struct tw_session *session, tw_pid pid, uint64_t *reference);

/* Ref in the message: #Ref<0.0.High.Low>. */
static inline struct tw_term tw_delivered_term(struct tw_arena *arena, uint64_t reference)
{
	const uint32_t words[3] = {(uint32_t)reference, (uint32_t)(reference >> 32), 0};

	return tw_term_reference(arena, words);
}

/*
 * tw_delivered_wait - sleep until the mark is delivered: received from the queue, or everything before it written to
 * the capture or the stream.  A capture with on_full overwrite keeps its events in the rings: its marks mean nothing.
 *
 * Errors: TW_ETIMEDOUT; TW_EPIPE: the consumer is gone; TW_EDEAD; TW_EBADARG: not a reference of this session.
 */
int tw_delivered_wait(struct tw_session *session, uint64_t reference, uint64_t timeout_ns);

#ifdef __cplusplus
}
#endif

#endif
