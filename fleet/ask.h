/* SPDX-License-Identifier: Apache-2.0 */
/* ask.h - what the questions of tracewheel-fleet share. */
#ifndef TW_FLEET_ASK_H
#define TW_FLEET_ASK_H

#include "fleet/rows.h"
#include "tools/tool.h"
#include "views/output/table.h"

/* Segments of some nodes and of a time. */
struct tw_fleet_span {
	const char *node;	 /* a glob; NULL: all */
	uint64_t from_ns, to_ns; /* 0: no limit */
	bool is_by_end;		 /* those that ended in it; otherwise also those that go on behind it */
};

struct tw_fleet_ask {
	struct tw_fleet_rows rows;
	struct tw_fleet_store *store; /* NULL: the engine is asked */
	struct tw_fleet_engine *engine;
	/* Of an engine: functions are summed by node, for each of these; none: all of them, in `rows`. */
	const struct tw_fleet_span *spans;
	unsigned span_count;
	struct tw_fleet_rows *(*rows_of)(void *context, unsigned span,
					 const char *node); /* context of rows; NULL: no memory */
	bool lacks_calls;				    /* functions are not asked for */
	const char *clickhouse, *database;		    /* of the engine: its address; NULL: none, the usual one */
	const char *functions;				    /* a glob */
	const char *sort;				    /* a column; NULL: that of the question */
	const char *output;				    /* of fetch and story */
	const char *label;				    /* of story */
	char key[TW_SEGMENT_KEY_BYTES];
	uint32_t key_before;
	struct tw_segment_identity of_capture;
	const char *old_node; /* of diff: a glob */
	uint64_t old_from_ns, old_to_ns;
	uint64_t top;
	bool is_json, is_csv;
};

/* Each says what is wrong, and returns an exit code. Rows are read and joined, except for fetch and diff. */
int tw_fleet_report(struct tw_fleet_ask *ask);
int tw_fleet_losses(struct tw_fleet_ask *ask);
int tw_fleet_nodes(struct tw_fleet_ask *ask);
/* Before rows are read. @slowest: is written, and borrowed until tw_fleet_slowest_free(). */
void tw_fleet_slowest_begin(struct tw_fleet_ask *ask, struct tw_fleet_slowest *slowest);
int tw_fleet_slowest(struct tw_fleet_ask *ask);
/* Reads what is asked for, of the store or of the engine. False: it said why not. */
bool tw_fleet_ask_rows(struct tw_fleet_ask *ask);
bool tw_fleet_engine_read(struct tw_fleet_ask *ask);
/* tracewheel fleet setup, with its own options. */
int tw_fleet_setup(int argc, char **argv);
/* These read the summaries themselves. */
int tw_fleet_diff(struct tw_fleet_ask *ask);
int tw_fleet_story(struct tw_fleet_ask *ask);

extern struct tw_out tw_fleet_out;
/* The columns of functions; a row is a pointer to a pointer to a struct tw_fleet_sum. */
extern const struct tw_table tw_fleet_columns;
/* A function behind its cells, and the line's end. */
void tw_fleet_put_name(const char *name);

/* Sums over all segments. */
struct tw_fleet_whole {
	uint64_t segments, events, lost[TW_LOST_CAUSES], all_lost, damaged, missing, missing_events, dropped, from_ns,
		to_ns;
};

/* @node: of this one; NULL: of all. */
struct tw_fleet_whole tw_fleet_whole_of(const struct tw_fleet_rows *rows, const char *node);
void tw_fleet_put_whole(const struct tw_fleet_rows *rows, const struct tw_fleet_whole *whole);
void tw_fleet_put_json_whole(struct tw_json *json, const struct tw_fleet_whole *whole);
/* The end of an answer: its exit code. */
int tw_fleet_finish(const struct tw_fleet_rows *rows, const struct tw_fleet_whole *whole);

#endif
