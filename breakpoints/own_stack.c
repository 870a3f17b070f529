/* SPDX-License-Identifier: Apache-2.0 */
/* own_stack.c - takes a stack of our own for a call.  Compiled without vector registers: they are the program's here. */
#include "breakpoints/own_stack.h"

#include "base/cacheline.h"
#include "base/filter.h"
#include "base/own_area.h"
#include "base/sys.h"
#include "breakpoints/patch.h"
#include "breakpoints/trampoline.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
/* Frames are several times as large there. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__ || __has_feature(address_sanitizer) || \
	__has_feature(thread_sanitizer) || !defined __OPTIMIZE__
#define STACK_BYTES ((uintptr_t)256 << 10)
#else
#define STACK_BYTES ((uintptr_t)64 << 10)
#endif

#define STACKS 16u
#define ALL    ((UINT32_C(1) << STACKS) - 1)

/*
 * While all stacks are in use, each thread that gives one back wakes one that waits.  A wake that is missed costs one slice; short
 * slices of hundreds of threads would take the processors from those that have the stacks.
 */
#define SLICE_NS  20000000
#define SLICES	  50u
#define WAKES_MAX 100000u

struct tw_own_stacks tw_own_stacks;
static _Atomic uint32_t free_stacks; /* a bit for each stack that nobody uses */
static _Atomic uint32_t waiters;
static _Atomic bool is_refused; /* there was no memory for the stacks */

void tw_own_stacks_init(void)
{
	const uintptr_t bytes = STACKS * STACK_BYTES;
	char *low;

	/* RELAXED own_stack.low: under the permit. */
	if (tw_load_relaxed(&tw_own_stacks.low))
		return;
	/* Anywhere: sanitizers of programs need certain addresses, each other ones. */
	low = tw_own_area_map(NULL, bytes);
	if (!low) {
		/* RELAXED own_stack.refused: before anything is armed. */
		tw_store_relaxed(&is_refused, true);
		return;
	}
	for (unsigned i = 0; i < STACKS; i++)
		tw_sys_protect(low + i * STACK_BYTES, TW_PAGE_BYTES, PROT_NONE);
	tw_own_stacks.bytes = bytes;
	/* PAIR own_stack.low: release; acquire in tw_own_stack_has().  The number of bytes is known before. */
	tw_store_release(&tw_own_stacks.low, (uintptr_t)low);
	/* PAIR own_stack.free: release; acq_rel in take().  A thread that takes a stack knows where they lie. */
	tw_store_release(&free_stacks, ALL);
}

void tw_own_stacks_after_fork_in_child(void)
{
	/* RELAXED own_stack.low: set before the fork, or never used. */
	if (tw_load_relaxed(&tw_own_stacks.low)) {
		/* RELAXED own_stack.free: there is one thread, which is on none of them. */
		tw_store_relaxed(&free_stacks, ALL);
		/* RELAXED own_stack.waiters: as above; those of the parent's other threads are not here. */
		tw_store_relaxed(&waiters, 0);
	}
}

/* The top of a stack that was free; 0: there is none now. */
static inline __attribute__((always_inline)) uintptr_t take(void)
{
	/* RELAXED own_stack.free: decided by the exchange. */
	uint32_t found = tw_load_relaxed(&free_stacks);

	while (found) {
		/*
		 * PAIR own_stack.free: acq_rel; release in give().  Data that the last call has left on the stack is overwritten
		 * behind it.
		 */
		if (tw_cas_acq_rel(&free_stacks, &found, found & (found - 1))) {
			/* RELAXED own_stack.low: set before there was a free stack. */
			return tw_load_relaxed(&tw_own_stacks.low) +
			       ((uintptr_t)__builtin_ctz(found) + 1) * STACK_BYTES;
		}
	}
	return 0;
}

static void give(uintptr_t top)
{
	/* RELAXED own_stack.low: as above. */
	uintptr_t number = (top - tw_load_relaxed(&tw_own_stacks.low)) / STACK_BYTES - 1;

	/* PAIR own_stack.free: release; acq_rel in take().  The call that used the stack is over. */
	tw_fetch_or_acq_rel(&free_stacks, UINT32_C(1) << number);
	/* RELAXED own_stack.waiters: as above. */
	if (tw_unlikely(tw_load_relaxed(&waiters)))
		tw_sys_futex_wake(&free_stacks, 1);
}

/* In place, and without words on the stack: this is the program's. */
static inline __attribute__((always_inline)) long call_system(long number, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return result;
}

static __attribute__((noinline)) uintptr_t take_later(void)
{
	static const struct timespec slice = {.tv_nsec = SLICE_NS};
	uintptr_t top = 0;
	unsigned slices = 0;

	/* RELAXED own_stack.low: as above. */
	if (!tw_load_relaxed(&tw_own_stacks.low))
		return 0;
	/* RELAXED own_stack.waiters: a hint; a missed wake costs one slice. */
	tw_fetch_add_relaxed(&waiters, 1);
	/* Another thread that takes the stack first makes progress: only time without a wake counts. */
	for (unsigned wakes = 0; !top && slices < SLICES && wakes < WAKES_MAX; wakes++) {
		slices += call_system(SYS_futex, (long)&free_stacks, FUTEX_WAIT, 0, (long)&slice) == -ETIMEDOUT;
		top = take();
	}
	/* RELAXED own_stack.waiters: as above. */
	tw_fetch_add_relaxed(&waiters, UINT32_MAX);
	return top;
}

/* Lies at the top of the stack that the call is made on: the program's may have little left. */
struct work {
	void (*function)(void *);
	void *argument;
	int cancel_state;
};
_Static_assert(sizeof(struct work) % 8 == 0, "a stack pointer is below it");

static inline __attribute__((always_inline)) struct work *work_at(uintptr_t top)
{
	/* Found anew each time, or it would take a register, which is saved on the program's stack. */
	__asm__("" : "+r"(top));
	return (struct work *)top - 1;
}

/*
 * libc acts on a cancellation at once where it is enabled again, and signals do not matter then: the sections without
 * cancellation in our work (base/quiet.h) would end the thread here, and the stack would never be given back.
 */
static void work_there(void *argument)
{
	struct work *work = argument;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &work->cancel_state);
	work->function(work->argument);
}

/* The mask is a result and an argument, and its address in no register of the caller, which would be saved on the program's stack. */
static __attribute__((noinline)) uint64_t block_signals(void)
{
	static const uint64_t all = ~UINT64_C(0);
	uint64_t before;

	call_system(SYS_rt_sigprocmask, SIG_BLOCK, (long)&all, (long)&before, sizeof before);
	return before;
}

static __attribute__((noinline)) void restore_signals(uint64_t before)
{
	call_system(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof before);
}

static __attribute__((noinline)) bool call(void (*function)(void *), void *argument)
{
	/* Before a stack is taken: no handler can leave this function by a jump, with the stack. */
	uint64_t signals = block_signals();
	bool is_enabled = false;
	uintptr_t top = take();

	if (tw_unlikely(!top))
		top = take_later();
	if (top) {
		*work_at(top) = (struct work){function, argument, PTHREAD_CANCEL_DISABLE};
		tw_patch_call_on(work_there, work_at(top));
		/* Before another thread takes the stack. */
		is_enabled = work_at(top)->cancel_state == PTHREAD_CANCEL_ENABLE;
		give(top);
	}
	restore_signals(signals);
	/* The destructors of a thread that is cancelled here run with the program's own mask. */
	if (is_enabled)
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	return top != 0;
}

bool tw_own_stack_try(void (*function)(void *), void *argument)
{
	/* RELAXED own_stack.refused: as above.  RELAXED own_stack.low: without places, all calls are the program's on purpose. */
	bool has_any = tw_load_relaxed(&tw_own_stacks.low) || tw_load_relaxed(&is_refused);

	if (has_any && !tw_own_stack_has(__builtin_frame_address(0)) && tw_thread_may_call_system())
		return call(function, argument);
	if (tw_own_stack_has(__builtin_frame_address(0)))
		function(argument);
	else
		tw_patch_call_keeping_vectors(function, argument);
	return true;
}

void tw_own_stack_call(void (*function)(void *), void *argument)
{
	if (!tw_own_stack_try(function, argument))
		tw_patch_call_keeping_vectors(function, argument);
}
