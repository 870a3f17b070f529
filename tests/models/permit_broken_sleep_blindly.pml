/* SPDX-License-Identifier: Apache-2.0 */
/*
 * permit_broken_sleep_blindly.pml - permit.pml with SLEEP_WITHOUT_LOOK: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define SLEEP_WITHOUT_LOOK
#include "permit.pml"
