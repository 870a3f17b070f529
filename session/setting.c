/* SPDX-License-Identifier: Apache-2.0 */
/* setting.c - applies a setting to a session's part of one place: exclusion and replacement of kinds. */
#include "session/change.h"
#include "session/places.h"
#include "session/setting.h"
#include "session/watched.h"
#include "match/match.h"

#define COUNTERS (TW_ACTION_COUNT | TW_ACTION_TIME | TW_ACTION_MEMORY)

/* The program as one comparison, if that is equivalent for the words that this place records. */
static struct tw_bp_quick quick_of(const struct tw_match_program *program, const struct tw_place *place)
{
	const struct tw_match_quick *quick = &program->quick;
	unsigned words = place->arity <= TW_ARGS_MAX ? place->arity : TW_ARGS_MAX;
	struct tw_bp_quick none = {0};

	if (quick->op != TW_MATCH_QUICK_RANGE || !tw_match_quick_fits(quick, words) ||
	    program->accepted.verdict != TW_MATCH_YES || program->accepted.actions || quick->arg >= quick->arity)
		return none;
	return (struct tw_bp_quick){1,		quick->is_prefix, quick->arg, quick->arity, quick->shift,
				    quick->low, quick->span};
}

void tw_session_use_program(struct tw_bp_part *part, const struct tw_place *place,
			    const struct tw_match_program *program)
{
	part->program = program;
	part->quick = program ? quick_of(program, place) : (struct tw_bp_quick){0};
}

/* Removes actions from a part, with the data that only they use. */
static void remove_actions(struct tw_bp_part *part, uint32_t actions)
{
	part->actions &= ~actions;
	if (actions & TW_ACTION_CALL) {
		part->actions &= ~(uint32_t)TW_ACTION_GLOBAL;
		part->program = NULL;
		part->quick.is_set = 0;
	}
	if (actions & TW_ACTION_META)
		part->meta_program = NULL;
}

static int stage_part(struct tw_session *session, struct tw_permit *permit, struct tw_place *place,
		      const struct tw_bp_part *part)
{
	const struct tw_session_place *set = tw_session_find(session, place);

	/* The removed part may have been the last that counts memory. */
	if (place->kind != TW_BP_DECLARED && set && (set->memories.now || set->memories.before))
		tw_watched_mark_due();
	return part->actions ? tw_session_stage(session, permit, place, part)
			     : tw_bp_stage_clear(permit, place, session->slot);
}

/* Restarting counts makes new ones: the commit frees the old ones, an abort restores them. */
static int renew(struct tw_session_counts *counts, bool is_wanted)
{
	struct tw_counts *fresh = NULL;

	if (counts->is_new && !counts->now == !is_wanted)
		return 0;
	if (is_wanted) {
		fresh = tw_counts_create();
		if (!fresh)
			return TW_ELIMIT;
	}
	if (counts->is_new) {
		/* Made by this same change; no hit has seen them. */
		tw_counts_destroy(counts->now);
	} else {
		counts->before = counts->now;
		counts->is_new = true;
	}
	counts->now = fresh;
	return 0;
}

/* The counters of these actions restart at 0 (is_wanted), or are removed. */
static int renew_counters(struct tw_session *session, struct tw_session_place *set, uint32_t actions, bool is_wanted)
{
	int error = 0;

	if (!(actions & COUNTERS))
		return 0;
	tw_change_touch(session, set);
	if (actions & TW_ACTION_TIME)
		error = renew(&set->times, is_wanted);
	if (!error && (actions & TW_ACTION_MEMORY))
		error = renew(&set->memories, is_wanted);
	if (error)
		return error;
	set->paused &= (uint8_t)~actions;
	if ((actions & TW_ACTION_COUNT) && is_wanted) {
		if (!set->counter)
			set->counter = tw_counter_create();
		if (!set->counter)
			return TW_ELIMIT;
		/* Counting restarts, even if it was set before. */
		set->taken += tw_counter_take(set->counter);
	}
	return 0;
}

/* Local tracing and the counters end global tracing, and vice versa. */
int tw_setting_set(struct tw_session *session, struct tw_permit *permit, struct tw_place *place,
		   const struct tw_setting *setting)
{
	uint32_t added = setting->actions;
	struct tw_session_place *set = tw_session_remember(session, place);
	struct tw_bp_part part = {0};
	int error;

	if (!set)
		return TW_ENOMEM;
	tw_bp_staged_part(permit, place, session->slot, &part);
	if (place->kind != TW_BP_DECLARED && ((added | part.actions) & TW_ACTION_MEMORY))
		tw_watched_mark_due();
	if (added & TW_ACTION_GLOBAL) {
		error = (part.actions | set->paused) & COUNTERS ? renew_counters(session, set, COUNTERS, false) : 0;
		if (error)
			return error;
		part = (struct tw_bp_part){.slot_words = part.slot_words, .stack_depth = part.stack_depth};
	} else if (part.actions & TW_ACTION_GLOBAL) {
		remove_actions(&part, TW_ACTION_CALL);
	}
	part.actions |= added;
	if (added & TW_ACTION_CALL)
		tw_session_use_program(&part, place, setting->program);
	if (added & TW_ACTION_META) {
		part.meta_program = setting->program;
		/* RELAXED hit.without_tracer: used for info only. */
		tw_fetch_and_relaxed(&place->without_tracer, ~(UINT64_C(1) << session->slot));
	}
	error = renew_counters(session, set, added, true);
	return error ? error : tw_session_stage(session, permit, place, &part);
}

static int clear_place(struct tw_session *session, struct tw_permit *permit, struct tw_place *place,
		       const struct tw_setting *setting)
{
	uint32_t removed = setting->actions;
	struct tw_session_place *set = tw_session_find(session, place);
	struct tw_bp_part part;
	int error = set ? renew_counters(session, set, removed, false) : 0;

	if (error || !tw_bp_staged_part(permit, place, session->slot, &part))
		return error;
	/* Global tracing is removed only by TW_ACTION_GLOBAL, local tracing only without it. */
	if (!(removed & TW_ACTION_GLOBAL) != !(part.actions & TW_ACTION_GLOBAL))
		removed &= ~(uint32_t)TW_ACTION_CALL;
	remove_actions(&part, removed & ~(uint32_t)TW_ACTION_GLOBAL);
	return stage_part(session, permit, place, &part);
}

static int pause_place(struct tw_session *session, struct tw_permit *permit, struct tw_place *place,
		       const struct tw_setting *setting)
{
	uint32_t paused = setting->actions & COUNTERS;
	struct tw_session_place *set = tw_session_find(session, place);
	struct tw_bp_part part;
	int error;

	if (!set || !tw_bp_staged_part(permit, place, session->slot, &part))
		return 0;
	paused &= part.actions;
	if (!paused)
		return 0;
	part.actions &= ~paused;
	error = stage_part(session, permit, place, &part);
	if (error)
		return error;
	tw_change_touch(session, set);
	set->paused |= (uint8_t)paused;
	return 0;
}

static int restart_place(struct tw_session *session, struct tw_permit *permit, struct tw_place *place,
			 const struct tw_setting *setting)
{
	struct tw_session_place *set = tw_session_find(session, place);
	struct tw_bp_part part = {0};
	struct tw_setting restarted = {.match = TW_MATCH_TRUE};

	if (!set)
		return 0;
	tw_bp_staged_part(permit, place, session->slot, &part);
	restarted.actions = setting->actions & COUNTERS & (part.actions | set->paused);
	return restarted.actions ? tw_setting_set(session, permit, place, &restarted) : 0;
}

/* Only calls that name the module pass slots; sleds cannot tell which calls do. */
bool tw_setting_suits(const struct tw_place *place, uint32_t actions)
{
	return place->kind == TW_BP_DECLARED || (place->kind == TW_BP_SLOT) == !!(actions & TW_ACTION_GLOBAL);
}

/* A setting on the function's other places ends the one on this place. */
static int end_place(struct tw_session *session, struct tw_permit *permit, struct tw_place *place)
{
	struct tw_session_place *set = tw_session_find(session, place);

	if (!set)
		return 0;
	if (set->memories.now && place->kind != TW_BP_DECLARED)
		tw_watched_mark_due();
	tw_bp_stage_clear(permit, place, session->slot);
	return renew_counters(session, set, COUNTERS, false);
}

static int apply_one(struct tw_session *session, struct tw_permit *permit, struct tw_place *place,
		     const struct tw_setting *setting)
{
	if (!tw_setting_suits(place, setting->actions))
		return setting->match == TW_MATCH_TRUE ? end_place(session, permit, place) : 0;
	/* A function that is not exported has no global calls, but its local tracing ends all the same. */
	if ((setting->actions & TW_ACTION_GLOBAL) && !place->function->is_exported)
		return setting->match == TW_MATCH_TRUE ? end_place(session, permit, place) : 0;
	switch (setting->match) {
	case TW_MATCH_FALSE: return clear_place(session, permit, place, setting);
	case TW_MATCH_RESTART: return restart_place(session, permit, place, setting);
	case TW_MATCH_PAUSE: return pause_place(session, permit, place, setting);
	default: return tw_setting_set(session, permit, place, setting);
	}
}

/* Places in loaded objects that the system does not let us write are left alone. */
int tw_setting_apply(struct tw_session *session, struct tw_permit *permit, struct tw_place *place, const void *arg)
{
	int error = apply_one(session, permit, place, arg);

	return place->kind != TW_BP_DECLARED && (error == TW_ENOTSUP || error == TW_EPERM) ? 0 : error;
}
