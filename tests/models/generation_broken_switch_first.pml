/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generation_broken_switch_first.pml - generation.pml with SWITCH_FIRST: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define SWITCH_FIRST
#include "generation.pml"
