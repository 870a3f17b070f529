/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.h - receive trace messages in the program itself, and know that all have come.
 *
 *	struct tw_tracer tracer = { .kind = TW_TRACER_QUEUE };
 *	tw_session_create("mine", &tracer, &session);
 *	...
 *	tw_queue_receive(session, TW_QUEUE_FOREVER, &arena, &message);	   {trace,<0.7.0>,call,{vm,step,[1]}}
 *
 * A queue has no thread of its own: who receives drains the rings of the session and merges them.  The events of
 * each process come in its order, whatever threads it ran on; what happened before comes first; the rest is in the
 * order of time.  What is lost (full rings, threads without ring) comes as {trace_ts,Pid,lost,[{full,N},...],Ns},
 * with the pid that lost it or <0.0.0>.
 *
 * The tracer	is the process that receives: the one that the calling thread runs, or the thread itself; or the
 *		process that struct tw_tracer names.  It may have flags, but makes no events in this session: also a
 *		traced process whose own events end with its first call of tw_queue_receive().  Until somebody
 *		receives, tw_trace_info() answers the atom queue in place of a pid.
 *		When it exits, or after tw_queue_close(), the tracer is gone: no process has flags in this
 *		session any more, and none keeps new ones (tw_trace_process() answers as always); the settings
 *		of functions stay; events on their way are dropped.  Traced processes never wait for it.
 * Memory	is bounded by tracer.cap_bytes.  A queue that nobody reads fills up; then tracer.on_full holds:
 *		drop, or block: wait, but never for a tracer that has not received for a second.
 * Threads	one at a time receives; a second one waits for it.  Not inside a hit (TW_EDEADLK).
 * Source	OTP: a tracer that is a process; trace:delivered/2.
 */
#ifndef TRACEWHEEL_QUEUE_H
#define TRACEWHEEL_QUEUE_H

#include "tracewheel/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As a timeout: no end. */
#define TW_QUEUE_FOREVER UINT64_MAX

/*
 * tw_queue_receive - the next message.
 *
 * @timeout_ns	0: what is there already.
 * @arena	where the message is built.
 * @message	set when the answer is 0.
 *
 * After the session is destroyed what had been made before is still received, and then TW_EDEAD.
 * Errors: TW_ETIMEDOUT; TW_EDEAD; TW_EPIPE: the tracer is gone; TW_EBADARG: no queue; TW_ENOMEM: the arena is full,
 * and the message waits for the next call; TW_EDEADLK.
 */
int tw_queue_receive(struct tw_session *session, uint64_t timeout_ns, struct tw_arena *arena,
		     struct tw_term *message);

/*
 * The same for up to @room messages: those that are there when the first is, in order.
 *
 * Returns how many (1 ..), or an error as above.
 */
int64_t tw_queue_receive_batch(struct tw_session *session, uint64_t timeout_ns, struct tw_arena *arena,
			       struct tw_term *messages, size_t room);

/* The tracer goes away.  0, also when it is gone; TW_EBADARG: no queue; TW_EDEADLK. */
int tw_queue_close(struct tw_session *session);

struct tw_queue_stats {
	uint64_t received;	 /* messages given, without those of losses and delivered */
	uint64_t lost[4];	 /* told so far: full, too_big, nested, no_ring (enum tw_lost_cause) */
	uint64_t dropped;	 /* events on their way when the tracer went */
	uint64_t of_tracer;	 /* events of the tracer itself, which are none */
	uint64_t malformed;	 /* events that were no messages */
};
int tw_queue_stats(struct tw_session *session, struct tw_queue_stats *out);

/* ---- have all come? ---- */

/*
 * tw_delivered - ask for a mark behind everything that a process has done so far.
 *
 * @pid		a process, also one that has exited; or TW_PID_ALL.
 * @reference	set to the name of the mark.
 *
 * A queue receives {trace_delivered,Pid|all,Ref} after all events that @pid generated before this call; @reference as
 * a term is tw_delivered_term().  Captures and streams are asked by tw_delivered_wait().
 * Errors: TW_EBADARG: there never was such a process; TW_EDEAD: also where OTP would not look at the session; TW_EPIPE:
 * the consumer is gone.  Source: trace:delivered/2.
 */
int tw_delivered(struct tw_session *session, tw_pid pid, uint64_t *reference);

/* Ref in the message: #Ref<0.0.High.Low>. */
static inline struct tw_term tw_delivered_term(struct tw_arena *arena, uint64_t reference)
{
	const uint32_t words[3] = {(uint32_t)reference, (uint32_t)(reference >> 32), 0};

	return tw_term_reference(arena, words);
}

/*
 * tw_delivered_wait - sleep until the mark has come: received from the queue, or everything before it written to the
 * capture or the stream.  A capture with on_full overwrite keeps its events in the rings: there it says nothing.
 *
 * Errors: TW_ETIMEDOUT; TW_EPIPE: the consumer is gone; TW_EDEAD; TW_EBADARG: no reference of this session.
 */
int tw_delivered_wait(struct tw_session *session, uint64_t reference, uint64_t timeout_ns);

#ifdef __cplusplus
}
#endif

#endif
