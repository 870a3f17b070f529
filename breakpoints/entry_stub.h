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

/* The same of a site's stub: its length, the instruction that reads, and where the stack pointer is not the function's. */
#define TW_SITE_STUB_BYTES  50u
#define TW_SITE_STUB_PROBE  11
#define TW_SITE_STUB_PUSHED 11
#define TW_SITE_STUB_UNDO   42 /* takes back what was done before the read */

/* The words that a stub reads, and what it belongs to. */
struct tw_entry_data {
	union {
		_Atomic uint32_t is_armed; /* an entry's; 0: the stub leads to its copy at once */
		_Atomic uint64_t
			next; /* a site's: where the stub begins: at its copy, or behind its first instruction */
	};
	const void *_Atomic resume;
	struct tw_place *_Atomic place;
	const struct tw_bp_entry *entry;
};
_Static_assert(sizeof(struct tw_entry_data) == 32, "two of them share a cache line");

/* Writes a stub and the code before it; @entry holds the address of tw_sled_entry.  Both are within reach. */
void tw_entry_write_stub(uint8_t *stub, const struct tw_entry_data *data, const char *const *entry);

/* The same for a site: @entry holds the address of tw_site_entry. */
void tw_site_write_stub(uint8_t *stub, const struct tw_entry_data *data, const char *const *entry);

static inline unsigned tw_entry_stub_bytes(bool is_site)
{
	return is_site ? TW_SITE_STUB_BYTES : TW_ENTRY_STUB_BYTES;
}

#define TW_ENTRY_STUB_FRAME_BYTES 23u
#define TW_SITE_STUB_FRAME_BYTES  52u
/*
 * tw_entry_write_stub_frames - write DWARF call frame instructions, with factors 1 and -8, from the code before a stub to
 * TW_ENTRY_STUB_POPPED; returns their end.
 *
 * @shown	the address in the function that unwinders see as the stub's caller.
 */
uint8_t *tw_entry_write_stub_frames(uint8_t *at, uint64_t shown);

/* The same from the code before a site's stub to its copy, as whose caller a site's stub shows the function. */
uint8_t *tw_site_write_stub_frames(uint8_t *at, uint64_t shown);

/* The word of an entry's stub, and of a site's. */
_Atomic uint32_t *tw_entry_is_armed(const uint8_t *stub);
_Atomic uint64_t *tw_site_next(const uint8_t *stub);
/* The values of a site's word. */
uint64_t tw_site_next_value(const uint8_t *stub, bool is_armed);

#endif
