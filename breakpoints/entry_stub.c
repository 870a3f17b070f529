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
