/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calltree_locks.c - the part of a call's time in which its thread waited for locks that other threads held.
 *
 * A wait ends with the return of the function that takes the lock, while all calls around it are open: each of them gets its time. So nothing
 * is added to calls and returns of other functions.
 */
#include "views/folds/calltree_locks.h"
#include "base/grow.h"

#include "tracewheel/error.h"

#include <stdlib.h>

/* If so many calls have no words (record --locks records them), none has. */
#define WORDLESS_MAX 1000

static void add(struct tw_calltree *tree, uint32_t number, uint64_t ns)
{
	const struct tw_call_node *node = &tree->nodes[number];
	if (!tw_grow_to(tree->node_lock_ns, tree->node_lock_capacity, number)) {
		tree->has_no_memory = true;
		return;
	}
	tree->node_lock_ns[number] += ns;
	if (!node->is_recursive)
		tree->functions[node->function].lock_ns += ns;
}

static void add_pair(struct tw_calltree *tree, uint32_t lock, uint32_t by, uint64_t ns)
{
	struct tw_call_locks *locks = tree->locks;
	uint64_t key = (uint64_t)lock << 32 | by;
	uint32_t at = tw_map_get(&locks->by_pair, key);
	if (at == TW_MAP_NONE) {
		if (!tw_grow(locks->sums, locks->sum_count, locks->sum_capacity) ||
		    !tw_map_add(&locks->by_pair, key, locks->sum_count)) {
			tree->has_no_memory = true;
			return;
		}
		at = locks->sum_count++;
		locks->sums[at] = (struct tw_call_lock){.lock = lock, .by = by};
	}
	locks->sums[at].ns += ns;
}

static void on_waited(void *context, const struct tw_lock_waited *wait)
{
	struct tw_calltree *tree = context;
	const struct tw_capture_event *event = tree->locks->locks.event;
	const struct tw_stack *stack =
		event->stream < tree->stacks.stream_count ? tree->stacks.streams[event->stream] : NULL;
	uint64_t ns = wait->ns, from_ns = tree->locks->from_ns;
	/* A wait for a condition is one for work, or for its result. */
	if (wait->lock->kind == TW_LOCK_CONDITION || !tree->is_in_part || !stack || !stack->depth)
		return;
	if (wait->begin_ns < from_ns && event->time_ns - from_ns < ns)
		ns = event->time_ns - from_ns;
	tree->lock_ns += ns;
	add_pair(tree, wait->lock->number, wait->by, ns);
	for (uint32_t depth = 0; depth < stack->depth; depth++)
		add(tree, stack->frames[depth].node, ns);
	/* Callers that are known from its stack alone. */
	for (uint32_t at = tree->nodes[stack->frames[0].node].parent;
	     at >= TW_CALLTREE_FIRST && !tree->nodes[at].is_process; at = tree->nodes[at].parent)
		add(tree, at, ns);
}

static int see(void *self, const struct tw_capture_event *event)
{
	struct tw_call_locks *locks = self;
	int error = locks->fold.see(locks->fold.self, event);
	bool lacks_words = locks->locks.wordless >= WORDLESS_MAX && locks->locks.wordless == locks->locks.calls;
	return error ? error : lacks_words ? TW_FOLD_DONE : 0;
}

int tw_calltree_locks_begin(struct tw_calltree *tree, const struct tw_capture_filter *filter, struct tw_fold *fold)
{
	struct tw_capture_filter all = *filter;
	struct tw_call_locks *locks = tree->locks = calloc(1, sizeof *locks);
	if (!locks)
		return TW_ENOMEM;
	/* Holders may be other threads than those selected, and have taken their locks before. */
	all.from_ns = 0;
	all.wants_stream = NULL;
	all.wants_thread_states = false;
	locks->from_ns = filter->from_ns;
	int error = tw_locks_begin(&locks->locks, tree->capture, &all, &locks->fold);
	locks->locks.on = (struct tw_locks_calls){.waited = on_waited, .context = tree};
	*fold = locks->fold;
	fold->self = locks;
	fold->see = see;
	return error ? error : locks->locks.places.has_any;
}

bool tw_calltree_knows_locks(const struct tw_calltree *tree)
{
	return tree->locks && tree->locks->locks.calls && !tree->locks->locks.wordless;
}

bool tw_calltree_main_lock(const struct tw_calltree *tree, struct tw_call_lock *lock, struct tw_call_lock *held)
{
	const struct tw_call_locks *locks = tree->locks;
	uint64_t *totals = locks ? calloc(locks->locks.count + (size_t)1, sizeof *totals) : NULL;
	*lock = *held = (struct tw_call_lock){.by = TW_LOCK_NONE};
	for (uint32_t i = 0; totals && i < locks->sum_count; i++) {
		uint64_t *total = &totals[locks->sums[i].lock];
		*total += locks->sums[i].ns;
		if (*total > lock->ns)
			*lock = (struct tw_call_lock){locks->sums[i].lock, TW_LOCK_NONE, *total};
	}
	for (uint32_t i = 0; totals && i < locks->sum_count; i++) {
		const struct tw_call_lock *sum = &locks->sums[i];
		if (sum->lock == lock->lock && sum->by != TW_LOCK_NONE && sum->ns > held->ns)
			*held = *sum;
	}
	free(totals);
	return lock->ns != 0;
}

void tw_calltree_locks_free(struct tw_calltree *tree)
{
	if (tree->locks) {
		tw_locks_free(&tree->locks->locks);
		free(tree->locks->sums);
		tw_map_fini(&tree->locks->by_pair);
	}
	free(tree->locks);
	free(tree->node_lock_ns);
	tree->locks = NULL;
	tree->node_lock_ns = NULL;
	tree->node_lock_capacity = 0;
}
