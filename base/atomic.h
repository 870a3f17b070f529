/* SPDX-License-Identifier: Apache-2.0 */
/*
 * atomic.h - C11 atomics whose names carry their memory order.
 *
 * The only access to atomics in this project.  All operations except the two fences take a pointer to an _Atomic object; there
 * is no default order and no volatile.  Each use carries a comment with its tag just above it: PAIR, RELAXED or PROGRESS;
 * docs/memory-order.md holds one row for each PAIR.
 */
#ifndef TW_BASE_ATOMIC_H
#define TW_BASE_ATOMIC_H

#include <stdatomic.h>

#define tw_load_relaxed(p) atomic_load_explicit((p), memory_order_relaxed)
#define tw_load_acquire(p) atomic_load_explicit((p), memory_order_acquire)
#define tw_load_seq_cst(p) atomic_load_explicit((p), memory_order_seq_cst)

/* Access to a plain word in a public struct: C++ includes those headers, so they have no _Atomic. */
#define tw_load_plain_relaxed(p)     __atomic_load_n((p), __ATOMIC_RELAXED)
#define tw_load_plain_acquire(p)     __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define tw_store_plain_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)

#define tw_store_relaxed(p, v) atomic_store_explicit((p), (v), memory_order_relaxed)
#define tw_store_release(p, v) atomic_store_explicit((p), (v), memory_order_release)
#define tw_store_seq_cst(p, v) atomic_store_explicit((p), (v), memory_order_seq_cst)

#define tw_exchange_acq_rel(p, v) atomic_exchange_explicit((p), (v), memory_order_acq_rel)
#define tw_exchange_seq_cst(p, v) atomic_exchange_explicit((p), (v), memory_order_seq_cst)

/* Strong compare-and-swap; on failure *expected holds what was found, loaded with acquire. */
#define tw_cas_acq_rel(p, expected, desired) \
	atomic_compare_exchange_strong_explicit((p), (expected), (desired), memory_order_acq_rel, memory_order_acquire)
#define tw_cas_relaxed(p, expected, desired) \
	atomic_compare_exchange_strong_explicit((p), (expected), (desired), memory_order_relaxed, memory_order_relaxed)

#define tw_fetch_add_relaxed(p, v) atomic_fetch_add_explicit((p), (v), memory_order_relaxed)
#define tw_fetch_add_acq_rel(p, v) atomic_fetch_add_explicit((p), (v), memory_order_acq_rel)
#define tw_fetch_add_seq_cst(p, v) atomic_fetch_add_explicit((p), (v), memory_order_seq_cst)
#define tw_fetch_sub_acq_rel(p, v) atomic_fetch_sub_explicit((p), (v), memory_order_acq_rel)
#define tw_fetch_or_relaxed(p, v)  atomic_fetch_or_explicit((p), (v), memory_order_relaxed)
#define tw_fetch_or_acq_rel(p, v)  atomic_fetch_or_explicit((p), (v), memory_order_acq_rel)
#define tw_fetch_or_seq_cst(p, v)  atomic_fetch_or_explicit((p), (v), memory_order_seq_cst)
#define tw_fetch_and_relaxed(p, v) atomic_fetch_and_explicit((p), (v), memory_order_relaxed)
#define tw_fetch_and_seq_cst(p, v) atomic_fetch_and_explicit((p), (v), memory_order_seq_cst)

/*
 * Fences, for one case only: memory that is copied while it may be written, as in a sequence lock.
 *
 *	writer	store the position; tw_fence_release(); write the bytes
 *	reader	copy the bytes; tw_fence_acquire(); load the position
 *
 * If a copy contains a byte written after the first fence, the load that follows sees the position stored before it
 * (C11 7.17.4).  No store or load of the position gives that order: a release orders earlier accesses, an acquire
 * later ones.  Both fences cost no instruction on x86.
 *
 * Thread sanitizers do not model fences.  There they are compiler barriers, which on x86 is the same code; the copy
 * is compiled without the sanitizer (RACES_BY_DESIGN in ringbuf/overwrite.c), and the copied bytes that are used
 * were published by another pair, which the sanitizer sees.
 */
#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined __SANITIZE_THREAD__ || __has_feature(thread_sanitizer)
#define tw_fence_release() atomic_signal_fence(memory_order_release)
#define tw_fence_acquire() atomic_signal_fence(memory_order_acquire)
#else
#define tw_fence_release() atomic_thread_fence(memory_order_release)
#define tw_fence_acquire() atomic_thread_fence(memory_order_acquire)
#endif

/*
 * Keeps the compiler from moving memory accesses across it, for data that a signal handler on the same thread must
 * see in order.  Orders nothing between threads.
 */
#define tw_compiler_barrier() atomic_signal_fence(memory_order_seq_cst)

/*
 * Compare and swap of a word owned by the calling thread, in one instruction: the thread's signal handlers run before or
 * after it, even if they switch to another coroutine.  No order between threads.  A compiler barrier.
 */
static inline _Bool tw_cas_own(unsigned long *word, unsigned long expected, unsigned long desired)
{
#if defined __x86_64__
	_Bool is_done;

	__asm__ volatile("cmpxchg %[desired], %[word]"
			 : "=@ccz"(is_done), [word] "+m"(*word), "+a"(expected)
			 : [desired] "r"(desired)
			 : "memory");
	return is_done;
#else
	return __atomic_compare_exchange_n(word, &expected, desired, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
#endif
}

/*
 * Adds to a word that only the calling thread writes, in one instruction as above; other threads, or processes, may read it.
 * RELAXED: no order.
 */
static inline void tw_add_own(_Atomic unsigned long *word, unsigned long value)
{
#if defined __x86_64__ && !defined __SANITIZE_THREAD__ && !__has_feature(thread_sanitizer)
	__asm__("addq %[value], %[word]" : [word] "+m"(*word) : [value] "er"(value) : "cc");
#else
	atomic_store_explicit(word, atomic_load_explicit(word, memory_order_relaxed) + value, memory_order_relaxed);
#endif
}

/*
 * A full barrier of the processor, for the two protocols in which a store must come before a later load and neither is a
 * read-modify-write (PROGRESS).  Not a fence of C11: thread sanitizers refuse those, and no order that they check needs
 * this one.
 */
#if defined __x86_64__
#define tw_full_barrier() __asm__ volatile("lock orl $0, (%%rsp)" ::: "memory", "cc")
#else
#define tw_full_barrier() atomic_thread_fence(memory_order_seq_cst)
#endif

/* A hint to the processor inside a spin loop. */
#if defined __x86_64__
#define tw_cpu_relax() __builtin_ia32_pause()
#else
#define tw_cpu_relax() tw_compiler_barrier()
#endif

#endif
