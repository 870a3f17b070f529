/* SPDX-License-Identifier: Apache-2.0 */
/* children.c - the calls in calls that are recorded by how they end.  Compiled without vector registers, as hit.c. */
#include "pipeline/hit/children.h"
#include "base/filter.h"
#include "pipeline/hit/children_ring.h"

#include <errno.h>
#include <sys/mman.h>

/* By the thread itself. */
static void map_there(void *arg)
{
	struct tw_children *c = arg;
	int saved_errno = errno;
	void *words;

	if (c->words)
		munmap(c->words, c->capacity * sizeof *c->words);
	c->words = NULL;
	c->capacity = tw_hit_host.children_words;
	words = mmap(NULL, c->capacity * sizeof *c->words, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (words != MAP_FAILED)
		c->words = words;
	errno = saved_errno;
}

/* Without success calls under way are known by their frames, and those that ended in them are left out. */
static __attribute__((noinline)) void map(struct tw_children *c)
{
	if (tw_thread_may_call_system())
		tw_own_stack_try(map_there, c);
}

/* ---- the root ---- */

static INLINE uint64_t epoch_now(void)
{
	/* RELAXED hit.epoch: compared only; the session is the one of this hit's part. */
	return tw_load_relaxed(&tw_hit_sessions[tw_hit_host.pinned_session].epoch);
}

/* It may have ended unseen: on another thread, or in a hit. */
static INLINE bool has_root(const struct tw_children *c)
{
	return c->root && c->root->more && c->root->ticks == c->root_ticks && c->epoch == epoch_now();
}

static INLINE void drop_root(struct tw_children *c)
{
	c->root = NULL;
	empty(c);
}

static INLINE void make_root(struct tw_children *c, struct tw_longer_frame *frame)
{
	if (tw_unlikely(c->capacity != tw_hit_host.children_words))
		map(c);
	empty(c);
	c->root = frame;
	c->root_ticks = frame->ticks;
	c->epoch = epoch_now();
	c->due_ticks = UINT64_MAX;
}

/* ---- records ---- */

/* Describes the oldest record that is kept, which it takes out; false: it is none to be made. */
static __attribute__((noinline)) bool take_oldest(struct tw_hit_tls *t)
{
	struct tw_children *c = &t->thread->children;
	struct tw_one_hit *one = &t->thread->one;
	uint64_t *words = (uint64_t *)(void *)t->thread->terms;
	uint64_t head = *at(c, c->tail + 1), pos = c->tail + 2, began = is_call(head) ? *at(c, c->tail) : *at(c, pos++);

	one->stamp = *at(c, c->tail);
	one->ticks = tw_clock_ticks();
	one->count = count_in(head);
	one->flags = (uint8_t)(head >> HEAD_FLAGS_SHIFT);
	one->words = words;
	for (unsigned i = 0; i < one->count; i++)
		words[i] = *at(c, pos++);
	c->tail = pos;
	return is_wanted(t) && began >= c->since && began >= c->first &&
	       (!is_call(head) || recorded_word_of(t, (uint32_t)head, head & HEAD_OF_ALL));
}

static __attribute__((noinline)) void count_kept(struct tw_hit_tls *t, uint64_t head, bool is_recorded)
{
	t->thread->one.stamp = 0;
	if (is_call(head) && (is_recorded || is_wanted(t)))
		/* RELAXED count.add: as in count_recorded(). */
		tw_fetch_add_relaxed(recorded_word_of(t, (uint32_t)head, head & HEAD_OF_ALL), 1);
}

/* The calls that were left out were made in those that are open, and had ended. */
static __attribute__((noinline)) void tell_left_out(struct tw_hit_tls *t)
{
	struct tw_children *c = &t->thread->children;
	struct tw_thread_ring *ring = &t->thread->rings[tw_hit_host.pinned_session];
	uint64_t ticks = c->first < UINT64_MAX ? c->first : tw_clock_ticks();

	if (!c->left_out || !is_wanted(t) || !ring->producer.shared)
		return;
	tw_rb_refuse_several(&ring->producer, TW_RB_LOST_NESTED, c->left_out, ticks);
	tw_rs_count_left_out(tw_hit_sessions[tw_hit_host.pinned_session].rs, c->left_out);
	c->left_out = 0;
}

/* If a jump has left the root, what was kept before the outermost of the open calls belongs to none of these. */
static INLINE void begin_kept(struct tw_children *c, const struct tw_longer_frame *outermost,
			      const struct tw_longer_frame *around)
{
	c->first = first_ticks(c);
	c->since = around || !outermost ? 0 : outermost->ticks;
}

/*
 * Records the open calls from @innermost outwards and all that is kept, in the order of their times: open calls of which the record is
 * not kept any more are older than all that is.  As record_calls().  May wait: what calls it keeps little on the stack.
 */
static __attribute__((noinline)) void record_kept(struct tw_hit_tls *t, struct tw_longer_frame *innermost)
{
	struct tw_children *c = &t->thread->children;
	struct tw_longer_frame *around, *inner, *frame = turn(t, innermost, &around);
	uint64_t head;

	begin_kept(c, frame, around);
	for (; frame; frame = inner) {
		if (frame->ticks >= c->first) {
			frame->more |= TW_LONGER_RECORDED;
		} else {
			c->left_out -= c->left_out > 0;
			if (describe_call(t, frame))
				count_recorded(t, frame, put(t, frame->place->place_id, TW_EVENT_CALL));
		}
		inner = frame->above;
		frame->above = around;
		around = frame;
	}
	tell_left_out(t);
	while (c->tail != c->head) {
		head = *at(c, c->tail + 1);
		if (take_oldest(t))
			count_kept(t, head, put(t, (uint32_t)head, (enum tw_event_kind)(head >> HEAD_KIND_SHIFT)));
	}
	t->thread->one.stamp = 0;
	empty(c);
}

/* ---- calls ---- */

/*
 * The open calls outwards.  Returns the outermost that is long by now, NULL: none is; sets the time when the next one will be, and
 * drops the root if it is not among them.
 */
static __attribute__((noinline)) struct tw_longer_frame *look(struct tw_hit_tls *t)
{
	struct tw_children *c = &t->thread->children;
	struct tw_longer_frame *due = NULL, *frame;
	uint64_t ticks = tw_clock_ticks(), limit;
	bool is_there = false;

	t->longer = open_from(t, t->longer, ticks);
	if (!has_root(c))
		drop_root(c);
	c->due_ticks = UINT64_MAX;
	for (frame = t->longer; c->root && frame && frame->ticks >= c->root_ticks;
	     frame = open_from(t, frame->above, frame->ticks)) {
		is_there |= frame == c->root;
		limit = limit_of(frame->place);
		if (frame->more & TW_LONGER_WHOLE || limit > UINT64_MAX / 2)
			continue;
		if (ticks - frame->ticks >= limit)
			due = frame;
		else if (frame->ticks + limit < c->due_ticks)
			c->due_ticks = frame->ticks + limit;
	}
	if (!is_there)
		drop_root(c);
	return is_there ? due : NULL;
}

/* All calls in these are recorded from now on. */
static __attribute__((noinline)) void mark_whole(const struct tw_hit_tls *t, const struct tw_longer_frame *due)
{
	for (struct tw_longer_frame *frame = t->longer; frame; frame = frame == due ? NULL : frame->above)
		frame->more |= TW_LONGER_WHOLE;
}

/* Apart, as are its callers from what comes behind: what it calls may wait, and little of the program's stack may be in use then. */
static __attribute__((noinline)) void settle(struct tw_hit_tls *t)
{
	const struct tw_longer_frame *due = look(t);

	if (!due)
		return;
	begin_records(t);
	record_kept(t, t->longer);
	tw_thread_ring_tell_behind(t);
	mark_whole(t, due);
}

void tw_children_settle(void)
{
	settle(&tw_hit_tls);
}

static INLINE bool is_settled(const struct tw_hit_tls *t, const uint64_t *slot, uint64_t ticks)
{
	const struct tw_children *c = &t->thread->children;
	const struct tw_longer_frame *above = t->longer;

	if (!above || !c->root)
		return !above && !c->root;
	return has_root(c) && ticks < c->due_ticks && is_own(t, above) && !is_left(t->thread, above, slot);
}

/* The frame of the call; NULL: its end will not be seen. */
static INLINE struct tw_longer_frame *open_call(struct tw_hit_tls *t, struct tw_place *place, const uint64_t *words,
						uint64_t *slot, uint64_t ticks, bool is_of_all)
{
	/* As in open_frame(): not on the stack. */
	struct tw_longer_frame *frame = (void *)(tw_return_word *)t->thread->callers, *above = t->longer;

	if (tw_unlikely(more_of(place) & TW_LONGER_KEEPS || !tw_returns_is_fast(slot))) {
		open_frame(t, place, words, slot, is_of_all, &t->thread->children.resume_at);
		return t->longer == above ? NULL : t->longer;
	}
	*frame = frame_of(t, place, slot, ticks);
	frame->more |= is_of_all ? TW_LONGER_OF_ALL : 0;
	t->longer = (struct tw_longer_frame *)tw_returns_entry(slot)->words;
	t->thread->children.resume_at = tw_returns_open_fast(slot, (const tw_return_word *)frame, tw_unwind_is_known());
	return t->longer;
}

static INLINE void note_limit(struct tw_children *c, const struct tw_longer_frame *frame)
{
	uint64_t limit = limit_of(frame->place);

	if (limit < c->due_ticks - frame->ticks)
		c->due_ticks = frame->ticks + limit;
}

static __attribute__((noinline)) void keep_call(struct tw_hit_tls *t, struct tw_longer_frame *frame)
{
	struct tw_children *c = &t->thread->children;

	if (!c->root)
		make_root(c, frame);
	note_limit(c, frame);
	t->thread->one.count = t->thread->one.flags = 0;
	if (frame->more & TW_LONGER_KEEPS)
		take_arguments_of(frame);
	keep(t, frame, TW_EVENT_CALL, frame->ticks);
}

/* In a call all calls in which are recorded. */
static __attribute__((noinline)) void make_call(struct tw_hit_tls *t, struct tw_longer_frame *frame)
{
	frame->more |= TW_LONGER_WHOLE;
	begin_records(t);
	if (describe_call(t, frame))
		count_recorded(t, frame, put(t, frame->place->place_id, TW_EVENT_CALL));
	tw_thread_ring_tell_behind(t);
}

/* Of a settled thread.  The address at which it continues, if not as before, is in resume_at then; the record is the last thing that it makes. */
static INLINE void call(struct tw_place *place, const uint64_t *words, uint64_t *slot, uint64_t ticks, bool is_of_all)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	struct tw_children *c = &t->thread->children;
	struct tw_longer_frame *frame;
	const struct tw_longer_frame *above;

	if (!c->root && more_of(place) & TW_LONGER_CHILD_ONLY)
		return;
	frame = open_call(t, place, words, slot, ticks, is_of_all);
	if (!frame)
		return;
	above = c->root ? frame->above : NULL;
	if (tw_unlikely(above && above->more & TW_LONGER_WHOLE && above->ticks >= c->root_ticks)) {
		make_call(t, frame);
	} else if (tw_unlikely(!above || frame->more & TW_LONGER_KEEPS)) {
		keep_call(t, frame);
	} else {
		note_limit(c, frame);
		keep_words(c, frame, TW_EVENT_CALL, frame->ticks, NULL, 0, 0);
	}
}

/* Apart, for the stack, as are the next functions. */
static __attribute__((noinline)) void count_beside(struct tw_hit_tls *t, const struct tw_bp_part *part)
{
	t->thread->children.is_of_all = count(t, part->counter);
}

static __attribute__((noinline)) void settle_beside(const uint64_t *slot)
{
	if (!is_settled(&tw_hit_tls, slot, tw_clock_ticks()))
		settle(&tw_hit_tls);
}

static __attribute__((noinline)) const char *leave_beside(struct tw_hit_tls *t)
{
	const char *resume_at = t->thread->children.resume_at;

	end_beside(t);
	return resume_at;
}

static __attribute__((noinline)) const char *call_beside(struct tw_hit_tls *t)
{
	const struct tw_children *c = &t->thread->children;

	call(c->place, c->call_words, c->slot, tw_clock_ticks(), c->is_of_all);
	return leave_beside(t);
}

/* The calls that it settles may wait, with nothing of its caller's on the stack. */
static __attribute__((noinline)) const char *settle_and_call_beside(struct tw_hit_tls *t)
{
	const struct tw_children *c = &t->thread->children;

	settle_beside(c->slot);
	return is_end_seen(c->place, c->slot) ? call_beside(t) : leave_beside(t);
}

const char *tw_children_enter_beside(struct tw_place *place, const uint64_t *words, uint64_t *slot,
				     const char *resume_at)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	const struct tw_bp_part *part;
	struct tw_children *c;

	if (!begin_beside(t, place, slot, &part))
		return resume_at;
	c = &t->thread->children;
	c->place = place;
	c->call_words = words;
	c->slot = slot;
	c->resume_at = resume_at;
	if (!part)
		return leave_beside(t);
	count_beside(t, part);
	return settle_and_call_beside(t);
}

static INLINE const char *enter(struct tw_place *place, const uint64_t *words, uint64_t *slot, uint64_t ticks)
{
	const char *resume_at;

	tw_hit_tls.thread->children.resume_at = NULL;
	call(place, words, slot, ticks, false);
	resume_at = tw_hit_tls.thread->children.resume_at;
	tw_progress_exit(&tw_hit_tls.thread->reader);
	tw_hit_end(&tw_hit_tls);
	return resume_at;
}

static __attribute__((noinline)) const char *enter_settled(struct tw_place *place, const uint64_t *words,
							   uint64_t *slot)
{
	return enter(place, words, slot, tw_clock_ticks());
}

/* The call of the second is the last thing that it does. */
static __attribute__((noinline)) const char *settle_and_enter(struct tw_place *place, const uint64_t *words,
							      uint64_t *slot)
{
	settle(&tw_hit_tls);
	return enter_settled(place, words, slot);
}

const char *tw_children_enter(struct tw_place *place, const uint64_t *words, uint64_t *slot)
{
	uint64_t ticks = tw_clock_ticks();

	if (tw_unlikely(!is_settled(&tw_hit_tls, slot, ticks)))
		return settle_and_enter(place, words, slot);
	return enter(place, words, slot, ticks);
}

/* ---- ends ---- */

/* Its end decides, and the call is to be recorded. */
static __attribute__((noinline)) bool is_met(struct tw_hit_tls *t, const struct tw_longer_frame *frame, uint64_t ticks,
					     uint64_t value, bool is_exception)
{
	if (frame->more & (TW_LONGER_WHOLE | TW_LONGER_CHILD_ONLY) || !is_traced(t))
		return false;
	return ticks - frame->ticks >= limit_of(frame->place) ||
	       (frame->more & TW_LONGER_OF_END && is_fulfilled(frame, ticks, value, is_exception));
}

enum ending { UNSEEN, KEPT, MADE };

/* In a hit: what to do with the record of an end, after all before it was recorded. */
static INLINE enum ending begin_end(struct tw_hit_tls *t, struct tw_longer_frame *frame, uint64_t ticks, uint64_t value,
				    bool is_exception)
{
	struct tw_children *c = &t->thread->children;
	bool is_in;

	/* A record that was kept for another session, or on a stack that is gone, is nobody's. */
	if (!has_root(c))
		drop_root(c);
	is_in = c->root && frame->ticks >= c->root_ticks;
	begin_records(t);
	/* A record that is kept in a call that is recorded already comes before its end. */
	if (is_met(t, frame, ticks, value, is_exception) ||
	    (is_in && frame != c->root && c->tail != c->head &&
	     (frame->more & (TW_LONGER_RECORDED | TW_LONGER_WHOLE)) == TW_LONGER_RECORDED))
		record_kept(t, frame);
	if (!is_traced(t) || !is_wanted(t))
		return UNSEEN;
	if (frame->more & TW_LONGER_RECORDED)
		return MADE;
	return is_in && frame != c->root && frame->ticks >= first_ticks(c) ? KEPT : UNSEEN;
}

void tw_children_close(struct tw_longer_frame *frame)
{
	struct tw_hit_tls *t = &tw_hit_tls;

	if (t->thread && t->thread->children.root == frame)
		drop_root(&t->thread->children);
	close_frame(frame);
}

/* Enters a hit; false: there is none, or nothing to do in it. */
static bool begin_hit(const struct tw_longer_frame *frame, uint64_t *slot)
{
	const struct tw_hit_tls *t = &tw_hit_tls;

	return t->thread && is_own(t, frame) &&
	       tw_frame_begin(FRAME(slot), frame->more & TW_LONGER_RECORDED ? own_bit() : 0);
}

static __attribute__((noinline)) void describe_end(struct tw_hit_tls *t, const struct tw_longer_frame *frame,
						   uint64_t *slot, uint64_t value)
{
	if (frame->more & TW_LONGER_KEEPS)
		keep_registers(t, frame);
	t->thread->one.flags = 0;
	take_result(t->thread, frame->place, slot, value);
}

static __attribute__((noinline)) void make_end(struct tw_hit_tls *t, const struct tw_longer_frame *frame,
					       uint64_t ticks)
{
	t->thread->one.ticks = t->thread->one.stamp = ticks;
	put(t, frame->place->place_id, TW_EVENT_RETURN_FROM);
	t->thread->one.stamp = 0;
}

static __attribute__((noinline)) void keep_end(struct tw_hit_tls *t, const struct tw_longer_frame *frame,
					       uint64_t ticks)
{
	keep(t, frame, TW_EVENT_RETURN_FROM, ticks);
}

static INLINE void end(struct tw_longer_frame *frame, uint64_t *slot, uint64_t value)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	uint64_t ticks;
	enum ending ending;

	if (!begin_hit(frame, slot)) {
		tw_children_close(frame);
		return;
	}
	/* As in end_kept(). */
	ticks = tw_clock_ticks();
	ending = begin_end(t, frame, ticks, value, false);
	if (ending != UNSEEN)
		describe_end(t, frame, slot, value);
	if (ending == KEPT)
		keep_end(t, frame, ticks);
	else if (ending == MADE)
		make_end(t, frame, ticks);
	tw_thread_ring_tell_behind(t);
	/* In the hit, so that a handler finds it whole. */
	tw_children_close(frame);
	tw_frame_end();
}

void tw_children_end(struct tw_longer_frame *frame, uint64_t *slot, uint64_t value)
{
	end(frame, slot, value);
}

/*
 * The end of a call that is kept, and of the root, if it is certain that they are not to be recorded by it: as tw_longer_return()
 * without a read section.  False: nothing was done.
 */
static INLINE bool end_kept(struct tw_longer_frame *frame, uint64_t *slot, uint64_t value)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	struct tw_children *c;
	uint64_t ticks;
	bool is_kept;

	if (tw_unlikely(!is_own(t, frame) || frame->place->gives || !tw_hit_begin(t, FRAME(slot))))
		return false;
	/* In the hit, since a signal handler may have been there just before: what it kept is older, and it may have recorded all. */
	c = &t->thread->children;
	ticks = tw_clock_ticks();
	is_kept = !(frame->more & (TW_LONGER_RECORDED | TW_LONGER_KEEPS | TW_LONGER_OF_END)) && has_root(c) &&
		  frame->ticks >= c->root_ticks && frame->ticks >= first_ticks(c) &&
		  ticks - frame->ticks < limit_of(frame->place);
	if (tw_likely(is_kept)) {
		if (frame == c->root)
			drop_root(c);
		else
			keep_words(c, frame, TW_EVENT_RETURN_FROM, ticks, &value, 1, 0);
		t->longer = frame->above;
		frame->more = 0;
	}
	tw_hit_end(t);
	return is_kept;
}

static __attribute__((noinline)) uintptr_t return_all(struct tw_return_entry *entry, uint64_t *slot, uint64_t value)
{
	struct tw_longer_frame *frame;

	for (unsigned number = tw_returns_count(entry); number-- > 0;) {
		frame = longer_at(entry, number);
		if (frame)
			end(frame, slot, value);
	}
	tw_returns_close(entry);
	return entry->return_address;
}

uintptr_t tw_children_return(struct tw_return_entry *entry, uint64_t *slot, uint64_t value)
{
	if (tw_likely(tw_returns_count(entry) == 1 && end_kept((struct tw_longer_frame *)entry->words, slot, value))) {
		tw_returns_close(entry);
		return entry->return_address;
	}
	return return_all(entry, slot, value);
}

/* As tw_record_put() lays terms out. */
static void describe_exception(struct tw_hit_tls *t, const char *exception_class, const char *name)
{
	struct tw_record_terms terms = {t->thread, 0, 0, true};
	struct tw_one_hit *one = &t->thread->one;
	uint64_t *words = t->thread->arguments;

	tw_record_atoms(&terms, exception_class, name);
	one->count = 1 + (terms.bytes + 7) / 8;
	one->flags = TW_EVENT_FLAG_TERMS;
	one->words = words;
	words[one->count - 1] = 0;
	words[0] = terms.count | (uint64_t)terms.bytes << 32;
	__builtin_memcpy(words + 1, t->thread->terms, terms.bytes);
}

bool tw_children_throw(struct tw_longer_frame *frame, uint64_t *slot, const char *exception_class, const char *name)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	uint64_t ticks;
	enum ending ending;

	if (!begin_hit(frame, slot))
		return false;
	ticks = tw_clock_ticks();
	ending = begin_end(t, frame, ticks, 0, true);
	if (ending == KEPT) {
		describe_exception(t, exception_class, name);
		keep(t, frame, TW_EVENT_EXCEPTION_FROM, ticks);
	}
	tw_thread_ring_tell_behind(t);
	tw_frame_end();
	return ending == MADE;
}
