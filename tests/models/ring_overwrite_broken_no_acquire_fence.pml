/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_overwrite_broken_no_acquire_fence.pml - ring_overwrite.pml with NO_ACQUIRE_FENCE: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define NO_ACQUIRE_FENCE
#include "ring_overwrite.pml"
