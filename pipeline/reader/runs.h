/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runs.h - the runs of each tracee that a capture holds, and how far each has been handed out.
 *
 * A tracee's runs are numbered; each is a stretch of some stream, from a switch record to the next. Existing runs are
 * kept as intervals: without losses one for each tracee. Thus the merge knows whether a run that it misses is still to
 * come, or is lost and not to be waited for.
 *
 * Threads  one.
 */
#ifndef TW_PIPELINE_RUNS_H
#define TW_PIPELINE_RUNS_H

#include "base/map.h"

/* No cursor. */
#define TW_RUNS_NOBODY UINT32_MAX
/* The most intervals kept, of all tracees and of one. Runs beyond them are ordered by time alone. */
#define TW_RUNS_INTERVALS_MAX (UINT32_C(1) << 22)
#define TW_RUNS_TRACEE_MAX    (UINT32_C(1) << 16)

struct tw_runs_interval {
	uint64_t first;
	uint64_t last;
};

struct tw_runs_tracee {
	struct tw_runs_interval *intervals; /* sorted, with gaps between them */
	uint32_t count;
	uint32_t capacity;
	uint32_t waiters; /* the first of a chain of the merge's cursors, or TW_RUNS_NOBODY */
	uint32_t cursor;  /* the one inside active_run, or TW_RUNS_NOBODY */
	uint64_t active_run;
	uint64_t finished_run; /* the last one completely handed out; 0: none */
};

/* Zeroed: empty. */
struct tw_runs {
	struct tw_map by_tracee;
	struct tw_runs_tracee *tracees;
	uint32_t count;
	uint32_t intervals;
};

void tw_runs_fini(struct tw_runs *runs);
/* Adds a run. False: no memory. */
bool tw_runs_add(struct tw_runs *runs, uint32_t image, uint32_t tracee, uint64_t run);
/* The runs of a tracee, NULL: none known. Lent until the next tw_runs_add(). */
struct tw_runs_tracee *tw_runs_find(struct tw_runs *runs, uint32_t image, uint32_t tracee);
/* The largest run before this one that exists; 0: none. */
uint64_t tw_runs_before(const struct tw_runs_tracee *tracee, uint64_t run);

#endif
