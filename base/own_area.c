/* SPDX-License-Identifier: Apache-2.0 */
/* own_area.c - a list that only grows, and mmap() for programs that lock their mappings. */
#include "base/own_area.h"
#include "base/atomic.h"
#include "base/sys.h"

#include <sys/mman.h>

static struct {
	_Atomic uintptr_t first, end;
} areas[TW_OWN_AREAS_MAX];
static _Atomic uint32_t area_count;
static _Atomic bool is_future_locked;

void tw_own_area_add(const void *address, size_t bytes)
{
	/* RELAXED own.area: an entry is valid once its end is set. */
	uint32_t index = tw_fetch_add_relaxed(&area_count, 1);

	if (index >= TW_OWN_AREAS_MAX)
		return;
	/* RELAXED own.area: as above. */
	tw_store_relaxed(&areas[index].first, (uintptr_t)address);
	/* PAIR own.area: release; acquire in tw_own_area_find(). */
	tw_store_release(&areas[index].end, (uintptr_t)address + bytes);
}

bool tw_own_area_find(uintptr_t from, uintptr_t to, uintptr_t *first, uintptr_t *end)
{
	bool any = false;

	for (uint32_t i = 0; i < TW_OWN_AREAS_MAX; i++) {
		/* PAIR own.area: acquire; release in tw_own_area_add(): where it begins. */
		uintptr_t high = tw_load_acquire(&areas[i].end);
		/* RELAXED own.area: as above. */
		uintptr_t low = tw_load_relaxed(&areas[i].first);

		if (low >= to || high <= from || (any && low >= *first))
			continue;
		any = true;
		*first = low > from ? low : from;
		*end = high < to ? high : to;
	}
	return any;
}

void tw_own_area_set_future_locked(bool is_locked)
{
	/* RELAXED own.locked: a single word; a thread that reads it late maps locked memory. */
	tw_store_relaxed(&is_future_locked, is_locked);
}

bool tw_own_area_is_future_locked(void)
{
	/* RELAXED own.locked: as above. */
	return tw_load_relaxed(&is_future_locked);
}

void *tw_own_area_map(void *at, size_t bytes)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED_NOREPLACE : 0);
	bool is_locked = tw_own_area_is_future_locked();
	void *memory = mmap(at, bytes, is_locked ? PROT_NONE : PROT_READ | PROT_WRITE, flags, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	/* Kernels before 4.17 take the address for a hint. */
	if (at && memory != at) {
		munmap(memory, bytes);
		return NULL;
	}
	/* Inaccessible pages are not made present; they are unlocked before they become accessible. */
	if (is_locked &&
	    (tw_sys_unlock(memory, bytes) < 0 || tw_sys_protect(memory, bytes, PROT_READ | PROT_WRITE) < 0)) {
		munmap(memory, bytes);
		return NULL;
	}
	/* One touched word would take 2 MiB. */
	madvise(memory, bytes, MADV_NOHUGEPAGE);
	tw_own_area_add(memory, bytes);
	return memory;
}
