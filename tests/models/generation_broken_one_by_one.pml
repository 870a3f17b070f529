/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generation_broken_one_by_one.pml - generation.pml with ONE_BY_ONE: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define ONE_BY_ONE
#include "generation.pml"
