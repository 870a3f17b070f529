/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame_rows.h - how the caller of each instruction of an object is found: call frame information as a table that a hit can read.
 *
 *	values	| v0 | v1 | ...   each row holds from its value to that of the next
 *	rules	| r0 | r1 | ...   by row: the number of its rule; rules are few
 *	blocks	the first row that begins in each 512 bytes of code, so that a search is among some ten rows
 *
 * plan/ makes the table of a file; this file describes its form and checks one.  Code without a row, and rows whose information is an expression
 * that is not known here, have a rule that says so: the walk ends there.  A table belongs to one file, as a plan does (entry_plan.h), is not
 * trusted either, and never changes while it is open.
 *
 *	header | rules of rows | values | blocks | rules
 *
 * Threads  any; tw_frame_rows_find() in hits and signal handlers too.
 * Units    values are those of the object's file; offsets are from the start of the table, in bytes; all numbers are little-endian.
 */
#ifndef TW_SYMBOLS_FRAME_ROWS_H
#define TW_SYMBOLS_FRAME_ROWS_H

#include "base/file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TW_FRAME_ROWS_MAGIC   "tw-rows\n"
#define TW_FRAME_ROWS_VERSION 1

/* Bytes of code that a block has. */
#define TW_FRAME_BLOCK_BITS 9

/* How the canonical frame address (CFA) is found: the address above the return address.  Numbers are part of the form. */
enum tw_frame_cfa {
	TW_FRAME_UNKNOWN,    /* not known: the walk ends, and more callers may exist */
	TW_FRAME_OUTERMOST,  /* there is no caller */
	TW_FRAME_RSP,	     /* %rsp + offset */
	TW_FRAME_RBP,	     /* %rbp + offset */
	TW_FRAME_RSP_MEMORY, /* the word at %rsp + offset, + add */
	TW_FRAME_RBP_MEMORY, /* the word at %rbp + offset, + add */
	TW_FRAME_RSP_PLT,    /* %rsp + offset, + 8 if the low four bits of the address are at least add */
	TW_FRAME_CFAS
};

/* The place of a word of the caller. */
enum tw_frame_at {
	TW_FRAME_AT_CFA, /* at the CFA + offset */
	TW_FRAME_AT_RSP, /* at %rsp + offset */
	TW_FRAME_AT_RBP, /* at %rbp + offset */
	TW_FRAME_SAME,	 /* of %rbp only: it was not changed */
	TW_FRAME_LOST,	 /* of %rbp only: not known; it was perhaps not used either */
	TW_FRAME_ATS
};

struct tw_frame_rule {
	uint8_t cfa;		/* enum tw_frame_cfa */
	uint8_t rbp_at;		/* enum tw_frame_at */
	uint8_t return_at;	/* the same */
	uint8_t is_interrupted; /* the caller was interrupted, and has not called: a signal handler's frame */
	int32_t offset, add;
	int32_t rbp_offset, return_offset;
};

struct tw_frame_rows_header {
	uint8_t magic[8];
	uint32_t version;
	uint32_t build_id_bytes; /* not 0 */
	uint64_t bytes;		 /* of the whole table */
	uint64_t checksum;	 /* tw_checksum64() of the whole table with this field 0 */
	uint8_t build_id[32];
	uint64_t image_bytes;	      /* from the first to the last byte of all segments */
	struct tw_file_identity file; /* from which it was made */
	uint32_t low;		      /* the value of the first row, a multiple of a block's bytes */
	uint32_t row_count;	      /* not 0; the last row is unknown, and ends the code */
	uint32_t block_count;
	uint32_t rule_count; /* not 0 */
	uint32_t row_rules;  /* offset of uint16_t, by row */
	uint32_t values;     /* offset of uint32_t, by row, ascending */
	uint32_t
		blocks; /* offset of uint32_t, one more than blocks: the first row whose value is not below the block's */
	uint32_t rules; /* offset of struct tw_frame_rule */
};

_Static_assert(sizeof(struct tw_frame_rule) == 20, "part of the form");
_Static_assert(sizeof(struct tw_frame_rows_header) == 152, "part of the form");

struct tw_elf;

struct tw_frame_rows {
	const struct tw_frame_rows_header *header;
	const uint16_t *row_rules;
	const uint32_t *values;
	const uint32_t *blocks;
	const struct tw_frame_rule *rules;
};

/*
 * tw_frame_rows_open - check a table in memory.
 *
 * @bytes	borrows until the last use of @out; aligned to 8.
 *
 * Errors: TW_EFORMAT (damaged, or no table), TW_ENOTSUP (of another version).
 */
int tw_frame_rows_open(const void *bytes, size_t count, struct tw_frame_rows *out);

/* The checksum that a table's header must have. */
uint64_t tw_frame_rows_checksum(const struct tw_frame_rows_header *header);

/* As tw_entry_plan_is_of(). */
bool tw_frame_rows_is_of(const struct tw_frame_rows *rows, const struct tw_elf *elf,
			 const struct tw_file_identity *identity);

/*
 * tw_frame_rows_find - the rule of the instruction that contains a value: of a call, one less than the return address.
 *
 * NULL: the object has no code there.
 */
static inline const struct tw_frame_rule *tw_frame_rows_find(const struct tw_frame_rows *rows, uint64_t value)
{
	uint64_t block = (value - rows->header->low) >> TW_FRAME_BLOCK_BITS;
	uint32_t row, count;

	if (block >= rows->header->block_count)
		return NULL;
	row = rows->blocks[block];
	/* The last row that is not behind it: halves, without a branch that depends on what is found. */
	for (count = rows->blocks[block + 1] - row; count; count -= (count + 1) / 2) {
		uint32_t half = (count + 1) / 2;

		row += rows->values[row + half - 1] <= value ? half : 0;
	}
	return row ? &rows->rules[rows->row_rules[row - 1]] : NULL;
}

#endif
