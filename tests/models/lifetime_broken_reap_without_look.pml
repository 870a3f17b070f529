/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lifetime_broken_reap_without_look.pml - lifetime.pml with REAP_WITHOUT_LOOK: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define REAP_WITHOUT_LOOK
#include "lifetime.pml"
