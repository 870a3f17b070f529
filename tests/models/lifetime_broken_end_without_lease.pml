/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lifetime_broken_end_without_lease.pml - lifetime.pml with END_WITHOUT_LEASE: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define END_WITHOUT_LEASE
#include "lifetime.pml"
