/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live.h - the rings of one process in use, drained in order by a consumer in the same process.
 *
 *	tw_live_begin: positions, twice	-> a round: the records handed out before positions are read again
 *	tw_live_next / tw_live_step	-> its records, one at a time, and its losses
 *
 * A round reads the positions of all rings twice: p1[], then p2[]; of rings that are new in between p2[] only. It merges
 * the records below p2 and is over when all records below p1 are handed out. Thus earlier events come first:
 *
 *	- by run: the runs of a tracee below p2 are known before any is handed out, and a run waits for
 *	  those before it.  If a run is below p1 of one ring, those before it had been committed when the
 *	  second read began, in any ring.
 *	- by time: if b lies below p1 and a happened before b, a was committed before the second read, and
 *	  its ticks are less: it is in the merge, and comes first.
 *
 * Only an event that another thread makes of a tracee at the very same time may end up in the next round; either
 * order is true.
 *
 * Memory  of rings is given back as they are read; 24 bytes for each switch of a round over several rings.
 * Threads one at a time.
 */
#ifndef TW_PIPELINE_LIVE_H
#define TW_PIPELINE_LIVE_H

#include "base/clock.h"
#include "pipeline/format/catalog.h"
#include "pipeline/format/round.h"
#include "ringbuf/ringset.h"

struct tw_live_cursor {
	uint64_t lease;		     /* 0: no ring is known */
	uint64_t pos;		     /* of the record at `at`: everything before it is handed out */
	uint64_t due_pos, known_pos; /* p1, p2 */
	uint64_t given_pos;	     /* up to here the ring was given back to the producer */
	const uint8_t *at, *end;     /* the loaded stretch; NULL: none */
	uint64_t next_pos;	     /* after that stretch */
	uint64_t run_seq;
	uint32_t tracee_id;
	bool is_seen, is_ended, is_waiting, is_forced, needs_check;
	bool is_unnamed;		 /* the ring's header defines a thread that the catalog lacks */
	uint64_t reported[TW_RB_CAUSES]; /* reported by loss records of the stream, and before them */
	uint64_t ahead[TW_RB_CAUSES];	 /* of these, losses that the stream will report again */
};

struct tw_live {
	struct tw_rs *rs;
	uint32_t image;
	struct tw_live_cursor *cursors; /* indexed by ring */
	uint32_t capacity, count;
	uint32_t unfinished; /* cursors before p1 */
	bool is_under_way;
	bool is_writing_event; /* all records are handed out, losses follow */
	uint32_t tell_at;
	struct tw_live_cursor *current;
	/* Used only if several rings hold records. */
	struct tw_round runs;
	struct tw_rb_loss_record loss; /* the loss being reported, beside the records */
	bool has_loss;
	uint32_t loss_tracee, loss_scheduler;
	uint64_t no_ring_reported;
	/* The meaning of ids. */
	struct tw_catalog catalog;
	uint64_t defs_at;
	struct tw_clock_snapshot clock;
};

/*
 * @rs: borrows, a set that this process owns.
 */
void tw_live_init(struct tw_live *live, struct tw_rs *rs, uint32_t image);
void tw_live_fini(struct tw_live *live);

/*
 * tw_live_begin - begin a new round, when the one before is over.
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
 * Returns 1; 0: the round is over. Returns the same event until tw_live_step().
 */
int tw_live_next(struct tw_live *live, struct tw_live_event *out);
void tw_live_step(struct tw_live *live);

/* CLOCK_REALTIME of a CLOCK_MONOTONIC time of this round, in nanoseconds. */
uint64_t tw_live_wall_ns(const struct tw_live *live, uint64_t ns);

/* Drops all records in the rings; returns the number of events. */
uint64_t tw_live_drop(struct tw_live *live);

#endif
