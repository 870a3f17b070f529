/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress_broken_no_second_look.pml - progress.pml with NO_SECOND_LOOK: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define NO_SECOND_LOOK
#include "progress.pml"
