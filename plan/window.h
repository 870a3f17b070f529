/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.h - the first instructions of one function: can a jump be written over them, and what runs in their place.
 *
 * Threads  any; a window belongs to one thread.
 */
#ifndef TW_PLAN_WINDOW_H
#define TW_PLAN_WINDOW_H

#include "plan/scan.h"
#include "symbols/entry_plan.h"

/* An instruction needs 15 bytes, the last one may begin at the fifth byte. */
#define TW_WINDOW_INSTRUCTIONS_MAX 5

struct tw_window {
	enum tw_entry_refusal refusal;
	uint64_t value; /* of its first byte */
	uint8_t flags;	/* TW_ENTRY_* of the plan */
	uint8_t offset; /* from the entry */
	uint8_t bytes;
	uint8_t copy_bytes, fix_count, map_count, frame_bytes;
	uint8_t copy[TW_ENTRY_COPY_BYTES_MAX];
	struct tw_entry_plan_fix fixes[TW_ENTRY_FIXES_MAX];
	uint8_t map[2 * TW_WINDOW_INSTRUCTIONS_MAX];
	uint8_t frame[TW_ENTRY_FRAME_BYTES_MAX];
};

/*
 * tw_window_examine - examine the entry with this index, which is a function.
 *
 * With a refusal only that is set.
 */
void tw_window_examine(const struct tw_scan *scan, size_t index, struct tw_window *out);

/*
 * tw_window_examine_site - examine the NOP of a probe at this value, in the code of the entry with this index.
 *
 * As tw_window_examine().  Jumps whose targets are not known are not looked for: that is sites.h's.
 */
void tw_window_examine_site(const struct tw_scan *scan, size_t index, uint64_t value, struct tw_window *out);

#endif
