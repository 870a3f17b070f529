/* SPDX-License-Identifier: Apache-2.0 */
/* flame_memory.c - `flame --memory`: the stacks that allocated memory, as wide as their bytes. */
#include "tools/report/flame.h"

#include "tracewheel/error.h"

#include <string.h>

static const struct tw_flame_memory kinds[] = {
	{"peak", "memory at its peak"},
	{"live", "memory live at the end"},
	{"allocated", "memory allocated"},
};

const struct tw_flame_memory *tw_flame_memory_kind(const char *name)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (strcmp(kinds[i].name, name ? name : "peak") == 0)
			return &kinds[i];
	return NULL;
}

static uint64_t amount_of(const struct tw_flame_memory *kind, const struct tw_memory_row *row)
{
	return kind == &kinds[0] ? row->peak_bytes : kind == &kinds[1] ? row->live_bytes : row->bytes;
}

int tw_flame_memory_make(struct tw_flame *flame, struct tw_calltree *tree, struct tw_capture *capture,
			 const struct tw_capture_filter *filter)
{
	struct tw_memory *memory = &flame->memory;
	int error = tw_memory_make(memory, capture, filter, tw_pairs_functions(&flame->selection.pairs));
	tree->capture = capture;
	if (!error)
		error = tw_places_make(&tree->places, capture, filter);
	if (!error && !memory->places.has_any)
		return TW_ENOTSUP;
	if (!error && !tw_calltree_init(tree))
		error = TW_ENOMEM;
	for (uint32_t i = 0; !error && i < memory->row_count; i++) {
		const struct tw_memory_row *row = &memory->rows[i];
		uint64_t amount = amount_of(flame->kind, row);
		if (amount && !tw_calltree_add_stack(tree, row->image, row->words, row->word_count, row->calls, amount))
			error = TW_ENOMEM;
	}
	return error;
}
