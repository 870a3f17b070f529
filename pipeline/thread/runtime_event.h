/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime_event.h - events that a run-time tells of its processes: messages, life, links, scheduling, collections.
 *
 * A hit asks by place; a runtime event asks by the tracee and the kind of event only.  Its record carries the terms of the
 * trace message (TW_EVENT_FLAG_TERMS), or twelve words of a collection.
 *
 * A runtime event may be about a tracee that another thread runs, or nobody.  Then it is a run of that tracee of its own: a
 * switch to it before, a switch back behind; and the tracee's own thread opens a new run before its next record
 * (tw_thread_follow_runs()).  So each tracee's events keep the order in which they were made.
 */
#ifndef TW_PIPELINE_RUNTIME_EVENT_H
#define TW_PIPELINE_RUNTIME_EVENT_H

#include "pipeline/hit/hit.h"
#include "term/term.h"

/* What is told.  Terms borrow. */
struct tw_runtime_event {
	uint8_t kind;	    /* enum tw_event_kind */
	uint8_t want;	    /* enum tw_want */
	uint8_t term_count; /* 0: the words */
	uint8_t word_count;
	bool is_timeout;	 /* a receive: nobody sent it */
	struct tw_term terms[3]; /* the first of a message is the message */
	struct tw_term peer;	 /* messages: the receiver as it was written, or the sender; none: not known */
	const uint64_t *words;
};

/*
 * tw_runtime_event - one record for each session that wants it.
 *
 * @tracee	on any thread; not exited.
 * Threads: any, outside of read sections; in a signal handler inside of a hit it is counted.  Keeps errno.
 */
void tw_runtime_event(struct tw_tracee *tracee, const struct tw_runtime_event *runtime_event);

#endif
