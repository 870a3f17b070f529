/* SPDX-License-Identifier: Apache-2.0 */
/* inside.h - what the files of this room share. */
#ifndef TW_RINGBUF_INSIDE_H
#define TW_RINGBUF_INSIDE_H

#include "ringbuf/ringset.h"

#include <stdio.h>

#define TW_RS_CONTROL_BYTES \
	((sizeof(struct tw_rs_control) + TW_PAGE_BYTES - 1) / TW_PAGE_BYTES * TW_PAGE_BYTES)
#define TW_RS_NONE UINT32_MAX

/* A file's part for rings: the cap, and small ones that may pass it. */
#define TW_RS_IMAGE_RINGS_BYTES(config) \
	((config)->cap_bytes + TW_RS_IMAGE_RINGS_MAX * (TW_RS_FIRST_RING_BYTES + TW_PAGE_BYTES))

/* One page behind the last ring: where the next would begin. */
static inline uint64_t tw_rs_image_bytes(const struct tw_rs_config *config)
{
	return TW_RS_RINGS_AT + TW_RS_IMAGE_RINGS_BYTES(config) + TW_PAGE_BYTES;
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
