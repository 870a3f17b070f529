/* SPDX-License-Identifier: Apache-2.0 */
/*
 * groups.h - calls summed up by what they have in common: an argument, the result, the caller, the thread ...; and histograms of
 * numbers.
 *
 * A group of arguments, results, callers or lines is of one function: read with fd = 3. All others are of all functions that are selected.
 * Total time counts only the outermost call of a group, or for results, which are known late, of a function.
 *
 * Memory  a group and a histogram for each value, TW_GROUPS_MAX of them: calls beyond that are one group.
 */
#ifndef TW_VIEWS_GROUPS_H
#define TW_VIEWS_GROUPS_H

#include "base/map.h"
#include "views/folds/calltree.h"
#include "views/folds/frames.h"
#include "views/folds/groups_processes.h"

#include "tracewheel/counts.h"

#define TW_GROUPS_MAX (UINT32_C(1) << 17)

enum tw_group_key {
	TW_BY_ARGUMENT,
	TW_BY_RESULT,
	TW_BY_DURATION, /* of histograms only */
	TW_BY_ERRNO,
	TW_BY_CALLER,
	TW_BY_LINE, /* of the source, in the caller */
	TW_BY_THREAD,
	TW_BY_PROCESS,
	TW_BY_PROGRAM,
	TW_BY_MODULE,
	TW_BY_NAME,   /* of the process that a run-time declares */
	TW_BY_SERVER, /* the process that the first argument names */
	/* By the kind of the process (groups_processes.h). */
	TW_BY_INITIAL_CALL,
	TW_BY_BEHAVIOUR,
	TW_BY_APPLICATION,
	TW_BY_LABEL
};

struct tw_grouping {
	enum tw_group_key key;
	uint32_t number;  /* of the argument, from 1; 0: by name */
	const char *name; /* borrowed; ends at a slash */
	bool is_histogram;
	uint64_t step;	 /* of histograms; 0: powers of two */
	bool is_summary; /* of histograms: ranges are parts of powers of two (base/range.h), for sums and percentiles */
};

/*
 * For a histogram: "arg:2" or "$2", "arg:size", "result", "duration", each with "/STEP" for equal ranges instead of powers of two: "arg:size/512",
 * "duration/1ms". Values that are no numbers are groups of their own. False: it is none of them.
 */
bool tw_grouping_parse_histogram(const char *text, struct tw_grouping *out);
/* "arg:2" or "$2", "arg:size", "result", "errno", "caller", "line", "thread", "process", "program", "module", "name", "server",
 * "initial-call", "behaviour", "application", "label".  False: none of them. */
bool tw_grouping_parse(const char *text, struct tw_grouping *out);

struct tw_group {
	uint32_t function; /* TW_PLACES_NONE: of all */
	uint64_t word;	   /* the value, if it is a number; a hash of its text otherwise */
	char *value;	   /* as print shows it */
	bool is_range;	   /* from low on, before low + width; of a histogram */
	int64_t low;
	uint64_t width;
	uint64_t sum;  /* of the numbers of a histogram, signed, modulo 2^64 */
	uint32_t open; /* calls, unless a group is known at their ends */
	struct tw_call_function sums;
};

/* A function and a value by which the program has summed up its calls: function of a group, beyond those that were recorded. */
struct tw_group_owner {
	uint32_t name; /* in places: "libc:malloc from app:parse" */
	uint32_t function;
	uint64_t key; /* a caller's function */
	char *value;  /* of the key */
};

struct tw_groups {
	struct tw_grouping by;
	struct tw_when *when; /* which calls; they are within all that are long enough.  NULL: all.  Borrowed */
	struct tw_capture *capture;
	struct tw_places places;
	struct tw_stacks stacks;
	struct tw_tracer_cost cost;
	struct tw_stacks_spans spans;
	struct tw_frames frames;	   /* callers in stacks, and of calls that were counted */
	struct tw_call_stacks call_stacks; /* for callers and lines, if the capture has any */
	bool *wanted;			   /* by function; NULL: all */
	struct tw_group *groups;
	uint32_t count, capacity;
	struct tw_map by_value;
	/* Words whose group is known, so that no text is made: a word of a function has one text. */
	struct tw_group_word {
		uint64_t word;
		uint32_t function, group;
		int64_t number;
	} * words;
	uint32_t word_count, word_capacity;
	struct tw_map by_word;
	struct tw_groups_processes processes;
	const struct tw_capture_event *event; /* the one that is being read */
	uint64_t duration_ns;		      /* of the call that ends */
	int64_t number;			      /* of the value of the last group_of(), for histograms */
	struct tw_group_owner *owners;
	uint32_t owner_count, owner_capacity;
	struct tw_map by_owner;
	struct tw_aggregation aggregation; /* of the calls that were counted */
	bool has_counted;		   /* they are in the groups */
	bool is_coarse;			   /* their ranges are too wide for percentiles */
	uint64_t valueless;		   /* calls whose value was not recorded: in no group */
	uint64_t losses, replaced;	   /* as of stacks */
	uint64_t left_out; /* calls of wanted functions that when does not select, and all that are too short */
	bool has_durations, is_in_part, is_full, has_no_memory;
};

/*
 * tw_groups_make - read the events of a selection into groups.
 *
 * @groups	zeroed, except by and when.
 * @filter	selects times, threads and functions; all functions are read, so that callers are known.
 *
 * Returns 0 or an error, TW_ENOTSUP if results are asked for and nothing returns, or lines and there are no stacks;
 * tw_groups_free() in both cases.
 */
int tw_groups_make(struct tw_groups *groups, struct tw_capture *capture, const struct tw_capture_filter *filter);
void tw_groups_free(struct tw_groups *groups);
/* The owner whose name this is; NULL: it is a function's. */
const struct tw_group_owner *tw_groups_owner(const struct tw_groups *groups, uint32_t name);

/* The grouping by which the program has summed up its calls. False: it has not. */
bool tw_grouping_of_capture(const struct tw_capture *capture, struct tw_grouping *out);

/* ---- between groups.c and groups_counted.c ---- */

struct tw_out;

/* The first stands for calls without a value, the second for those beyond the limit. */
enum { TW_GROUPS_VALUELESS, TW_GROUPS_BEYOND };
/* The group like this one, with this text; it is made if there is none. */
uint32_t tw_groups_like(struct tw_groups *groups, const struct tw_group *group, const struct tw_out *text);
/* The group of a value that is told by a number, or by the hash of its text; TW_MAP_NONE: there is none. */
uint32_t tw_groups_find(struct tw_groups *groups, uint32_t function, uint64_t word);
/* The group of the range of a function, or owner, that contains a number. @scratch: any. */
uint32_t tw_groups_range(struct tw_groups *groups, uint32_t owner, int64_t value, struct tw_out *scratch);
/* As a number of no known type is shown. */
void tw_groups_put_word(struct tw_out *out, uint64_t word);
/* Finds what was counted, and adds it after all events are read. @filter: has no times, and selects no threads. */
void tw_groups_find_counted(struct tw_groups *groups);
int tw_groups_add_counted(struct tw_groups *groups);

#endif
