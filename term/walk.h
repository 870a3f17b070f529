/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk.h - an explicit stack for functions that walk terms; the C stack would overflow in deep terms.
 *
 * A frame holds the remaining part of one block.  The first TW_TERM_DEPTH_FIXED frames are in the struct; further ones
 * come from malloc where that is allowed.
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
	uint32_t kind; /* free for the walker's use */
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

/* Makes space for one more frame; false if memory is short. */
bool tw_walk_grow(struct tw_walk *walk);

static inline struct tw_walk_frame *tw_walk_top(struct tw_walk *walk)
{
	return walk->depth ? &walk->frames[walk->depth - 1] : NULL;
}

/* Pushes a new frame, which the caller fills in; NULL if the stack is full and may not or cannot grow. */
static inline struct tw_walk_frame *tw_walk_push(struct tw_walk *walk, bool may_allocate)
{
	if (tw_unlikely(walk->depth == walk->capacity) && (!may_allocate || !tw_walk_grow(walk)))
		return NULL;
	return &walk->frames[walk->depth++];
}

#endif
