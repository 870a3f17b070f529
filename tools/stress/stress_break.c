/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stress_break.c - the mistakes of `tracewheel stress --break`: see stress_break.h.
 *
 * The only file of this folder that uses the internals of other folders. Each function here replaces one of theirs,
 * for all callers in other object files, and does the same while nothing is broken.
 */
#include "tools/stress/stress_break.h"
#include "breakpoints/got.h"
#include "breakpoints/patch.h"
#include "breakpoints/permit.h"
#include "breakpoints/sled.h"
#include "progress/progress.h"
#include "ringbuf/ringbuf.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static enum tw_stress_break broken;
/* switch-first: a change has begun, and its places are not installed. Under the permit. */
static bool is_before_install;

void tw_stress_break(enum tw_stress_break kind)
{
	broken = kind;
}

void __wrap_tw_progress_wait(void);
void __real_tw_progress_wait(void);
unsigned __wrap_tw_bp_commit(struct tw_permit *permit);
unsigned __real_tw_bp_commit(struct tw_permit *permit);
void __wrap_tw_patch_begin(struct tw_permit *permit);
void __real_tw_patch_begin(struct tw_permit *permit);
void __wrap_tw_patch_install(struct tw_permit *permit, struct tw_place *place);
void __real_tw_patch_install(struct tw_permit *permit, struct tw_place *place);
void __wrap_tw_sled_install(struct tw_patch_run *run, struct tw_place *place);
void __real_tw_sled_install(struct tw_patch_run *run, struct tw_place *place);
void __wrap_tw_got_install(struct tw_patch_run *run, struct tw_place *place);
void __real_tw_got_install(struct tw_patch_run *run, struct tw_place *place);
int64_t __wrap_tw_rb_take(const struct tw_rb_shared *shared, uint64_t data_bytes, uint64_t from_pos, size_t max_bytes,
			  uint8_t *out, uint64_t *end_pos);
int64_t __real_tw_rb_take(const struct tw_rb_shared *shared, uint64_t data_bytes, uint64_t from_pos, size_t max_bytes,
			  uint8_t *out, uint64_t *end_pos);

/* ---- changes ---- */

/* The change that this thread makes, and the generation that was active before it. */
static __thread struct tw_permit *change;
static __thread unsigned old_index;

/*
 * Overwrites the parts that a change replaces, as their next use would; leaves time for others to meet that, even
 * with few processors.
 */
static void spoil_parts(struct tw_permit *permit)
{
	bool is_any = false;

	for (struct tw_place *place = permit->staged; place; place = place->next_staged) {
		struct tw_bp_generation *old = &place->gen[old_index];

		if (!old->parts || old->parts == place->gen[1 - old_index].parts)
			continue;
		memset(old->parts, 0x5a, (size_t)__builtin_popcountll(old->special) * sizeof *old->parts);
		is_any = true;
	}
	if (is_any)
		usleep(300);
}

/* Without the wait, freed memory may still be read, and old settings may still be in use when the change returns. */
void __wrap_tw_progress_wait(void)
{
	if (broken != TW_BREAK_NO_WAIT) {
		__real_tw_progress_wait();
		return;
	}
	/* The wait after the switch. */
	if (change && tw_bp_active_index() != old_index) {
		spoil_parts(change);
		change = NULL;
	}
}

unsigned __wrap_tw_bp_commit(struct tw_permit *permit)
{
	unsigned changed;

	change = permit;
	old_index = tw_bp_active_index();
	if (broken == TW_BREAK_FREE_EARLY)
		spoil_parts(permit);
	is_before_install = broken == TW_BREAK_SWITCH_FIRST && permit->has_uninstalled;
	changed = __real_tw_bp_commit(permit);
	change = NULL;
	return changed;
}

void __wrap_tw_patch_begin(struct tw_permit *permit)
{
	if (is_before_install) {
		is_before_install = false;
		/* PAIR bp.active: release; acquire in hit_inside(). Too early: the places of this change are not armed yet. */
		tw_store_release(&tw_bp_gate.active, 1 - tw_bp_active_index() + 1);
		usleep(200);
	}
	__real_tw_patch_begin(permit);
}

/* Skips one place in sixteen, once all have been tried. */
void __wrap_tw_patch_install(struct tw_permit *permit, struct tw_place *place)
{
	static unsigned count;

	if (broken != TW_BREAK_FORGOTTEN_PLACE || ++count < 200 || count % 16)
		__real_tw_patch_install(permit, place);
}

static void make_writable(void *at, int protection)
{
	uintptr_t page = (uintptr_t)at & ~(uintptr_t)(TW_PAGE_BYTES - 1);

	mprotect((void *)page, 2 * TW_PAGE_BYTES, protection);
}

/* Writes the opcode of the call first, and then its target. */
void __wrap_tw_sled_install(struct tw_patch_run *run, struct tw_place *place)
{
	if (broken == TW_BREAK_TORN_SLED && !place->is_parked) {
		volatile uint8_t *window = (uint8_t *)place->where + place->sled_offset;

		make_writable((void *)(uintptr_t)window, PROT_READ | PROT_WRITE | PROT_EXEC);
		*window = 0xe8;
		usleep(50);
	}
	__real_tw_sled_install(run, place);
}

void __wrap_tw_got_install(struct tw_patch_run *run, struct tw_place *place)
{
	if (broken == TW_BREAK_TORN_SLOT) {
		volatile uint32_t *half = place->where;

		make_writable(place->where, PROT_READ | PROT_WRITE);
		*half = (uint32_t)(uintptr_t)place->stub;
		usleep(50);
	}
	__real_tw_got_install(run, place);
}

/* ---- records ---- */

static uint32_t length_of(const struct tw_rb_record *record)
{
	return TW_RB_HEAD_BYTES(record->head);
}

/* The words of the newest record are not written yet. */
static void spoil_last(uint8_t *records, int64_t bytes)
{
	struct tw_rb_record *last = (struct tw_rb_record *)records;

	for (int64_t at = 0; at < bytes; at += length_of(last))
		last = (struct tw_rb_record *)(records + at);
	if (TW_RB_HEAD_KIND(last->head) >= TW_RB_KIND_FIRST_FREE)
		memset(last + 1, 0, length_of(last) - sizeof *last);
}

static void swap_stamps(uint8_t *records, int64_t bytes)
{
	struct tw_rb_record *first = (struct tw_rb_record *)records;
	struct tw_rb_record *second = (struct tw_rb_record *)(records + length_of(first));

	if ((uint8_t *)(second + 1) <= records + bytes && first->ticks < second->ticks) {
		uint64_t ticks = first->ticks;

		first->ticks = second->ticks;
		second->ticks = ticks;
	}
}

/* Turns one event into one without meaning: the bytes must remain whole records. */
static void lose_first(uint8_t *records)
{
	struct tw_rb_record *first = (struct tw_rb_record *)records;

	if (TW_RB_HEAD_KIND(first->head) >= TW_RB_KIND_FIRST_FREE)
		first->head = TW_RB_HEAD(TW_RB_KIND_PAD, 0, length_of(first), 0);
}

/* Once in so many calls, changes the bytes that the consumer is about to read, or its copy of them. */
int64_t __wrap_tw_rb_take(const struct tw_rb_shared *shared, uint64_t data_bytes, uint64_t from_pos, size_t max_bytes,
			  uint8_t *out, uint64_t *end_pos)
{
	static unsigned calls;
	int64_t bytes;

	if (broken == TW_BREAK_LOST_RECORD && ++calls % 8 == 0 &&
	    __real_tw_rb_take(shared, data_bytes, from_pos, max_bytes, out, end_pos) > 0)
		lose_first(tw_rb_data(shared) + (from_pos & (data_bytes - 1)));
	bytes = __real_tw_rb_take(shared, data_bytes, from_pos, max_bytes, out, end_pos);
	if (bytes <= 0 || broken < TW_BREAK_HALF_WRITTEN)
		return bytes;
	if (broken == TW_BREAK_HALF_WRITTEN && ++calls % 4 == 0)
		spoil_last(out, bytes);
	if (broken == TW_BREAK_STAMP_ORDER)
		swap_stamps(out, bytes);
	return bytes;
}
