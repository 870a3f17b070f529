/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead.h - batches of a sequence that a thread of its own makes, some ahead of the thread that uses them.
 *
 *	maker    5 6 7 8 | waits: 8 of 8 are made or in use
 *	user     uses 1; a call gives it back, and takes 2
 *
 * Batches are numbered by their places, 0 .. TW_AHEAD_BATCHES - 1, and are reused. The side that has to wait waits for half of
 * them, so that a hand-over wakes a thread once in four batches.
 *
 * Threads  the user's calls these functions; make() runs on the maker's.
 */
#ifndef TW_PIPELINE_AHEAD_H
#define TW_PIPELINE_AHEAD_H

#include <stdbool.h>

enum { TW_AHEAD_BATCHES = 8 };

/* Makes a batch; all that was in its place is no longer used. False: no further one follows. */
typedef bool tw_ahead_make_fn(void *context, unsigned number);

struct tw_ahead;
/*
 * tw_ahead_create - begin to make batches.
 *
 * @context	borrows until tw_ahead_destroy().
 * @out		gives.
 *
 * Returns 0 or TW_ENOMEM: there is no thread.
 */
int tw_ahead_create(tw_ahead_make_fn *make, void *context, struct tw_ahead **out);
/* Ends the maker, which may be within a batch. NULL: nothing. */
void tw_ahead_destroy(struct tw_ahead *ahead);

/* Gives the last batch back and waits for the next one; after the last it is that again. */
unsigned tw_ahead_next(struct tw_ahead *ahead);

#endif
