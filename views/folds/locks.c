/* SPDX-License-Identifier: Apache-2.0 */
/* locks.c - waits for locks, and the threads that held them meanwhile: one pass over the calls, in order of time. */
#include "views/folds/locks.h"
#include "views/names/missing.h"
#include "views/names/threads.h"
#include "views/folds/pass.h"
#include "views/folds/lock_calls.h"
#include "views/output/output.h"
#include "base/map.h"
#include "base/grow.h"

#include "tracewheel/error.h"

#include <stdlib.h>

static bool wants_place(void *context, uint32_t image, const struct tw_capture_place *place)
{
	(void)context;
	(void)image;
	return tw_lock_place_does(place) != TW_LOCK_DOES_NOTHING;
}

/* ---- locks and threads ---- */

struct tw_lock_wait {
	uint64_t begin_ns, own_ns;
	uint64_t since_ns;	   /* up to here its time is attributed to holders */
	uint64_t blocked_ns;	   /* time in which another thread held the lock */
	uint64_t part_ns, most_ns; /* of the last holder, and of the one with most of it */
	uint32_t part_by, most_by;
	uint64_t number;
	uint32_t lock;
	uint8_t does;
	struct tw_lock_wait *next, *before; /* on the same lock */
};

/* A call inside another (of a signal handler) is not counted. */
struct tw_lock_thread {
	struct tw_lock_wait wait;
	uint32_t mutex; /* for a wait on a condition */
	uint32_t place; /* the call in progress */
	uint32_t image;
	bool is_open, is_counted; /* a call is open; its return matters */
	uint32_t last;		  /* the lock of the last call: a stack that follows gives its site */
	bool wants_site;
	uint32_t gaps; /* so far */
	uint64_t own_from_ns, own_to_ns;
};

struct tw_lock_image {
	uint32_t gaps;	   /* that have begun */
	uint64_t until_ns; /* the latest end of these */
};

/* The lock at an address; NULL: there are too many. */
static struct tw_lock_row *find_lock(struct tw_locks *locks, uint32_t image, uint64_t address, unsigned kind)
{
	uint64_t key = tw_hash_word(address, (uint64_t)image << 8 | kind);
	struct tw_map_slot *slot = tw_map_slot(&locks->by_address, key, i,
					       locks->locks[i].address == address && locks->locks[i].image == image &&
						       locks->locks[i].kind == kind);
	struct tw_lock_row *lock = slot ? &locks->locks[slot->after - 1] : NULL;
	if (lock && !lock->is_ended)
		return lock;
	if (lock && !lock->waits && !lock->waiting) {
		/* No thread ever waited for the previous lock here: it need not be kept. */
		*lock = (struct tw_lock_row){.number = lock->number};
	} else {
		if (locks->count >= TW_LOCKS_MAX) {
			locks->are_full = true;
			return NULL;
		}
		if (!tw_grow(locks->locks, locks->count, locks->capacity) ||
		    (!slot && !tw_map_add(&locks->by_address, key, locks->count))) {
			locks->has_no_memory = true;
			return NULL;
		}
		/* If several locks had one address, the last is found. */
		if (slot)
			slot->after = locks->count + 1;
		lock = &locks->locks[locks->count];
		*lock = (struct tw_lock_row){.number = locks->count++};
	}
	lock->address = address;
	lock->image = image;
	lock->kind = (uint8_t)kind;
	lock->writer.thread = lock->signaller = TW_LOCK_NONE;
	lock->gaps = locks->images[image].gaps;
	return lock;
}

/* ---- pairs ---- */

static void add_pair(struct tw_locks *locks, struct tw_lock_row *lock, uint32_t waiter, uint32_t holder, uint64_t wait,
		     uint64_t ns)
{
	uint32_t at = lock->pairs;
	while (at && (locks->pairs[at - 1].waiter != waiter || locks->pairs[at - 1].holder != holder))
		at = locks->pairs[at - 1].next;
	if (!at) {
		if (locks->pair_count >= TW_LOCK_PAIRS_MAX ||
		    !tw_grow(locks->pairs, locks->pair_count, locks->pair_capacity)) {
			locks->are_full = true;
			return;
		}
		locks->pairs[locks->pair_count] = (struct tw_lock_pair){.lock = lock->number,
									.waiter = waiter,
									.holder = holder,
									.next = lock->pairs};
		at = lock->pairs = ++locks->pair_count;
	}
	struct tw_lock_pair *pair = &locks->pairs[at - 1];
	pair->times += pair->last != wait;
	pair->last = wait;
	pair->ns += ns;
	pair->max_ns = ns > pair->max_ns ? ns : pair->max_ns;
}

/* ---- holders ---- */

static bool is_still_known(const struct tw_locks *locks, struct tw_lock_holder holder)
{
	return holder.thread != TW_LOCK_NONE && locks->threads[holder.thread].gaps == holder.gaps;
}

/* Drops the holders that had a gap since: they may have released the lock in it. */
static void forget_unknown(const struct tw_locks *locks, struct tw_lock_row *lock)
{
	uint32_t kept = 0;
	if (lock->gaps == locks->images[lock->image].gaps)
		return;
	lock->gaps = locks->images[lock->image].gaps;
	if (lock->is_handed || !is_still_known(locks, lock->writer)) {
		lock->writer.thread = TW_LOCK_NONE;
		lock->depth = 0;
	}
	for (uint32_t i = 0; i < lock->known_readers; i++) {
		if (!lock->is_handed && is_still_known(locks, lock->readers[i]))
			lock->readers[kept++] = lock->readers[i];
	}
	lock->reader_count = lock->known_readers = kept;
}

/* The thread for which such a call waits: readers do not wait for readers. */
static uint32_t holder_for(const struct tw_lock_row *lock, uint8_t does)
{
	if (lock->writer.thread != TW_LOCK_NONE)
		return lock->writer.thread;
	return does != TW_LOCK_DOES_READ && lock->known_readers ? lock->readers[0].thread : TW_LOCK_NONE;
}

/* Subtracts the tracer's own time in a call from its wait. */
static uint64_t without_own(const struct tw_lock_thread *thread, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t from = thread->own_from_ns > from_ns ? thread->own_from_ns : from_ns;
	uint64_t to = thread->own_to_ns < to_ns ? thread->own_to_ns : to_ns;
	return to_ns - from_ns - (to > from ? to - from : 0);
}

static void note_holder(struct tw_lock_wait *wait, uint32_t holder, uint64_t ns)
{
	wait->part_ns = wait->part_by == holder ? wait->part_ns + ns : ns;
	wait->part_by = holder;
	if (wait->part_ns > wait->most_ns) {
		wait->most_ns = wait->part_ns;
		wait->most_by = holder;
	}
}

/* Attributes the time up to now, during which the holder did not change, to the threads that wait. */
static void charge_waits(struct tw_locks *locks, struct tw_lock_row *lock, uint64_t now_ns)
{
	forget_unknown(locks, lock);
	for (struct tw_lock_wait *wait = lock->waiting; wait; wait = wait->next) {
		uint32_t holder = holder_for(lock, wait->does);
		uint32_t waiter = (uint32_t)((struct tw_lock_thread *)(void *)wait - locks->threads);
		if (holder != TW_LOCK_NONE && holder != waiter && now_ns > wait->since_ns) {
			uint64_t ns = without_own(&locks->threads[waiter], wait->since_ns, now_ns);
			/* It may have been free before the wait began. */
			if (wait->since_ns == wait->begin_ns && now_ns - wait->begin_ns <= TW_LOCK_SKEW_NS)
				ns = 0;
			wait->blocked_ns += ns;
			note_holder(wait, holder, ns);
			if (ns)
				add_pair(locks, lock, waiter, holder, wait->number, ns);
			if (ns && locks->on.was_held)
				locks->on.was_held(locks->on.context,
						   &(struct tw_lock_waited){lock, waiter, holder, wait->begin_ns, ns});
		}
		wait->since_ns = now_ns;
	}
}

static void acquire(struct tw_locks *locks, struct tw_lock_row *lock, uint32_t thread, bool is_reader, uint64_t now_ns)
{
	const struct tw_lock_holder holder = {thread, locks->threads[thread].gaps};
	charge_waits(locks, lock, now_ns);
	lock->taken++;
	if (locks->on.took)
		locks->on.took(locks->on.context, lock, thread);
	/* In a gap another thread may release it unseen. */
	if (lock->is_handed && now_ns < locks->images[lock->image].until_ns)
		return;
	if (is_reader) {
		if (lock->reader_count == 0 && lock->writer.thread == TW_LOCK_NONE)
			lock->since_ns = now_ns;
		if (lock->known_readers < TW_LOCK_READERS)
			lock->readers[lock->known_readers++] = holder;
		lock->reader_count++;
		return;
	}
	if (lock->writer.thread == thread) {
		lock->depth++;
		return;
	}
	lock->writer = holder;
	lock->depth = 1;
	lock->reader_count = lock->known_readers = 0;
	lock->since_ns = now_ns;
}

static void end_hold(struct tw_lock_row *lock, uint64_t now_ns)
{
	uint64_t ns = now_ns > lock->since_ns ? now_ns - lock->since_ns : 0;
	lock->held_ns += ns;
	lock->held_max_ns = ns > lock->held_max_ns ? ns : lock->held_max_ns;
}

/*
 * is_whole: releases the lock however often it was taken; a wait on a condition gives up a recursive mutex as a
 * whole.
 */
static uint32_t let_go(struct tw_locks *locks, struct tw_lock_row *lock, uint32_t thread, bool is_whole,
		       uint64_t now_ns)
{
	uint32_t depth, i = 0;
	charge_waits(locks, lock, now_ns);
	depth = lock->depth;
	if (lock->writer.thread != TW_LOCK_NONE) {
		/* Another thread may release it too: a mutex used as a signal. */
		lock->is_handed |= lock->writer.thread != thread;
		if (lock->writer.thread == thread && lock->depth > 1 && !is_whole) {
			lock->depth--;
			return depth;
		}
		end_hold(lock, now_ns);
		lock->writer.thread = TW_LOCK_NONE;
		lock->depth = 0;
		return depth;
	}
	if (!lock->reader_count)
		return 1;
	while (i < lock->known_readers && lock->readers[i].thread != thread)
		i++;
	/* A reader that is only counted releases it. */
	if (i == lock->known_readers && lock->reader_count == lock->known_readers)
		return 1;
	lock->known_readers -= i < lock->known_readers;
	for (; i < lock->known_readers; i++)
		lock->readers[i] = lock->readers[i + 1];
	if (--lock->reader_count == 0)
		end_hold(lock, now_ns);
	return 1;
}

/* ---- calls ---- */

static uint32_t thread_of(const struct tw_locks *locks, const struct tw_capture_event *event)
{
	const struct tw_capture_stream *stream = tw_capture_stream(locks->capture, event->stream);
	return stream && stream->thread < locks->thread_count ? stream->thread : TW_LOCK_NONE;
}

/* Can the call stand in the lock's list of waits? A condition has none, and a try does not wait. */
static bool waits_for_holder(uint8_t does)
{
	return does == TW_LOCK_DOES_LOCK || does == TW_LOCK_DOES_READ;
}

static void begin_wait(struct tw_locks *locks, struct tw_lock_row *lock, struct tw_lock_thread *thread, uint8_t does,
		       uint64_t now_ns)
{
	struct tw_lock_wait *wait = &thread->wait;
	bool is_listed = waits_for_holder(does);
	if (is_listed)
		charge_waits(locks, lock, now_ns);
	*wait = (struct tw_lock_wait){.begin_ns = now_ns,
				      .since_ns = now_ns,
				      .part_by = TW_LOCK_NONE,
				      .most_by = TW_LOCK_NONE,
				      .number = ++locks->wait_count,
				      .lock = lock->number,
				      .does = does,
				      .next = is_listed ? lock->waiting : NULL};
	if (is_listed) {
		if (lock->waiting)
			lock->waiting->before = wait;
		lock->waiting = wait;
	}
	thread->is_counted = true;
}

static void leave_waiting(struct tw_lock_row *lock, struct tw_lock_wait *wait)
{
	if (!waits_for_holder(wait->does))
		return;
	if (wait->before)
		wait->before->next = wait->next;
	else
		lock->waiting = wait->next;
	if (wait->next)
		wait->next->before = wait->before;
}

static void drop_open(struct tw_locks *locks, struct tw_lock_thread *thread)
{
	if (thread->is_counted) {
		leave_waiting(&locks->locks[thread->wait.lock], &thread->wait);
		locks->dropped++;
	}
	thread->is_counted = thread->is_open = false;
}

static void on_call(struct tw_locks *locks, const struct tw_capture_event *event, uint8_t what)
{
	uint32_t number = thread_of(locks, event);
	unsigned kind = what >> TW_LOCK_KIND_SHIFT;
	uint8_t does = what & ((1u << TW_LOCK_KIND_SHIFT) - 1);
	struct tw_lock_thread *thread;
	if (number == TW_LOCK_NONE)
		return;
	thread = &locks->threads[number];
	thread->wants_site = false;
	locks->calls++;
	if (event->payload_words < 1 || (event->flags & TW_CAPTURE_FLAG_TERMS) ||
	    (does == TW_LOCK_DOES_WAIT && event->payload_words < 2)) {
		locks->wordless++;
		return;
	}
	/* A call that did not return was left by an exception, or its return was lost. */
	drop_open(locks, thread);
	struct tw_lock_row *lock = find_lock(locks, event->image, event->payload[0], kind), *mutex;
	if (!lock)
		return;
	if (does == TW_LOCK_DOES_INIT && (lock->taken || lock->site)) {
		lock->is_ended = true;
		lock = find_lock(locks, event->image, event->payload[0], kind);
		if (!lock)
			return;
	}
	thread->last = lock->number;
	thread->wants_site = !lock->site;
	lock->is_made_there |= does == TW_LOCK_DOES_INIT;
	thread->is_open = true;
	thread->place = event->id;
	thread->image = event->image;
	switch (does) {
	case TW_LOCK_DOES_LOCK:
	case TW_LOCK_DOES_READ:
	case TW_LOCK_DOES_TRY:
	case TW_LOCK_DOES_TRY_READ: begin_wait(locks, lock, thread, does, event->time_ns); break;
	case TW_LOCK_DOES_UNLOCK: let_go(locks, lock, number, false, event->time_ns); break;
	case TW_LOCK_DOES_SIGNAL:
		lock->signals++;
		lock->signaller = number;
		lock->signalled_ns = event->time_ns;
		if (locks->on.took)
			locks->on.took(locks->on.context, lock, number);
		break;
	case TW_LOCK_DOES_DESTROY: lock->is_ended = true; break;
	case TW_LOCK_DOES_WAIT:
		begin_wait(locks, lock, thread, does, event->time_ns);
		mutex = find_lock(locks, event->image, event->payload[1], TW_LOCK_MUTEX);
		thread->mutex = mutex ? mutex->number : TW_LOCK_NONE;
		if (mutex)
			let_go(locks, mutex, number, true, event->time_ns);
		break;
	default: break;
	}
}

static void add_wait(struct tw_locks *locks, struct tw_lock_row *lock, uint32_t waiter, uint32_t by, uint64_t ns)
{
	uint64_t at_ns = locks->threads[waiter].wait.begin_ns;
	if (locks->on.waited)
		locks->on.waited(locks->on.context, &(struct tw_lock_waited){lock, waiter, by, at_ns, ns});
	lock->waits++;
	lock->wait_ns += ns;
	if (ns > lock->wait_max_ns) {
		lock->wait_max_ns = ns;
		lock->wait_max_at_ns = at_ns;
	}
}

static void end_condition(struct tw_locks *locks, struct tw_lock_row *lock, struct tw_lock_thread *thread,
			  uint32_t number, uint64_t value, uint64_t now_ns)
{
	const struct tw_lock_wait *wait = &thread->wait;
	uint64_t ns = without_own(thread, wait->begin_ns, now_ns);
	lock->timeouts += (uint32_t)value == 110;
	/* A later signal may lie in a gap. */
	bool is_known = lock->signaller != TW_LOCK_NONE && lock->signalled_ns >= wait->begin_ns &&
			lock->signalled_ns > locks->images[lock->image].until_ns;
	uint32_t by = (uint32_t)value != 110 && is_known ? lock->signaller : TW_LOCK_NONE;
	add_wait(locks, lock, number, by, ns);
	add_pair(locks, lock, number, by, wait->number, ns);
	if (thread->mutex != TW_LOCK_NONE)
		acquire(locks, &locks->locks[thread->mutex], number, false, now_ns);
}

static void on_return(struct tw_locks *locks, const struct tw_capture_event *event, bool is_exception)
{
	uint32_t number = thread_of(locks, event);
	struct tw_lock_thread *thread = number == TW_LOCK_NONE ? NULL : &locks->threads[number];
	if (!thread || !thread->is_open || thread->place != event->id || thread->image != event->image)
		return;
	thread->is_open = false;
	if (!thread->is_counted)
		return;
	thread->is_counted = false;
	struct tw_lock_wait *wait = &thread->wait;
	struct tw_lock_row *lock = &locks->locks[wait->lock];
	bool has_value = event->payload_words && !is_exception;
	uint64_t value = has_value ? event->payload[0] : 0, ns;
	locks->wordless += !has_value && !is_exception;
	if (wait->does == TW_LOCK_DOES_WAIT) {
		end_condition(locks, lock, thread, number, value, event->time_ns);
		return;
	}
	charge_waits(locks, lock, event->time_ns);
	leave_waiting(lock, wait);
	ns = event->time_ns > wait->begin_ns ? without_own(thread, wait->begin_ns, event->time_ns) : 0;
	/* EOWNERDEAD: the lock was taken nevertheless. */
	bool is_got = !is_exception && ((uint32_t)value == 0 || (uint32_t)value == 130);
	if (wait->blocked_ns) {
		add_wait(locks, lock, number, wait->most_by, ns);
	} else if (ns >= TW_LOCK_LONG_NS) {
		lock->slow++;
		lock->slow_ns += ns;
	}
	if (!is_got)
		lock->busy++;
	else
		acquire(locks, lock, number, wait->does == TW_LOCK_DOES_READ || wait->does == TW_LOCK_DOES_TRY_READ,
			event->time_ns);
}

/* ---- gaps ---- */

static void begin_gaps(struct tw_locks *locks, uint64_t until_ns)
{
	const struct tw_gap *gap;
	while ((gap = tw_gaps_begun(&locks->losses, until_ns))) {
		struct tw_lock_image *image = &locks->images[gap->image];
		image->gaps++;
		if (image->until_ns < gap->last_ns)
			image->until_ns = gap->last_ns;
		if (gap->thread == TW_LOCK_NONE)
			continue;
		locks->threads[gap->thread].gaps++;
		if (locks->threads[gap->thread].is_open)
			drop_open(locks, &locks->threads[gap->thread]);
	}
}

static void count_loss(struct tw_locks *locks, const struct tw_capture_event *event)
{
	struct tw_missing_loss loss;
	tw_missing_loss(locks->capture, event, &loss);
	locks->gaps++;
	locks->lost += loss.sum;
	locks->overwritten += loss.overwritten;
}

static int see(void *self, const struct tw_capture_event *event)
{
	struct tw_locks *locks = self;
	uint8_t what = tw_marks_of(&locks->places, event);
	uint32_t number;
	locks->event = event;
	begin_gaps(locks, event->time_ns - !!event->time_ns);
	switch (event->kind) {
	case TW_CAPTURE_LOSS: count_loss(locks, event); break;
	case TW_CAPTURE_CALL:
		if (what)
			on_call(locks, event, what);
		break;
	case TW_CAPTURE_STACK:
		number = thread_of(locks, event);
		if (what && number != TW_LOCK_NONE && locks->threads[number].wants_site && event->payload_words) {
			locks->locks[locks->threads[number].last].site = event->payload[0];
			locks->threads[number].wants_site = false;
		}
		break;
	case TW_CAPTURE_RETURN_FROM:
	case TW_CAPTURE_EXCEPTION_FROM:
		if (what)
			on_return(locks, event, event->kind == TW_CAPTURE_EXCEPTION_FROM);
		break;
	case TW_CAPTURE_OWN_TIME:
		number = thread_of(locks, event);
		if (number != TW_LOCK_NONE) {
			locks->threads[number].own_from_ns = event->time_ns;
			locks->threads[number].own_to_ns = event->time_ns + tw_capture_own_ns(locks->capture, event);
		}
		break;
	default: break;
	}
	begin_gaps(locks, event->time_ns);
	return locks->has_no_memory ? TW_ENOMEM : 0;
}

/* ---- the pass ---- */

static uint8_t mark(const void *context, uint32_t image, const struct tw_capture_place *place)
{
	(void)context;
	return tw_lock_place_does(place);
}

static bool init(struct tw_locks *locks, struct tw_capture *capture)
{
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	*locks = (struct tw_locks){.capture = capture, .thread_count = tw_thread_count(capture)};
	locks->threads = calloc(locks->thread_count + (size_t)1, sizeof *locks->threads);
	locks->images = calloc(info.images + (size_t)1, sizeof *locks->images);
	return locks->threads && locks->images && tw_marks_make(&locks->places, capture, mark, NULL);
}

int tw_locks_begin(struct tw_locks *locks, struct tw_capture *capture, const struct tw_capture_filter *selected,
		   struct tw_fold *fold)
{
	*fold = (struct tw_fold){.self = locks, .filter = *selected, .see = see};
	if (!init(locks, capture))
		return TW_ENOMEM;
	fold->filter.wants_place = wants_place;
	fold->filter.kinds = UINT64_C(1) << TW_CAPTURE_CALL | UINT64_C(1) << TW_CAPTURE_RETURN_FROM |
			     UINT64_C(1) << TW_CAPTURE_EXCEPTION_FROM | UINT64_C(1) << TW_CAPTURE_STACK;
	fold->filter.wants_own_time = true;
	return tw_gaps_find(&locks->losses, capture, selected);
}

void tw_locks_end(struct tw_locks *locks)
{
	for (uint32_t i = 0; i < locks->thread_count; i++)
		locks->dropped += locks->threads[i].is_counted;
}

int tw_locks_make(struct tw_locks *locks, struct tw_capture *capture, const struct tw_capture_filter *selected)
{
	struct tw_fold fold;
	int error = tw_locks_begin(locks, capture, selected, &fold);
	if (!error)
		error = tw_pass_one(capture, &fold, NULL);
	if (!error)
		tw_locks_end(locks);
	return error;
}

void tw_locks_free(struct tw_locks *locks)
{
	tw_marks_free(&locks->places);
	free(locks->images);
	tw_gaps_free(&locks->losses);
	free(locks->threads);
	free(locks->locks);
	tw_map_fini(&locks->by_address);
	free(locks->pairs);
	*locks = (struct tw_locks){0};
}

const char *tw_lock_kind_name(unsigned kind)
{
	static const char *const names[TW_LOCK_KINDS] = {"mutex", "rwlock", "condition"};
	return kind < TW_LOCK_KINDS ? names[kind] : "lock";
}
