/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter.h - may the calling thread make system calls?
 *
 * A program may forbid itself any system call (seccomp), and the call that it is killed for must not be one of ours.  Whether
 * a filter is in force cannot be asked: that is a system call.  So it is known beforehand:
 *
 *	own words	prctl() and syscall() of a preloaded program are wrapped, and say so before the filter is set
 *	the recorder	reads /proc/PID/task/TID/status now and then, and sets a word in shared memory
 *
 * What was in force when the program began does not count: what the library calls in the first thread's first moments
 * has been tried then.  Threads that were first asked after some thread had set a filter may have inherited it.
 *
 * Threads  any, in hits and handlers.  No vector registers.
 */
#ifndef TW_BASE_FILTER_H
#define TW_BASE_FILTER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * tw_thread_may_call_system - asked before each system call that is not the thread's first of ours.
 *
 * False: leave it, and count what is lost by that.
 */
bool tw_thread_may_call_system(void);

enum tw_filter_scope { TW_FILTER_THREAD, TW_FILTER_ALL_THREADS };

/* Around a call by which the calling thread sets a filter.  Between them no thread that it concerns may call the system. */
struct tw_filter_change {
	uint8_t kept;
	enum tw_filter_scope scope;
};
struct tw_filter_change tw_filter_begin(enum tw_filter_scope scope);
void tw_filter_end(struct tw_filter_change change, bool was_set);

/* A word that somebody else sets when it has seen a filter: 0 until then.  Shares for ever. */
void tw_filter_watch(const _Atomic uint32_t *word);

/* How many filters a process has (its first thread); "self" or a number.  -1: nobody says.  Makes system calls. */
int tw_filter_count(const char *process);

#endif
