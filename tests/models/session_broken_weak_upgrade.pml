/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_broken_weak_upgrade.pml - session.pml with WEAK_WITHOUT_CHECK: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define WEAK_WITHOUT_CHECK
#include "session.pml"
