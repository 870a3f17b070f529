/* SPDX-License-Identifier: Apache-2.0 */
/*
 * permit_broken_wake_one.pml - permit.pml with WAKE_ONE: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define WAKE_ONE
#include "permit.pml"
