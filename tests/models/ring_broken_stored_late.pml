/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_broken_stored_late.pml - ring.pml with STORE_LATE: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define STORE_LATE
#include "ring.pml"
