/* SPDX-License-Identifier: Apache-2.0 */
/*
 * witness.h - a traced program's own account, in memory that survives it.
 *
 * Before a call a thread writes its number into `attempted`, after it into `committed`.  However the program dies, the
 * call under way is the one between the two.  A call carries two words: thread and number, and a function of these, so
 * that a changed word is noticed.
 */
#ifndef CRASH_WITNESS_H
#define CRASH_WITNESS_H

#include <stdint.h>

#define WITNESS_THREADS 64

struct witness_thread {
	_Alignas(64) _Atomic uint64_t attempted;
	_Atomic uint64_t committed;
	_Atomic int32_t thread_id; /* the kernel's number */
};

struct witness {
	/* Written by the harness before the program starts. */
	uint32_t threads;
	uint32_t calls_a_pause; /* 0: full speed */
	uint32_t pause_us;
	uint32_t is_slots; /* calls through GOT slots; otherwise of declared functions */
	/* Written by the harness at any time: end, in an orderly way. */
	_Atomic uint32_t program_stops, recorder_stops;
	/* Written by the program. */
	_Atomic uint32_t running; /* threads that made their first call */
	_Atomic int32_t process_id;
	struct witness_thread thread[WITNESS_THREADS];
	/* Written by the recorder as its last action. */
	_Atomic uint32_t is_finished;
	int32_t finish_error;
	uint64_t events, lost, unstored;
	uint64_t negative_hits; /* how often the wrong order was used, in a recorder built so */
};

#define WITNESS_NUMBER_BITS 40

static inline uint64_t witness_word(uint32_t thread, uint64_t number)
{
	return (uint64_t)thread << WITNESS_NUMBER_BITS | number;
}

static inline uint64_t witness_mix(uint64_t word)
{
	word ^= word >> 31;
	word *= UINT64_C(0x9e3779b97f4a7c15);
	return word ^ word >> 29;
}

#endif
