/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames.h - numbers the functions of a recorded call stack, as struct tw_places numbers traced functions.
 *
 * A return address is looked up once. A caller that is traced itself has the number of its calls; any other caller
 * gets a name of its own after those: MODULE:FUNCTION/_, or MODULE:+0x1f2a/_ if no symbol is known.
 */
#ifndef TW_VIEWS_FRAMES_H
#define TW_VIEWS_FRAMES_H

#include "views/folds/places.h"
#include "base/map.h"

struct tw_frame_address {
	uint64_t address;
	uint32_t image, function;
};

/* Zeroed, except by_line, and capture and places, which are borrowed until tw_frames_free(); names are added to places. */
struct tw_frames {
	bool by_line; /* a name is that of the line, as of tw_line_put(), and of no function */
	const struct tw_capture *capture;
	struct tw_places *places;
	uint32_t named;	     /* the number of names of places that are in the map */
	struct tw_map names; /* functions, by the hashes of their names */
	struct tw_frame_address *addresses;
	uint32_t count, capacity;
	struct tw_map by_address;
};

/* The function that continues at a return address. TW_PLACES_NONE: no memory. */
uint32_t tw_frames_function(struct tw_frames *frames, uint32_t image, uint64_t address);
void tw_frames_free(struct tw_frames *frames);

#endif
