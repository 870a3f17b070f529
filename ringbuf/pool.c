/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c - the life of rings and images in a ring set; the arrows of the drawing in ringset.h.
 *
 * Rings become smaller as more of them are wanted: the n-th gets at most a quarter of an n-th of the
 * cap, so that each doubling of the number of threads costs the same memory and the cap holds a
 * thousand threads.
 */
#include "ringbuf/ringset.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "ringbuf/backing.h"

#include <string.h>
#include <sys/mman.h>

static uint32_t ring_word(enum tw_rb_state state, uint32_t image)
{
	return (uint32_t)state | image << 8;
}

/* ---- owner: making rings ---- */

static uint64_t next_ring_bytes(const struct tw_rs *rs, uint32_t index)
{
	uint64_t bytes = rs->control->ring_bytes;
	uint64_t fair = rs->cap_bytes / 4 / (index + 1);
	uint64_t left = rs->cap_bytes - rs->used_bytes;

	/* The first ring is as large as was asked for. */
	while (bytes > TW_RB_BYTES_MIN && index && bytes > fair)
		bytes /= 2;
	while (bytes > TW_RB_BYTES_MIN && bytes + TW_PAGE_BYTES > left)
		bytes /= 2;
	return bytes + TW_PAGE_BYTES <= left ? bytes : 0;
}

static bool add_ring(struct tw_rs *rs)
{
	uint32_t index = tw_rs_ring_count(rs);
	struct tw_rs_ring *ring;
	uint64_t data_bytes;
	size_t bytes;

	if (index >= TW_RS_RINGS_MAX)
		return false;
	data_bytes = next_ring_bytes(rs, index);
	if (!data_bytes)
		return false;
	bytes = data_bytes + TW_PAGE_BYTES;
	if (rs->rings_fd >= 0 && tw_backing_allocate(rs->rings_fd, rs->used_bytes, bytes) != 0)
		return false;
	if (tw_sys_populate_write(rs->rings + rs->used_bytes, bytes) != 0)
		return false;
	ring = &rs->control->rings[index];
	ring->offset_bytes = rs->used_bytes;
	ring->data_bytes = data_bytes;
	rs->used_bytes += bytes;
	tw_rb_shared_init((struct tw_rb_shared *)(rs->rings + ring->offset_bytes), index, data_bytes);
	/* PAIR rs.state: release; acquire in tw_rs_ring_claim().  The memory is there, the header filled in. */
	tw_store_release(&ring->state, ring_word(TW_RB_READY, 0));
	/* PAIR rs.ring_count: release; acquire in tw_rs_ring_count(). */
	tw_store_release(&rs->control->ring_count, index + 1);
	/* RELAXED rs.ready: a hint. */
	tw_fetch_add_relaxed(&rs->control->ready_count, 1);
	return true;
}

unsigned tw_rs_refill(struct tw_rs *rs, unsigned spare)
{
	/* RELAXED rs.wanted: a hint of how many threads went away without a ring. */
	uint32_t wanted = tw_load_relaxed(&rs->control->wanted_count);
	/* RELAXED rs.ready: a hint. */
	uint32_t ready = tw_load_relaxed(&rs->control->ready_count);
	unsigned added = 0;

	/* Below 0: who claims may count before who gives. */
	if ((int32_t)ready < 0)
		ready = 0;
	if (wanted) {
		/* RELAXED rs.wanted: as above. */
		tw_store_relaxed(&rs->control->wanted_count, 0);
		spare += wanted < 64 ? wanted : 64;
	}
	while (ready + added < spare && add_ring(rs))
		added++;
	return added;
}

/* ---- member: claiming and giving back ---- */

static bool try_claim(struct tw_rs *rs, uint32_t index, uint32_t image)
{
	struct tw_rs_ring *ring = &rs->control->rings[index];
	uint32_t expected = ring_word(TW_RB_READY, 0);

	/* RELAXED rs.look: a look before the compare-and-swap, which decides. */
	if (tw_load_relaxed(&ring->state) != expected)
		return false;
	/* PAIR rs.state: acquire; release in add_ring() and tw_rs_ring_recycle(). */
	if (!tw_cas_acq_rel(&ring->state, &expected, ring_word(TW_RB_CLAIMED, image)))
		return false;
	/* RELAXED rs.ready: a hint. */
	tw_fetch_add_relaxed(&rs->control->ready_count, (uint32_t)-1);
	return true;
}

/* Page faults belong to the join, not to the hits after it; once a ring and process is enough. */
static bool touch(struct tw_rs *rs, uint32_t index)
{
	uint64_t bit = UINT64_C(1) << (index % 64);

	/* RELAXED rs.touched: only this process's page tables; a ring has one claimant at a time. */
	if (tw_load_relaxed(&rs->touched[index / 64]) & bit)
		return true;
	if (tw_sys_populate_write(tw_rs_ring(rs, index), TW_PAGE_BYTES + rs->control->rings[index].data_bytes) ==
	    -EFAULT)
		return false;
	/* RELAXED rs.touched: as above; other bits of the word belong to other threads. */
	tw_fetch_or_relaxed(&rs->touched[index / 64], bit);
	return true;
}

static void write_claim(struct tw_rs *rs, struct tw_rb_shared *shared, const struct tw_rs_claim *who)
{
	/* RELAXED rs.lease: only its being different matters. */
	shared->lease = tw_fetch_add_relaxed(&rs->control->next_lease, 1) + 1;
	shared->first_ticks = tw_clock_ticks();
	shared->thread_id = tw_sys_thread_id();
	shared->image = who->image;
	shared->session_index = who->session_index;
	shared->scheduler_id = who->scheduler_id;
	shared->tracee_id = who->tracee_id;
	tw_sys_thread_name(shared->thread_name);
}

void tw_rs_wake(struct tw_rs *rs)
{
	/* PAIR rs.wake: release as part of an addition; the owner reads it before it looks. */
	if (tw_fetch_add_acq_rel(&rs->control->wake, 1) == 0)
		tw_sys_futex_wake(&rs->control->wake, 1);
}

void tw_rs_want(struct tw_rs *rs)
{
	/* RELAXED rs.wanted: a hint for the owner, who is woken to look. */
	tw_fetch_add_relaxed(&rs->control->wanted_count, 1);
	tw_rs_wake(rs);
}

bool tw_rs_ring_claim(struct tw_rs *rs, const struct tw_rs_claim *who, struct tw_rb_producer *producer)
{
	uint32_t count = tw_rs_ring_count(rs);

	/* A child that shares the memory (vfork) is another process: its end would not be that of the thread whose ring it is. */
	if (tw_sys_process_id() != rs->control->images[who->image].process_id)
		return false;
	for (uint32_t index = 0; index < count; index++) {
		struct tw_rb_shared *shared;

		if (!try_claim(rs, index, who->image))
			continue;
		shared = tw_rs_ring(rs, index);
		if (!touch(rs, index)) {
			/* PAIR rs.state: release; nothing was written, the next claimant may try. */
			tw_store_release(&rs->control->rings[index].state, ring_word(TW_RB_READY, 0));
			continue;
		}
		/* One that was written over stays CLAIMED: nobody gets it. */
		if (!tw_rb_producer_init(producer, shared, (enum tw_rb_policy)rs->control->policy))
			continue;
		write_claim(rs, shared, who);
		producer->live_word = ring_word(TW_RB_LIVE, who->image) | (uint32_t)(shared->lease & 0xffff) << 16;
		/* PAIR rs.state: release; acquire in tw_rs_ring_state().  Who writes this ring is seen with LIVE. */
		tw_store_release(&rs->control->rings[index].state, producer->live_word);
		return true;
	}
	tw_rs_want(rs);
	return false;
}

void tw_rs_ring_end(struct tw_rs *rs, struct tw_rb_producer *producer)
{
	uint32_t index = producer->ring_index;
	uint32_t word = producer->live_word;

	tw_rb_producer_fini(producer);
	/* PAIR rs.state: release; acquire in tw_rs_ring_state().  All counts of the producer are in. */
	tw_cas_acq_rel(&rs->control->rings[index].state, &word,
		       ring_word(TW_RB_ENDED, word >> 8 & (TW_RS_IMAGES_MAX - 1)));
	/* RELAXED rs.ready: a hint that threads come and go faster than the owner looks. */
	if (tw_load_relaxed(&rs->control->ready_count) < 2)
		tw_rs_wake(rs);
}

/* Called inside of hits: the vector registers may be the program's. */
__attribute__((target("general-regs-only"))) void tw_rs_count_no_ring(struct tw_rs *rs, uint32_t image, uint64_t ticks)
{
	struct tw_rs_image *slot = &rs->control->images[image];
	uint64_t none = 0;

	/* RELAXED rs.no_ring: counts; read for good after the image has ENDED (PAIR rs.image). */
	tw_fetch_add_relaxed(&slot->no_ring_lost, 1);
	/* RELAXED rs.no_ring: as above. */
	tw_cas_relaxed(&slot->no_ring_first_ticks, &none, ticks);
	/* RELAXED rs.no_ring: as above; threads may store a little out of order. */
	tw_store_relaxed(&slot->no_ring_last_ticks, ticks);
}

/* ---- owner: taking back ---- */

void tw_rs_ring_recycle(struct tw_rs *rs, uint32_t index)
{
	struct tw_rs_ring *ring = &rs->control->rings[index];
	struct tw_rb_shared *shared = tw_rs_ring(rs, index);

	/* RELAXED rb.claim: the ring is the owner's alone while ENDED; released by PAIR rs.state below. */
	tw_store_relaxed(&shared->tail_pos, tw_load_relaxed(&shared->committed_pos));
	/* RELAXED rb.claim: as above. */
	tw_store_relaxed(&shared->waiting, 0);
	/* PAIR rs.state: release; acquire in try_claim(). */
	tw_store_release(&ring->state, ring_word(TW_RB_READY, 0));
	/* RELAXED rs.ready: a hint. */
	tw_fetch_add_relaxed(&rs->control->ready_count, 1);
}

bool tw_rs_ring_reap(struct tw_rs *rs, uint32_t index)
{
	struct tw_rs_ring *ring = &rs->control->rings[index];
	/* PAIR rs.state: acquire; who wrote the ring. */
	uint32_t word = tw_load_acquire(&ring->state);
	uint32_t image_index = word >> 8 & (TW_RS_IMAGES_MAX - 1);
	enum tw_rb_state state = (enum tw_rb_state)(word & 0xff);
	enum tw_rs_image_state image_state;

	if (state != TW_RB_LIVE && state != TW_RB_CLAIMED)
		return false;
	image_state = tw_rs_image_state(rs, image_index);
	if (image_state == TW_RS_IMAGE_LIVE &&
	    (state == TW_RB_CLAIMED || tw_sys_is_thread_alive(rs->control->images[image_index].process_id,
							      tw_rs_ring(rs, index)->thread_id)))
		return false;
	/* PAIR rs.state: release; fails if the thread ended its ring itself meanwhile, which is as good. */
	return tw_cas_acq_rel(&ring->state, &word, ring_word(TW_RB_ENDED, image_index));
}

bool tw_rs_image_reap(struct tw_rs *rs, uint32_t index)
{
	struct tw_rs_image *image = &rs->control->images[index];
	uint32_t live = TW_RS_IMAGE_LIVE;

	if (tw_rs_image_state(rs, index) != TW_RS_IMAGE_LIVE ||
	    !tw_sys_is_process_gone(image->process_id, image->process_start_time))
		return false;
	/* PAIR rs.image: acquire and release; fails if exec's new image ended it meanwhile. */
	return tw_cas_acq_rel(&image->state, &live, TW_RS_IMAGE_ENDED);
}

void tw_rs_image_recycle(struct tw_rs *rs, uint32_t index)
{
	struct tw_rs_image *image = &rs->control->images[index];

	/* The pages go back to the system; a private copy (recovery) keeps them. */
	madvise(rs->defs + (size_t)index * TW_RS_DEFS_BYTES, TW_RS_DEFS_BYTES, MADV_REMOVE);
	/* RELAXED rs.recycle: the slot is the owner's alone until FREE is published by PAIR rs.image. */
	tw_store_relaxed(&image->defs_committed_bytes, 0);
	/* RELAXED rs.recycle: as above. */
	tw_store_relaxed(&image->defs_refused, 0);
	/* RELAXED rs.recycle: as above. */
	tw_store_relaxed(&image->no_ring_lost, 0);
	/* RELAXED rs.recycle: as above. */
	tw_store_relaxed(&image->no_ring_first_ticks, 0);
	/* RELAXED rs.recycle: as above. */
	tw_store_relaxed(&image->no_ring_last_ticks, 0);
	/* PAIR rs.image: release; acquire in tw_rs_image_claim(). */
	tw_store_release(&image->state, TW_RS_IMAGE_FREE);
}

/* ---- member: images ---- */

/* exec keeps the process and replaces the program: the image before is at its end. */
static void end_predecessor(struct tw_rs *rs, uint32_t own)
{
	const struct tw_rs_image *self = &rs->control->images[own];

	for (uint32_t i = 0; i < TW_RS_IMAGES_MAX; i++) {
		struct tw_rs_image *other = &rs->control->images[i];
		uint32_t live = TW_RS_IMAGE_LIVE;

		if (i == own || tw_rs_image_state(rs, i) != TW_RS_IMAGE_LIVE)
			continue;
		if (other->process_id == self->process_id && other->process_start_time == self->process_start_time) {
			/* PAIR rs.image: acquire and release; the owner drains it. */
			tw_cas_acq_rel(&other->state, &live, TW_RS_IMAGE_ENDED);
		}
	}
}

int tw_rs_image_claim(struct tw_rs *rs, uint32_t *out)
{
	uint64_t start_time = 0;
	int process_id = tw_sys_process_id();

	if (tw_sys_process_start_time(process_id, &start_time) < 0)
		return TW_ENOTSUP;
	for (uint32_t i = 0; i < TW_RS_IMAGES_MAX; i++) {
		struct tw_rs_image *image = &rs->control->images[i];
		uint32_t expected = TW_RS_IMAGE_FREE;

		/* PAIR rs.image: acquire and release; a recycled slot is seen clean. */
		if (!tw_cas_acq_rel(&image->state, &expected, TW_RS_IMAGE_CLAIMED))
			continue;
		image->process_id = process_id;
		image->parent_process_id = tw_sys_parent_process_id();
		image->process_start_time = start_time;
		image->start_ticks = tw_clock_ticks();
		/* RELAXED rs.lease: only its being different matters. */
		image->lease = tw_fetch_add_relaxed(&rs->control->next_lease, 1) + 1;
		/* PAIR rs.image: release; acquire in tw_rs_image_state().  Who it is is seen with LIVE. */
		tw_store_release(&image->state, TW_RS_IMAGE_LIVE);
		end_predecessor(rs, i);
		*out = i;
		return 0;
	}
	return TW_ELIMIT;
}

void tw_rs_image_end(struct tw_rs *rs, uint32_t index)
{
	/* PAIR rs.image: release; the owner drains and recycles it. */
	tw_store_release(&rs->control->images[index].state, TW_RS_IMAGE_ENDED);
}

/* ---- both: waiting for each other ---- */

void tw_rs_heartbeat(struct tw_rs *rs)
{
	/* RELAXED rs.heartbeat: a lone time; a stale one makes a producer wait or drop a little early. */
	tw_store_relaxed(&rs->control->heartbeat_ns, tw_clock_monotonic_ns());
}

bool tw_rs_is_stalled(struct tw_rs *rs)
{
	return tw_patience_look(&rs->patience, tw_rs_beat(rs), tw_clock_monotonic_ns(), TW_RS_SLICE_NS) >= TW_RS_STALLED_NS;
}

void tw_rs_close(struct tw_rs *rs)
{
	uint32_t count = tw_rs_ring_count(rs);

	/* PAIR rs.closed: release; acquire wherever a member looks whether it is still wanted. */
	tw_store_release(&rs->control->is_closed, 1);
	for (uint32_t i = 0; i < count; i++) {
		struct tw_rb_shared *shared = tw_rs_ring(rs, i);

		/* PAIR rb.waiting: seq_cst; a producer that sleeps looks again and finds the set closed. */
		if (tw_exchange_seq_cst(&shared->waiting, 0))
			tw_sys_futex_wake(&shared->waiting, 1);
	}
}

void tw_rs_wait(struct tw_rs *rs, uint64_t timeout_ns)
{
	/* PAIR rs.wake: acquire; what was wanted before the wake is seen by the look that follows. */
	if (tw_load_acquire(&rs->control->wake) == 0)
		tw_sys_futex_wait(&rs->control->wake, 0, timeout_ns);
	/* PAIR rs.wake: acquire and release; what is raised from here on wakes the next wait. */
	tw_exchange_acq_rel(&rs->control->wake, 0);
}

/* ---- everything that is committed now ---- */

uint32_t tw_rs_delivery_want(struct tw_rs *rs)
{
	/* PAIR rs.delivery: release as part of an addition; what this thread has committed is seen with the request. */
	uint32_t number = tw_fetch_add_acq_rel(&rs->control->delivery_wanted, 1) + 1;

	tw_rs_wake(rs);
	return number;
}

/* Numbers run in a circle. */
static bool is_answered(uint32_t answered, uint32_t number)
{
	return (int32_t)(answered - number) >= 0;
}

bool tw_rs_delivery_wait(struct tw_rs *rs, uint32_t number, uint64_t timeout_ns)
{
	/* PAIR rs.delivered: acquire; release in tw_rs_delivery_done().  The events have been taken. */
	uint32_t answered = tw_load_acquire(&rs->control->delivered);

	if (is_answered(answered, number) || !timeout_ns)
		return is_answered(answered, number);
	tw_sys_futex_wait(&rs->control->delivered, answered, timeout_ns);
	/* PAIR rs.delivered: acquire; as above. */
	return is_answered(tw_load_acquire(&rs->control->delivered), number);
}

bool tw_rs_delivery_look(const struct tw_rs *rs, uint32_t *number)
{
	/* PAIR rs.delivery: acquire; what was committed before the request is seen by the look that follows. */
	*number = tw_load_acquire(&rs->control->delivery_wanted);
	/* RELAXED rs.answered: the owner's own word. */
	return !is_answered(tw_load_relaxed(&rs->control->delivered), *number);
}

void tw_rs_delivery_done(struct tw_rs *rs, uint32_t number)
{
	/* PAIR rs.delivered: release; acquire in tw_rs_delivery_wait(). */
	tw_store_release(&rs->control->delivered, number);
	tw_sys_futex_wake(&rs->control->delivered, INT32_MAX);
}
