/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_overwrite_broken_one_look.pml - ring_overwrite.pml with NO_SECOND_LOOK: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define NO_SECOND_LOOK
#include "ring_overwrite.pml"
