/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.c - the member's image: a slot in the table, a file of its own, and mappings of a few pieces of it.
 *
 *	1 take a slot: FREE to CLAIMED with the process id, so that the owner can tell if the process dies here
 *	2 create the file, its head, and the first page of its rings
 *	3 LIVE: the owner opens the file
 *	4 end the image of the same process that exec() replaced
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "ringbuf/backing.h"
#include "ringbuf/inside.h"

#include <errno.h>
#include <string.h>

struct tw_rs_image_head tw_rs_nowhere;

void tw_rs_own_init(struct tw_rs *rs)
{
	static const struct tw_quiet_lock unlocked = TW_QUIET_LOCK_INIT;

	memset(&rs->own, 0, offsetof(struct tw_rs_own, rings));
	rs->own.head = &tw_rs_nowhere;
	rs->own.cutting = unlocked;
}

/* A piece of address space: a reserved page, consecutive rings, then a growing page or the anchor. */
static void unmap_rings(struct tw_rs_own *own)
{
	/* RELAXED rs.cut: no thread cuts rings any more. */
	uint32_t count = tw_load_relaxed(&own->ring_count);
	uint8_t *low = NULL;

	for (uint32_t i = 0; i < count; i++) {
		uint8_t *ring = (uint8_t *)own->rings[i], *end = ring + TW_PAGE_BYTES + own->ring_bytes[i];

		if (!low)
			low = ring - TW_PAGE_BYTES;
		if (i + 1 == count) {
			tw_sys_unmap(low, (size_t)(own->anchor - low) + own->anchor_bytes + TW_PAGE_BYTES);
		} else if ((uint8_t *)own->rings[i + 1] != end) {
			tw_sys_unmap(low, (size_t)(end - low) + TW_PAGE_BYTES);
			low = NULL;
		}
	}
}

void tw_rs_own_fini(struct tw_rs *rs)
{
	struct tw_rs_own *own = &rs->own;

	if (own->process_id && !rs->config.is_anonymous) {
		unmap_rings(own);
		tw_sys_unmap(own->defs, own->defs_mapped_bytes);
		tw_sys_unmap(own->counts.mapped, own->counts.mapped_bytes);
		tw_sys_unmap(own->first_piece, TW_RS_FIRST_PIECE_BYTES);
	}
	tw_rs_own_init(rs);
}

/* ---- starting an image ---- */

void tw_rs_image_refuse(struct tw_rs *rs, enum tw_rs_refusal why)
{
	/* RELAXED rs.images_refused: a count for the summary. */
	tw_fetch_add_relaxed(&rs->control->images_refused[why], 1);
}

static int refuse(struct tw_rs *rs, enum tw_rs_refusal why, int error)
{
	tw_rs_image_refuse(rs, why);
	return error;
}

void tw_rs_count_refused(struct tw_rs *rs, enum tw_rs_refusal why)
{
	refuse(rs, why, 0);
}

void tw_rs_count_late(struct tw_rs *rs, uint32_t count)
{
	/* RELAXED rs.plans_late: a count for the summary. */
	tw_fetch_add_relaxed(&rs->control->plans_late, count);
}

void tw_rs_count_child(struct tw_rs *rs, int count)
{
	/* RELAXED rs.children: a count for the summary. */
	tw_fetch_add_relaxed(&rs->control->children, (uint64_t)(int64_t)count);
}

void tw_rs_count_unarmed(struct tw_rs *rs, uint32_t count)
{
	/* RELAXED rs.unarmed: a count for the summary. */
	tw_fetch_add_relaxed(&rs->control->unarmed, count);
}

/* Takes a free slot. */
static bool take_slot(struct tw_rs *rs, int32_t process_id, uint32_t *out)
{
	/* RELAXED rs.slot_count: raised below; lower slots may be free again. */
	uint32_t used = tw_load_relaxed(&rs->control->slot_count);

	for (uint32_t i = 0; i < TW_RS_IMAGES_MAX; i++) {
		struct tw_rs_slot *slot = &rs->control->slots[i];
		uint64_t free_word = tw_rs_slot_word(TW_RS_IMAGE_FREE, 0);

		/* RELAXED rs.scan: the compare-and-swap below decides. */
		if (tw_load_relaxed(&slot->state) != free_word)
			continue;
		/* PAIR rs.image: acquire and release; the owner has finished with the slot's previous image. */
		if (!tw_cas_acq_rel(&slot->state, &free_word, tw_rs_slot_word(TW_RS_IMAGE_CLAIMED, process_id)))
			continue;
		while (used <= i) {
			/* RELAXED rs.slot_count: it only grows; the owner relies on LIVE, which is stored later. */
			if (tw_cas_relaxed(&rs->control->slot_count, &used, i + 1))
				break;
		}
		*out = i;
		return true;
	}
	return false;
}

/* The process that forked this one, even if it has ended since, as that of daemon() does; 0: in another pid namespace. */
static int32_t parent_of(const struct tw_rs *rs)
{
	int32_t parent = tw_sys_parent_process_id();

	return parent && rs->forked_from ? rs->forked_from : parent;
}

static void fill_head(const struct tw_rs *rs, struct tw_rs_image_head *head, uint64_t lease, uint64_t start_time,
		      int32_t process_id)
{
	head->magic = TW_RS_IMAGE_MAGIC;
	head->lease = lease;
	head->process_start_time = start_time;
	head->start_ticks = tw_clock_ticks();
	head->process_id = process_id;
	head->parent_process_id = parent_of(rs);
}

/* Allocates the image's first page.  The table of rings continues after it and gets its pages when they are used. */
static int make_present(struct tw_rs_own *own)
{
	if (tw_sys_populate_write(own->head, TW_PAGE_BYTES) == -EFAULT)
		return TW_ENOSPC;
	return 0;
}

static int make_file(struct tw_rs *rs, uint64_t lease)
{
	uint8_t *first = tw_sys_reserve(TW_RS_FIRST_PIECE_BYTES);
	struct tw_backing_piece pieces[] = {{0, TW_RS_HEAD_BYTES, first + TW_PAGE_BYTES},
					    {TW_RS_HEAD_BYTES, TW_RS_DEFS_STEP_BYTES, NULL},
					    {TW_RS_RINGS_AT, TW_PAGE_BYTES, first + TW_RS_FIRST_ANCHOR_AT},
					    {TW_RS_COUNTS_AT(&rs->config), TW_PAGE_BYTES, NULL}};
	struct tw_rs_own *own = &rs->own;
	char name[40];
	int error;

	if (!first)
		return TW_ENOMEM;
	tw_rs_image_name(lease, name);
	error = tw_backing_create_pieces(rs->path, name, tw_rs_image_bytes(&rs->config), pieces, TW_COUNT_OF(pieces));
	if (error) {
		tw_sys_unmap(first, TW_RS_FIRST_PIECE_BYTES);
		return error;
	}
	tw_sys_map_growing(first + TW_RS_FIRST_ANCHOR_AT - TW_PAGE_BYTES);
	tw_sys_map_growing(first + TW_RS_FIRST_ANCHOR_AT + TW_PAGE_BYTES);
	own->first_piece = first;
	for (unsigned i = 0; i < TW_COUNT_OF(pieces); i++)
		tw_sys_keep_from_children(pieces[i].mapped, pieces[i].bytes);
	own->head = pieces[0].mapped;
	own->defs = pieces[1].mapped;
	own->defs_mapped_bytes = TW_RS_DEFS_STEP_BYTES;
	own->anchor = pieces[2].mapped;
	own->anchor_bytes = TW_PAGE_BYTES;
	own->counts.mapped = pieces[3].mapped;
	own->counts.mapped_bytes = TW_PAGE_BYTES;
	error = make_present(own);
	if (error) {
		own->process_id = tw_sys_process_id();
		tw_rs_own_fini(rs);
		tw_backing_remove_file(rs->path, name);
	}
	return error;
}

static int make_image(struct tw_rs *rs, uint64_t lease)
{
	uint8_t *image;

	if (!rs->config.is_anonymous)
		return make_file(rs, lease);
	image = rs->anonymous + TW_RS_CONTROL_BYTES;
	/*
	 * An anonymous set holds one image at a time.  Its memory is empty, or has been recycled after the last reader
	 * finished.
	 */
	rs->own.head = (struct tw_rs_image_head *)(void *)image;
	rs->own.defs = image + TW_RS_HEAD_BYTES;
	rs->own.defs_mapped_bytes = TW_RS_DEFS_BYTES;
	rs->own.anchor = image + TW_RS_RINGS_AT;
	rs->own.counts.mapped = image + TW_RS_COUNTS_AT(&rs->config);
	rs->own.counts.mapped_bytes = TW_RS_COUNTS_BYTES;
	return 0;
}

/* exec keeps the process and replaces the program: the previous image has ended. */
static void end_predecessor(struct tw_rs *rs, uint32_t own_slot, int32_t process_id, uint64_t start_time)
{
	/* RELAXED rs.slot_count: this process has raised it for each of its images. */
	uint32_t count = tw_load_relaxed(&rs->control->slot_count);

	for (uint32_t i = 0; i < count && i < TW_RS_IMAGES_MAX; i++) {
		struct tw_rs_slot *slot = &rs->control->slots[i];
		uint64_t live = tw_rs_slot_word(TW_RS_IMAGE_LIVE, process_id);

		/* PAIR rs.image: acquire; the process that owns the slot. */
		if (i == own_slot || tw_load_acquire(&slot->state) != live)
			continue;
		/* RELAXED rs.slot: written before the slot became LIVE, which this thread has seen. */
		if (tw_load_relaxed(&slot->process_start_time) != start_time)
			continue;
		/* PAIR rs.image: acquire and release; the owner drains the image. */
		tw_cas_acq_rel(&slot->state, &live, tw_rs_slot_word(TW_RS_IMAGE_ENDED, process_id));
	}
}

static void end_slot(struct tw_rs *rs, uint32_t index, enum tw_rs_image_state state, int32_t process_id)
{
	/* PAIR rs.image: release; acquire in scan_slot().  Everything the member wrote before is visible. */
	tw_store_release(&rs->control->slots[index].state,
			 tw_rs_slot_word(state, state == TW_RS_IMAGE_FREE ? 0 : process_id));
}

int tw_rs_image_claim(struct tw_rs *rs, uint32_t *out)
{
	int32_t process_id = tw_sys_process_id();
	uint64_t start_time = 0, lease;
	uint32_t index;
	struct tw_rs_slot *slot;
	uint64_t namespace = rs->own_pid_namespace ? rs->own_pid_namespace : tw_sys_pid_namespace();
	int error;

	/* In a child forked into another pid namespace, its number means another process to the owner. */
	if (namespace && rs->config.owner_pid_namespace && namespace != rs->config.owner_pid_namespace)
		return refuse(rs, TW_RS_REFUSED_FORK, TW_ENOTSUP);
	if (tw_sys_process_start_time(process_id, &start_time) < 0)
		return refuse(rs, TW_RS_REFUSED_FILE, TW_ENOTSUP);
	if (!take_slot(rs, process_id, &index)) {
		tw_rs_want(rs);
		return refuse(rs, TW_RS_REFUSED_SLOT, TW_ELIMIT);
	}
	slot = &rs->control->slots[index];
	/* RELAXED rs.slot: CLAIMED by this thread; published with LIVE. */
	tw_store_relaxed(&slot->process_start_time, start_time);
	/* RELAXED rs.lease: it only has to be unique. */
	lease = tw_fetch_add_relaxed(&rs->control->next_lease, 1) + UINT64_C(1);
	/* RELAXED rs.slot: as above. */
	tw_store_relaxed(&slot->lease, lease);
	/* RELAXED filter.seen: as above. */
	tw_store_relaxed(&slot->filter_seen, 0);
	/* RELAXED rs.asks: as above. */
	tw_store_relaxed(&slot->asks, 0);
	tw_rs_own_fini(rs);
	error = make_image(rs, lease);
	if (error) {
		end_slot(rs, index, TW_RS_IMAGE_FREE, 0);
		return refuse(rs, error == TW_ENOMEM || error == TW_ENOSPC ? TW_RS_REFUSED_MEMORY : TW_RS_REFUSED_FILE,
			      error);
	}
	rs->own.slot = index;
	rs->own.lease = lease;
	rs->own.process_id = process_id;
	fill_head(rs, rs->own.head, lease, start_time, process_id);
	/* The owner may end the recording as soon as the image is LIVE. */
	if (rs->written)
		tw_rs_written_show(rs, rs->written);
	end_slot(rs, index, TW_RS_IMAGE_LIVE, process_id);
	end_predecessor(rs, index, process_id, start_time);
	*out = index;
	return 0;
}

void tw_rs_image_end(struct tw_rs *rs, uint32_t index)
{
	end_slot(rs, index, TW_RS_IMAGE_ENDED, rs->own.process_id);
}

void tw_rs_image_exits(struct tw_rs *rs, uint64_t ticks)
{
	if (rs->own.process_id != tw_sys_process_id())
		return;
	/* RELAXED rs.exit: read when the process is gone; a time for readers. */
	tw_store_relaxed(&rs->own.head->exit_ticks, ticks);
}

/* ---- fork ---- */

void tw_rs_after_fork_in_child(struct tw_rs *rs)
{
	struct tw_rs_own *own = &rs->own;

	if (rs->anonymous) {
		tw_sys_map_over(rs->anonymous, rs->anonymous_bytes);
	} else if (own->process_id) {
		tw_rs_counts_after_fork_in_child(rs);
		tw_sys_map_over(own->head, TW_RS_HEAD_BYTES);
		if (!own->is_moving)
			tw_sys_map_over(own->defs, own->defs_mapped_bytes);
		tw_sys_map_over(own->anchor, TW_PAGE_BYTES);
	}
	/*
	 * Rings stay mapped: interrupted code may be about to write there.  The table is cleared so that it finds no
	 * ring.
	 */
	/* RELAXED rs.cut: the child has one thread. */
	memset(own->rings, 0, tw_load_relaxed(&own->ring_count) * sizeof own->rings[0]);
	/*
	 * If the process that forked this one is the image's, both are in one pid namespace; otherwise it must be read
	 * again.
	 */
	if (!own->process_id || tw_sys_parent_process_id() != own->process_id)
		rs->own_pid_namespace = 0;
	rs->forked_from = own->process_id;
	tw_rs_own_init(rs);
}

void tw_rs_ring_after_fork_in_child(struct tw_rs *rs, struct tw_rb_producer *producer)
{
	struct tw_rb_shared *shared = producer->shared;

	if (!rs->anonymous)
		tw_sys_map_over(shared, TW_PAGE_BYTES + producer->mask + 1);
	shared->data_bytes = producer->mask + 1;
	shared->first_pos = producer->pos;
	shared->policy = producer->policy;
	/* RELAXED rb.claim: memory of the child, which has one thread. */
	tw_store_relaxed(&shared->committed_pos, producer->pos);
	/* RELAXED rb.claim: as above. */
	tw_store_relaxed(&shared->tail_pos, producer->pos);
	/* RELAXED rb.claim: as above. */
	tw_store_relaxed(&shared->oldest_pos, producer->pos);
	producer->growth_bytes = 0;
	producer->present_bytes = producer->mask + 1;
}

/* ---- events without a ring ---- */

/* Called inside hits: the vector registers may hold the program's values. */
__attribute__((target("general-regs-only"))) void tw_rs_count_no_ring(struct tw_rs *rs, uint64_t ticks)
{
	struct tw_rs_image_head *head = rs->own.head;
	uint64_t none = 0;

	/* RELAXED rs.no_ring: counts, final after the image has ENDED (PAIR rs.image). */
	tw_fetch_add_relaxed(&head->no_ring_lost, 1);
	/* RELAXED rs.no_ring: as above. */
	tw_cas_relaxed(&head->no_ring_first_ticks, &none, ticks);
	/* RELAXED rs.no_ring: as above; threads may store a little out of order. */
	tw_store_relaxed(&head->no_ring_last_ticks, ticks);
}

__attribute__((target("general-regs-only"))) void tw_rs_count_ended(struct tw_rs *rs, uint64_t ticks)
{
	tw_rs_count_no_ring(rs, ticks);
	/* RELAXED rs.ended: a count for the summary. */
	tw_fetch_add_relaxed(&rs->control->ended_lost, 1);
}

__attribute__((target("general-regs-only"))) void tw_rs_count_left_out(struct tw_rs *rs, uint64_t count)
{
	if (rs)
		/* RELAXED rs.ended: as above. */
		tw_fetch_add_relaxed(&rs->control->left_out, count);
}

__attribute__((target("general-regs-only"))) void tw_rs_count_vfork(struct tw_rs *rs, uint64_t ticks)
{
	tw_rs_count_no_ring(rs, ticks);
	/* RELAXED rs.ended: as above. */
	tw_fetch_add_relaxed(&rs->control->vfork_lost, 1);
}
