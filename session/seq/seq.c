/* SPDX-License-Identifier: Apache-2.0 */
/* seq.c - sequential tracing: tokens and clocks of processes. */
#include "pipeline/thread/runtime_event.h"
#include "pipeline/thread/seq_label.h"
#include "pipeline/thread/thread.h"
#include "session/seq/seq.h"
#include "session/session.h"
#include "session/watched.h"

#include <string.h>

/* ---- the process ---- */

struct tw_tracee *tw_seq_self(void)
{
	return (struct tw_tracee *)tw_process_current();
}

struct tw_seq_state *tw_seq_state_of(struct tw_tracee *tracee)
{
	struct tw_seq_state *state = &tracee->seq;
	/* PAIR seq.epoch: acquire; release in tw_seq_reset_trace(). */
	uint32_t epoch = tw_load_acquire(&tw_seq_epoch);

	if (tw_unlikely(state->epoch != epoch)) {
		memset(state, 0, sizeof *state);
		state->epoch = epoch;
	}
	return state;
}

bool tw_seq_has_token(const struct tw_tracee *tracee)
{
	return tw_seq_is_current(&tracee->seq.token);
}

struct tw_seq_state *tw_seq_begin(struct tw_tracee *tracee)
{
	struct tw_seq_state *state = &tracee->seq;

	if (tw_seq_has_token(tracee))
		return state;
	/* First the epoch: a reset from here on empties the token. */
	uint32_t epoch = tw_seq_open();

	if (state->epoch != epoch)
		memset(state, 0, sizeof *state);
	state->epoch = epoch;
	state->token = (struct tw_seq_words){.version = TW_SEQ_VERSION,
					     .epoch = epoch,
					     .label = tw_small(0).word,
					     .previous = state->previous,
					     .from = tracee->pid_number,
					     .process = tw_seq_process_key};
	if (tracee->thread_id)
		tw_seq_thread_has_token();
	return state;
}

bool tw_seq_is_good(const struct tw_seq_words *token)
{
	if (!token->version && !token->flags && !token->reserved && !token->epoch)
		return false;
	if (token->process != tw_seq_process_key) {
		tw_seq_count(token->version == TW_SEQ_VERSION && token->process ? TW_SEQ_FOREIGN : TW_SEQ_DAMAGED);
		return false;
	}
	if (token->version == TW_SEQ_VERSION && !tw_seq_is_current(token))
		return false;
	if (token->version != TW_SEQ_VERSION || token->flags & ~TW_SEQ_FLAGS || !tw_small_fits(token->previous) ||
	    !tw_small_fits(token->current) || (token->node && !tw_atom_is_known(tw_word(token->node)))) {
		tw_seq_count(TW_SEQ_DAMAGED);
		return false;
	}
	if (!tw_seq_label_is_known(token->label)) {
		tw_seq_count(TW_SEQ_FORGOTTEN);
		return false;
	}
	return true;
}

/* ---- events ---- */

static bool is_reported(unsigned flags, unsigned flag)
{
	/* RELAXED seq.tracer: an early test; the decisive one is inside the read section. */
	return (flags & flag) && tw_load_relaxed(&tw_seq_tracer);
}

static void tell(struct tw_tracee *tracee, enum tw_event_kind kind, const struct tw_seq_words *token, struct tw_term to,
		 struct tw_term message)
{
	struct tw_runtime_event event = {.kind = (uint8_t)kind, .want = TW_WANT_SEQ, .term_count = 5, .seq = token};

	event.terms[0] = tw_term_is_none(message) ? tw_atom(TW_ATOM_CUT) : message;
	if (kind == TW_EVENT_SEQ_RECEIVE)
		event.to = tracee->pid_number;
	else
		event.terms[1] = tw_term_is_none(to) ? tw_atom(TW_ATOM_UNDEFINED) : to;
	tw_runtime_event(tracee, &event);
}

/* ---- the algorithm ---- */

/* Takes the next serial; false: there is none, and the token is dropped. */
static bool advance(struct tw_tracee *tracee, struct tw_seq_state *state)
{
	if (tw_unlikely(state->current >= TW_SMALL_MAX)) {
		state->token = (struct tw_seq_words){0};
		tw_seq_count(TW_SEQ_OVERFLOWED);
		return false;
	}
	state->current++;
	state->token.previous = state->previous;
	state->token.current = state->current;
	state->token.from = tracee->pid_number;
	state->token.from_serial = state->token.creation = 0;
	state->token.node = 0;
	return true;
}

static void follow(struct tw_seq_state *state, int64_t serial)
{
	if (state->current < serial)
		state->current = serial;
	state->previous = serial;
}

TW_API void tw_runtime_seq_send(struct tw_process *process, struct tw_term to, struct tw_term message,
				struct tw_seq_token *out)
{
	struct tw_tracee *tracee = tw_tracee_of(process);
	struct tw_seq_state *state;

	out->words[0] = 0;
	if (!tracee || !tw_seq_has_token(tracee))
		return;
	state = tw_seq_state_of(tracee);
	if (tw_unlikely(!tw_seq_label_is_known(state->token.label))) {
		tw_seq_count(TW_SEQ_FORGOTTEN);
		state->token = (struct tw_seq_words){0};
		return;
	}
	if (!advance(tracee, state))
		return;
	memcpy(out, &state->token, sizeof *out);
	if (is_reported(state->token.flags, TW_SEQ_SEND))
		tell(tracee, TW_EVENT_SEQ_SEND, &state->token, to, message);
}

TW_API void tw_runtime_seq_receive(struct tw_process *process, const struct tw_seq_token *token, struct tw_term message)
{
	struct tw_tracee *tracee = tw_tracee_of(process);
	const struct tw_seq_words *words = token ? (const struct tw_seq_words *)token->words : NULL;
	struct tw_seq_state *state;

	if (!tracee)
		return;
	if (!words || !token->words[0] || !tw_seq_is_good(words)) {
		tracee->seq.token.version = 0;
		return;
	}
	state = tw_seq_state_of(tracee);
	state->token = *words;
	follow(state, words->current);
	if (tracee->thread_id)
		tw_seq_thread_has_token();
	if (is_reported(words->flags, TW_SEQ_RECEIVE))
		tell(tracee, TW_EVENT_SEQ_RECEIVE, &state->token, (struct tw_term){0}, message);
}

TW_API bool tw_runtime_seq_wants(const struct tw_process *process, const struct tw_seq_token *token, unsigned flag)
{
	const struct tw_tracee *tracee = tw_tracee_of(process);
	const struct tw_seq_words *words = token ? (const struct tw_seq_words *)token->words : NULL;

	if (!tracee)
		return false;
	if (flag == TW_SEQ_SEND)
		words = &tracee->seq.token;
	return words && tw_seq_is_current(words) && is_reported(words->flags, flag);
}

static bool is_label(uint64_t word, struct tw_term label)
{
	char buffer[256];
	struct tw_arena arena;
	struct tw_term mine;
	bool is_equal;

	if (word == label.word)
		return true;
	if ((label.word & 15) == TW_TAG_SMALL || (label.word & 15) == TW_TAG_ATOM || (label.word & 15) == TW_TAG_NIL)
		return false;
	tw_arena_init_buffer(&arena, buffer, sizeof buffer, SIZE_MAX);
	mine = tw_seq_label_term(&arena, word);
	is_equal = !tw_term_is_none(mine) && tw_term_is_equal(mine, label);
	tw_arena_fini(&arena);
	return is_equal;
}

TW_API void tw_runtime_seq_print(struct tw_term label, struct tw_term info)
{
	struct tw_tracee *tracee = tw_seq_self();
	struct tw_seq_state *state;

	if (!tracee || !tw_seq_has_token(tracee))
		return;
	state = tw_seq_state_of(tracee);
	if ((!tw_term_is_none(label) && !is_label(state->token.label, label)) || !advance(tracee, state))
		return;
	if (is_reported(state->token.flags, TW_SEQ_PRINT))
		tell(tracee, TW_EVENT_SEQ_PRINT, &state->token, tw_term_nil(), info);
}

/* ---- spawn ---- */

/* {spawn_request,Parent,{M,F,Args},Options}: OTP's has more elements, which stand for what native processes lack. */
static struct tw_term request_of(struct tw_arena *arena, const struct tw_tracee *parent, struct tw_term entry,
				 bool is_linked)
{
	struct tw_term parts[4] = {tw_term_atom_z("spawn_request"), tw_term_pid(arena, parent->pid_number, 0),
				   tw_process_entry(arena, entry), tw_term_nil()};

	if (is_linked)
		parts[3] = tw_term_cons(arena, tw_atom(TW_ATOM_LINK), parts[3]);
	return tw_term_tuple(arena, parts, 4);
}

static struct tw_term reply_of(struct tw_arena *arena, const struct tw_tracee *child)
{
	struct tw_term parts[3] = {tw_term_atom_z("spawn_reply"), tw_atom(TW_ATOM_OK),
				   tw_term_pid(arena, child->pid_number, 0)};

	return tw_term_tuple(arena, parts, 3);
}

void tw_seq_spawn(struct tw_tracee *parent, struct tw_tracee *child, struct tw_term entry, bool is_linked)
{
	struct tw_seq_state *from, *to;
	struct tw_seq_words token;
	struct tw_term request, reply;
	struct tw_arena arena;
	char buffer[512];

	if (!tw_seq_has_token(parent))
		return;
	from = tw_seq_state_of(parent);
	if (!advance(parent, from))
		return;
	to = tw_seq_state_of(child);
	token = to->token = from->token;
	follow(to, token.current);
	tw_arena_init_buffer(&arena, buffer, sizeof buffer, SIZE_MAX);
	request = request_of(&arena, parent, entry, is_linked);
	if (is_reported(token.flags, TW_SEQ_SEND))
		tell(parent, TW_EVENT_SEQ_SEND, &token, tw_term_pid(&arena, child->pid_number, 0), request);
	if (is_reported(token.flags, TW_SEQ_RECEIVE))
		tell(child, TW_EVENT_SEQ_RECEIVE, &token, (struct tw_term){0}, request);
	/* The reply changes the clocks of the parent, which goes on with its own token. */
	if (advance(child, to)) {
		token = to->token;
		follow(from, token.current);
		reply = reply_of(&arena, child);
		if (is_reported(token.flags, TW_SEQ_SEND))
			tell(child, TW_EVENT_SEQ_SEND, &token, tw_term_pid(&arena, parent->pid_number, 0), reply);
		if (is_reported(token.flags, TW_SEQ_RECEIVE))
			tell(parent, TW_EVENT_SEQ_RECEIVE, &token, (struct tw_term){0}, reply);
	}
	tw_arena_fini(&arena);
}

/* ---- the token of the calling process ---- */

TW_API void tw_seq_get_token(struct tw_seq_token *out)
{
	const struct tw_tracee *tracee = tw_seq_is_active() ? tw_seq_self() : NULL;

	memset(out, 0, sizeof *out);
	if (tracee && tw_seq_has_token(tracee))
		memcpy(out, &tracee->seq.token, sizeof *out);
}

TW_API int tw_seq_set_token(const struct tw_seq_token *token, struct tw_seq_token *old)
{
	struct tw_seq_token copy = {{0}};
	const struct tw_seq_words *words = tw_seq_words_of(&copy);
	struct tw_tracee *tracee;
	struct tw_seq_state *state;

	if (tw_hit_is_under_way())
		return TW_EDEADLK;
	if (!tw_seq_token_is_empty(token)) {
		copy = *token;
		/* One of before the last reset is empty. */
		if (!tw_seq_is_good(words) && !(words->version == TW_SEQ_VERSION &&
						words->process == tw_seq_process_key && !tw_seq_is_current(words)))
			return TW_EBADARG;
	}
	tracee = tw_seq_self();
	if (!tracee)
		return TW_ENOMEM;
	if (old)
		tw_seq_get_token(old);
	if (!words->version || !tw_seq_is_current(words)) {
		tracee->seq.token.version = 0;
		return 0;
	}
	state = tw_seq_begin(tracee);
	state->token.label = words->label;
	state->token.flags = words->flags;
	state->token.previous = state->previous = words->previous;
	state->token.current = state->current = words->current;
	tw_watched_follow();
	return 0;
}

TW_API int tw_seq_set_label(struct tw_term label)
{
	return tw_seq_set_component(NULL, tw_atom(TW_ATOM_LABEL), label, NULL);
}

TW_API int tw_seq_set_flags(unsigned flags, bool how)
{
	struct tw_tracee *tracee;
	struct tw_seq_state *state;

	if (flags & ~(unsigned)TW_SEQ_FLAGS)
		return TW_EBADARG;
	if (tw_hit_is_under_way())
		return TW_EDEADLK;
	tracee = tw_seq_self();
	if (!tracee)
		return TW_ENOMEM;
	state = tw_seq_begin(tracee);
	state->token.flags = (uint8_t)(how ? state->token.flags | flags : state->token.flags & ~flags);
	tw_watched_follow();
	return 0;
}
