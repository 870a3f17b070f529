/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_broken_commit_relaxed.pml - ring.pml with RELAXED_COMMIT: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define RELAXED_COMMIT
#include "ring.pml"
