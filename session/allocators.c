/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allocators.c - the slots through which loaded objects call malloc and its brothers are armed while somebody counts
 * memory of a native function (call_memory).
 *
 *  1  does anybody?				under the permit
 *  2  look: the slots of all objects		loader's locks
 *  3  under the permit again: places that are new, all armed; or, if nobody counts any more, all taken back
 *
 * Calls that are made inside the C library, and those of pointers, go through no slot and are not seen.
 */
#include "session/session.h"
#include "breakpoints/patch.h"
#include "progress/progress.h"
#include "symbols/symbols.h"

#include <dlfcn.h>
#include <stdlib.h>

static _Atomic bool is_due;
/* Under the permit. */
static bool is_armed;

void tw_allocators_look_again(void)
{
	/* PAIR allocators.due: release; acquire in tw_allocators_follow(). */
	tw_store_release(&is_due, true);
}

/* ---- does anybody count? ---- */

static bool counts_memory(struct tw_session *session, struct tw_permit *permit)
{
	for (uint32_t id = 0; id < session->set_room; id++) {
		const struct tw_place *place = session->set_places[id].place;
		struct tw_bp_part part;

		if (place && place->kind != TW_BP_DECLARED && !place->is_gone &&
		    tw_bp_staged_part(permit, (struct tw_place *)place, session->slot, &part) &&
		    (part.actions & TW_ACTION_MEMORY))
			return true;
	}
	return false;
}

static bool does_anybody(struct tw_permit *permit)
{
	bool does = false;

	tw_registry_lock();
	for (struct tw_session *session = tw_sessions(); session && !does; session = session->next)
		does = counts_memory(session, permit);
	tw_registry_unlock();
	return does;
}

/* ---- arming ---- */

static bool is_allocator(const char *function, void *arg)
{
	return tw_bp_allocator_of(function) != TW_BP_ALLOCATES_NOTHING;
}

static int add_slot(struct tw_permit *permit, const struct tw_sym_slot *slot, uint32_t caller_module_id)
{
	const struct tw_place_options options = { .kind = TW_BP_SLOT,
						  .where = slot->where,
						  .target = slot->target,
						  .caller_module_id = caller_module_id };
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
	/* One that cannot be written is left alone. */
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
static int arm_object(const struct tw_sym_set *set, const struct tw_sym_object *caller)
{
	struct tw_sym_slot *slots;
	struct tw_permit *permit;
	void *pin;
	size_t count;
	int error;

	if ((caller->role != TW_SYM_ORDINARY && caller->role != TW_SYM_PROGRAM) ||
	    (caller->role != TW_SYM_PROGRAM && !tw_sym_pin(caller, &pin)))
		return 0;
	error = tw_sym_slots(set, caller, is_allocator, NULL, &slots, &count);
	if (error)
		return error;
	error = tw_change_begin(&permit);
	if (!error) {
		tw_patch_begin();
		/* Who counted may have ended meanwhile. */
		if (is_armed)
			error = add_slots(permit, caller, slots, count);
		tw_patch_end();
		error = tw_change_end(permit, error);
	}
	free(slots);
	return error;
}

static void arm(void)
{
	struct tw_sym_set *set;

	if (tw_sym_load(&set))
		return;
	for (size_t i = 0; i < set->count; i++)
		arm_object(set, &set->objects[i]);
	tw_sym_unload(set);
	/* Names that were not found left a message, which is not the program's. */
	dlerror();
}

/* Stages it. */
static void disarm(struct tw_permit *permit)
{
	for (struct tw_module *module = tw_bp_modules(permit); module; module = module->next)
		for (struct tw_function *f = module->functions; f; f = f->next_of_module)
			for (struct tw_place *place = f->places; place; place = place->next_of_function)
				if (place->is_allocating && !place->is_gone)
					tw_bp_stage_allocations(permit, place, false);
	is_armed = false;
}

void tw_allocators_end(struct tw_permit *permit)
{
	if (is_armed && !does_anybody(permit))
		disarm(permit);
}

void tw_allocators_loaded(void)
{
	if (is_armed)
		tw_allocators_look_again();
}

void tw_allocators_follow(void)
{
	struct tw_permit *permit;
	bool does;

	/* RELAXED allocators.due: a look before the exchange, which decides. */
	if (!tw_load_relaxed(&is_due) || tw_permit_is_mine() || tw_progress_is_reading() || tw_hit_is_under_way())
		return;
	/* PAIR allocators.due: acquire; release in tw_allocators_look_again(). */
	if (!tw_exchange_acq_rel(&is_due, false) || tw_permit_seize(&permit))
		return;
	does = does_anybody(permit);
	if (!does && is_armed)
		disarm(permit);
	is_armed = does;
	tw_bp_commit(permit);
	tw_permit_drop(permit);
	if (does)
		arm();
}
