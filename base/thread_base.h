/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_base.h - does %fs of the calling thread point to libc's data of a thread?
 *
 * Emulators, unikernels and some sandboxes run code with a %fs of their own.  Nothing may be read through it then: no
 * thread-local variable, no errno, no function of libc's that does.
 *
 *	rdfsbase	gives the address without reading memory
 *	a table		of addresses that were libc's; each thread's is examined once
 *
 * Threads  any, in hits and handlers.  No vector registers, and no thread-local variables.
 */
#ifndef TW_BASE_THREAD_BASE_H
#define TW_BASE_THREAD_BASE_H

#include "base/assert.h"
#include "base/atomic.h"

#include <stdbool.h>
#include <stdint.h>

#define TW_THREAD_BASE_SET_BITS 9
#define TW_THREAD_BASE_SET	8

/* By a hash of the address: that plus 1, or 0. A set is one line of the cache. */
extern _Atomic(uintptr_t) tw_thread_bases[1 << TW_THREAD_BASE_SET_BITS][TW_THREAD_BASE_SET];

/*
 * tw_thread_base_init - can it be asked on this machine?  The calling thread is libc's.
 *
 * False: the processor or the system has no rdfsbase (Linux 5.9), or libc does not say where it keeps a thread's number.
 */
bool tw_thread_base_init(void);

/* The first time that this address is seen, or its set has several. */
bool tw_thread_base_examine(uintptr_t base);

static inline _Atomic(uintptr_t) *tw_thread_base_set(uintptr_t base)
{
	return tw_thread_bases[base * UINT64_C(0x9e3779b97f4a7c15) >> (64 - TW_THREAD_BASE_SET_BITS)];
}

/* These two only if tw_thread_base_init() has said yes. */
static inline uintptr_t tw_thread_base(void)
{
	uintptr_t base;

	__asm__ volatile("rdfsbase %0" : "=r"(base));
	return base;
}

/* Was the address found to be libc's before?  False: tw_thread_base_examine() says. */
static inline bool tw_thread_base_is_known(uintptr_t base)
{
	/* RELAXED thread_base.set: a value is right whoever has stored it. */
	return tw_likely(tw_load_relaxed(&tw_thread_base_set(base)[0]) == base + 1);
}

#endif
