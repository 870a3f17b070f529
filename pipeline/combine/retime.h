/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retime.h - times of one capture in the common time of several.
 *
 * The ticks of a merged capture are nanoseconds, its clock is CLOCK_MONOTONIC of the reference.
 *
 * Threads  one.
 */
#ifndef TW_PIPELINE_RETIME_H
#define TW_PIPELINE_RETIME_H

#include "pipeline/reader/reader.h"
#include "tracewheel/merge.h"

/* One straight line. */
struct tw_retime_line {
	uint64_t from_ns, to_ns;
	int64_t drift; /* in 2^-60: the common time advances by so much more */
};

struct tw_retime {
	const struct tw_capture *capture;
	const struct tw_capture *reference;
	struct tw_retime_line *lines;
	uint32_t line_count;
	uint32_t line; /* the last one that was used */
	size_t hint;
	uint64_t shift_ns; /* of the reference's own times in the common time */
};

/* Returns 0, TW_EBADARG (the knots) or TW_ENOMEM. tw_retime_fini() in any case. */
int tw_retime_init(struct tw_retime *retime, const struct tw_merge_input *input,
		   const struct tw_merge_input *reference);
void tw_retime_fini(struct tw_retime *retime);

/* The common time of ticks of the capture, and of a time of its CLOCK_MONOTONIC. Never decreases. */
uint64_t tw_retime_ticks(struct tw_retime *retime, uint64_t ticks);
uint64_t tw_retime_ns(struct tw_retime *retime, uint64_t ns);
/* A reading of all clocks at the common time of that reading. */
struct tw_format_clock tw_retime_clock(struct tw_retime *retime, const struct tw_format_clock *clock);

/*
 * tw_retime_records - give all records of a decoded block their common times.
 *
 * @header	in: as read. out: as tw_block_encode_events() wants it.
 */
void tw_retime_records(struct tw_retime *retime, struct tw_block_header *header, uint8_t *raw);

#endif
