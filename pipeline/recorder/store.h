/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - the capture directory as its writer sees it: which segment a block goes to.
 *
 * Input: finished blocks of process images. Output: segments, opened when an image has its first block, rotated by
 * size and age, closed when it ends. A write that fails changes nothing; the caller decides what to do about it.
 *
 * Threads  one at a time.
 */
#ifndef TW_PIPELINE_STORE_H
#define TW_PIPELINE_STORE_H

#include "base/clock.h"
#include "pipeline/block/segment.h"
#include "pipeline/recorder/syncer.h"
#include "pipeline/recorder/write_queue.h"
#include "tracewheel/consumer.h"

struct tw_store {
	int directory_fd;
	char path[TW_PATH_BYTES_MAX + 1];
	const struct tw_segment_io *io;
	struct tw_block_encoder *encoder;
	struct tw_segment_header header; /* common to all segments of this capture */
	uint32_t next_number;
	uint64_t segment_bytes;
	uint64_t segment_ns;
	uint64_t counts_ns; /* of a stream: 0: numbers of counted calls are written at the end only */
	uint32_t segments_kept;
	uint64_t durable_ns;	      /* 0: the kernel decides when to write to disk */
	struct tw_syncer *syncer;     /* NULL: closing a segment waits for the disk itself */
	struct tw_write_queue *queue; /* NULL: no write has been slow so far */
	void (*wake)(void *arg);      /* called when writes of the queue are finished; NULL: no queue is ever
				       * used */
	void *wake_arg;
	uint64_t slow_ns;	     /* CLOCK_MONOTONIC of the last slow write of this thread; 0: there was
				      * none */
	struct tw_stream_out stream; /* instead of the directory; fd -1: none */
	bool is_stream;
	uint32_t stream_number; /* of the segment whose blocks the stream has now; 0: none */
	uint64_t first_ticks;	/* of the oldest record stored; 0: none */
	uint64_t last_ticks;	/* of the newest */
	uint64_t marked_ticks;	/* of its last mark */
	bool is_short;		/* something did not fit on the disk: segments closed from now on say so */
	/* Known losses; written into each segment closed from then on. */
	uint64_t account[TW_ACCOUNT_CAUSES];
	struct tw_recorder_stats stats;
};

struct tw_store_closed {
	uint32_t number;
	uint64_t events;
	uint64_t bytes;
};

/* The segments of one image. Zeroed: none yet. */
struct tw_store_image {
	struct tw_segment segment;
	bool is_open;
	uint64_t opened_ns;
	uint64_t dirty_ns; /* since when data waits for a sync; 0: none does */
	/* Identifies the image in the headers of its segments. */
	uint64_t lease;
	uint64_t process_start_time;
	uint64_t start_ticks;
	int32_t process_id;
	int32_t parent_process_id;
	/* The totals of its segments so far, for the next one's header. */
	uint32_t segment_count;
	uint64_t events;
	uint64_t lost[TW_FORMAT_CAUSES];
	struct tw_store_closed *closed; /* segments that are kept, the oldest first */
	uint32_t closed_count;
};

/*
 * tw_store_create - make the capture directory, or open an existing one to add to it.
 *
 * @may_exist	open an existing one (recovery); otherwise options->path must not exist, or options->force or keep_old.
 */
int tw_store_create(struct tw_store *store, const struct tw_recorder_options *options, bool may_exist);
/* Scans the files again: the next segment gets the number after the last. */
int tw_store_renumber(struct tw_store *store);
/* Closes the directory. */
void tw_store_destroy(struct tw_store *store);

/* Writes and removes the mark that a recording owns the directory. */
int tw_store_mark_live(struct tw_store *store, const char *ring_set_path);
void tw_store_unmark_live(struct tw_store *store);
/* Adds to the mark that all segments are closed: the rings, which are removed next, are not needed any more. */
void tw_store_mark_ended(const struct tw_store *store);
bool tw_store_is_ended(int directory_fd);
/* Reads the mark; TW_ENOENT without one, TW_EFORMAT if it has no path. */
int tw_store_read_mark(int directory_fd, char *ring_set_path, size_t bytes);
/* Is it half of a merge (merge.h)? */
bool tw_store_is_merge(int directory_fd);

/* Removes every file of a capture, and the directory. If there are other files: TW_EEXIST, and nothing is removed. */
int tw_store_remove(const char *path);

/*
 * tw_store_open_segment - make sure that the image has a segment to write to.
 *
 * Returns 1 when a new one was begun (all definitions of the image must be repeated), 0, or an error.
 */
int tw_store_open_segment(struct tw_store *store, struct tw_store_image *image);

/* Writes one block to the image's open segment. The queue holds no blocks of the image. */
int tw_store_append(struct tw_store *store, struct tw_store_image *image, const struct tw_block_header *header,
		    const uint8_t *stored);

/*
 * tw_store_is_slow - must the next block go through the queue?
 *
 * True from a slow write on until no write was slow for a second and the queue is empty. tw_store_queue_up() then
 * replaces tw_store_append().
 */
bool tw_store_is_slow(struct tw_store *store);

/*
 * tw_store_queue_up - have the queue's thread write one block to the image's open segment.
 *
 * The queue must have space for it. The block comes back from the queue and is then passed to
 * tw_store_note_written(), in order. Errors: TW_ENOMEM; then the block is not in the queue.
 */
int tw_store_queue_up(struct tw_store *store, struct tw_store_image *image, const struct tw_block_header *header,
		      const uint8_t *stored, const struct tw_write *as);

/*
 * A block has come back: it is stored, or, if it has an error, neither it nor any later block in the same queue is.
 * If an image has several errors, the first is reported.
 */
void tw_store_note_written(struct tw_store *store, struct tw_store_image *image, const struct tw_write *write);

/* Ends the thread of the queue, which is empty. No queue is used from then on. */
void tw_store_stop_queue(struct tw_store *store);

/* Is the image's segment large or old enough to be closed? */
bool tw_store_wants_rotation(const struct tw_store *store, const struct tw_store_image *image);

/* Appends the account of missing data; if it does not fit, only the statistics have it. */
void tw_store_append_account(struct tw_store *store, struct tw_segment *segment);

/*
 * Closes the image's segment, if there is one; the queue holds no blocks of it. @ending: TW_SEGMENT_FINAL,
 * TW_SEGMENT_LAST; 0: another segment follows.
 */
int tw_store_close_segment(struct tw_store *store, struct tw_store_image *image, unsigned ending);

/* Waits until all closed segments are on disk. Returns 0, or the first error. */
int tw_store_await_synced(struct tw_store *store);

/* Writes an empty segment if none has been written: a capture without events is a capture too. */
int tw_store_leave_something(struct tw_store *store);

/* Starts the syncs that are due, without waiting for them. */
void tw_store_sync(struct tw_store *store, struct tw_store_image *image, uint64_t now_ns);

/*
 * The result of the syncs: true if the image's file could not be synced. Such a file is given up by
 * tw_store_give_up_segment(), once the queue holds no blocks of it, and another is begun.
 */
bool tw_store_has_sync_failed(struct tw_store *store, const struct tw_store_image *image);
void tw_store_give_up_segment(struct tw_store_image *image);

/* The nanoseconds until the next sync is due; UINT64_MAX: none. */
uint64_t tw_store_sync_due(const struct tw_store *store, const struct tw_store_image *image, uint64_t now_ns);

/*
 * A mark is so much earlier than the moment at which all was committed: a thread may lose the processor for a few time slices between its
 * clock and its commit, and the clocks of processors differ by some ns.
 */
#define TW_MARK_MARGIN_NS UINT64_C(20000000)

/*
 * All data with ticks up to this is written. A mark is left out if it would repeat the last one, unless @is_needed. Returns 0, or
 * the error of the stream.
 */
int tw_store_mark_stream(struct tw_store *store, uint64_t ticks, bool is_needed);

void tw_store_clock(struct tw_format_clock *out);

#endif
