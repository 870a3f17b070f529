/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_read.h - a capture that arrives as a stream, read while it is written.
 *
 *	blocks -> one queue of records a ring -> merge up to the last mark -> records in order
 *
 * All events up to a mark have arrived; later ones wait for the next mark. At the end of the stream nothing waits.
 * Invalid data ends the stream, and is reported as damage.
 *
 * Memory   the records since the last mark, decoded.
 * Threads  one.
 */
#ifndef TW_PIPELINE_STREAM_READ_H
#define TW_PIPELINE_STREAM_READ_H

#include "pipeline/reader/reader.h"

struct tw_stream_in;

/* The source of a stream's bytes. */
struct tw_stream_source {
	/* As read(2): waits for at least one byte; 0: the end, TW_EIO. */
	int64_t (*read)(void *self, void *to, size_t bytes);
	/* NULL; or: records before this time are not wanted. */
	void (*from)(void *self, uint64_t ns);
	/* NULL; or, at the end: why it ended before the end of the recording, a constant sentence; NULL: it did not. */
	const char *(*cut)(void *self);
	void (*close)(void *self); /* NULL: borrowed */
	void *self;
};

/*
 * @source: taken, also on an error. Reads up to the first segment header.
 */
int tw_stream_in_create(struct tw_capture *capture, const struct tw_stream_source *source, struct tw_stream_in **out);
/* A capture that comes from the source: tw_capture_open_stream() for any source. */
int tw_stream_in_open(const struct tw_stream_source *source, struct tw_capture **out);
/* Records before this time are not wanted. */
void tw_stream_in_from(struct tw_stream_in *in, uint64_t ns);
void tw_stream_in_destroy(struct tw_stream_in *in);

/* The next record; lent until tw_stream_in_let_go(). */
struct tw_stream_record {
	const uint8_t *at;
	uint64_t sequence;
	uint32_t stream, image, tracee_id;
};

/*
 * tw_stream_in_next - the next record.
 *
 * @may_wait	read more, and sleep, if none is ready.
 *
 * Returns 1, 0 (the end; or none is ready), or TW_ENOMEM.
 */
int tw_stream_in_next(struct tw_stream_in *in, bool may_wait, struct tw_stream_record *out);
/* The caller no longer uses the records that were handed out. */
void tw_stream_in_let_go(struct tw_stream_in *in);

#endif
