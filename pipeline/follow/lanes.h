/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lanes.h - new blocks of a capture, in an order in which they can be merged with little memory.
 *
 * The blocks of one process image form a lane: their order is that of its files. Of several lanes, the one goes first
 * whose remaining blocks begin earliest; so all that is still to come begins at or after tw_lanes_low().
 *
 * Threads  one.
 */
#ifndef TW_PIPELINE_LANES_H
#define TW_PIPELINE_LANES_H

#include <stdbool.h>
#include <stdint.h>

struct tw_lanes_piece {
	uint64_t offset, bytes; /* in its file */
	uint64_t first_ticks;	/* of a block of events; UINT64_MAX: it has none */
	uint64_t last_ticks;	/* likewise; UINT64_MAX */
	uint64_t low;		/* the smallest first_ticks from here to the end of the lane */
	uint32_t file;		/* the caller's number */
	uint32_t lane;
	uint32_t next; /* in the lane; UINT32_MAX: none */
};

/* Zeroed: empty. */
struct tw_lanes {
	struct tw_lanes_piece *pieces;
	uint32_t count, capacity;
	uint32_t *heads; /* by lane: its next piece; UINT32_MAX: none */
	uint32_t lane_count, lane_capacity;
};

void tw_lanes_fini(struct tw_lanes *lanes);
/* Adds a lane, and gives its number. UINT32_MAX: no memory. */
uint32_t tw_lanes_new(struct tw_lanes *lanes);
/* Adds a piece behind the others of its lane; low and next are filled in later. False: no memory. */
bool tw_lanes_add(struct tw_lanes *lanes, const struct tw_lanes_piece *piece);
/* All new pieces have been added. */
void tw_lanes_arrange(struct tw_lanes *lanes);
/* Takes the next piece: lent until the next tw_lanes_add(); NULL: none is left. */
const struct tw_lanes_piece *tw_lanes_take(struct tw_lanes *lanes);
/* No block of events that is left begins before this; UINT64_MAX: none is left. */
uint64_t tw_lanes_low(const struct tw_lanes *lanes);

#endif
