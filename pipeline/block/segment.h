/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment.h - one file of a capture: written block by block, closed with an index; read by the index,
 * or by walking from block to block where there is none.
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
#define TW_SEGMENT_OPEN	      ".part" /* behind the suffix, while it is written */
#define TW_CAPTURE_LIVE_FILE  "live"

/* How bytes get to the disk: replaced by tests that need a bad one. */
struct tw_segment_io {
	ssize_t (*write)(int fd, const struct iovec *pieces, int count, off_t offset); /* as pwritev() */
	int (*sync)(int fd);							       /* as fdatasync() */
};
extern const struct tw_segment_io tw_segment_system_io;

/*
 * tw_segment_write - all pieces, one behind the other, at this offset.
 *
 * A write that stops in the middle goes on; after an error any part of it may be there.  @pieces is used up.  Threads: any.
 */
int tw_segment_write(const struct tw_segment_io *io, int fd, struct iovec *pieces, int count, uint64_t offset);

/* "segment-000001.tws", with ".part" while is_open. */
void tw_segment_name(uint32_t number, bool is_open, char out[TW_SEGMENT_NAME_BYTES]);
/* Is this the name of a segment?  Gives its number and whether it is still open. */
bool tw_segment_parse_name(const char *name, uint32_t *number, bool *is_open);

/* ---- writing ---- */

struct tw_segment {
	int fd; /* -1: none */
	int directory_fd;
	uint32_t number;
	const struct tw_segment_io *io;
	struct tw_stream_out *stream; /* in place of a file; NULL: a file */
	uint64_t offset;	      /* where the next block goes: everything before is whole */
	uint64_t queued_bytes;	      /* of blocks behind that, on their way (write_queue.h) */
	struct tw_index_entry *entries;
	size_t entry_count;
	size_t entry_room;
	bool has_lost_entries; /* no memory for the index: left to the readers' scan */
	struct tw_segment_totals totals;
};

/*
 * tw_segment_create - make a segment and write its header.
 *
 * @segment	init: number, directory_fd and io are set by the caller; ends with _close() or _abandon().
 * @header	borrows: everything but magic, checksum, version, sizes and number is filled in.
 *
 * Errors: those of a write; nothing is left behind then.
 */
int tw_segment_create(struct tw_segment *segment, const struct tw_segment_header *header);

/*
 * tw_segment_append - write one block behind the others.
 *
 * On an error the segment is as before: the same or another block may be tried again.
 */
int tw_segment_append(struct tw_segment *segment, const struct tw_block_header *header, const uint8_t *stored);

/* Counts a block that stands at this offset already, for the index.  Without memory the index is given up. */
void tw_segment_note(struct tw_segment *segment, uint64_t offset, const struct tw_block_header *header);

/* Takes back the last tw_segment_note(): the block's place is free for another. */
void tw_segment_forget_last(struct tw_segment *segment);

/* To the disk itself.  After an error the file is to be abandoned: the kernel forgets what it could not
 * write. */
int tw_segment_sync_file(const struct tw_segment_io *io, int fd);

/* A segment with index and trailer, that lacks its final name. */
struct tw_segment_sealed {
	int fd;
	int directory_fd;
	uint32_t number;
	const struct tw_segment_io *io;
};

/* Writes index and trailer; the file is given to @out.  After an error it is abandoned.  Not for streams. */
int tw_segment_seal(struct tw_segment *segment, struct tw_block_encoder *encoder, struct tw_segment_sealed *out);

/*
 * tw_segment_publish - give a sealed file its final name, and close it.
 *
 * @is_durable	fdatasync before, and fsync of the directory after the renaming.
 *
 * After an error it is a .part that readers scan.  Threads: any.
 */
int tw_segment_publish(const struct tw_segment_sealed *sealed, bool is_durable);

/* Both: the segment is gone in any case.  A stream gets the index. */
int tw_segment_close(struct tw_segment *segment, struct tw_block_encoder *encoder, bool is_durable);

/* Closes the file as it is, behind its last whole block. */
void tw_segment_abandon(struct tw_segment *segment);

/*
 * tw_segment_begin_in_stream - what follows in the stream belongs to this segment: its header, again where it is not new.
 *
 * @segment	as for tw_segment_create(), with stream set.
 */
int tw_segment_begin_in_stream(struct tw_segment *segment, const struct tw_segment_header *header);

/* A mark: everything with ticks up to this stands before it in the stream. */
int tw_segment_mark_in_stream(struct tw_segment *segment, struct tw_block_encoder *encoder, uint64_t ticks);

/* Fills in what every segment header has in common with its place and version, and its checksum. */
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
 * tw_segment_open_stream - a stream that lies whole in a file: @out has the header that it begins with.
 *
 * @fd	borrows: a regular file, read from its beginning on.
 *
 * Errors: TW_ENOTSUP (no regular file), TW_EFORMAT, TW_EVERSION, TW_EIO, and those of dup().
 */
int tw_segment_open_stream(int fd, struct tw_segment_file *out);

/* What stands at one place of a stream, checked: the header of a segment, a whole block, or the trailer of a file. */
struct tw_segment_piece {
	uint64_t bytes; /* up to the next piece */
	bool is_block;
	bool is_trailer; /* of a segment that was a file: neither */
	union {
		struct tw_segment_header segment;
		struct tw_block_header block;
	};
};
/* TW_EFORMAT where neither stands there, or not all of it. */
int tw_segment_piece_at(const struct tw_segment_file *file, uint64_t offset, struct tw_segment_piece *out);

/* Is this the header of a segment that this version can read? */
int tw_segment_header_check(const struct tw_segment_header *header);

/* What is found in a segment.  Functions return 0 to go on. */
struct tw_segment_visitor {
	int (*block)(void *context, uint64_t offset, const struct tw_block_header *header);
	void (*damage)(void *context, uint64_t offset, uint64_t bytes, int error, const char *reason);
	void *context;
};

/* What a look at a whole segment found beside blocks. */
struct tw_segment_found {
	uint64_t end_offset; /* behind the last whole block that is not of an index */
	bool is_closed;	     /* index and trailer are there and sound */
	struct tw_segment_totals totals;
};

/*
 * tw_segment_list - all blocks but those of the index, by the index, or by tw_segment_scan().
 *
 * @decoder	borrows: to unpack the index.
 * Returns 0, TW_EIO, or what visitor->block answered.
 */
int tw_segment_list(const struct tw_segment_file *file, struct tw_block_decoder *decoder,
		    const struct tw_segment_visitor *visitor, struct tw_segment_found *found);

/* The same by walking from block to block, looking for the next one behind damage. */
int tw_segment_scan(const struct tw_segment_file *file, const struct tw_segment_visitor *visitor,
		    struct tw_segment_found *found);

/*
 * tw_segment_read - what a block stores, into tw_block_decoder_input().
 *
 * @header	as listed; the one in the file must be the same.
 * Returns 0, TW_EFORMAT or TW_EIO.  Any thread, each with a decoder of its own.
 */
int tw_segment_read(const struct tw_segment_file *file, uint64_t offset, const struct tw_block_header *header,
		    struct tw_block_decoder *decoder);

#endif
