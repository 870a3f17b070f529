/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_function.c - what a session wants of functions: matched, staged, committed, remembered.
 *
 * A change is atomic: every function that matches is staged, and one commit shows them all.  What can
 * fail (memory, definitions) fails while staging; then everything staged is forgotten.
 */
#include "session/session.h"
#include "match/match.h"
#include "tracewheel/function.h"

#include <stdlib.h>
#include <string.h>

/* ---- what a change does at once, and undoes when it is forgotten ---- */

static void touch(struct tw_session *session, struct tw_session_place *set)
{
	if (set->is_touched)
		return;
	set->is_touched = true;
	set->was_paused = set->is_paused;
	set->taken = 0;
	set->next_touched = session->touched;
	session->touched = set->place->place_id + 1;
}

static void settle_session(struct tw_session *session, bool is_forgotten)
{
	while (session->touched) {
		struct tw_session_place *set = &session->set_places[session->touched - 1];

		if (is_forgotten)
			set->is_paused = set->was_paused;
		if (is_forgotten && set->taken) {
			/* RELAXED hit.count: what was taken, beside what was counted since. */
			tw_fetch_add_relaxed(set->counter, set->taken);
		}
		set->is_touched = false;
		session->touched = set->next_touched;
	}
}

/* Under the permit, so no session that was changed can have gone. */
static void settle(bool is_forgotten)
{
	tw_registry_lock();
	for (struct tw_session *session = tw_sessions(); session; session = session->next)
		settle_session(session, is_forgotten);
	tw_registry_unlock();
}

/* ---- the permit, alone or in a transaction ---- */

static __thread struct tw_permit *transaction;

void tw_changes_after_fork_in_child(void)
{
	transaction = NULL;
	settle(true);
}

TW_API int tw_trace_begin(void)
{
	struct tw_permit *permit;
	int error = tw_permit_seize(&permit);

	if (!error)
		transaction = permit;
	return error;
}

TW_API int tw_trace_commit(void)
{
	struct tw_permit *permit = transaction;
	unsigned changed;

	if (!permit)
		return TW_EBADARG;
	transaction = NULL;
	changed = tw_bp_commit(permit);
	settle(false);
	tw_permit_drop(permit);
	tw_sessions_clear_dropped();
	return (int)changed;
}

TW_API int tw_trace_abort(void)
{
	struct tw_permit *permit = transaction;

	if (!permit)
		return TW_EBADARG;
	transaction = NULL;
	tw_bp_abort(permit);
	settle(true);
	tw_permit_drop(permit);
	return 0;
}

int tw_change_begin(struct tw_permit **permit)
{
	if (transaction) {
		*permit = transaction;
		return 0;
	}
	tw_sessions_clear_dropped();
	return tw_permit_seize(permit);
}

int tw_change_end(struct tw_permit *permit, int result)
{
	if (permit == transaction)
		return result;
	if (result < 0)
		tw_bp_abort(permit);
	else
		tw_bp_commit(permit);
	settle(result < 0);
	tw_permit_drop(permit);
	return result;
}

/* ---- what a session has set ---- */

/* The entry of a place that was set before; NULL: never. */
static struct tw_session_place *find_set(struct tw_session *session, const struct tw_place *place)
{
	if (place->place_id >= session->set_room || !session->set_places[place->place_id].place)
		return NULL;
	return &session->set_places[place->place_id];
}

static struct tw_session_place *remember(struct tw_session *session, struct tw_place *place)
{
	uint32_t id = place->place_id, room = session->set_room ? session->set_room : 256;

	if (id >= session->set_room) {
		struct tw_session_place *more;

		while (room <= id)
			room *= 2;
		more = realloc(session->set_places, room * sizeof *more);
		if (!more)
			return NULL;
		memset(more + session->set_room, 0, (room - session->set_room) * sizeof *more);
		session->set_places = more;
		session->set_room = room;
	}
	session->set_places[id].place = place;
	return &session->set_places[id];
}

int tw_session_stage(struct tw_session *session, struct tw_permit *permit, struct tw_place *place,
		     const struct tw_bp_part *part)
{
	struct tw_session_place *set;
	struct tw_bp_part staged = *part;
	int error = tw_define_place(session, permit, place);

	if (error)
		return error;
	set = remember(session, place);
	if (!set)
		return TW_ENOMEM;
	staged.session = (uint8_t)session->slot;
	if (staged.actions & TW_ACTION_COUNT) {
		if (!set->counter)
			set->counter = calloc(1, sizeof *set->counter);
		if (!set->counter)
			return TW_ENOMEM;
		staged.counter = set->counter;
	}
	return tw_bp_stage_set(permit, place, &staged);
}

void tw_session_stage_clear_all(struct tw_session *session, struct tw_permit *permit)
{
	for (uint32_t id = 0; id < session->set_room; id++) {
		if (session->set_places[id].place)
			tw_bp_stage_clear(permit, session->set_places[id].place, session->slot);
	}
}

/* ---- matching ---- */

struct wanted {
	const char *module, *function; /* NULL: any */
	int arity;
};

static bool is_any(const char *name)
{
	return name[0] == '_' && !name[1];
}

/* OTP's three wildcards: nothing but any may follow an any. */
static int read_wanted(const char *module, const char *function, int arity, struct wanted *out)
{
	if (!module || !function || arity < TW_ARITY_ANY || arity > TW_ARITY_MAX)
		return TW_EBADARG;
	out->module = is_any(module) ? NULL : module;
	out->function = is_any(function) ? NULL : function;
	out->arity = arity;
	if ((!out->module && out->function) || (!out->function && arity != TW_ARITY_ANY))
		return TW_EBADARG;
	return 0;
}

static bool is_wanted(const struct wanted *wanted, const struct tw_function *function)
{
	return (!wanted->function || strcmp(wanted->function, function->name) == 0) &&
	       (wanted->arity == TW_ARITY_ANY || (uint32_t)wanted->arity == function->arity);
}

typedef int (*place_fn)(struct tw_session *session, struct tw_permit *permit, struct tw_place *place,
			const void *arg);

static int for_each_place_of(struct tw_session *session, struct tw_permit *permit, struct tw_function *function,
			     place_fn fn, const void *arg)
{
	for (struct tw_place *place = function->places; place; place = place->next_of_function) {
		int error = fn(session, permit, place, arg);

		if (error)
			return error;
	}
	return 0;
}

/* The first of a module's functions to look at, and the one after it: a single one where all is given by name. */
static struct tw_function *first_function(struct tw_permit *permit, struct tw_module *module,
					  const struct wanted *wanted)
{
	if (wanted->function && wanted->arity != TW_ARITY_ANY)
		return tw_bp_function_find(permit, module, wanted->function, (uint32_t)wanted->arity);
	return module->functions;
}

static struct tw_function *next_function(const struct tw_function *function, const struct wanted *wanted)
{
	return wanted->function && wanted->arity != TW_ARITY_ANY ? NULL : function->next_of_module;
}

/* Calls fn for the declared places of every function that matches; returns the number of functions. */
static int for_each_place(struct tw_session *session, struct tw_permit *permit, const struct wanted *wanted,
			  place_fn fn, const void *arg)
{
	int count = 0;

	for (struct tw_module *module = tw_bp_modules(permit); module; module = module->next) {
		if (module->is_gone || !module->is_declared ||
		    (wanted->module && strcmp(wanted->module, module->name) != 0))
			continue;
		for (struct tw_function *f = first_function(permit, module, wanted); f; f = next_function(f, wanted)) {
			int error = is_wanted(wanted, f) ? for_each_place_of(session, permit, f, fn, arg) : 0;

			if (error)
				return error;
			count += is_wanted(wanted, f);
		}
	}
	return count;
}

/* ---- setting and clearing ---- */

static uint32_t actions_of(uint32_t flags)
{
	return (flags & TW_FUNCTION_LOCAL ? TW_ACTION_CALL : 0) |
	       (flags & TW_FUNCTION_CALL_COUNT ? TW_ACTION_COUNT : 0);
}

static int set_place(struct tw_session *session, struct tw_permit *permit, struct tw_place *place, const void *arg)
{
	uint32_t added = actions_of(*(const uint32_t *)arg);
	struct tw_bp_part part = { 0 };
	struct tw_session_place *set;
	int error;

	tw_bp_staged_part(permit, place, session->slot, &part);
	part.actions |= added;
	if (added & TW_ACTION_CALL) {
		/* `true` replaces a match specification. */
		part.program = NULL;
		part.quick.is_set = 0;
	}
	error = tw_session_stage(session, permit, place, &part);
	if (!error && (added & TW_ACTION_COUNT)) {
		set = find_set(session, place);
		touch(session, set);
		set->is_paused = false;
		/* RELAXED hit.count: counting starts anew, also when it was set before. */
		set->taken += tw_exchange_acq_rel(set->counter, 0);
	}
	return error;
}

static int clear_place(struct tw_session *session, struct tw_permit *permit, struct tw_place *place,
		       const void *arg)
{
	uint32_t removed = actions_of(*(const uint32_t *)arg);
	struct tw_bp_part part;

	if ((removed & TW_ACTION_COUNT) && find_set(session, place)) {
		touch(session, find_set(session, place));
		find_set(session, place)->is_paused = false;
	}
	if (!tw_bp_staged_part(permit, place, session->slot, &part))
		return 0;
	part.actions &= ~removed;
	if (!part.actions)
		return tw_bp_stage_clear(permit, place, session->slot);
	return tw_session_stage(session, permit, place, &part);
}

static int pause_place(struct tw_session *session, struct tw_permit *permit, struct tw_place *place,
		       const void *arg)
{
	struct tw_bp_part part;
	int error;

	if (!tw_bp_staged_part(permit, place, session->slot, &part) || !(part.actions & TW_ACTION_COUNT))
		return 0;
	part.actions &= ~(uint32_t)TW_ACTION_COUNT;
	error = part.actions ? tw_session_stage(session, permit, place, &part)
			     : tw_bp_stage_clear(permit, place, session->slot);
	if (!error) {
		touch(session, find_set(session, place));
		find_set(session, place)->is_paused = true;
	}
	return error;
}

static int restart_place(struct tw_session *session, struct tw_permit *permit, struct tw_place *place,
			 const void *arg)
{
	static const uint32_t count = TW_FUNCTION_CALL_COUNT;
	struct tw_session_place *set = find_set(session, place);
	struct tw_bp_part part;
	bool is_counted = tw_bp_staged_part(permit, place, session->slot, &part) && (part.actions & TW_ACTION_COUNT);

	if (!is_counted && !(set && set->is_paused))
		return 0;
	return set_place(session, permit, place, &count);
}

/* ---- match specifications ---- */

struct with_program {
	const struct tw_match_program *program;
};

/* The program as one comparison, if it is that for the words that calls of this place have. */
static struct tw_bp_quick quick_of(const struct tw_match_program *program, const struct tw_place *place)
{
	const struct tw_match_quick *quick = &program->quick;
	unsigned words = place->arity <= TW_ARGS_MAX ? place->arity : TW_ARGS_MAX;
	struct tw_bp_quick none = { 0 };

	if (quick->op != TW_MATCH_QUICK_RANGE || !tw_match_quick_fits(quick, words) ||
	    program->accepted.verdict != TW_MATCH_YES || program->accepted.actions || quick->arg >= quick->arity)
		return none;
	return (struct tw_bp_quick){ 1, quick->is_prefix, quick->arg, quick->arity, quick->low, quick->span };
}

static int set_program(struct tw_session *session, struct tw_permit *permit, struct tw_place *place,
		       const void *arg)
{
	const struct with_program *with = arg;
	struct tw_bp_part part = { 0 };

	tw_bp_staged_part(permit, place, session->slot, &part);
	part.actions |= TW_ACTION_CALL;
	part.program = with->program;
	part.quick = quick_of(with->program, place);
	return tw_session_stage(session, permit, place, &part);
}

void tw_session_use_program(struct tw_bp_part *part, const struct tw_place *place,
			    const struct tw_match_program *program)
{
	part->program = program;
	part->quick = quick_of(program, place);
}

TW_API int tw_trace_function_match(struct tw_session *session, const char *module, const char *function, int arity,
				   const struct tw_match_program *program, uint32_t flags)
{
	const struct with_program with = { program };
	struct wanted wanted;
	struct tw_permit *permit;
	int result;

	if (!session || !program || flags != TW_FUNCTION_LOCAL || read_wanted(module, function, arity, &wanted) ||
	    program->code->target != TW_MATCH_CALL)
		return TW_EBADARG;
	result = tw_change_begin(&permit);
	if (result)
		return result;
	result = tw_session_is_alive(session) ? for_each_place(session, permit, &wanted, set_program, &with)
					      : TW_EDEAD;
	return tw_change_end(permit, result);
}

/* ---- on_load ---- */

int tw_session_stage_wanted(struct tw_session *session, struct tw_permit *permit, struct tw_place *place)
{
	struct tw_bp_part part = { .actions = TW_ACTION_CALL };

	if (session->wants_program)
		tw_session_use_program(&part, place, session->wants_program);
	return tw_session_stage(session, permit, place, &part);
}

static int stage_if_wanted(struct tw_session *session, struct tw_permit *permit, struct tw_place *place,
			   const void *arg)
{
	return session->wants(place->function, session->wants_arg) ? tw_session_stage_wanted(session, permit, place)
								   : 0;
}

int tw_session_trace_wanted(struct tw_session *session, tw_session_wants_fn wants, void *arg,
			    const struct tw_match_program *program)
{
	const struct wanted all = { .arity = TW_ARITY_ANY };
	struct tw_permit *permit;
	int result = tw_change_begin(&permit);

	if (result)
		return result;
	session->wants_arg = arg;
	session->wants_program = program;
	session->wants = wants;
	return tw_change_end(permit, for_each_place(session, permit, &all, stage_if_wanted, NULL));
}

static int check_flags(enum tw_match match, uint32_t flags)
{
	const uint32_t known = TW_FUNCTION_LOCAL | TW_FUNCTION_CALL_COUNT;

	return !flags || (flags & ~known) || (unsigned)match > TW_MATCH_PAUSE ? TW_EBADARG : 0;
}

TW_API int tw_trace_function(struct tw_session *session, const char *module, const char *function, int arity,
			     enum tw_match match, uint32_t flags)
{
	static const place_fn change[] = { clear_place, set_place, restart_place, pause_place };
	struct wanted wanted;
	struct tw_permit *permit;
	int result;

	if (!session || check_flags(match, flags) || read_wanted(module, function, arity, &wanted))
		return TW_EBADARG;
	result = tw_change_begin(&permit);
	if (result)
		return result;
	/* Under the permit a session cannot begin to be cleared of its breakpoints. */
	result = tw_session_is_alive(session) ? for_each_place(session, permit, &wanted, change[match], &flags)
					      : TW_EDEAD;
	return tw_change_end(permit, result);
}

/* ---- counters ---- */

struct sum {
	uint64_t count;
	bool is_counted;
};

static int add_count(struct tw_session *session, struct tw_permit *permit, struct tw_place *place, const void *arg)
{
	struct sum *sum = *(struct sum *const *)arg;
	struct tw_session_place *set = find_set(session, place);
	struct tw_bp_part part;
	bool is_counted = tw_bp_staged_part(permit, place, session->slot, &part) && (part.actions & TW_ACTION_COUNT);

	if (!set || !set->counter || !(is_counted || set->is_paused))
		return 0;
	/* RELAXED hit.count: calls that are under way are in or not. */
	sum->count += tw_load_relaxed(set->counter);
	sum->is_counted = true;
	return 0;
}

TW_API int tw_trace_call_count(struct tw_session *session, const char *module, const char *function, int arity,
			       uint64_t *count)
{
	struct sum sum = { 0 }, *to = &sum;
	struct wanted wanted;
	struct tw_permit *permit;
	int result;

	if (!session || !count || read_wanted(module, function, arity, &wanted) || !wanted.function ||
	    arity == TW_ARITY_ANY)
		return TW_EBADARG;
	result = tw_change_begin(&permit);
	if (result)
		return result;
	result = tw_session_is_alive(session) ? for_each_place(session, permit, &wanted, add_count, &to) : TW_EDEAD;
	if (permit != transaction)
		tw_permit_drop(permit);
	if (result < 0)
		return result;
	if (result == 0)
		return TW_EBADARG;
	if (sum.is_counted)
		*count = sum.count;
	return sum.is_counted;
}
