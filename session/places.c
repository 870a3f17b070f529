/* SPDX-License-Identifier: Apache-2.0 */
/* places.c - selects the places of a call, and keeps the settings of a session on them. */
#include "session/definitions.h"
#include "base/grow.h"
#include "session/places.h"
#include "session/session.h"
#include "session/tracer_module.h"
#include "base/clock.h"
#include "base/limits.h"
#include "pipeline/hit/condition.h"
#include "pipeline/hit/longer.h"

#include <stdlib.h>
#include <string.h>

/* ---- settings of a session ---- */

struct tw_session_place *tw_session_place_at(const struct tw_session *session, uint32_t id)
{
	uint32_t chunk = id / TW_SESSION_CHUNK_PLACES;
	struct tw_session_place *set;

	if (chunk >= session->chunk_count || !session->set_chunks[chunk])
		return NULL;
	set = &session->set_chunks[chunk][id % TW_SESSION_CHUNK_PLACES];
	return set->place ? set : NULL;
}

struct tw_session_place *tw_session_next_place(const struct tw_session *session, uint32_t *id)
{
	for (uint32_t chunk; (chunk = *id / TW_SESSION_CHUNK_PLACES) < session->chunk_count;) {
		struct tw_session_place *set = session->set_chunks[chunk] ? tw_session_place_at(session, *id) : NULL;

		if (set)
			return set;
		*id = session->set_chunks[chunk] ? *id + 1 : (chunk + 1) * TW_SESSION_CHUNK_PLACES;
	}
	return NULL;
}

struct tw_session_place *tw_session_find(struct tw_session *session, const struct tw_place *place)
{
	return tw_session_place_at(session, place->place_id);
}

struct tw_session_place *tw_session_remember(struct tw_session *session, struct tw_place *place)
{
	uint32_t chunk = place->place_id / TW_SESSION_CHUNK_PLACES;
	struct tw_session_place *set;

	if (!tw_grow_to(session->set_chunks, session->chunk_count, chunk))
		return NULL;
	if (!session->set_chunks[chunk])
		session->set_chunks[chunk] = calloc(TW_SESSION_CHUNK_PLACES, sizeof **session->set_chunks);
	if (!session->set_chunks[chunk])
		return NULL;
	set = &session->set_chunks[chunk][place->place_id % TW_SESSION_CHUNK_PLACES];
	set->place = place;
	return set;
}

uint32_t tw_session_actions(struct tw_session *session, struct tw_permit *permit, const struct tw_place *place)
{
	const struct tw_session_place *set = tw_session_find(session, place);
	struct tw_bp_part part = {0};

	if (!set)
		return 0;
	tw_bp_staged_part(permit, set->place, session->slot, &part);
	return part.actions | set->paused;
}

/* As message.c names it: a name that is not an atom is '?'. */
static uint64_t atom_of(const char *name)
{
	size_t bytes = strlen(name);
	struct tw_term atom;

	if (bytes > 255) {
		bytes = 255;
		while (bytes && ((unsigned char)name[bytes] & 0xc0) == 0x80)
			bytes--;
	}
	atom = tw_term_atom(name, bytes);
	return (tw_term_is_none(atom) ? tw_term_atom_z("?") : atom).word;
}

/* Interns a function's names for callbacks, before a session with a module sets a place of it. Under the permit. */
static void intern_names(struct tw_function *function)
{
	if (function->name_atom)
		return;
	function->module_atom = atom_of(function->module ? function->module->name : "?");
	function->name_atom = atom_of(function->name);
}

/* The counter of a place, if it has none yet. */
static int make_counter(struct tw_session *session, struct tw_session_place *set)
{
	int error;

	if (set->counter)
		return 0;
	if (!tw_session_shares_counts(session)) {
		set->counter = tw_counter_create();
		return set->counter ? 0 : TW_ELIMIT;
	}
	error = tw_counter_share(session->rs, set->place->place_id, set->longer != NULL, &set->counter);
	return error ? error : tw_define_counted(session, set);
}

int tw_session_stage_counted(struct tw_session *session, struct tw_permit *permit, struct tw_place *place)
{
	const struct tw_bp_part part = {.actions = TW_ACTION_COUNT};

	return tw_session_stage(session, permit, place, &part);
}

int tw_session_stage_longer(struct tw_session *session, struct tw_permit *permit, struct tw_place *place,
			    const struct tw_session_longer *longer, uint8_t slot_words)
{
	const struct tw_bp_part part = {.actions = TW_ACTION_LONGER, .slot_words = slot_words};
	const struct tw_call_condition *condition = longer->condition;
	struct tw_session_place *set = tw_session_remember(session, place);
	uint64_t ticks = (uint64_t)((unsigned __int128)longer->least_ns * tw_clock_ticks_per_second() / 1000000000);
	uint64_t more = slot_words || (condition && condition->kept_count) ? TW_LONGER_KEEPS : 0;

	if (!set)
		return TW_ENOMEM;
	set->longer = longer;
	more |= condition ? TW_LONGER_OF_END : !ticks ? TW_LONGER_AT_ONCE : 0;
	if (longer->has_children)
		more = (more & ~TW_LONGER_AT_ONCE) | TW_LONGER_CHILDREN | (longer->is_child ? TW_LONGER_CHILD_ONLY : 0);
	/* PAIR bp.condition: release; acquire in is_fulfilled().  The memory that the condition points to is written. */
	tw_store_release(&place->condition, condition);
	/* RELAXED longer.limit: as in longer.c. */
	tw_store_relaxed(&place->longer_flags, (uint8_t)(more >> TW_LONGER_FLAGS_SHIFT));
	/* RELAXED longer.limit: as in longer.c. */
	tw_store_relaxed(&place->longer_ticks, condition || longer->is_child ? UINT64_MAX : ticks);
	return tw_session_stage(session, permit, place, &part);
}

int tw_session_stage(struct tw_session *session, struct tw_permit *permit, struct tw_place *place,
		     const struct tw_bp_part *part)
{
	struct tw_session_place *set;
	struct tw_bp_part staged = *part;
	int error = tw_define_place(session, permit, place);

	if (error)
		return error;
	if (session->module)
		intern_names(place->function);
	set = tw_session_remember(session, place);
	if (!set)
		return TW_ENOMEM;
	staged.session = (uint8_t)session->slot;
	if (staged.actions & (TW_ACTION_COUNT | TW_ACTION_LONGER)) {
		error = make_counter(session, set);
		if (error)
			return error;
		staged.counter = set->counter;
	}
	staged.times = staged.actions & TW_ACTION_TIME ? set->times.now : NULL;
	staged.memories = staged.actions & TW_ACTION_MEMORY ? set->memories.now : NULL;
	return tw_bp_stage_set(permit, place, &staged);
}

void tw_session_stage_clear_all(struct tw_session *session, struct tw_permit *permit)
{
	struct tw_session_place *set;

	for (uint32_t id = 0; (set = tw_session_next_place(session, &id)); id++)
		tw_bp_stage_clear(permit, set->place, session->slot);
}

/* ---- matching ---- */

static bool is_any(const char *name)
{
	return name[0] == '_' && !name[1];
}

int tw_wanted_read(const char *module, const char *function, int arity, struct tw_wanted *out)
{
	if (!module || !function)
		return TW_EBADARG;
	*out = (struct tw_wanted){.module = is_any(module) ? NULL : module,
				  .function = is_any(function) ? NULL : function,
				  .arity = arity};
	if ((!out->module && out->function) || (!out->function && arity != TW_ARITY_ANY))
		return TW_EBADARG;
	return 0;
}

/* Declared functions see every call and its kind, sleds and entries every call without its kind, slots only calls that name the module. */
static bool has_place(const struct tw_wanted *wanted, const struct tw_function *function)
{
	if (function->module->is_declared)
		return true;
	for (const struct tw_place *place = function->places; place; place = place->next_of_function)
		if (!place->is_gone &&
		    !(wanted->is_global && (place->kind == TW_BP_SLED || place->kind == TW_BP_ENTRY)) &&
		    !(wanted->is_local && place->kind == TW_BP_SLOT))
			return true;
	return false;
}

/* No function has an impossible arity. */
static bool is_wanted(const struct tw_wanted *wanted, const struct tw_function *function)
{
	return (!wanted->function || strcmp(wanted->function, function->name) == 0) &&
	       (wanted->arity == TW_ARITY_ANY || (wanted->arity == TW_ARITY_UNKNOWN && function->arity == UINT32_MAX) ||
		(wanted->arity >= 0 && (uint32_t)wanted->arity == function->arity)) &&
	       has_place(wanted, function);
}

/* Global tracing changes functions that are not exported, but does not count them. */
static bool is_counted(const struct tw_wanted *wanted, const struct tw_function *function)
{
	return (!wanted->is_global || function->is_exported) && is_wanted(wanted, function);
}

static int for_each_place_of(struct tw_session *session, struct tw_permit *permit, struct tw_function *function,
			     tw_place_fn fn, const void *arg)
{
	for (struct tw_place *place = function->places; place; place = place->next_of_function) {
		int error = place->is_gone ? 0 : fn(session, permit, place, arg);

		if (error)
			return error;
	}
	return 0;
}

/* The first function of a module to check, and its end: a single one if everything is given by name. */
static struct tw_function *first_function(struct tw_permit *permit, struct tw_module *module,
					  const struct tw_wanted *wanted)
{
	if (wanted->function && wanted->arity != TW_ARITY_ANY)
		return tw_bp_function_find(permit, module, wanted->function,
					   wanted->arity == TW_ARITY_UNKNOWN ? UINT32_MAX : (uint32_t)wanted->arity);
	return module->functions;
}

static struct tw_function *next_function(const struct tw_function *function, const struct tw_wanted *wanted)
{
	return wanted->function && wanted->arity != TW_ARITY_ANY ? NULL : function->next_of_module;
}

static bool is_wanted_module(const struct tw_wanted *wanted, const struct tw_module *module)
{
	return !wanted->module || !strcmp(wanted->module, module->name) ||
	       (module->soname && !strcmp(wanted->module, module->soname));
}

int tw_for_each_place(struct tw_session *session, struct tw_permit *permit, const struct tw_wanted *wanted,
		      tw_place_fn fn, const void *arg)
{
	int count = 0;

	for (struct tw_module *module = tw_bp_modules(permit); module; module = module->next) {
		if (!is_wanted_module(wanted, module))
			continue;
		for (struct tw_function *f = first_function(permit, module, wanted); f; f = next_function(f, wanted)) {
			int error = is_wanted(wanted, f) ? for_each_place_of(session, permit, f, fn, arg) : 0;

			if (error)
				return error;
			count += is_counted(wanted, f);
		}
	}
	return count;
}
