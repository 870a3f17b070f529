/* SPDX-License-Identifier: Apache-2.0 */
/* lanes.c - puts new blocks of several images in order: lanes.h. */
#include "pipeline/follow/lanes.h"
#include "base/grow.h"

#define NONE UINT32_MAX

void tw_lanes_fini(struct tw_lanes *lanes)
{
	free(lanes->pieces);
	free(lanes->heads);
	*lanes = (struct tw_lanes){0};
}

uint32_t tw_lanes_new(struct tw_lanes *lanes)
{
	if (!tw_grow(lanes->heads, lanes->lane_count, lanes->lane_capacity))
		return NONE;
	lanes->heads[lanes->lane_count] = NONE;
	return lanes->lane_count++;
}

bool tw_lanes_add(struct tw_lanes *lanes, const struct tw_lanes_piece *piece)
{
	if (!tw_grow(lanes->pieces, lanes->count, lanes->capacity))
		return false;
	lanes->pieces[lanes->count++] = *piece;
	return true;
}

void tw_lanes_arrange(struct tw_lanes *lanes)
{
	/* From the last to the first: each piece comes before the head of its lane. */
	for (uint32_t i = lanes->count; i-- > 0;) {
		struct tw_lanes_piece *piece = &lanes->pieces[i];
		uint32_t *head = &lanes->heads[piece->lane];

		piece->next = *head;
		piece->low = piece->first_ticks;
		if (*head != NONE && lanes->pieces[*head].low < piece->low)
			piece->low = lanes->pieces[*head].low;
		*head = i;
	}
}

/* The lane that begins earliest; NONE: all are empty. */
static uint32_t earliest(const struct tw_lanes *lanes)
{
	uint32_t first = NONE;

	for (uint32_t i = 0; i < lanes->lane_count; i++) {
		uint32_t head = lanes->heads[i];

		if (head != NONE && (first == NONE || lanes->pieces[head].low < lanes->pieces[lanes->heads[first]].low))
			first = i;
	}
	return first;
}

const struct tw_lanes_piece *tw_lanes_take(struct tw_lanes *lanes)
{
	uint32_t lane = earliest(lanes);
	const struct tw_lanes_piece *piece;

	if (lane == NONE) {
		lanes->count = 0;
		return NULL;
	}
	piece = &lanes->pieces[lanes->heads[lane]];
	lanes->heads[lane] = piece->next;
	return piece;
}

uint64_t tw_lanes_low(const struct tw_lanes *lanes)
{
	uint32_t lane = earliest(lanes);

	return lane == NONE ? UINT64_MAX : lanes->pieces[lanes->heads[lane]].low;
}
