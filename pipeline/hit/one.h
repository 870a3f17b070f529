/* SPDX-License-Identifier: Apache-2.0 */
/*
 * one.h - native calls that only the session of the command wants, on as little of the program's stack as possible.
 *
 * Between the short cuts of native.c and the general case: records with arguments, callers, a match program's decision, and records for
 * which the thread has no ring or no space yet.  The state of the hit lies in the thread's structure, and the work that
 * takes more stack is done elsewhere (breakpoints/own_stack.h); docs/unmodified.md has the number of bytes.
 *
 * Threads  any, as for hits.  Keep errno and vector registers.
 */
#ifndef TW_PIPELINE_ONE_H
#define TW_PIPELINE_ONE_H

#include "pipeline/hit/hit.h"

/* The thread is in the hit and in its read section; leaves both.  Continues with the general case if others want the call too. */
const char *tw_one_call(struct tw_place *place, const uint64_t *words, uint64_t *slot);
/* The same by this generation, which that read section has found to be the active one. */
const char *tw_one_call_of(const struct tw_bp_generation *generation, struct tw_place *place, const uint64_t *words,
			   uint64_t *slot);

/* Is that session the only one that wants the end of the call, as a record of its return or of an exception? */
static inline bool tw_one_wants(const struct tw_frame_wants *wants)
{
	const struct tw_tracee *tracee = tw_hit_tls.tracee;

	/* RELAXED hit.special: a change is seen by this call or by the next. */
	return tw_hit_host.pinned_rs && wants->returns == UINT64_C(1) << tw_hit_host.pinned_session &&
	       !(wants->return_tos | wants->more) && !(tracee && tw_load_relaxed(&tracee->special) & wants->returns);
}

/* Records the return of a frame for which tw_one_wants() is true.  The thread is in no hit, or in one that the call is nested in. */
void tw_one_return(const struct tw_frame_wants *wants, uint64_t *slot, uint64_t value);

#endif
