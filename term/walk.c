/* SPDX-License-Identifier: Apache-2.0 */
/* walk.c - growing the stack of a walk. */
#include "term/walk.h"

bool tw_walk_grow(struct tw_walk *walk)
{
	size_t capacity = walk->capacity * 2;
	struct tw_walk_frame *frames = malloc(capacity * sizeof *frames);

	if (!frames)
		return false;
	memcpy(frames, walk->frames, walk->depth * sizeof *frames);
	tw_walk_fini(walk);
	walk->frames = frames;
	walk->capacity = capacity;
	return true;
}
