/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watched.c - slots of loaded objects that are armed for calls that the library itself needs to see:
 *
 *	the allocators			while a session counts memory of a native function (call_memory)
 *	pthread_create			while a thread passes flags on to threads that it creates (set_on_spawn), or while
 *					a thread may have a token of sequential tracing
 *
 *  1  find the kinds that are needed				under the permit
 *  2  look up the slots of all objects		loader's locks
 *  3  under the permit again: add and arm new places; restore slots no longer needed
 *
 * Calls inside the C library and calls by pointer pass no slot and are not seen.
 */
#include "session/change.h"
#include "session/native.h"
#include "session/seq/seq.h"
#include "session/places.h"
#include "session/session.h"
#include "session/tracee.h"
#include "session/watched.h"
#include "breakpoints/patch.h"
#include "progress/progress.h"
#include "symbols/symbols.h"

#include <dlfcn.h>
#include <stdlib.h>

static _Atomic bool is_due;
/* The armed kinds.  Under the permit. */
static unsigned armed;
enum { ALLOCATORS = 1, SPAWNERS = 2 };

void tw_watched_mark_due(void)
{
	/* PAIR watched.due: release; acquire in tw_watched_follow(). */
	tw_store_release(&is_due, true);
}

/* ---- needs ---- */

static bool counts_memory(struct tw_session *session, struct tw_permit *permit)
{
	const struct tw_session_place *set;

	for (uint32_t id = 0; (set = tw_session_next_place(session, &id)); id++) {
		const struct tw_place *place = set->place;
		struct tw_bp_part part;

		if (place->kind != TW_BP_DECLARED && !place->is_gone &&
		    tw_bp_staged_part(permit, (struct tw_place *)place, session->slot, &part) &&
		    (part.actions & TW_ACTION_MEMORY))
			return true;
	}
	return false;
}

static unsigned wanted_kinds(struct tw_permit *permit)
{
	unsigned kinds = 0;

	tw_registry_lock();
	for (struct tw_session *session = tw_sessions(); session && !kinds; session = session->next)
		kinds = counts_memory(session, permit) ? ALLOCATORS : 0;
	if (tw_tracees_pass_on() || tw_seq_threads_have_tokens())
		kinds |= SPAWNERS;
	tw_registry_unlock();
	return kinds;
}

/* ---- arming ---- */

static unsigned kind_of(enum tw_bp_allocator what)
{
	return what == TW_BP_ALLOCATES_NOTHING ? 0 : what == TW_BP_MAKES_THREAD ? SPAWNERS : ALLOCATORS;
}

/* @arg: the kinds. */
static bool is_watched(const char *function, void *arg)
{
	return kind_of(tw_bp_allocator_of(function)) & *(const unsigned *)arg;
}

static int add_slot(struct tw_permit *permit, const struct tw_sym_slot *slot, uint32_t caller_module_id)
{
	const struct tw_place_options options = {.kind = TW_BP_SLOT,
						 .where = slot->where,
						 .target = slot->target,
						 .caller_module_id = caller_module_id};
	struct tw_function *function;
	struct tw_module *module;
	struct tw_place *place;
	int error = tw_native_module(permit, slot->definer, &module);

	if (!error)
		error = tw_bp_function_add(permit, module, slot->function, UINT32_MAX,
					   (uint64_t)(uintptr_t)slot->target, &function);
	if (!error)
		error = tw_bp_place_add(permit, function, &options, &place);
	if (!error)
		error = tw_bp_stage_allocations(permit, place, true);
	/* A slot that cannot be written is left alone. */
	return error == TW_ENOTSUP || error == TW_EPERM ? 0 : error;
}

static int add_slots(struct tw_permit *permit, const struct tw_sym_object *caller, const struct tw_sym_slot *slots,
		     size_t count)
{
	struct tw_module *module;
	int error = tw_native_module(permit, caller, &module);

	for (size_t i = 0; i < count && !error; i++)
		if (!slots[i].refusal && slots[i].definer && slots[i].definer != caller)
			error = add_slot(permit, &slots[i], module->module_id);
	return error;
}

/* Objects that hold a place stay loaded, as in native.c. */
static int arm_object(const struct tw_sym_set *set, const struct tw_sym_object *caller, unsigned kinds)
{
	const struct tw_sym_wish wish = {.wants = is_watched, .arg = &kinds};
	struct tw_sym_slot *slots;
	struct tw_permit *permit;
	void *pin;
	size_t count;
	int error;

	if ((caller->role != TW_SYM_ORDINARY && caller->role != TW_SYM_PROGRAM) ||
	    (caller->role != TW_SYM_PROGRAM && !tw_sym_pin(caller, &pin)))
		return 0;
	error = tw_sym_slots(set, caller, &wish, &slots, &count);
	if (error)
		return error;
	error = tw_change_begin(&permit);
	if (!error) {
		tw_patch_begin(permit);
		/* The session that needed them may have ended meanwhile. */
		if ((armed & kinds) == kinds)
			error = add_slots(permit, caller, slots, count);
		tw_patch_end(permit);
		error = tw_change_end(permit, error);
	}
	free(slots);
	return error;
}

static void arm(unsigned kinds)
{
	struct tw_sym_set *set;

	if (tw_sym_load(&set))
		return;
	for (size_t i = 0; i < set->count; i++)
		arm_object(set, &set->objects[i], kinds);
	tw_sym_unload(set);
	/* Failed look-ups have left an error message that the program must not see. */
	dlerror();
}

/* Stages the restoring of slots of all other kinds. */
static void disarm(struct tw_permit *permit, unsigned kinds)
{
	for (struct tw_module *module = tw_bp_modules(permit); module; module = module->next)
		for (struct tw_function *f = module->functions; f; f = f->next_of_module)
			for (struct tw_place *place = f->places; place; place = place->next_of_function)
				if (place->is_allocating && !place->is_gone && !(kind_of(place->allocator) & kinds))
					tw_bp_stage_allocations(permit, place, false);
	armed &= kinds;
}

void tw_watched_end(struct tw_permit *permit)
{
	unsigned kinds = armed ? wanted_kinds(permit) : 0;

	if (armed & ~kinds)
		disarm(permit, kinds);
}

void tw_watched_loaded(void)
{
	if (armed)
		tw_watched_mark_due();
}

void tw_watched_follow(void)
{
	struct tw_permit *permit;
	unsigned kinds;

	/* RELAXED watched.due: a check before the exchange, which decides. */
	if (!tw_load_relaxed(&is_due) || tw_permit_is_mine() || tw_progress_is_reading() || tw_hit_is_under_way())
		return;
	/* PAIR watched.due: acquire; release in tw_watched_mark_due(). */
	if (!tw_exchange_acq_rel(&is_due, false) || tw_permit_seize(&permit))
		return;
	kinds = wanted_kinds(permit);
	if (armed & ~kinds)
		disarm(permit, kinds);
	armed = kinds;
	tw_bp_commit(permit);
	tw_permit_drop(permit);
	if (kinds)
		arm(kinds);
}
