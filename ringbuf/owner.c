/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owner.c - the owner's side of images and rings: finding, checking, draining, recycling.
 *
 * Trusts nothing that members can write.  It opens an image's file by the lease in its slot, in a directory that only
 * this user can write, and copies process, start time and lease when it first sees the image.  It also copies each
 * entry of the table of rings, after checking that the ring lies inside the file and after the rings before it; later
 * changes of the entry have no effect.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "ringbuf/backing.h"
#include "ringbuf/inside.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Leases arrive nearly in order: one this far behind the newest was not given by this set. */
#define LEASES_BEHIND UINT64_C(1000000)

#define SEEN_IMAGES_BYTES (TW_RS_IMAGES_MAX * sizeof(struct tw_rs_seen_image))
#define SEEN_RINGS_BYTES  (TW_RS_RINGS_MAX * sizeof(struct tw_rs_seen_ring))

/* Of its own mapping only what is used has memory; calloc() writes zeros to megabytes that were used before, with each set. */
int tw_rs_seen_init(struct tw_rs *rs)
{
	void *images = NULL, *rings = NULL;
	int error = tw_backing_own(SEEN_IMAGES_BYTES, &images);

	if (!error)
		error = tw_backing_own(SEEN_RINGS_BYTES, &rings);
	rs->images = images;
	rs->rings = rings;
	return error;
}

static void unmap_image(struct tw_rs *rs, struct tw_rs_seen_image *image)
{
	if (image->memory && !rs->anonymous)
		tw_backing_unmap(image->memory, tw_rs_image_bytes(&rs->config));
}

void tw_rs_seen_fini(struct tw_rs *rs)
{
	for (uint32_t i = 0; rs->images && !rs->leaves_memory && i < rs->image_count; i++)
		unmap_image(rs, &rs->images[i]);
	tw_backing_unmap(rs->images, SEEN_IMAGES_BYTES);
	tw_backing_unmap(rs->rings, SEEN_RINGS_BYTES);
}

/* ---- rings ---- */

static uint32_t free_entry(struct tw_rs *rs)
{
	uint32_t index = rs->free_ring;

	if (index != TW_RS_NONE)
		rs->free_ring = rs->rings[index].next;
	else if (rs->ring_count < TW_RS_RINGS_MAX)
		index = rs->ring_count++;
	return index;
}

static bool is_sound(const struct tw_rs *rs, const struct tw_rs_seen_image *image, uint64_t offset, uint64_t data_bytes)
{
	uint64_t end = TW_RS_COUNTS_AT(&rs->config);

	return data_bytes >= TW_RB_BYTES_MIN && data_bytes <= TW_RB_BYTES_MAX && (data_bytes & (data_bytes - 1)) == 0 &&
	       offset >= image->rings_end && offset <= end && data_bytes + TW_PAGE_BYTES <= end - offset;
}

static void scan_table(struct tw_rs *rs, uint32_t slot)
{
	struct tw_rs_seen_image *image = &rs->images[slot];
	struct tw_rs_image_head *head = (struct tw_rs_image_head *)(void *)image->memory;
	/* PAIR rs.ring_count: acquire; release in cut().  The entries below it are filled in. */
	uint32_t count = tw_load_acquire(&head->ring_count);

	while (!image->is_damaged && image->ring_count < count) {
		const struct tw_rs_ring *entry = &head->rings[image->ring_count % TW_RS_IMAGE_RINGS_MAX];
		/* RELAXED rs.entry: written before ring_count; loaded once, because a hostile program may change it. */
		uint64_t offset = (uint64_t)tw_load_relaxed(&entry->offset_pages) * TW_PAGE_BYTES;
		/* RELAXED rs.entry: as above. */
		uint64_t data_bytes = (uint64_t)tw_load_relaxed(&entry->data_pages) * TW_PAGE_BYTES;
		uint32_t index;

		if (image->ring_count >= TW_RS_IMAGE_RINGS_MAX || !is_sound(rs, image, offset, data_bytes)) {
			image->is_damaged = true;
			rs->damaged_tables++;
			return;
		}
		index = free_entry(rs);
		if (index == TW_RS_NONE)
			return;
		rs->rings[index] =
			(struct tw_rs_seen_ring){.shared = (struct tw_rb_shared *)(void *)(image->memory + offset),
						 .data_bytes = data_bytes,
						 .image = slot,
						 .index = image->ring_count++,
						 .next = image->first_ring};
		image->first_ring = index;
		image->rings_end = offset + TW_PAGE_BYTES + data_bytes;
	}
}

static _Atomic uint32_t *state_of(const struct tw_rs *rs, uint32_t index)
{
	const struct tw_rs_seen_ring *ring = &rs->rings[index];
	struct tw_rs_image_head *head = (struct tw_rs_image_head *)(void *)rs->images[ring->image].memory;

	return &head->rings[ring->index].state;
}

enum tw_rb_state tw_rs_ring_state(const struct tw_rs *rs, uint32_t index)
{
	uint32_t state;

	if (!rs->rings[index].shared)
		return TW_RB_ABSENT;
	/* PAIR rs.state: acquire; what was written before the change of state is visible. */
	state = tw_load_acquire(state_of(rs, index)) & 0xff;
	if (state == TW_RB_LIVE && rs->images[rs->rings[index].image].state == TW_RS_IMAGE_ENDED)
		return TW_RB_ENDED;
	return state <= TW_RB_ENDED ? (enum tw_rb_state)state : TW_RB_ABSENT;
}

uint32_t tw_rs_ring_sibling(const struct tw_rs *rs, uint32_t index, uint32_t number)
{
	uint32_t other = rs->images[rs->rings[index].image].first_ring;

	while (other != TW_RS_NONE && rs->rings[other].index != number)
		other = rs->rings[other].next;
	return other;
}

/* ---- images ---- */

/* True if the head holds what a member writes: the slot's process and start time, and the lease of the file's name. */
static bool is_head_sound(const struct tw_rs_image_head *head, const struct tw_rs_seen_image *image)
{
	return head->magic == TW_RS_IMAGE_MAGIC && head->lease == image->lease &&
	       head->process_id == image->process_id && head->process_start_time == image->process_start_time;
}

static int open_image(struct tw_rs *rs, struct tw_rs_seen_image *image)
{
	size_t expected = tw_rs_image_bytes(&rs->config), bytes = 0;
	char name[40];
	void *memory;
	int error;

	if (rs->anonymous) {
		image->memory = rs->anonymous + TW_RS_CONTROL_BYTES;
		return 0;
	}
	tw_rs_image_name(image->lease, name);
	error = tw_backing_open(rs->path, name, rs->is_dead, &memory, &bytes);
	if (error)
		return error;
	if (bytes != expected) {
		tw_backing_unmap(memory, bytes);
		return TW_EFORMAT;
	}
	/* A private copy may be read by a child: it stores what was copied (flight.h). */
	if (!rs->is_dead)
		tw_sys_keep_from_children(memory, bytes);
	image->memory = memory;
	return 0;
}

static bool is_lease_known(const struct tw_rs *rs, uint64_t lease)
{
	for (uint32_t i = 0; i < rs->image_count; i++)
		if (rs->images[i].lease == lease)
			return true;
	return false;
}

/* Adds a new image.  If the owner lacks memory or descriptors, it tries again at the next scan. */
static void see_image(struct tw_rs *rs, uint32_t index, const struct tw_rs_slot *slot, int32_t process_id,
		      enum tw_rs_image_state state)
{
	struct tw_rs_seen_image *image = &rs->images[index], seen = {.first_ring = TW_RS_NONE};
	int error = TW_EFORMAT;

	/* RELAXED rs.slot: written before LIVE, which was seen; loaded once. */
	seen.lease = tw_load_relaxed(&slot->lease);
	/* RELAXED rs.slot: as above. */
	seen.process_start_time = tw_load_relaxed(&slot->process_start_time);
	seen.process_id = process_id;
	seen.rings_end = TW_RS_RINGS_AT;
	seen.state = (uint8_t)state;
	if (seen.lease && seen.lease <= UINT32_MAX && !is_lease_known(rs, seen.lease) &&
	    (seen.lease > rs->newest_lease || rs->newest_lease - seen.lease < LEASES_BEHIND))
		error = open_image(rs, &seen);
	if (error == TW_ENOMEM || error == TW_ELIMIT || error == TW_EIO)
		return;
	if (!error && !is_head_sound((struct tw_rs_image_head *)(void *)seen.memory, &seen)) {
		unmap_image(rs, &seen);
		seen.memory = NULL;
		error = TW_EFORMAT;
	}
	if (error) {
		/* The process may continue; its slot becomes free when it has ended. */
		seen.is_refused = true;
		seen.lease = UINT64_MAX - index;
		seen.state = TW_RS_IMAGE_FREE;
		rs->damaged_images += error != TW_EFORMAT;
		rs->damaged_tables += error == TW_EFORMAT;
	} else {
		const struct tw_rs_image_head *head = (const struct tw_rs_image_head *)(const void *)seen.memory;

		seen.start_ticks = head->start_ticks;
		seen.parent_process_id = head->parent_process_id;
		seen.populated_end = seen.rings_end;
		if (seen.lease > rs->newest_lease)
			rs->newest_lease = (uint32_t)seen.lease;
	}
	*image = seen;
}

static void scan_slot(struct tw_rs *rs, uint32_t index)
{
	const struct tw_rs_slot *slot = &rs->control->slots[index];
	struct tw_rs_seen_image *image = &rs->images[index];
	/* PAIR rs.image: acquire; release in end_slot(): the process is visible with the state. */
	uint64_t word = tw_load_acquire(&slot->state);
	enum tw_rs_image_state state = (enum tw_rs_image_state)(word & 0xff);

	if (!image->lease && (state == TW_RS_IMAGE_LIVE || state == TW_RS_IMAGE_ENDED))
		see_image(rs, index, slot, (int32_t)(word >> 32), state);
	if (!image->memory)
		return;
	/* Any word but the member's own ends the image, including words that no member writes. */
	if (image->state == TW_RS_IMAGE_LIVE && word != tw_rs_slot_word(TW_RS_IMAGE_LIVE, image->process_id))
		image->state = TW_RS_IMAGE_ENDED;
	scan_table(rs, index);
}

uint32_t tw_rs_scan(struct tw_rs *rs)
{
	/* RELAXED rs.slot_count: a slot missed now is found by the next scan. */
	uint32_t count = tw_load_relaxed(&rs->control->slot_count);

	if (count > TW_RS_IMAGES_MAX)
		count = TW_RS_IMAGES_MAX;
	if (count < rs->image_count)
		count = rs->image_count;
	rs->image_count = count;
	for (uint32_t i = 0; i < count; i++)
		scan_slot(rs, i);
	return rs->ring_count;
}

bool tw_rs_is_unwakeable(const struct tw_rs *rs)
{
	for (uint32_t i = 0; i < rs->image_count; i++) {
		/* RELAXED rs.unwakeable: an independent word, set once in the life of an image. */
		if (rs->images[i].state == TW_RS_IMAGE_LIVE && tw_load_relaxed(&tw_rs_head(rs, i)->unwakeable))
			return true;
	}
	return false;
}

bool tw_rs_is_anybody_there(const struct tw_rs *rs)
{
	for (uint32_t i = 0; i < rs->image_count; i++) {
		/* RELAXED rs.scan: a process that arrives later finds the set closed. */
		enum tw_rs_image_state state =
			(enum tw_rs_image_state)(tw_load_relaxed(&rs->control->slots[i].state) & 0xff);

		if (rs->images[i].state == TW_RS_IMAGE_LIVE || (!rs->images[i].memory && state != TW_RS_IMAGE_FREE))
			return true;
	}
	return false;
}

/* ---- recycling ---- */

void tw_rs_ring_recycle(struct tw_rs *rs, uint32_t index)
{
	struct tw_rs_seen_ring *ring = &rs->rings[index];
	struct tw_rs_image_head *head = (struct tw_rs_image_head *)(void *)rs->images[ring->image].memory;

	/* RELAXED rb.claim: an ENDED ring belongs to the owner; published by PAIR rs.state below. */
	tw_store_relaxed(&ring->shared->tail_pos, tw_load_relaxed(&ring->shared->committed_pos));
	/* RELAXED rb.claim: as above. */
	tw_store_relaxed(&ring->shared->waiting, 0);
	ring->thread_start_time = 0;
	/* PAIR rs.state: release; acquire in find_free(). */
	tw_store_release(state_of(rs, index), tw_rs_ring_word(TW_RB_READY, 0));
	/* PAIR rs.recycled: release as part of an addition; acquire in tw_rs_recycled(). */
	tw_fetch_add_acq_rel(&head->recycled, 1);
	/* RELAXED rs.waiters: a hint; a waiter that is missed checks again after a slice. */
	if (tw_load_relaxed(&head->ring_waiters))
		tw_sys_futex_wake(&head->recycled, 1);
}

/* How often to check whether a thread number has been reused: each check reads a file in /proc. */
#define START_TIME_NS UINT64_C(1000000000)

static bool is_thread_gone(struct tw_rs_seen_ring *ring, int process_id, int thread_id)
{
	uint64_t now_ns = tw_clock_monotonic_ns(), start_time;
	int error;

	if (!tw_sys_is_thread_alive(process_id, thread_id))
		return true;
	if (now_ns - ring->asked_ns < START_TIME_NS && ring->thread_start_time)
		return false;
	ring->asked_ns = now_ns;
	error = tw_sys_thread_start_time(process_id, thread_id, &start_time);
	if (error)
		return false;
	if (!ring->thread_start_time)
		ring->thread_start_time = start_time;
	return start_time != ring->thread_start_time;
}

bool tw_rs_ring_reap(struct tw_rs *rs, uint32_t index)
{
	struct tw_rs_seen_ring *ring = &rs->rings[index];
	struct tw_rs_seen_image *image;
	uint32_t word;

	if (!ring->shared)
		return false;
	image = &rs->images[ring->image];
	/* PAIR rs.state: acquire; the header names the thread that writes the ring. */
	word = tw_load_acquire(state_of(rs, index));
	/* The rings of an ended image count as ENDED whatever their state word says. */
	if ((word & 0xff) != TW_RB_LIVE || image->state != TW_RS_IMAGE_LIVE ||
	    !is_thread_gone(ring, image->process_id, ring->shared->thread_id))
		return false;
	/* PAIR rs.state: release; fails if the thread has ended the ring itself meanwhile. */
	return tw_cas_acq_rel(state_of(rs, index), &word, (word & ~UINT32_C(0xff)) | (uint32_t)TW_RB_ENDED);
}

static void free_slot(struct tw_rs *rs, uint32_t index)
{
	/* PAIR rs.image: release; acquire in take_slot(). */
	tw_store_release(&rs->control->slots[index].state, tw_rs_slot_word(TW_RS_IMAGE_FREE, 0));
}

/* Frees a CLAIMED or refused slot whose process is gone. */
static void reap_slot(struct tw_rs *rs, uint32_t index)
{
	/* PAIR rs.image: acquire; the process in the slot. */
	uint64_t word = tw_load_acquire(&rs->control->slots[index].state), found;
	int error;

	if (!rs->images[index].is_refused && (word & 0xff) != TW_RS_IMAGE_CLAIMED)
		return;
	error = tw_sys_process_start_time((int)(word >> 32), &found);
	if (error != -ENOENT && error != -ESRCH)
		return;
	memset(&rs->images[index], 0, sizeof rs->images[index]);
	/* PAIR rs.image: acquire and release; fails if the slot became LIVE before the process died. */
	tw_cas_acq_rel(&rs->control->slots[index].state, &word, tw_rs_slot_word(TW_RS_IMAGE_FREE, 0));
}

bool tw_rs_image_reap(struct tw_rs *rs, uint32_t slot)
{
	struct tw_rs_seen_image *image = &rs->images[slot];

	if (!image->memory) {
		reap_slot(rs, slot);
		return false;
	}
	if (image->state != TW_RS_IMAGE_LIVE || !tw_sys_is_process_gone(image->process_id, image->process_start_time))
		return false;
	image->state = TW_RS_IMAGE_ENDED;
	return true;
}

void tw_rs_image_recycle(struct tw_rs *rs, uint32_t slot)
{
	struct tw_rs_seen_image *image = &rs->images[slot];
	char name[40];
	bool is_any = false;

	tw_rs_image_name(image->lease, name);
	/* RELAXED rs.used: rings cut but never seen are subtracted when the last image is gone. */
	tw_fetch_add_relaxed(&rs->control->used_bytes, UINT64_C(0) - (image->rings_end - TW_RS_RINGS_AT));
	for (uint32_t index = image->first_ring, next; index != TW_RS_NONE; index = next) {
		next = rs->rings[index].next;
		rs->rings[index] = (struct tw_rs_seen_ring){.next = rs->free_ring};
		rs->free_ring = index;
	}
	unmap_image(rs, image);
	if (rs->anonymous)
		madvise(rs->anonymous + TW_RS_CONTROL_BYTES, tw_rs_image_bytes(&rs->config), MADV_REMOVE);
	else
		tw_backing_remove_file(rs->path, name);
	memset(image, 0, sizeof *image);
	free_slot(rs, slot);
	for (uint32_t i = 0; i < rs->image_count && !is_any; i++)
		is_any = rs->images[i].lease != 0;
	if (!is_any) {
		/*
		 * RELAXED rs.used: a member that starts now may have added its ring already; the cap is exceeded by one
		 * ring at most.
		 */
		tw_store_relaxed(&rs->control->used_bytes, 0);
	}
}

/* ---- allocating ahead ---- */

/* Allocates the first pages of the small rings that would be cut next.  A larger ring cut meanwhile lies elsewhere. */
void tw_rs_populate_ahead(struct tw_rs *rs, uint32_t slot)
{
	struct tw_rs_seen_image *image = &rs->images[slot];
	uint64_t ring_bytes = TW_PAGE_BYTES + tw_rs_first_bytes(&rs->config);
	uint64_t at = image->populated_end, to = image->rings_end + tw_rs_rings_ahead(image->ring_count) * ring_bytes;

	/* A program with one thread, and each of a thousand such programs, needs no more than it has. */
	if (rs->anonymous || image->state != TW_RS_IMAGE_LIVE || image->ring_count < 2)
		return;
	if (at < image->rings_end || (at - image->rings_end) % ring_bytes)
		at = image->rings_end;
	for (; at < to && at + ring_bytes <= TW_RS_COUNTS_AT(&rs->config); at += ring_bytes)
		tw_sys_populate_write(image->memory + at, TW_PAGE_BYTES + TW_RS_PRESENT_BYTES);
	image->populated_end = at;
}
