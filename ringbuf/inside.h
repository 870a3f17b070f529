/* SPDX-License-Identifier: Apache-2.0 */
/* inside.h - definitions shared by the files of this room. */
#ifndef TW_RINGBUF_INSIDE_H
#define TW_RINGBUF_INSIDE_H

#include "ringbuf/ringset.h"

#include <stdio.h>

#define TW_RS_CONTROL_BYTES ((sizeof(struct tw_rs_control) + TW_PAGE_BYTES - 1) / TW_PAGE_BYTES * TW_PAGE_BYTES)
#define TW_RS_NONE	    UINT32_MAX

/* The part of a file that holds rings: the cap, plus the small rings that may exceed it. */
#define TW_RS_IMAGE_RINGS_BYTES(config) \
	((config)->cap_bytes + TW_RS_IMAGE_RINGS_MAX * (TW_RS_FIRST_RING_BYTES + TW_PAGE_BYTES))

/* One page more than the last ring needs: the anchor of the next. */
#define TW_RS_COUNTS_AT(config) (TW_RS_RINGS_AT + TW_RS_IMAGE_RINGS_BYTES(config) + TW_PAGE_BYTES)

static inline uint64_t tw_rs_image_bytes(const struct tw_rs_config *config)
{
	return TW_RS_COUNTS_AT(config) + TW_RS_COUNTS_BYTES;
}

/* The first mapping of an image: a reserved page, the head, a growing page, the anchor, a growing page. */
#define TW_RS_FIRST_PIECE_BYTES (TW_RS_HEAD_BYTES + 4 * TW_PAGE_BYTES)
#define TW_RS_FIRST_ANCHOR_AT	(TW_RS_HEAD_BYTES + 2 * TW_PAGE_BYTES)

/* The size of a thread's first ring. */
static inline uint64_t tw_rs_first_bytes(const struct tw_rs_config *config)
{
	bool is_whole = config->has_fixed_rings || config->is_anonymous;

	return is_whole || config->ring_bytes < TW_RS_FIRST_RING_BYTES ? config->ring_bytes : TW_RS_FIRST_RING_BYTES;
}

/* How many first rings to prepare for an image with ring_count rings. */
static inline uint64_t tw_rs_rings_ahead(uint32_t ring_count)
{
	return ring_count < TW_RS_RINGS_AHEAD_MAX ? ring_count : TW_RS_RINGS_AHEAD_MAX;
}

/* Records that the first present_bytes of a ring's data have memory.  The value never decreases. */
static inline void tw_rs_raise_present(struct tw_rs_ring *ring, uint64_t present_bytes)
{
	uint32_t pages = (uint32_t)(present_bytes / TW_PAGE_BYTES);
	/* RELAXED rs.present: the compare-and-swap decides. */
	uint32_t before = tw_load_relaxed(&ring->present_pages);

	/*
	 * PAIR rs.present: acquire and release; acquire in present_bytes().  The memory is present before the count
	 * says so.
	 */
	while (before < pages && !tw_cas_acq_rel(&ring->present_pages, &before, pages))
		;
}

static inline void tw_rs_image_name(uint64_t lease, char out[40])
{
	snprintf(out, 40, "image-%llu", (unsigned long long)lease);
}

/* The word that holds an image slot's state and process. */
static inline uint64_t tw_rs_slot_word(enum tw_rs_image_state state, int32_t process_id)
{
	return (uint64_t)state | (uint64_t)(uint32_t)process_id << 32;
}

/* The word that holds a ring's state and lease. */
static inline uint32_t tw_rs_ring_word(enum tw_rb_state state, uint64_t lease)
{
	return (uint32_t)state | (uint32_t)(lease & 0xffff) << 16;
}

/* Has the request of that number been answered?  Numbers wrap around. */
static inline bool tw_rs_is_answered(uint32_t answered, uint32_t number)
{
	return (int32_t)(answered - number) >= 0;
}

/* The head that a member without an image writes to: memory of this process that is never read. */
extern struct tw_rs_image_head tw_rs_nowhere;
void tw_rs_own_init(struct tw_rs *rs);
/* Unmaps the image and leaves its file. */
void tw_rs_own_fini(struct tw_rs *rs);
/* The owner's tables. */
int tw_rs_seen_init(struct tw_rs *rs);
void tw_rs_seen_fini(struct tw_rs *rs);

#endif
