/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generation_broken_no_wait.pml - generation.pml with NO_WAIT: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define NO_WAIT
#include "generation.pml"
