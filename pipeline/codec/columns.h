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

/* The most numbers in a column: one long pause must not widen thousands of differences. */
#define TW_COLUMN_MAX 256
/* Columns are written and read 8 bytes at a time: every buffer needs this much space after its end. */
#define TW_COLUMN_SLACK_BYTES 16
/* The largest size of a column. */
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

/* The bytes that a number needs: 0 to 8. */
static inline unsigned tw_width_of(uint64_t value)
{
	return value ? (unsigned)(71 - __builtin_clzll(value)) >> 3 : 0;
}

/* Writes a column in the shorter mode; returns its end. count: 0 .. TW_COLUMN_MAX. */
uint8_t *tw_column_put(uint8_t *out, const uint64_t *values, size_t count);

/*
 * tw_column_get - read a column.
 *
 * @in		TW_COLUMN_SLACK_BYTES after `end` may be read.
 * @values	holds TW_COLUMN_MAX.
 *
 * Returns the end of the column, or NULL if it is not valid or does not end before `end`.
 */
const uint8_t *tw_column_get(const uint8_t *in, const uint8_t *end, uint64_t *values, size_t count);

#endif
