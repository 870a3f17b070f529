/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_function.c - the calls that set tracing of functions.
 *
 * A change is atomic: every matching function is staged, and one commit makes all visible.  Only staging can fail
 * (memory, definitions); then everything staged is aborted.
 */
#include "session/change.h"
#include "session/definitions.h"
#include "session/native.h"
#include "session/places.h"
#include "session/setting.h"
#include "session/watched.h"
#include "breakpoints/patch.h"
#include "match/match.h"

static uint32_t actions_of(uint32_t flags)
{
	if (!flags || flags == TW_FUNCTION_GLOBAL)
		return TW_ACTION_CALL | TW_ACTION_GLOBAL;
	return (flags & TW_FUNCTION_LOCAL ? TW_ACTION_CALL : 0) | (flags & TW_FUNCTION_META ? TW_ACTION_META : 0) |
	       (flags & TW_FUNCTION_CALL_COUNT ? TW_ACTION_COUNT : 0) |
	       (flags & TW_FUNCTION_CALL_TIME ? TW_ACTION_TIME : 0) |
	       (flags & TW_FUNCTION_CALL_MEMORY ? TW_ACTION_MEMORY : 0);
}

static int begin(struct tw_permit **permit)
{
	tw_sessions_clear_dropped();
	return tw_change_begin(permit);
}

static int end(struct tw_permit *permit, int result)
{
	result = tw_change_end(permit, result);
	tw_watched_follow();
	return result;
}

static int apply_to_all(struct tw_session *session, struct tw_permit *permit, const struct tw_wanted *wanted,
			const struct tw_setting *setting)
{
	int result;

	tw_patch_begin(permit);
	result = tw_for_each_place(session, permit, wanted, tw_setting_apply, setting);
	tw_patch_end(permit);
	return result;
}

/* ---- the calls ---- */

/* Checks the arguments that do not depend on the functions. */
static int read_setting(enum tw_match match, const struct tw_match_program *program, uint32_t flags,
			struct tw_setting *out)
{
	const uint32_t counters = TW_FUNCTION_CALL_COUNT | TW_FUNCTION_CALL_TIME | TW_FUNCTION_CALL_MEMORY;
	const uint32_t local = TW_FUNCTION_LOCAL | TW_FUNCTION_META | counters;

	if ((flags & ~(local | TW_FUNCTION_GLOBAL)) || ((flags & TW_FUNCTION_GLOBAL) && (flags & local)) ||
	    (unsigned)match > TW_MATCH_PAUSE)
		return TW_EBADARG;
	/* Counters do not use a specification, so one requires an event kind as well. */
	if (program && (program->code->target != TW_MATCH_CALL ||
			((flags & counters) && !(flags & (TW_FUNCTION_LOCAL | TW_FUNCTION_META)))))
		return TW_EBADARG;
	*out = (struct tw_setting){.match = match, .actions = actions_of(flags), .program = program};
	return 0;
}

static int trace_functions(struct tw_session *session, const struct tw_wanted *wanted, const struct tw_setting *setting)
{
	struct tw_permit *permit;
	int result;

	if (wanted->module)
		tw_native_find(wanted->module);
	result = begin(&permit);
	if (result)
		return result;
	/* While the permit is held, clearing of the session's breakpoints cannot begin. */
	result = tw_change_assign_slot(session);
	if (!result)
		result = apply_to_all(session, permit, wanted, setting);
	return end(permit, result);
}

TW_API int tw_trace_function(struct tw_session *session, const char *module, const char *function, int arity,
			     enum tw_match match, uint32_t flags)
{
	struct tw_wanted wanted;
	struct tw_setting setting;

	if (!session || read_setting(match, NULL, flags, &setting) || tw_wanted_read(module, function, arity, &wanted))
		return TW_EBADARG;
	wanted.is_global = setting.actions & TW_ACTION_GLOBAL;
	wanted.is_local = !wanted.is_global;
	return trace_functions(session, &wanted, &setting);
}

TW_API int tw_trace_function_match(struct tw_session *session, const char *module, const char *function, int arity,
				   const struct tw_match_program *program, uint32_t flags)
{
	struct tw_wanted wanted;
	struct tw_setting setting;

	if (!session || !program || read_setting(TW_MATCH_TRUE, program, flags, &setting) ||
	    tw_wanted_read(module, function, arity, &wanted))
		return TW_EBADARG;
	wanted.is_global = setting.actions & TW_ACTION_GLOBAL;
	wanted.is_local = !wanted.is_global;
	return trace_functions(session, &wanted, &setting);
}

/* ---- on_load ---- */

/*
 * As for existing functions: global and the others exclude each other, each kind is added and removed separately, and
 * only named kinds are removed.
 */
static void change_on_load(struct tw_session_on_load *on_load, const struct tw_setting *setting)
{
	bool is_global = setting->actions & TW_ACTION_GLOBAL;

	if (setting->match == TW_MATCH_TRUE) {
		if (is_global || (on_load->actions & TW_ACTION_GLOBAL))
			*on_load = (struct tw_session_on_load){0};
		on_load->actions |= setting->actions;
		if (setting->actions & TW_ACTION_CALL)
			on_load->program = setting->program;
		if (setting->actions & TW_ACTION_META)
			on_load->meta_program = setting->program;
		return;
	}
	if (!is_global != !(on_load->actions & TW_ACTION_GLOBAL))
		return;
	on_load->actions &= ~setting->actions;
	if (!(on_load->actions & TW_ACTION_CALL))
		on_load->program = NULL;
	if (!(on_load->actions & TW_ACTION_META))
		on_load->meta_program = NULL;
}

TW_API int tw_trace_on_load(struct tw_session *session, enum tw_match match, const struct tw_match_program *program,
			    uint32_t flags)
{
	struct tw_permit *permit;
	struct tw_setting setting;
	int result;

	if (!session || read_setting(match, program, flags, &setting) || (program && match != TW_MATCH_TRUE))
		return TW_EBADARG;
	result = begin(&permit);
	if (result)
		return result;
	result = tw_session_assign_slot(session);
	if (!result && (match == TW_MATCH_TRUE || match == TW_MATCH_FALSE)) {
		tw_change_touch_on_load(session);
		change_on_load(&session->on_load, &setting);
	}
	return end(permit, result);
}

int tw_session_trace_wanted(struct tw_session *session, tw_session_wants_fn wants, void *arg, uint32_t actions)
{
	const struct tw_wanted all = {.arity = TW_ARITY_ANY};
	struct tw_permit *permit;
	int result = begin(&permit);

	if (result)
		return result;
	session->wants_arg = arg;
	session->wanted_actions = actions;
	session->wants = wants;
	result = tw_define_wanted(session);
	return end(permit, result ? result : tw_for_each_place(session, permit, &all, tw_session_stage_pattern, NULL));
}
