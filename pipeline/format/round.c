/* SPDX-License-Identifier: Apache-2.0 */
/* round.c - sorted runs. */
#include "pipeline/format/round.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/search.h"

#include <stdlib.h>

void tw_round_fini(struct tw_round *round)
{
	free(round->runs);
	*round = (struct tw_round){0};
}

int tw_round_add(struct tw_round *round, uint32_t image, uint32_t tracee_id, uint64_t run)
{
	if (!tracee_id || !run)
		return 0;
	if (!tw_grow(round->runs, round->count, round->capacity))
		return TW_ENOMEM;
	round->runs[round->count++] = (struct tw_round_run){run, image, tracee_id, false};
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct tw_round_run *left = a, *right = b;

	return TW_ORDER(left->image, right->image)
		       ?: TW_ORDER(left->tracee_id, right->tracee_id)
		       ?: TW_ORDER(left->run, right->run);
}

void tw_round_sort(struct tw_round *round)
{
	if (round->count)
		qsort(round->runs, round->count, sizeof *round->runs, compare);
}

/* The index of the first run that is not before this one. */
static size_t index_of(const struct tw_round *round, const struct tw_round_run *wanted)
{
	return tw_search(i, round->count, compare(&round->runs[i], wanted) < 0);
}

bool tw_round_must_wait(const struct tw_round *round, uint32_t image, uint32_t tracee_id, uint64_t run)
{
	struct tw_round_run wanted = {run, image, tracee_id, false};
	const struct tw_round_run *before;
	size_t index;

	if (!round->count || !tracee_id || !run)
		return false;
	index = index_of(round, &wanted);
	before = index ? &round->runs[index - 1] : NULL;
	return before && before->image == image && before->tracee_id == tracee_id && !before->is_over;
}

void tw_round_finish(struct tw_round *round, uint32_t image, uint32_t tracee_id, uint64_t run)
{
	struct tw_round_run wanted = {run, image, tracee_id, false};

	if (!round->count || !tracee_id || !run)
		return;
	for (size_t i = index_of(round, &wanted); i < round->count && compare(&round->runs[i], &wanted) == 0; i++)
		round->runs[i].is_over = true;
}
