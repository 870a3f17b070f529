/* SPDX-License-Identifier: Apache-2.0 */
/* folded.c - a line for each node of a tree that has time of its own. */
#include "views/folds/folded.h"

#include "base/grow.h"
#include "tracewheel/error.h"

#include <stdlib.h>
#include <string.h>

/* The frames of a stack. */
struct chain {
	struct tw_out *out;
	char *text;
	size_t bytes, capacity;
};

/* The separator is replaced in names. */
static bool add_to_chain(struct chain *chain, const char *name)
{
	size_t bytes = strlen(name);
	if (!tw_grow_by(chain->text, chain->bytes, chain->capacity, bytes + 2))
		return false;
	if (chain->bytes)
		chain->text[chain->bytes++] = ';';
	for (size_t i = 0; i < bytes; i++)
		chain->text[chain->bytes++] = name[i] == ';' ? ':' : name[i];
	return true;
}

/* The number of a line: own time or calls; of two sides the old one before it. @diff: NULL: of one capture. */
static void put_own(const struct tw_treediff *diff, const struct tw_call_node *node, uint32_t number,
		    struct chain *chain, bool has_times)
{
	const struct tw_treediff_sums *old = diff ? &diff->nodes[number].sides[TW_OLD] : NULL;
	uint64_t own = has_times ? node->self_ns : node->is_process ? 0 : node->calls;
	uint64_t before = !old ? 0 : has_times ? old->self_ns : old->calls;
	if (!own && !before)
		return;
	tw_out_bytes(chain->out, chain->text, chain->bytes);
	if (diff)
		tw_out_format(chain->out, " %llu", (unsigned long long)before);
	tw_out_format(chain->out, " %llu\n", (unsigned long long)own);
}

static bool put_folded(const struct tw_calltree *tree, const struct tw_treediff *diff, uint32_t number,
		       struct chain *chain, bool has_times)
{
	size_t count, before = chain->bytes;
	uint32_t *children = tw_calltree_children(tree, number, &count);
	bool is_done = children != NULL;
	for (size_t i = 0; is_done && i < count; i++) {
		const struct tw_call_node *node = &tree->nodes[children[i]];
		is_done = add_to_chain(chain, tw_calltree_name(tree, children[i]));
		if (is_done)
			put_own(diff, node, children[i], chain, has_times);
		is_done = is_done && put_folded(tree, diff, children[i], chain, has_times);
		chain->bytes = before;
	}
	free(children);
	return is_done;
}

int tw_folded_put(struct tw_out *out, const struct tw_calltree *tree, const struct tw_treediff *diff, bool has_times)
{
	struct chain chain = {.out = out};
	bool is_done = put_folded(tree, diff, TW_CALLTREE_ROOT, &chain, has_times);
	free(chain.text);
	return is_done ? 0 : TW_ENOMEM;
}
