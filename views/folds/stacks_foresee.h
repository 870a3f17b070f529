/* SPDX-License-Identifier: Apache-2.0 */
/* stacks_foresee.h - shared by stacks.c and stacks_foresee.c. */
#ifndef TW_VIEWS_STACKS_FORESEE_H
#define TW_VIEWS_STACKS_FORESEE_H

#include "views/folds/stacks.h"

/* Notes that this call continued after every loss since it was last known to be open. False: no memory. */
bool tw_stacks_keep(struct tw_stacks *stacks, const struct tw_stack *stack, const struct tw_stack_frame *frame);

#endif
