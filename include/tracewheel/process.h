/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.h - processes in OTP's sense: whose calls are traced.
 *
 * By default every thread is a process.  A run-time system with processes of its own (actors, fibers,
 * requests) declares its threads schedulers and says which process a scheduler runs:
 *
 *	tw_scheduler_declare();
 *	struct tw_process *actor;
 *	tw_process_create("worker", &actor);
 *	...
 *	tw_process_in(actor);	   its events from here on belong to the actor
 *	run(actor);
 *	tw_process_out();
 *
 * Who spawned whom, messages, links, exits and collections are told with runtime.h; docs/embedding.md is the guide.
 *
 * A process may move to another thread at any time; the order of its events is kept exactly, whatever
 * the clocks of the processors say.
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

/* Names a process; printed <0.N.0>.  Not reused in a program before 2^32 processes were made, nor while one has it. */
typedef uint64_t tw_pid;

/* In place of a pid.  OTP: all, existing, new. */
#define TW_PID_ALL	(UINT64_MAX)
#define TW_PID_EXISTING (UINT64_MAX - 1)
#define TW_PID_NEW	(UINT64_MAX - 2)

/*
 * This thread runs processes and is none itself: without one its calls reach only counters.
 * Errors: TW_ENOMEM, TW_EDEADLK in a hit.
 */
int tw_scheduler_declare(void);

/*
 * tw_process_create - a process comes to be; it gets the flags of new processes of every session.
 *
 * @name	borrows: shown beside the pid, cut at 31 bytes; NULL: none.
 * @out		gives; tw_process_exit() takes.
 * Errors: TW_ENOMEM, TW_EDEADLK in a hit.
 */
int tw_process_create(const char *name, struct tw_process **out);

/*
 * The process ends; it runs nowhere, or on the calling thread.  Events: those of tw_process_exiting() with reason
 * normal, where that was not called, and then, as its very last, out_exited.
 */
void tw_process_exit(struct tw_process *process);

/*
 * The calling thread runs it from here on; NULL: none.  Whom it ran before is out.  Event: in (in_exiting) with 0 for
 * the function, tw_process_in_at() says which.  Keeps errno; wait-free once joined.
 */
void tw_process_in(struct tw_process *process);
/* The calling thread runs none any more (a scheduler), or itself.  Event: out (out_exiting) with 0. */
void tw_process_out(void);

tw_pid tw_process_pid(const struct tw_process *process);
/* Of whom the calling thread runs; 0: of none. */
tw_pid tw_process_self(void);

#ifdef __cplusplus
}
#endif

#endif
