/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trigger.h - a member tells the owner that a call has occurred for which a snapshot is to be written.
 *
 * There is one such message at a time, because one snapshot is written at a time: calls that occur meanwhile are counted.
 *
 *	CLOSED <--owner--> FREE --member--> TAKEN --member: written--> READY --owner: it is taken, or counted--> CLOSED, FREE
 *
 * A member that is killed in TAKEN leaves it to the owner, which finds the process gone.
 *
 * Threads  member: any, in hits; owner: the recorder's.
 */
#ifndef TW_RINGBUF_TRIGGER_H
#define TW_RINGBUF_TRIGGER_H

#include "base/atomic.h"
#include "base/cacheline.h"

#include <stdbool.h>
#include <stdint.h>

#define TW_RS_TRIGGER_NAME_BYTES 160

struct tw_rs;

/* ---- in shared memory ---- */

enum tw_rs_trigger_state { TW_RS_TRIGGER_CLOSED, TW_RS_TRIGGER_FREE, TW_RS_TRIGGER_TAKEN, TW_RS_TRIGGER_READY };

/* The call. */
struct tw_rs_trigger_call {
	uint64_t ticks;	      /* when it was told: behind its records */
	uint64_t begin_ticks; /* of the call; 0: it has just begun */
	uint64_t own_ticks;   /* the tracer's own time since then: no time of the program */
	int32_t process_id;
	int32_t thread_id;
	char function[TW_RS_TRIGGER_NAME_BYTES]; /* MODULE:FUNCTION, perhaps cut; terminated */
};

struct tw_rs_trigger {
	TW_CACHELINE_ALIGNED _Atomic uint64_t
		state;		 /* enum tw_rs_trigger_state, and of TAKEN the process id << 32; PAIR rs.trigger */
	_Atomic uint64_t missed; /* calls that found it not FREE */
	struct tw_rs_trigger_call call;
};

/* ---- private to each side ---- */

/*
 * Member: tells the owner of a call, and wakes it if the thread may make system calls (@may_wake).  False: another call is there, or none
 * is wanted; this one is counted.
 */
bool tw_rs_trigger_tell(struct tw_rs *rs, const struct tw_rs_trigger_call *call, bool may_wake);

/* Member: counts calls that are not told. */
void tw_rs_trigger_pass_over(struct tw_rs *rs, uint64_t count);

/*
 * Owner: says whether calls are wanted from now on; one that is there, and was not taken, is counted.  False: nothing has changed, because a
 * member is about to tell a call; to be asked again.
 */
bool tw_rs_trigger_open(struct tw_rs *rs, bool is_wanted);
/* Owner: takes the call that is there; none is wanted then.  Its name has no control characters, whatever the member wrote. */
bool tw_rs_trigger_take(struct tw_rs *rs, struct tw_rs_trigger_call *out);
/* Owner: how many calls were counted and not told so far. */
uint64_t tw_rs_trigger_missed(const struct tw_rs *rs);

#endif
