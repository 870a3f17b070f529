/* SPDX-License-Identifier: Apache-2.0 */
/* runs.c - sets of numbers as intervals. */
#include "pipeline/reader/runs.h"
#include "base/grow.h"
#include "base/search.h"

#include <stdlib.h>
#include <string.h>

void tw_runs_fini(struct tw_runs *runs)
{
	for (uint32_t i = 0; i < runs->count; i++)
		free(runs->tracees[i].intervals);
	free(runs->tracees);
	tw_map_fini(&runs->by_tracee);
	*runs = (struct tw_runs){0};
}

static uint64_t key_of(uint32_t image, uint32_t tracee)
{
	return (uint64_t)image << 32 | tracee;
}

struct tw_runs_tracee *tw_runs_find(struct tw_runs *runs, uint32_t image, uint32_t tracee)
{
	uint32_t at = tw_map_get(&runs->by_tracee, key_of(image, tracee));

	return at == TW_MAP_NONE ? NULL : &runs->tracees[at];
}

static struct tw_runs_tracee *add_tracee(struct tw_runs *runs, uint32_t image, uint32_t tracee)
{
	struct tw_runs_tracee *added;

	if (!tw_grow_one(runs->tracees, runs->count) ||
	    !tw_map_put(&runs->by_tracee, key_of(image, tracee), runs->count))
		return NULL;
	added = &runs->tracees[runs->count++];
	*added = (struct tw_runs_tracee){.waiters = TW_RUNS_NOBODY, .cursor = TW_RUNS_NOBODY};
	return added;
}

/* The number of intervals that begin at or before this run. */
static uint32_t count_up_to(const struct tw_runs_tracee *tracee, uint64_t run)
{
	return (uint32_t)tw_search(i, tracee->count, tracee->intervals[i].first <= run);
}

static bool insert(struct tw_runs *runs, struct tw_runs_tracee *tracee, uint32_t at, uint64_t run)
{
	if (runs->intervals >= TW_RUNS_INTERVALS_MAX || tracee->count >= TW_RUNS_TRACEE_MAX)
		return true;
	if (tracee->count == tracee->capacity) {
		uint32_t capacity = tracee->capacity ? tracee->capacity * 2 : 2;
		void *more = realloc(tracee->intervals, capacity * sizeof *tracee->intervals);

		if (!more)
			return false;
		tracee->intervals = more;
		tracee->capacity = capacity;
	}
	memmove(tracee->intervals + at + 1, tracee->intervals + at, (tracee->count - at) * sizeof *tracee->intervals);
	tracee->intervals[at] = (struct tw_runs_interval){run, run};
	tracee->count++;
	runs->intervals++;
	return true;
}

bool tw_runs_add(struct tw_runs *runs, uint32_t image, uint32_t tracee_id, uint64_t run)
{
	struct tw_runs_tracee *tracee = tw_runs_find(runs, image, tracee_id);
	struct tw_runs_interval *before, *after;
	uint32_t at;

	if (!tracee)
		tracee = add_tracee(runs, image, tracee_id);
	if (!tracee)
		return false;
	at = count_up_to(tracee, run);
	before = at ? &tracee->intervals[at - 1] : NULL;
	after = at < tracee->count ? &tracee->intervals[at] : NULL;
	if (before && run <= before->last)
		return true;
	if (before && run == before->last + 1) {
		before->last = run;
		if (after && after->first == run + 1) {
			before->last = after->last;
			tracee->count--;
			runs->intervals--;
			memmove(after, after + 1, (tracee->count - at) * sizeof *after);
		}
		return true;
	}
	if (after && after->first == run + 1) {
		after->first = run;
		return true;
	}
	return insert(runs, tracee, at, run);
}

uint64_t tw_runs_before(const struct tw_runs_tracee *tracee, uint64_t run)
{
	uint32_t at = run ? count_up_to(tracee, run - 1) : 0;

	if (!at)
		return 0;
	return tracee->intervals[at - 1].last < run ? tracee->intervals[at - 1].last : run - 1;
}
