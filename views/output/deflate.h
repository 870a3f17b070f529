/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate.h - packs output in pieces, as zlib does, on a thread of its own while the next piece is made.
 *
 * Each piece is a whole stream of zlib (RFC 1950); all pieces but the last have TW_DEFLATE_BYTES bytes or a few more, as items are not cut.
 *
 * Threads  one user, which also gets the packed pieces, in their order.
 * Memory   two pieces, packed and unpacked.
 */
#ifndef TW_VIEWS_DEFLATE_H
#define TW_VIEWS_DEFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TW_DEFLATE_BYTES (256u << 10)

/* A packed piece. */
typedef void tw_deflate_fn(void *context, const void *data, size_t bytes);

struct tw_deflate;

/* Returns NULL without memory; tw_deflate_destroy() ends what it gives.  Without a second thread pieces are packed by the user's own. */
struct tw_deflate *tw_deflate_create(tw_deflate_fn *put, void *context);
/* An item, which lies in one piece: its head and the rest.  False: no memory. */
bool tw_deflate_add(struct tw_deflate *packer, const void *head, size_t head_bytes, const void *data, size_t bytes);
/* The same in two steps: space for an item of at most so many bytes, NULL without memory; and how many of them were written there. */
uint8_t *tw_deflate_space(struct tw_deflate *packer, size_t bytes);
bool tw_deflate_added(struct tw_deflate *packer, size_t bytes);
/* The last piece.  False: no memory, now or before. */
bool tw_deflate_finish(struct tw_deflate *packer);
void tw_deflate_destroy(struct tw_deflate *packer);

#endif
