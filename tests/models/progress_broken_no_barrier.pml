/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress_broken_no_barrier.pml - progress.pml with NO_BARRIER: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define NO_BARRIER
#include "progress.pml"
