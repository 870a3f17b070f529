/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open_calls.h - the argument registers of calls that are open, for returns that need them: of the descriptors that a call makes, of
 * the memory that it fills.
 *
 * Few calls are open at once.  A call that is left by a jump stays until its place is needed: calls below it on the stack go first,
 * then the oldest.  A forgotten call is not known at the return.
 *
 * Threads  the thread's own, in a hit; a return outside of a hit may be interrupted by one, and then finds its call or none.
 */
#ifndef TW_PIPELINE_OPEN_CALLS_H
#define TW_PIPELINE_OPEN_CALLS_H

#include "base/limits.h"
#include "pipeline/hit/arguments.h"

#include <stdint.h>

#define TW_OPEN_CALLS_MAX 16

struct tw_open_call {
	uintptr_t frame; /* as the hit is identified; 0: free */
	const struct tw_arg_plan *plan;
	uint64_t order; /* in which calls were added */
	uint64_t words[TW_ARGS_MAX];
};

struct tw_open_calls {
	struct tw_open_call calls[TW_OPEN_CALLS_MAX];
	uint64_t order;
};

/* @words	the six integer argument registers. */
void tw_open_calls_add(struct tw_open_calls *open, const struct tw_arg_plan *plan, uintptr_t frame,
		       const uint64_t *words);

/* Takes a call out.  Returns its registers, which are valid until the next one is added; NULL: it is not there. */
const uint64_t *tw_open_calls_take(struct tw_open_calls *open, const struct tw_arg_plan *plan, uintptr_t frame);

#endif
