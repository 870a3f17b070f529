/* SPDX-License-Identifier: Apache-2.0 */
/* patch_x86_64.c - installs each kind of place; knows the processor's vector state. */
#include "breakpoints/maps.h"
#include "breakpoints/patch.h"

#include "breakpoints/trampoline.h"
#include "tracewheel/error.h"

uint32_t tw_patch_vector_bytes, tw_patch_vector_mask;

void tw_patch_use_vectors(const struct tw_vectors *vectors)
{
	if (tw_patch_vector_bytes || !tw_vectors_are_sound(vectors))
		return;
	tw_patch_vector_mask = vectors->mask;
	tw_patch_vector_bytes = vectors->bytes;
}

static void measure_vectors(void)
{
	static bool is_measured;
	struct tw_vectors vectors;

	if (tw_patch_vector_bytes || is_measured)
		return;
	is_measured = true;
	tw_vectors_measure(&vectors);
	tw_patch_use_vectors(&vectors);
}

int tw_patch_prepare(struct tw_place *place)
{
	measure_vectors();
	switch ((enum tw_bp_kind)place->kind) {
	case TW_BP_DECLARED: return 0;
	case TW_BP_SLOT: return tw_got_prepare(place);
	case TW_BP_SLED: return tw_sled_prepare(place);
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

void tw_patch_install(struct tw_place *place)
{
	if (place->kind == TW_BP_DECLARED)
		set_armed(place, 1);
	else if (place->kind == TW_BP_SLOT)
		tw_got_install(place);
	else if (place->kind == TW_BP_SLED)
		tw_sled_install(place);
}

void tw_patch_uninstall(struct tw_place *place)
{
	if (place->kind == TW_BP_DECLARED)
		set_armed(place, 0);
	else if (place->kind == TW_BP_SLOT)
		tw_got_uninstall(place);
	else if (place->kind == TW_BP_SLED)
		tw_sled_uninstall(place);
}

size_t tw_patch_written(const struct tw_place *place, uint8_t out[8], uintptr_t *at)
{
	if (!place->is_installed || place->is_gone || !place->stub)
		return 0;
	return place->kind == TW_BP_SLOT ? tw_got_written(place, out, at) : tw_sled_written(place, out, at);
}

bool tw_patch_is_due(struct tw_permit *permit)
{
	TW_ASSERT(tw_permit_is_mine());
	return tw_got_is_due() || tw_sled_is_due();
}

/* Slots are data, and their stubs are text that never changes. */
bool tw_patch_is_code(const struct tw_place *place)
{
	return place->kind == TW_BP_SLED;
}

void tw_patch_begin(void)
{
	tw_got_begin();
	tw_sled_begin();
}

void tw_patch_end(void)
{
	tw_sled_end();
	tw_got_end();
	tw_mappings_forget();
}
