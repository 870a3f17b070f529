/* SPDX-License-Identifier: Apache-2.0 */
/*
 * got.c - GOT slots: one aligned pointer store makes a place fire, one takes it back.
 *
 *	prepare		a stub for the place; the page of the slot can be written, or made so
 *	install		slot := stub	(release)	unless the slot is not what it was: then its new value
 *is where calls go on to uninstall	slot := target	(cas)		only if it still holds the stub: what
 *the program, or another tool, put there since is theirs
 *
 * Slots mostly lie in pages that ld.so made read-only after relocation (RELRO).  Such a page gets write
 * permission in addition to what it has, and afterwards exactly what it had; once a page, not once a
 * slot, inside tw_got_begin() and tw_got_end().  It is never executable because of us.
 *
 * Stubs are used for ever: a thread may be on its way through one at any time.  When all were used, those of
 * unloaded objects are taken again, the oldest first.
 *
 * Everything here runs under the permit; slots are also read by any thread that calls, and bound by ld.so.
 */
#include "breakpoints/patch.h"
#include "breakpoints/trampoline.h"
#include "tracewheel/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* What the system says about memory, read from /proc/self/maps once a run. */
struct mapping {
	uintptr_t low, high;
	int protection;
};

static struct mapping *mappings;
static size_t mapping_count;

static uint32_t stubs_used;
/* By stub: the page's protection, and what the slot held when it was prepared. */
struct detail {
	void *first_value;
	int protection;
};
static struct detail *details; /* TW_GOT_STUBS of them, untouched pages cost nothing */

static bool is_run;
/* The page that is open for writing; 0: none.  Neighbouring slots come one after another. */
static uintptr_t open_page;
static int open_protection;

static int parse_protection(const char *flags)
{
	return (flags[0] == 'r' ? PROT_READ : 0) | (flags[1] == 'w' ? PROT_WRITE : 0) |
	       (flags[2] == 'x' ? PROT_EXEC : 0);
}

/* Reads all of /proc/self/maps.  On failure nothing is known, and prepare says so. */
static void read_mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	size_t room = 0;
	char line[512];

	mapping_count = 0;
	if (!file)
		return;
	while (fgets(line, sizeof line, file)) {
		struct mapping mapping;
		char *end;

		mapping.low = strtoul(line, &end, 16);
		if (*end != '-')
			continue; /* the rest of a long line */
		mapping.high = strtoul(end + 1, &end, 16);
		if (*end != ' ')
			continue;
		mapping.protection = parse_protection(end + 1);
		if (mapping_count == room) {
			struct mapping *more = realloc(mappings, (room * 2 + 64) * sizeof *more);

			if (!more)
				break;
			mappings = more;
			room = room * 2 + 64;
		}
		mappings[mapping_count++] = mapping;
	}
	fclose(file);
}

static void forget_mappings(void)
{
	free(mappings);
	mappings = NULL;
	mapping_count = 0;
}

static const struct mapping *find_mapping(uintptr_t address)
{
	size_t low = 0, high = mapping_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (mappings[middle].high <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < mapping_count && mappings[low].low <= address ? &mappings[low] : NULL;
}

static uintptr_t page_of(const struct tw_place *place)
{
	return (uintptr_t)place->where & ~(uintptr_t)(TW_PAGE_BYTES - 1);
}

static struct detail *detail_of(const struct tw_place *place)
{
	return &details[((const char *)place->stub - tw_got_stubs) / TW_GOT_STUB_BYTES];
}

/* May this page be written, if it must be asked for?  Tried once, where it cannot be refused later. */
static int try_page(uintptr_t page, int protection)
{
	if (protection & PROT_WRITE)
		return 0;
	if (mprotect((void *)page, TW_PAGE_BYTES, protection | PROT_WRITE))
		return errno == ENOMEM ? TW_ENOMEM : TW_EPERM;
	mprotect((void *)page, TW_PAGE_BYTES, protection);
	return 0;
}

static int read_protection(uintptr_t page, int *protection)
{
	static uintptr_t last_page;
	static int last_protection;
	const struct mapping *mapping = find_mapping(page);
	int error;

	if (!mapping) {
		read_mappings();
		mapping = find_mapping(page);
		last_page = 0;
	}
	if (!mapping || !(mapping->protection & PROT_READ))
		return TW_EPERM;
	if (page != last_page || mapping->protection != last_protection) {
		error = try_page(page, mapping->protection);
		if (error)
			return error;
		last_page = page;
		last_protection = mapping->protection;
	}
	*protection = mapping->protection;
	return 0;
}

/* A stub that nobody uses: a new one, or that of an unloaded object. */
static int take_stub(uint32_t *number)
{
	static uint32_t next_used;

	if (!details) {
		void *memory = mmap(NULL, TW_GOT_STUBS * sizeof *details, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (memory == MAP_FAILED)
			return TW_ENOMEM;
		details = memory;
	}
	if (stubs_used < TW_GOT_STUBS) {
		*number = stubs_used++;
		return 0;
	}
	for (uint32_t tries = 0; tries < TW_GOT_STUBS; tries++) {
		uint32_t candidate = next_used++ % TW_GOT_STUBS;
		/* RELAXED got.table: written and read under the permit; stubs are the other readers. */
		struct tw_place *place = tw_load_relaxed(&tw_got_table[candidate]);

		if (place->is_gone) {
			place->stub = NULL;
			*number = candidate;
			return 0;
		}
	}
	return TW_ENOMEM;
}

int tw_got_prepare(struct tw_place *place)
{
	_Atomic(void *) *slot = place->where;
	int protection, error;
	uint32_t number;

	if (place->is_gone || (uintptr_t)slot % sizeof(void *))
		return TW_ENOTSUP;
	if (place->stub)
		return 0;
	error = read_protection(page_of(place), &protection);
	if (!error)
		error = take_stub(&number);
	if (error)
		return error;
	/* RELAXED got.slot: the program's word; ld.so may be binding it at this moment, to the same target.
	 */
	details[number] = (struct detail){tw_load_relaxed(slot), protection};
	/* RELAXED got.target: stubs read it only after the slot was stored with release. */
	if (!tw_load_relaxed(&place->target))
		tw_store_relaxed(&place->target, details[number].first_value);
	/* RELAXED got.table: the same. */
	tw_store_relaxed(&tw_got_table[number], place);
	place->stub = (void *)(uintptr_t)(tw_got_stubs + (size_t)number * TW_GOT_STUB_BYTES);
	return 0;
}

static void close_page(void)
{
	if (open_page)
		mprotect((void *)open_page, TW_PAGE_BYTES, open_protection);
	open_page = 0;
}

/* Makes the slot's page writable.  It was tried before; if it fails now, the slot stays as it is. */
static bool open_slot(const struct tw_place *place)
{
	int protection = detail_of(place)->protection;

	if (protection & PROT_WRITE || open_page == page_of(place))
		return true;
	close_page();
	if (mprotect((void *)page_of(place), TW_PAGE_BYTES, protection | PROT_WRITE))
		return false;
	open_page = page_of(place);
	open_protection = protection;
	return true;
}

void tw_got_install(struct tw_place *place)
{
	_Atomic(void *) *slot = place->where;
	void *value;

	if (place->is_gone || !place->stub || !open_slot(place))
		return;
	/* RELAXED got.slot: as in tw_got_prepare(). */
	value = tw_load_relaxed(slot);
	if (value != detail_of(place)->first_value && value != place->stub)
		/* RELAXED got.target: as in tw_got_prepare(). */
		tw_store_relaxed(&place->target, value);
	/*
	 * PAIR got.slot: release; the caller's load of the slot, in the program's own code.
	 * Publishes the table's entry and the target.  Without it a call could find an empty entry.
	 */
	tw_store_release(slot, place->stub);
	if (!is_run)
		close_page();
}

void tw_got_uninstall(struct tw_place *place)
{
	_Atomic(void *) *slot = place->where;
	void *stub = place->stub;
	/* RELAXED got.target: written under the permit. */
	void *target = tw_load_relaxed(&place->target);

	if (place->is_gone || !stub || !open_slot(place))
		return;
	/* PAIR got.slot: release, as above; there is nothing new to publish. */
	if (tw_cas_acq_rel(slot, &stub, target))
		detail_of(place)->first_value = target;
	if (!is_run)
		close_page();
}

void tw_got_begin(void)
{
	is_run = true;
}

void tw_got_end(void)
{
	is_run = false;
	close_page();
	forget_mappings();
}
