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
 * @words	the argument registers at the call; NULL: not known, and then nothing is described that needs them.
 * @out		space for TW_DESCRIBED_WORDS_MAX words.
 *
 * Returns the number of words, 1 at least.
 */
unsigned tw_described_return(unsigned how, uint64_t value, const uint64_t *words, uint64_t *out);

#endif
