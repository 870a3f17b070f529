/* SPDX-License-Identifier: Apache-2.0 */
/*
 * info.c - the settings of a session, in the form of OTP's trace:info/3 and trace:session_info/1.
 *
 * Reads under the permit see the active settings, or those that the caller's own transaction has staged.
 */
#include "session/change.h"
#include "session/info.h"
#include "session/places.h"
#include "session/port_table.h"
#include "session/send_receive.h"
#include "session/tracee.h"
#include "session/tracer_module.h"
#include "session/monitor.h"
#include "base/limits.h"
#include "match/match.h"
#include "term/term.h"
#include "tracewheel/info.h"
#include "tracewheel/port.h"

#include <string.h>

static struct tw_term pair(struct tw_arena *arena, struct tw_term item, struct tw_term value)
{
	return tw_term_tuple(arena, (struct tw_term[]){item, value}, 2);
}

static int give(struct tw_term term, struct tw_term *out)
{
	if (tw_term_is_none(term))
		return TW_ENOMEM;
	*out = term;
	return 0;
}

static struct tw_term copied(struct tw_arena *arena, struct tw_term term)
{
	struct tw_term copy = {0};

	return tw_term_copy(arena, term, SIZE_MAX, &copy) == 0 ? copy : (struct tw_term){0};
}

/* ---- processes and ports ---- */

/* Lists the flags in OTP's order. */
static struct tw_term flag_list(struct tw_arena *arena, uint32_t flags)
{
	static const uint32_t order[] = {
		TW_FLAG_RUNNING_PROCS,
		TW_FLAG_RUNNING_PORTS,
		TW_FLAG_PORTS,
		TW_FLAG_SCHEDULER_ID,
		TW_FLAG_SILENT,
		TW_FLAG_RETURN_TO,
		TW_FLAG_ARITY,
		TW_FLAG_GARBAGE_COLLECTION,
		TW_FLAG_EXITING,
		TW_FLAG_RUNNING,
		TW_FLAG_SET_ON_FIRST_LINK,
		TW_FLAG_SET_ON_LINK,
		TW_FLAG_SET_ON_FIRST_SPAWN,
		TW_FLAG_PROCS,
		TW_FLAG_CALL,
		TW_FLAG_SET_ON_SPAWN,
		TW_FLAG_RECEIVE,
		TW_FLAG_SEND,
		TW_FLAG_MONOTONIC_TIMESTAMP,
		TW_FLAG_STRICT_MONOTONIC_TIMESTAMP,
		TW_FLAG_TIMESTAMP,
	};
	struct tw_term atoms[TW_COUNT_OF(order)];
	size_t count = 0;

	for (size_t i = 0; i < TW_COUNT_OF(order); i++)
		if (flags & order[i])
			atoms[count++] = tw_term_atom_z(tw_process_flag_name(order[i]));
	return tw_term_list(arena, atoms, count, tw_term_nil());
}

static bool is_tracer_gone(const struct tw_session *session)
{
	/* RELAXED session.tracer_is_gone: a late value delays the answer by one call. */
	return tw_load_relaxed(&session->is_tracer_gone);
}

/* The destination of the session's events: {Module,State}; {capture,Path}, in the same form; a pid; [] is none. */
static struct tw_term last_tracer_of(const struct tw_session *session, struct tw_arena *arena)
{
	const char *path = session->tracer_path ? session->tracer_path : "";

	if (session->module)
		return pair(arena, tw_term_atom_z(session->module->name), copied(arena, session->module->hit.state));
	if (!session->rs)
		return tw_term_nil();
	/* A queue is shown as a pid after the first receive. */
	if (session->queue) {
		uint32_t pid;

		tw_registry_lock();
		pid = session->last_tracer_pid;
		tw_registry_unlock();
		if (pid)
			return tw_term_pid(arena, pid, 0);
		return is_tracer_gone(session) ? tw_term_nil() : tw_term_atom_z("queue");
	}
	if (session->writer && !session->tracer_path)
		return tw_term_atom_z("stream");
	return pair(arena, tw_term_atom_z("capture"), tw_term_binary(arena, path, strlen(path)));
}

/* The same while the tracer exists, else []. */
static struct tw_term tracer_of(const struct tw_session *session, struct tw_arena *arena)
{
	return is_tracer_gone(session) ? tw_term_nil() : last_tracer_of(session, arena);
}

/* @error, @flags: what tw_trace_process_flags() or tw_trace_port_flags() returned. */
static int info_flags(struct tw_session *session, int error, uint32_t flags, struct tw_term item,
		      struct tw_arena *arena, struct tw_term *out)
{
	bool is_flags = tw_info_is(item, "flags");

	if (!is_flags && !tw_info_is(item, "tracer"))
		return TW_EBADARG;
	if (error == TW_EBADARG)
		return give(tw_atom(TW_ATOM_UNDEFINED), out);
	if (error)
		return error;
	if (is_flags)
		return give(pair(arena, item, flag_list(arena, flags)), out);
	return give(pair(arena, item, flags ? tracer_of(session, arena) : tw_term_nil()), out);
}

static int info_process(struct tw_session *session, tw_pid pid, struct tw_term item, struct tw_arena *arena,
			struct tw_term *out)
{
	uint32_t flags = 0;
	int error = tw_trace_process_flags(session, pid, &flags);

	return info_flags(session, error, flags, item, arena, out);
}

static int info_port(struct tw_session *session, tw_port port, struct tw_term item, struct tw_arena *arena,
		     struct tw_term *out)
{
	uint32_t flags = 0;
	int error = tw_trace_port_flags(session, port, &flags);

	return info_flags(session, error, flags, item, arena, out);
}

/* ---- functions ---- */

/* The settings of one function, combined over its places. */
struct state {
	uint32_t actions; /* TW_ACTION_*, paused counters included */
	uint64_t count;
	const struct tw_match_program *program, *meta_program;
	struct tw_term times, memories; /* lists so far; none: no memory for them */
	struct tw_arena *arena;
	bool is_without_tracer; /* a meta event has found the tracer gone */
};

/* Adds the row of one process to call_time or call_memory. */
static void add_time(void *arg, tw_pid pid, uint64_t count, uint64_t ns)
{
	struct state *state = arg;
	struct tw_arena *arena = state->arena;
	uint64_t us = ns / 1000;
	struct tw_term row[4] = {tw_term_pid(arena, (uint32_t)pid, 0), tw_term_unsigned(arena, count),
				 tw_term_unsigned(arena, us / 1000000), tw_term_unsigned(arena, us % 1000000)};

	state->times = tw_term_cons(arena, tw_term_tuple(arena, row, 4), state->times);
}

static void add_memory(void *arg, tw_pid pid, uint64_t count, uint64_t words)
{
	struct state *state = arg;
	struct tw_arena *arena = state->arena;
	struct tw_term row[3] = {tw_term_pid(arena, (uint32_t)pid, 0), tw_term_unsigned(arena, count),
				 tw_term_unsigned(arena, words)};

	state->memories = tw_term_cons(arena, tw_term_tuple(arena, row, 3), state->memories);
}

static int add_count(struct tw_session *session, struct tw_permit *permit, struct tw_place *place, const void *arg)
{
	struct state *state = *(struct state *const *)arg;
	uint32_t actions = tw_session_actions(session, permit, place);

	state->actions |= actions;
	if (actions & TW_ACTION_COUNT)
		state->count += tw_counter_value(tw_session_find(session, place)->counter);
	return 0;
}

static int add_place(struct tw_session *session, struct tw_permit *permit, struct tw_place *place, const void *arg)
{
	struct state *state = *(struct state *const *)arg;
	struct tw_session_place *set = tw_session_find(session, place);
	struct tw_bp_part part = {0};

	if (!set)
		return 0;
	add_count(session, permit, place, arg);
	tw_bp_staged_part(permit, place, session->slot, &part);
	if (part.program)
		state->program = part.program;
	if (part.meta_program)
		state->meta_program = part.meta_program;
	part.actions = tw_session_actions(session, permit, place);
	/* RELAXED hit.without_tracer: set by a hit before this or not. */
	if (part.actions & TW_ACTION_META && tw_load_relaxed(&place->without_tracer) >> session->slot & 1)
		state->is_without_tracer = true;
	if (part.actions & TW_ACTION_TIME)
		tw_counts_each(set->times.now, true, add_time, state);
	if (part.actions & TW_ACTION_MEMORY)
		tw_counts_each(set->memories.now, false, add_memory, state);
	return 0;
}

/* The values of a function's items, in the order of `all`. */
enum function_item {
	ITEM_TRACED,
	ITEM_MATCH_SPEC,
	ITEM_META,
	ITEM_META_MATCH_SPEC,
	ITEM_CALL_MEMORY,
	ITEM_CALL_TIME,
	ITEM_CALL_COUNT,
	ITEMS,
	ITEM_ALL = ITEMS
};

static const char *const item_names[] = {"traced",	"match_spec", "meta",	    "meta_match_spec",
					 "call_memory", "call_time",  "call_count", "all"};

static int read_item(struct tw_term item)
{
	for (int i = 0; i <= ITEM_ALL; i++)
		if (tw_info_is(item, item_names[i]))
			return i;
	return TW_EBADARG;
}

static struct tw_term spec_of(const struct tw_match_program *program, struct tw_arena *arena)
{
	return program ? copied(arena, tw_match_spec(program)) : tw_term_nil();
}

static struct tw_term value_of(const struct tw_session *session, const struct state *state, enum function_item item)
{
	const struct tw_term no = tw_atom(TW_ATOM_FALSE);
	struct tw_arena *arena = state->arena;

	switch (item) {
	case ITEM_TRACED:
		return state->actions & TW_ACTION_GLOBAL ? tw_atom(TW_ATOM_GLOBAL)
		       : state->actions & TW_ACTION_CALL ? tw_atom(TW_ATOM_LOCAL)
							 : no;
	case ITEM_MATCH_SPEC: return state->actions & TW_ACTION_CALL ? spec_of(state->program, arena) : no;
	case ITEM_META:
		if (!(state->actions & TW_ACTION_META))
			return no;
		return state->is_without_tracer ? tw_term_nil() : last_tracer_of(session, arena);
	case ITEM_META_MATCH_SPEC: return state->actions & TW_ACTION_META ? spec_of(state->meta_program, arena) : no;
	case ITEM_CALL_MEMORY: return state->actions & TW_ACTION_MEMORY ? state->memories : no;
	case ITEM_CALL_TIME: return state->actions & TW_ACTION_TIME ? state->times : no;
	default: return state->actions & TW_ACTION_COUNT ? tw_term_unsigned(arena, state->count) : no;
	}
}

static struct tw_term named_item(enum function_item item)
{
	return tw_term_atom_z(item_names[item]);
}

/* Makes {Item,Value}; `all` contains @count items, or is {all,false} if nothing is set. */
static struct tw_term answer(const struct tw_session *session, const struct state *state, enum function_item item,
			     const enum function_item *all, size_t count)
{
	struct tw_term pairs[ITEMS];

	if (!state->actions)
		return pair(state->arena, named_item(item), tw_atom(TW_ATOM_FALSE));
	if (item != ITEM_ALL)
		return pair(state->arena, named_item(item), value_of(session, state, item));
	for (size_t i = 0; i < count; i++)
		pairs[i] = pair(state->arena, named_item(all[i]), value_of(session, state, all[i]));
	return pair(state->arena, named_item(item), tw_term_list(state->arena, pairs, count, tw_term_nil()));
}

int tw_info_read_function(struct tw_term what, struct tw_wanted *out)
{
	size_t bytes;
	int64_t arity;

	if (tw_term_tuple_count(what) != 3)
		return TW_EBADARG;
	*out = (struct tw_wanted){.module = tw_term_atom_name(tw_term_element(what, 0), &bytes),
				  .function = tw_term_atom_name(tw_term_element(what, 1), &bytes)};
	if (!out->module || !out->function || !strcmp(out->module, "_") || !strcmp(out->function, "_"))
		return TW_EBADARG;
	if (tw_info_is(tw_term_element(what, 2), "_")) {
		out->arity = TW_ARITY_UNKNOWN;
		return 0;
	}
	if (tw_term_get_int64(tw_term_element(what, 2), &arity))
		return TW_EBADARG;
	out->arity = arity >= 0 && arity <= TW_ARITY_MAX ? (int)arity : -1;
	return 0;
}

static int info_function(struct tw_session *session, struct tw_term what, struct tw_term item, struct tw_arena *arena,
			 struct tw_term *out)
{
	static const enum function_item all[] = {ITEM_TRACED,	       ITEM_MATCH_SPEC,	 ITEM_META,
						 ITEM_META_MATCH_SPEC, ITEM_CALL_MEMORY, ITEM_CALL_TIME,
						 ITEM_CALL_COUNT};
	struct state state = {.times = tw_term_nil(), .memories = tw_term_nil(), .arena = arena}, *to = &state;
	int asked = read_item(item), result;
	struct tw_permit *permit;
	struct tw_wanted wanted;

	if (asked < 0 || tw_info_read_function(what, &wanted))
		return TW_EBADARG;
	tw_sessions_clear_dropped();
	result = tw_change_begin(&permit);
	if (result)
		return result;
	result = tw_session_is_alive(session) ? tw_for_each_place(session, permit, &wanted, add_place, &to) : TW_EDEAD;
	if (result == 0 && wanted.arity == TW_ARITY_UNKNOWN)
		result = TW_EBADARG;
	else if (result == 0)
		result = give(pair(arena, item, tw_atom(TW_ATOM_UNDEFINED)), out);
	else if (result > 0)
		result = give(answer(session, &state, (enum function_item)asked, all, ITEMS), out);
	tw_change_end_read(permit);
	return result;
}

static int info_on_load(struct tw_session *session, struct tw_term item, struct tw_arena *arena, struct tw_term *out)
{
	static const enum function_item all[] = {ITEM_TRACED, ITEM_MATCH_SPEC, ITEM_META, ITEM_META_MATCH_SPEC,
						 ITEM_CALL_COUNT};
	const struct tw_session_on_load *on_load = &session->on_load;
	struct tw_term yes = tw_atom(TW_ATOM_TRUE);
	int asked = read_item(item), result;
	struct tw_permit *permit;
	struct state state;

	if (asked < 0)
		return TW_EBADARG;
	tw_sessions_clear_dropped();
	result = tw_change_begin(&permit);
	if (result)
		return result;
	state = (struct state){on_load->actions, 0, on_load->program, on_load->meta_program, yes, yes, arena, false};
	if (!tw_session_is_alive(session))
		result = TW_EDEAD;
	else if (asked == ITEM_CALL_COUNT && (on_load->actions & TW_ACTION_COUNT))
		result = give(pair(arena, item, yes), out);
	else
		result = give(answer(session, &state, (enum function_item)asked, all, TW_COUNT_OF(all)), out);
	tw_change_end_read(permit);
	return result;
}

/* ---- the call ---- */

static int info_event(struct tw_session *session, bool is_send, struct tw_term item, struct tw_arena *arena,
		      struct tw_term *out)
{
	struct tw_term pattern;
	int error;

	if (!tw_info_is(item, "match_spec"))
		return TW_EBADARG;
	error = tw_session_pattern(session, is_send ? TW_WANT_SEND : TW_WANT_RECEIVE, arena, &pattern);
	return error ? error : give(pair(arena, item, pattern), out);
}

bool tw_info_read_pid(struct tw_term what, tw_pid *out)
{
	struct tw_identifier parts;

	if (tw_term_type(what) != TW_TYPE_PID || tw_term_get_identifier(what, &parts) || !tw_term_is_none(parts.node) ||
	    parts.channel)
		return false;
	/* A pid with a serial names no process. */
	*out = parts.words[1] ? 0 : parts.words[0];
	return true;
}

bool tw_info_read_port(struct tw_term what, uint64_t *out)
{
	struct tw_identifier parts;
	const struct tw_tracee *port = NULL;

	if (tw_term_type(what) != TW_TYPE_PORT || tw_term_get_identifier(what, &parts) ||
	    !tw_term_is_none(parts.node) || parts.channel)
		return false;
	tw_registry_lock();
	if (!parts.words[1])
		port = tw_tracee_find_port(parts.words[0]);
	*out = port && tw_port_is_open(tw_port_id(port)) ? tw_port_id(port) : 0;
	tw_registry_unlock();
	return true;
}

TW_API int tw_trace_info(struct tw_session *session, struct tw_term what, struct tw_term item, struct tw_arena *arena,
			 struct tw_term *out)
{
	tw_port port;
	tw_pid pid;

	if (!session || !arena || !out)
		return TW_EBADARG;
	if (tw_hit_is_under_way())
		return TW_EDEADLK;
	if (!tw_session_is_alive(session))
		return TW_EDEAD;
	if (tw_info_read_port(what, &port))
		return info_port(session, port, item, arena, out);
	if (tw_info_is(what, "new_ports"))
		return info_port(session, TW_PORT_NEW, item, arena, out);
	if (tw_info_read_pid(what, &pid))
		return info_process(session, pid, item, arena, out);
	if (tw_info_is(what, "new") || tw_info_is(what, "new_processes"))
		return info_process(session, TW_PID_NEW, item, arena, out);
	if (tw_info_is(what, "on_load"))
		return info_on_load(session, item, arena, out);
	if (tw_info_is(what, "send") || tw_info_is(what, "receive"))
		return info_event(session, tw_info_is(what, "send"), item, arena, out);
	if (tw_info_is(what, "system"))
		return tw_info_is(item, "all") ? give(pair(arena, what, tw_monitors_of(session, arena)), out)
					       : TW_EBADARG;
	return info_function(session, what, item, arena, out);
}

/* ---- single values ---- */

TW_API int tw_trace_call_count(struct tw_session *session, const char *module, const char *function, int arity,
			       uint64_t *count)
{
	struct state state = {0}, *to = &state;
	struct tw_wanted wanted;
	struct tw_permit *permit;
	int result;

	if (!session || !count || tw_wanted_read(module, function, arity, &wanted) || !wanted.function)
		return TW_EBADARG;
	/* Exactly one function of a loaded object, whose arity is not known. */
	if (arity == TW_ARITY_ANY)
		wanted.arity = TW_ARITY_UNKNOWN;
	tw_sessions_clear_dropped();
	result = tw_change_begin(&permit);
	if (result)
		return result;
	result = tw_session_is_alive(session) ? tw_for_each_place(session, permit, &wanted, add_count, &to) : TW_EDEAD;
	tw_change_end_read(permit);
	if (result <= 0)
		return result ? result : TW_EBADARG;
	if (!(state.actions & TW_ACTION_COUNT))
		return 0;
	*count = state.count;
	return 1;
}
