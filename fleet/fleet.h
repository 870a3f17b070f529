/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet.h - segments and their summaries on the way from a node to a store.
 *
 *	a closed segment -> KEY by tracewheel/segment.h -> seg/NODE/YYYY/MM/DD/HH/MM/KEY.tws.zst
 *	                 -> its summary (summary.c)     -> sum/YYYY/MM/DD/HH/MM/NODE-KEY.jsonl.zst
 *
 * Both objects follow from the segment and the node's name alone, the minute from the segment's own end.  So each step may be done again
 * at any time, by any shipper: it writes the same bytes to the same place.
 *
 * Threads  one.
 */
#ifndef TW_FLEET_H
#define TW_FLEET_H

#include "tracewheel/segment.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The version of the rows of summaries. */
#define TW_FLEET_VERSION 1
/* A node's name: A-Z a-z 0-9 and - only, so that it can stand in keys and file names. */
#define TW_FLEET_NODE_BYTES	64
#define TW_FLEET_PATH_BYTES	512
#define TW_FLEET_SUMMARY_SUFFIX ".jsonl.zst"
/* Larger segments are refused: segments are compressed in memory. */
#define TW_FLEET_SEGMENT_BYTES_MAX (UINT64_C(256) << 20)

/* Bytes from malloc(). */
struct tw_fleet_bytes {
	uint8_t *data;
	size_t bytes;
};

/* ---- pack.c: zstd, its one place ---- */

/* Returns false without memory. @out: gives. */
bool tw_fleet_pack(const struct tw_fleet_bytes *from, int level, struct tw_fleet_bytes *out);
/* So many bytes of a file, read part by part: memory is needed for the result only. Returns false without memory, or if it cannot be read. @out: gives. */
bool tw_fleet_pack_file(int fd, uint64_t bytes, int level, struct tw_fleet_bytes *out);
/* Returns false if it is not compressed by zstd, or would be larger than `most`. @out: gives. */
bool tw_fleet_unpack(const struct tw_fleet_bytes *from, size_t most, struct tw_fleet_bytes *out);

/* ---- summary.c ---- */

/*
 * tw_fleet_summary - the rows of one segment, as lines of JSON (docs/fleet.md).
 *
 * @fd		borrows: a closed segment, read from its beginning.
 * @node	the node's name.
 * @out		gives.
 *
 * Pure: the same segment and node give the same bytes.
 * Errors: those of tracewheel/error.h.
 */
int tw_fleet_summary(int fd, const struct tw_segment_identity *identity, const char *node, struct tw_fleet_bytes *out);
/* The row of a segment that was dropped on its node, in place of its summary. */
int tw_fleet_dropped(const struct tw_segment_identity *identity, const char *node, struct tw_fleet_bytes *out);

/* ---- paths.c ---- */

/* The objects of a segment, below the store's prefix. */
void tw_fleet_paths(const struct tw_segment_identity *identity, const char *node, char segment[TW_FLEET_PATH_BYTES],
		    char summary[TW_FLEET_PATH_BYTES]);
/* Is it the name of a node, which may stand in paths? Summaries may be anybody's. */
bool tw_fleet_is_node(const char *name);
/* The folder of the summaries of a minute, without a slash behind it. */
void tw_fleet_minute_path(uint64_t wall_ns, char path[TW_FLEET_PATH_BYTES]);
/* Reads what the path of a summary says. False: ship wrote none under such a path. */
bool tw_fleet_parse_path(const char *path, char node[TW_FLEET_NODE_BYTES], struct tw_segment_identity *key);

/* ---- store.c ---- */

enum tw_fleet_answer {
	TW_FLEET_STORED,
	TW_FLEET_LATER,	  /* not now: the store is away, full, busy, or refuses the signature */
	TW_FLEET_REFUSED, /* this object for good */
};

/* Paths of objects, each from malloc(). */
struct tw_fleet_names {
	char **names;
	size_t count, capacity;
};
void tw_fleet_names_free(struct tw_fleet_names *names);

/* Which objects are read, and who takes them. */
struct tw_fleet_reading {
	const char *below;  /* of a bucket: "sum/", "sum/2026/" */
	const char *after;  /* of a bucket: only objects whose paths follow this one; "": all */
	const char *suffix; /* ".jsonl.zst" */
	size_t most;	    /* larger objects are not read */
	/* Is it read? NULL: all are. */
	bool (*wants)(void *context, const char *path);
	/* @packed: lent; without data, @reason is a clause that says why. */
	void (*take)(void *context, const char *path, struct tw_fleet_bytes *packed, const char *reason);
	void *context;
	uint64_t found; /* out: objects with that suffix, read or not */
};

struct tw_fleet_store;
/*
 * tw_fleet_store_open - "s3://BUCKET/PREFIX", or a folder, which is made if it does not exist and is to be written.
 *
 * @presign	a command that prints a signed address for PUT of an object, whose name is its last argument; NULL: none.
 *
 * Returns NULL after saying what is wrong.  tw_fleet_store_close() ends it.
 */
struct tw_fleet_store *tw_fleet_store_open(const char *to, bool is_written, const char *presign);
/* @reason: lends until the next call: a clause that says why it was not stored. */
enum tw_fleet_answer tw_fleet_store_put(struct tw_fleet_store *store, const char *path,
					const struct tw_fleet_bytes *from, const char **reason);
/* One object. @out: gives. Returns NULL, or a clause that says why it cannot be read. */
const char *tw_fleet_store_get(struct tw_fleet_store *store, const char *path, size_t most, struct tw_fleet_bytes *out);
/*
 * Reads objects of a store: all below a folder, in any order, or those of a bucket by their paths. False: it cannot be read, or no longer,
 * which was said.
 */
bool tw_fleet_store_read(struct tw_fleet_store *store, struct tw_fleet_reading *reading);
/* As it was given. */
const char *tw_fleet_store_name(const struct tw_fleet_store *store);
void tw_fleet_store_close(struct tw_fleet_store *store);

/* ---- s3.c, s3_read.c ---- */

struct tw_fleet_s3;
struct tw_fleet_s3 *tw_fleet_s3_open(const char *bucket_and_prefix, const char *presign);
/* The address of a prefix in a bucket, ending in a slash, and the key of the environment or the file of credentials ("": none). False: it was said. */
#define TW_FLEET_PLACE_BYTES 1100
bool tw_fleet_s3_place(const char *bucket_and_prefix, char *url, char *id, char *secret);
enum tw_fleet_answer tw_fleet_s3_put(struct tw_fleet_s3 *s3, const char *path, const struct tw_fleet_bytes *from,
				     char *reason, size_t capacity);
/* The paths below @below that follow @after, in order. False: @reason says why. */
bool tw_fleet_s3_list(struct tw_fleet_s3 *s3, const char *below, const char *after, struct tw_fleet_names *names,
		      char *reason, size_t capacity);
/* TW_FLEET_REFUSED: that object cannot be read; TW_FLEET_LATER: the store cannot. */
enum tw_fleet_answer tw_fleet_s3_get(struct tw_fleet_s3 *s3, const char *path, size_t most, struct tw_fleet_bytes *out,
				     char *reason, size_t capacity);
/* Hands them over in order. False: the store cannot be read any longer; @reason says why. */
bool tw_fleet_s3_get_all(struct tw_fleet_s3 *s3, const struct tw_fleet_names *names,
			 const struct tw_fleet_reading *reading, char *reason, size_t capacity);
void tw_fleet_s3_close(struct tw_fleet_s3 *s3);

/* ---- spool.c: what a node still has to ship ---- */

/*
 * A folder of hard links KEY.tws to segments that are not stored yet, which --keep of a recorder cannot take away; of the file `sent`, a
 * key in each line; and of KEY.drop, empty, for segments that were dropped.
 */
struct tw_fleet_spool {
	int folder; /* -1: not open */
	const char *node;
	uint64_t quota_bytes; /* 0: none */
	char *sent;	      /* keys with a line end each */
	size_t sent_bytes, sent_capacity;
	uint64_t linked, dropped, dropped_events; /* so far */
};

/* Returns false after saying what is wrong. */
bool tw_fleet_spool_open(struct tw_fleet_spool *spool, const char *path);
void tw_fleet_spool_close(struct tw_fleet_spool *spool);
/*
 * Takes in a segment.  *was_sent: it is in the store already.  Returns 0, TW_EFORMAT (none, or one that is cut), TW_ENOTSUP (another file system),
 * or another error.
 */
int tw_fleet_spool_link(struct tw_fleet_spool *spool, int folder, const char *name, bool *was_sent);
/* Drops the oldest segments beyond the quota. */
void tw_fleet_spool_limit(struct tw_fleet_spool *spool);
/* Its entries in the order of names, each and the list to be freed.  Returns their number, or -1. */
struct dirent;
int tw_fleet_spool_list(const struct tw_fleet_spool *spool, struct dirent ***entries);
/* Of an entry: only what the segment said of itself is left. */
bool tw_fleet_spool_is_dropped(const char *name);
/* A shipper died while it dropped the segment, which is still there: it is not dropped. */
bool tw_fleet_spool_undo(struct tw_fleet_spool *spool, const char *name);
/* It is in the store. */
bool tw_fleet_spool_done(struct tw_fleet_spool *spool, const char *name);
/* It can never be: its name becomes KEY.tws.bad. */
void tw_fleet_spool_refuse(struct tw_fleet_spool *spool, const char *name);

#endif
