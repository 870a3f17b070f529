/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_broken_count.pml - session.pml with COUNT_DROPPED: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define COUNT_DROPPED
#include "session.pml"
