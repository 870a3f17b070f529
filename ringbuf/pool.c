/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c - the member's rings: claimed, cut from the image's file, grown, given back.
 *
 * The file's next ring begins at the anchor, of which at least one page is mapped. mremap() with an old size of 0 maps
 * the same page of the file again together with the pages after it: a ring, the next anchor, and address space for some
 * more small rings.  Thus little more is mapped than the rings that were cut, and neither path nor descriptor is
 * needed.
 *
 * A thread's first ring has memory for a few records at first and gets more as it fills.
 *
 * The rings of all images together stay below the cap.  Larger rings may use three quarters of it, and each at most
 * half of what is left of that; the last quarter is reserved for the first rings of further threads.  The first ring of
 * a process may exceed the cap, so that each of many processes is recorded: 544 MiB for TW_RS_IMAGES_MAX of them.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "ringbuf/inside.h"

#include <errno.h>
#include <string.h>

bool tw_rs_is_own_process(const struct tw_rs *rs)
{
	/* A vfork child shares its parent's memory, but a ring must end with the thread that owns it. */
	return tw_sys_process_id() == rs->own.process_id;
}

/* ---- cutting, under the lock ---- */

enum need { NEED_FIRST, NEED_GROWTH, NEED_ANY };

static bool take_bytes(struct tw_rs *rs, uint64_t bytes, enum need need)
{
	bool is_growth = need == NEED_GROWTH;
	uint64_t cap = rs->config.cap_bytes, limit = is_growth ? cap - cap / 4 : cap;
	/* RELAXED rs.used: a sum that limits memory; nothing is read through it. */
	uint64_t used = tw_fetch_add_relaxed(&rs->control->used_bytes, bytes);

	if (need == NEED_ANY)
		return true;
	if (used <= limit && bytes <= limit - used && (!is_growth || bytes <= (limit - used) / 2))
		return true;
	/* RELAXED rs.used: as above. */
	tw_fetch_add_relaxed(&rs->control->used_bytes, UINT64_C(0) - bytes);
	return false;
}

/* Maps what follows the anchor in the file again, between a reserved page and a growing one; NULL: no address space. */
static uint8_t *map_piece(uint8_t *anchor, uint64_t bytes)
{
	uint8_t *piece = tw_sys_reserve(bytes + 2 * TW_PAGE_BYTES), *at = piece + TW_PAGE_BYTES;

	if (!piece)
		return NULL;
	if (tw_sys_map_again(anchor, at, bytes) < 0) {
		tw_sys_unmap(piece, bytes + 2 * TW_PAGE_BYTES);
		return NULL;
	}
	tw_sys_keep_from_children(at, bytes);
	tw_sys_map_growing(at + bytes);
	return piece;
}

static uint64_t bytes_ahead(const struct tw_rs *rs)
{
	uint64_t ring_bytes = tw_rs_first_bytes(&rs->config) + TW_PAGE_BYTES, most = TW_RS_AHEAD_BYTES_MAX / ring_bytes;
	/* RELAXED rs.cut: under the lock. */
	uint64_t count = tw_rs_rings_ahead(tw_load_relaxed(&rs->own.ring_count));

	return (count < most ? count : most) * ring_bytes;
}

/* Maps at least this much after the anchor, and rings ahead if the address space suffices. */
static bool map_further(struct tw_rs *rs, uint64_t bytes)
{
	struct tw_rs_own *own = &rs->own;
	uint64_t before_bytes = own->anchor_bytes, ahead = bytes_ahead(rs);
	uint8_t *before = own->anchor, *piece = map_piece(before, bytes + ahead);

	if (!piece && ahead)
		piece = map_piece(before, bytes + (ahead = 0));
	if (!piece)
		return false;
	/* In this order: a child forked at this point can still map over the anchor. */
	own->anchor_bytes = bytes + ahead;
	own->anchor = piece + TW_PAGE_BYTES;
	tw_compiler_barrier();
	/* The rings below stay mapped; in children, the page of the old anchor grows downwards from here on. */
	if (before != own->first_piece + TW_RS_FIRST_ANCHOR_AT) {
		tw_sys_map_growing(before);
		tw_sys_unmap(before + TW_PAGE_BYTES, before_bytes);
	}
	return true;
}

static void *map_next(struct tw_rs *rs, size_t bytes)
{
	struct tw_rs_own *own = &rs->own;
	uint8_t *at;

	if (!rs->config.is_anonymous && bytes + TW_PAGE_BYTES > own->anchor_bytes &&
	    !map_further(rs, bytes + TW_PAGE_BYTES))
		return NULL;
	at = own->anchor;
	own->anchor_bytes -= bytes;
	own->anchor += bytes;
	return at;
}

/* The table of rings gets its memory page by page. */
static bool is_entry_present(const struct tw_rs *rs, uint32_t index)
{
	uintptr_t entry = (uintptr_t)&rs->own.head->rings[index], page = entry & ~(uintptr_t)(TW_PAGE_BYTES - 1);

	return (index && entry - page >= sizeof(struct tw_rs_ring)) ||
	       tw_sys_populate_write((void *)page, TW_PAGE_BYTES) != -EFAULT;
}

/* Cuts a new ring, ABSENT: without memory so far.  TW_RS_NONE: the cap, the table or the address space is exhausted. */
static uint32_t cut(struct tw_rs *rs, uint64_t data_bytes, enum need need)
{
	struct tw_rs_own *own = &rs->own;
	uint64_t bytes = data_bytes + TW_PAGE_BYTES;
	/* RELAXED rs.cut: under the lock. */
	uint32_t index = tw_load_relaxed(&own->ring_count);
	uint64_t at = own->cut_bytes;
	struct tw_rs_ring *ring;

	if (index >= TW_RS_IMAGE_RINGS_MAX || !is_entry_present(rs, index) ||
	    at + bytes > TW_RS_IMAGE_RINGS_BYTES(&rs->config) || !take_bytes(rs, bytes, need))
		return TW_RS_NONE;
	own->rings[index] = map_next(rs, (size_t)bytes);
	if (!own->rings[index]) {
		/* RELAXED rs.used: as in take_bytes(). */
		tw_fetch_add_relaxed(&rs->control->used_bytes, UINT64_C(0) - bytes);
		return TW_RS_NONE;
	}
	ring = &own->head->rings[index];
	own->ring_bytes[index] = data_bytes;
	/* RELAXED rs.entry: published by ring_count. */
	tw_store_relaxed(&ring->offset_pages, (uint32_t)((TW_RS_RINGS_AT + at) / TW_PAGE_BYTES));
	/* RELAXED rs.entry: as above. */
	tw_store_relaxed(&ring->data_pages, (uint32_t)(data_bytes / TW_PAGE_BYTES));
	own->cut_bytes = at + bytes;
	/* RELAXED rs.cut: the owner reads it as a hint. */
	tw_store_relaxed(&own->head->cut_bytes, at + bytes);
	/* PAIR rs.ring_count: release; acquire in tw_rs_populate_own(). */
	tw_store_release(&own->ring_count, index + 1);
	/* PAIR rs.ring_count: release; acquire in scan_table(). */
	tw_store_release(&own->head->ring_count, index + 1);
	return index;
}

/* A ring of the image of at least this size that is drained, or was cut but got no memory. */
static uint32_t find_free(const struct tw_rs *rs, uint64_t data_bytes)
{
	struct tw_rs_image_head *head = rs->own.head;
	/* RELAXED rs.cut: under the lock. */
	uint32_t count = tw_load_relaxed(&rs->own.ring_count);

	for (uint32_t i = 0; i < count; i++) {
		/* PAIR rs.state: acquire; release in tw_rs_ring_recycle().  The ring is drained and empty. */
		uint32_t state = tw_load_acquire(&head->rings[i].state) & 0xff;

		if ((state == TW_RB_READY || state == TW_RB_ABSENT) && rs->own.rings[i] &&
		    rs->own.ring_bytes[i] >= data_bytes)
			return i;
	}
	return TW_RS_NONE;
}

static void set_state(struct tw_rs *rs, uint32_t index, uint32_t word)
{
	/* PAIR rs.state: release; acquire in tw_rs_ring_state().  The ring's owner is visible with LIVE. */
	tw_store_release(&rs->own.head->rings[index].state, word);
}

static uint64_t present_bytes(const struct tw_rs *rs, uint32_t index)
{
	/* PAIR rs.present: acquire; release in tw_rs_raise_present(). */
	return (uint64_t)tw_load_acquire(&rs->own.head->rings[index].present_pages) * TW_PAGE_BYTES;
}

/*
 * Allocates memory for the first wanted_bytes of the data.  Anonymous memory is allocated on first touch: there no file
 * system can be full.
 */
static bool populate(const struct tw_rs *rs, uint32_t index, uint64_t wanted_bytes)
{
	uint8_t *from = (uint8_t *)rs->own.rings[index];
	uint64_t data_bytes = rs->own.ring_bytes[index], has_bytes = present_bytes(rs, index), bytes;

	if (wanted_bytes > data_bytes)
		wanted_bytes = data_bytes;
	if (has_bytes >= wanted_bytes)
		return true;
	bytes = wanted_bytes - has_bytes + (has_bytes ? 0 : TW_PAGE_BYTES);
	if (has_bytes)
		from += TW_PAGE_BYTES + has_bytes;
	if (tw_sys_populate_write(from, bytes) == -EFAULT)
		return false;
	tw_rs_raise_present(&rs->own.head->rings[index], rs->config.is_anonymous ? data_bytes : wanted_bytes);
	return true;
}

/* Takes an empty ring for this thread, CLAIMED, with memory for wanted_bytes; TW_RS_NONE: none. */
static uint32_t take(struct tw_rs *rs, uint64_t data_bytes, enum need need, uint64_t wanted_bytes)
{
	struct tw_rb_shared *shared;
	uint32_t index;
	bool is_new = false;

	tw_quiet_lock(&rs->own.cutting);
	index = find_free(rs, data_bytes);
	if (index == TW_RS_NONE) {
		index = cut(rs, data_bytes, need);
		is_new = true;
	} else {
		/* RELAXED rs.scan: under the lock, and the owner has released the ring. */
		is_new = (tw_load_relaxed(&rs->own.head->rings[index].state) & 0xff) == TW_RB_ABSENT;
	}
	if (index != TW_RS_NONE)
		set_state(rs, index, tw_rs_ring_word(TW_RB_CLAIMED, 0));
	tw_quiet_unlock(&rs->own.cutting);
	if (index == TW_RS_NONE)
		return index;
	if (!populate(rs, index, wanted_bytes)) {
		set_state(rs, index, tw_rs_ring_word(is_new ? TW_RB_ABSENT : TW_RB_READY, 0));
		return TW_RS_NONE;
	}
	shared = rs->own.rings[index];
	/* Written again after a stray write of the program: the producer reads its mask and index from here. */
	if (is_new || shared->data_bytes != rs->own.ring_bytes[index] || shared->ring_index != index)
		tw_rb_shared_init(shared, index, rs->own.ring_bytes[index]);
	return index;
}

/* ---- claiming ---- */

static void set_growth(const struct tw_rs *rs, struct tw_rb_producer *producer)
{
	uint64_t bytes = (producer->mask + 1) * TW_RS_GROWTH;

	if (bytes > rs->config.ring_bytes)
		bytes = rs->config.ring_bytes;
	if (bytes <= producer->mask + 1 || rs->config.has_fixed_rings || rs->config.is_anonymous)
		bytes = 0;
	producer->growth_bytes = bytes;
	producer->growth_after_ticks = producer->wait_after_ticks = 0;
}

static void write_claim(struct tw_rs *rs, struct tw_rb_shared *shared, const struct tw_rs_claim *claim)
{
	/* RELAXED rs.lease: only its being different matters. */
	uint32_t number = tw_fetch_add_relaxed(&rs->own.next_ring_lease, 1) + 1;

	shared->lease = rs->own.lease << 32 | number;
	shared->first_ticks = tw_clock_ticks();
	shared->thread_start_ticks = claim->thread_start_ticks;
	shared->thread_id = tw_sys_thread_id();
	shared->session_index = claim->session_index;
	shared->scheduler_id = claim->scheduler_id;
	shared->tracee_id = claim->tracee_id;
	shared->is_own_tracee = claim->is_own_tracee;
	/* RELAXED rb.waiting_ticks: before the ring is LIVE (PAIR rs.state). */
	tw_store_relaxed(&shared->waiting_ticks, 0);
	tw_sys_thread_name(shared->thread_name);
}

/* Fixed rings are made smaller as the cap is approached. */
static uint32_t take_first(struct tw_rs *rs, bool may_pass_cap)
{
	uint64_t bytes = tw_rs_first_bytes(&rs->config);
	/* RELAXED rs.cut: a hint. */
	bool is_first = tw_load_relaxed(&rs->own.ring_count) == 0;
	uint32_t index;

	do
		index = take(rs, bytes, bytes > TW_RS_FIRST_RING_BYTES && !is_first ? NEED_GROWTH : NEED_FIRST,
			     TW_RS_PRESENT_BYTES);
	while (index == TW_RS_NONE && (bytes /= 2) >= TW_RS_FIRST_RING_BYTES);
	/*
	 * The first ring of a process may exceed the cap: of 4,000 processes at once, the last would wait for others to
	 * end, or lose their events.
	 */
	if (index == TW_RS_NONE && (may_pass_cap || is_first))
		index = take(rs, TW_RS_FIRST_RING_BYTES, NEED_ANY, TW_RS_PRESENT_BYTES);
	return index;
}

bool tw_rs_ring_claim(struct tw_rs *rs, const struct tw_rs_claim *claim, struct tw_rb_producer *producer)
{
	struct tw_rb_shared *shared;
	uint32_t index;

	if (!tw_rs_is_own_process(rs))
		return false;
	do {
		index = take_first(rs, claim->may_pass_cap);
		if (index == TW_RS_NONE) {
			tw_rs_want(rs);
			return false;
		}
		shared = rs->own.rings[index];
		/* A ring damaged by a stray write stays CLAIMED and is not used again. */
	} while (!tw_rb_producer_init(producer, shared, (enum tw_rb_policy)rs->config.policy));
	tw_rb_producer_set_present(producer, present_bytes(rs, index));
	write_claim(rs, shared, claim);
	producer->owner_wake = &rs->control->wake;
	producer->owner_unwakeable = &rs->own.head->unwakeable;
	set_growth(rs, producer);
	producer->live_word = tw_rs_ring_word(TW_RB_LIVE, shared->lease);
	set_state(rs, index, producer->live_word);
	return true;
}

/* Changes a ring that is LIVE in the producer's lease to ENDED. */
static void end_ring(struct tw_rs *rs, uint32_t index, uint32_t live_word)
{
	/* PAIR rs.state: release; acquire in tw_rs_ring_state().  All counts of the producer are stored. */
	tw_cas_acq_rel(&rs->own.head->rings[index].state, &live_word,
		       (live_word & ~UINT32_C(0xff)) | (uint32_t)TW_RB_ENDED);
}

bool tw_rs_ring_grow(struct tw_rs *rs, struct tw_rb_producer *producer)
{
	struct tw_rb_shared *from = producer->shared, *to;
	uint32_t old_index = producer->ring_index, index = TW_RS_NONE;
	uint64_t smaller = producer->growth_bytes / 2;

	if (!producer->growth_bytes || !tw_rs_is_own_process(rs) || rs->own.rings[old_index] != from)
		return false;
	/* All of its memory: positions continue, so the next record may lie anywhere in the larger ring. */
	index = take(rs, producer->growth_bytes, NEED_GROWTH, UINT64_MAX);
	if (index == TW_RS_NONE && smaller > producer->mask + 1)
		index = take(rs, smaller, NEED_GROWTH, UINT64_MAX);
	if (index == TW_RS_NONE)
		return false;
	to = rs->own.rings[index];
	tw_rb_producer_move(producer, to);
	set_growth(rs, producer);
	set_state(rs, index, producer->live_word);
	/* RELAXED rs.grown_to: published by the state ENDED. */
	tw_store_relaxed(&from->grown_to, index + 1);
	end_ring(rs, old_index, producer->live_word);
	return true;
}

bool tw_rs_ring_populate(struct tw_rs *rs, struct tw_rb_producer *producer, bool may_call)
{
	uint32_t index = producer->ring_index;
	uint64_t next = (producer->present_bytes + TW_RS_PRESENT_STEP_BYTES) & ~(TW_RS_PRESENT_STEP_BYTES - 1);

	if (rs->own.rings[index] != producer->shared)
		return false;
	if (may_call && present_bytes(rs, index) == producer->present_bytes)
		populate(rs, index, next);
	if (present_bytes(rs, index) <= producer->present_bytes)
		return false;
	tw_rb_producer_set_present(producer, present_bytes(rs, index));
	return true;
}

void tw_rs_populate_own(struct tw_rs *rs)
{
	/* PAIR rs.ring_count: acquire; release in cut().  The mappings of the rings below it are visible. */
	uint32_t count = tw_load_acquire(&rs->own.ring_count);

	for (uint32_t i = 0; rs->own.process_id && i < count; i++) {
		/* PAIR rs.state: acquire; the amount of memory is visible with the state. */
		if ((tw_load_acquire(&rs->own.head->rings[i].state) & 0xff) == TW_RB_LIVE)
			populate(rs, i, UINT64_MAX);
	}
}

void tw_rs_ring_end(struct tw_rs *rs, struct tw_rb_producer *producer)
{
	uint32_t index = producer->ring_index, word = producer->live_word;

	tw_rb_producer_fini(producer);
	end_ring(rs, index, word);
	/* RELAXED rs.waiters: a hint; a waiter checks again after a slice. */
	if (tw_load_relaxed(&rs->own.head->ring_waiters))
		tw_rs_wake(rs);
}

void tw_rs_ring_note_thread_end(struct tw_rs *rs, struct tw_rb_producer *producer, uint64_t ticks)
{
	/* RELAXED rs.thread_end: false only after the owner has given the ring to another thread. */
	if (tw_load_relaxed(&rs->own.head->rings[producer->ring_index].state) == producer->live_word) {
		/* RELAXED rs.thread_end: published by the state ENDED. */
		tw_store_relaxed(&producer->shared->thread_end_ticks, ticks);
	}
}

/* ---- waiting for a ring ---- */

uint32_t tw_rs_recycled(const struct tw_rs *rs)
{
	/* PAIR rs.recycled: acquire; release in tw_rs_ring_recycle(), after the ring is READY. */
	return tw_load_acquire(&rs->own.head->recycled);
}

const _Atomic uint32_t *tw_rs_begin_ring_wait(struct tw_rs *rs)
{
	/* RELAXED rs.waiters: a hint for the owner; a missed wake costs the rest of a slice. */
	tw_fetch_add_relaxed(&rs->own.head->ring_waiters, 1);
	return &rs->own.head->recycled;
}

void tw_rs_end_ring_wait(struct tw_rs *rs)
{
	/* RELAXED rs.waiters: as above. */
	tw_fetch_add_relaxed(&rs->own.head->ring_waiters, UINT32_MAX);
}
