/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cut.h - write a part of a capture as a capture of its own.
 *
 *	tw_capture_open() -> a filter -> tw_capture_cut() -> a capture like any other
 *
 * The part holds the selected events and losses with their times, and the definitions. It knows its bounds, and those of the
 * capture that it was cut from (struct tw_capture_info), so that views of it show what views of the whole capture show
 * with the same selection.
 *
 * Threads    the capture belongs to the caller's thread; one call at a time for each path.
 * Ownership  everything is borrowed until the call returns.
 * Memory     a few blocks.
 * Errors     those of tracewheel/error.h.  Link with libtracewheel-capture.
 */
#ifndef TRACEWHEEL_CUT_H
#define TRACEWHEEL_CUT_H

#include "tracewheel/capture.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An event by its stream and sequence, as in struct tw_capture_event. */
struct tw_cut_event {
	uint32_t stream;
	uint64_t sequence;
};

struct tw_cut_options {
	const char *path; /* of the new capture; must not exist unless is_forced */
	bool is_forced;	  /* replace a capture there; never anything else, nor one being recorded */
	/* The selection: times, streams, places.  Kinds are not looked at: all are kept. */
	struct tw_capture_filter filter;
	/*
	 * Events from before filter.from_ns that are kept as well, whatever the filter says: calls that are open there.  Sorted by
	 * stream, then by sequence.
	 */
	const struct tw_cut_event *before;
	size_t before_count;
	/* Lines of code addresses, which tw_capture_line() finds in the new capture. */
	const struct tw_capture_line *lines;
	size_t line_count;
	/* Data derived from all records of the whole: struct tw_capture_whole_place; and 64 numbers. */
	const struct tw_capture_whole_place *places;
	size_t place_count;
	const uint64_t *kinds;
	/*
	 * Leave out what the program handled, and where its files were: arguments, messages, reasons, layouts of arguments, notes; paths
	 * and the command line but for the names of files.
	 */
	bool is_stripped;
	/* Expressions whose matches in text are replaced by '*': tw_redact_check() of consumer.h. */
	const char *const *redact;
	size_t redact_count;
	/* Called after each block, with the number of events that were written; may be NULL. */
	void (*progress)(void *context, uint64_t events);
	void *context;
};

struct tw_cut_result {
	uint64_t events; /* selected */
	uint64_t before; /* from before the selection */
	uint32_t segments;
	uint64_t damaged_blocks; /* left out: the new capture counts their events as damaged */
	uint64_t damaged_events;
	uint64_t redacted; /* events with text that was replaced */
};

/*
 * tw_capture_cut - write the selected part.
 *
 * @capture	opened from a directory or a file, not a stream that arrives.
 *
 * The part is written to PATH.part, which cannot be read as a capture until it is complete, and is then renamed.
 * Losses by cause are those within the selected times; a loss that only overlaps them counts, as in views.
 *
 * Errors: TW_EEXIST (something is at the path), TW_EPERM (another call writes there), TW_ENOTSUP (a stream), TW_EBADARG,
 * TW_ENOSPC, TW_EIO, TW_ENOMEM.  No file is left then.
 */
int tw_capture_cut(struct tw_capture *capture, const struct tw_cut_options *options, struct tw_cut_result *result);

#ifdef __cplusplus
}
#endif

#endif
