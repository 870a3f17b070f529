/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_broken_check_first.pml - block.pml with CHECK_BEFORE_FLAG: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define CHECK_BEFORE_FLAG
#include "block.pml"
