/* SPDX-License-Identifier: Apache-2.0 */
/*
 * growth_broken_no_hold.pml - growth.pml with NO_HOLD: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define NO_HOLD
#include "growth.pml"
