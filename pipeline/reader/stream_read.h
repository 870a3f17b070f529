/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_read.h - a capture that comes as a stream, read while it is written.
 *
 *	blocks -> one queue of records a ring -> merge up to the last mark -> records in order
 *
 * Up to a mark everything that happened has come; what has a later time waits for the next mark.  At the end of the
 * stream nothing waits.  What is not a stream from there on ends it, and is named as damage.
 *
 * Memory   what has come since the last mark, decoded.
 * Threads  one.
 */
#ifndef TW_PIPELINE_STREAM_READ_H
#define TW_PIPELINE_STREAM_READ_H

#include "pipeline/reader/reader.h"

struct tw_stream_in;

/* @fd: borrows until the end.  Reads up to the first segment header. */
int tw_stream_in_create(struct tw_capture *capture, int fd, struct tw_stream_in **out);
void tw_stream_in_destroy(struct tw_stream_in *in);

/* The record that comes next; everything lends until tw_stream_in_let_go(). */
struct tw_stream_record {
	const uint8_t *at;
	uint64_t sequence;
	uint32_t stream, image, tracee_id;
};

/*
 * tw_stream_in_next - the next record.
 *
 * @may_wait	read on, and sleep, where none is ready.
 * Returns 1, 0 (the end; or none ready), or TW_ENOMEM.
 */
int tw_stream_in_next(struct tw_stream_in *in, bool may_wait, struct tw_stream_record *out);
/* What was handed out is needed no more. */
void tw_stream_in_let_go(struct tw_stream_in *in);

#endif
