/* SPDX-License-Identifier: Apache-2.0 */
/* declare.c - functions that a program declares become places; sessions that wait for them get them. */
#include "session/session.h"
#include "base/limits.h"
#include "tracewheel/function.h"

#include <string.h>

/* A session that asked for functions declared later. */
static int offer(struct tw_permit *permit, struct tw_function *function, struct tw_place *place)
{
	uint64_t wanting = 0;
	int error = 0;

	tw_registry_lock();
	for (struct tw_session *session = tw_sessions(); session; session = session->next)
		if (session->wants && tw_session_is_alive(session) && session->wants(function, session->wants_arg))
			wanting |= UINT64_C(1) << session->slot;
	tw_registry_unlock();
	/* Clearing needs the permit first, so those that were alive still have their bit. */
	for (; wanting && !error; wanting &= wanting - 1)
		error = tw_session_stage_wanted(tw_session_at((unsigned)__builtin_ctzll(wanting)), permit, place);
	return error;
}

TW_API int tw_function_declare(struct tw_declared_function *function)
{
	struct tw_module_options module_options = { .is_declared = true };
	struct tw_place_options place_options = { .kind = TW_BP_DECLARED };
	struct tw_permit *permit;
	struct tw_module *module;
	struct tw_function *named;
	struct tw_place *place;
	int error;

	if (!function || !function->module || !function->name || function->arity > TW_ARITY_MAX ||
	    strlen(function->module) > 255 || strlen(function->name) > 255 || !function->module[0])
		return TW_EBADARG;
	tw_session_init();
	module_options.name = function->module;
	place_options.where = &function->armed;
	error = tw_change_begin(&permit);
	if (error)
		return error;
	error = tw_bp_module_add(permit, &module_options, &module);
	if (!error)
		error = tw_bp_function_add(permit, module, function->name, function->arity, 0, &named);
	if (!error)
		error = tw_bp_place_add(permit, named, &place_options, &place);
	if (!error) {
		/* PAIR bp.place: release; acquire in tw_hit0() and its brothers. */
		tw_store_plain_release(&function->place, place);
		error = offer(permit, named, place);
	}
	return tw_change_end(permit, error);
}
