/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commit.c - the recipe: makes the staged generation active by one store.
 *
 *  1  seize the permit				tw_permit_seize()
 *  2  fill the staging generation			tw_bp_stage_set(), tw_bp_stage_clear(); the active one is untouched
 *  3  wait: every thread can see the new structures
 *  4  install new places; they find an active generation without their session
 *  5  wait + code: every thread runs the installed instructions
 *  6  switch the active index: the one moment of change
 *  7  wait: no thread uses the old generation
 *  8  uninstall places that no session wants any more
 *  9  wait + code: no thread is on the way from such a place to a hit
 * 10  consolidate: staging := active, so that the next change visits only what it changes
 * 11  wait: no hit holds unlinked parts
 * 12  free
 * 13  drop the permit					tw_permit_drop()
 *
 * Which waits are needed:
 *  - 3, 5 and 9 only where a place is installed or removed by writing code (sleds).  A declared place is one word
 *    used as a hint, a slot one word that leads to a permanent stub; a thread that sees it early or late finds the
 *    same generation.
 *  - 7 always, when anything is staged: it guarantees that all threads see the change when the call returns.
 *  - 11 never: places live forever, and the old parts were reachable through the old generation only, which no
 *    thread uses after 7.
 *
 * Cost: proportional to the staged places, independent of other settings.  The data of tens of thousands of places is
 * not in the cache, so each walk over them matters: 4 is skipped if all are installed, 8 if nothing is removed.
 */
#include "breakpoints/permit.h"
#include "breakpoints/patch.h"
#include "progress/progress.h"

#include <stdlib.h>

static struct tw_bp_generation *generation(struct tw_place *place, unsigned index)
{
	return &place->gen[index];
}

/* Before the switch the hints must admit sessions that will count; after it they may exclude those that no longer do. */
static void hint_counting(struct tw_place *place)
{
	const struct tw_bp_generation *gen = place->gen;
	uint32_t first = place->allocator ? TW_BP_FIRST_ALLOCATION : 0;

	first |= gen[0].only_counter || gen[1].only_counter ? TW_BP_FIRST_COUNTER : 0;
	first |= tw_bp_has_longer(&gen[0]) || tw_bp_has_longer(&gen[1]) ? TW_BP_FIRST_LONGER : 0;
	/* RELAXED bp.trigger: a hint; the hit loads it again. */
	first |= (gen[0].sessions | gen[1].sessions) && tw_load_relaxed(&place->trigger) ? TW_BP_FIRST_TRIGGER : 0;
	first |= gen[0].only_accounts || gen[1].only_accounts ? TW_BP_FIRST_ACCOUNTS : 0;
	/* RELAXED bp.counting: hints that make hits check; the generation decides. */
	tw_store_relaxed(&place->counting, gen[0].counting | gen[1].counting);
	/* RELAXED bp.counting: as above. */
	tw_store_relaxed(&place->first, first);
}

/* Once both generations are the same. */
static void choose_way(struct tw_place *place)
{
	bool is_slot = place->kind == TW_BP_SLOT;
	const char *way = place->gen[0].bare ? (is_slot ? tw_bp_bare_slot : tw_bp_bare_sled) : NULL;

	/* RELAXED bp.way: a hint, and its values are code that is always there. */
	tw_store_relaxed(&place->way, way ? way : is_slot ? tw_bp_whole_slot : tw_bp_whole_sled);
}

static bool is_wanted(struct tw_place *place, unsigned index)
{
	return generation(place, index)->sessions || place->is_allocating;
}

/* Steps 3 to 5. */
static void install_new(struct tw_permit *permit)
{
	unsigned staging = 1 - tw_bp_active_index();

	if (!permit->has_uninstalled)
		return;
	if (permit->has_new_code)
		tw_progress_wait_code(); /* 3 */
	tw_patch_begin(permit);
	for (struct tw_place *place = permit->staged; place; place = place->next_staged) {
		if (place->is_installed || place->is_gone || !is_wanted(place, staging))
			continue;
		tw_patch_install(permit, place); /* 4 */
		place->is_installed = true;
	}
	tw_patch_end(permit);
	if (permit->has_new_code)
		tw_progress_wait_code(); /* 5 */
}

/* Steps 8 and 9. */
static void uninstall_unwanted(struct tw_permit *permit)
{
	bool has_code = false;

	if (!permit->has_fewer)
		return;
	tw_patch_begin(permit);
	for (struct tw_place *place = permit->staged; place; place = place->next_staged) {
		if (!place->is_installed || place->is_gone || is_wanted(place, tw_bp_active_index()))
			continue;
		if (tw_bp_list && tw_bp_list->is_taken_back(place))
			tw_patch_was_taken_back(place);
		tw_patch_uninstall(permit, place); /* 8 */
		place->is_installed = false;
		has_code |= tw_patch_is_code(place);
	}
	tw_patch_end(permit);
	if (has_code)
		tw_progress_wait_code(); /* 9 */
}

/* Steps 10 and 12. */
static unsigned consolidate(struct tw_permit *permit)
{
	unsigned changed = 0, index = tw_bp_active_index();

	for (struct tw_place *place = permit->staged, *next; place; place = next) {
		struct tw_bp_generation *staging = generation(place, 1 - index);
		struct tw_bp_generation *active = generation(place, index);

		next = place->next_staged;
		if (staging->parts != active->parts)
			free(staging->parts);
		*staging = *active;
		if (tw_bp_list)
			tw_bp_list->keep(place, active->sessions);
		if (permit->has_counting)
			hint_counting(place);
		choose_way(place);
		place->is_staged = false;
		place->next_staged = NULL;
		changed++;
	}
	permit->staged = NULL;
	permit->staged_count = 0;
	permit->has_new_code = permit->has_counting = permit->has_uninstalled = permit->has_fewer = false;
	return changed;
}

unsigned tw_bp_commit(struct tw_permit *permit)
{
	TW_ASSERT(tw_permit_is_held(permit));
	if (!permit->staged)
		return 0;
	for (struct tw_place *place = permit->has_counting ? permit->staged : NULL; place; place = place->next_staged)
		hint_counting(place);
	install_new(permit);
	tw_bp_switch();	    /* 6 */
	tw_progress_wait(); /* 7 */
	uninstall_unwanted(permit);
	return consolidate(permit);
}

void tw_bp_abort(struct tw_permit *permit)
{
	TW_ASSERT(tw_permit_is_held(permit));
	/* Undoing is the same copy as consolidation: staging := active. */
	consolidate(permit);
}
