/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format.h - the bytes of a capture as C structures; docs/format.md is the document.
 *
 * Data read into these structures is not trusted until it was checked.
 */
#ifndef TW_PIPELINE_FORMAT_H
#define TW_PIPELINE_FORMAT_H

#include "base/limits.h"

#include <stddef.h>
#include <stdint.h>

#define TW_SEGMENT_MAGIC  UINT64_C(0x31544d4745535754) /* "TWSEGMT1" */
#define TW_BLOCK_MAGIC	  UINT64_C(0x314b434f4c425754) /* "TWBLOCK1" */
#define TW_TRAILER_MAGIC  UINT64_C(0x314c494152545754) /* "TWTRAIL1" */
#define TW_FORMAT_VERSION 4
/* The first version with definitions in columns. */
#define TW_FORMAT_VERSION_COLUMNS 3
/* The first version with TW_CODEC_PLACES. */
#define TW_FORMAT_VERSION_PLACES 4
/* The oldest version that is read. */
#define TW_FORMAT_VERSION_FIRST 1
#define TW_FORMAT_CAUSES	4
/* Everything in a segment begins at a multiple of this. */
#define TW_FORMAT_ALIGN_BYTES 8
/* Both positions of definitions that are in no log: behind the end of each log. */
#define TW_FORMAT_OUTSIDE_LOG (UINT64_C(1) << 62)

struct tw_format_clock {
	uint64_t ticks;
	uint64_t monotonic_ns;
	uint64_t realtime_ns;
	uint64_t boottime_ns;
};

struct tw_segment_header {
	uint64_t magic;
	uint64_t header_checksum; /* of all that follows in the header */
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
	uint32_t image_segment;			/* the number of the segment in this image, from 1; 0: not
						 * known */
	uint32_t segments_kept;			/* older ones are removed (--keep); 0: all are kept */
	uint64_t events_before;			/* events in the image's earlier segments */
	uint64_t lost_before[TW_FORMAT_CAUSES]; /* losses in the image's earlier segments */
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
	TW_CODEC_NONE = 0, /* no ring records */
	TW_CODEC_VERBATIM = 1,
	TW_CODEC_GENERIC = 2,
	TW_CODEC_VALUES = 3,
	TW_CODEC_CALLS = 4,
	TW_CODEC_RETURNS = 5,	  /* until version 3 */
	TW_CODEC_DEFINITIONS = 6, /* from version 3 on: definitions in columns */
	TW_CODEC_PLACES = 7	  /* from version 4 on */
};

enum tw_block_packing { TW_PACKING_NONE = 0, TW_PACKING_LZ4 = 1 };

/* Positions only order the blocks; they do not address a record. */
#define TW_BLOCK_FLAG_SNAPSHOT 1
/* The block has no events that end or last: no return, no exception, no garbage collection. */
#define TW_BLOCK_FLAG_MOMENTS 2
/* The block has states of its thread, and nothing else. */
#define TW_BLOCK_FLAG_STATES 4
/* They are a stream of their own, with the lease of the thread's ring and this bit. */
#define TW_FORMAT_LEASE_OF_STATES(ring_lease) ((ring_lease) | UINT64_C(1) << 31)

/* Reasons for the tracer's own time: the id of a TW_EVENT_OWN_TIME record, less one. */
#define TW_FORMAT_OWN_KINDS 2

struct tw_format_own_time {
	uint64_t count;
	uint64_t ticks;
};

struct tw_block_header {
	uint64_t magic;
	uint64_t header_checksum; /* of all that follows in this header */
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
	/* From version 2 on; zeros when version 1 is read. */
	/* When the thread began, in any unit: identifies the thread together with its number; 0: not known. */
	uint64_t thread_start;
	uint32_t own_count; /* TW_EVENT_OWN_TIME and THREAD_STATE records: neither events nor switches */
	uint32_t kinds;	    /* tw_block_kind_bit() of every record; 0: not told */
	struct tw_format_own_time own[TW_FORMAT_OWN_KINDS]; /* so far in this lease */
};
_Static_assert(sizeof(struct tw_block_header) == 264, "the block header of docs/format.md");
#define TW_BLOCK_HEADER_BYTES_V1 216
_Static_assert(offsetof(struct tw_block_header, thread_start) == TW_BLOCK_HEADER_BYTES_V1, "version 1 ends there");

/*
 * The bit of a kind of records (without the bit for CPU time) in a block's kinds: several kinds share a bit. A block
 * without the bit of a kind has no record of it, and need not be read for it.
 */
static inline uint32_t tw_block_kind_bit(unsigned kind)
{
	return UINT32_C(1) << kind % 32;
}

/* The bytes of a block header in a segment of this version. */
static inline uint32_t tw_block_header_bytes(unsigned version)
{
	return version == 1 ? TW_BLOCK_HEADER_BYTES_V1 : (uint32_t)sizeof(struct tw_block_header);
}

/* The size of a stored block in the file; the header is sealed or checked. */
static inline uint64_t tw_block_file_bytes(const struct tw_block_header *header)
{
	uint64_t align = TW_FORMAT_ALIGN_BYTES;

	return header->header_bytes + (header->stored_bytes + align - 1) / align * align;
}

/* How a segment ends. */
enum {
	TW_SEGMENT_FINAL = 1, /* the image is known to have ended */
	TW_SEGMENT_SHORT = 2, /* later data, or data lost then, did not fit */
	TW_SEGMENT_LAST = 4,  /* the recording of the image ended with it */
	TW_SEGMENT_MARKED = 8 /* of a stream that ends with a mark of UINT64_MAX */
};

/*
 * The payload of a TW_BLOCK_ACCOUNT: entries for the whole recording so far. A reader takes the largest count of each
 * cause and ignores unknown causes.
 */
struct tw_format_account {
	uint32_t cause; /* enum tw_account_cause */
	uint32_t reserved;
	uint64_t count;
};

/* Data that the recorder knows to be missing. Numbers are part of the format. */
enum tw_account_cause {
	TW_ACCOUNT_DAMAGED_RINGS = 1, /* invalid stretches of rings, with an unknown number of events */
	TW_ACCOUNT_UNSTORED = 2,      /* events that did not fit on the disk, and lost ones whose loss record did not */
	TW_ACCOUNT_DEFINITIONS = 3,   /* names that did not fit */
	/* Processes that were not traced, by reason. */
	TW_ACCOUNT_PROCESSES_FULL = 4,	/* more processes at once than the table holds */
	TW_ACCOUNT_PROCESSES_OTHER = 5, /* any other reason */
	/* Processes that still ran when the recording ended. */
	TW_ACCOUNT_PROCESSES_WENT_ON = 6,
	/* Executed programs that cannot be traced. */
	TW_ACCOUNT_PROCESSES_STATIC = 7,  /* statically linked */
	TW_ACCOUNT_PROCESSES_LIBRARY = 8, /* another C library, or another machine */
	TW_ACCOUNT_PROCESSES_RIGHTS = 9,  /* set-uid, set-gid, file capabilities */
	/* Not a loss: how the started program ended, 1 << 32 | its status of wait(2). */
	TW_ACCOUNT_ENDING = 10,
	/* Objects that were opened or executed and not traced at their entries, because no plan was ready in time. */
	TW_ACCOUNT_PLANS = 11,
	/* Of the losses by TW_LOST_NO_RING: events of threads after their last destructor. */
	TW_ACCOUNT_THREADS_ENDED = 12,
	/* The rings were gone when the capture was completed: events of unknown number beyond its end. */
	TW_ACCOUNT_CUT = 13,
	/* Functions that could not be armed while the program ran: their calls are seen in part, or not at all. */
	TW_ACCOUNT_FUNCTIONS = 14,
	/* Processes that traced ones started, and that were not followed. */
	TW_ACCOUNT_CHILDREN = 15,
	/* Of the losses by TW_LOST_NO_RING: events of children of vfork(). */
	TW_ACCOUNT_VFORK = 16,
	/* Not a loss: why the recording ended before what it recorded, TW_ACCOUNT_STOP(). */
	TW_ACCOUNT_STOPPED = 17,
	/* Not a loss of events: switches of threads that the kernel lost, or that were not stored. */
	TW_ACCOUNT_SWITCHES = 18,
	/* Of the losses by TW_LOST_NESTED: calls in recorded calls that found no space until these were decided. */
	TW_ACCOUNT_LEFT_OUT = 19,
	TW_ACCOUNT_CAUSES
};

/* enum tw_stop, and its limit. */
#define TW_ACCOUNT_STOP(why, limit) ((uint64_t)(why) << 56 | (limit))

struct tw_segment_totals {
	uint64_t events;
	uint64_t lost[TW_FORMAT_CAUSES];
	uint64_t raw_bytes;
	uint64_t blocks;
	uint64_t ending; /* TW_SEGMENT_FINAL, TW_SEGMENT_SHORT, TW_SEGMENT_LAST, TW_SEGMENT_MARKED */
};
_Static_assert(sizeof(struct tw_segment_totals) == 64, "the totals of docs/format.md");

struct tw_index_entry {
	uint64_t offset;
	struct tw_block_header header;
};
_Static_assert(sizeof(struct tw_index_entry) == 272, "an index entry without holes");

/* The most entries that a writer puts into one index block. */
#define TW_INDEX_ENTRIES_MAX 3840
_Static_assert(sizeof(struct tw_segment_totals) + TW_INDEX_ENTRIES_MAX * sizeof(struct tw_index_entry) <=
		       TW_BLOCK_STORED_BYTES_MAX,
	       "an index block is a block");

struct tw_segment_trailer {
	uint64_t magic;
	uint64_t index_offset;
	uint64_t segment_bytes;
	uint64_t checksum; /* of the three fields before */
};
_Static_assert(sizeof(struct tw_segment_trailer) == 32, "the trailer of docs/format.md");

/* The head of a record in a definitions block; the payload follows, padded to 8. */
struct tw_definition_head {
	uint32_t type;
	uint32_t payload_bytes;
};

#endif
