/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sled_frames.c - call frame information for stubs that are made at run time: DWARF's, in the form of .eh_frame.
 *
 * A stub's frame is empty, and its caller is the traced function, which continues after its sled: so an unwinder that
 * begins in a stub (in a signal handler) shows that function and its callers.  One description covers all stubs of an area,
 * by the offset o in the stub:
 *
 *	o	instruction				below the frame
 *	0	pushq resume				0
 *	6	pushq place				8
 *	12	call  *entry				16	(behind its call: tw_sled_entry's own description)
 *	18	lea   16(%rsp), %rsp			16
 *	23	jmp   *-16(%rsp)			0
 *
 * The address where the function continues is on the stack only between o = 6 and o = 18.  But the stub's row of the
 * table always has the place, which says what to show.
 */
#include "breakpoints/sled.h"

#include "base/assert.h"
#include "breakpoints/trampoline.h"

#include <string.h>

/* Operations of expressions (DWARF 5, 7.7.1). */
enum {
	OP_DEREF = 0x06,
	OP_CONST8U = 0x0e,
	OP_DUP = 0x12,
	OP_SWAP = 0x16,
	OP_AND = 0x1a,
	OP_MINUS = 0x1c,
	OP_NOT = 0x20,
	OP_PLUS = 0x22,
	OP_PLUS_CONST = 0x23,
	OP_SHL = 0x24,
	OP_SHR = 0x25,
	OP_GE = 0x2a,
	OP_LIT = 0x30,
	OP_RSP = 0x77,
	OP_RIP = 0x80
};
enum {
	CFA_DEF_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	RETURN_ADDRESS = 16,
	PCREL_SDATA4 = 0x1b,
	UDATA4 = 0x03,
	DATAREL_SDATA4 = 0x3b
};

struct bytes {
	uint8_t *start, *at;
};

static void put8(struct bytes *to, uint8_t value)
{
	*to->at++ = value;
}

static void put32(struct bytes *to, uint32_t value)
{
	memcpy(to->at, &value, sizeof value);
	to->at += sizeof value;
}

static void put_far(struct bytes *to, const void *address)
{
	memcpy(to->at, &address, sizeof address);
	to->at += sizeof address;
}

/* The distance of an address from here, or from the start. */
static void put_from(struct bytes *to, const uint8_t *from, const uint8_t *address)
{
	put32(to, (uint32_t)(address - from));
}

/* Writes a block after its length as a one-byte LEB128. */
static void put_block(struct bytes *to, const uint8_t *block, size_t bytes)
{
	put8(to, (uint8_t)bytes);
	memcpy(to->at, block, bytes);
	to->at += bytes;
}

static void put_rules(struct bytes *to, const uint8_t *stubs, const void *table)
{
	/* %rsp + 8 * ((o >= 6) + (o >= 12) - 2 * (o >= 23)) */
	static const uint8_t frame[] = {OP_RSP,	    0,		 OP_RIP,     0,	       OP_LIT + TW_SLED_STUB_BYTES - 1,
					OP_AND,	    OP_DUP,	 OP_LIT + 6, OP_GE,    OP_SWAP,
					OP_DUP,	    OP_LIT + 12, OP_GE,	     OP_SWAP,  OP_LIT + 23,
					OP_GE,	    OP_LIT + 1,	 OP_SHL,     OP_MINUS, OP_PLUS,
					OP_LIT + 3, OP_SHL,	 OP_PLUS};
	/* The row: table + ((%rip - stubs) & ~31) / 2; its second word is the place, which has the address. */
	static const uint8_t shown[] = {OP_PLUS,
					OP_PLUS_CONST,
					8,
					OP_DEREF,
					OP_PLUS_CONST,
					(TW_PLACE_SHOWN_OFFSET & 0x7f) | 0x80,
					TW_PLACE_SHOWN_OFFSET >> 7};
	static const uint8_t row[] = {OP_MINUS, OP_LIT + TW_SLED_STUB_BYTES - 1, OP_NOT, OP_AND, OP_LIT + 1, OP_SHR};

	put8(to, CFA_DEF_EXPRESSION);
	put_block(to, frame, sizeof frame);
	put8(to, CFA_EXPRESSION);
	put8(to, RETURN_ADDRESS);
	put8(to, 2 + 9 + sizeof row + 9 + sizeof shown);
	put8(to, OP_RIP);
	put8(to, 0);
	put8(to, OP_CONST8U);
	put_far(to, stubs);
	memcpy(to->at, row, sizeof row);
	to->at += sizeof row;
	put8(to, OP_CONST8U);
	put_far(to, table);
	memcpy(to->at, shown, sizeof shown);
	to->at += sizeof shown;
}

/* Pads to a multiple of 8 with zeros, which are no-ops; the length precedes the bytes that it counts. */
static void end_entry(struct bytes *to, uint8_t *start)
{
	uint32_t length;

	while ((to->at - start) % 8)
		put8(to, 0);
	length = (uint32_t)(to->at - start) - (uint32_t)sizeof length;
	memcpy(start, &length, sizeof length);
}

void tw_sled_write_frames(uint8_t *at, const uint8_t *stubs, uint32_t bytes, const void *table)
{
	/* The header: version, the encodings of the fields, the start of the entries, and a table of one row. */
	static const uint8_t forms[] = {1, PCREL_SDATA4, UDATA4, DATAREL_SDATA4};
	/* Version 1, augmentation "zR", factors 1 and -8, column 16, one byte: the form of addresses. */
	static const uint8_t common_head[] = {1, 'z', 'R', 0, 1, 0x78, RETURN_ADDRESS, 1, PCREL_SDATA4};
	struct bytes to = {at, at};
	uint8_t *common = at + 24, *own;

	memcpy(to.at, forms, sizeof forms);
	to.at = common + 8;
	memset(common, 0, 8);
	memcpy(to.at, common_head, sizeof common_head);
	to.at += sizeof common_head;
	put_rules(&to, stubs, table);
	end_entry(&to, common);
	own = to.at;
	to.at += 4;
	put_from(&to, common, to.at);
	put_from(&to, to.at, stubs);
	put32(&to, bytes);
	put8(&to, 0);
	end_entry(&to, own);
	put32(&to, 0);
	TW_ASSERT(to.at - at <= TW_SLED_FRAMES_BYTES);
	to.at = at + 4;
	put_from(&to, to.at, common);
	put32(&to, 1);
	put_from(&to, at, stubs);
	put_from(&to, at, own);
}
