/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_overwrite_broken_relaxed.pml - ring_overwrite.pml with OLDEST_RELAXED: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define OLDEST_RELAXED
#include "ring_overwrite.pml"
