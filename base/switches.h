/* SPDX-License-Identifier: Apache-2.0 */
/*
 * switches.h - when threads got and lost a processor, as the kernel's perf events tell it: the context switches of the
 * programs that a thread starts.
 *
 * One event and one ring for each processor, whatever the number of threads: programs and threads inherit the events from the
 * thread that starts them.  They begin at exec().
 *
 * Of a process that runs, each thread gets an event for each processor, and threads that it starts later inherit them; all of a
 * processor write into its one ring.
 *
 * Threads  the one that opened it.
 * Units    *_ns are CLOCK_MONOTONIC.
 * Limits   the kernel lets a user without privileges lock 516 KiB of such rings for each processor (perf_event_mlock_kb); each
 *	    ring is as large as is allowed, up to TW_SWITCHES_BYTES_MAX.
 */
#ifndef TW_BASE_SWITCHES_H
#define TW_BASE_SWITCHES_H

#include <stdbool.h>
#include <stdint.h>

/* Of one ring: 21,000 switches. */
#define TW_SWITCHES_BYTES_MAX (UINT64_C(512) << 10)
#define TW_SWITCHES_BYTES_MIN (UINT64_C(16) << 10)

enum tw_switch_kind {
	TW_SWITCH_IN,	     /* the thread got a processor */
	TW_SWITCH_OUT,	     /* it blocked */
	TW_SWITCH_PREEMPTED, /* it lost the processor, and could have run on; or yielded */
	TW_SWITCH_EXEC,	     /* it runs another program from now on, alone in its process */
	TW_SWITCH_EXIT,	     /* it ends: nothing more is told of it */
	TW_SWITCH_GAP	     /* from ns to until_ns any switch of any thread may be missing */
};

struct tw_switch {
	uint64_t ns;
	uint64_t until_ns; /* of a gap; not before ns */
	uint64_t
		lost; /* of a gap: switches that the kernel says are missing; more than one gap may be of the same ones */
	int32_t thread_id; /* as the opener's namespace numbers it; 0 of a gap */
	uint32_t source;   /* more than one may tell of a thread: of these any one tells all */
	enum tw_switch_kind kind;
};

/* A thread that ran when its process was followed: from then on all its switches are told. */
struct tw_switches_thread {
	uint64_t ns;
	int32_t thread_id;
	bool is_off; /* it had blocked then */
};

struct tw_switches;

/*
 * tw_switches_open - follow the programs that the calling thread starts from now on.
 *
 * Returns 0, or a negative errno: -EPERM, -EACCES (not allowed), -ENOSYS, -EOPNOTSUPP, -EINVAL, -ENOENT (not in this kernel),
 * -ENOBUFS (no ring could be locked), -EMFILE, -ENFILE, -ENOMEM.
 */
int tw_switches_open(struct tw_switches **out);
/*
 * tw_switches_open_process - follow the threads of a process that runs, and those that it starts from now on; not its children.
 *
 * @process_id	as the caller's namespace numbers it.
 *
 * Returns 0, or a negative errno as tw_switches_open(), -ESRCH if there is no such process.
 */
int tw_switches_open_process(struct tw_switches **out, int32_t process_id);
/* Its threads, without those that it has started since.  Lends until the next call. */
const struct tw_switches_thread *tw_switches_threads(const struct tw_switches *switches, uint32_t *count);
void tw_switches_close(struct tw_switches *switches);

/* tw_switches_begin - a round: what has happened until now can be read; returns this time. */
uint64_t tw_switches_begin(struct tw_switches *switches);
/* The next of the round, in order of time; those of one thread always are in order.  False: there are no more. */
bool tw_switches_next(struct tw_switches *switches, struct tw_switch *out);
/* The round is over: gives the memory back.  Returns how full the fullest ring was: 0 .. 100. */
unsigned tw_switches_end(struct tw_switches *switches);

#endif
