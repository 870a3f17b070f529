/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocked_broken_no_look.pml - blocked.pml with NO_LOOK_FOR_WAITERS: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define NO_LOOK_FOR_WAITERS
#include "blocked.pml"
