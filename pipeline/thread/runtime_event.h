/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime_event.h - events that a run-time reports about its processes: messages, life, links, scheduling,
 * collections.
 *
 * A hit is selected by its place; a runtime event only by its tracee and kind. Its record carries the terms of the
 * trace message (TW_EVENT_FLAG_TERMS), or twelve words of a collection.
 *
 * The tracee of a runtime event may run on another thread, or on none. Then the event is a run of that tracee: a
 * switch to it before, a switch back after; and the tracee's own thread begins a new run before its next record
 * (tw_thread_follow_runs()). Thus each tracee's events keep the order in which they were made.
 */
#ifndef TW_PIPELINE_RUNTIME_EVENT_H
#define TW_PIPELINE_RUNTIME_EVENT_H

#include "pipeline/hit/hit.h"
#include "term/term.h"

/* The contents of an event. Terms are borrowed. */
struct tw_runtime_event {
	uint8_t kind;	    /* enum tw_event_kind */
	uint8_t want;	    /* enum tw_want */
	uint8_t term_count; /* 0: the payload is `words` */
	uint8_t word_count;
	bool is_timeout;	 /* a receive that timed out: it has no sender */
	bool is_short;		 /* TW_WANT_MONITOR: the message queue is no longer long */
	uint8_t monitor;	 /* the same: enum tw_monitor */
	uint64_t value;		 /* the same: what is compared with the limits */
	uint64_t except;	 /* sessions that get no event */
	struct tw_term terms[3]; /* of a message, the first is the message itself */
	struct tw_term peer;	 /* messages: the receiver as the program named it, or the sender; none: not
				  * known */
	const uint64_t *words;
	/* TW_WANT_SEQ: the token of the event; the terms are Message and To; To none: this process of here. */
	const struct tw_seq_words *seq;
	uint32_t to;
};

/*
 * tw_runtime_event - write one record for each session that wants it.
 *
 * @tracee	on any thread; not exited.
 *
 * Threads: any, outside of read sections; in a signal handler inside of a hit the event is counted as lost. Keeps
 * errno.
 */
void tw_runtime_event(struct tw_tracee *tracee, const struct tw_runtime_event *runtime_event);

#endif
