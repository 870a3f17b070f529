/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_overwrite_broken_commit_relaxed.pml - ring_overwrite.pml with COMMIT_RELAXED: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define COMMIT_RELAXED
#include "ring_overwrite.pml"
