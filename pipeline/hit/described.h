/* SPDX-License-Identifier: Apache-2.0 */
/*
 * described.h - descriptions of descriptors, recorded with the return of the call that made them.
 *
 * A layout's result of type 'd' (tracewheel/layout.h) asks for it: at the return of open, accept, pipe, ... the thread
 * asks the kernel what the new descriptor is, by up to four system calls a descriptor, and none where the call failed.
 *
 * Threads  any, as for returns of traced calls.  Keep errno and vector registers.  Under a seccomp filter that may forbid the
 *	    calls nothing is asked, and nothing is recorded but the result.
 */
#ifndef TW_PIPELINE_DESCRIBED_H
#define TW_PIPELINE_DESCRIBED_H

#include "tracewheel/layout.h"

#include <stdint.h>

/* A result and two descriptors. */
#define TW_DESCRIBED_WORDS_MAX (1 + 2 * TW_LAYOUT_DESCRIPTOR_WORDS_MAX)

/* The arguments of the call that returns; `frame` tells it from a call that came between. */
struct tw_described_call {
	uintptr_t frame;
	uint64_t words[3]; /* as tw_described_keep() has chosen them */
};

/*
 * tw_described_keep - remember what a return will need, at the call.
 *
 * @how		enum tw_layout_descriptor.
 * @words	the six integer argument registers.
 */
static inline void tw_described_keep(struct tw_described_call *call, unsigned how, uintptr_t frame,
				     const uint64_t *words)
{
	call->words[0] = words[how == TW_LAYOUT_DESCRIPTOR_PAIR_FOURTH ? 3 : 0];
	call->words[1] = words[1];
	call->words[2] = words[2];
	call->frame = frame;
}

/*
 * tw_described_one - the description of a descriptor.
 *
 * @out		space for TW_LAYOUT_DESCRIPTOR_WORDS_MAX words.
 *
 * Returns its words; 0: there is no such descriptor.
 */
unsigned tw_described_one(int fd, uint64_t *out);

/*
 * tw_described_return - the payload of a return: the result, and descriptions behind it.
 *
 * @how		enum tw_layout_descriptor.
 * @value	rax.
 * @call	as kept; its frame is another one where it was not, and then nothing is described that needs it.
 * @out		space for TW_DESCRIBED_WORDS_MAX words.
 *
 * Returns the number of words, 1 at least.
 */
unsigned tw_described_return(unsigned how, uint64_t value, const struct tw_described_call *call, uintptr_t frame,
			     uint64_t *out);

#endif
