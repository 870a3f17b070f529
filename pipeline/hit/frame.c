/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame.c - the ends of traced calls: records for the sessions that still want them.
 *
 * Compiled without vector registers, as hit.c; the same context, and the same steps:
 *
 *	state of the thread	not ready: joining, nested, ended		hit.c
 *	flags			no session wants calls or returns of this tracee any more: done
 *	read section
 *	epoch			sessions made since the call want nothing of it
 *	plain			a word or nothing: in place
 *	otherwise		terms, strict and CPU stamps, meta: one session after the other
 */
#include "pipeline/hit/count.h"
#include "pipeline/hit/module.h"
#include "pipeline/hit/record.h"
#include "pipeline/thread/thread.h"
#include "breakpoints/patch.h"
#include "progress/read_side.h"
#include "term/term.h"

/* How a frame ended. */
struct ending {
	const struct tw_frame_wants *wants;
	enum tw_event_kind kind;
	const struct tw_frame_value *value;
	/* Exceptions only. */
	enum tw_frame_class exception_class;
	const char *name;
};

/* Enters a hit. False: none is possible, and the events are counted as lost for the sessions that wanted them. */
static inline bool enter(struct tw_hit_tls *t, const void *frame, uint64_t sessions)
{
	while (tw_unlikely(!tw_hit_begin(t, frame))) {
		enum tw_thread_state state = tw_hit_make_ready(t, frame);

		if (state == TW_THREAD_IN_HIT) {
			uint64_t entered = tw_progress_enter_nested(&t->thread->reader);

			/* PROGRESS hit.wants: as in hit(). */
			tw_hit_count_nested(t, sessions & tw_load_relaxed(&t->tracee->wants_call));
			tw_progress_exit_nested(&t->thread->reader, entered);
		}
		if (state != TW_THREAD_NEW)
			return false;
	}
	tw_progress_enter(&t->thread->reader);
	return true;
}

static inline void leave(struct tw_hit_tls *t)
{
	tw_progress_exit(&t->thread->reader);
	tw_hit_end(t);
	tw_hit_go_back(t);
}

/* The gate is shut in a forked child that is not traced. */
static inline bool is_open(void)
{
	/* PAIR bp.active: acquire; as in hit_inside(). */
	return tw_load_acquire(&tw_bp_gate.active) != 0;
}

/* The sessions that still trace calls of this tracee. */
static inline uint64_t traced_now(const struct tw_hit_tls *t, uint64_t epoch)
{
	/* PAIR hit.epoch: acquire; a session that got another's bit comes with its own epoch. */
	return tw_load_acquire(&t->tracee->wants_call) & ~tw_hit_newer_than(epoch);
}

/* The sessions that still want return_to of this tracee, whether they still trace calls or not. */
static inline uint64_t followed_now(const struct tw_hit_tls *t, uint64_t epoch)
{
	/* PAIR hit.epoch: acquire; as above. */
	return tw_load_acquire(&t->tracee->wants_return_to) & ~tw_hit_newer_than(epoch);
}

/* Hits are told apart by their frames: the end of a call must use the frame of its beginning. */
#define FRAME(back) ((back) && (back)->frame ? (back)->frame : __builtin_frame_address(0))

const char *tw_frame_class_name(enum tw_frame_class exception_class)
{
	switch (exception_class) {
	case TW_FRAME_EXIT: return "exit";
	case TW_FRAME_THROW: return "throw";
	default: return "error";
	}
}

static inline unsigned count_of(const struct tw_frame_value *value)
{
	return value->kind == TW_FRAME_WORD ? 1 : value->kind == TW_FRAME_WORDS ? 2 : 0;
}

static struct tw_term atom_or_text(struct tw_arena *arena, const char *name)
{
	size_t bytes = __builtin_strlen(name);
	struct tw_term atom = tw_term_atom_existing(name, bytes);

	return tw_term_is_none(atom) ? tw_term_binary(arena, name, bytes < 255 ? bytes : 255) : atom;
}

/* The value of a return, or {Class,Value} of an exception. */
static struct tw_term value_in(struct tw_arena *arena, const struct ending *e)
{
	if (e->kind == TW_EVENT_EXCEPTION_FROM) {
		struct tw_term pair[2] = {atom_or_text(arena, tw_frame_class_name(e->exception_class)), e->value->term};

		if (tw_term_is_none(pair[1]))
			pair[1] = atom_or_text(arena, e->name);
		return tw_term_tuple(arena, pair, 2);
	}
	if (e->value->kind == TW_FRAME_TERM)
		return e->value->term;
	return count_of(e->value) ? tw_term_unsigned(arena, e->value->words[0]) : tw_atom(TW_ATOM_ANY);
}

struct told {
	struct tw_hit_tls *t;
	const struct ending *e;
	unsigned session;
	bool is_meta;
};

static void tell_there(void *arg)
{
	const struct told *told = arg;
	const struct ending *e = told->e;
	/* Two integers at most, or a pair and a name. */
	_Alignas(16) char capacity[512];
	struct tw_arena arena;
	struct tw_module_event event = {.kind = e->kind, .is_meta = told->is_meta, .place = e->wants->place};

	tw_arena_init_fixed(&arena, capacity, sizeof capacity);
	event.extra = value_in(&arena, e);
	tw_module_tell(told->t, told->session, &event, false);
}

static void tell(struct tw_hit_tls *t, const struct ending *e, unsigned session, bool is_meta)
{
	struct told told = {t, e, session, is_meta};
	bool keeps_vectors = e->wants->place->kind != TW_BP_DECLARED;

	if (!tw_module_wants(t, session, e->kind, keeps_vectors))
		return;
	if (keeps_vectors)
		tw_patch_call_keeping_vectors(tell_there, &told);
	else
		tell_there(&told);
}

/* Writes one record for each session in todo, or calls its tracer module. */
static void record_each(struct tw_hit_tls *t, const struct ending *e, uint64_t todo, bool is_meta)
{
	struct tw_record_terms terms = {t->thread, 0, 0, e->wants->place->kind != TW_BP_DECLARED};
	struct tw_recheck recheck = {NULL, is_meta ? &tw_hit_alive : &t->tracee->wants_call};
	struct tw_record_content content = {.kind = e->kind, .id = e->wants->place->place_id, .is_meta = is_meta};

	if (e->kind == TW_EVENT_EXCEPTION_FROM) {
		if (tw_term_is_none(e->value->term))
			tw_record_atoms(&terms, tw_frame_class_name(e->exception_class), e->name);
		else
			tw_record_pair(&terms, tw_frame_class_name(e->exception_class), e->value->term);
	} else if (e->value->kind == TW_FRAME_TERM) {
		tw_record_term(&terms, e->value->term);
	} else if (e->value->kind == TW_FRAME_MANY) {
		content.words = e->value->many.words;
		content.word_count = (uint32_t)e->value->many.count;
	} else {
		content.words = e->value->words;
		content.word_count = count_of(e->value);
	}
	content.encoded = t->thread->terms;
	content.encoded_bytes = terms.bytes;
	content.term_count = terms.count;
	content.flags = terms.count ? TW_EVENT_FLAG_TERMS : 0;
	while (todo) {
		unsigned session = (unsigned)__builtin_ctzll(todo);

		todo &= todo - 1;
		if (tw_module_of(session))
			tell(t, e, session, is_meta);
		else
			tw_record_put(t, &recheck, session, &content, &todo);
	}
}

/*
 * The general case. Meta sessions come before those in todo: their part of the call was done last, and so ends first.
 */
static __attribute__((noinline)) void end_special(struct tw_hit_tls *t, const struct ending *e, uint64_t todo)
{
	const struct tw_frame_wants *wants = e->wants;
	uint64_t meta = 0;

	tw_thread_follow_runs(t);
	if (wants->more & 1)
		meta = e->kind == TW_EVENT_EXCEPTION_FROM ? wants->meta_exceptions : wants->meta_returns;
	/* PAIR hit.epoch: acquire; as in traced_now(). */
	meta &= tw_load_acquire(&tw_hit_alive) & ~tw_hit_newer_than(wants->epoch);
	if (meta) {
		record_each(t, e, meta, true);
		/* The thread may have waited. */
		todo &= traced_now(t, wants->epoch);
	}
	if (todo)
		record_each(t, e, todo, false);
}

static inline void gather(struct tw_frame_back *back, uint64_t sessions, uint64_t epoch)
{
	if (!sessions)
		return;
	if (!back->sessions)
		back->epoch = epoch;
	back->sessions |= sessions;
}

static inline __attribute__((always_inline)) void end(struct tw_hit_tls *t, const struct ending *e,
						      struct tw_frame_back *back)
{
	const struct tw_frame_wants *wants = e->wants;
	bool is_exception = e->kind == TW_EVENT_EXCEPTION_FROM;
	uint64_t todo = traced_now(t, wants->epoch) & (is_exception ? wants->exceptions : wants->returns);

	if (tw_unlikely(wants->more & TW_COUNTS_RESUMES))
		tw_counts_resume(t, wants);
	if (back)
		gather(back, wants->return_tos & followed_now(t, wants->epoch), wants->epoch);
	/* RELAXED hit.special: a change is seen by this call or by the next. */
	if (tw_unlikely(is_exception || (wants->more & 1) || e->value->kind == TW_FRAME_TERM ||
			e->value->kind == TW_FRAME_MANY || (todo & tw_load_relaxed(&t->tracee->special))))
		end_special(t, e, todo);
	else if (todo)
		tw_record_plain(t, TW_EVENT_RETURN_FROM, wants->place, NULL, todo,
				(struct tw_words){.count = count_of(e->value),
						  .a = e->value->words[0],
						  .b = e->value->words[1]});
}

static inline bool is_wanted(const struct tw_hit_tls *t, const struct tw_frame_wants *wants)
{
	/* RELAXED hit.wants: an early test; the decisive one is inside the read section. */
	return tw_likely(t->state == TW_THREAD_READY)
		       ? tw_load_relaxed(&t->tracee->wants_call) | wants->more | wants->return_tos
		       : true;
}

void tw_frame_return(const struct tw_frame_wants *wants, const struct tw_frame_value *value, struct tw_frame_back *back)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	struct ending e = {wants, TW_EVENT_RETURN_FROM, value, TW_FRAME_ERROR, NULL};

	if (!is_wanted(t, wants) || !enter(t, FRAME(back), wants->returns))
		return;
	if (tw_likely(is_open()))
		end(t, &e, back);
	leave(t);
}

void tw_frame_exception(const struct tw_frame_wants *wants, enum tw_frame_class exception_class, struct tw_term value,
			const char *name, struct tw_frame_back *back)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	struct tw_frame_value term = {.kind = TW_FRAME_TERM, .term = value};
	struct ending e = {wants, TW_EVENT_EXCEPTION_FROM, &term, exception_class, name ? name : ""};

	if (!is_wanted(t, wants) || !enter(t, FRAME(back), wants->exceptions))
		return;
	if (tw_likely(is_open()))
		end(t, &e, back);
	leave(t);
}

void tw_frame_forget(const struct tw_frame_wants *wants)
{
	struct tw_hit_tls *t = &tw_hit_tls;

	if (!(wants->more & TW_COUNTS_RESUMES) || !enter(t, __builtin_frame_address(0), 0))
		return;
	tw_counts_resume(t, wants);
	leave(t);
}

void tw_frame_count_lost(uint64_t sessions, uint64_t count)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	uint64_t ticks = tw_clock_ticks();

	for (uint64_t todo = sessions; todo; todo &= todo - 1) {
		unsigned session = (unsigned)__builtin_ctzll(todo);
		struct tw_thread_ring *ring = &t->thread->rings[session];

		if (tw_hit_sessions[session].module)
			/* RELAXED hit.module_counts: numbers for people; nothing depends on them. */
			tw_fetch_add_relaxed(&tw_hit_sessions[session].module_counts[TW_MODULE_NESTED], count);
		if (ring->producer.shared)
			tw_rb_refuse_several(&ring->producer, TW_RB_LOST_FULL, count, ticks);
		else if (tw_hit_sessions[session].rs)
			for (uint64_t i = 0; i < count; i++)
				tw_rs_count_no_ring(tw_hit_sessions[session].rs, ticks);
	}
}

void tw_frame_lose(const struct tw_frame_wants *wants, const void *frame)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	uint64_t told = tw_hit_host.pinned_rs ? UINT64_C(1) << tw_hit_host.pinned_session : 0;

	if (!(wants->returns & ~told) || !enter(t, frame, 0))
		return;
	tw_frame_count_lost(wants->returns & traced_now(t, wants->epoch) & ~told, 1);
	leave(t);
}

bool tw_frame_begin(const void *frame, uint64_t sessions)
{
	if (!enter(&tw_hit_tls, frame, sessions))
		return false;
	if (tw_likely(is_open()))
		return true;
	leave(&tw_hit_tls);
	return false;
}

void tw_frame_end(void)
{
	leave(&tw_hit_tls);
}

/* ---- return_to ---- */

/* As message.c shows it; a code address without a name is an integer. */
static void tell_return_to(struct tw_hit_tls *t, unsigned session, const struct tw_frame_where *where)
{
	_Alignas(16) struct tw_term mfa[4] = {{tw_header(TW_BLOCK_TUPLE, 0, 3)}};
	struct tw_term term = tw_atom(TW_ATOM_UNDEFINED);
	struct tw_module_event event = {.kind = TW_EVENT_RETURN_TO, .terms = &term, .term_count = 1};

	if (where->module) {
		mfa[1] = tw_term_atom_existing(where->module, __builtin_strlen(where->module));
		mfa[2] = tw_term_atom_existing(where->function, __builtin_strlen(where->function));
		mfa[3] = where->arity > TW_ARITY_MAX ? tw_atom(TW_ATOM_ANY) : tw_small(where->arity);
		if (!tw_term_is_none(mfa[1]) && !tw_term_is_none(mfa[2]))
			term = tw_term_of_block(mfa);
	} else if (where->address) {
		event.term_count = 0;
		event.words = &where->address;
		event.word_count = 1;
	}
	if (tw_module_wants(t, session, TW_EVENT_RETURN_TO, true))
		tw_module_tell(t, session, &event, true);
}

static void record_return_to(struct tw_hit_tls *t, uint64_t todo, const struct tw_frame_where *where)
{
	struct tw_record_terms terms = {t->thread, 0, 0, false};
	struct tw_recheck recheck = {NULL, &t->tracee->wants_return_to};
	struct tw_record_content content = {.kind = TW_EVENT_RETURN_TO};

	tw_thread_follow_runs(t);
	if (where->address && !where->module) {
		content.words = &where->address;
		content.word_count = 1;
	} else {
		tw_record_mfa(&terms, where->module, where->function, where->arity);
		content.encoded = t->thread->terms;
		content.encoded_bytes = terms.bytes;
		content.term_count = terms.count;
		content.flags = TW_EVENT_FLAG_TERMS;
	}
	while (todo) {
		unsigned session = (unsigned)__builtin_ctzll(todo);

		todo &= todo - 1;
		if (tw_module_of(session))
			tell_return_to(t, session, where);
		else
			tw_record_put(t, &recheck, session, &content, &todo);
	}
}

void tw_frame_return_to(struct tw_frame_back *back, const struct tw_frame_where *where)
{
	struct tw_hit_tls *t = &tw_hit_tls;

	if (tw_likely(!back->sessions))
		return;
	if (enter(t, FRAME(back), back->sessions)) {
		uint64_t todo = back->sessions & followed_now(t, back->epoch);

		if (todo && is_open())
			record_return_to(t, todo, where);
		leave(t);
	}
	back->sessions = 0;
}
