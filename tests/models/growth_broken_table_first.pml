/* SPDX-License-Identifier: Apache-2.0 */
/*
 * growth_broken_table_first.pml - growth.pml with TABLE_FIRST: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define TABLE_FIRST
#include "growth.pml"
