/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment.h - one file of a capture: written block by block, closed with an index; read by the index, or without one
 * from block to block.
 *
 * Threads    one at a time for each object.
 * Ownership  names and directories are borrowed; files are owned by the object.
 */
#ifndef TW_PIPELINE_SEGMENT_H
#define TW_PIPELINE_SEGMENT_H

#include "pipeline/block/block.h"
#include "pipeline/block/stream_write.h"

#include <sys/types.h>
#include <sys/uio.h>

#define TW_SEGMENT_NAME_BYTES 32
#define TW_SEGMENT_SUFFIX     ".tws"
#define TW_SEGMENT_OPEN	      ".part" /* after the suffix, while it is written */
#define TW_CAPTURE_LIVE_FILE  "live"
/* In that file: half of a merge, which cannot be completed. */
#define TW_CAPTURE_LIVE_MERGE "merge=1\n"

/* The system calls that write segments; tests replace them to simulate a failing disk. */
struct tw_segment_io {
	ssize_t (*write)(int fd, const struct iovec *pieces, int count, off_t offset); /* as pwritev() */
	int (*sync)(int fd);							       /* as fdatasync() */
};
extern const struct tw_segment_io tw_segment_system_io;

/*
 * tw_segment_write - write all pieces, one behind the other, at this offset.
 *
 * A short write is continued; after an error any part of it may have been written. @pieces is modified. Threads: any.
 */
int tw_segment_write(const struct tw_segment_io *io, int fd, struct iovec *pieces, int count, uint64_t offset);

/* "segment-000001.tws", with ".part" while is_open. */
void tw_segment_name(uint32_t number, bool is_open, char out[TW_SEGMENT_NAME_BYTES]);
/* Is this the name of a segment? Returns its number and whether it is still open. */
bool tw_segment_parse_name(const char *name, uint32_t *number, bool *is_open);

/* ---- writing ---- */

struct tw_segment {
	int fd; /* -1: none */
	int directory_fd;
	uint32_t number;
	const struct tw_segment_io *io;
	struct tw_stream_out *stream; /* instead of a file; NULL: a file */
	uint64_t offset;	      /* where the next block is written: all before it is complete */
	uint64_t queued_bytes;	      /* of blocks after that, in the write queue (write_queue.h) */
	struct tw_index_entry *entries;
	size_t entry_count;
	size_t entry_capacity;
	bool has_lost_entries; /* no memory for the index: readers must scan */
	struct tw_segment_totals totals;
};

/*
 * tw_segment_create - make a segment and write its header.
 *
 * @segment	init: number, directory_fd and io are set by the caller; ends with _close() or _abandon().
 * @header	borrows: everything but magic, checksum, version, sizes and number is filled in.
 *
 * Errors: those of a write; then no file is left.
 */
int tw_segment_create(struct tw_segment *segment, const struct tw_segment_header *header);

/*
 * tw_segment_append - write one block after the others.
 *
 * On an error the segment is as before: the same or another block may be tried again.
 */
int tw_segment_append(struct tw_segment *segment, const struct tw_block_header *header, const uint8_t *stored);

/* Adds a block that is already written at this offset to the index. Without memory the index is given up. */
void tw_segment_note(struct tw_segment *segment, uint64_t offset, const struct tw_block_header *header);

/* Undoes the last tw_segment_note(): another block may be written there. */
void tw_segment_forget_last(struct tw_segment *segment);

/* Syncs the file to the disk. After an error the file must be abandoned: the kernel forgets what it could not write. */
int tw_segment_sync_file(const struct tw_segment_io *io, int fd);

/* A segment with index and trailer, but without its final name. */
struct tw_segment_sealed {
	int fd;
	int directory_fd;
	uint32_t number;
	const struct tw_segment_io *io;
};

/* Writes index and trailer; gives the file to @out. After an error the segment is abandoned. Not for streams. */
int tw_segment_seal(struct tw_segment *segment, struct tw_block_encoder *encoder, struct tw_segment_sealed *out);

/*
 * tw_segment_publish - give a sealed file its final name, and close it.
 *
 * @is_durable	fdatasync before, and fsync of the directory after the renaming.
 *
 * After an error the file is a .part that readers scan. Threads: any.
 */
int tw_segment_publish(const struct tw_segment_sealed *sealed, bool is_durable);

/* Seals and publishes; the segment is closed in any case. A stream gets the index. */
int tw_segment_close(struct tw_segment *segment, struct tw_block_encoder *encoder, bool is_durable);

/* Closes the file as it is, cut after its last whole block. */
void tw_segment_abandon(struct tw_segment *segment);

/*
 * tw_segment_begin_in_stream - write the header of this segment, to which the following blocks of the stream belong;
 * it may be repeated.
 *
 * @segment	as for tw_segment_create(), with stream set.
 */
int tw_segment_begin_in_stream(struct tw_segment *segment, const struct tw_segment_header *header);

/* Writes a mark: all data with ticks up to this precedes it in the stream. */
int tw_segment_mark_in_stream(struct tw_segment *segment, struct tw_block_encoder *encoder, uint64_t ticks);

/* Fills in the fields common to all segment headers, the number, and the checksum. */
void tw_segment_header_seal(struct tw_segment_header *header, uint32_t number);

/* ---- reading: segment_read.c ---- */

struct tw_segment_file {
	int fd;
	uint64_t bytes;
	struct tw_segment_header header;
};

/* Opens and checks the header.  TW_ENOENT, TW_EFORMAT, TW_EVERSION, TW_EIO, TW_EPERM. */
int tw_segment_open(int directory_fd, const char *name, struct tw_segment_file *out);
void tw_segment_file_close(struct tw_segment_file *file);

/*
 * tw_segment_open_stream - open a stream that is stored in a file: @out has the header that it begins with.
 *
 * @fd	borrows: a regular file, read from its beginning on.
 *
 * Errors: TW_ENOTSUP (no regular file), TW_EFORMAT, TW_EVERSION, TW_EIO, and those of dup().
 */
int tw_segment_open_stream(int fd, struct tw_segment_file *out);

/* One checked piece of a stream: the header of a segment, a whole block, or the trailer of a file. */
struct tw_segment_piece {
	uint64_t bytes; /* the size up to the next piece */
	bool is_block;
	bool is_trailer; /* of a segment that was a file; neither header nor block */
	union {
		struct tw_segment_header segment;
		struct tw_block_header block;
	};
};
/* TW_EFORMAT if there is no complete piece. */
int tw_segment_piece_at(const struct tw_segment_file *file, uint64_t offset, struct tw_segment_piece *out);

/* Are they segments of one process image? */
bool tw_segment_is_same_image(const struct tw_segment_header *a, const struct tw_segment_header *b);

/* Is this the header of a segment that this version can read? */
int tw_segment_header_check(const struct tw_segment_header *header);

/* Callbacks for the contents of a segment. block returns 0 to continue. */
struct tw_segment_visitor {
	int (*block)(void *context, uint64_t offset, const struct tw_block_header *header);
	void (*damage)(void *context, uint64_t offset, uint64_t bytes, int error, const char *reason);
	void *context;
};

/* The results of reading a whole segment, besides its blocks. */
struct tw_segment_found {
	uint64_t end_offset; /* end of the last whole block that is not part of the index */
	bool is_closed;	     /* index and trailer are present and valid */
	struct tw_segment_totals totals;
};

/*
 * tw_segment_list - list all blocks but those of the index, by the index, or by tw_segment_scan().
 *
 * @decoder	borrows: to unpack the index.
 *
 * Returns 0, TW_EIO, or a result of visitor->block that is not 0.
 */
int tw_segment_list(const struct tw_segment_file *file, struct tw_block_decoder *decoder,
		    const struct tw_segment_visitor *visitor, struct tw_segment_found *found);

/* The same by reading from block to block, searching for the next one after damage. */
int tw_segment_scan(const struct tw_segment_file *file, const struct tw_segment_visitor *visitor,
		    struct tw_segment_found *found);

/*
 * tw_segment_read - read the stored bytes of a block into tw_block_decoder_input().
 *
 * @header	as listed; the one in the file must be the same.
 *
 * Returns 0, TW_EFORMAT or TW_EIO. Any thread, each with a decoder of its own.
 */
int tw_segment_read(const struct tw_segment_file *file, uint64_t offset, const struct tw_block_header *header,
		    struct tw_block_decoder *decoder);

#endif
