/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter.h - may the calling thread make system calls?
 *
 * A program may forbid itself any system call (seccomp), and must not be killed for one of ours.  Reading whether a filter is
 * active needs a system call itself, so the state is known beforehand:
 *
 *	own words	prctl() and syscall() of a preloaded program are wrapped, and set a word before the filter is set
 *	the recorder	reads /proc/PID/task/TID/status now and then, and sets a word in shared memory
 *
 * System call user dispatch turns a thread's calls into SIGSYS while a byte of the program's, the selector, says so.  Threads
 * and processes made by that thread begin without it.  The selector is read before each call of ours.
 *
 * Filters active when the program began are ignored: the library's system calls have been tried at the start of the
 * first thread.  Threads first checked after another thread had set a filter may have inherited it.
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
 * False: do not make the call, and count the events lost by that.
 */
bool tw_thread_may_call_system(void);

/* The same for a thread of which nothing may be known, not even thread-local variables: false from the first filter or dispatch on. */
bool tw_process_may_call_system(void);

enum tw_filter_scope { TW_FILTER_THREAD, TW_FILTER_ALL_THREADS };

/* Bracket a call by which the calling thread sets a filter.  In between, no affected thread may make system calls. */
struct tw_filter_change {
	uint8_t kept;
	enum tw_filter_scope scope;
};
struct tw_filter_change tw_filter_begin(enum tw_filter_scope scope);
void tw_filter_end(struct tw_filter_change change, bool was_set);

/* The calling thread's system call user dispatch. */
struct tw_dispatch {
	const volatile uint8_t *selector; /* NULL: all calls are dispatched */
	bool is_on;
};
/*
 * tw_dispatch_set - what prctl(PR_SET_SYSCALL_USER_DISPATCH) is about to set for the calling thread, or has taken back.
 *
 * @dispatch	its selector must be readable as long as it is on; the kernel reads it too.
 *
 * Returns what was set before.
 */
struct tw_dispatch tw_dispatch_set(struct tw_dispatch dispatch);

/* Sets the word in which the recorder reports a filter: 0 until then.  Shares until the next call.  NULL: there is none. */
void tw_filter_watch(const _Atomic uint32_t *word);

/* The number of filters of a process (of its first thread); "self" or a pid.  -1: not known.  Makes system calls. */
int tw_filter_count(const char *process);

#endif
