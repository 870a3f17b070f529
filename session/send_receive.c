/* SPDX-License-Identifier: Apache-2.0 */
/*
 * send_receive.c - a session's patterns for send and receive, which select messages.
 *
 * A pattern is one pointer that runtime events read; an old program is freed when no runtime event can run it any more.
 */
#include "session/send_receive.h"
#include "session/session.h"
#include "progress/progress.h"
#include "tracewheel/match.h"

static void destroy(const struct tw_match_program *program)
{
	if (program != &tw_hit_no_message)
		tw_match_destroy((struct tw_match_program *)(uintptr_t)program);
}

/* Takes the program, even when it fails. */
static int set(struct tw_session *session, enum tw_want want, const struct tw_match_program *program)
{
	int result;

	tw_registry_lock();
	result = tw_session_assign_slot_locked(session);
	if (!result) {
		/* PAIR hit.pattern: release; acquire in tell().  The program is seen whole. */
		program = tw_exchange_acq_rel(&tw_hit_sessions[session->slot].patterns[want], program);
		result = 1;
	}
	tw_registry_unlock();
	if (result > 0)
		tw_progress_wait();
	destroy(program);
	return result;
}

void tw_session_forget_patterns(struct tw_session *session)
{
	for (unsigned want = TW_WANT_SEND; want <= TW_WANT_RECEIVE; want++) {
		/* PAIR hit.pattern: acquire and release, as above; the session has no flag left, and thread progress was waited for. */
		destroy(tw_exchange_acq_rel(&tw_hit_sessions[session->slot].patterns[want], NULL));
	}
}

int tw_session_pattern(struct tw_session *session, enum tw_want want, struct tw_arena *arena, struct tw_term *out)
{
	const struct tw_match_program *program = NULL;
	int error = 0;

	tw_registry_lock();
	if (session->slot != TW_SESSION_NO_SLOT) {
		/* PAIR hit.pattern: acquire; a thread that replaces it takes this lock first. */
		program = tw_load_acquire(&tw_hit_sessions[session->slot].patterns[want]);
	}
	if (!tw_session_is_alive(session))
		error = TW_EDEAD;
	else if (!program || program == &tw_hit_no_message)
		*out = tw_term_bool(!program);
	else if (tw_term_copy(arena, tw_match_spec(program), SIZE_MAX, out) < 0)
		error = TW_ENOMEM;
	tw_registry_unlock();
	return error;
}

/* ---- the API ---- */

static int may_change(const struct tw_session *session)
{
	if (!session)
		return TW_EBADARG;
	if (tw_progress_is_reading() || tw_hit_is_under_way())
		return TW_EDEADLK;
	return tw_session_is_alive(session) ? 0 : TW_EDEAD;
}

static int set_plain(struct tw_session *session, enum tw_want want, enum tw_match match)
{
	int error = may_change(session);

	if (error)
		return error;
	if (match != TW_MATCH_TRUE && match != TW_MATCH_FALSE)
		return TW_EBADARG;
	return set(session, want, match == TW_MATCH_TRUE ? NULL : &tw_hit_no_message);
}

static struct tw_match_options options_of(enum tw_want want)
{
	return (struct tw_match_options){.target = want == TW_WANT_SEND ? TW_MATCH_SEND : TW_MATCH_RECEIVE};
}

static int set_spec(struct tw_session *session, enum tw_want want, struct tw_term spec, struct tw_match_error *error)
{
	struct tw_match_options options = options_of(want);
	struct tw_match_program *program;
	int result = may_change(session);

	if (!result && tw_is_nil(spec))
		return set(session, want, NULL);
	if (!result)
		result = tw_match_compile(spec, &options, &program, error);
	return result ? result : set(session, want, program);
}

/* Parsed here only to check whether it is []. */
static int set_text(struct tw_session *session, enum tw_want want, const char *text, size_t bytes,
		    struct tw_match_error *error)
{
	struct tw_match_options options = options_of(want);
	struct tw_match_program *program;
	struct tw_arena arena;
	struct tw_term spec = {0};
	char buffer[64];
	int result = text ? may_change(session) : TW_EBADARG;

	if (result)
		return result;
	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	if (tw_term_parse(&arena, text, bytes, &spec, NULL) == 0 && tw_is_nil(spec))
		return set(session, want, NULL);
	result = tw_match_compile_text(text, bytes, &options, &program, error);
	return result ? result : set(session, want, program);
}

TW_API int tw_trace_send(struct tw_session *session, enum tw_match match)
{
	return set_plain(session, TW_WANT_SEND, match);
}

TW_API int tw_trace_recv(struct tw_session *session, enum tw_match match)
{
	return set_plain(session, TW_WANT_RECEIVE, match);
}

TW_API int tw_trace_send_text(struct tw_session *session, const char *text, size_t bytes, struct tw_match_error *error)
{
	return set_text(session, TW_WANT_SEND, text, bytes, error);
}

TW_API int tw_trace_recv_text(struct tw_session *session, const char *text, size_t bytes, struct tw_match_error *error)
{
	return set_text(session, TW_WANT_RECEIVE, text, bytes, error);
}

TW_API int tw_trace_send_spec(struct tw_session *session, struct tw_term spec, struct tw_match_error *error)
{
	return set_spec(session, TW_WANT_SEND, spec, error);
}

TW_API int tw_trace_recv_spec(struct tw_session *session, struct tw_term spec, struct tw_match_error *error)
{
	return set_spec(session, TW_WANT_RECEIVE, spec, error);
}
