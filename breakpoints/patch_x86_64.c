/* SPDX-License-Identifier: Apache-2.0 */
/* patch_x86_64.c - installs each kind of place. */
#include "breakpoints/patch.h"

#include "breakpoints/entry.h"
#include "breakpoints/got.h"
#include "breakpoints/own_stack.h"
#include "breakpoints/permit.h"
#include "breakpoints/sled.h"
#include "tracewheel/error.h"

int tw_patch_prepare(struct tw_permit *permit, struct tw_place *place)
{
	tw_patch_measure_vectors();
	tw_own_stacks_init();
	switch ((enum tw_bp_kind)place->kind) {
	case TW_BP_DECLARED: return 0;
	case TW_BP_SLOT: return tw_got_prepare(&permit->run, place);
	case TW_BP_SLED: return tw_sled_prepare(&permit->run, place);
	case TW_BP_ENTRY: return tw_entry_prepare(&permit->run, place);
	default: return TW_ENOTSUP;
	}
}

/* A declared function's own word is a hint: a thread that sees it early or late finds the same generation. */
static void set_armed(struct tw_place *place, uint32_t value)
{
	_Atomic uint32_t *armed = place->where;

	/* RELAXED bp.armed: a hint, see above; PAIR bp.active publishes the generation. */
	tw_store_relaxed(armed, value);
}

void tw_patch_install(struct tw_permit *permit, struct tw_place *place)
{
	if (place->kind == TW_BP_DECLARED)
		set_armed(place, 1);
	else if (place->kind == TW_BP_SLOT)
		tw_got_install(&permit->run, place);
	else if (place->kind == TW_BP_SLED)
		tw_sled_install(&permit->run, place);
	else if (place->kind == TW_BP_ENTRY)
		tw_entry_install(place);
}

void tw_patch_uninstall(struct tw_permit *permit, struct tw_place *place)
{
	if (place->kind == TW_BP_DECLARED)
		set_armed(place, 0);
	else if (place->kind == TW_BP_SLOT)
		tw_got_uninstall(&permit->run, place);
	else if (place->kind == TW_BP_SLED)
		tw_sled_uninstall(&permit->run, place);
	else if (place->kind == TW_BP_ENTRY)
		tw_entry_uninstall(place);
}

size_t tw_patch_written(const struct tw_place *place, uint8_t out[8], uintptr_t *at)
{
	if (!place->is_installed || place->is_gone || !place->stub)
		return 0;
	switch ((enum tw_bp_kind)place->kind) {
	case TW_BP_SLOT: return tw_got_written(place, out, at);
	case TW_BP_SLED: return tw_sled_written(place, out, at);
	case TW_BP_ENTRY: return tw_entry_written(place, out, at);
	default: return 0;
	}
}

void tw_patch_change_of(const struct tw_place *place, struct tw_entry_change *out)
{
	if (place->kind == TW_BP_SLED)
		tw_sled_change_of(place, out);
	else
		tw_entry_change_of(place, out);
}

void tw_patch_was_taken_back(struct tw_place *place)
{
	place->is_installed = false;
	place->is_back = true;
	if (place->kind == TW_BP_ENTRY)
		tw_entry_was_taken_back(place);
}

bool tw_patch_is_due(struct tw_permit *permit)
{
	TW_ASSERT(tw_permit_is_held(permit));
	return permit->run.is_slot_due || permit->run.is_sled_due;
}

/* Slots, and the words of planted entries, are data; their stubs are text that never changes. */
bool tw_patch_is_code(const struct tw_place *place)
{
	return place->kind == TW_BP_SLED;
}

void tw_patch_begin(struct tw_permit *permit)
{
	TW_ASSERT(tw_permit_is_held(permit));
	tw_run_begin(&permit->run);
}

void tw_patch_end(struct tw_permit *permit)
{
	TW_ASSERT(tw_permit_is_held(permit));
	tw_entry_plant(&permit->run);
	tw_sled_plant(&permit->run);
	tw_run_end(&permit->run);
}

uint32_t tw_patch_take_unplanted(struct tw_permit *permit)
{
	uint32_t count = permit->run.unplanted_count;

	TW_ASSERT(tw_permit_is_held(permit));
	permit->run.unplanted_count = 0;
	return count;
}

void tw_patch_resume(struct tw_permit *permit)
{
	tw_patch_end_suspension();
	if (!permit || !tw_patch_is_due(permit))
		return;
	tw_run_begin(&permit->run);
	tw_got_make_up(&permit->run);
	tw_sled_make_up(&permit->run);
	tw_run_end(&permit->run);
}
