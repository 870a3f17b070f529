/* SPDX-License-Identifier: Apache-2.0 */
/* calltree.c - one tree of all calls. */
#include "views/folds/calltree_inside.h"
#include "views/folds/calltree_locks.h"
#include "views/names/missing.h"
#include "views/names/lines.h"
#include "views/output/output.h"
#include "base/map.h"
#include "base/grow.h"

#include "tracewheel/error.h"

#include <stdlib.h>
#include <string.h>

/* More nodes than there can be. */
#define NO_NODE UINT32_MAX

static uint64_t key_of(uint32_t parent, uint32_t function)
{
	return (uint64_t)parent << 32 | function;
}

static bool is_recursive(const struct tw_calltree *tree, uint32_t parent, uint32_t function)
{
	/*
	 * Beyond the limit the callers are not known: a total that is too small is better than one that counts twice.
	 */
	if (parent == TW_CALLTREE_BEYOND)
		return true;
	for (uint32_t at = parent; at != TW_CALLTREE_ROOT; at = tree->nodes[at].parent) {
		if (tree->nodes[at].function == function && !tree->nodes[at].is_process)
			return true;
	}
	return false;
}

static uint32_t add_node(struct tw_calltree *tree, uint32_t parent, uint32_t function, bool is_process)
{
	if (tree->node_count >= tree->node_max && parent != TW_CALLTREE_BEYOND) {
		tree->is_full = true;
		return NO_NODE;
	}
	if (!tw_grow(tree->nodes, tree->node_count, tree->node_capacity) ||
	    (!is_process && !tw_map_add(&tree->by_key, key_of(parent, function), tree->node_count))) {
		tree->has_no_memory = true;
		return TW_CALLTREE_BEYOND;
	}
	uint32_t number = tree->node_count++;
	struct tw_call_node *above = &tree->nodes[parent];
	tree->nodes[number] =
		(struct tw_call_node){.parent = parent,
				      .function = function,
				      .next_sibling = above->first_child,
				      .depth = (uint16_t)(above->depth + 1),
				      .is_process = is_process,
				      .is_recursive = !is_process && is_recursive(tree, parent, function)};
	above->first_child = number;
	return number;
}

uint32_t tw_calltree_find_child(struct tw_calltree *tree, uint32_t parent, uint32_t function)
{
	if (tree->nodes[parent].depth >= TW_CALLTREE_DEPTH_MAX)
		parent = TW_CALLTREE_BEYOND;
	for (;;) {
		uint32_t number = tw_map_get(&tree->by_key, key_of(parent, function));
		if (number == TW_MAP_NONE)
			number = add_node(tree, parent, function, false);
		if (number != NO_NODE) {
			tree->nodes[parent].last_used = number;
			return number;
		}
		parent = TW_CALLTREE_BEYOND;
	}
}

uint32_t tw_calltree_child(struct tw_calltree *tree, uint32_t parent, uint32_t function)
{
	return tw_calltree_last_child(tree, parent, function);
}

/* That of all processes of one kind. */
static uint32_t kind_node(struct tw_calltree *tree, const struct tw_stack *stack)
{
	static struct tw_out text;
	tw_out_init(&text, -1);
	if (!stack->has_tracee || !tw_groups_put_kind(&text, tree->capture, stack->image, stack->tracee_id, tree->kind))
		tw_out_text(&text, "(not known)");
	tw_out_bytes(&text, "", 1);
	uint64_t key = tw_hash_bytes(text.data, text.used, 0);
	uint32_t known = tw_map_find(&tree->by_kind, key, i, strcmp(tree->kinds[i].text, text.data) == 0);
	if (known != TW_MAP_NONE)
		return tree->kinds[known].node;
	char *copy = tw_grow(tree->kinds, tree->kind_count, tree->kind_capacity) ? strdup(text.data) : NULL;
	if (!copy || !tw_map_add(&tree->by_kind, key, tree->kind_count)) {
		free(copy);
		tree->has_no_memory = true;
		return TW_CALLTREE_BEYOND;
	}
	uint32_t node = add_node(tree, TW_CALLTREE_ROOT, tree->kind_count, true);
	tree->kinds[tree->kind_count++] = (struct tw_calltree_kind){copy, node};
	return node;
}

/* The parent node of a process's outermost calls. */
uint32_t tw_calltree_process_node(struct tw_calltree *tree, const struct tw_stack *stack)
{
	if (!tree->is_by_process)
		return TW_CALLTREE_ROOT;
	if (!tw_grow_to(tree->process_nodes, tree->process_capacity, stack->number)) {
		tree->has_no_memory = true;
		return TW_CALLTREE_ROOT;
	}
	uint32_t *node = &tree->process_nodes[stack->number];
	if (!*node) {
		*node = tree->is_by_kind ? kind_node(tree, stack)
					 : add_node(tree, TW_CALLTREE_ROOT, stack->number, true);
		if (*node == NO_NODE)
			*node = TW_CALLTREE_BEYOND;
	}
	return *node;
}

/* ---- by recorded stacks ---- */

static bool grow_functions(struct tw_calltree *tree)
{
	uint32_t count = tree->places.function_count;
	if (count <= tree->function_count)
		return true;
	struct tw_call_function *grown = realloc(tree->functions, count * sizeof *grown);
	if (!grown)
		return false;
	memset(grown + tree->function_count, 0, (count - tree->function_count) * sizeof *grown);
	tree->functions = grown;
	tree->function_count = count;
	return true;
}

/* This function is on the stack: its total grows. */
static uint32_t pass_through(struct tw_calltree *tree, uint32_t parent, uint32_t function, uint64_t amount)
{
	uint32_t number = tw_calltree_child(tree, parent, function);
	struct tw_call_node *node = &tree->nodes[number];
	node->total_ns += amount;
	if (!node->is_recursive)
		tree->functions[function].total_ns += amount;
	return number;
}

/* Passes through the functions of return addresses, the innermost first in the list. NO_NODE: no memory. */
static uint32_t pass_all(struct tw_calltree *tree, uint32_t at, uint32_t image, const uint64_t *words, uint32_t count,
			 uint64_t amount)
{
	for (uint32_t i = tw_line_stack_count(tree->capture, image, words, count); i-- > 0;) {
		uint32_t function = tw_frames_function(&tree->frames, image, words[i]);
		if (function == TW_PLACES_NONE || !grow_functions(tree)) {
			tree->has_no_memory = true;
			return NO_NODE;
		}
		at = pass_through(tree, at, function, amount);
	}
	return at;
}

static void add_own(struct tw_calltree *tree, uint32_t node, uint64_t calls, uint64_t amount)
{
	struct tw_call_function *function = &tree->functions[tree->nodes[node].function];
	tree->nodes[node].calls += calls;
	tree->nodes[node].self_ns += amount;
	function->calls += calls;
	function->self_ns += amount;
}

/* Adds a call, and its return addresses, the innermost first. */
static void put_stack(struct tw_calltree *tree, const struct tw_call_pending *call, uint32_t image,
		      const uint64_t *words, uint32_t count)
{
	uint32_t at = pass_all(tree, tw_calltree_process_node(tree, call->stack), image, words, count, 1);
	if (at == NO_NODE)
		return;
	at = pass_through(tree, at, call->function, 1);
	tw_calltree_add_part(tree, at, call->stack, 1, 0, 0);
	add_own(tree, at, 1, 1);
}

bool tw_calltree_add_stack(struct tw_calltree *tree, uint32_t image, const uint64_t *words, uint32_t count,
			   uint64_t calls, uint64_t amount)
{
	static const char unknown[] = "(callers that were not recorded)";
	tree->frames.capture = tree->capture;
	tree->frames.places = &tree->places;
	uint32_t at = pass_all(tree, TW_CALLTREE_ROOT, image, words, count, amount);
	if (at == TW_CALLTREE_ROOT) {
		uint32_t function =
			tw_places_find(&tree->places, &tree->frames.names, unknown, sizeof unknown - 1, false);
		if (function == TW_PLACES_NONE || !grow_functions(tree))
			return false;
		at = pass_through(tree, at, function, amount);
	}
	if (at == NO_NODE || tree->has_no_memory)
		return false;
	add_own(tree, at, calls, amount);
	tree->nodes[TW_CALLTREE_ROOT].calls += calls;
	tree->nodes[TW_CALLTREE_ROOT].total_ns += amount;
	return true;
}

static void put_stackless(struct tw_calltree *tree, const struct tw_call_pending *call)
{
	tree->stackless++;
	put_stack(tree, call, 0, NULL, 0);
}

/*
 * Moves an outermost call that begins below the callers that its stack names. Their other calls are not known: they
 * have its time, and no calls. Within a call whose return is recorded, the callers are those whose returns are.
 */
static void put_callers(struct tw_calltree *tree, const struct tw_call_pending *call,
			const struct tw_capture_event *event)
{
	if (call->stack->depth != 1 || call->stack->frames[0].function != call->function)
		return;
	struct tw_stack_frame *frame = &call->stack->frames[0];
	uint32_t process = tw_calltree_process_node(tree, call->stack), at = process;
	uint32_t count = tw_line_stack_count(tree->capture, event->image, event->payload, event->payload_words);
	if (!count)
		return;
	for (uint32_t i = count; i-- > 0;) {
		uint32_t function = tw_frames_function(&tree->frames, event->image, event->payload[i]);
		if (function == TW_PLACES_NONE || !grow_functions(tree)) {
			tree->has_no_memory = true;
			return;
		}
		at = tw_calltree_child(tree, at, function);
	}
	tree->has_stack_callers = true;
	tree->nodes[frame->node].calls--;
	tw_calltree_add_part(tree, frame->node, call->stack, -1, 0, 0);
	frame->node = tw_calltree_child(tree, at, call->function);
	tree->nodes[frame->node].calls++;
	tw_calltree_add_part(tree, frame->node, call->stack, 1, 0, 0);
	/* A process has the sum of its outermost nodes, which are now callers without calls. */
	tree->nodes[process].calls++;
}

void tw_calltree_stack_event(struct tw_calltree *tree, const struct tw_capture_event *event, const struct tw_step *step)
{
	bool is_call = step->kind == (tree->is_by_stack ? TW_STEP_MOMENT : TW_STEP_CALL);
	struct tw_call_pending call;
	enum tw_call_stack_found found = tw_call_stacks_event(&tree->call_stacks, event, step, is_call, &call);
	if (found == TW_CALL_STACK_HERE && tree->is_by_stack)
		put_stack(tree, &call, event->image, event->payload, event->payload_words);
	else if (found == TW_CALL_STACK_HERE)
		put_callers(tree, &call, event);
	else if (found == TW_CALL_STACK_MISSING && tree->is_by_stack)
		put_stackless(tree, &call);
}

/* Adds to processes and the root the sums of the nodes below them. */
static void sum_up(struct tw_calltree *tree)
{
	for (uint32_t i = tree->node_count; i-- > TW_CALLTREE_FIRST;) {
		const struct tw_call_node *node = &tree->nodes[i];
		struct tw_call_node *parent = &tree->nodes[node->parent];
		bool is_sum = node->parent < TW_CALLTREE_FIRST || parent->is_process;
		if (!is_sum)
			continue;
		parent->calls += node->calls;
		parent->total_ns += node->total_ns;
		parent->is_lossy = parent->is_lossy || node->is_lossy;
	}
}

static bool init_by_stack(struct tw_calltree *tree)
{
	tree->frames.capture = tree->capture;
	tree->frames.places = &tree->places;
	return tw_call_stacks_init(&tree->call_stacks, tree->capture);
}

bool tw_calltree_init(struct tw_calltree *tree)
{
	if (!tree->node_max)
		tree->node_max = TW_CALLTREE_NODES_MAX;
	if (!tw_grow(tree->nodes, tree->node_count, tree->node_capacity))
		return false;
	tree->node_count = TW_CALLTREE_FIRST;
	memset(tree->nodes, 0, TW_CALLTREE_FIRST * sizeof *tree->nodes);
	return true;
}

int tw_calltree_begin(struct tw_calltree *tree, struct tw_capture *capture, const struct tw_capture_filter *filter,
		      struct tw_fold *fold)
{
	tree->capture = capture;
	tw_calltree_fold(tree, fold);
	fold->filter = *filter;
	fold->filter.wants_thread_states = true;
	struct tw_capture_filter all = fold->filter;
	int error = tree->places.images ? 0 : tw_places_make(&tree->places, capture, filter);
	/* Calls from before the selection may be open in it: all events from the beginning are followed. */
	if (tw_places_have_durations(&tree->places)) {
		fold->wants_before = true;
		all.from_ns = 0;
	}
	if (error == 0)
		error = tw_stacks_init(&tree->stacks, capture, &tree->places);
	tree->stacks.when = tree->when;
	if (error == 0)
		error = tw_stacks_foresee(&tree->stacks, &all);
	if (error)
		return error;
	if (!grow_functions(tree) || !tw_calltree_init(tree) ||
	    !tw_tracer_cost_init(&tree->cost, tree->stacks.stream_count, tree->places.function_count))
		return TW_ENOMEM;
	tree->is_by_stack = tw_places_have_stacks_only(&tree->places);
	return tree->places.kinds[TW_CAPTURE_STACK] && !init_by_stack(tree) ? TW_ENOMEM : 0;
}

void tw_calltree_end(struct tw_calltree *tree, const struct tw_capture_filter *filter)
{
	for (uint32_t i = 0; tree->is_by_stack && i < tree->call_stacks.stream_count; i++) {
		if (tree->call_stacks.pending[i].stack)
			put_stackless(tree, &tree->call_stacks.pending[i]);
	}
	if (tree->parts)
		tw_calltree_split_until(tree, UINT64_MAX - 1);
	tw_stacks_finish(&tree->stacks, filter->to_ns);
	if (tree->hides_waits)
		tw_calltree_hide_waits(tree);
	if (tree->is_of_off)
		tw_calltree_take_off(tree);
	sum_up(tree);
	tw_tracer_cost_finish(&tree->cost);
}

int tw_calltree_folds(struct tw_calltree *tree, struct tw_capture *capture, const struct tw_capture_filter *filter,
		      struct tw_fold folds[2], size_t *count)
{
	struct tw_fold fold;
	int error = tw_calltree_begin(tree, capture, filter, &fold);
	int followed = !error && tree->follows_locks ? tw_calltree_locks_begin(tree, filter, &folds[0]) : 0;
	*count = 1 + (size_t)(followed > 0);
	folds[*count - 1] = fold;
	return followed < 0 ? followed : error;
}

int tw_calltree_make_at_once(struct tw_calltree *tree, struct tw_capture *capture,
			     const struct tw_capture_filter *filter)
{
	const struct tw_calltree before = *tree;
	struct tw_fold folds[2];
	size_t fold_count;
	struct tw_count count;
	/* These keep something of what they have seen, which cannot be taken back. */
	if (tree->places.images || tree->when || tree->parts || tree->on_event || tree->on_unmatched)
		return 0;
	int error = tw_places_presume(&tree->places, capture, filter, &count);
	bool is_presumed = error == 1;
	if (is_presumed)
		error = tw_calltree_folds(tree, capture, filter, folds, &fold_count);
	if (is_presumed && !error)
		error = tw_pass_counted(capture, folds, fold_count, &count, "reading");
	if (is_presumed && !error && tw_places_hold(&tree->places, false)) {
		error = tw_places_end(&tree->places);
		tw_calltree_end(tree, filter);
		return tree->has_no_memory ? TW_ENOMEM : error ? error : 1;
	}
	tw_calltree_free(tree);
	*tree = before;
	return error == TW_ENOTSUP ? 0 : error;
}

int tw_calltree_make(struct tw_calltree *tree, struct tw_capture *capture, const struct tw_capture_filter *filter)
{
	struct tw_fold folds[2];
	size_t count;
	int at_once = tw_calltree_make_at_once(tree, capture, filter);
	if (at_once)
		return at_once < 0 ? at_once : 0;
	int error = tw_calltree_folds(tree, capture, filter, folds, &count);
	if (!error)
		error = tw_pass(capture, folds, count, "reading");
	if (!error)
		tw_calltree_end(tree, filter);
	return tree->has_no_memory ? TW_ENOMEM : error;
}

void tw_calltree_free(struct tw_calltree *tree)
{
	for (uint32_t i = 0; i < tree->function_count; i++) {
		tw_histogram_free(&tree->functions[i].took);
		free(tree->functions[i].spread);
	}
	for (uint32_t i = 0; i < tree->node_spread_capacity; i++)
		free(tree->node_spreads[i]);
	free(tree->node_spreads);
	free(tree->node_states);
	tw_calltree_locks_free(tree);
	tw_frames_free(&tree->frames);
	tw_call_stacks_free(&tree->call_stacks);
	free(tree->functions);
	free(tree->nodes);
	tw_map_fini(&tree->by_key);
	free(tree->process_nodes);
	for (uint32_t i = 0; i < tree->kind_count; i++)
		free(tree->kinds[i].text);
	free(tree->kinds);
	tw_map_fini(&tree->by_kind);
	tw_stacks_free(&tree->stacks);
	tw_tracer_cost_free(&tree->cost);
	tw_places_free(&tree->places);
	tree->nodes = NULL;
}
