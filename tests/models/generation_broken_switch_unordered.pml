/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generation_broken_switch_unordered.pml - generation.pml with SWITCH_UNORDERED: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define SWITCH_UNORDERED
#include "generation.pml"
