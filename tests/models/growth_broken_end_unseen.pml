/* SPDX-License-Identifier: Apache-2.0 */
/*
 * growth_broken_end_unseen.pml - growth.pml with END_UNSEEN: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define END_UNSEEN
#include "growth.pml"
