/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_broken_commit_first.pml - ring.pml with BYTES_AFTER_COMMIT: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define BYTES_AFTER_COMMIT
#include "ring.pml"
