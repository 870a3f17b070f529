/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fiber.h - a stack of its own for each actor, and the switch between two of them (x86-64).
 *
 * An actor waits in the middle of a C function; meanwhile its scheduler runs another one, and the actor may be
 * continued by another thread.  Code on a fiber must therefore not keep the address of a thread-local variable across a wait.
 *
 * Threads  A fiber runs on one thread at a time; switches are ordered by the run queues' locks.
 */
#ifndef ACTORS_FIBER_H
#define ACTORS_FIBER_H

#include <stddef.h>

struct fiber {
	void *stack_pointer;
	char *stack; /* NULL: the thread's own */
	size_t stack_bytes;
	void *sanitizer; /* thread sanitizer: its name for the fiber; address sanitizer: its fake stack */
	void (*start)(void *context);
	void *context;
};

/* The calling thread itself, to switch back to. */
void fiber_init_thread(struct fiber *fiber);
/* A new one, with a guard page below its stack; false: no memory. */
int fiber_init(struct fiber *fiber, size_t stack_bytes);
void fiber_fini(struct fiber *fiber);
/* The next switch to it calls start, which must never return.  May be prepared again after its end. */
void fiber_prepare(struct fiber *fiber, void (*start)(void *context), void *context);

void fiber_switch(struct fiber *from, struct fiber *to);
/* The same, for the last time: from never runs again before it is prepared. */
void fiber_leave(struct fiber *from, struct fiber *to);
/* After its end, from another stack; the memory stays. */
void fiber_ended(struct fiber *fiber);

#endif
