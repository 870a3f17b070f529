/* SPDX-License-Identifier: Apache-2.0 */
/*
 * totals.h - numbers of calls by function, caller and thread: one fast scan of a capture.
 *
 * Counting is by place and by stream, two additions an event; names are used only afterwards, when places of one name
 * (several processes, several slots) are joined to one row.
 */
#ifndef TW_VIEWS_TOTALS_H
#define TW_VIEWS_TOTALS_H

#include "views/folds/places.h"
#include "views/folds/scan.h"

#include "tracewheel/capture.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One row of a table: a function, a caller or a thread. */
struct tw_totals_row {
	char *name;
	bool lacks_arity;
	uint64_t calls;
	uint64_t events; /* calls, returns and all others */
	uint64_t lost[TW_LOST_CAUSES];
	uint64_t overwritten; /* not among the lost: replaced by newer ones */
	uint32_t thread_id;   /* threads: the kernel's number, and the last name */
	char *thread_name;
	uint32_t exec; /* threads: the number of their program, if the process had several */
	const struct tw_capture_function *function; /* functions: any of that name; borrowed from the capture */
	double seconds;				    /* threads: from its first event to its last */
	uint64_t start_ns, end_ns;
	uint64_t kept_from_ns; /* threads with overwritten events: the first event after the last of those */
	uint32_t thread;       /* of the capture, from 0 */
	double since;	       /* counted functions: seconds of the recording; 0: from before the first event */
};

struct tw_totals_table {
	struct tw_totals_row *rows;
	size_t count;
};

struct tw_totals {
	struct tw_totals_table functions;
	struct tw_totals_table callers;
	struct tw_totals_table threads;
	/* Calls that were counted, not recorded: by function and by thread, in the whole capture. */
	struct tw_totals_table counted, counted_threads;
	uint64_t counted_calls;
	uint64_t calls;
	uint64_t events;
	uint64_t all_events;	       /* of the same time and threads, for any function */
	uint64_t kinds[64];	       /* events by kind; all kinds above 62 in the last element */
	uint64_t lost[TW_LOST_CAUSES]; /* in that time, on those threads; of any function */
	uint64_t overwritten;	       /* as the lost, and not among them: replaced by newer ones */
	struct tw_totals_scan *scan;   /* between begin and end */
};

/*
 * tw_totals_begin - the count that makes the totals of a selection; tw_totals_end() after its scan, which has the same filter.
 *
 * @filter	borrows until tw_totals_end().  Its wants_place() is also asked about a place without a function, for those
 *		that the capture does not define.
 * @count	is written; it refers to the totals.
 *
 * Returns 0 or an error; tw_totals_free() in both cases.
 */
int tw_totals_begin(struct tw_totals *totals, struct tw_capture *capture, const struct tw_capture_filter *filter,
		    struct tw_count *count);
/* Names and joins what was counted. Returns 0 or TW_ENOMEM. */
int tw_totals_end(struct tw_totals *totals);

/*
 * tw_totals_make - the two around a scan, which makes the places as well, if calls may return.
 *
 * @places	zeroed.  Stays so where nothing returns, or the filter selects a part of the time, which does not show what returns.
 *
 * Returns 0 or an error; tw_totals_free() and tw_places_free() in both cases.
 */
int tw_totals_make(struct tw_totals *totals, struct tw_places *places, struct tw_capture *capture,
		   const struct tw_capture_filter *filter);
/*
 * tw_totals_take - the same of a whole capture, from places that were presumed, behind tw_places_end(): without a scan.
 *
 * Returns 0 or TW_ENOMEM; tw_totals_free() in both cases.
 */
int tw_totals_take(struct tw_totals *totals, const struct tw_places *places, struct tw_capture *capture,
		   const struct tw_capture_filter *filter);
/* The number of events that make durations. */
uint64_t tw_totals_durations(const struct tw_totals *totals, const struct tw_places *places);
/* Are there messages or schedules? */
bool tw_totals_have_activity(const struct tw_totals *totals);
void tw_totals_free(struct tw_totals *totals);

/* Most calls first, or by name. */
void tw_totals_sort(struct tw_totals_table *table, bool by_name);

#endif
