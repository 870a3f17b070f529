/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waited.h - system calls of another process that would begin anew because its thread was stopped.
 *
 * The kernel begins most calls again that a stop has interrupted, and their time limits end when they would have ended. Some fail with
 * EINTR instead, as epoll_wait(): they are begun again by a change of registers, with what is left of their time.  How long they have
 * waited follows from when the scheduler has seen the thread run last, by the clock of its processor.  A wait may end late by what is not
 * known, and never early.  A call that is not made by a function of libc begins anew with all of its time: the program may use the
 * register of the limit once more.
 *
 *	1 tw_waited_see()	while the thread runs, or waits
 *	2 the thread is stopped by ptrace(), and its registers are read
 *	3 tw_waited_repair()	changes them
 *
 * Threads  any; a struct tw_waited_process belongs to one thread.  Nothing is allocated.
 */
#ifndef TW_BASE_WAITED_H
#define TW_BASE_WAITED_H

#include <stdbool.h>
#include <stdint.h>

struct user_regs_struct;

/* A thread that waits in such a call, with a limit. */
struct tw_waited {
	int32_t call;	   /* 0: it does not */
	uint32_t switches; /* how often it had given its processor up */
	uint64_t since_ns; /* CLOCK_MONOTONIC: not before it began to wait; 0: not known */
};

/* The process and the machine, as far as they were asked.  Zeroed before the first use for a process. */
#define TW_WAITED_CLOCKS 32
struct tw_waited_process {
	struct tw_waited_clock {
		uint64_t there_ns, here_ns; /* its clock when CLOCK_MONOTONIC was so; 0: not known */
	} clocks[TW_WAITED_CLOCKS];	    /* of processors, as they were asked last */
	uint64_t libc_low, libc_high;	    /* libc's code */
	bool has_libc;			    /* it was looked for */
};

void tw_waited_see(struct tw_waited *waited, struct tw_waited_process *process, int process_id, int thread_id);

/*
 * tw_waited_repair - begin a call again that the stop has ended.
 *
 * @registers	of the thread, which is stopped: changed, and not written.  If a handler is to run, the kernel makes the call fail with
 *		EINTR again.
 * @space	16 bytes of the thread's memory that nobody uses before it has begun the call again, as below its red zone: for a limit
 *		that the call reads from memory.
 *
 * Returns whether they have changed.
 */
bool tw_waited_repair(const struct tw_waited *waited, int process_id, int thread_id, struct user_regs_struct *registers,
		      uint64_t space);

#endif
