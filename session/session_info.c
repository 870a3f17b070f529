/* SPDX-License-Identifier: Apache-2.0 */
/* session_info.c - finds the sessions that affect a process, a port, a function or future ones. */
#include "session/change.h"
#include "session/places.h"
#include "session/session.h"
#include "session/info.h"
#include "session/tracee.h"
#include "base/limits.h"
#include "term/term.h"
#include "tracewheel/info.h"
#include "tracewheel/port.h"

#include <stdlib.h>

struct search {
	struct tw_session **sessions; /* with a handle of each */
	size_t count;
};

static int get_all(struct search *search)
{
	for (size_t capacity = 64;; capacity = search->count + 16) {
		search->sessions = malloc(capacity * sizeof(struct tw_session *));
		if (!search->sessions)
			return TW_ENOMEM;
		search->count = tw_sessions_get_alive(search->sessions, capacity);
		if (search->count <= capacity)
			return 0;
		/* More sessions exist than fit the array. */
		for (size_t i = 0; i < capacity; i++)
			tw_session_put(search->sessions[i]);
		free(search->sessions);
	}
}

/* Keeps the sessions for which the function returns true. */
typedef bool (*affects_fn)(struct tw_session *session, const void *arg);

static void keep(struct search *search, affects_fn affects, const void *arg)
{
	size_t kept = 0;

	for (size_t i = 0; i < search->count; i++) {
		struct tw_session *session = search->sessions[i];

		if (affects(session, arg))
			search->sessions[kept++] = session;
		else
			tw_session_put(session);
	}
	search->count = kept;
}

static bool has_flags(struct tw_session *session, const void *pid)
{
	uint32_t flags = 0;

	return tw_trace_process_flags(session, *(const tw_pid *)pid, &flags) == 0 && flags != 0;
}

static bool has_port_flags(struct tw_session *session, const void *port)
{
	uint32_t flags = 0;

	return tw_trace_port_flags(session, *(const tw_port *)port, &flags) == 0 && flags != 0;
}

/* ---- under the permit ---- */

struct function {
	struct tw_permit *permit;
	struct tw_wanted wanted;
};

static int add_actions(struct tw_session *session, struct tw_permit *permit, struct tw_place *place, const void *arg)
{
	if (session)
		**(uint32_t *const *)arg |= tw_session_actions(session, permit, place);
	return 0;
}

static bool has_set(struct tw_session *session, const void *arg)
{
	const struct function *function = arg;
	uint32_t actions = 0, *to = &actions;

	tw_for_each_place(session, function->permit, &function->wanted, add_actions, &to);
	return actions != 0;
}

static bool has_on_load(struct tw_session *session, const void *arg)
{
	return session->on_load.actions || session->wants;
}

/* ---- the answer ---- */

static int give_sessions(const struct search *search, struct tw_arena *arena, struct tw_term *out)
{
	struct tw_term list = tw_term_nil();

	for (size_t i = search->count; i > 0; i--) {
		const struct tw_session *session = search->sessions[i - 1];
		struct tw_term weak[2] = {tw_term_atom_z(session->name), tw_term_unsigned(arena, session->id)};

		list = tw_term_cons(arena, tw_term_tuple(arena, weak, 2), list);
	}
	if (tw_term_is_none(list))
		return TW_ENOMEM;
	*out = list;
	return 0;
}

/* Returns 1 if @what exists, after dropping the sessions that do not affect it; 0 if it does not exist; or an error. */
static int find_affecting(struct search *search, struct tw_term what)
{
	struct function function;
	tw_pid pid = TW_PID_NEW;
	tw_port port = TW_PORT_NEW;
	bool is_on_load = tw_info_is(what, "on_load");
	int result;

	if (tw_info_is(what, "all") || tw_info_is(what, "send") || tw_info_is(what, "receive"))
		return 1;
	if (tw_info_is(what, "new") || tw_info_is(what, "new_processes") || tw_info_read_pid(what, &pid)) {
		if (pid != TW_PID_NEW && !tw_tracee_is_there(pid))
			return 0;
		keep(search, has_flags, &pid);
		return 1;
	}
	if (tw_info_is(what, "new_ports") || tw_info_read_port(what, &port)) {
		keep(search, has_port_flags, &port);
		return port != 0;
	}
	if (!is_on_load && tw_info_read_function(what, &function.wanted))
		return TW_EBADARG;
	result = tw_change_begin(&function.permit);
	if (result)
		return result;
	result = is_on_load ? 1 : tw_for_each_place(NULL, function.permit, &function.wanted, add_actions, NULL) > 0;
	if (!result && function.wanted.arity == TW_ARITY_UNKNOWN)
		result = TW_EBADARG;
	keep(search, is_on_load ? has_on_load : has_set, &function);
	tw_change_end_read(function.permit);
	return result;
}

TW_API int tw_session_info(struct tw_term what, struct tw_arena *arena, struct tw_term *out)
{
	struct search search;
	int result;

	if (!arena || !out)
		return TW_EBADARG;
	if (tw_hit_is_under_way())
		return TW_EDEADLK;
	tw_sessions_clear_dropped();
	result = get_all(&search);
	if (result)
		return result;
	result = find_affecting(&search, what);
	if (result > 0)
		result = give_sessions(&search, arena, out);
	else if (result == 0)
		*out = tw_atom(TW_ATOM_UNDEFINED);
	for (size_t i = 0; i < search.count; i++)
		tw_session_put(search.sessions[i]);
	free(search.sessions);
	return result;
}
