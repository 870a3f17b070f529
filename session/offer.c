/* SPDX-License-Identifier: Apache-2.0 */
/* offer.c - offers new places to the sessions that wait for them: by on_load, or by the agent's patterns. */
#include "session/native.h"
#include "session/places.h"
#include "session/setting.h"

#include <string.h>

static int stage_on_load(struct tw_session *session, struct tw_permit *permit, struct tw_place *place)
{
	const struct tw_session_on_load *on_load = &session->on_load;
	struct tw_setting setting = {.match = TW_MATCH_TRUE,
				     .actions = on_load->actions & ~(uint32_t)TW_ACTION_META,
				     .program = on_load->program};
	int error = 0;

	if (((on_load->actions & TW_ACTION_GLOBAL) && !place->function->is_exported) ||
	    !tw_setting_suits(place, on_load->actions))
		return 0;
	if (setting.actions)
		error = tw_setting_set(session, permit, place, &setting);
	setting.actions = on_load->actions & TW_ACTION_META;
	setting.program = on_load->meta_program;
	return error || !setting.actions ? error : tw_setting_set(session, permit, place, &setting);
}

static bool is_wanted_by(const struct tw_session *session, const struct tw_function *function,
			 const struct tw_match_program **program)
{
	return session->wants && session->wants(function, session->wants_arg, program);
}

static bool wants(const struct tw_session *session, const struct tw_function *function)
{
	const struct tw_match_program *program;

	return session->on_load.actions || is_wanted_by(session, function, &program);
}

/* The function of a loaded object that a declared one names again: same module, same name. */
static bool is_namesake(const struct tw_function *native, const struct tw_function *declared)
{
	return !strcmp(native->name, declared->name);
}

static bool is_namesake_module(const struct tw_module *module, const struct tw_function *function)
{
	return module->is_declared != function->module->is_declared && !strcmp(module->name, function->module->name);
}

bool tw_session_has_declared(struct tw_permit *permit, const struct tw_function *native)
{
	for (const struct tw_module *module = tw_bp_modules(permit); module; module = module->next) {
		if (!is_namesake_module(module, native))
			continue;
		for (const struct tw_function *f = module->functions; f; f = f->next_of_module)
			if (is_namesake(native, f))
				return true;
	}
	return false;
}

/* A function that reports its calls would make two events of each. */
static void clear_namesakes(const struct tw_session *session, struct tw_permit *permit,
			    const struct tw_function *declared)
{
	for (const struct tw_module *module = tw_bp_modules(permit); module; module = module->next) {
		if (!is_namesake_module(module, declared))
			continue;
		for (struct tw_function *f = module->functions; f; f = f->next_of_module) {
			if (!is_namesake(f, declared))
				continue;
			for (struct tw_place *place = f->places; place; place = place->next_of_function)
				tw_bp_stage_clear(permit, place, session->slot);
		}
	}
}

int tw_session_stage_pattern(struct tw_session *session, struct tw_permit *permit, struct tw_place *place,
			     const void *arg)
{
	struct tw_bp_part part = {.actions = TW_ACTION_CALL | session->wanted_actions};
	const struct tw_match_program *program = NULL;

	/* The agent finds functions of loaded objects itself. */
	if (place->kind != TW_BP_DECLARED || !is_wanted_by(session, place->function, &program))
		return 0;
	if (program)
		tw_session_use_program(&part, place, program);
	clear_namesakes(session, permit, place->function);
	return tw_session_stage(session, permit, place, &part);
}

static int stage_wanted(struct tw_session *session, struct tw_permit *permit, struct tw_place *place)
{
	int error = session->on_load.actions ? stage_on_load(session, permit, place) : 0;

	return error ? error : tw_session_stage_pattern(session, permit, place, NULL);
}

int tw_sessions_offer(struct tw_permit *permit, struct tw_place *place)
{
	const struct tw_function *function = place->function;
	uint64_t wanting = 0;
	int error = 0;

	tw_registry_lock();
	for (struct tw_session *session = tw_sessions(); session; session = session->next)
		if (tw_session_is_alive(session) && wants(session, function))
			wanting |= UINT64_C(1) << session->slot;
	tw_registry_unlock();
	/* Clearing takes the permit first, so sessions that were alive still have their bit. */
	for (; wanting && !error; wanting &= wanting - 1)
		error = stage_wanted(tw_session_at((unsigned)__builtin_ctzll(wanting)), permit, place);
	return error;
}
