/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.h - processes in OTP's sense, the units whose calls are traced.
 *
 * By default every thread is a process.  A run-time system with processes of its own (actors, fibers,
 * requests) declares its threads schedulers and reports which process a scheduler runs:
 *
 *	tw_scheduler_declare();
 *	struct tw_process *actor;
 *	tw_process_create("worker", &actor);
 *	...
 *	tw_process_in(actor);	   its events from here on belong to the actor
 *	run(actor);
 *	tw_process_out();
 *
 * Spawns, messages, links, exits and collections are reported with runtime.h; docs/embedding.md is the guide.
 *
 * A process may move to another thread at any time; the order of its events is kept exactly, independent of the
 * processors' clocks.
 *
 * Threads  A process runs on one thread at a time; in, out and exit are called on that thread.
 * Source   OTP: processes, `running` in trace:process/4.
 */
#ifndef TRACEWHEEL_PROCESS_H
#define TRACEWHEEL_PROCESS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tw_process;

/* Names a process; printed <0.N.0>.  Not reused before the program has made 2^32 processes, nor while a process has it. */
typedef uint64_t tw_pid;

/* Special values for a pid.  OTP: all, existing, new. */
#define TW_PID_ALL	(UINT64_MAX)
#define TW_PID_EXISTING (UINT64_MAX - 1)
#define TW_PID_NEW	(UINT64_MAX - 2)

/*
 * tw_scheduler_declare - the calling thread runs processes and is not one itself.
 *
 * Between processes, its calls reach counters only.
 * Errors: TW_ENOMEM, TW_EDEADLK in a hit.
 */
int tw_scheduler_declare(void);

/*
 * tw_process_create - create a process; it gets the flags of new processes of every session.
 *
 * @name	borrows: shown beside the pid, cut at 31 bytes; NULL: none.
 * @out		gives; tw_process_exit() takes.
 * Errors: TW_ENOMEM, TW_EDEADLK in a hit.
 */
int tw_process_create(const char *name, struct tw_process **out);

/*
 * Ends a process that runs on no thread or on the calling one.  Events: those of tw_process_exiting() with reason
 * normal, if that was not called, and then out_exited as the last one.
 */
void tw_process_exit(struct tw_process *process);

/*
 * The calling thread runs this process from now on; NULL: none.  The process it ran before is scheduled out.  Event:
 * in (in_exiting) with 0 for the function; tw_process_in_at() names the function.  Keeps errno; wait-free once the
 * thread has joined.
 */
void tw_process_in(struct tw_process *process);
/* The calling thread runs no process (a scheduler), or its own again.  Event: out (out_exiting) with 0. */
void tw_process_out(void);

tw_pid tw_process_pid(const struct tw_process *process);
/* The pid of the process that the calling thread runs; 0: none. */
tw_pid tw_process_self(void);

#ifdef __cplusplus
}
#endif

#endif
