/* SPDX-License-Identifier: Apache-2.0 */
/*
 * got.c - GOT slots: one aligned pointer store makes a place fire, one takes it back.
 *
 *	prepare		makes a stub for the place; checks that the slot's page is, or can be made, writable
 *	install		slot := stub	(release)	if the slot has changed, calls continue at its new value
 *	uninstall	slot := target	(cas)		only if it still holds the stub: a value that the program or
 *							another tool has stored since is kept
 *
 * Slots mostly lie in pages that ld.so made read-only after relocation (RELRO).  Such a page gets write permission in
 * addition, and afterwards exactly its old permissions; once per page, not per slot, inside a run of
 * writes (run.c).  It is never made executable.
 *
 * Stubs are used forever: a thread may be on its way through one at any time.  When all are used, those of unloaded
 * objects are reused, the oldest first.
 *
 * Everything here runs under the permit; slots are also read by any calling thread, and bound by ld.so.
 */
#include "breakpoints/got.h"

#include "base/limits.h"
#include "base/own_area.h"
#include "base/clock.h"
#include "base/sys.h"
#include "breakpoints/patch.h"
#include "breakpoints/permit.h"
#include "breakpoints/trampoline.h"
#include "tracewheel/error.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* A slot not bound after this time was not being bound when it was armed. */
#define BINDING_NS UINT64_C(2000000000)
/* A slot armed longer ago than this was not armed by the same change. */
#define LATE_NS UINT64_C(20000000)

static uint32_t stubs_used;
/* By stub: the page's protection, and the slot's value when it was prepared. */
struct detail {
	void *first_value;
	int protection;
	bool is_due; /* to be brought to the state place->is_installed, when slots may be written again */
	/* The slot was not bound when it was armed: a thread may still be binding it, and overwrite the stub. */
	bool may_be_bound;
	uint64_t armed_ns;
};
static struct detail *details; /* TW_GOT_STUBS of them, untouched pages cost nothing */
_Static_assert(TW_GOT_STUBS == TW_SLOTS_MAX, "a stub for each slot");

static uint32_t maybe_bound; /* number of slots that may still be bound */

static uintptr_t page_of(const struct tw_place *place)
{
	return (uintptr_t)place->where & ~(uintptr_t)(TW_PAGE_BYTES - 1);
}

static uint32_t number_of(const struct tw_place *place)
{
	return (uint32_t)(((const char *)place->stub - tw_got_stubs) / TW_GOT_STUB_BYTES);
}

static struct detail *detail_of(const struct tw_place *place)
{
	return &details[number_of(place)];
}

/* Can this page be made writable, if it is not?  Tried here, because the install must not fail later. */
static int try_page(uintptr_t page, int protection)
{
	if (protection & PROT_WRITE)
		return 0;
	if (mprotect((void *)page, TW_PAGE_BYTES, protection | PROT_WRITE))
		return errno == ENOMEM ? TW_ENOMEM : TW_EPERM;
	mprotect((void *)page, TW_PAGE_BYTES, protection);
	return 0;
}

static int read_protection(struct tw_patch_run *run, uintptr_t page, int *protection)
{
	static uintptr_t last_page;
	static int last_protection;
	const struct tw_mapping *mapping = tw_mapping_at(&run->mappings, page);
	int error;

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

/* Takes a free stub: a new one, or that of an unloaded object.  TW_ELIMIT: TW_GOT_STUBS are in use; TW_ENOMEM. */
static int take_stub(uint32_t *number)
{
	static uint32_t next_used;

	if (!details) {
		details = tw_own_area_map(NULL, TW_GOT_STUBS * sizeof *details);
		if (!details)
			return TW_ENOMEM;
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
	return TW_ELIMIT;
}

int tw_got_prepare(struct tw_patch_run *run, struct tw_place *place)
{
	_Atomic(void *) *slot = place->where;
	int protection, error;
	uint32_t number;

	if (place->is_gone || (uintptr_t)slot % sizeof(void *))
		return TW_ENOTSUP;
	if (place->stub && !place->is_back)
		return 0;
	error = read_protection(run, page_of(place), &protection);
	if (!error && place->stub)
		number = number_of(place);
	else if (!error)
		error = take_stub(&number);
	if (error)
		return error;
	place->is_back = false;
	/* RELAXED got.slot: the program's word; ld.so may be binding it at this moment, to the same target.
	 */
	maybe_bound -= details[number].may_be_bound;
	details[number] = (struct detail){.first_value = tw_load_relaxed(slot), .protection = protection};
	/* RELAXED got.target: stubs read it only after the slot was stored with release. */
	if (!tw_load_relaxed(&place->target))
		tw_store_relaxed(&place->target, details[number].first_value);
	/* RELAXED got.table: the same. */
	tw_store_relaxed(&tw_got_table[number], place);
	place->stub = (void *)(uintptr_t)(tw_got_stubs + (size_t)number * TW_GOT_STUB_BYTES);
	return 0;
}

/* Makes the slot's page writable.  This succeeded before; if it fails now, the slot is left unchanged. */
static bool open_slot(struct tw_patch_run *run, const struct tw_place *place)
{
	return tw_run_open_page(run, page_of(place), detail_of(place)->protection);
}

typedef void (*write_fn)(struct tw_patch_run *run, struct tw_place *place);

static void change(struct tw_patch_run *run, struct tw_place *place, write_fn write);

static void install(struct tw_patch_run *run, struct tw_place *place)
{
	_Atomic(void *) *slot = place->where;
	void *value;

	if (!open_slot(run, place))
		return;
	/* RELAXED got.slot: as in tw_got_prepare(). */
	value = tw_load_relaxed(slot);
	if (value != detail_of(place)->first_value && value != place->stub)
		/* RELAXED got.target: as in tw_got_prepare(). */
		tw_store_relaxed(&place->target, value);
	/* RELAXED got.target: as in tw_got_prepare(). */
	if (value != place->stub && value != tw_load_relaxed(&place->target) && !detail_of(place)->may_be_bound) {
		detail_of(place)->may_be_bound = true;
		detail_of(place)->armed_ns = tw_clock_monotonic_ns();
		maybe_bound++;
	}
	/*
	 * PAIR got.slot: release; acquire by the program's own load of the slot, in its PLT.
	 * Publishes the table's entry and the target.  Without it a call could find an empty entry.
	 */
	tw_store_release(slot, place->stub);
}

bool tw_got_may_be_bound(struct tw_permit *permit)
{
	TW_ASSERT(tw_permit_is_held(permit));
	return maybe_bound != 0;
}

/* Finds up to TW_SYS_WORDS_MAX slots that may still be bound, from stub *next on; gives their stubs' numbers. */
static size_t find_unbound(uint32_t *next, uint32_t numbers[TW_SYS_WORDS_MAX])
{
	size_t count = 0;

	for (; *next < stubs_used && count < TW_SYS_WORDS_MAX; ++*next)
		if (details[*next].may_be_bound)
			numbers[count++] = *next;
	return count;
}

/* Reads the slots' values; 0 for those of an object unloaded meanwhile without notification. */
static void read_slots(const uint32_t *numbers, size_t count, uint64_t *values)
{
	static const uint64_t nothing;
	uintptr_t addresses[TW_SYS_WORDS_MAX];

	for (size_t i = 0; i < count; i++) {
		/* RELAXED got.table: as in take_stub(). */
		const struct tw_place *place = tw_load_relaxed(&tw_got_table[numbers[i]]);
		bool is_there = !place->is_gone && place->is_installed;

		addresses[i] = is_there ? (uintptr_t)place->where : (uintptr_t)&nothing;
	}
	tw_sys_read_own_words(addresses, count, values);
}

/* Returns whether the thread that was binding the slot has overwritten the stub. */
static bool poll_unbound(struct tw_patch_run *run, uint32_t number, void *value, uint64_t now_ns)
{
	/* RELAXED got.table: as in take_stub(). */
	struct tw_place *place = tw_load_relaxed(&tw_got_table[number]);

	/* RELAXED got.target: as in tw_got_prepare(). */
	if (value && value == tw_load_relaxed(&place->target)) {
		change(run, place, install);
		return true;
	}
	if (value != place->stub || now_ns - details[number].armed_ns > BINDING_NS) {
		details[number].may_be_bound = false;
		maybe_bound--;
	}
	return false;
}

unsigned tw_got_bind_again(struct tw_permit *permit, unsigned *late_count)
{
	uint64_t now_ns = tw_clock_monotonic_ns(), values[TW_SYS_WORDS_MAX];
	uint32_t numbers[TW_SYS_WORDS_MAX], next = 0;
	unsigned found = 0;
	size_t count;

	*late_count = 0;
	TW_ASSERT(tw_permit_is_held(permit));
	while ((count = find_unbound(&next, numbers)) != 0) {
		read_slots(numbers, count, values);
		for (size_t i = 0; i < count; i++) {
			if (!poll_unbound(&permit->run, numbers[i], (void *)(uintptr_t)values[i], now_ns))
				continue;
			found++;
			*late_count += now_ns - details[numbers[i]].armed_ns > LATE_NS;
		}
	}
	return found;
}

static void uninstall(struct tw_patch_run *run, struct tw_place *place)
{
	_Atomic(void *) *slot = place->where;
	void *stub = place->stub;
	/* RELAXED got.target: written under the permit. */
	void *target = tw_load_relaxed(&place->target);

	if (!open_slot(run, place))
		return;
	/* PAIR got.slot: release, as above; nothing new is published. */
	if (tw_cas_acq_rel(slot, &stub, target))
		detail_of(place)->first_value = target;
}

size_t tw_got_written(const struct tw_place *place, uint8_t out[8], uintptr_t *at)
{
	if (detail_of(place)->is_due)
		return 0;
	memcpy(out, &place->stub, sizeof place->stub);
	*at = (uintptr_t)place->where;
	return sizeof place->stub;
}

static void change(struct tw_patch_run *run, struct tw_place *place, write_fn write)
{
	bool is_alone = !run->is_begun;

	if (place->is_gone || !place->stub)
		return;
	if (is_alone)
		tw_run_begin(run);
	if (run->may_write) {
		write(run, place);
		detail_of(place)->is_due = false;
	} else {
		detail_of(place)->is_due = run->is_slot_due = true;
	}
	if (is_alone)
		tw_run_end(run);
}

void tw_got_install(struct tw_patch_run *run, struct tw_place *place)
{
	change(run, place, install);
}

void tw_got_uninstall(struct tw_patch_run *run, struct tw_place *place)
{
	change(run, place, uninstall);
}

void tw_got_make_up(struct tw_patch_run *run)
{
	run->is_slot_due = false;
	for (uint32_t i = 0; i < stubs_used; i++) {
		/* RELAXED got.table: as in take_stub(). */
		struct tw_place *place = tw_load_relaxed(&tw_got_table[i]);

		if (!details[i].is_due)
			continue;
		if (place->is_gone || (tw_bp_list && tw_bp_list->is_left(place)))
			details[i].is_due = false;
		else
			change(run, place, place->is_installed ? install : uninstall);
	}
}
