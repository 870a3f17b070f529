/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - summaries of any segments of any nodes, summed up: docs/fleet.md.
 *
 * Functions are summed while summaries are read, in any order. Calls over borders of segments are joined when all are there, by
 * tw_fleet_join().
 *
 * Threads  one.
 * Memory   a summary's rows of calls over borders, and 4 KiB a function with times.
 */
#ifndef TW_FLEET_ROWS_H
#define TW_FLEET_ROWS_H

#include "fleet/fleet.h"
#include "base/map.h"

#include <jansson.h>

/* Bins of docs/fleet.md. */
#define TW_FLEET_BINS 512
/* Larger summaries are refused. */
#define TW_FLEET_SUMMARY_BYTES_MAX (UINT64_C(256) << 20)

/* Of a function on all nodes. Joining takes back what was counted inside open calls: sums are modulo 2^64 until it is done. */
struct tw_fleet_sum {
	char *name; /* MODULE:FUNCTION/ARITY */
	uint64_t calls, returned, exceptions, cut, lossy, open, total_ns, self_ns;
	uint64_t min_ns, max_ns, timed;
	uint64_t *bins; /* NULL: no call has a time */
};

struct tw_fleet_image {
	char *node, program[64];
	uint64_t process;
	uint64_t lost[TW_LOST_CAUSES];
	uint32_t first, count;		  /* of its segments, behind tw_fleet_join() */
	uint64_t missing, missing_events; /* segments that are absent between others, or were dropped on the node */
	uint64_t dropped;		  /* of these */
};

struct tw_fleet_segment {
	uint32_t image, image_segment;
	bool is_dropped, is_last;
	bool knows_label; /* it may have events of the label that is asked for */
	uint64_t events, events_before, lost, damaged, from_ns, to_ns, kept;
	char key[TW_SEGMENT_KEY_BYTES];
	json_t *crossing; /* rows of calls over its borders */
	uint32_t *sums;	  /* by id: numbers of functions */
	size_t sum_count;
};

/* Of a function in one segment, or of one call that began in an earlier one. */
struct tw_fleet_slow {
	struct tw_fleet_sum sum; /* with a name and bins of its own */
	uint32_t image;
	uint32_t before; /* the call began so many segments of its image earlier */
	uint64_t from_ns, to_ns;
	char key[TW_SEGMENT_KEY_BYTES];
};

/* The largest by a column; filled while summaries are read and joined. */
struct tw_fleet_slowest {
	struct tw_fleet_slow **rows;
	size_t count, most;
	const char *functions; /* a glob; NULL: all */
	const struct tw_column *column;
	uint64_t matching; /* functions of segments that the glob matches */
};

struct tw_fleet_rows {
	struct tw_fleet_sum *sums;
	struct tw_fleet_image *images;
	struct tw_fleet_segment *segments;
	size_t sum_count, sum_capacity, image_count, image_capacity, segment_count, segment_capacity;
	struct tw_map by_name, by_image, by_segment;
	uint64_t set_aside;	 /* files that are no summaries, or contradict one */
	const char *node;	 /* a glob: only these; NULL: all */
	uint64_t from_ns, to_ns; /* only segments with events in this time; 0: no limit */
	/* Only segments of this boot and capture; NULL: all. Borrowed. */
	const struct tw_segment_identity *of_capture;
	const char *label, *trace_id;	  /* of a request: which segments know it? NULL: is not asked, is not known */
	struct tw_fleet_slowest *slowest; /* NULL: is not asked */
	/* Which rows take a summary: the number-th; NULL: no more. Without it these do. */
	struct tw_fleet_rows *(*taking)(void *context, unsigned number, const char *node, uint64_t to_ns);
	void *context; /* of taking() */
	json_t *names; /* of an engine: functions whose places, from 1 on, are the ids in its rows; NULL: functions have ids of their own */
	bool has_no_memory;
};

/* Reads all summaries of a store. Says which are set aside. False: the store cannot be read, or has none, which was said. */
bool tw_fleet_read(struct tw_fleet_rows *rows, struct tw_fleet_store *store);
/* The rows of a summary, the first of which is the segment's. Returns a clause that says why it is none, or NULL. */
const char *tw_fleet_take_lines(struct tw_fleet_rows *rows, const char *path, const json_t *lines);
/* The row of a function, of no segment. False: no memory. */
bool tw_fleet_take_function(struct tw_fleet_rows *rows, const json_t *row);
/* By its name: is a summary of these nodes? */
bool tw_fleet_wants_path(const struct tw_fleet_rows *rows, const char *path);
/* Joins calls over borders, and counts segments that are absent between others. */
void tw_fleet_join(struct tw_fleet_rows *rows);
/* slowest.c. False: no memory. */
bool tw_fleet_slowest_take(struct tw_fleet_rows *rows, const struct tw_fleet_segment *segment, uint32_t before,
			   const struct tw_fleet_sum *sum);
void tw_fleet_slowest_free(struct tw_fleet_slowest *slowest);
/* Bins of durations. */
unsigned tw_fleet_bin(uint64_t ns);
uint64_t tw_fleet_bin_middle(unsigned bin);
/* The value below which this share of the function's times lies, as far as bins tell. */
uint64_t tw_fleet_quantile(const struct tw_fleet_sum *sum, double share);
/* The number of a function; UINT32_MAX: no memory. */
uint32_t tw_fleet_sum_of(struct tw_fleet_rows *rows, const char *name);
/* Adds the time of a call to its function. */
void tw_fleet_time(struct tw_fleet_rows *rows, struct tw_fleet_sum *sum, uint64_t ns);
/* Segments for a capture. */
struct tw_fleet_asked {
	const char *functions; /* a glob: only those in which such functions are; NULL: all */
	const char *key;       /* only this one, and `before` of its image ahead of it; NULL: all */
	uint32_t before;
	const char *node;	/* only of this node, and of this boot; NULL: of all */
	const uint8_t *boot_id; /* 16 bytes */
	bool knows_label;	/* only those that know the label of the rows */
	size_t got;		/* out */
};
/*
 * tw_fleet_fetch - makes a capture of segments of the rows.
 *
 * @asked	which of them.
 * @path	the folder to make, which must not exist.
 *
 * Returns an exit code, after saying what is wrong: a segment that is not there, or is not what its key says, is set aside.
 * Behind tw_fleet_read(), and not behind tw_fleet_join().
 */
int tw_fleet_fetch(const struct tw_fleet_rows *rows, struct tw_fleet_store *store, struct tw_fleet_asked *asked,
		   const char *path);
void tw_fleet_rows_free(struct tw_fleet_rows *rows);

#endif
