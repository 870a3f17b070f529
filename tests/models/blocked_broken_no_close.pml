/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocked_broken_no_close.pml - blocked.pml with NO_CLOSE: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define NO_CLOSE
#include "blocked.pml"
