/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native.c - makes functions of loaded objects places that sessions can set: entry sleds, and the GOT slots through
 * which other objects call them.
 *
 *  1  look up the object of that name, its sleds, and the slots of all others that lead to it	loader's locks
 *  2  under the permit: add new modules, functions and places, and set on_load on them
 *
 * Objects that hold a place are kept loaded from then on: this library is not notified of dlclose(), and a place must
 * not be written after its memory is gone.  (The agent is notified, and does not keep them.)
 */
#include "session/change.h"
#include "session/native.h"
#include "session/session.h"
#include "session/watched.h"
#include "breakpoints/patch.h"
#include "breakpoints/returns.h"
#include "pipeline/hit/callers.h"
#include "pipeline/hit/native.h"
#include "progress/progress.h"
#include "symbols/symbols.h"
#include "tracewheel/function.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* The result of a look-up. */
struct lookup {
	struct tw_sym_set *set;
	const struct tw_sym_object *definer;
	struct tw_sym_sleds sleds;
	struct tw_module *module;
};

static bool is_called(const struct tw_sym_object *object, const char *name)
{
	return (object->role == TW_SYM_ORDINARY || object->role == TW_SYM_PROGRAM) &&
	       (!strcmp(object->name, name) || !strcmp(object->elf.soname, name));
}

static bool defines(const char *function, void *arg)
{
	const struct tw_sym_object *definer = arg;

	return tw_elf_lookup(&definer->elf, function, 0) != NULL;
}

/* A new place gets the settings of on_load; a place that cannot be set is left alone. */
static int add_place(struct tw_permit *permit, struct lookup *lookup, const char *name, uint64_t address,
		     const struct tw_place_options *options)
{
	struct tw_function *function;
	struct tw_place *place;
	int error;

	if (tw_bp_place_at(permit, options->where))
		return 0;
	error = tw_bp_function_add(permit, lookup->module, name, UINT32_MAX, address, &function);
	if (!error)
		error = tw_bp_place_add(permit, function, options, &place);
	if (error)
		return error;
	error = tw_sessions_offer(permit, place);
	return error == TW_ENOTSUP || error == TW_EPERM ? 0 : error;
}

/* The first of a function's names is used. */
static int add_sleds(struct tw_permit *permit, struct lookup *lookup)
{
	uintptr_t last = 0;
	int error = 0;

	for (size_t i = 0; i < lookup->sleds.count && !error; i++) {
		const struct tw_sym_sled *sled = &lookup->sleds.entries[i];
		const struct tw_place_options options = {.kind = TW_BP_SLED,
							 .where = (void *)sled->where,
							 .sled_bytes = (uint8_t)sled->bytes};

		if (sled->where == last || sled->refusal)
			continue;
		last = sled->where;
		error = add_place(permit, lookup, sled->function, sled->entry, &options);
		if (!error)
			tw_bp_place_at(permit, options.where)->function->bytes = sled->function_bytes;
	}
	if (lookup->sleds.count)
		tw_callers_update(permit, true);
	return error;
}

static int add_slots(struct tw_permit *permit, struct lookup *lookup, const struct tw_sym_object *caller,
		     const struct tw_sym_slot *slots, size_t count)
{
	struct tw_module *module;
	int error = tw_native_module(permit, caller, &module);

	for (size_t i = 0; i < count && !error; i++) {
		struct tw_place_options options = {.kind = TW_BP_SLOT,
						   .where = slots[i].where,
						   .target = slots[i].target};

		if (slots[i].refusal || slots[i].definer != lookup->definer)
			continue;
		options.caller_module_id = module->module_id;
		error = add_place(permit, lookup, slots[i].function, (uint64_t)(uintptr_t)slots[i].target, &options);
	}
	return error;
}

/* Adds one object's calls of the definer's functions: step 1 for its slots, then step 2. */
static int add_caller(struct lookup *lookup, const struct tw_sym_object *caller)
{
	const struct tw_sym_wish wish = {.wants = defines, .arg = (void *)(uintptr_t)lookup->definer};
	struct tw_sym_slot *slots;
	struct tw_permit *permit;
	void *pin;
	size_t count;
	int error;

	if ((caller->role != TW_SYM_ORDINARY && caller->role != TW_SYM_PROGRAM) || caller == lookup->definer ||
	    strstr(caller->path, "/gconv/") || (caller->role != TW_SYM_PROGRAM && !tw_sym_pin(caller, &pin)))
		return 0;
	error = tw_sym_slots(lookup->set, caller, &wish, &slots, &count);
	if (error)
		return error;
	error = tw_change_begin(&permit);
	if (!error)
		error = tw_change_end(permit, add_slots(permit, lookup, caller, slots, count));
	free(slots);
	return error;
}

static int add_object(struct tw_sym_set *set, const struct tw_sym_object *definer)
{
	struct lookup lookup = {.set = set, .definer = definer};
	struct tw_permit *permit;
	void *pin;
	int error;

	if (definer->role != TW_SYM_PROGRAM && !tw_sym_pin(definer, &pin))
		return 0;
	error = tw_sym_sleds(definer, &lookup.sleds);
	if (error)
		return error;
	error = tw_change_begin(&permit);
	if (!error) {
		error = tw_native_module(permit, definer, &lookup.module);
		tw_watched_loaded();
		error = tw_change_end(permit, error ? error : add_sleds(permit, &lookup));
	}
	for (size_t i = 0; i < set->count && !error; i++)
		error = add_caller(&lookup, &set->objects[i]);
	tw_sym_sleds_fini(&lookup.sleds);
	return error;
}

TW_API int tw_module_load(const char *name)
{
	struct tw_sym_set *set;
	int error, found = 0;

	if (!name)
		return TW_EBADARG;
	if (tw_hit_is_under_way() || tw_progress_is_reading() || tw_permit_is_mine())
		return TW_EDEADLK;
	tw_session_init();
	tw_sessions_clear_dropped();
	error = tw_sym_load(&set);
	if (error)
		return error;
	for (size_t i = 0; i < set->count && !error; i++) {
		if (tw_sym_copies_stacks(set->objects[i].path))
			tw_returns_stacks_are_copied();
		if (tw_sym_repeats_stacks(set->objects[i].path))
			tw_native_stop_watching();
		if (!is_called(&set->objects[i], name))
			continue;
		error = add_object(set, &set->objects[i]);
		found++;
	}
	tw_sym_unload(set);
	/* Failed look-ups have left an error message that the program must not see. */
	dlerror();
	tw_watched_follow();
	return error ? error : found;
}

/* ---- look-up by the name of a module ---- */

#define NAMES_MAX 64

/* Under the registry's lock. */
static char *names[NAMES_MAX]; /* names already looked up among the objects loaded then */
static uint64_t loaded_then, unloaded_then;
static size_t name_count;

/* Was the name looked up since the last load or unload?  If not, it is remembered now. */
static bool was_searched(const char *name)
{
	uint64_t loaded, unloaded;
	bool is_found = false;

	tw_sym_counts(&loaded, &unloaded);
	tw_registry_lock();
	if (loaded != loaded_then || unloaded != unloaded_then) {
		while (name_count)
			free(names[--name_count]);
		loaded_then = loaded;
		unloaded_then = unloaded;
	}
	for (size_t i = 0; i < name_count && !is_found; i++)
		is_found = !strcmp(names[i], name);
	if (!is_found && name_count < NAMES_MAX) {
		names[name_count] = strdup(name);
		name_count += names[name_count] != NULL;
	}
	tw_registry_unlock();
	return is_found;
}

void tw_native_find(const char *module)
{
	if (tw_hit_is_under_way() || tw_permit_is_mine() || was_searched(module))
		return;
	tw_module_load(module);
}
