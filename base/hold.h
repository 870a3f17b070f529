/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold.h - stops all threads of another process for a moment, and shows where each of them is.
 *
 * By ptrace(), so the caller must be allowed to trace the process, and no other tracer may have it.  PTRACE_SEIZE and
 * PTRACE_INTERRUPT: no signal is sent, and a thread that a signal has stopped stays stopped afterwards.  If the caller
 * dies at any time, the kernel lets all threads go on.  If it is stopped, they wait, so it should be a process of its own that is
 * guarded (tw_hold_guard).
 *
 * A system call that the stop interrupts is started again by the kernel; so are those (epoll_wait and others) that
 * would otherwise fail with EINTR although no signal handler has run, with what is left of their time (waited.h).
 *
 * Threads  one hold belongs to one thread, which makes all calls: the kernel knows the tracer by its thread.  No call allocates,
 *	    so all may be made in a child of tw_sys_fork().
 */
#ifndef TW_BASE_HOLD_H
#define TW_BASE_HOLD_H

#include "base/limits.h"
#include "base/waited.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TW_HOLD_THREADS_MAX TW_RS_HELD_THREADS_MAX

enum tw_hold_outcome {
	TW_HOLD_OK,
	TW_HOLD_DENIED,	  /* the system refuses */
	TW_HOLD_TRACED,	  /* another tracer has a thread */
	TW_HOLD_TOO_MANY, /* more threads than may be stopped; count says how many */
	TW_HOLD_STUCK,	  /* a thread did not stop: in vfork(), or waiting for a device */
	TW_HOLD_GONE	  /* no thread is left */
};

struct tw_held_thread {
	int thread_id;
	int signal;	     /* to be delivered when it goes on; 0: none */
	uint64_t pc;	     /* the next instruction */
	uint64_t call;	     /* not 0: in a system call, whose instruction this may be */
	uint64_t stack;	     /* stack pointer */
	uint64_t descriptor; /* thread pointer: the top of a thread's own stack, but for the first thread */
	uint64_t turns;	     /* how often it had got a processor */
	struct tw_waited waited;
	bool was_running; /* when it was listed or watched; else it was waiting in the kernel */
	bool is_seized, is_stopped, is_gone;
};

struct tw_hold {
	int process_id;
	unsigned most; /* of threads; 0: TW_HOLD_THREADS_MAX */
	unsigned count;
	struct tw_held_thread threads[TW_HOLD_THREADS_MAX];
	/* Threads that did not stop in time: they are let go as soon as they do. */
	unsigned late_count;
	struct {
		int process_id, thread_id;
	} late[TW_HOLD_THREADS_MAX];
	/* NULL: nothing.  Called for each thread when it has stopped, while others may run.  False: the hold ends as if one were stuck. */
	bool (*see)(void *arg, const struct tw_held_thread *thread);
	void *see_arg;
	bool is_late;	     /* an earlier hold had not stopped all threads in time */
	uint64_t begun_ns;   /* when the first thread could be stopped */
	uint64_t running_ns; /* when the first of those could be stopped that were running */
	uint64_t stood_ns;   /* for how long the last hold stopped threads, from its first to its last one */
	uint64_t paused_ns;  /* the same of those that were running: no thread that has work stands still for longer */
	struct tw_waited_process waits;
	/* Timers of the kernel's. */
	int continues, ends;
	bool is_guarded, is_guard_set;
};

/*
 * tw_hold_guard - from now on, while this process holds threads, do not let it stand still.
 *
 * Timers of the kernel's, which run also while the process is stopped, send it SIGCONT every TW_HOLD_CONTINUED_NS, and SIGKILL
 * after TW_HOLD_ENDED_NS: it may be stopped by a debugger, or wait for something.  False: the system has no timers for us.
 */
bool tw_hold_guard(struct tw_hold *hold);

/*
 * tw_hold_begin - stop all threads: first those that wait in the kernel, then those that run.
 *
 * @hold	zeroed before the first use; `see` may be set.
 *
 * TW_HOLD_OK: tw_hold_end() lets them go on, and must follow soon.  Any other outcome: nothing is held.
 */
enum tw_hold_outcome tw_hold_begin(struct tw_hold *hold, int process_id);
void tw_hold_end(struct tw_hold *hold);

/* True if threads have been stopped for as long as they may: TW_HOLD_NS. */
bool tw_hold_is_due(const struct tw_hold *hold);

/* Lets late threads go on, to be called until it returns false: none is left. */
bool tw_hold_end_late(struct tw_hold *hold);

/* Copies memory of the held process, of which a thread has stopped; returns the number of bytes that could be read. */
size_t tw_hold_read(const struct tw_hold *hold, uint64_t address, void *out, size_t bytes);

/* The address at which the first thread's stack begins, from which it grows downwards; 0: not known. */
uint64_t tw_hold_first_stack(int process_id);

#endif
