/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns.h - n numbers of 64 bits in as few whole bytes each as the largest needs.
 *
 * A column is one byte {mode:4 width:4}, in mode 1 a base of 8 bytes, and n numbers of `width` bytes.
 * Mode 0 holds the numbers, mode 1 the zigzag of their differences.  Widths of 1, 2, 4 and 8 bytes
 * are plain array copies, which compilers turn into vectors.
 */
#ifndef TW_PIPELINE_COLUMNS_H
#define TW_PIPELINE_COLUMNS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Numbers in a column at most: one long pause must not widen thousands of differences. */
#define TW_COLUMN_MAX 256
/* Writing and reading move 8 bytes at a time: so much room behind every buffer. */
#define TW_COLUMN_SLACK_BYTES 16
/* What a column takes at most. */
#define TW_COLUMN_BYTES_MAX (9 + 8 * TW_COLUMN_MAX)

static inline void tw_put64(uint8_t *to, uint64_t value)
{
	memcpy(to, &value, sizeof value);
}

static inline uint64_t tw_get64(const uint8_t *from)
{
	uint64_t value;

	memcpy(&value, from, sizeof value);
	return value;
}

static inline void tw_put32(uint8_t *to, uint32_t value)
{
	memcpy(to, &value, sizeof value);
}

static inline uint32_t tw_get32(const uint8_t *from)
{
	uint32_t value;

	memcpy(&value, from, sizeof value);
	return value;
}

/* How many bytes a number needs: 0 to 8. */
static inline unsigned tw_width_of(uint64_t value)
{
	return value ? (unsigned)(71 - __builtin_clzll(value)) >> 3 : 0;
}

/* Writes a column in the shorter mode; returns behind it.  count: 0 .. TW_COLUMN_MAX. */
uint8_t *tw_column_put(uint8_t *out, const uint64_t *values, size_t count);

/*
 * tw_column_get - read a column.
 *
 * @in		TW_COLUMN_SLACK_BYTES behind end may be read.
 * @values	room for TW_COLUMN_MAX.
 *
 * Returns behind it, or NULL where it does not end before `end` or is none.
 */
const uint8_t *tw_column_get(const uint8_t *in, const uint8_t *end, uint64_t *values, size_t count);

#endif
