/* SPDX-License-Identifier: Apache-2.0 */
/* native.c - hits of native calls, and what is kept of a call while it runs, in the shadow of its return address. */
#include "pipeline/hit/native.h"
#include "pipeline/hit/allocator.h"
#include "pipeline/hit/arguments.h"
#include "pipeline/hit/at_once.h"
#include "pipeline/hit/bare.h"

#include "base/thread_base.h"
#include "breakpoints/patch.h"
#include "breakpoints/returns.h"
#include "pipeline/hit/count.h"
#include "pipeline/hit/counted.h"
#include "pipeline/hit/foreign.h"
#include "pipeline/hit/longer.h"
#include "pipeline/hit/one.h"
#include "pipeline/hit/record.h"
#include "pipeline/hit/result.h"
#include "pipeline/hit/site.h"
#include "pipeline/hit/trigger.h"
#include "progress/read_side.h"
#include "tracewheel/session.h"

_Static_assert(TW_FRAME_WANTS_BYTES == TW_RETURNS_WORDS * sizeof(uint64_t), "fits an entry");
_Static_assert(sizeof(struct tw_frame_wants) <= TW_RETURNS_LONG_WORDS * sizeof(uint64_t), "fits a block");
_Static_assert(offsetof(struct tw_frame_wants, place) == 0, "an entry without a place has no frame");

/* Identifies a call during its hits: the address where a function would save its caller's frame pointer. */
#define FRAME(slot) ((void *)((slot)-1))

/* The index of a member of struct tw_frame_wants among the words that are kept. */
#define WORD(member) (offsetof(struct tw_frame_wants, member) / sizeof(uint64_t))

_Atomic bool tw_native_can_watch;
static bool has_stopped;

/* Opens a watched frame for what the hit wants of the call's end. Returns where the call continues. */
static const char *watch(struct tw_place *place, uint64_t *slot, const struct tw_frame_wants *wants)
{
	bool is_catching = (wants->exceptions | wants->return_tos | wants->more) && tw_unwind_is_known();
	const char *resume_at = NULL;

	if (tw_unlikely(place->is_unwatched | !tw_native_is_watching())) {
		tw_frame_forget(wants);
	} else if (!tw_returns_open(slot, (const tw_return_word *)wants, wants->more != 0, is_catching, &resume_at)) {
		tw_frame_forget(wants);
		tw_frame_lose(wants, FRAME(slot));
	}
	return resume_at;
}

const char *tw_native_hit_generally(struct tw_place *place, const uint64_t *words, uint64_t *slot)
{
	struct tw_frame_wants wants;

	if (!tw_hit_native_inside(place, words, slot, &wants))
		return NULL;
	return watch(place, slot, &wants);
}

static const char *hit_trigger(struct tw_place *place, const uint64_t *words, uint64_t *slot, uint32_t first);

/* If more turns out to be wanted of the call, all but the first continue with tw_native_hit_whole(). */
static inline const char *hit_as(struct tw_place *place, const uint64_t *words, uint64_t *slot, uint32_t first)
{
	if (tw_unlikely(first & TW_BP_FIRST_TRIGGER))
		return hit_trigger(place, words, slot, first & ~(uint32_t)TW_BP_FIRST_TRIGGER);
	if (first & TW_BP_FIRST_COUNTER)
		return tw_counted_call(place, words, slot);
	if (first & TW_BP_FIRST_ACCOUNTS)
		return tw_counted_enter(place, words, slot);
	if (first & TW_BP_FIRST_LONGER)
		return tw_longer_enter(place, words, slot);
	return tw_native_hit_whole(place, words, slot);
}

static __attribute__((noinline)) const char *hit_trigger(struct tw_place *place, const uint64_t *words, uint64_t *slot,
							 uint32_t first)
{
	return tw_trigger_call(place, words, slot, hit_as(place, words, slot, first));
}

/* A thread is ready now.  A trigger has its turn behind this. */
static const char *hit_first(struct tw_place *place, const uint64_t *words, uint64_t *slot)
{
	/* RELAXED bp.first: a hint. */
	return hit_as(place, words, slot, tw_load_relaxed(&place->first) & ~(uint32_t)TW_BP_FIRST_TRIGGER);
}

/* In a handler that has interrupted our own work. */
static __attribute__((noinline)) const char *hit_in_work(struct tw_place *place, const uint64_t *words, uint64_t *slot)
{
	const char *resume_at = hit_first(place, words, slot);

	tw_hit_go_back(&tw_hit_tls);
	return resume_at;
}

/* The calls here are the last thing that a function does, and then take no stack in addition. */
static __attribute__((noinline)) const char *hit_unready(struct tw_place *place, const uint64_t *words, uint64_t *slot)
{
	enum tw_thread_state state = tw_hit_make_ready(&tw_hit_tls, FRAME(slot));

	if (state != TW_THREAD_NEW) {
		tw_hit_native_refused(place, state, slot);
		return NULL;
	}
	return tw_unlikely(tw_hit_tls.thread->busy_frame) ? hit_in_work(place, words, slot)
							  : hit_first(place, words, slot);
}

/* Leaves the read section and the hit, and wakes the thread that waits for that. */
static __attribute__((noinline, cold)) const char *leave_waking(const char *resume_at)
{
	tw_progress_wake_waiter();
	tw_hit_end(&tw_hit_tls);
	return resume_at;
}

static INLINE const char *leave_at_once(struct tw_hit_tls *t, const char *resume_at)
{
	if (tw_unlikely(tw_progress_exit_quietly(&t->thread->reader)))
		return leave_waking(resume_at);
	tw_hit_end(t);
	return resume_at;
}

/*
 * A call that is recorded at once, and whose end is wanted too, if the shadow entry of its slot is free. The record is begun first
 * and committed last: until then nothing was done.
 */
static __attribute__((noinline)) const char *watch_at_once(struct tw_place *place, const uint64_t *words,
							   uint64_t *slot, const struct tw_bp_generation *generation,
							   uint64_t todo)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	uint64_t session = (unsigned)__builtin_ctzll(todo), head = head_of_call(t, place, generation, session);
	struct tw_thread_ring *ring = ring_of(t, session);
	struct tw_rb_record *record = tw_record_at_once(t, ring, TW_RB_HEAD_BYTES(head));
	uint64_t exceptions = todo & generation->exceptions;
	/* PAIR hit.epoch: acquire; as in begin_frame(). */
	const tw_return_word wants[TW_RETURNS_WORDS] = {
		[WORD(place)] = (uintptr_t)place,
		[WORD(returns)] = todo,
		[WORD(exceptions)] = exceptions,
		[WORD(epoch)] = tw_load_acquire(&tw_hit_epoch),
	};
	const char *resume_at;

	if (tw_unlikely(place->is_unwatched || !tw_native_is_watching() || !tw_returns_is_fast(slot)) ||
	    (tw_unlikely(!record) && !is_lost_again(ring)))
		return tw_one_call(place, words, slot);
	resume_at = tw_returns_open_fast(slot, wants, exceptions && tw_unwind_is_known());
	if (tw_likely(record))
		write_call(ring, record, head, generation, words);
	return leave_at_once(t, resume_at);
}

static INLINE const char *hit(struct tw_place *place, const uint64_t *words, uint64_t *slot)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	const struct tw_bp_generation *generation;
	uint64_t todo;
	uint32_t active;

	if (tw_unlikely(t->state != TW_THREAD_READY))
		return hit_unready(place, words, slot);
	/* RELAXED hit.wants: as in hit(). */
	if (!(tw_load_relaxed(&t->tracee->wants_call) | tw_load_relaxed(&place->counting)))
		return NULL;
	if (tw_unlikely(!tw_hit_begin(t, FRAME(slot))))
		return hit_unready(place, words, slot);
	tw_progress_enter(&t->thread->reader);
	/* PAIR bp.active: acquire; as in hit_inside(). */
	active = tw_load_acquire(&tw_bp_gate.active);
	generation = &place->gen[(active - 1) & 1];
	todo = tw_likely(active) ? wants_at_once(t, generation) : 0;
	if (tw_unlikely(!todo))
		return tw_one_call(place, words, slot);
	if (generation->is_tested && todo & generation->special) {
		int quick = tw_bp_quick_test(&generation->quick, words, TW_ARGS_MAX);

		if (quick <= 0)
			return quick ? tw_one_call(place, words, slot) : leave_at_once(t, NULL);
	}
	if (todo & (generation->returns | generation->exceptions))
		return watch_at_once(place, words, slot, generation, todo);
	return tw_likely(put_call(t, place, generation, todo, words)) ? leave_at_once(t, NULL)
								      : tw_one_call(place, words, slot);
}

const char *tw_native_hit_whole(struct tw_place *place, const uint64_t *words, uint64_t *slot)
{
	return hit(place, words, slot);
}

static __attribute__((noinline)) const char *hit_allocator(struct tw_place *place, const uint64_t *words,
							   uint64_t *slot, uint32_t first)
{
	tw_allocator_call(place, words);
	return hit_as(place, words, slot, first);
}

const char *tw_native_hit(struct tw_place *place, const uint64_t *words, uint64_t *slot)
{
	/* PAIR bp.first: acquire; release in make_place(), before a slot or sled leads here.  Later values are hints. */
	uint32_t first = tw_load_acquire(&place->first);

	if (tw_likely(!first))
		return hit(place, words, slot);
	if (tw_unlikely(first & TW_BP_FIRST_ALLOCATION))
		return hit_allocator(place, words, slot, first);
	return hit_as(place, words, slot, first);
}

/* A frame of an entry; NULL: that of a trigger, or the first one, if the others are long frames in blocks. */
static const struct tw_frame_wants *frame_of(const struct tw_return_entry *entry, unsigned number)
{
	const struct tw_frame_wants *wants = (const struct tw_frame_wants *)tw_returns_frame(entry, number);

	return wants->place && !tw_trigger_is(wants) ? wants : NULL;
}

/* Is the frame wanted by accounts only? */
static inline bool is_counted(const struct tw_frame_wants *wants)
{
	return wants->more & TW_COUNTED_FRAME;
}

/*
 * A chain of tail calls has one return_to: that of the first call whose return_to was wanted, recorded when that call
 * ends.
 */
static void go_back(const struct tw_return_entry *entry, unsigned number, struct tw_frame_back *back)
{
	struct tw_frame_where where = {.address = entry->return_address};
	struct tw_frame_back first = *back;

	while (first.sessions && number-- > 0) {
		const struct tw_frame_wants *below = frame_of(entry, number);

		if (below)
			first.sessions &= ~below->return_tos;
	}
	back->sessions &= ~first.sessions;
	tw_frame_return_to(&first, &where);
}

/* Ends the frames of an entry, the innermost first. */
static __attribute__((noinline)) void return_all(const struct tw_return_entry *entry, uint64_t *slot, uint64_t value,
						 struct tw_frame_back *back)
{
	for (unsigned number = tw_returns_count(entry); number-- > 0;) {
		const struct tw_frame_wants *wants = frame_of(entry, number);

		if (wants && is_counted(wants))
			tw_counted_end((const struct tw_counted_frame *)wants, back->frame, &value);
		else if (wants && tw_longer_is(wants))
			tw_longer_end((struct tw_longer_frame *)(uintptr_t)wants, slot, value);
		else if (wants)
			tw_result_return(wants, slot, value, back);
		if (tw_unlikely(back->sessions))
			go_back(entry, number, back);
	}
}

/* Are all frames of the entry of this kind, but those of triggers? */
static bool are_all(const struct tw_return_entry *entry, bool (*is_such)(const struct tw_frame_wants *))
{
	for (unsigned number = tw_returns_count(entry); number-- > 0;) {
		const struct tw_frame_wants *wants = frame_of(entry, number);

		if (wants && !is_such(wants))
			return false;
	}
	return true;
}

static __attribute__((noinline)) uintptr_t return_generally(struct tw_return_entry *entry, uint64_t *slot,
							    uint64_t value)
{
	struct tw_frame_back back = {.frame = FRAME(slot)};

	if (tw_likely(tw_returns_count(entry) == 1))
		tw_result_return((const struct tw_frame_wants *)entry->words, slot, value, &back);
	else
		return_all(entry, slot, value, &back);
	if (tw_unlikely(back.sessions))
		tw_frame_return_to(&back, &(struct tw_frame_where){.address = entry->return_address});
	tw_returns_close(entry);
	return entry->return_address;
}

/* Each of these is the last thing that return_rest() does, and takes no stack beside it. */
static __attribute__((noinline)) uintptr_t return_single(struct tw_return_entry *entry, uint64_t *slot, uint64_t value)
{
	tw_one_return((const struct tw_frame_wants *)entry->words, slot, value);
	tw_returns_close(entry);
	return entry->return_address;
}

static bool is_simple(const struct tw_frame_wants *wants)
{
	return is_counted(wants) || tw_one_wants(wants);
}

static __attribute__((noinline)) uintptr_t return_chain(struct tw_return_entry *entry, uint64_t *slot, uint64_t value)
{
	for (unsigned number = tw_returns_count(entry); number-- > 0;) {
		const struct tw_frame_wants *wants = frame_of(entry, number);

		if (wants && is_counted(wants))
			tw_counted_end((const struct tw_counted_frame *)wants, FRAME(slot), &value);
		else if (wants)
			tw_one_return(wants, slot, value);
	}
	tw_returns_close(entry);
	return entry->return_address;
}

static __attribute__((noinline)) uintptr_t return_rest(struct tw_return_entry *entry, uint64_t *slot, uint64_t value)
{
	if (are_all(entry, tw_longer_is))
		return tw_longer_return_all(entry, slot, value);
	if (!are_all(entry, is_simple))
		return return_generally(entry, slot, value);
	return tw_returns_count(entry) == 1 && tw_one_wants((const struct tw_frame_wants *)entry->words)
		       ? return_single(entry, slot, value)
		       : return_chain(entry, slot, value);
}

/* A snapshot is wanted, which has the records of the return.  The frame that wants it stays as it is until the slot's next call. */
static __attribute__((noinline)) uintptr_t return_and_tell(struct tw_return_entry *entry, uint64_t *slot,
							   uint64_t value, struct tw_trigger_met met)
{
	uintptr_t address = return_rest(entry, slot, value);

	tw_trigger_tell(met, slot);
	return address;
}

static __attribute__((noinline)) uintptr_t return_slowly(struct tw_return_entry *entry, uint64_t *slot, uint64_t value)
{
	struct tw_trigger_met met = {0};

	/* The stack was copied, or overwritten. */
	if (tw_unlikely(!entry))
		return tw_returns_lost_address(slot);
	if (tw_returns_count(entry) > 1 || tw_trigger_is((const struct tw_frame_wants *)entry->words))
		met = tw_trigger_end(entry, slot, value);
	return tw_unlikely(met.frame != NULL) ? return_and_tell(entry, slot, value, met)
					      : return_rest(entry, slot, value);
}

/* These end what tw_native_return() has begun, so that it keeps nothing over a call. */
static __attribute__((noinline, cold)) uintptr_t return_undone(struct tw_return_entry *entry, uint64_t *slot,
							       uint64_t value)
{
	tw_progress_exit(&tw_hit_tls.thread->reader);
	tw_hit_end(&tw_hit_tls);
	return return_slowly(entry, slot, value);
}

static __attribute__((noinline, cold)) uintptr_t return_waking(struct tw_return_entry *entry)
{
	tw_progress_wake_waiter();
	tw_hit_end(&tw_hit_tls);
	tw_returns_close(entry);
	return entry->return_address;
}

/* Copies of the frame were made since tw_native_return() has looked. */
static __attribute__((noinline, cold)) uintptr_t return_shared(struct tw_return_entry *entry)
{
	tw_returns_close_shared(entry);
	return entry->return_address;
}

uintptr_t tw_native_return(uint64_t *slot, uint64_t value)
{
	struct tw_return_entry *entry = tw_returns_find(slot);
	struct tw_hit_tls *t = &tw_hit_tls;
	const struct tw_frame_wants *wants;

	if (tw_unlikely(!entry || !tw_returns_is_single(entry)))
		return return_slowly(entry, slot, value);
	wants = (const struct tw_frame_wants *)entry->words;
	if (wants->more & (TW_COUNTED_FRAME | TW_LONGER_FRAME))
		return tw_longer_is(wants) ? tw_longer_return(entry, slot, value)
					   : tw_counted_return(entry, slot, value);
	if (tw_unlikely(!is_return_at_once(wants) || !tw_hit_begin(t, FRAME(slot))))
		return return_slowly(entry, slot, value);
	tw_progress_enter(&t->thread->reader);
	if (tw_unlikely(!return_at_once(t, wants, value)))
		return return_undone(entry, slot, value);
	if (tw_unlikely(tw_progress_exit_quietly(&t->thread->reader)))
		return return_waking(entry);
	tw_hit_end(t);
	if (tw_unlikely(tw_returns_is_shared(entry)))
		return return_shared(entry);
	tw_returns_close_own(entry);
	return entry->return_address;
}

/*
 * The innermost watched call whose slot lies at or above `from` and below `limit`; NULL: none. The range is part of
 * this thread's stack; the shadow is consulted only where there is a stub.
 */
static uint64_t *next_watched(uintptr_t from, uintptr_t limit)
{
	for (uintptr_t at = from & ~(uintptr_t)7; at + sizeof(uint64_t) <= limit; at += sizeof(uint64_t)) {
		uint64_t *slot = (uint64_t *)at;

		if (tw_unlikely(tw_returns_is_stub(*slot)) && tw_returns_find(slot))
			return slot;
	}
	return NULL;
}

static const enum tw_frame_class classes[] =
	{[TW_UNWIND_ERROR] = TW_FRAME_ERROR, [TW_UNWIND_EXIT] = TW_FRAME_EXIT, [TW_UNWIND_THROW] = TW_FRAME_THROW};

static void leave(uint64_t *slot, enum tw_frame_class class, const char *name, struct tw_frame_back *back)
{
	struct tw_return_entry *entry = tw_returns_find(slot);

	for (unsigned number = tw_returns_count(entry); number-- > 0;) {
		const struct tw_frame_wants *wants = frame_of(entry, number);

		if (wants && is_counted(wants))
			tw_counted_end((const struct tw_counted_frame *)wants, FRAME(slot), NULL);
		else if (wants && tw_longer_is(wants))
			tw_longer_throw((struct tw_longer_frame *)(uintptr_t)wants, slot, class, name);
		else if (wants)
			tw_frame_exception(wants, class, (struct tw_term){0}, name, back);
	}
	tw_returns_close(entry);
}

void tw_native_throw(uint64_t *slot, const struct tw_unwind *unwind)
{
	struct tw_frame_back back = {.frame = FRAME(slot)};
	struct tw_frame_where where = {0};

	leave(slot, classes[unwind->class], unwind->name, &back);
	/* Only the outermost of the frames left returns to the function that catches. */
	if (!back.sessions || !unwind->stopping_at || next_watched((uintptr_t)(slot + 1), unwind->stopping_at))
		return;
	where.address = tw_unwind_address_at(unwind->stopping_at);
	if (where.address)
		tw_frame_return_to(&back, &where);
}

/* Are both on the stack that this thread began with? */
static bool is_own_stack(uintptr_t from, uintptr_t to)
{
	const struct tw_thread *thread = tw_hit_tls.thread;

	return from >= thread->stack_low && from < thread->stack_high && to <= thread->stack_high;
}

void tw_native_jump(uintptr_t stack, uintptr_t address)
{
	struct tw_frame_back back = {0};
	struct tw_frame_where where = {.address = address};
	struct tw_thread *thread = tw_hit_tls.thread;
	uintptr_t from = (uintptr_t)__builtin_frame_address(0);
	bool is_nested;

	if (!thread)
		return;
	/*
	 * If handlers jump out faster than their frames can be reported, the nesting must end: every other one
	 * reports nothing.
	 */
	is_nested = from < thread->jumping_from;
	thread->jumping_from = 0;
	if (is_nested || stack <= from)
		return;
	thread->jumping_from = from;
	tw_compiler_barrier();
	if (!is_own_stack(from, stack))
		stack = 0;
	for (uint64_t *slot; (slot = next_watched(from, stack)); from = (uintptr_t)(slot + 1)) {
		back.frame = FRAME(slot);
		leave(slot, TW_FRAME_THROW, "longjmp", &back);
	}
	if (back.sessions)
		tw_frame_return_to(&back, &where);
	thread->jumping_from = 0;
}

/* More than the frames of libc between this thread's first function and a destructor of a key. */
#define EXIT_FRAMES_BYTES 512
/* Addresses of one library are no farther apart. */
#define LIBRARY_BYTES (UINT64_C(1) << 24)

void tw_native_thread_exits(uintptr_t frame, uintptr_t caller)
{
	uintptr_t high = tw_hit_tls.thread->stack_high, limit = frame + EXIT_FRAMES_BYTES;

	if (!is_own_stack(frame, high))
		return;
	for (uintptr_t at = frame + sizeof(uint64_t); at < limit && at < high; at += sizeof(uint64_t)) {
		uint64_t *slot = (uint64_t *)at;
		const struct tw_return_entry *entry = tw_returns_find(slot);
		struct tw_frame_back back = {.frame = FRAME(slot)};

		/* A call whose slot still leads to a stub will return; libc has called the first function of a thread. */
		if (!entry || tw_returns_is_stub(*slot) ||
		    entry->return_address - caller + LIBRARY_BYTES > 2 * LIBRARY_BYTES)
			continue;
		leave(slot, TW_FRAME_EXIT, "pthread_exit", &back);
		return;
	}
}

void tw_native_stop_watching(void)
{
	/* RELAXED native.watch: as in tw_native_is_watching(). */
	tw_store_relaxed(&tw_native_can_watch, false);
	has_stopped = true;
}

/*
 * If the kernel can be asked, nothing is read through %fs before it is known to be libc's.  The rare half is apart: the common one
 * keeps nothing on the stack, and ends in a jump.
 */
static __attribute__((noinline, cold)) const char *hit_examined(struct tw_place *place, const uint64_t *words,
								uint64_t *slot)
{
	return tw_thread_base_examine(tw_thread_base()) ? tw_native_hit(place, words, slot) : tw_foreign_hit(place);
}

static const char *hit_checked(struct tw_place *place, const uint64_t *words, uint64_t *slot)
{
	return tw_thread_base_is_known(tw_thread_base()) ? tw_native_hit(place, words, slot)
							 : hit_examined(place, words, slot);
}

static void site_checked(struct tw_place *place, const uint64_t registers[16])
{
	if (tw_thread_base_is_known(tw_thread_base()) || tw_thread_base_examine(tw_thread_base()))
		tw_site_hit(place, registers);
	else
		tw_foreign_hit(place);
}

static __attribute__((noinline, cold)) uintptr_t return_examined(uint64_t *slot, uint64_t value)
{
	return tw_thread_base_examine(tw_thread_base()) ? tw_native_return(slot, value) : tw_foreign_return(slot);
}

static uintptr_t return_checked(uint64_t *slot, uint64_t value)
{
	return tw_thread_base_is_known(tw_thread_base()) ? tw_native_return(slot, value) : return_examined(slot, value);
}

/* A thread sanitizer does not see the atomics of assembly. */
#if defined __SANITIZE_THREAD__ || __has_feature(thread_sanitizer)
#define IS_BARE_SEEN false
#else
#define IS_BARE_SEEN true
#endif

void tw_native_init(void)
{
	bool is_checked = tw_thread_base_init();
	const char *reason;

	/* RELAXED native.watch: before anything is armed. */
	tw_store_relaxed(&tw_native_can_watch, tw_returns_init(&reason) == 0 && !has_stopped);
	tw_bp_trampoline_hit = is_checked ? hit_checked : tw_native_hit;
	tw_bp_site_hit = is_checked ? site_checked : tw_site_hit;
	tw_bp_trampoline_return = is_checked ? return_checked : tw_native_return;
	tw_bp_trampoline_throw = tw_native_throw;
	if (is_checked && tw_clock_is_counter() && IS_BARE_SEEN) {
		tw_bp_bare_slot = tw_hit_bare_slot;
		tw_bp_bare_sled = tw_hit_bare_sled;
	}
}
