/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames.h - the functions of a recorded call stack, by number, as struct tw_places numbers those that are traced.
 *
 * A return address is looked up once; a caller that is traced itself has the number that its calls have, any other
 * one gets a name of its own behind them: MODULE:FUNCTION/_, or MODULE:+0x1f2a/_ where no symbol is known.
 */
#ifndef TW_TOOLS_FRAMES_H
#define TW_TOOLS_FRAMES_H

#include "tools/common/places.h"

struct tw_frames_slot {
	uint64_t address; /* or the hash of a name */
	uint32_t image;
	uint32_t function; /* + 1; 0: a free slot */
};

struct tw_frames_table {
	struct tw_frames_slot *slots;
	uint32_t mask, count;
};

/* Zeroed, but for capture and places, which are borrowed until tw_frames_free(); names are added to places. */
struct tw_frames {
	const struct tw_capture *capture;
	struct tw_places *places;
	uint32_t named; /* so many names of places can be found */
	struct tw_frames_table addresses, names;
};

/* The function that goes on at an address when what it called returns.  TW_PLACES_NONE without memory. */
uint32_t tw_frames_function(struct tw_frames *frames, uint32_t image, uint64_t address);
void tw_frames_free(struct tw_frames *frames);

#endif
