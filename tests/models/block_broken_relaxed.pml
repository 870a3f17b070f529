/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_broken_relaxed.pml - block.pml with RELAXED_TAIL: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define RELAXED_TAIL
#include "block.pml"
