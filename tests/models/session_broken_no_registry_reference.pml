/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_broken_no_registry_reference.pml - session.pml with NO_REGISTRY_REFERENCE: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define NO_REGISTRY_REFERENCE
#include "session.pml"
