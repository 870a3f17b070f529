/* SPDX-License-Identifier: Apache-2.0 */
/*
 * growth_broken_one_round.pml - growth.pml with ONE_ROUND: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define ONE_ROUND
#include "growth.pml"
