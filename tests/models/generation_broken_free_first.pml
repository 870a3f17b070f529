/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generation_broken_free_first.pml - generation.pml with FREE_FIRST: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define FREE_FIRST
#include "generation.pml"
