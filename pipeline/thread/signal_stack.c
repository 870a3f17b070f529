/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signal_stack.c - stacks of our own for the signal handlers of threads that have none, where a crash is to be written down: without one, no
 * handler runs when a thread's stack has overflowed.
 *
 * A thread gets its stack when it joins, and gives it back when it leaves: the thread's structure keeps it, for the next thread.  A handler of
 * the program with SA_ONSTACK runs on it, too, if its thread has set none; one that the thread sets takes its place.
 */
#include "pipeline/thread/thread.h"
#include "base/cacheline.h"

#include <sys/mman.h>

#define STACK_BYTES ((size_t)64 << 10)

bool tw_thread_gives_signal_stacks;

/* With a page below that cannot be written. */
static uint8_t *make_stack(void)
{
	uint8_t *memory = mmap(NULL, TW_PAGE_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	mprotect(memory, TW_PAGE_BYTES, PROT_NONE);
	return memory + TW_PAGE_BYTES;
}

bool tw_thread_is_given_stack(const void *low)
{
	const struct tw_thread *thread = tw_hit_tls.thread;

	return thread && thread->signal_stack && low == thread->signal_stack;
}

void tw_thread_give_signal_stack(struct tw_thread *thread)
{
	/* One that is disarmed while its handler runs is known, too. */
	if (!tw_thread_gives_signal_stacks || tw_thread_signal_stack.high)
		return;
	if (!thread->signal_stack)
		thread->signal_stack = make_stack();
	if (!thread->signal_stack || !tw_sys_set_signal_stack(thread->signal_stack, STACK_BYTES))
		return;
	tw_thread_signal_stack = (struct tw_sys_signal_stack){.low = (uintptr_t)thread->signal_stack,
							      .high = (uintptr_t)thread->signal_stack + STACK_BYTES};
}

void tw_thread_take_signal_stack(struct tw_thread *thread)
{
	if (!thread->signal_stack || tw_thread_signal_stack.low != (uintptr_t)thread->signal_stack)
		return;
	/* The handler that runs on it, and ends the thread, is the last one. */
	if (!tw_sys_set_signal_stack(NULL, 0))
		thread->signal_stack = NULL;
	tw_thread_signal_stack = (struct tw_sys_signal_stack){0};
}
