/* SPDX-License-Identifier: Apache-2.0 */
/* inside.h - what the files of this room share. */
#ifndef TW_RINGBUF_INSIDE_H
#define TW_RINGBUF_INSIDE_H

#include "ringbuf/ringset.h"

#include <stdio.h>

#define TW_RS_CONTROL_BYTES ((sizeof(struct tw_rs_control) + TW_PAGE_BYTES - 1) / TW_PAGE_BYTES * TW_PAGE_BYTES)
#define TW_RS_NONE	    UINT32_MAX

/* A file's part for rings: the cap, and small ones that may pass it. */
#define TW_RS_IMAGE_RINGS_BYTES(config) \
	((config)->cap_bytes + TW_RS_IMAGE_RINGS_MAX * (TW_RS_FIRST_RING_BYTES + TW_PAGE_BYTES))

/* One page behind the last ring: where the next would begin. */
static inline uint64_t tw_rs_image_bytes(const struct tw_rs_config *config)
{
	return TW_RS_RINGS_AT + TW_RS_IMAGE_RINGS_BYTES(config) + TW_PAGE_BYTES;
}

/* The first piece of addresses of an image: reserved, head, growing, anchor, growing. */
#define TW_RS_FIRST_PIECE_BYTES (TW_RS_HEAD_BYTES + 4 * TW_PAGE_BYTES)
#define TW_RS_FIRST_ANCHOR_AT	(TW_RS_HEAD_BYTES + 2 * TW_PAGE_BYTES)

/* What a thread begins with. */
static inline uint64_t tw_rs_first_bytes(const struct tw_rs_config *config)
{
	bool is_whole = config->has_fixed_rings || config->is_anonymous;

	return is_whole || config->ring_bytes < TW_RS_FIRST_RING_BYTES ? config->ring_bytes : TW_RS_FIRST_RING_BYTES;
}

/* First rings that are prepared for an image that has so many rings. */
static inline uint64_t tw_rs_rings_ahead(uint32_t ring_count)
{
	return ring_count < TW_RS_RINGS_AHEAD_MAX ? ring_count : TW_RS_RINGS_AHEAD_MAX;
}

/* So much of a ring's data has memory from now on: never less than before. */
static inline void tw_rs_raise_present(struct tw_rs_ring *ring, uint64_t present_bytes)
{
	uint32_t pages = (uint32_t)(present_bytes / TW_PAGE_BYTES);
	/* RELAXED rs.present: a first look. */
	uint32_t before = tw_load_relaxed(&ring->present_pages);

	/* PAIR rs.present: acquire and release; acquire in present_bytes().  Memory is there before it is said. */
	while (before < pages && !tw_cas_acq_rel(&ring->present_pages, &before, pages))
		;
}

static inline void tw_rs_image_name(uint64_t lease, char out[40])
{
	snprintf(out, 40, "image-%llu", (unsigned long long)lease);
}

/* A slot's word. */
static inline uint64_t tw_rs_slot_word(enum tw_rs_image_state state, int32_t process_id)
{
	return (uint64_t)state | (uint64_t)(uint32_t)process_id << 32;
}

/* A ring's word. */
static inline uint32_t tw_rs_ring_word(enum tw_rb_state state, uint64_t lease)
{
	return (uint32_t)state | (uint32_t)(lease & 0xffff) << 16;
}

/* Where members write that have no image: memory of this process, which nobody reads. */
extern struct tw_rs_image_head tw_rs_nowhere;
void tw_rs_own_init(struct tw_rs *rs);
/* Unmaps the image; its file stays. */
void tw_rs_own_fini(struct tw_rs *rs);
/* The owner's tables. */
int tw_rs_seen_init(struct tw_rs *rs);
void tw_rs_seen_fini(struct tw_rs *rs);

#endif
