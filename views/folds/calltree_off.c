/* SPDX-License-Identifier: Apache-2.0 */
/* calltree_off.c - replaces the times of a finished tree by those in which threads were off the processor. */
#include "views/folds/calltree.h"

void tw_calltree_take_off(struct tw_calltree *tree)
{
	for (uint32_t i = 0; i < tree->function_count; i++) {
		tree->functions[i].total_ns = tree->functions[i].states.ns[TW_STATE_OFF];
		tree->functions[i].self_ns = 0;
	}
	for (uint32_t i = TW_CALLTREE_FIRST; i < tree->node_count; i++) {
		struct tw_call_node *node = &tree->nodes[i];
		const struct tw_frame_states *states = i < tree->node_state_capacity ? &tree->node_states[i] : NULL;
		node->total_ns = states ? states->total.ns[TW_STATE_OFF] : 0;
		node->self_ns = states ? states->self.ns[TW_STATE_OFF] : 0;
		if (!node->is_process)
			tree->functions[node->function].self_ns += node->self_ns;
	}
}
