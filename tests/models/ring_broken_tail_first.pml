/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_broken_tail_first.pml - ring.pml with TAIL_FIRST: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define TAIL_FIRST
#include "ring.pml"
