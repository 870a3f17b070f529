/* SPDX-License-Identifier: Apache-2.0 */
/*
 * round.h - the runs of tracees in one round of a merge that does not know later rounds.
 *
 * All runs of the round are added and sorted; then a run must wait until the one before it of the same tracee is
 * over. Runs that are not in the round are not waited for.
 *
 * Threads  one.  Memory  24 bytes a run.
 */
#ifndef TW_PIPELINE_ROUND_H
#define TW_PIPELINE_ROUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tw_round_run {
	uint64_t run;
	uint32_t image;
	uint32_t tracee_id;
	bool is_over;
};

/* Zeroed: empty. */
struct tw_round {
	struct tw_round_run *runs;
	size_t count, capacity;
};

void tw_round_fini(struct tw_round *round);
/* 0 or TW_ENOMEM; ignores tracee 0 and run 0. */
int tw_round_add(struct tw_round *round, uint32_t image, uint32_t tracee_id, uint64_t run);
void tw_round_sort(struct tw_round *round);
bool tw_round_must_wait(const struct tw_round *round, uint32_t image, uint32_t tracee_id, uint64_t run);
void tw_round_finish(struct tw_round *round, uint32_t image, uint32_t tracee_id, uint64_t run);

#endif
