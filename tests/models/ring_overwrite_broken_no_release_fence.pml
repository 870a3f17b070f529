/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_overwrite_broken_no_release_fence.pml - ring_overwrite.pml with NO_RELEASE_FENCE: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define NO_RELEASE_FENCE
#include "ring_overwrite.pml"
