/* SPDX-License-Identifier: Apache-2.0 */
/*
 * growth_broken_position_first.pml - growth.pml with POSITION_FIRST: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define POSITION_FIRST
#include "growth.pml"
