/* SPDX-License-Identifier: Apache-2.0 */
/*
 * round.h - the runs of tracees in one round of a merge that does not know what comes next.
 *
 * All runs that the round holds are added and sorted; then one must wait as long as the one before it of the same
 * tracee is not over.  Runs that no round holds are not waited for.
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
	size_t count, room;
};

void tw_round_fini(struct tw_round *round);
/* 0 or TW_ENOMEM; tracee 0 and run 0 are none. */
int tw_round_add(struct tw_round *round, uint32_t image, uint32_t tracee_id, uint64_t run);
void tw_round_sort(struct tw_round *round);
bool tw_round_must_wait(const struct tw_round *round, uint32_t image, uint32_t tracee_id, uint64_t run);
void tw_round_finish(struct tw_round *round, uint32_t image, uint32_t tracee_id, uint64_t run);

#endif
