/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - the capture directory as its writer sees it: which segment a block goes to.
 *
 * Enters: finished blocks of process images.  Leaves: segments, opened when an image has its first
 * block, rotated by size and age, closed when it ends.  A write that fails changes nothing; what to
 * do about it is the caller's business.
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
	struct tw_segment_header header; /* what all segments of this capture share */
	uint32_t next_number;
	uint64_t segment_bytes;
	uint64_t segment_ns;
	uint32_t segments_kept;
	uint64_t durable_ns;	      /* 0: the kernel brings to disk what it likes */
	struct tw_syncer *syncer;     /* NULL: whoever closes a segment waits for the disk itself */
	struct tw_write_queue *queue; /* NULL: no write was slow so far */
	void (*wake)(void *arg);      /* when writes of the queue are finished; NULL: there is never a queue */
	void *wake_arg;
	uint64_t slow_ns;	     /* CLOCK_MONOTONIC of the last slow write of this thread; 0: none was */
	struct tw_stream_out stream; /* in place of the directory; fd -1: none */
	bool is_stream;
	uint32_t stream_number; /* of the segment that the stream is in the middle of; 0: none */
	uint64_t first_ticks;	/* of the oldest record stored; 0: none */
	uint64_t last_ticks;	/* of the newest */
	uint64_t marked_ticks;	/* of its last mark */
	bool is_short;		/* not everything found room: the segments that are closed now say so */
	/* What is known to be missing; stands in each segment closed from then on. */
	uint64_t account[TW_ACCOUNT_CAUSES];
	struct tw_recorder_stats stats;
};

struct tw_store_closed {
	uint32_t number;
	uint64_t events;
	uint64_t bytes;
};

/* Where the blocks of one image go.  Zeroed: no segment yet. */
struct tw_store_image {
	struct tw_segment segment;
	bool is_open;
	uint64_t opened_ns;
	uint64_t dirty_ns; /* since when something waits to be synced; 0: nothing does */
	/* Who the image is, for the segments' headers. */
	uint64_t lease;
	uint64_t process_start_time;
	uint64_t start_ticks;
	int32_t process_id;
	int32_t parent_process_id;
	/* What its segments were given so far: the next one's header tells it. */
	uint32_t segment_count;
	uint64_t events;
	uint64_t lost[TW_FORMAT_CAUSES];
	struct tw_store_closed *closed; /* segments that are kept, the oldest first */
	uint32_t closed_count;
};

/*
 * tw_store_create - make the capture directory, or open an existing one to add to it.
 *
 * @may_exist	open what is there (recovery); otherwise options->path must not exist, or options->force or keep_old.
 */
int tw_store_create(struct tw_store *store, const struct tw_recorder_options *options, bool may_exist);
/* Looks at the files again: the next segment gets the number behind the last. */
int tw_store_renumber(struct tw_store *store);
/* Lets go of the directory. */
void tw_store_destroy(struct tw_store *store);

/* Writes, and removes, the mark that a recording owns the directory. */
int tw_store_mark_live(struct tw_store *store, const char *ring_set_path);
void tw_store_unmark_live(struct tw_store *store);
/* What the mark says; TW_ENOENT without one, TW_EFORMAT when it says nothing. */
int tw_store_read_mark(int directory_fd, char *ring_set_path, size_t bytes);

/* Removes every file of a capture, and the directory.  Other files make it TW_EEXIST, and nothing is removed.
 */
int tw_store_remove(const char *path);

/*
 * tw_store_open_segment - see that the image has a segment to write to.
 *
 * Returns 1 when a new one was begun (everything the image has defined must come again), 0, or an error.
 */
int tw_store_open_segment(struct tw_store *store, struct tw_store_image *image);

/* Writes one block to the image's segment, which is open.  Nothing of the image is in the queue. */
int tw_store_append(struct tw_store *store, struct tw_store_image *image, const struct tw_block_header *header,
		    const uint8_t *stored);

/*
 * tw_store_is_slow - is the next block one for the queue?
 *
 * True from a slow write on until none was slow for a second and the queue is empty.  tw_store_queue_up() then takes the
 * place of tw_store_append().
 */
bool tw_store_is_slow(struct tw_store *store);

/*
 * tw_store_queue_up - have one block written to the image's segment, which is open, by the thread of the queue.
 *
 * The queue has room for it.  It comes back from the queue, then goes to tw_store_note_written(), in order.
 * Errors: TW_ENOMEM; then nothing is in the queue.
 */
int tw_store_queue_up(struct tw_store *store, struct tw_store_image *image, const struct tw_block_header *header,
		      const uint8_t *stored, const struct tw_write *as);

/*
 * A block has come back: what it holds is stored, or, where it has an error, nothing of it and of what came after it in the
 * same queue.  Of several errors of one image the first is told.
 */
void tw_store_note_written(struct tw_store *store, struct tw_store_image *image, const struct tw_write *write);

/* Ends the thread of the queue, which is empty.  There is none from here on. */
void tw_store_stop_queue(struct tw_store *store);

/* Is the image's segment large or old enough to be closed? */
bool tw_store_wants_rotation(const struct tw_store *store, const struct tw_store_image *image);

/* Closes the image's segment, if there is one; nothing of it is in the queue.  @ending: TW_SEGMENT_FINAL, TW_SEGMENT_LAST; 0: another follows. */
int tw_store_close_segment(struct tw_store *store, struct tw_store_image *image, unsigned ending);

/* Waits until everything that was closed is on disk.  Returns 0, or the first error of that. */
int tw_store_settle(struct tw_store *store);

/* A capture of nothing is a capture too: an empty segment, where nobody has written any. */
int tw_store_leave_something(struct tw_store *store);

/* Has what waited long enough brought to disk, without waiting for that. */
void tw_store_sync(struct tw_store *store, struct tw_store_image *image, uint64_t now_ns);

/*
 * What came of it: true, where the image's file could not be brought to disk.  Such a file is given up by
 * tw_store_give_up_segment(), when nothing of it is in the queue, and another is begun.
 */
bool tw_store_has_sync_failed(struct tw_store *store, const struct tw_store_image *image);
void tw_store_give_up_segment(struct tw_store_image *image);

/* In how many nanoseconds that has something to do again; UINT64_MAX: nothing waits. */
uint64_t tw_store_sync_due(const struct tw_store *store, const struct tw_store_image *image, uint64_t now_ns);

/*
 * tw_store_mark_stream - everything with ticks up to this is written.  A mark is left out where it would say nothing
 * new.  Returns 0, or the error of the stream.
 */
int tw_store_mark_stream(struct tw_store *store, uint64_t ticks);

void tw_store_clock(struct tw_format_clock *out);

#endif
