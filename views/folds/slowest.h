/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slowest.h - the calls that took longest, and what each of them did.
 *
 * The events are read twice: once to find the calls, once to sum up the calls within each, by function and by path, in the
 * order in which they were first made:
 *
 *	12.3 ms        handle		a call that was found
 *	11.9 ms        | lock
 *	 210 us  x 900 | step
 *
 * Waits for locks within a found call are kept, the longest of them with the call in which the other thread took the lock
 * (or signalled the condition): its function and its beginning say where to look next. Captures have them with
 * `record --locks` (locks.h).
 *
 * If functions are given, their calls are compared by their whole time; else all calls by their own time, since the slowest
 * would be main, and those that it calls.
 *
 * Memory  two readings of stacks.h; 80 bytes a node, TW_SLOWEST_NODES_MAX of them: calls beyond that are counted with the
 *	   call around them.
 */
#ifndef TW_VIEWS_SLOWEST_H
#define TW_VIEWS_SLOWEST_H

#include "base/map.h"
#include "views/folds/locks.h"
#include "views/folds/stacks_spans.h"
#include "views/output/output.h"

#define TW_SLOWEST_MAX	     1000
#define TW_SLOW_WAITS_MAX    5
#define TW_SLOW_SERIALS	     8192
#define TW_SLOWEST_NODES_MAX (UINT32_C(1) << 18)

struct tw_slow_node {
	uint32_t function;
	uint32_t next, first, last; /* its next sibling; its children, in the order of their first calls; 0: none */
	uint64_t calls;
	uint64_t total_ns, self_ns;
	struct tw_state_sums states; /* of total_ns: zero if nothing is known */
	uint64_t first_ns;	     /* when the first began */
	uint32_t call;		     /* the number + 1 of the found call that it is; 0: none */
};

/* The thread that held the lock for most of a wait, or signalled, and the call in which it did. */
struct tw_slow_holder {
	uint32_t thread;   /* as of locks.h; TW_LOCK_NONE: none is known */
	uint32_t function; /* TW_PLACES_UNKNOWN: the call is not known */
	uint64_t took_ns;  /* when it took the lock, or signalled; 0: not known */
	uint64_t call_ns;  /* when the call began */
};

struct tw_slow_wait {
	uint32_t lock; /* its number in tw_slowest.waits.locks */
	uint64_t begin_ns, ns;
	struct tw_slow_holder by;
};

struct tw_slow_call {
	uint64_t key;	      /* its stack and number there */
	uint64_t compared_ns; /* by which it was found */
	uint64_t start_ns, total_ns, self_ns;
	uint64_t before_ns; /* it had been open so long when the selection began */
	uint32_t function, node;
	enum tw_frame_end how;
	bool is_lossy;
	char *process;				      /* the name of its thread or process */
	char *callers;				      /* "main > run", the nearest at the end; "": none is known */
	uint64_t wait_count, wait_ns;		      /* for locks */
	struct tw_slow_wait waits[TW_SLOW_WAITS_MAX]; /* the longest of them, the longest first */
	void *user;				      /* of the caller */
};

/* The knowledge of waits in the second reading. */
struct tw_slowest_waits {
	struct tw_locks locks;
	struct tw_slow_holder *holders; /* by lock: the last thread that took it */
	uint32_t holder_count;
	struct tw_slow_part {
		struct tw_slow_holder by;
		uint64_t begin_ns; /* of the wait */
		uint64_t ns;
	} * parts; /* by thread: of its wait, that of the holder with most of it */
	bool has_no_memory;
};

struct tw_slowest {
	struct tw_capture *capture;
	struct tw_places places;
	struct tw_stacks stacks;
	struct tw_tracer_cost cost; /* of the second reading */
	const bool *wanted;	    /* by function: are its calls compared? NULL: all, by own time */
	uint32_t most;
	struct tw_when *when;	    /* which calls are compared; NULL: all.  Borrowed */
	bool hides_waits;	    /* by own time: calls of functions that wait (waits.h) are not compared */
	struct tw_slow_call *calls; /* the slowest first */
	uint32_t count;
	struct tw_map by_key;			/* calls */
	uint64_t serials[TW_SLOW_SERIALS / 64]; /* a bit for each serial of them, modulo */
	struct tw_slow_node *nodes;
	uint32_t node_count, node_capacity;
	uint64_t compared; /* calls */
	struct tw_slowest_waits waits;
	bool is_full, has_no_memory;
	/* In the second reading: the event that begins a found call, or ends it. NULL: no interest. */
	bool (*on_event)(void *context, struct tw_slow_call *call, const struct tw_capture_event *event);
	void *context;
};

/*
 * tw_slowest_make - find the slowest calls of a selection.
 *
 * @slowest	zeroed, except most (1 .. TW_SLOWEST_MAX), when, hides_waits, on_event and context.
 * @filter	selects times and threads; which functions are compared is for its wants_place to say, but all events are read.
 *
 * Returns 0 or an error, TW_ENOTSUP if nothing has a duration; tw_slowest_free() in both cases.
 */
int tw_slowest_make(struct tw_slowest *slowest, struct tw_capture *capture, const struct tw_capture_filter *filter);
void tw_slowest_free(struct tw_slowest *slowest);
/* The tracer's part of a found call's whole time: an upper limit. */
uint64_t tw_slowest_tracer_ns(const struct tw_slowest *slowest, const struct tw_slow_call *call);
/*
 * A call that was found, from 0, as an object.
 *
 * @zero_ns	times count from there.
 * @least_part	calls within it that take less than this part of its time, or lie more than 100 deep, are only counted ("left_out"), and what
 *		these called is not listed either; 0: none is left out.
 */
void tw_slowest_json(struct tw_json *json, const struct tw_slowest *slowest, uint32_t number, uint64_t zero_ns,
		     unsigned least_part);

/* Of tw_slowest_make(): the fold of waits, which sees events before the stacks. Returns 0 or an error. */
int tw_slowest_waits_begin(struct tw_slowest *slowest, const struct tw_capture_filter *filter, struct tw_fold *fold);
void tw_slowest_waits_free(struct tw_slowest_waits *waits);

#endif
