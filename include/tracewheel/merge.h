/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.h - several captures become one, in one time.
 *
 *	tw_capture_open() each -> tw_captures_share_clock() for those of one machine
 *	                       -> tw_captures_merge() -> a capture like any other
 *
 * Segments are copied, with definitions as they are. Times of captures of one machine (one boot) stay as they are, and
 * event blocks are copied too; between machines all events get times in the common time that the caller gives.
 *
 * Threads    the captures belong to the caller's thread; one call at a time for each path.
 * Ownership  everything is borrowed until the call returns.
 * Memory     a few blocks, and the index of one segment.
 * Errors     those of tracewheel/error.h.  Link with libtracewheel-capture.
 */
#ifndef TRACEWHEEL_MERGE_H
#define TRACEWHEEL_MERGE_H

#include "tracewheel/capture.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * tw_captures_share_clock - the captures are of one machine since one boot: their times become those of one clock.
 *
 * Each capture maps ticks to times by its own readings of the clocks, which differ by tens of nanoseconds: without this,
 * an effect in one capture may seem to precede its cause in another. Before any times are taken from them.
 * Captures with different sources of ticks are left alone: TW_ENOTSUP. Errors: TW_ENOMEM.
 */
int tw_captures_share_clock(struct tw_capture *const *captures, uint32_t count);

/* A time of a capture in the common time. Between two knots times lie on a straight line; beyond them on the nearest. */
struct tw_merge_knot {
	uint64_t from_ns; /* CLOCK_MONOTONIC of the capture; each is larger than the one before */
	uint64_t to_ns;	  /* not smaller than the one before */
};

struct tw_merge_input {
	struct tw_capture *capture;	   /* opened from a folder, complete: no segment without an end */
	const char *node;		   /* how views name its processes' node; at most 64 bytes */
	const char *note;		   /* a sentence for the notes of its processes; NULL: none */
	const struct tw_merge_knot *knots; /* at least two; NULL: times stay as they are */
	uint32_t knot_count;
};

struct tw_merge_options {
	const char *path;   /* of the new capture; must not exist, or is_forced */
	bool is_forced;	    /* replaces a capture there; never anything else, and none that is being recorded */
	uint32_t reference; /* the input whose CLOCK_REALTIME is that of the merged capture */
	/* Called after each block; may be NULL. */
	void (*progress)(void *context, uint64_t events);
	void *context;
};

struct tw_merge_result {
	uint64_t events;
	uint32_t segments;
	uint64_t damaged_blocks; /* left out: the merged capture counts their events as damaged */
	uint64_t damaged_events;
};

/*
 * tw_captures_merge - write one capture of all inputs.
 *
 * Either all inputs have knots, or none. It is written to PATH.part, which is no capture until it is complete, and then
 * renamed: a merge that is cut off leaves nothing at PATH, and the next one removes what it left.
 *
 * Errors: TW_EEXIST (something is at the path), TW_EPERM (another merge writes there), TW_EFORMAT (an input has no end:
 * tw_recover()), TW_ENOTSUP (an input is a stream), TW_EBADARG, TW_ENOSPC, TW_EIO, TW_ENOMEM. Nothing is left then.
 */
int tw_captures_merge(const struct tw_merge_input *inputs, uint32_t count, const struct tw_merge_options *options,
		      struct tw_merge_result *result);

#ifdef __cplusplus
}
#endif

#endif
