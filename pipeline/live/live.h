/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live.h - the living rings of one process, drained in order by a consumer in the same process.
 *
 *	tw_live_begin: positions, twice	-> a round: what is handed out before the next look
 *	tw_live_next / tw_live_step	-> its records, one at a time, and its losses
 *
 * A round takes two looks at all rings: p1[], then p2[].  It merges what lies below p2 and is over when
 * everything below p1 is handed out.  So what happened before comes first:
 *
 *	- by run: the runs of a tracee below p2 are known before any is handed out, and a run waits for
 *	  those before it.  If a run stands below p1 of one ring, those before it had been committed when the
 *	  second look began, in whatever ring.
 *	- by time: if b lies below p1 and a happened before b, a was committed before the second look, and
 *	  its ticks are less: it lies in the merge, and comes first.
 *
 * Only an event that another thread makes of a tracee at the very same time may find its place among those of
 * the next round, as either order is true.
 *
 * Memory  of rings, given back as they are passed; 24 bytes for each switch of a round over several rings.
 * Threads one at a time.
 */
#ifndef TW_PIPELINE_LIVE_H
#define TW_PIPELINE_LIVE_H

#include "base/clock.h"
#include "pipeline/format/catalog.h"
#include "pipeline/format/round.h"
#include "ringbuf/ringset.h"

struct tw_live_cursor {
	uint64_t lease;			  /* 0: none known */
	uint64_t pos;			  /* of the record at `at`: everything before is handed out */
	uint64_t first_look, second_look; /* p1, p2 */
	uint64_t given_pos;		  /* what the producer has back */
	const uint8_t *at, *end;	  /* the stretch that is loaded; NULL: none */
	uint64_t next_pos;		  /* behind that stretch */
	uint64_t run_seq;
	uint32_t tracee_id;
	bool is_seen, is_ended, is_waiting, is_forced, needs_check;
	uint64_t told[TW_RB_CAUSES];  /* by loss records of the stream, and ahead of them */
	uint64_t ahead[TW_RB_CAUSES]; /* of these, what the stream will tell again */
};

struct tw_live {
	struct tw_rs *rs;
	uint32_t image;
	struct tw_live_cursor *cursors; /* by ring */
	uint32_t room, count;
	uint32_t unfinished; /* cursors that stand before p1 */
	bool is_under_way;
	bool is_writing_event; /* records are done, losses follow */
	uint32_t tell_at;
	struct tw_live_cursor *current;
	/* Only where several rings hold something. */
	struct tw_round runs;
	struct tw_rb_loss_record loss; /* that is told now, beside the records */
	bool has_loss;
	uint32_t loss_tracee, loss_scheduler;
	uint64_t no_ring_told;
	/* What ids mean. */
	struct tw_catalog catalog;
	uint64_t defs_at;
	struct tw_clock_snapshot clock;
};

/* @rs: borrows, a set that this process owns. */
void tw_live_init(struct tw_live *live, struct tw_rs *rs, uint32_t image);
void tw_live_fini(struct tw_live *live);

/*
 * tw_live_begin - a new round, when the one before is over.
 *
 * Returns 1 when there is something, 0, or TW_ENOMEM.
 */
int tw_live_begin(struct tw_live *live);

struct tw_live_event {
	struct tw_capture_event event; /* payload: lends until tw_live_step(); stream and image are 0 */
	uint32_t scheduler_id;
};

/*
 * tw_live_next - the next event of the round, losses included.
 *
 * Returns 1; 0: the round is over.  The same event again until tw_live_step().
 */
int tw_live_next(struct tw_live *live, struct tw_live_event *out);
void tw_live_step(struct tw_live *live);

/* Nanoseconds of CLOCK_MONOTONIC and CLOCK_REALTIME of ticks of this round. */
uint64_t tw_live_ns(const struct tw_live *live, uint64_t ticks);
uint64_t tw_live_wall_ns(const struct tw_live *live, uint64_t ns);

/* Everything that the rings hold is dropped; returns how many events that were. */
uint64_t tw_live_drop(struct tw_live *live);

#endif
