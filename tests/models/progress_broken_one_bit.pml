/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress_broken_one_bit.pml - progress.pml with ONE_BIT: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define ONE_BIT
#include "progress.pml"
