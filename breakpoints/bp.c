/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bp.c - parts: building a session's settings of a place in the staging generation.
 *
 * A plain call event needs no part: the session's bit suffices.  Only special settings (a match program, a range
 * test, counters, returns) have a part, found by its rank among the special bits.  Thus setting ten thousand functions
 * allocates nothing.
 */
#include "breakpoints/permit.h"
#include "base/error.h"
#include "breakpoints/patch.h"

#include <stdlib.h>
#include <string.h>

/* Actions besides calls that do not make a part special. */
#define PLAIN_ACTIONS (TW_ACTION_RETURN | TW_ACTION_EXCEPTION | TW_ACTION_GLOBAL)

#define COUNTERS (TW_ACTION_COUNT | TW_ACTION_TIME | TW_ACTION_MEMORY)

static unsigned rank(uint64_t bits, unsigned session)
{
	return (unsigned)__builtin_popcountll(bits & ((UINT64_C(1) << session) - 1));
}

static bool is_plain(const struct tw_bp_part *part)
{
	return (part->actions & ~(uint32_t)PLAIN_ACTIONS) == TW_ACTION_CALL && !part->program && !part->slot_words &&
	       !part->stack_depth;
}

/* Masks hold the other actions of a plain part. */
static void set_masks(struct tw_bp_generation *generation, uint64_t bit, uint32_t actions)
{
	const uint32_t always = COUNTERS | TW_ACTION_META;

	generation->counting = (generation->counting & ~bit) | (actions & always ? bit : 0);
	generation->returns = (generation->returns & ~bit) | (actions & TW_ACTION_RETURN ? bit : 0);
	generation->exceptions = (generation->exceptions & ~bit) | (actions & TW_ACTION_EXCEPTION ? bit : 0);
	generation->global = (generation->global & ~bit) | (actions & TW_ACTION_GLOBAL ? bit : 0);
}

static uint32_t plain_actions(const struct tw_bp_generation *generation, uint64_t bit)
{
	return TW_ACTION_CALL | (generation->returns & bit ? TW_ACTION_RETURN : 0) |
	       (generation->exceptions & bit ? TW_ACTION_EXCEPTION : 0) |
	       (generation->global & bit ? TW_ACTION_GLOBAL : 0);
}

/* Does the part want records of calls with words of registers, and perhaps a range test before? */
static bool has_only_words(const struct tw_bp_part *part, const struct tw_bp_words *typed)
{
	return (part->actions & ~(uint32_t)PLAIN_ACTIONS) == TW_ACTION_CALL && !part->stack_depth && part->slot_words &&
	       (!part->program || part->quick.is_set) &&
	       (part->slot_words == TW_SLOT_WORDS_TYPED ? typed->is_known : part->slot_words <= TW_ARGS_MAX);
}

static void set_form(struct tw_bp_generation *generation, const struct tw_bp_part *part,
		     const struct tw_bp_words *typed)
{
	if (part->slot_words == TW_SLOT_WORDS_TYPED) {
		generation->form = (uint8_t)(TW_BP_FORM_TYPED + typed->count);
		memcpy(generation->registers, typed->registers, sizeof generation->registers);
		return;
	}
	generation->form = (uint8_t)(TW_BP_FORM_RAW + part->slot_words);
	for (uint8_t i = 0; i < part->slot_words; i++)
		generation->registers[i] = i;
}

/* Is a call here a record without words, for one session, and has nothing to be done beside it? */
static bool is_bare(const struct tw_bp_generation *generation, const struct tw_place *place)
{
	uint64_t sessions = generation->sessions;

	/* RELAXED bp.trigger: written under the permit. */
	return !(sessions & (sessions - 1)) && generation->at_once == sessions && !generation->is_tested &&
	       generation->form == TW_BP_FORM_RAW && !(generation->returns | generation->exceptions) &&
	       !place->allocator && !tw_load_relaxed(&place->trigger);
}

/* As find_only(). @part: of the only session, if it has one; else NULL. */
static void find_at_once(struct tw_bp_generation *generation, const struct tw_bp_part *part,
			 const struct tw_bp_words *typed)
{
	generation->at_once =
		generation->counting ? 0 : generation->sessions & (~generation->special | generation->fused);
	generation->is_tested = generation->fused != 0;
	generation->form = TW_BP_FORM_RAW;
	memset(generation->registers, 0, sizeof generation->registers);
	if (!part || generation->counting || generation->fused || !has_only_words(part, typed))
		return;
	generation->at_once = generation->sessions;
	generation->is_tested = part->quick.is_set;
	generation->quick = part->quick;
	set_form(generation, part, typed);
}

/* Any later addition is staged separately, and then this is recomputed. */
static void find_only(struct tw_bp_generation *generation, const struct tw_place *place)
{
	bool is_one = generation->sessions && !(generation->sessions & (generation->sessions - 1)) &&
		      (generation->sessions & generation->special);
	const struct tw_bp_part *part = is_one ? tw_bp_part_of(generation, generation->sessions) : NULL;

	generation->only_counter = part && part->actions == TW_ACTION_COUNT ? part->counter : NULL;
	generation->only_accounts =
		part && !(part->actions & ~(uint32_t)COUNTERS) && !generation->only_counter ? part : NULL;
	find_at_once(generation, part, &place->function->words);
	generation->bare = is_bare(generation, place) ? generation->sessions : 0;
}

static void enlist(struct tw_permit *permit, struct tw_place *place)
{
	permit->has_counting |= (place->gen[0].counting | place->gen[1].counting) != 0 ||
				tw_bp_has_longer(&place->gen[0]) || tw_bp_has_longer(&place->gen[1]) ||
				/* RELAXED bp.trigger: written under the permit. */
				tw_load_relaxed(&place->trigger);
	permit->has_uninstalled |= !place->is_installed;
	if (place->is_staged)
		return;
	place->is_staged = true;
	place->next_staged = permit->staged;
	permit->staged = place;
	permit->staged_count++;
}

/* hit.c evaluates the first part that is only a range test without reading the part. */
static void fuse(struct tw_bp_generation *generation)
{
	generation->fused = 0;
	generation->quick.is_set = 0;
	for (unsigned s = 0; s < TW_SESSIONS_MAX; s++) {
		const struct tw_bp_part *part;

		if (!(generation->special >> s & 1))
			continue;
		part = &generation->parts[rank(generation->special, s)];
		if (!part->quick.is_set || part->slot_words || part->stack_depth ||
		    (part->actions & ~(uint32_t)PLAIN_ACTIONS) != TW_ACTION_CALL)
			continue;
		generation->fused = UINT64_C(1) << s;
		generation->quick = part->quick;
		break;
	}
}

/* Replaces this session's part in the staging generation. */
static int replace_parts(struct tw_place *place, unsigned session, const struct tw_bp_part *part)
{
	struct tw_bp_generation *staging = &place->gen[1 - tw_bp_active_index()];
	struct tw_bp_generation *active = &place->gen[tw_bp_active_index()];
	uint64_t bit = UINT64_C(1) << session;
	uint64_t special = part ? staging->special | bit : staging->special & ~bit;
	size_t count = (size_t)__builtin_popcountll(special);
	struct tw_bp_part *parts = NULL;

	if (count) {
		parts = calloc(count, sizeof *parts);
		if (!parts)
			return TW_ENOMEM;
	}
	for (size_t i = 0, s = 0; s < TW_SESSIONS_MAX; s++) {
		if (!(special >> s & 1))
			continue;
		if (part && s == session)
			parts[i] = *part;
		else
			parts[i] = staging->parts[rank(staging->special, (unsigned)s)];
		i++;
	}
	if (staging->parts != active->parts)
		free(staging->parts);
	staging->parts = parts;
	staging->special = special;
	fuse(staging);
	return 0;
}

static int prepare(struct tw_permit *permit, struct tw_place *place)
{
	int error;

	TW_ASSERT(tw_permit_is_held(permit));
	if (place->is_gone)
		return TW_ENOTSUP;
	if (tw_bp_list && tw_bp_list->is_taken_back(place))
		tw_patch_was_taken_back(place);
	if (place->is_installed)
		return 0;
	error = tw_patch_prepare(permit, place);
	if (!error)
		permit->has_new_code |= tw_patch_is_code(place);
	return error;
}

static void keep(const struct tw_place *place, uint64_t sessions)
{
	if (tw_bp_list)
		tw_bp_list->keep(place, sessions);
}

int tw_bp_stage_set(struct tw_permit *permit, struct tw_place *place, const struct tw_bp_part *part)
{
	struct tw_bp_generation *staging = &place->gen[1 - tw_bp_active_index()];
	uint64_t bit = UINT64_C(1) << part->session;
	int error;

	TW_ASSERT(part->session < TW_SESSIONS_MAX);
	/* Before memory is looked at: the place is found taken back, or is not taken back any more. */
	keep(place, staging->sessions | bit);
	error = prepare(permit, place);
	if (error)
		return error;
	if (!is_plain(part) || (staging->special & bit))
		error = replace_parts(place, part->session, is_plain(part) ? NULL : part);
	if (error)
		return error;
	staging->sessions |= bit;
	set_masks(staging, bit, part->actions);
	find_only(staging, place);
	enlist(permit, place);
	return 0;
}

int tw_bp_stage_clear(struct tw_permit *permit, struct tw_place *place, unsigned session)
{
	struct tw_bp_generation *staging = &place->gen[1 - tw_bp_active_index()];
	uint64_t bit = UINT64_C(1) << session;

	TW_ASSERT(tw_permit_is_held(permit));
	if (!(staging->sessions & bit))
		return 0;
	/*
	 * Removing a part needs memory for the remaining ones.  Without memory the part stays where it is and keeps
	 * its rank, but no hit uses it: a session must be able to end even without memory.
	 */
	if (staging->special & bit)
		replace_parts(place, session, NULL);
	staging->sessions &= ~bit;
	set_masks(staging, bit, 0);
	find_only(staging, place);
	permit->has_fewer = true;
	enlist(permit, place);
	return 0;
}

int tw_bp_stage_allocations(struct tw_permit *permit, struct tw_place *place, bool is_wanted)
{
	bool was_wanted = place->is_allocating;
	int error;

	TW_ASSERT(tw_permit_is_held(permit));
	place->is_allocating = is_wanted;
	keep(place, place->gen[1 - tw_bp_active_index()].sessions);
	error = is_wanted ? prepare(permit, place) : 0;
	if (error) {
		place->is_allocating = was_wanted;
		return error;
	}
	permit->has_fewer |= !is_wanted;
	enlist(permit, place);
	return 0;
}

bool tw_bp_staged_part(struct tw_permit *permit, struct tw_place *place, unsigned session, struct tw_bp_part *out)
{
	const struct tw_bp_generation *staging = &place->gen[1 - tw_bp_active_index()];
	uint64_t bit = UINT64_C(1) << session;

	TW_ASSERT(tw_permit_is_held(permit));
	if (!(staging->sessions & bit))
		return false;
	if (staging->special & bit)
		*out = staging->parts[rank(staging->special, session)];
	else
		*out = (struct tw_bp_part){.actions = plain_actions(staging, bit), .session = (uint8_t)session};
	return true;
}
