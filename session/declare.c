/* SPDX-License-Identifier: Apache-2.0 */
/* declare.c - declared functions become places, and waiting sessions set them. */
#include "session/change.h"
#include "session/native.h"
#include "session/session.h"
#include "session/watched.h"
#include "base/limits.h"
#include "tracewheel/function.h"
#include "tracewheel/term.h"

#include <string.h>

/* @soname	of its module, for patterns; NULL: none. */
static int declare(struct tw_permit *permit, struct tw_declared_function *function, const char *soname)
{
	struct tw_module_options module_options = {.name = function->module, .soname = soname, .is_declared = true};
	struct tw_place_options place_options = {.kind = TW_BP_DECLARED, .where = &function->armed};
	struct tw_module *module;
	struct tw_function *named;
	struct tw_place *place;
	int error = tw_bp_module_add(permit, &module_options, &module);

	if (!error)
		error = tw_bp_function_add(permit, module, function->name, function->arity, 0, &named);
	if (!error)
		error = tw_bp_place_add(permit, named, &place_options, &place);
	/* A function that was declared before keeps its settings. */
	if (error || function->place == place)
		return error;
	named->is_exported = !(function->flags & TW_DECLARED_LOCAL);
	/* PAIR bp.place: release; acquire in PLACE_OF(), by every hit of a declared function. */
	tw_store_plain_release(&function->place, place);
	return tw_sessions_offer(permit, place);
}

/* Events name the module and the function, and hits name callers, but neither may create atoms. */
static void make_atoms(const struct tw_declared_function *function)
{
	tw_term_atom_z(function->module);
	tw_term_atom_z(function->name);
}

int tw_functions_declare(struct tw_declared_function *const *functions, size_t count, const char *soname)
{
	struct tw_permit *permit;
	int error;

	if (!count)
		return 0;
	tw_session_init();
	for (size_t i = 0; i < count; i++)
		make_atoms(functions[i]);
	tw_sessions_clear_dropped();
	error = tw_change_begin(&permit);
	if (error)
		return error;
	for (size_t i = 0; i < count && !error; i++)
		error = declare(permit, functions[i], soname);
	error = tw_change_end(permit, error);
	tw_watched_follow();
	return error;
}

TW_API int tw_function_declare(struct tw_declared_function *function)
{
	if (!function || !function->module || !function->name || function->arity > TW_ARITY_MAX ||
	    strlen(function->module) > 255 || strlen(function->name) > 255 || !function->module[0])
		return TW_EBADARG;
	return tw_functions_declare(&function, 1, NULL);
}

/* ---- unloading ---- */

static unsigned stage_clear_module(struct tw_permit *permit, const struct tw_module *module)
{
	unsigned count = 0;

	for (struct tw_function *f = module->functions; f; f = f->next_of_module, count++) {
		for (struct tw_place *place = f->places; place; place = place->next_of_function) {
			uint64_t sessions = place->gen[tw_bp_active_index()].sessions;

			for (; sessions; sessions &= sessions - 1)
				tw_bp_stage_clear(permit, place, (unsigned)__builtin_ctzll(sessions));
		}
	}
	return count;
}

/* All are switched off first by one commit; after that, the words of the functions are not written any more. */
TW_API int tw_module_unload(const char *name)
{
	struct tw_permit *permit;
	unsigned count = 0;
	int error;

	if (!name)
		return TW_EBADARG;
	error = tw_permit_seize(&permit);
	if (error)
		return error;
	for (struct tw_module *module = tw_bp_modules(permit), *next; module; module = next) {
		/* Read before the module moves to the list of unloaded ones. */
		next = module->next;
		if (!module->is_declared || strcmp(module->name, name) != 0)
			continue;
		count += stage_clear_module(permit, module);
		tw_bp_commit(permit);
		tw_bp_module_gone(permit, module, true);
	}
	tw_permit_drop(permit);
	return (int)count;
}
