/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk.h - the explicit stack of functions that walk terms: C's own would overflow in deep ones.
 *
 * A frame holds the remaining part of one block.  The first TW_TERM_DEPTH_FIXED frames are in the struct,
 * more come from malloc where that is allowed.
 */
#ifndef TW_TERM_WALK_H
#define TW_TERM_WALK_H

#include "term/term.h"

#include <stdlib.h>

struct tw_walk_frame {
	const struct tw_term *a;
	union {
		const struct tw_term *b; /* compare: the other term's */
		struct tw_term *to;	 /* copy: destination of the copies */
	};
	size_t left;
	uint32_t kind; /* the walker's own */
	uint32_t flag;
};

struct tw_walk {
	struct tw_walk_frame *frames;
	size_t depth;
	size_t capacity;
	struct tw_walk_frame fixed[TW_TERM_DEPTH_FIXED];
};

static inline void tw_walk_init(struct tw_walk *walk)
{
	walk->frames = walk->fixed;
	walk->depth = 0;
	walk->capacity = TW_TERM_DEPTH_FIXED;
}

static inline void tw_walk_fini(struct tw_walk *walk)
{
	if (walk->frames != walk->fixed)
		free(walk->frames);
}

/* Room for one more frame; false without memory. */
bool tw_walk_grow(struct tw_walk *walk);

static inline struct tw_walk_frame *tw_walk_top(struct tw_walk *walk)
{
	return walk->depth ? &walk->frames[walk->depth - 1] : NULL;
}

/* A new frame on top, to be filled in; NULL if it does not fit and the stack must not or cannot grow. */
static inline struct tw_walk_frame *tw_walk_push(struct tw_walk *walk, bool may_allocate)
{
	if (tw_unlikely(walk->depth == walk->capacity) && (!may_allocate || !tw_walk_grow(walk)))
		return NULL;
	return &walk->frames[walk->depth++];
}

#endif
