/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demotion.h - the owner asks a member to count the calls of places that it records: they make too many events.
 *
 * One request at a time.  The owner writes it, and then its number to `asked`; the member does what it wants of it, and then writes the
 * number to `done`.  Until then the owner writes no other.
 *
 * Threads  member: one, outside of hits; owner: the recorder's.
 */
#ifndef TW_RINGBUF_DEMOTION_H
#define TW_RINGBUF_DEMOTION_H

#include "base/atomic.h"
#include "base/cacheline.h"

#include <stdbool.h>
#include <stdint.h>

/* Places in a request. */
#define TW_RS_DEMOTED_MAX 1000

struct tw_rs;

/* ---- in shared memory ---- */

struct tw_rs_demotion {
	/* Written by the owner. */
	TW_CACHELINE_ALIGNED _Atomic uint32_t asked; /* PAIR rs.demotion_asked */
	uint32_t count;
	uint32_t share; /* of all events, in percent, that these places make */
	uint32_t places[TW_RS_DEMOTED_MAX];
	/* Written by the member. */
	TW_CACHELINE_ALIGNED _Atomic uint32_t done; /* PAIR rs.demotion_done */
	uint32_t changed;			    /* functions that are counted since that request */
};

/* ---- private to each side ---- */

/* The owner's request. */
struct tw_rs_demoted {
	uint32_t number; /* for tw_rs_demotion_done() */
	uint32_t share;	 /* 0 to 100 */
	uint32_t count;
	const uint32_t *places; /* lent until tw_rs_demotion_done(); any numbers */
};

/* Member: is there a request that was not done? */
bool tw_rs_demotion_take(const struct tw_rs *rs, struct tw_rs_demoted *out);
/* Member: it is done, or as much of it as can be: so many functions are counted now that were not. */
void tw_rs_demotion_done(struct tw_rs *rs, const struct tw_rs_demoted *demoted, uint32_t changed);

/* Owner: is the last request not done yet?  @changed	if it is: whether anything has changed for it. */
bool tw_rs_demotion_is_pending(const struct tw_rs *rs, bool *changed);
/* Owner, when none is pending: asks for the first TW_RS_DEMOTED_MAX of these. */
void tw_rs_demotion_ask(struct tw_rs *rs, const uint32_t *places, uint32_t count, uint32_t share);

#endif
