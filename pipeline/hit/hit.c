/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hit.c - the data path, from a call that passes a place to a record in each session's ring.
 *
 *	state of the thread	not ready: joining, nested, ended		ready.c
 *	wants_call		no session wants calls of this tracee: done, two loads
 *	read section		from here on nothing that the hit reaches is freed
 *	active index		selects the generation
 *	sessions & wants	the sessions that want this call of this tracee
 *	special			match programs, counters, strict and CPU stamps: special.c
 *	clock			read once
 *	each session		thread ring, space, 16 bytes and the words, one release store
 *
 * A hit neither allocates, locks nor makes system calls, except to join (once a thread) and to wait for space where
 * `block` was asked for. It keeps errno. This file and all it calls, except what thread.c wraps, are compiled without
 * vector registers: trampolines save the integer registers only.
 */
#include "pipeline/hit/count.h"
#include "pipeline/hit/module.h"
#include "pipeline/hit/record.h"
#include "pipeline/hit/special.h"
#include "pipeline/thread/thread.h"
#include "base/export.h"
#include "base/filter.h"
#include "progress/read_side.h"
#include "tracewheel/function.h"

#define INLINE inline __attribute__((always_inline))

static bool hit_unready(struct tw_place *place, struct tw_words w, void *frame, struct tw_frame_wants *out);

/* Copies field by field. A structure that is passed as a whole would live in memory from the start. */
static INLINE struct tw_words words_copy(struct tw_words w)
{
	return (struct tw_words){.count = w.count,
				 .a = w.a,
				 .b = w.b,
				 .more = w.more,
				 .more_count = w.more_count,
				 .is_local = w.is_local,
				 .flags = w.flags,
				 .terms = w.terms,
				 .term_count = w.term_count,
				 .frame = w.frame};
}

/*
 * Returns the part of the one special session if that either has a match program, the common case of a guard, or
 * records arguments, and does nothing else; else NULL.
 */
static inline const struct tw_bp_part *only_part(const struct tw_bp_generation *generation, uint64_t special,
						 uint64_t tracee_special, bool has_program)
{
	const uint32_t plain = TW_ACTION_GLOBAL | TW_ACTION_RETURN | TW_ACTION_EXCEPTION;
	const struct tw_bp_part *part;

	if ((special & (special - 1)) || (special & (tracee_special | generation->counting)))
		return NULL;
	part = tw_bp_part_of(generation, special);
	if ((part->actions & ~plain) != TW_ACTION_CALL || !part->program == has_program ||
	    !part->slot_words != has_program || part->stack_depth)
		return NULL;
	return part;
}

/*
 * Returns the sessions for which this tracee's flags make a call special. If other threads make events of the
 * tracee, a new run is begun here if one is due; if that was all, the call is plain.
 */
static INLINE uint64_t special_by_tracee(struct tw_hit_tls *t)
{
	/* RELAXED hit.special: a change is seen by this call or by the next. */
	uint64_t special = tw_load_relaxed(&t->tracee->special);

	/* RELAXED hit.others_make: as above. */
	if (!(special & tw_load_relaxed(&t->tracee->others_make)))
		return special;
	tw_thread_follow_runs(t);
	/* RELAXED hit.special: as above. */
	return tw_load_relaxed(&t->tracee->special_alone);
}

/*
 * True if these sessions are special only for the stamp of their records, and have records. A silent tracee can still emit events
 * through its match program.
 */
static INLINE bool are_only_stamped(const struct tw_hit_tls *t, const struct tw_bp_generation *generation,
				    uint64_t special)
{
	/* RELAXED hit.silent: this tracee's own, or a change seen by this call or by the next. */
	/*
	 * RELAXED hit.modules: set before any tracee has the session's bit, and cleared after the last hit that knows
	 * it.
	 */
	uint64_t others = generation->special | tw_load_relaxed(&t->tracee->silent) | tw_load_relaxed(&tw_hit_modules);

	return !(special & others || generation->counting);
}

/*
 * One session whose tracer is a module, and nothing but the call: its end, a match program, a counter, vector registers
 * that a trampoline keeps.
 */
static INLINE bool is_plain_of_module(const struct tw_hit_tls *t, const struct tw_bp_generation *generation,
				      uint64_t todo, const struct tw_words *w, const struct tw_frame_wants *out)
{
	/* RELAXED hit.special: set while the session's callbacks are there. */
	uint64_t plain = todo & tw_load_relaxed(&t->tracee->module_calls) & ~generation->special;

	if (tw_likely(!plain) || (todo & (todo - 1)) || generation->counting || w->frame)
		return false;
	/* RELAXED hit.return_to: a change is seen by this call or by the next. */
	return !out ||
	       !(todo & (generation->returns | generation->exceptions | tw_load_relaxed(&t->tracee->wants_return_to)));
}

/*
 * Inlined for what tracers discard: in a function of its own, saving registers would take as long as asking. errno is
 * kept for the program; any answer but REMOVE to the status means TRACE.
 */
static INLINE void module_call(struct tw_hit_tls *t, const struct tw_place *place, unsigned session,
			       const struct tw_words *w)
{
	const struct tw_hit_module *module = tw_module_of(session);
	struct tw_module_pid pid;
	struct tw_term tracee = tw_module_pid_in(&pid, t->tracee->pid_number, false);
	int *error = t->thread->errno_at, saved_errno = *error;
	enum tw_tracer_answer answer = tw_module_status(module, tracee);

	if (tw_likely(answer != TW_TRACER_REMOVE))
		answer = module->pairs[TW_MODULE_CALL].enabled(TW_TRACER_TAG_CALL, module->state, tracee);
	if (answer == TW_TRACER_TRACE)
		tw_module_plain_call(t, place, session, tracee, w->more ? w->more : (uint64_t[2]){w->a, w->b},
				     w->count);
	else if (tw_unlikely(answer != TW_TRACER_DISCARD))
		tw_module_answered(t, session, answer, false);
	*error = saved_errno;
}

/*
 * Handles sessions that need more than a plain record and returns those that still need one. A fused range test
 * either passes the call as plain or drops it.
 */
static INLINE uint64_t hit_special(struct tw_hit_tls *t, struct tw_place *place,
				   const struct tw_bp_generation *generation, uint64_t todo, struct tw_words *wp,
				   struct tw_frame_wants *out)
{
	const struct tw_words w = *wp;
	uint64_t tracee_special = special_by_tracee(t);
	uint64_t special = (todo & (generation->special | tracee_special)) | generation->counting;
	uint64_t pair[2] = {w.a, w.b};
	const uint64_t *words = w.more ? w.more : pair;
	unsigned count = w.more ? w.more_count : w.count;
	uint64_t fused = special & generation->fused & ~tracee_special;

	if (fused) {
		int quick = tw_bp_quick_test(&generation->quick, words, count);

		if (quick >= 0)
			special &= ~fused;
		if (quick == 0)
			todo &= ~fused;
	}
	if (tw_unlikely(generation->only_accounts)) {
		if (generation->only_accounts->actions & TW_ACTION_COUNT)
			tw_counter_count(t, generation->only_accounts->counter);
		tw_counts_enter(t, generation->only_accounts, out);
		return 0;
	}
	if (special && !out && are_only_stamped(t, generation, special))
		return todo & ~special & tw_record_stamped(t, place, special, words, w.count);
	if (special) {
		struct tw_hit_call call = {words, count, w.count, NULL, 0, w.is_local, out};
		const struct tw_bp_part *part = todo == special && place->kind != TW_BP_DECLARED
							? only_part(generation, special, tracee_special, false)
							: NULL;

		if (part) {
			tw_hit_take_arguments(t, place, part, &wp->more, &wp->count, &wp->flags, true);
			return todo;
		}
		part = only_part(generation, special, tracee_special, true);
		if (!part)
			return todo & ~special & tw_hit_special(t, place, special, &call);
		switch (tw_hit_run(t, part, &call)) {
		case TW_HIT_UNWANTED: return todo & ~special;
		case TW_HIT_PLAIN: return todo;
		default: return todo & ~special & tw_hit_decided(t, place, part, &call);
		}
	}
	return todo;
}

/* Adds the plain sessions in todo to those that want the call's end; the special ones were added before. */
static INLINE void open_frame(struct tw_frame_wants *out, const struct tw_hit_tls *t, const struct tw_place *place,
			      const struct tw_bp_generation *generation, uint64_t todo)
{
	out->exceptions |= todo & generation->exceptions;
	out->returns |= todo & (generation->returns | generation->exceptions);
	/* RELAXED hit.return_to: a change is seen by this call or by the next. */
	if (tw_unlikely(tw_load_relaxed(&t->tracee->wants_return_to)) && place->kind != TW_BP_SLOT)
		out->return_tos |= todo & ~generation->global & tw_load_relaxed(&t->tracee->wants_return_to);
}

/*
 * Clears the frame and sets its place and epoch, once a session may want the end of this call; most calls do not get
 * here. Inside the read section no bit passes to another session, so the epoch may be read after the bits.
 */
static INLINE void begin_frame(struct tw_frame_wants *out, struct tw_place *place)
{
	out->place = place;
	out->returns = out->exceptions = out->return_tos = out->more = 0;
	out->meta_returns = out->meta_exceptions = 0;
	/* PAIR hit.epoch: acquire; the sessions whose bits were seen are not newer. */
	out->epoch = tw_load_acquire(&tw_hit_epoch);
}

/* Does all work inside the read section. */
static INLINE void hit_inside(struct tw_hit_tls *t, struct tw_place *place, struct tw_words w,
			      struct tw_frame_wants *out)
{
	/* PAIR bp.active: acquire; release in tw_bp_switch().  The generation is seen as it was staged. */
	uint32_t active = tw_load_acquire(&tw_bp_gate.active);

	if (tw_likely(active)) {
		const struct tw_bp_generation *generation = &place->gen[active - 1];
		/* PROGRESS hit.wants: a thread that clears a flag waits for this read section to end. */
		uint64_t todo = generation->sessions & tw_load_relaxed(&t->tracee->wants_call);
		uint64_t special;

		if (tw_unlikely(generation->only_counter)) {
			tw_counter_count(t, generation->only_counter);
			return;
		}
		if (w.is_local)
			todo &= ~generation->global;
		if (w.terms) {
			struct tw_hit_call call = {NULL, 0, 0, w.terms, w.term_count, w.is_local, out};

			if (out)
				begin_frame(out, place);

			tw_hit_special(t, place, todo | generation->counting, &call);
			return;
		}
		/* RELAXED hit.special: a change is seen by this call or by the next. */
		special = (todo & (generation->special | tw_load_relaxed(&t->tracee->special))) | generation->counting;
		if (out) {
			/* RELAXED hit.return_to: a change is seen by this call or by the next. */
			if (tw_likely(!(special | (todo & (generation->returns | generation->exceptions |
							   tw_load_relaxed(&t->tracee->wants_return_to))))))
				out = NULL;
			else
				begin_frame(out, place);
		}
		if (tw_unlikely(special)) {
			struct tw_words changed;

			if (is_plain_of_module(t, generation, todo, &w, out)) {
				module_call(t, place, (unsigned)__builtin_ctzll(todo), &w);
				return;
			}
			changed = words_copy(w);
			todo = hit_special(t, place, generation, todo, &changed, out);
			if (out)
				open_frame(out, t, place, generation, todo);
			if (todo)
				tw_record_plain(t, TW_EVENT_CALL, place, place, todo, changed);
			return;
		}
		if (out)
			open_frame(out, t, place, generation, todo);
		if (todo)
			tw_record_plain(t, TW_EVENT_CALL, place, place, todo, w);
	}
}

/* The thread is in a hit and in a read section; leaves both. */
static INLINE bool hit_entered(struct tw_hit_tls *t, struct tw_place *place, struct tw_words w,
			       struct tw_frame_wants *out)
{
	if (out)
		out->place = NULL;
	hit_inside(t, place, w, out);
	tw_progress_exit(&t->thread->reader);
	tw_hit_end(t);
	return out && out->place && (out->returns | out->return_tos | out->more);
}

static INLINE bool hit(struct tw_place *place, struct tw_words w, struct tw_frame_wants *out)
{
	struct tw_hit_tls *t = &tw_hit_tls;

	if (tw_unlikely(t->state != TW_THREAD_READY))
		return hit_unready(place, words_copy(w), w.frame ? w.frame : __builtin_frame_address(0), out);
	/* RELAXED hit.wants: an early test; the decisive one is inside the read section. */
	if (!(tw_load_relaxed(&t->tracee->wants_call) | tw_load_relaxed(&place->counting)))
		return false;
	if (tw_unlikely(!tw_hit_begin(t, w.frame ? w.frame : __builtin_frame_address(0))))
		return hit_unready(place, words_copy(w), w.frame ? w.frame : __builtin_frame_address(0), out);
	tw_progress_enter(&t->thread->reader);
	return hit_entered(t, place, w, out);
}

/* Counts a hit inside another hit of this thread (in a signal handler): as a call where calls are only counted, else as lost for each session that wants the call. */
static void count_nested(struct tw_hit_tls *t, struct tw_place *place, bool is_local)
{
	uint64_t entered = tw_progress_enter_nested(&t->thread->reader);
	uint32_t active;

	/* PAIR bp.active: acquire; as in hit_inside(). */
	active = tw_load_acquire(&tw_bp_gate.active);
	if (active) {
		const struct tw_bp_generation *generation = &place->gen[active - 1];
		/* PROGRESS hit.wants: as in hit(). */
		uint64_t todo = tw_hit_losing(generation) & tw_load_relaxed(&t->tracee->wants_call);

		todo = is_local ? todo & ~generation->global : todo;
		tw_hit_count_nested(t, todo);
		/* The end of the call will not be seen either. */
		if (!place->is_unwatched)
			tw_hit_count_nested(t, todo & (generation->returns | generation->exceptions));
	}
	tw_progress_exit_nested(&t->thread->reader, entered);
}

static void count_late(struct tw_place *place, enum tw_thread_state state, bool has_end)
{
	/* PAIR bp.active: acquire; as in hit_inside(). */
	uint32_t active = tw_load_acquire(&tw_bp_gate.active);

	if (active) {
		const struct tw_bp_generation *generation = &place->gen[active - 1];
		uint64_t losing = tw_hit_losing(generation);

		tw_hit_count_pinned(losing, state);
		/* The end of the call will not be seen either. */
		if (has_end && !place->is_unwatched)
			tw_hit_count_pinned(losing & (generation->returns | generation->exceptions), state);
	}
}

/* @has_end: the end of the call will not be seen either. */
static void refused(struct tw_place *place, enum tw_thread_state state, const void *frame, bool is_local, bool has_end)
{
	switch (state) {
	case TW_THREAD_IN_HIT:
		/* A hit may use libc, whose functions may be traced. */
		if (!has_end || !tw_hit_is_own_call(&tw_hit_tls, frame))
			count_nested(&tw_hit_tls, place, is_local);
		break;
	case TW_THREAD_ENDED:
	case TW_THREAD_UNABLE:
	case TW_THREAD_VFORKED:
	case TW_THREAD_NO_CLOCK: count_late(place, state, has_end); break;
	default: break;
	}
}

static __attribute__((noinline, cold)) bool hit_unready(struct tw_place *place, struct tw_words w, void *frame,
							struct tw_frame_wants *out)
{
	enum tw_thread_state state = tw_hit_make_ready(&tw_hit_tls, frame);
	bool is_watched;

	if (state != TW_THREAD_NEW) {
		refused(place, state, frame, w.is_local, out != NULL);
		return false;
	}
	is_watched = hit(place, w, out);
	tw_hit_go_back(&tw_hit_tls);
	return is_watched;
}

__attribute__((noinline, cold)) void tw_hit_native_refused(struct tw_place *place, enum tw_thread_state state,
							   const uint64_t *slot)
{
	refused(place, state, slot - 1, false, true);
}

/* PAIR bp.place: acquire; release in declare(). The place is initialised before it is published. */
#define PLACE_OF(function) tw_load_plain_acquire(&(function)->place)

TW_API void tw_hit0(struct tw_declared_function *function)
{
	hit(PLACE_OF(function), (struct tw_words){0}, NULL);
}

TW_API void tw_hit1(struct tw_declared_function *function, uint64_t a)
{
	hit(PLACE_OF(function), (struct tw_words){.count = 1, .a = a}, NULL);
}

TW_API void tw_hit2(struct tw_declared_function *function, uint64_t a, uint64_t b)
{
	hit(PLACE_OF(function), (struct tw_words){.count = 2, .a = a, .b = b}, NULL);
}

static struct tw_words words_of(const uint64_t *words, unsigned count, bool is_local)
{
	if (count > TW_ARGS_MAX)
		count = TW_ARGS_MAX;
	return (struct tw_words){.count = count, .more = words, .more_count = count, .is_local = is_local};
}

TW_API void tw_hit_words(struct tw_declared_function *function, const uint64_t *words, unsigned count)
{
	hit(PLACE_OF(function), words_of(words, count, false), NULL);
}

TW_API void tw_hit_local_words(struct tw_declared_function *function, const uint64_t *words, unsigned count)
{
	hit(PLACE_OF(function), words_of(words, count, true), NULL);
}

/* To the program a frame is plain words. */
static struct tw_frame_wants *wants_of(struct tw_frame *frame)
{
	return (struct tw_frame_wants *)frame->words;
}

TW_API void tw_hit_enter2(struct tw_declared_function *function, struct tw_frame *frame, uint64_t a, uint64_t b)
{
	frame->tail = 0;
	frame->is_open = hit(PLACE_OF(function), (struct tw_words){.count = 2, .a = a, .b = b}, wants_of(frame));
}

TW_API void tw_hit_enter(struct tw_declared_function *function, struct tw_frame *frame,
			 const struct tw_frame_call *call)
{
	struct tw_words w = words_of(call->words, call->count, call->is_local);
	static const struct tw_term none;

	if (call->has_terms) {
		w.terms = call->count ? call->terms : &none;
		w.term_count = call->count <= TW_ARITY_MAX ? call->count : TW_ARITY_MAX;
	}
	if (!frame) {
		hit(PLACE_OF(function), w, NULL);
		return;
	}
	frame->tail = 0;
	frame->is_open = hit(PLACE_OF(function), w, wants_of(frame));
}

static INLINE struct tw_words native_words(const uint64_t *words, uint64_t *slot)
{
	return (struct tw_words){.more = words, .more_count = TW_ARGS_MAX, .frame = slot - 1};
}

bool tw_hit_native_inside(struct tw_place *place, const uint64_t *words, uint64_t *slot, struct tw_frame_wants *out)
{
	return hit_entered(&tw_hit_tls, place, native_words(words, slot), out);
}
