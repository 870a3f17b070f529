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
	_Atomic uint64_t most_disable;			    /* longest queue that any session calls no longer long */
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
/* The length of the process' message queue has crossed a limit. */
void tw_monitor_queue(struct tw_tracee *tracee, uint64_t length);

/* Does this length make the queue long (@is_short: short again) for any session? */
static inline bool tw_monitor_crosses(const struct tw_tracee *tracee, uint64_t length, bool is_short)
{
	const _Atomic uint64_t *limits =
		is_short ? tw_monitors.disable : tw_monitors.limits[TW_MONITOR_LONG_MESSAGE_QUEUE];
	/* RELAXED monitor.wants, monitor.long_queue: an early test; tw_monitor_sessions() decides, with this length. */
	uint64_t todo = tw_load_relaxed(&tw_monitors.wants[TW_MONITOR_LONG_MESSAGE_QUEUE]);
	/* RELAXED monitor.long_queue: as above. */
	uint64_t is_long = tw_load_relaxed(&tracee->long_queue);

	for (todo &= is_short ? is_long : ~is_long; todo; todo &= todo - 1) {
		/* RELAXED monitor.limits: as above. */
		uint64_t limit = tw_load_relaxed(&limits[__builtin_ctzll(todo)]);

		if (is_short ? length <= limit : length >= limit)
			return true;
	}
	return false;
}

/*
 * Does this length need tw_monitor_queue()?  Two loads; three while the queue is long; the limits of each session only
 * between the least and the most of them.
 */
static inline bool tw_monitor_may_change_queue(const struct tw_tracee *tracee, uint64_t length)
{
	/* RELAXED monitor.limits: as above. */
	bool may_be_long = length >= tw_load_relaxed(&tw_monitors.least_enable);

	/* RELAXED monitor.long_queue: as above. */
	if (!tw_load_relaxed(&tracee->long_queue))
		return may_be_long;
	/* RELAXED monitor.limits: as above. */
	return (length <= tw_load_relaxed(&tw_monitors.most_disable) && tw_monitor_crosses(tracee, length, true)) ||
	       (may_be_long && tw_monitor_crosses(tracee, length, false));
}

/* {M,F,A} of a declared function; none: NULL, or its names are no atoms (yet). */
struct tw_term tw_monitor_function(struct tw_arena *arena, const struct tw_declared_function *function);

#endif
