/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame_bytes.h - the bytes of call frame information, read in order, and its instructions: for frames.c and frame_walk.c.
 *
 * Threads  any; a cursor belongs to one thread.
 */
#ifndef TW_SYMBOLS_FRAME_BYTES_H
#define TW_SYMBOLS_FRAME_BYTES_H

#include "symbols/elf.h"

#include <string.h>

/* Instructions of call frames (DWARF 5, 7.24); the first three have their operand in the low six bits. */
enum {
	CFA_ADVANCE_LOC = 0x40,
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,
	CFA_HIGH_MASK = 0xc0,
	CFA_NOP = 0x00,
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE_LOC1 = 0x02,
	CFA_ADVANCE_LOC2 = 0x03,
	CFA_ADVANCE_LOC4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER_STATE = 0x0a,
	CFA_RESTORE_STATE = 0x0b,
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_REGISTER = 0x0d,
	CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_CFA_SF = 0x12,
	CFA_DEF_CFA_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_GNU_ARGS_SIZE = 0x2e
};

/* No number of 64 bits is longer. */
#define LEB_BITS_MAX 70

/* Bytes of the image that are read in order.  A read behind the end gives zeros and sets is_damaged. */
struct cursor {
	const struct tw_elf *elf;
	const uint8_t *at, *end;
	bool is_damaged;
};

static inline struct cursor cursor_at(const struct tw_elf *elf, uintptr_t address, uint64_t bytes)
{
	struct cursor cursor = {.elf = elf, .is_damaged = !tw_elf_holds(elf, address, bytes)};

	if (!cursor.is_damaged) {
		cursor.at = (const uint8_t *)address;
		cursor.end = cursor.at + bytes;
	}
	return cursor;
}

static inline void take(struct cursor *from, void *out, size_t bytes)
{
	if ((size_t)(from->end - from->at) < bytes) {
		from->is_damaged = true;
		from->at = from->end;
		memset(out, 0, bytes);
		return;
	}
	memcpy(out, from->at, bytes);
	from->at += bytes;
}

static inline uint8_t take8(struct cursor *from)
{
	uint8_t value;

	take(from, &value, sizeof value);
	return value;
}

static inline uint32_t take32(struct cursor *from)
{
	uint32_t value;

	take(from, &value, sizeof value);
	return value;
}

static inline void skip(struct cursor *from, uint64_t bytes)
{
	if ((uint64_t)(from->end - from->at) < bytes) {
		from->is_damaged = true;
		bytes = (uint64_t)(from->end - from->at);
	}
	from->at += bytes;
}

static inline uint64_t take_leb(struct cursor *from, bool is_signed)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = take8(from);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		/* No number of 64 bits is longer; a damaged one could go on to the end of a large section, for each description. */
		from->is_damaged |= shift > LEB_BITS_MAX;
	} while (byte & 0x80 && !from->is_damaged);
	if (is_signed && shift < 64 && byte & 0x40)
		value |= UINT64_MAX << shift;
	return value;
}

static inline uint64_t take_uleb(struct cursor *from)
{
	return take_leb(from, false);
}

#endif
