/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allocator.h - calls that mean something to the library itself, whoever traces them: allocations, and new threads.
 *
 * Threads  before a hit; as native.h.
 */
#ifndef TW_PIPELINE_ALLOCATOR_H
#define TW_PIPELINE_ALLOCATOR_H

#include "breakpoints/breakpoints.h"

#include <stdint.h>

/* @place: one with an `allocator`. */
void tw_allocator_call(const struct tw_place *place, const uint64_t *words);

#endif
