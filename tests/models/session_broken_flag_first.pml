/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_broken_flag_first.pml - session.pml with FLAG_BEFORE_HANDLES: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define FLAG_BEFORE_HANDLES
#include "session.pml"
