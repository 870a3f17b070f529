/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format.h - the bytes of a capture as C structures; docs/format.md is the document.
 *
 * Everything read into these structures is somebody else's word until it was checked.
 */
#ifndef TW_PIPELINE_FORMAT_H
#define TW_PIPELINE_FORMAT_H

#include "base/limits.h"

#include <stddef.h>
#include <stdint.h>

#define TW_SEGMENT_MAGIC  UINT64_C(0x31544d4745535754) /* "TWSEGMT1" */
#define TW_BLOCK_MAGIC	  UINT64_C(0x314b434f4c425754) /* "TWBLOCK1" */
#define TW_TRAILER_MAGIC  UINT64_C(0x314c494152545754) /* "TWTRAIL1" */
#define TW_FORMAT_VERSION 2
/* The oldest version that is read. */
#define TW_FORMAT_VERSION_FIRST 1
#define TW_FORMAT_CAUSES	4
/* Everything in a segment begins on a multiple of this. */
#define TW_FORMAT_ALIGN_BYTES 8

struct tw_format_clock {
	uint64_t ticks;
	uint64_t monotonic_ns;
	uint64_t realtime_ns;
	uint64_t boottime_ns;
};

struct tw_segment_header {
	uint64_t magic;
	uint64_t header_checksum; /* of everything behind it */
	uint16_t version;
	uint16_t header_bytes;
	uint32_t segment_number;
	uint32_t clock_source;
	uint32_t policy;
	uint8_t boot_id[16];
	uint64_t capture_id;
	uint64_t image_lease;
	uint64_t process_start_time;
	uint64_t image_start_ticks;
	int32_t process_id;
	int32_t parent_process_id;
	uint64_t ticks_per_second;
	struct tw_format_clock clock;
	/* From version 2 on; before, zeros. */
	uint32_t image_segment;			/* of this image, in order, from 1; 0: not told */
	uint32_t segments_kept;			/* older ones are removed (--keep); 0: all are kept */
	uint64_t events_before;			/* that the image's segments before this one were given */
	uint64_t lost_before[TW_FORMAT_CAUSES]; /* that they told */
	uint64_t first_event_ns;		/* of the recording, by CLOCK_MONOTONIC; 0: none is stored yet */
	uint64_t reserved;
};
_Static_assert(sizeof(struct tw_segment_header) == 192, "the segment header of docs/format.md");

enum tw_block_type {
	TW_BLOCK_EVENTS = 1,
	TW_BLOCK_DEFINITIONS = 2,
	TW_BLOCK_LOSS = 3,
	TW_BLOCK_INDEX = 4,
	TW_BLOCK_MARK = 5,
	TW_BLOCK_ACCOUNT = 6
};

enum tw_block_codec {
	TW_CODEC_NONE = 0, /* not ring records */
	TW_CODEC_VERBATIM = 1,
	TW_CODEC_GENERIC = 2,
	TW_CODEC_VALUES = 3,
	TW_CODEC_CALLS = 4,
	TW_CODEC_RETURNS = 5
};

enum tw_block_packing { TW_PACKING_NONE = 0, TW_PACKING_LZ4 = 1 };

/* Positions only order the blocks; they do not lead to a record. */
#define TW_BLOCK_FLAG_SNAPSHOT 1
/* Nothing in it ends or lasts: no return, no exception, no garbage collection. */
#define TW_BLOCK_FLAG_MOMENTS 2

/* Why time was the tracer's own: the id of a TW_EVENT_OWN_TIME record, less one. */
#define TW_FORMAT_OWN_KINDS 2

struct tw_format_own_time {
	uint64_t count;
	uint64_t ticks;
};

struct tw_block_header {
	uint64_t magic;
	uint64_t header_checksum; /* of everything behind it in this header */
	uint64_t payload_checksum;
	uint16_t version;
	uint8_t type;
	uint8_t codec;
	uint8_t packing;
	uint8_t flags;
	uint16_t header_bytes;
	uint32_t stored_bytes;
	uint32_t encoded_bytes;
	uint32_t raw_bytes;
	uint32_t record_count;
	uint32_t event_count;
	uint32_t switch_count;
	int32_t thread_id;
	uint32_t session_index;
	uint32_t scheduler_id;
	uint32_t tracee_id;
	uint64_t run_seq;
	uint64_t ring_lease;
	uint64_t first_pos;
	uint64_t end_pos;
	uint64_t first_sequence;
	uint64_t end_sequence;
	uint64_t first_ticks;
	uint64_t last_ticks;
	struct tw_format_clock clock;
	uint64_t lost[TW_FORMAT_CAUSES];
	char thread_name[16];
	/* From version 2 on; read as zeros of version 1. */
	/* When the thread began, in any unit: with its number it names the thread; 0: not told. */
	uint64_t thread_start;
	uint32_t own_count; /* TW_EVENT_OWN_TIME records: neither events nor switches */
	uint32_t reserved;
	struct tw_format_own_time own[TW_FORMAT_OWN_KINDS]; /* so far in this lease */
};
_Static_assert(sizeof(struct tw_block_header) == 264, "the block header of docs/format.md");
#define TW_BLOCK_HEADER_BYTES_V1 216
_Static_assert(offsetof(struct tw_block_header, thread_start) == TW_BLOCK_HEADER_BYTES_V1, "version 1 ends there");

/* The bytes of a block header in a segment of this version. */
static inline uint32_t tw_block_header_bytes(unsigned version)
{
	return version == 1 ? TW_BLOCK_HEADER_BYTES_V1 : (uint32_t)sizeof(struct tw_block_header);
}

/* What a stored block takes in the file; of a sealed or checked header. */
static inline uint64_t tw_block_file_bytes(const struct tw_block_header *header)
{
	uint64_t align = TW_FORMAT_ALIGN_BYTES;

	return header->header_bytes + (header->stored_bytes + align - 1) / align * align;
}

/* How a segment ends. */
enum {
	TW_SEGMENT_FINAL = 1, /* the image is known to have ended */
	TW_SEGMENT_SHORT = 2, /* what came after it, or was lost then, found no room */
	TW_SEGMENT_LAST = 4   /* the recording of the image ended with it */
};

/*
 * The payload of a TW_BLOCK_ACCOUNT: such entries, of the whole recording so far.  A reader takes the largest number of
 * each cause.  Causes that it does not know are passed over.
 */
struct tw_format_account {
	uint32_t cause; /* enum tw_account_cause */
	uint32_t reserved;
	uint64_t count;
};

/* What the recorder knows to be missing.  Numbers are part of the format. */
enum tw_account_cause {
	TW_ACCOUNT_DAMAGED_RINGS = 1, /* stretches of rings that made no sense: of their events no number is known */
	TW_ACCOUNT_UNSTORED = 2,      /* events that found no room on the disk */
	TW_ACCOUNT_DEFINITIONS = 3,   /* names that found no room */
	/* Processes that were not traced, by the reason. */
	TW_ACCOUNT_PROCESSES_FULL = 4,	/* more at once than there are places for */
	TW_ACCOUNT_PROCESSES_OTHER = 5, /* any other reason */
	/* Processes that still ran when the recording ended. */
	TW_ACCOUNT_PROCESSES_WENT_ON = 6,
	/* Programs that were executed and cannot be traced. */
	TW_ACCOUNT_PROCESSES_STATIC = 7,  /* statically linked */
	TW_ACCOUNT_PROCESSES_LIBRARY = 8, /* another C library, or another machine */
	TW_ACCOUNT_PROCESSES_RIGHTS = 9,  /* set-uid, set-gid, file capabilities */
	/* Nothing that is missing: how the program that was started ended, 1 << 32 | its status of wait(2). */
	TW_ACCOUNT_ENDING = 10,
	TW_ACCOUNT_CAUSES
};

struct tw_segment_totals {
	uint64_t events;
	uint64_t lost[TW_FORMAT_CAUSES];
	uint64_t raw_bytes;
	uint64_t blocks;
	uint64_t ending; /* TW_SEGMENT_FINAL, TW_SEGMENT_SHORT, TW_SEGMENT_LAST */
};
_Static_assert(sizeof(struct tw_segment_totals) == 64, "the totals of docs/format.md");

struct tw_index_entry {
	uint64_t offset;
	struct tw_block_header header;
};
_Static_assert(sizeof(struct tw_index_entry) == 272, "an index entry without holes");

/* That a writer puts into one index block. */
#define TW_INDEX_ENTRIES_MAX 3840
_Static_assert(sizeof(struct tw_segment_totals) + TW_INDEX_ENTRIES_MAX * sizeof(struct tw_index_entry) <=
		       TW_BLOCK_STORED_BYTES_MAX,
	       "an index block is a block");

struct tw_segment_trailer {
	uint64_t magic;
	uint64_t index_offset;
	uint64_t segment_bytes;
	uint64_t checksum; /* of the three before */
};
_Static_assert(sizeof(struct tw_segment_trailer) == 32, "the trailer of docs/format.md");

/* The head of a record in a definitions block; the payload follows, filled up to 8. */
struct tw_definition_head {
	uint32_t type;
	uint32_t payload_bytes;
};

#endif
