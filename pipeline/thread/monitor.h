/* SPDX-License-Identifier: Apache-2.0 */
/*
 * monitor.h - system events: {monitor,Pid,Event,Info} of any process that exceeds a session's limit.
 *
 * A monitor belongs to a session and concerns all processes, whatever their flags. session/monitor_words.c sets the limits;
 * the functions below are called by the run-time's reports and make the events (runtime_event.h).
 *
 * Threads	any, outside of read sections, several at once also for one process.  No locks, no system calls except to wait for
 *		space.  Without any monitor: not called, or one load.
 * Source	OTP: trace:system/3.
 */
#ifndef TW_PIPELINE_MONITOR_H
#define TW_PIPELINE_MONITOR_H

#include "pipeline/thread/runtime_event.h"
#include "tracewheel/runtime.h"

enum tw_monitor {
	TW_MONITOR_LONG_GC,	       /* milliseconds */
	TW_MONITOR_LONG_SCHEDULE,      /* milliseconds */
	TW_MONITOR_LARGE_HEAP,	       /* words */
	TW_MONITOR_LONG_MESSAGE_QUEUE, /* messages: Enable; and Disable */
	TW_MONITOR_BUSY_PORT,	       /* no limit: 0 */
	TW_MONITOR_BUSY_DIST_PORT,
	TW_MONITOR_KINDS
};

/*
 * Written by session/monitor_words.c under the permit; a session's limits only while its bit is in no word, and no read section
 * has seen it there.
 */
struct tw_monitors {
	TW_CACHELINE_ALIGNED _Atomic uint64_t least_enable; /* shortest queue that any session calls long */
	_Atomic uint64_t wants[TW_MONITOR_KINDS];	    /* sessions that have set it */
	_Atomic uint64_t since[TW_MONITOR_KINDS]; /* ticks when the first of them set it: activities that began before
					  * are not measured */
	_Atomic uint64_t limits[TW_MONITOR_KINDS][TW_SESSIONS_MAX];
	_Atomic uint64_t disable[TW_SESSIONS_MAX]; /* a long queue of at most this length is no longer long */
};
extern struct tw_monitors tw_monitors __attribute__((visibility("hidden")));

/* The sessions for which this event of a monitor is due. In a read section; changes the state of a queue for them. */
uint64_t tw_monitor_sessions(struct tw_tracee *tracee, const struct tw_runtime_event *event);
/* Does it exceed the limit of this session, whose bit is set? */
bool tw_monitor_is_due(const struct tw_tracee *tracee, const struct tw_runtime_event *event, unsigned session);

/* The process is scheduled in or out, by the thread that runs it. @function: its current function; NULL: not known. */
void tw_monitor_in(struct tw_tracee *tracee, const struct tw_declared_function *function);
void tw_monitor_out(struct tw_tracee *tracee, const struct tw_declared_function *function);
/* The same for a port. @op: the atom of its last operation; none: not known. */
void tw_monitor_port_out(struct tw_tracee *port, struct tw_term op);
/* A collection begins or ends, or the process is killed by its heap limit in one. */
void tw_monitor_gc(struct tw_tracee *tracee, enum tw_gc_event event, const struct tw_gc_sizes *sizes);
/* The process waits because @port is busy. */
void tw_monitor_busy(struct tw_tracee *tracee, enum tw_monitor monitor, struct tw_term port);
/* The length of the process' message queue may have crossed a limit. */
void tw_monitor_queue(struct tw_tracee *tracee, uint64_t length);

/* Does this length need tw_monitor_queue()?  Two loads. */
static inline bool tw_monitor_may_change_queue(const struct tw_tracee *tracee, uint64_t length)
{
	/* RELAXED monitor.limits: an early test; tw_monitor_sessions() decides, with this length. */
	return length >= tw_load_relaxed(&tw_monitors.least_enable) || tw_load_relaxed(&tracee->long_queue);
}

/* {M,F,A} of a declared function; none: NULL, or its names are no atoms (yet). */
struct tw_term tw_monitor_function(struct tw_arena *arena, const struct tw_declared_function *function);

#endif
