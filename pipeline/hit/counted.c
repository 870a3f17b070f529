/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counted.c - calls through sleds and slots that are only counted: one function for the call, one for the return.
 *
 * Does the work of hit.c, count.c, frame.c and native.c for such calls, without the steps that they never need: no
 * record, no other session, a frame that fits its entry and serves accounts only. Any other case is refused before
 * anything has happened, and left to those files. Compiled without vector registers, as hit.c.
 *
 *	call_count		the read section, and one word
 *	aggregations		also a row of the thread (aggregate.h); with results or durations the return
 *	call_time, call_memory	also the current account, and the shadow of the return address
 *	the return		the account before; no read section: it uses memory of the process and of the
 *				thread, or memory that is never freed
 */
#include "pipeline/hit/counted.h"
#include "breakpoints/returns.h"
#include "breakpoints/unwind.h"
#include "pipeline/hit/account.h"
#include "pipeline/hit/aggregate.h"
#include "pipeline/hit/native.h"
#include "progress/read_side.h"
#include "tracewheel/session.h"

_Static_assert(sizeof(struct tw_counted_frame) == TW_RETURNS_WORDS * sizeof(uint64_t), "fits an entry");
_Static_assert(offsetof(struct tw_counted_frame, place) == offsetof(struct tw_frame_wants, place), "as any frame");
_Static_assert(offsetof(struct tw_counted_frame, more) == offsetof(struct tw_frame_wants, more), "as any frame");

#define INLINE inline __attribute__((always_inline))

/* As in native.c: identifies a call during its hits. */
#define FRAME(slot) ((const void *)((slot)-1))

/* Returns the active generation; NULL: the gate is shut. */
static INLINE const struct tw_bp_generation *active_of(const struct tw_place *place)
{
	/* PAIR bp.active: acquire; as in hit_inside(). */
	uint32_t active = tw_load_acquire(&tw_bp_gate.active);

	return tw_likely(active) ? &place->gen[active - 1] : NULL;
}

/* Leaves the read section and the hit. Returns whether an updater waits for this reader and must be woken. */
static INLINE bool leave(struct tw_hit_tls *t)
{
	bool has_waiter = tw_progress_exit_quietly(&t->thread->reader);

	tw_hit_end(t);
	return tw_unlikely(has_waiter);
}

/* Called as a tail call, as are all functions here that may need much of the stack: their callers' part of it is free then. */
static __attribute__((noinline)) const char *wake(const char *resume_at)
{
	tw_progress_wake_waiter();
	return resume_at;
}

static INLINE const char *leave_for(struct tw_hit_tls *t, const char *resume_at)
{
	return leave(t) ? wake(resume_at) : resume_at;
}

static __attribute__((noinline)) const char *leave_undone(struct tw_place *place, const uint64_t *words, uint64_t *slot)
{
	if (leave(&tw_hit_tls))
		wake(NULL);
	return tw_native_hit_whole(place, words, slot);
}

/* ---- the return is watched ---- */

static INLINE bool is_watched_fast(const struct tw_place *place, const uint64_t *slot)
{
	return !place->is_unwatched && tw_native_is_watching() && tw_returns_is_fast(slot);
}

static INLINE const char *open_fast(const struct tw_counted_frame *frame, uint64_t *slot)
{
	return tw_returns_open_fast(slot, (const tw_return_word *)frame, tw_unwind_is_known());
}

/* In a hit, where a frame can be made that is not on the stack: such calls record no callers. */
static INLINE struct tw_counted_frame *frame_in_thread(const struct tw_hit_tls *t)
{
	return (void *)(tw_return_word *)t->thread->callers;
}

static __attribute__((noinline)) bool open_slow(const struct tw_counted_frame *frame, uint64_t *slot,
						const char **resume_at)
{
	return !frame->place->is_unwatched && tw_native_is_watching() &&
	       tw_returns_open(slot, (const tw_return_word *)frame, false, tw_unwind_is_known(), resume_at);
}

/* ---- call_count ---- */

/* The word in which the thread counts; NULL: it has none yet. */
static INLINE _Atomic uint64_t *word_of(const struct tw_thread_counts *own, const struct tw_counter *counter)
{
	return tw_likely(own) ? tw_count_word(own, (uint32_t)(counter - tw_counters)) : NULL;
}

/* The first calls of a thread. */
static __attribute__((noinline)) const char *count_first(struct tw_counter *counter)
{
	tw_counter_count(&tw_hit_tls, counter);
	return leave_for(&tw_hit_tls, NULL);
}

/* A key that the thread does not have yet. */
static __attribute__((noinline)) const char *aggregate_first(struct tw_counter *counter)
{
	tw_aggregate_add_first(&tw_hit_tls);
	return count_first(counter);
}

static INLINE void make_aggregated(struct tw_counted_frame *frame, struct tw_place *place, const uint64_t *words,
				   const uint64_t *slot)
{
	const struct tw_aggregation *what = &tw_aggregating.what;

	frame->place = place;
	frame->key = tw_aggregate_value(what->by, &place->by, words, slot);
	frame->number = what->of == TW_AGGREGATE_DURATION ? tw_clock_ticks()
							  : tw_aggregate_value(what->of, &place->of, words, slot);
	frame->session = frame->unused = 0;
	frame->more = TW_COUNTED_AGGREGATED;
}

/* If the end will not be seen, the call has no row. */
static __attribute__((noinline)) const char *aggregate_later_slowly(struct tw_place *place, const uint64_t *words,
								    uint64_t *slot)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	const char *resume_at = NULL;

	make_aggregated(frame_in_thread(t), place, words, slot);
	open_slow(frame_in_thread(t), slot, &resume_at);
	return leave_for(t, resume_at);
}

/* The end of the call decides. */
static INLINE const char *aggregate_later(struct tw_place *place, const uint64_t *words, uint64_t *slot)
{
	struct tw_counted_frame frame;

	if (tw_unlikely(!is_watched_fast(place, slot)))
		return aggregate_later_slowly(place, words, slot);
	make_aggregated(&frame, place, words, slot);
	return leave_for(&tw_hit_tls, open_fast(&frame, slot));
}

static __attribute__((noinline)) const char *count_first_aggregate_later(struct tw_place *place, const uint64_t *words,
									 uint64_t *slot, struct tw_counter *counter)
{
	tw_counter_count(&tw_hit_tls, counter);
	return aggregate_later_slowly(place, words, slot);
}

/* Counting with an aggregation.  The row comes first: a killed program has at most one call of a thread there that is not counted. */
static __attribute__((noinline)) const char *aggregate(struct tw_place *place, const uint64_t *words, uint64_t *slot,
						       struct tw_counter *counter)
{
	const struct tw_aggregation *what = &tw_aggregating.what;
	bool is_known = !(place->by.is_unknown | place->of.is_unknown), is_late = tw_aggregating.needs_return;
	struct tw_hit_tls *t = &tw_hit_tls;
	_Atomic uint64_t *word = word_of(t->own_counts, counter);

	if (!is_late && tw_likely(is_known) &&
	    !tw_aggregate_add(t->thread, t->own_counts, place, tw_aggregate_value(what->by, &place->by, words, slot),
			      tw_aggregate_value(what->of, &place->of, words, slot)))
		return aggregate_first(counter);
	is_late &= is_known;
	if (tw_unlikely(!word))
		return is_late ? count_first_aggregate_later(place, words, slot, counter) : count_first(counter);
	tw_count_add(word, 1);
	return is_late ? aggregate_later(place, words, slot) : leave_for(t, NULL);
}

const char *tw_counted_call(struct tw_place *place, const uint64_t *words, uint64_t *slot)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	const struct tw_bp_generation *generation;
	struct tw_counter *counter;
	_Atomic uint64_t *word;

	if (tw_unlikely(!tw_hit_begin(t, FRAME(slot))))
		return tw_native_hit_whole(place, words, slot);
	tw_progress_enter(&t->thread->reader);
	generation = active_of(place);
	counter = generation ? generation->only_counter : NULL;
	if (tw_unlikely(!counter))
		return leave_undone(place, words, slot);
	if (tw_unlikely(tw_aggregating.is_wanted))
		return aggregate(place, words, slot, counter);
	word = word_of(t->own_counts, counter);
	if (tw_unlikely(!word))
		return count_first(counter);
	tw_count_add(word, 1);
	return leave_for(t, NULL);
}

/* ---- the ends of call_time and call_memory ---- */

/* The process' first account, if it has this key; *row is that of its running time, NULL: no time runs, or it lies elsewhere. */
static INLINE struct tw_account *running(const struct tw_hit_tls *t, uint8_t key, struct tw_count_row **row)
{
	struct tw_thread_counts *own = t->own_counts;
	struct tw_account *account = &t->tracee->accounts[0];

	if (tw_unlikely(!own || account->key != key))
		return NULL;
	*row = &own->rows[account->on >> 32];
	/* RELAXED counts.row: this thread's own. */
	if (tw_load_relaxed(&(*row)->key) != tw_count_key((uint32_t)account->on, t->tracee->pid_number))
		*row = NULL;
	return account;
}

static INLINE void charge(struct tw_account *account, struct tw_count_row *row, uint64_t now)
{
	tw_count_add(&row->value, now - account->since);
	account->since = now;
}

/* Gives an account back to its previous owner. */
static INLINE void resume(const struct tw_hit_tls *t, struct tw_thread_counts *own, uint8_t key, uint64_t before)
{
	struct tw_account *account = tw_account_lookup(t->tracee, key);

	if (tw_likely(account))
		tw_account_resume(t->thread, own, t->tracee, account, key, before);
}

static __attribute__((noinline)) void resume_words(const struct tw_hit_tls *t, struct tw_thread_counts *own,
						   const struct tw_counted_frame *frame)
{
	resume(t, own, tw_account_key(frame->session, false), frame->words_before);
}

/* In a hit. */
static INLINE void resume_accounts(const struct tw_hit_tls *t, struct tw_thread_counts *own,
				   const struct tw_counted_frame *frame)
{
	if (tw_likely(frame->more & TW_COUNTED_TIME))
		resume(t, own, tw_account_key(frame->session, true), frame->time_before);
	if (tw_unlikely(frame->more & TW_COUNTED_MEMORY))
		resume_words(t, own, frame);
}

/* @value: NULL: the call was left in another way; then its duration is known, and not its result. */
static __attribute__((noinline)) void end_aggregated(struct tw_hit_tls *t, const struct tw_counted_frame *frame,
						     const uint64_t *value)
{
	const struct tw_aggregation *what = &tw_aggregating.what;
	uint64_t key = frame->key, number = frame->number;

	if (!value && (what->by == TW_AGGREGATE_RESULT || what->of == TW_AGGREGATE_RESULT))
		return;
	if (what->of == TW_AGGREGATE_DURATION)
		number = tw_aggregate_ns(tw_clock_ticks() - number);
	else if (what->of == TW_AGGREGATE_RESULT)
		number = tw_aggregate_extend(&frame->place->of, *value);
	if (what->by == TW_AGGREGATE_RESULT)
		key = tw_aggregate_extend(&frame->place->by, *value);
	if (!tw_aggregate_add(t->thread, t->own_counts, frame->place, key, number))
		tw_aggregate_add_first(t);
}

static INLINE void end_frame(const struct tw_counted_frame *frame, const void *hit_frame, const uint64_t *value)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	struct tw_thread_counts *own;

	while (tw_unlikely(!tw_hit_begin(t, hit_frame)))
		if (tw_hit_make_ready(t, hit_frame) != TW_THREAD_NEW)
			return;
	if (tw_unlikely(frame->more & TW_COUNTED_AGGREGATED)) {
		end_aggregated(t, frame, value);
	} else {
		own = tw_counts_of_thread(t->thread);
		if (tw_likely(own))
			resume_accounts(t, own, frame);
	}
	tw_hit_end(t);
	tw_hit_go_back(t);
}

void tw_counted_end(const struct tw_counted_frame *frame, const void *hit_frame, const uint64_t *value)
{
	end_frame(frame, hit_frame, value);
}

/* As tw_counted_return(), of all kinds of frames. */
static __attribute__((noinline)) uintptr_t return_generally(struct tw_return_entry *entry, const uint64_t *slot,
							    uint64_t value)
{
	end_frame((const struct tw_counted_frame *)entry->words, FRAME(slot), &value);
	tw_returns_close(entry);
	return entry->return_address;
}

static __attribute__((noinline)) uintptr_t return_undone(struct tw_return_entry *entry, const uint64_t *slot,
							 uint64_t value)
{
	tw_hit_end(&tw_hit_tls);
	return return_generally(entry, slot, value);
}

/*
 * Only time, in an account and a row that are where they mostly are: no call is made, and hardly a register saved. Other returns
 * are refused before anything has happened.
 */
uintptr_t tw_counted_return(struct tw_return_entry *entry, const uint64_t *slot, uint64_t value)
{
	const struct tw_counted_frame *frame = (const struct tw_counted_frame *)entry->words;
	struct tw_hit_tls *t = &tw_hit_tls;
	struct tw_account *account;
	struct tw_count_row *row;

	if (tw_unlikely(frame->more != TW_COUNTED_TIME || tw_returns_is_shared(entry) || !tw_clock_is_counter()) ||
	    tw_unlikely(!tw_hit_begin(t, FRAME(slot))))
		return return_generally(entry, slot, value);
	account = running(t, tw_account_key(frame->session, true), &row);
	if (tw_unlikely(!account || !row))
		return return_undone(entry, slot, value);
	charge(account, row, tw_clock_counter());
	account->on = frame->time_before;
	tw_hit_end(t);
	tw_returns_close_own(entry);
	return entry->return_address;
}

/* ---- their beginnings ---- */

static INLINE bool is_of_process(const struct tw_hit_tls *t, const struct tw_bp_part *part)
{
	/* RELAXED tracee.words: a change is seen by this call or by the next. */
	return t->tracee != &tw_hit_nobody && tw_load_relaxed(&t->tracee->counts_call) >> part->session & 1;
}

static INLINE void enter_time(struct tw_hit_tls *t, struct tw_thread_counts *own, const struct tw_bp_part *part,
			      struct tw_counted_frame *frame)
{
	if (tw_likely(part->times) && tw_account_enter(t->thread, own, t->tracee, part->times,
						       tw_account_key(part->session, true), &frame->time_before))
		frame->more |= TW_COUNTED_TIME;
}

static __attribute__((noinline)) void enter_both(struct tw_hit_tls *t, const struct tw_bp_part *part)
{
	struct tw_counted_frame *frame = frame_in_thread(t);

	if (!is_of_process(t, part))
		return;
	if (!tw_counts_of_thread(t->thread)) {
		tw_counts_refuse();
		return;
	}
	frame->session = part->session;
	enter_time(t, t->own_counts, part, frame);
	if (part->memories && tw_account_enter(t->thread, t->own_counts, t->tracee, part->memories,
					       tw_account_key(part->session, false), &frame->words_before))
		frame->more |= TW_COUNTED_MEMORY;
}

static __attribute__((noinline)) void resume_both(const struct tw_hit_tls *t)
{
	resume_accounts(t, t->own_counts, frame_in_thread(t));
}

/* The first calls of a thread, call_memory, and calls whose return cannot be watched as simply: ends the call here if not at all. */
static __attribute__((noinline)) const char *enter_slowly(struct tw_place *place, uint64_t *slot,
							  const struct tw_bp_part *part)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	const char *resume_at = NULL;

	*frame_in_thread(t) = (struct tw_counted_frame){.place = place};
	if (part->actions & TW_ACTION_COUNT)
		tw_counter_count(t, part->counter);
	enter_both(t, part);
	if (frame_in_thread(t)->more && !open_slow(frame_in_thread(t), slot, &resume_at))
		resume_both(t);
	return leave_for(t, resume_at);
}

/* As tw_counted_enter(), for all kinds, in the hit and its read section. */
static __attribute__((noinline)) const char *enter_generally(struct tw_place *place, const uint64_t *words,
							     uint64_t *slot)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	struct tw_counted_frame frame = {.place = place};
	const struct tw_bp_generation *generation = active_of(place);
	const struct tw_bp_part *part;
	const char *resume_at = NULL;
	_Atomic uint64_t *word;

	part = generation ? generation->only_accounts : NULL;
	if (tw_unlikely(!part))
		return leave_undone(place, words, slot);
	word = part->actions & TW_ACTION_COUNT ? word_of(t->own_counts, part->counter) : NULL;
	if (tw_unlikely(!t->own_counts || part->memories || (part->actions & TW_ACTION_COUNT && !word) ||
			!is_watched_fast(place, slot)))
		return enter_slowly(place, slot, part);
	if (word)
		tw_count_add(word, 1);
	if (is_of_process(t, part)) {
		frame.session = part->session;
		enter_time(t, t->own_counts, part, &frame);
	}
	if (tw_likely(frame.more))
		resume_at = open_fast(&frame, slot);
	return leave_for(t, resume_at);
}

/* As open_fast(), for time. */
static INLINE const char *open_timed(struct tw_place *place, uint64_t *slot, unsigned session, uint64_t time_before)
{
	const struct tw_counted_frame frame = {.place = place,
					       .time_before = time_before,
					       .session = session,
					       .more = TW_COUNTED_TIME};

	return open_fast(&frame, slot);
}

/* The row of the account that time goes to from here on; NULL: it is not where it mostly is. */
static INLINE struct tw_count_row *row_of(const struct tw_hit_tls *t, uint32_t id)
{
	uint64_t key = tw_count_key(id, t->tracee->pid_number);
	struct tw_count_row *row = &t->own_counts->rows[tw_count_row_number(key)];

	/* RELAXED counts.row: this thread's own. */
	return tw_likely(tw_load_relaxed(&row->key) == key) ? row : NULL;
}

/* Is time all that the part wants, of the process that runs? */
static INLINE bool is_time_only(const struct tw_hit_tls *t, const struct tw_bp_part *part)
{
	return part && part->actions == TW_ACTION_TIME && part->times && is_of_process(t, part);
}

/* As for the return. */
const char *tw_counted_enter(struct tw_place *place, const uint64_t *words, uint64_t *slot)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	const struct tw_bp_generation *generation;
	const struct tw_bp_part *part;
	struct tw_account *account;
	struct tw_count_row *row, *before;
	const char *resume_at;
	uint64_t on, now;
	uint32_t id;

	if (tw_unlikely(!tw_hit_begin(t, FRAME(slot))))
		return tw_native_hit_whole(place, words, slot);
	tw_progress_enter(&t->thread->reader);
	generation = active_of(place);
	part = generation ? generation->only_accounts : NULL;
	if (tw_unlikely(!is_time_only(t, part) || !tw_clock_is_counter() || !is_watched_fast(place, slot)))
		return enter_generally(place, words, slot);
	account = running(t, tw_account_key(part->session, true), &before);
	/* RELAXED counts.id: of a part that is active. */
	id = tw_load_relaxed(&part->times->id);
	row = account ? row_of(t, id) : NULL;
	if (tw_unlikely(!row || (!before && (uint32_t)account->on)))
		return enter_generally(place, words, slot);
	on = account->on;
	account->on = (uint64_t)(row - t->own_counts->rows) << 32 | id;
	t->tracee->has_accounts = true;
	tw_count_add(&row->count, 1);
	resume_at = open_timed(place, slot, part->session, on);
	now = tw_clock_counter();
	if (before)
		tw_count_add(&before->value, now - account->since);
	account->since = now;
	return leave_for(t, resume_at);
}
