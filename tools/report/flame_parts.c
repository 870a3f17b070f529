/* SPDX-License-Identifier: Apache-2.0 */
/* flame_parts.c - the sums of a flame graph's frames by thread and slice of time, for the page to show a part. */
#include "tools/report/flame.h"
#include "views/names/threads.h"
#include "views/output/page.h"

#include <stdio.h>
#include <string.h>

/* On a page: they have 15 bytes or so each. */
#define CELLS_MAX 150000

void tw_flame_want_parts(struct tw_calltree *tree, struct tw_parts *parts, const struct tw_capture *capture,
			 const struct tw_capture_filter *filter)
{
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	uint64_t from_ns = filter->from_ns > info.start_ns ? filter->from_ns : info.start_ns;
	uint64_t to_ns = filter->to_ns && filter->to_ns < info.end_ns ? filter->to_ns : info.end_ns;
	if (to_ns <= from_ns)
		return;
	tw_parts_init(parts, from_ns, to_ns);
	tree->parts = parts;
}

/* The stacks whose groups are their own, by group. */
static uint32_t list_stacks(const struct tw_stacks *stacks, struct tw_stack *list[TW_PARTS_GROUPS])
{
	uint32_t others = 0;
	for (struct tw_stack *stack = NULL; (stack = tw_stacks_next(stacks, stack));) {
		if (stack->number < TW_PARTS_GROUPS - 1)
			list[stack->number] = stack;
		else
			others++;
	}
	return others;
}

static void put_text(struct tw_out *out, bool is_next, const char *text)
{
	tw_out_text(out, is_next ? "," : "");
	tw_page_text(out, text, strlen(text));
}

/* Names by group, and the process of each: "PID PROGRAM". */
static void put_threads(struct tw_out *out, const struct tw_calltree *tree, uint32_t groups)
{
	struct tw_stack *list[TW_PARTS_GROUPS] = {0};
	uint32_t others = list_stacks(&tree->stacks, list);
	char text[300], figure[TW_FIGURE_BYTES];
	tw_out_text(out, ",\"threads\":[");
	for (uint32_t i = 0; i < groups; i++) {
		snprintf(text, sizeof text, "%s and unknown ones", tw_figure_of(figure, others, "other", "others"));
		put_text(out, i, list[i] ? tw_stacks_name(&tree->stacks, list[i]) : text);
	}
	tw_out_text(out, "],\"processes\":[");
	for (uint32_t i = 0; i < groups; i++) {
		const struct tw_capture_image *image = list[i] ? tw_capture_image(tree->capture, list[i]->image) : NULL;
		const char *slash = image ? strrchr(image->program, '/') : NULL;
		uint32_t exec = image ? tw_exec_number(tree->capture, list[i]->image) : 0;
		*text = 0;
		if (image)
			snprintf(text, sizeof text, exec > 1 ? "%d %.200s (exec %u)" : "%d %.200s", image->process_id,
				 slash ? slash + 1 : image->program, exec);
		put_text(out, i, text);
	}
	tw_out_text(out, "]");
}

/*
 * Numbers: for each node that has any, how many nodes it is behind the last one, and the number of its cells; for each of these
 * 2 * (group * slices + slice), and 1 if there is time scheduled out or lost; calls, self, and that time.
 */
static void put_cells(struct tw_out *out, const struct tw_parts *parts)
{
	uint32_t last = 0, end;
	tw_out_text(out, ",\"cells\":[");
	for (uint32_t at = 0; at < parts->count; at = end) {
		uint32_t node = parts->cells[at].node;
		for (end = at; end < parts->count && parts->cells[end].node == node;)
			end++;
		tw_out_format(out, "%s%u,%u", at ? "," : "", node - last, end - at);
		last = node;
		for (uint32_t i = at; i < end; i++) {
			const struct tw_part *cell = &parts->cells[i];
			uint32_t key = cell->group * parts->slices + cell->slice;
			tw_out_format(out, ",%u,%lld,%lld", 2 * key + (cell->sums.out_ns != 0),
				      (long long)cell->sums.calls, (long long)cell->sums.self_ns);
			if (cell->sums.out_ns)
				tw_out_format(out, ",%lld", (long long)cell->sums.out_ns);
		}
	}
	tw_out_text(out, "]");
}

bool tw_flame_parts(struct tw_out *out, const struct tw_calltree *tree, const uint32_t *written)
{
	struct tw_parts *parts = tree->parts;
	struct tw_capture_info info;
	bool is_done = tw_parts_rename(parts, written);
	while (is_done && parts->count > CELLS_MAX && tw_parts_halve(parts))
		;
	tw_parts_sort(parts);
	if (!is_done || parts->is_over || parts->count > CELLS_MAX || parts->groups * parts->slices < 2)
		return is_done;
	tw_capture_info(tree->capture, &info);
	tw_out_format(out, ",\"parts\":{\"from\":%lld,\"slice\":%llu,\"slices\":%u",
		      (long long)(parts->from_ns - info.zero_ns), (unsigned long long)parts->slice_ns, parts->slices);
	put_threads(out, tree, parts->groups);
	put_cells(out, parts);
	tw_out_text(out, "}");
	return true;
}
