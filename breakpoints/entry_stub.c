/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entry_stub.c - the stub of an entry, directly before the copy of the displaced instructions.
 *
 *	away:	jmp   *-16(%rsp)	where a watched call continues
 *	stub:	cmpl  $0, is_armed
 *		je    copy
 *		test  %al, -512(%rsp)	what the hit needs of the program's stack
 *		pushq resume		the copy
 *		pushq place
 *		call  *entry		tw_sled_entry, anywhere in our text; the zero flag: the call is not watched
 *		lea   16(%rsp), %rsp
 *		jne   away
 *	copy:
 *
 * Where little is left of the stack, it is the test that faults, with the function's registers.  The call then goes on in the copy, not
 * recorded, and what overflows is the function itself (agent/preload/fault.c).  The flags that the test sets are not used.
 *
 * A hit goes on in the copy without a jump.  So a call takes as many jumps as through a sled, and none but the call of
 * tw_sled_entry is indirect.  (The stub of a sled, reached by `jmp *word` and left by `jmp *-16(%rsp)`, took two more: 8 ns of
 * a recorded call of one of 64 functions in a random order, and 0.3 ns of one that is not traced.)
 *
 * At a site, in the middle of a function, flags and all registers are in use, and 128 bytes below the stack pointer, the red zone:
 *
 *	stub:	jmp   *next		copy, or armed; a comparison would change the flags
 *	armed:	lea   -128(%rsp), %rsp	steps over the red zone, and keeps the flags
 *		pushq -NEED(%rsp)	reads, as the test above; the word pushed is not used
 *		pushfq
 *		pushq place
 *		call  *entry		tw_site_entry: keeps all registers
 *		lea   8(%rsp), %rsp
 *		popfq
 *		lea   8(%rsp), %rsp
 *	undo:	lea   128(%rsp), %rsp
 *	copy:
 */
#include "breakpoints/entry_stub.h"

#include <string.h>

/* Offsets of displacements, and behind the second push. */
enum { AT_IS_ARMED = 2, AT_PROBE = 12, AT_RESUME = 18, AT_PLACE = 24, PUSHED_BOTH = 28, AT_ENTRY = 30 };

enum {
	CFA_ADVANCE = 0x40,
	CFA_DEF_OFFSET = 0x0e,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_OFFSET = 0x80,
	OP_CONST8U = 0x0e,
	RETURN_ADDRESS = 16
};

static void put_distance(uint8_t *at, const void *target, unsigned tail)
{
	int32_t distance = (int32_t)((intptr_t)target - (intptr_t)(at + 4 + tail));

	memcpy(at, &distance, sizeof distance);
}

void tw_entry_write_stub(uint8_t *stub, const struct tw_entry_data *data, const char *const *entry)
{
	static const char code[] = "\xff\x64\x24\xf0\x83\x3d\0\0\0\0\0\x74\x20\x84\x84\x24\0\0\0\0"
				   "\xff\x35\0\0\0\0\xff\x35\0\0\0\0\xff\x15\0\0\0\0\x48\x8d\x64\x24\x10\x75\xd3";
	const int32_t below = -TW_HIT_STACK_BYTES;

	_Static_assert(sizeof code - 1 == TW_ENTRY_AWAY_BYTES + TW_ENTRY_STUB_BYTES, "both, and the copy behind them");
	memcpy(stub - TW_ENTRY_AWAY_BYTES, code, sizeof code - 1);
	memcpy(stub + AT_PROBE, &below, sizeof below);
	put_distance(stub + AT_IS_ARMED, &data->is_armed, 1);
	put_distance(stub + AT_RESUME, &data->resume, 0);
	put_distance(stub + AT_PLACE, &data->place, 0);
	put_distance(stub + AT_ENTRY, entry, 0);
}

_Atomic uint32_t *tw_entry_is_armed(const uint8_t *stub)
{
	int32_t displacement;

	memcpy(&displacement, stub + AT_IS_ARMED, sizeof displacement);
	return (_Atomic uint32_t *)((uintptr_t)stub + AT_IS_ARMED + 5 + (uintptr_t)(intptr_t)displacement);
}

/*
 * Before and behind its pushes and pops, a stub has the frame of the function's entry, from which the plan's instructions go on.
 * Between them its caller is the function, so an unwinder that begins there shows it.
 */
uint8_t *tw_entry_write_stub_frames(uint8_t *at, uint64_t shown)
{
	*at++ = CFA_ADVANCE | (TW_ENTRY_AWAY_BYTES + TW_ENTRY_STUB_PUSHED);
	*at++ = CFA_DEF_OFFSET;
	*at++ = 8;
	*at++ = CFA_VAL_EXPRESSION;
	*at++ = RETURN_ADDRESS;
	*at++ = 1 + sizeof shown;
	*at++ = OP_CONST8U;
	memcpy(at, &shown, sizeof shown);
	at += sizeof shown;
	*at++ = CFA_ADVANCE | (PUSHED_BOTH - TW_ENTRY_STUB_PUSHED);
	*at++ = CFA_DEF_OFFSET;
	*at++ = 16;
	*at++ = CFA_ADVANCE | (TW_ENTRY_STUB_POPPED - PUSHED_BOTH);
	*at++ = CFA_DEF_OFFSET;
	*at++ = 8;
	/* Not DW_CFA_restore: libgcc does not restore the common description's rule. */
	*at++ = CFA_OFFSET | RETURN_ADDRESS;
	*at++ = 1;
	return at;
}

/* ---- sites ---- */

/* Offsets of displacements and instructions. */
enum {
	SITE_NEXT = 2,
	SITE_ARMED = 6,
	SITE_NEED = 14,
	SITE_FLAGS = 18,
	SITE_PUSH_PLACE = 19,
	SITE_PLACE = 21,
	SITE_CALL = 25,
	SITE_ENTRY = 27,
	SITE_POP_FLAGS = 36,
	SITE_POP_WORD = 37
};
/* The bytes that stub and tw_site_entry push, and those that hold the arguments, beyond the need of an entry's hit. */
#define SITE_MORE_BYTES 256
#define RED_ZONE_BYTES	128

void tw_site_write_stub(uint8_t *stub, const struct tw_entry_data *data, const char *const *entry)
{
	static const char code[] = "\xcc\xcc\xcc\xcc\xff\x25\0\0\0\0\x48\x8d\x64\x24\x80\xff\xb4\x24\0\0\0\0\x9c"
				   "\xff\x35\0\0\0\0\xff\x15\0\0\0\0\x48\x8d\x64\x24\x08\x9d\x48\x8d\x64\x24\x08"
				   "\x48\x8d\xa4\x24\x80\0\0\0";
	const int32_t below = -TW_HIT_STACK_BYTES - SITE_MORE_BYTES;

	_Static_assert(sizeof code - 1 == TW_ENTRY_AWAY_BYTES + TW_SITE_STUB_BYTES, "both, and the copy behind them");
	memcpy(stub - TW_ENTRY_AWAY_BYTES, code, sizeof code - 1);
	memcpy(stub + SITE_NEED, &below, sizeof below);
	put_distance(stub + SITE_NEXT, &data->next, 0);
	put_distance(stub + SITE_PLACE, &data->place, 0);
	put_distance(stub + SITE_ENTRY, entry, 0);
}

_Atomic uint64_t *tw_site_next(const uint8_t *stub)
{
	int32_t displacement;

	memcpy(&displacement, stub + SITE_NEXT, sizeof displacement);
	return (_Atomic uint64_t *)((uintptr_t)stub + SITE_NEXT + 4 + (uintptr_t)(intptr_t)displacement);
}

uint64_t tw_site_next_value(const uint8_t *stub, bool is_armed)
{
	return (uint64_t)(uintptr_t)stub + (is_armed ? SITE_ARMED : TW_SITE_STUB_BYTES);
}

/* Moves on to an instruction, from where the stack holds so many bytes. */
static uint8_t *put_pushed(uint8_t *at, unsigned *from, unsigned to, unsigned pushed)
{
	*at++ = (uint8_t)(CFA_ADVANCE | (to - *from));
	*from = to;
	*at++ = CFA_DEF_OFFSET;
	if (pushed > 0x7f) {
		*at++ = (uint8_t)(pushed | 0x80);
		pushed >>= 7;
	}
	*at++ = (uint8_t)pushed;
	return at;
}

/*
 * The stub's caller is the function, at the site, with all its registers: whatever frame the function has there, its own description
 * goes on from it.
 */
uint8_t *tw_site_write_stub_frames(uint8_t *at, uint64_t shown)
{
	unsigned from = 0;

	*at++ = CFA_DEF_OFFSET;
	*at++ = 0;
	*at++ = CFA_VAL_EXPRESSION;
	*at++ = RETURN_ADDRESS;
	*at++ = 1 + sizeof shown;
	*at++ = OP_CONST8U;
	memcpy(at, &shown, sizeof shown);
	at += sizeof shown;
	at = put_pushed(at, &from, TW_ENTRY_AWAY_BYTES + TW_SITE_STUB_PUSHED, RED_ZONE_BYTES);
	from -= TW_ENTRY_AWAY_BYTES;
	at = put_pushed(at, &from, SITE_FLAGS, RED_ZONE_BYTES + 8);
	at = put_pushed(at, &from, SITE_PUSH_PLACE, RED_ZONE_BYTES + 16);
	at = put_pushed(at, &from, SITE_CALL, RED_ZONE_BYTES + 24);
	at = put_pushed(at, &from, SITE_POP_FLAGS, RED_ZONE_BYTES + 16);
	at = put_pushed(at, &from, SITE_POP_WORD, RED_ZONE_BYTES + 8);
	at = put_pushed(at, &from, TW_SITE_STUB_UNDO, RED_ZONE_BYTES);
	at = put_pushed(at, &from, TW_SITE_STUB_BYTES, 8);
	*at++ = CFA_OFFSET | RETURN_ADDRESS;
	*at++ = 1;
	return at;
}
