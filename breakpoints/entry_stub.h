/* SPDX-License-Identifier: Apache-2.0 */
/* entry_stub.h - the code to which the jump at a function's entry leads; see entry_stub.c.  Under the permit. */
#ifndef TW_BREAKPOINTS_ENTRY_STUB_H
#define TW_BREAKPOINTS_ENTRY_STUB_H

#include "breakpoints/breakpoints.h"

/* The length of a stub; the copy follows it.  Code of this many bytes before the stub belongs to it. */
#define TW_ENTRY_STUB_BYTES 41u
#define TW_ENTRY_AWAY_BYTES 4u
/* The offset of the instruction that reads what the hit will need of the stack. */
#define TW_ENTRY_STUB_PROBE 9
/* Offsets between which a stub has words of its own on the stack. */
#define TW_ENTRY_STUB_PUSHED 22
#define TW_ENTRY_STUB_POPPED 39

/* The words that a stub reads, and what it belongs to. */
struct tw_entry_data {
	_Atomic uint32_t is_armed; /* 0: the stub leads to its copy at once */
	const void *_Atomic resume;
	struct tw_place *_Atomic place;
	const struct tw_bp_entry *entry;
};
_Static_assert(sizeof(struct tw_entry_data) == 32, "two of them share a cache line");

/* Writes a stub and the code before it; @entry holds the address of tw_sled_entry.  Both are within reach. */
void tw_entry_write_stub(uint8_t *stub, const struct tw_entry_data *data, const char *const *entry);

#define TW_ENTRY_STUB_FRAME_BYTES 23u
/*
 * tw_entry_write_stub_frames - write DWARF call frame instructions, with factors 1 and -8, from the code before a stub to
 * TW_ENTRY_STUB_POPPED; returns their end.
 *
 * @shown	the address in the function that unwinders see as the stub's caller.
 */
uint8_t *tw_entry_write_stub_frames(uint8_t *at, uint64_t shown);

/* The word of a stub. */
_Atomic uint32_t *tw_entry_is_armed(const uint8_t *stub);

#endif
