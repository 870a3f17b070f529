/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.h - merge several captures into one, on one time axis.
 *
 *	tw_capture_open() each -> tw_captures_share_clock() for those of one machine
 *	                       -> tw_captures_merge() -> a capture like any other
 *
 * Segments and definitions are copied unchanged.  Captures of one machine (one boot) keep their times, and their event
 * blocks are copied as well; captures of several machines get new times, by the knots that the caller gives.
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
 * tw_captures_share_clock - put captures of one boot of one machine on one clock.
 *
 * Each capture maps ticks to times by its own clock readings, which differ by tens of nanoseconds; without this call, an
 * effect in one capture may seem to precede its cause in another.  Call it before times are read from the captures.
 * A recorder in another time namespace than that of the first capture, as in a container, reads another CLOCK_MONOTONIC: all
 * times of its capture are moved to that of the first, and the capture needs knots to be merged.
 *
 * Errors: TW_ENOTSUP (the captures have different sources of ticks, and are unchanged), TW_ENOMEM.
 */
int tw_captures_share_clock(struct tw_capture *const *captures, uint32_t count);
/* By how much that was; 0: not at all. */
int64_t tw_capture_clock_shift_ns(const struct tw_capture *capture);

/*
 * One point of the map from a capture's times to the common time.  The map is linear between two knots; beyond the first
 * and the last it continues the nearest line.
 */
struct tw_merge_knot {
	uint64_t from_ns; /* CLOCK_MONOTONIC of the capture; each is larger than the one before */
	uint64_t to_ns;	  /* not smaller than the one before */
};

struct tw_merge_input {
	struct tw_capture *capture;	   /* opened from a directory; every segment is closed */
	const char *node;		   /* the node's name in views; at most 64 bytes */
	const char *note;		   /* a sentence added to the notes of its processes; NULL: none */
	const struct tw_merge_knot *knots; /* at least two; NULL: times stay as they are, for none is moved */
	uint32_t knot_count;
};

struct tw_merge_options {
	const char *path;   /* of the new capture; must not exist unless is_forced */
	bool is_forced;	    /* replace a capture there; never anything else, nor one being recorded */
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
 * Either all inputs have knots, or none has.  The capture is written to PATH.part, which cannot be read as a capture until
 * it is complete, and is then renamed.  A merge that is cut off leaves nothing at PATH; the next merge removes PATH.part.
 *
 * Errors: TW_EEXIST (something is at the path), TW_EPERM (another merge writes there), TW_EFORMAT (an input has no end:
 * tw_recover()), TW_ENOTSUP (an input is a stream), TW_EBADARG (also a capture without knots whose clock was moved), TW_ENOSPC, TW_EIO, TW_ENOMEM.  No file is left then.
 */
int tw_captures_merge(const struct tw_merge_input *inputs, uint32_t count, const struct tw_merge_options *options,
		      struct tw_merge_result *result);

#ifdef __cplusplus
}
#endif

#endif
