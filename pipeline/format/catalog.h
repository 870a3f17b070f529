/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog.h - the definitions of one process image, as a reader looks them up.
 *
 * Input: definitions blocks, of any number of segments, in any order and more than once. Output: the meaning of an
 * id. The first definition of an id counts, but a process has its last name; references are resolved when all are added.
 *
 * Threads  one while records are added; any number of readers after tw_catalog_finish().
 * Limits   TW_CATALOG_BYTES_MAX of records that are kept.
 */
#ifndef TW_PIPELINE_CATALOG_H
#define TW_PIPELINE_CATALOG_H

#include "base/map.h"
#include "tracewheel/counts.h"
#include "tracewheel/flight.h"

/* Structures of one size, each allocated separately so that pointers to them stay valid. */
struct tw_catalog_table {
	struct tw_map by_id;
	void **items;
	uint32_t count;
	uint32_t capacity;
};

struct tw_def_part;
struct tw_def_crash;

struct tw_catalog_text {
	char *text;
	size_t bytes;
};

struct tw_catalog_counted {
	uint32_t place_id;
	bool has_condition, has_children, is_child;
	uint64_t since_ticks, longer_ns;
	char condition[]; /* terminated; "": all calls are recorded */
};

struct tw_catalog {
	struct tw_catalog_table modules;
	struct tw_catalog_table functions;
	struct tw_catalog_table places;
	struct tw_catalog_table tracees;
	struct tw_catalog_table sessions;
	struct tw_catalog_table atoms;	      /* of struct tw_catalog_text */
	struct tw_catalog_table notes;	      /* of struct tw_catalog_text */
	struct tw_catalog_table layouts;      /* of struct tw_layout, by function */
	struct tw_catalog_table descriptors;  /* of struct tw_catalog_text: words of a description, by descriptor */
	struct tw_catalog_table pointers;     /* of struct tw_capture_pointer */
	struct tw_catalog_table ends;	      /* of struct tw_def_end, by lease */
	struct tw_catalog_table counted;      /* of struct tw_catalog_counted, by place */
	struct tw_catalog_table counts;	      /* that begin with a struct tw_capture_count, by row and place */
	struct tw_catalog_table aggregates;   /* of struct tw_capture_aggregate, by a hash */
	struct tw_catalog_table lines;	      /* of struct tw_capture_line, by address */
	struct tw_catalog_table whole_places; /* of struct tw_capture_whole_place, by place */
	struct tw_def_part *part;	      /* NULL: the capture is whole */
	struct tw_catalog_table old_names;    /* earlier names of processes, and their origins; without ids */
	struct tw_capture_trigger trigger;    /* with ticks for ns; reason NULL: none */
	struct tw_def_crash *crash;	      /* followed by its addresses; NULL: none */
	char *program;
	char *command;
	size_t command_bytes;
	char *host;
	char *node_name; /* of an Erlang node */
	char *node_shown;
	uint64_t record_bytes; /* of the records that are kept */
	uint64_t log_end;      /* of the image's log: everything before it was added */
};

/* Zeroed: empty. */
void tw_catalog_fini(struct tw_catalog *catalog);

/*
 * tw_catalog_add - add the records of one definitions block.
 *
 * Returns 0, TW_EFORMAT (records before the damage are added), TW_ELIMIT or TW_ENOMEM.
 */
int tw_catalog_add(struct tw_catalog *catalog, const uint8_t *bytes, size_t count);

/* All records are added: resolves the functions of places and the modules of functions. */
void tw_catalog_finish(struct tw_catalog *catalog);

/* When the thread of this ring ended, or with lease 0 the process, in ticks; 0: not known. */
uint64_t tw_catalog_end(const struct tw_catalog *catalog, uint64_t lease);

/* NULL: there is none. */
const void *tw_catalog_find(const struct tw_catalog_table *table, uint64_t id);
/* In the order of definition; *at is 0 at first; NULL after the last. */
const void *tw_catalog_next(const struct tw_catalog_table *table, uint32_t *at);
/* The same for `counts`, without those of which all calls were recorded. */
const struct tw_capture_count *tw_catalog_next_count(const struct tw_catalog *catalog, uint32_t *at);

#endif
