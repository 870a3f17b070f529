/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.h - an open capture: its files, images and streams, and the blocks to read of each.
 *
 * Everything here is made when the capture is opened and constant afterwards, except the open files (a cache with a
 * lock) and damage that is found (the owner's thread), so that workers may read blocks at once.
 */
#ifndef TW_PIPELINE_READER_H
#define TW_PIPELINE_READER_H

#include "pipeline/format/catalog.h"
#include "pipeline/reader/clockmap.h"
#include "pipeline/block/segment.h"
#include "tracewheel/segment.h"

#include <pthread.h>

/* The most files kept open at once. */
#define TW_SOURCE_FILES_OPEN 64

/* One block of a stream, in the order of its positions. */
struct tw_source_block {
	uint64_t offset;
	uint32_t file;
	uint32_t stream;
	uint32_t skip_bytes; /* that an earlier block has already */
	bool is_damaged;     /* already reported */
	struct tw_block_header header;
};

/* Segments may have been renamed: KEY.tws. */
#define TW_SOURCE_NAME_BYTES 256

struct tw_source_file {
	char name[TW_SOURCE_NAME_BYTES];
	bool is_renamed;
	uint32_t number;
	uint32_t image;
	/* Its contents, once it was listed. */
	uint32_t image_segment; /* 0: not known */
	uint32_t segments_kept;
	uint64_t first_event_ns;
	uint64_t events_before;
	uint64_t lost_before[TW_FORMAT_CAUSES];
	uint64_t events;       /* from the headers of its blocks */
	uint64_t total_events; /* from its trailer, if it is closed */
	bool is_listed, is_closed, is_last, is_short, is_damaged, is_gone;
	struct tw_capture_segment info;
	uint32_t users; /* under the lock, like the fields below */
	uint64_t last_use;
	struct tw_segment_file file;
};

struct tw_source_image {
	struct tw_capture_image info;
	struct tw_catalog catalog;
	struct tw_segment_header header; /* of its first segment */
	bool is_final;
	/* Losses without a ring, as loss records that are merged as a stream of their own. */
	struct tw_rb_loss_record *losses;
	uint32_t loss_count;
	uint64_t no_ring_reported;
	uint64_t no_ring_before; /* of these, losses before the oldest segment here */
	/* Totals from its newest segment, to compare with a later one. */
	uint32_t last_segment;
	uint64_t events_through;
	uint64_t lost_through[TW_FORMAT_CAUSES];
	bool is_last;	/* its recording has ended */
	bool has_begun; /* its first segment here was read */
};

struct tw_source_stream {
	struct tw_capture_stream info;
	uint64_t lease;
	uint32_t first_block;
	uint32_t block_count;
	uint64_t records_before; /* of the lease, before its first block here */
	uint64_t hole_records;	 /* known to be in segments that are absent */
	uint64_t lost_before[TW_LOST_CAUSES];
	struct tw_format_own_time own[TW_FORMAT_OWN_KINDS];
};

struct tw_source_damage {
	struct tw_capture_damage info;
	char file[TW_SOURCE_NAME_BYTES];
};

/* The account blocks of one recording; a folder may hold segments of several. */
struct tw_source_report {
	uint64_t capture_id;
	uint64_t reported[TW_ACCOUNT_CAUSES];
};

/* Absent segments of one image, between two files; TW_CAPTURE_NONE: there is none on that side. */
struct tw_source_hole {
	struct tw_capture_hole info;
	uint32_t before, after;
};

struct tw_capture {
	int directory_fd;
	uint32_t workers;
	struct tw_capture_info info;
	struct tw_capture_account account;    /* as of opening */
	uint64_t reported[TW_ACCOUNT_CAUSES]; /* in account blocks: the sums of all recordings */
	struct tw_source_report *recordings;
	uint32_t recording_count;
	uint64_t damaged_events;	   /* found while reading */
	uint64_t removed_events;	   /* that the recorder removed during reading */
	bool is_damage_unnumbered;	   /* some damage held an unknown number of events */
	bool is_gap_damaged;		   /* a segment that is missing between others is here, but unreadable */
	struct tw_segment_header clock_of; /* a segment of the clock that all must have; zero: the first one */
	bool is_piece;			   /* segments that were renamed */
	struct tw_segment_identity *asked; /* the segments that the folder was to hold */
	uint32_t asked_count;
	bool is_asked;
	struct tw_source_hole *holes;
	uint32_t hole_count;
	struct tw_source_file *files;
	uint32_t file_count;
	struct tw_source_image **images;
	uint32_t image_count;
	struct tw_source_stream *streams;
	uint32_t stream_count;
	struct tw_source_block *blocks;
	uint32_t block_count;
	struct tw_clockmap clocks;
	int64_t clock_shift_ns; /* by which these were moved: tw_captures_share_clock() */
	pthread_mutex_t lock;	/* of the files */
	uint32_t files_open;
	uint64_t uses;
	struct tw_source_damage **damages;
	uint32_t damage_count;
	struct tw_stream_in *stream_in; /* instead of files; NULL: a directory */
};

/* Finds or adds the image of a segment. TW_CAPTURE_NONE: no memory. */
uint32_t tw_source_find_image(struct tw_capture *capture, const struct tw_segment_header *header);

/*
 * Takes in the first segment of an image that is read: losses without a ring before it are not counted for this
 * capture.
 */
void tw_source_begin_image(struct tw_source_image *image, const struct tw_segment_header *header);

/* Adds to the list of damages; above a limit they are only counted. Threads: the owner's. */
void tw_source_note_damage(struct tw_capture *capture, uint32_t file, uint64_t offset, uint64_t bytes, int error,
			   const char *reason);

/* Reports a block that tw_source_load() could not read, and subtracts it from the sums, once. Threads: the owner's. */
void tw_source_note_block(struct tw_capture *capture, const struct tw_source_block *block, int error);

/*
 * tw_source_load - read and decode one block.
 *
 * @raw		holds the block's raw_bytes and TW_COLUMN_SLACK_BYTES.
 *
 * Returns 0, TW_EFORMAT or TW_EIO. Threads: any, with a decoder each.
 */
int tw_source_load(struct tw_capture *capture, const struct tw_source_block *block, struct tw_block_decoder *decoder,
		   uint8_t *raw);

/* The same without decoding: compares checksums only. */
int tw_source_check(struct tw_capture *capture, const struct tw_source_block *block, struct tw_block_decoder *decoder);

/* Opens a file of the capture, unless it is open; tw_source_unuse_file() gives it back. */
struct tw_segment_file *tw_source_use_file(struct tw_capture *capture, uint32_t file);
void tw_source_unuse_file(struct tw_capture *capture, uint32_t file);

/* For the first block of a stream: subtracts the losses and the own time in its records from the totals before it. */
void tw_source_take_inside(struct tw_capture *capture, struct tw_source_stream *stream,
			   const struct tw_source_block *block);

/*
 * Segments of several recordings in one folder: recordings.c.  Notes what one of them says of itself; the largest count of each cause holds.
 * Returns 0 or TW_ENOMEM.
 */
int tw_source_tell(struct tw_capture *capture, uint64_t capture_id, uint32_t cause, uint64_t count);
/* Sums them up; how programs ended is known if there is one recording. */
void tw_source_sum_reports(struct tw_capture *capture);
void tw_source_choose_clock(struct tw_capture *capture);
/* Would its times be those of another clock than the others have? Such a segment is set aside. */
#define TW_SOURCE_IS_FOREIGN \
	"it is of another machine or boot, whose clock is not that of the others; `tracewheel merge` joins captures of several machines"
bool tw_source_is_foreign(const struct tw_capture *capture, const struct tw_segment_header *header);

/* Absent segments: holes.c. Without memory the place is not known. */
void tw_source_add_hole(struct tw_capture *capture, const struct tw_source_hole *hole);
/* Reads which segments the folder was to hold, if it says so. Returns 0 or TW_ENOMEM. */
int tw_source_read_asked(struct tw_capture *capture);
/* How many of them are absent? */
uint32_t tw_source_asked_absent(const struct tw_capture *capture);

/* Sums up missing data, by cause; called after all other sums. */
void tw_source_account(struct tw_capture *capture);

/* A part has the bounds of the capture that it was cut from. Called when the sums of its own are made. */
void tw_source_take_part(struct tw_capture *capture);

/* Sets when processes and threads ended, by the definitions read so far. */
void tw_source_take_ends(struct tw_capture *capture);

/* Sorts the blocks, leaves out duplicates, and sums up. Called after all segments were listed. */
int tw_source_arrange(struct tw_capture *capture);

/* Lists the catalogs, streams and blocks of the capture's files. */
int tw_source_list_segments(struct tw_capture *capture);
/* The same for a stream that is the capture's only file. */
int tw_source_list_stream(struct tw_capture *capture);
/* The file of a capture that is or was a stream, for reports of damage. */
int tw_source_name_stream(struct tw_capture *capture);
#define TW_STREAM_IS_CUT     "the stream was cut off here, or is none from here on"
#define TW_STREAM_HAS_NO_END "the stream ends here, before the end of the recording"

/* The marks that a reader of a stream has seen of its end. Zero at first. */
struct tw_stream_end {
	uint32_t segments; /* that ended */
	bool lacks_mark;
};

/* An index block, with what its totals say of the ending. */
static inline void tw_stream_end_take(struct tw_stream_end *end, uint64_t ending)
{
	end->segments++;
	end->lacks_mark |= (ending & TW_SEGMENT_MARKED) != 0;
}

static inline void tw_stream_end_mark(struct tw_stream_end *end, uint64_t ticks)
{
	end->lacks_mark &= ticks != UINT64_MAX;
}

/* Are the bytes whole, of which so many segments began? */
static inline bool tw_stream_end_is_there(const struct tw_stream_end *end, uint32_t segments)
{
	return end->segments >= segments && !end->lacks_mark;
}

#endif
