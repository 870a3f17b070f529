/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lifetime_broken_recycle_early.pml - lifetime.pml with RECYCLE_EARLY: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define RECYCLE_EARLY
#include "lifetime.pml"
