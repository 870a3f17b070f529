/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - sets the process that a thread runs: a run-time schedules one in, or out. */
#include "pipeline/thread/chain.h"
#include "pipeline/thread/thread.h"
#include "pipeline/hit/count.h"
#include "pipeline/hit/hit.h"

void tw_thread_run(struct tw_tracee *tracee)
{
	struct tw_hit_tls *t = &tw_hit_tls;

	if (!tw_thread_join())
		return;
	if (t->tracee->has_accounts)
		tw_counts_out(t->thread, t->tracee);
	t->tracee = &tw_hit_nobody;
	tw_compiler_barrier();
	if (tracee && tw_unlikely(tracee->memory.used_count))
		tw_chains_sweep(tracee);
	t->run_stamp++;
	/* Runs without records take no number, and touch no memory that other threads write. */
	t->run_seq = tracee ? TW_RUN_DUE : 0;
	tw_compiler_barrier();
	if (tracee && tracee->has_accounts)
		tw_counts_in(tracee);
	if (tracee)
		t->tracee = tracee;
}
