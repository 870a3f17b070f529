/* SPDX-License-Identifier: Apache-2.0 */
/* calltree_inside.h - what the files of a call tree share: calltree.c has its nodes, calltree_calls.c the fold that fills them. */
#ifndef TW_VIEWS_CALLTREE_INSIDE_H
#define TW_VIEWS_CALLTREE_INSIDE_H

#include "views/folds/calltree.h"

/* Sets the functions of the fold. */
void tw_calltree_fold(struct tw_calltree *tree, struct tw_fold *fold);
/* With parts: all slices that end before a time. */
void tw_calltree_split_until(struct tw_calltree *tree, uint64_t ns);
/* An event, if the capture has stacks of calls. */
void tw_calltree_stack_event(struct tw_calltree *tree, const struct tw_capture_event *event,
			     const struct tw_step *step);
/* The parent node of a process's outermost calls. */
uint32_t tw_calltree_process_node(struct tw_calltree *tree, const struct tw_stack *stack);
uint32_t tw_calltree_find_child(struct tw_calltree *tree, uint32_t parent, uint32_t function);

/* tw_calltree_child(), fast for the child of the last call. */
static inline uint32_t tw_calltree_last_child(struct tw_calltree *tree, uint32_t parent, uint32_t function)
{
	uint32_t last = tree->nodes[parent].last_used;
	if (last && tree->nodes[last].function == function && !tree->nodes[last].is_process)
		return last;
	return tw_calltree_find_child(tree, parent, function);
}

static inline uint32_t tw_calltree_above(struct tw_calltree *tree, const struct tw_stack *stack, uint32_t depth)
{
	return depth ? stack->frames[depth - 1].node : tw_calltree_process_node(tree, stack);
}

static inline void tw_calltree_add_part(struct tw_calltree *tree, uint32_t node, const struct tw_stack *stack,
					int64_t calls, int64_t self_ns, int64_t out_ns)
{
	if (tree->parts &&
	    !tw_parts_add(tree->parts, node, stack->number, &(struct tw_part_sums){calls, self_ns, out_ns}))
		tree->has_no_memory = true;
}

#endif
