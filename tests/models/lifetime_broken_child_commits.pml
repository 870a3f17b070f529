/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lifetime_broken_child_commits.pml - lifetime.pml with CHILD_COMMITS: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define CHILD_COMMITS
#include "lifetime.pml"
