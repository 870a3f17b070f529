/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocked_broken_no_recheck.pml - blocked.pml with NO_RECHECK: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define NO_RECHECK
#include "blocked.pml"
