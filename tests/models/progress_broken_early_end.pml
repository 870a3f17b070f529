/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress_broken_early_end.pml - progress.pml with EARLY_END: must fail.
 * cc: -DSAFETY -DCOLLAPSE
 */
#define EARLY_END
#include "progress.pml"
