/* SPDX-License-Identifier: Apache-2.0 */
/* stacks_foresee.h - between stacks.c and stacks_foresee.c. */
#ifndef TW_TOOLS_STACKS_FORESEE_H
#define TW_TOOLS_STACKS_FORESEE_H

#include "tools/common/stacks.h"

/* This call went on behind every loss since it was known to be open.  False without memory. */
bool tw_stacks_keep(struct tw_stacks *stacks, const struct tw_stack *stack, const struct tw_frame *frame);

#endif
