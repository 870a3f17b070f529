/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slow_help.h - functions in whose first instructions threads are stopped most of the time, the jumps that are written there,
 * and words that processes share.
 */
#ifndef TW_TESTS_SLOW_HELP_H
#define TW_TESTS_SLOW_HELP_H

#include "base/atomic.h"
#include "ringbuf/held.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define JUMP_BYTES 5

/* cpuid leaves to the hypervisor, so that interrupts come behind it.  A function on pages of its own, with its copy. */
#define SLOW(name)                                                                                                \
	__asm__(".pushsection .text\n.p2align 12\n.globl " #name ", " #name "_copy\n.type " #name                 \
		", @function\n" #name                                                                             \
		":\npush %rbx\ncpuid\nmov %edi, %eax\nadd $5, %eax\npop %rbx\nret\n.p2align 4\n" #name "_copy:\n" \
		"push %rbx\ncpuid\nmov %edi, %eax\njmp " #name "+5\n.p2align 12\n.popsection");                   \
	extern unsigned name(unsigned x);                                                                         \
	extern const uint8_t name##_copy[]

/* The jump over a slow function's first instructions, to be written or taken back. */
static inline struct tw_rs_held_piece piece_of(unsigned (*function)(unsigned), const uint8_t *copy, bool is_planting)
{
	struct tw_rs_held_piece piece = {.at = (uintptr_t)function, .count = JUMP_BYTES};
	int32_t displacement = (int32_t)((intptr_t)copy - (intptr_t)function - JUMP_BYTES);
	uint8_t jump[JUMP_BYTES] = {0xe9};

	memcpy(jump + 1, &displacement, sizeof displacement);
	memcpy(is_planting ? piece.before : piece.after, copy, JUMP_BYTES);
	memcpy(is_planting ? piece.after : piece.before, jump, JUMP_BYTES);
	return piece;
}

static inline uint32_t get(const _Atomic uint32_t *word)
{
	/* PAIR test.word: acquire; of set(), in another process. */
	return tw_load_acquire(word);
}

static inline void set(_Atomic uint32_t *word, uint32_t value)
{
	/* PAIR test.word: release; of get(). */
	tw_store_release(word, value);
}

static inline void nap(long us)
{
	const struct timespec time = {0, us * 1000};

	nanosleep(&time, NULL);
}

/* The words of calling threads, which several processes share. */
struct calls {
	_Atomic uint32_t is_over, wrong; /* set by the test; set by a thread that got another answer */
	_Atomic uint64_t rounds;
};

/* Calls a slow function until it is over. */
static inline void call_slow(struct calls *calls, unsigned (*function)(unsigned))
{
	for (unsigned x = 0; !get(&calls->is_over); x++) {
		unsigned leaf = 0, other;

		/* Threads must also be outside now and then. */
		for (int i = 0; i < 6; i++)
			__asm__ volatile("cpuid" : "+a"(leaf), "=c"(other) : : "rbx", "rdx");
		if (function(x) != x + 5)
			set(&calls->wrong, 1);
		/* RELAXED test.rounds: a sign of life. */
		tw_fetch_add_relaxed(&calls->rounds, 1);
	}
}

#endif
