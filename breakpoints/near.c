/* SPDX-License-Identifier: Apache-2.0 */
/* near.c - searches address space around an object. */
#include "breakpoints/near.h"

#include "base/cacheline.h"

#include <sys/mman.h>

#define LOWEST 0x10000u
/* Range of a jump, minus the memory's size and the jumping code themselves. */
#define REACH_BYTES (INT64_C(0x80000000) - 0x200000)
#define SLACK_BYTES INT64_C(0x10000000)

bool tw_near_reaches(uintptr_t memory, uintptr_t low, uintptr_t high)
{
	return (int64_t)(memory - high) > -REACH_BYTES && (int64_t)(memory - low) < REACH_BYTES;
}

/* Maps memory at exactly this address, or none. */
static void *map_at(uintptr_t address, size_t bytes)
{
	void *at = mmap((void *)address, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	/* Kernels before 4.17 treat the address as a hint. */
	if (at != (void *)address) {
		munmap(at, bytes);
		return NULL;
	}
	return at;
}

static uintptr_t step(uintptr_t distance, size_t bytes)
{
	return (distance / 16 + bytes) & ~(uintptr_t)(TW_PAGE_BYTES - 1);
}

/*
 * Tries addresses in growing steps: some hundred tries at most; mostly the first succeeds.  Above, it first leaves SLACK_BYTES, so that
 * the memory serves addresses below these as well.
 */
void *tw_near_map(uintptr_t low, uintptr_t high, size_t bytes)
{
	uintptr_t page = low & ~(uintptr_t)(TW_PAGE_BYTES - 1), span = high - low;
	void *at = NULL;

	if (span >= (uintptr_t)REACH_BYTES)
		return NULL;
	for (uintptr_t d = bytes; !at && d < (uintptr_t)REACH_BYTES - span && page > LOWEST + d; d += step(d, bytes))
		at = map_at(page - d, bytes);
	for (uintptr_t d = REACH_BYTES - SLACK_BYTES; !at && d > (uintptr_t)REACH_BYTES / 4 && d > span; d -= 0x400000)
		at = map_at(page + d, bytes);
	for (uintptr_t d = REACH_BYTES - TW_PAGE_BYTES; !at && d > (uintptr_t)REACH_BYTES - SLACK_BYTES && d > span;
	     d -= 0x400000)
		at = map_at(page + d, bytes);
	return at;
}
