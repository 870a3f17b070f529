/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lifetime_broken_child_claims.pml - lifetime.pml with CHILD_CLAIMS: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define CHILD_CLAIMS
#include "lifetime.pml"
