/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress_broken_no_second_barrier.pml - progress.pml with NO_SECOND_BARRIER: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define NO_SECOND_BARRIER
#include "progress.pml"
