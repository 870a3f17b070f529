/* SPDX-License-Identifier: Apache-2.0 */
/* rate.h - how many events threads were allowed in a second: the second and its count are one word, so that neither is seen alone. */
#ifndef TRACEWHEEL_ERLANG_RATE_H
#define TRACEWHEEL_ERLANG_RATE_H

#include <stdatomic.h>
#include <stdint.h>

/* The largest limit.  Above it, the count of a second has space for the last lots of all threads. */
#define RATE_MAX (UINT32_MAX / 2)

/*
 * rate_count - adds @events to a second, and returns its count.
 *
 * A later second begins a new count.  A thread that was preempted after it read the clock may come with an earlier one: its events
 * belong to the second that is counted, and never begin that one anew.
 * Threads	any.  Lock-free.
 */
static inline uint32_t rate_count(_Atomic uint64_t *counter, uint32_t second, uint32_t events)
{
	uint64_t found = atomic_load(counter), next;

	do {
		next = second > found >> 32 ? (uint64_t)second << 32 | events : found + events;
	} while (!atomic_compare_exchange_weak(counter, &found, next));
	return (uint32_t)next;
}

#endif
