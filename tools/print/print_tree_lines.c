/* SPDX-License-Identifier: Apache-2.0 */
/* print_tree_lines.c - columns, folding and cutting of the lines of `print --tree`. */
#include "tools/print/print_tree_lines.h"

#include "base/grow.h"
#include "base/search.h"
#include "views/names/threads.h"
#include "views/output/shorten.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Longer names of threads and processes shift their lines to the right. */
#define NAME_COLUMNS_MIN 10
#define NAME_COLUMNS_MAX 24
/* On a terminal they take this part of its width at most: columns / 5. */
#define NAME_COLUMNS_PART 5
/* A mark and a duration, with the blanks and the bar around them. */
#define DURATION_COLUMNS 16
/* The columns of thread states; narrower terminals have only the first. */
#define OFF_COLUMNS	  14
#define PREEMPTED_COLUMNS 20
#define PREEMPTED_FROM	  120
/* The text that cut parts keep, and a number of equal leaves. Indents leave a line the sum. */
#define ARGUMENTS_LEAST 5
#define VALUE_LEAST	8
#define NAME_LEAST	12
#define COUNT_LEAST	7
/* Levels of indents where lines have any width. */
#define INDENT_MAX 16
#define INDENT_MIN 2

/* A stack's user data. */
struct waiting {
	struct tw_tree_line pending;
	struct tw_tree_line leaf;
	struct tw_tree_head head;
	uint64_t times; /* equal leaves that wait; 0: none */
};

/* ---- widths ---- */

/* The width of the longest name of a process or a thread. */
static int widest_name(const struct tw_capture *capture, const struct tw_capture_info *info)
{
	char text[TW_THREAD_TEXT_BYTES];
	const struct tw_capture_stream *stream;
	size_t widest = NAME_COLUMNS_MIN;
	for (uint32_t i = 0; (stream = tw_capture_stream(capture, i)); i++) {
		size_t bytes = tw_thread_text(capture, stream, text);
		widest = bytes > widest ? bytes : widest;
	}
	for (uint32_t i = 0; i < info->images; i++) {
		const struct tw_capture_tracee *tracee;
		uint32_t at = 0;
		while ((tracee = tw_capture_tracee_next(capture, i, &at))) {
			size_t bytes = tw_process_text(capture, i, tracee->tracee_id, text);
			widest = bytes > widest ? bytes : widest;
		}
	}
	return widest < NAME_COLUMNS_MAX ? (int)widest : NAME_COLUMNS_MAX;
}

static int state_columns(const struct tw_tree_lines *lines)
{
	return (lines->has_off ? OFF_COLUMNS : 0) + (lines->has_preempted ? PREEMPTED_COLUMNS : 0);
}

void tw_tree_lines_init(struct tw_tree_lines *lines, struct tw_out *out, struct tw_stacks *stacks, bool has_pids)
{
	struct tw_capture_info info;
	char figure[TW_FIGURE_BYTES];
	tw_capture_info(stacks->capture, &info);
	*lines = (struct tw_tree_lines){.out = out,
					.stacks = stacks,
					.zero_ns = info.zero_ns,
					.indent_max = INDENT_MAX,
					.is_coloured = tw_colour_is_wanted(STDOUT_FILENO)};
	lines->time_columns =
		(int)strlen(tw_figure_moment(figure, info.end_ns > info.zero_ns ? info.end_ns - info.zero_ns : 0));
	if (has_pids || info.threads > 1)
		lines->name_columns = widest_name(stacks->capture, &info);
	lines->has_off = lines->has_preempted = info.has_thread_states;
	if (!tw_width_is_wanted(STDOUT_FILENO))
		return;
	int columns = tw_terminal_columns(STDOUT_FILENO);
	lines->has_preempted &= columns >= PREEMPTED_FROM;
	lines->columns = (size_t)columns;
	if (lines->name_columns > columns / NAME_COLUMNS_PART)
		lines->name_columns = columns / NAME_COLUMNS_PART > 0 ? columns / NAME_COLUMNS_PART : 1;
	int left = columns - lines->time_columns - DURATION_COLUMNS - state_columns(lines) - ARGUMENTS_LEAST -
		   VALUE_LEAST - NAME_LEAST - COUNT_LEAST - (lines->name_columns ? lines->name_columns + 2 : 0);
	lines->indent_max = left < 2 * INDENT_MIN ? INDENT_MIN : (uint32_t)left / 2;
}

/* ---- parts ---- */

void tw_tree_line_add(struct tw_tree_lines *lines, struct tw_tree_line *line, enum tw_tree_part kind, const char *text,
		      size_t bytes)
{
	if (!bytes)
		return;
	if (!tw_grow_by(line->text, line->bytes, line->capacity, bytes)) {
		lines->has_no_memory = true;
		return;
	}
	memcpy(line->text + line->bytes, text, bytes);
	line->bytes += bytes;
	line->parts[line->count].kind = kind;
	line->parts[line->count++].end = line->bytes;
}

static size_t begin_of(const struct tw_tree_line *line, unsigned part)
{
	return part ? line->parts[part - 1].end : 0;
}

static size_t least_of(enum tw_tree_part kind)
{
	return kind == TW_TREE_ARGUMENTS ? ARGUMENTS_LEAST : kind == TW_TREE_NAME ? NAME_LEAST : VALUE_LEAST;
}

/* Takes from parts of a kind as many bytes as are too many, as far as the kind allows. */
static size_t cut_parts(const struct tw_tree_line *line, size_t *widths, enum tw_tree_part kind, size_t excess)
{
	for (unsigned i = 0; i < line->count; i++) {
		if (line->parts[i].kind != kind || widths[i] <= least_of(kind))
			continue;
		size_t spare = widths[i] - least_of(kind), cut = spare < excess ? spare : excess;
		widths[i] -= cut;
		excess -= cut;
	}
	return excess;
}

/* Writes a part in its width: names are shortened, the end of others is replaced by dots. */
static void put_part(struct tw_tree_lines *lines, enum tw_tree_part kind, const char *text, size_t bytes, size_t width)
{
	struct tw_out *out = lines->out;
	char name[TW_NAME_SHORT_BYTES], whole[TW_NAME_SHORT_BYTES];
	if (bytes <= width) {
		tw_out_bytes(out, text, bytes);
	} else if (kind == TW_TREE_NAME) {
		snprintf(whole, sizeof whole, "%.*s", (int)bytes, text);
		tw_name_shorten(whole, width, name, sizeof name);
		tw_out_text(out, name);
	} else {
		const char *dots = kind == TW_TREE_ARGUMENTS ? "...)" : "...";
		tw_out_bytes(out, text, tw_utf8_part(text, width - strlen(dots)));
		tw_out_text(out, dots);
	}
}

static void put_text(struct tw_tree_lines *lines, const struct tw_tree_line *line, size_t room)
{
	static const enum tw_tree_part order[] = {TW_TREE_ARGUMENTS, TW_TREE_VALUE, TW_TREE_RED, TW_TREE_NAME};
	size_t widths[TW_TREE_PARTS_MAX];
	size_t excess = line->bytes > room ? line->bytes - room : 0;
	for (unsigned i = 0; i < line->count; i++)
		widths[i] = line->parts[i].end - begin_of(line, i);
	for (unsigned i = 0; excess && i < sizeof order / sizeof *order; i++)
		excess = cut_parts(line, widths, order[i], excess);
	for (unsigned i = 0; i < line->count; i++) {
		bool is_red = lines->is_coloured && line->parts[i].kind == TW_TREE_RED;
		size_t from = begin_of(line, i);
		if (is_red)
			tw_out_text(lines->out, "\033[1;31m");
		put_part(lines, line->parts[i].kind, line->text + from, line->parts[i].end - from, widths[i]);
		if (is_red)
			tw_out_text(lines->out, "\033[0m");
	}
}

/* ---- lines ---- */

/* "  off  20.1 ms": nothing where there is no duration, or none of it in that state. */
static void put_state(struct tw_tree_lines *lines, const char *name, const struct tw_tree_head *head, uint64_t ns)
{
	char figure[TW_FIGURE_BYTES];
	bool is_known = head->is_divided, has_any = head->ns != TW_TREE_NO_TIME && head->ns && (ns || !is_known);
	tw_out_format(lines->out, "  %*s %8s", (int)strlen(name), has_any ? name : "",
		      !has_any	 ? ""
		      : is_known ? tw_figure_duration(figure, ns)
				 : "-");
}

/* Writes the columns before the text; returns their number. */
static size_t put_head(struct tw_tree_lines *lines, struct tw_stack *stack, const struct tw_tree_head *head)
{
	char begin[TW_FIGURE_BYTES], figure[TW_FIGURE_BYTES], depth[16];
	bool has_time = head->ns != TW_TREE_NO_TIME;
	tw_out_format(lines->out, "%*s  %c%8s", lines->time_columns,
		      tw_figure_moment(begin, head->at_ns > lines->zero_ns ? head->at_ns - lines->zero_ns : 0),
		      has_time ? head->mark : ' ', has_time ? tw_figure_duration(figure, head->ns) : "");
	if (lines->has_off)
		put_state(lines, "off", head, head->off_ns);
	if (lines->has_preempted)
		put_state(lines, "preempted", head, head->preempted_ns);
	size_t columns = (size_t)(lines->time_columns + DURATION_COLUMNS + state_columns(lines));
	if (lines->name_columns) {
		const char *name = tw_stacks_name(lines->stacks, stack);
		size_t bytes = strlen(name);
		if (lines->columns && bytes > (size_t)lines->name_columns)
			bytes = tw_utf8_part(name, (size_t)lines->name_columns);
		tw_out_format(lines->out, "  %-*.*s", lines->name_columns, (int)bytes, name);
		columns += 2 + (bytes > (size_t)lines->name_columns ? bytes : (size_t)lines->name_columns);
	}
	if (head->depth <= lines->indent_max) {
		tw_out_format(lines->out, "  |  %*s", (int)head->depth * 2, "");
		return columns + head->depth * (size_t)2;
	}
	snprintf(depth, sizeof depth, "[%u] ", head->depth);
	tw_out_format(lines->out, "  |%*s%s", (int)lines->indent_max * 2, "", depth);
	return columns - 2 + lines->indent_max * (size_t)2 + strlen(depth);
}

static void put_line(struct tw_tree_lines *lines, struct tw_stack *stack, const struct tw_tree_head *head,
		     const struct tw_tree_line *line, uint64_t times)
{
	char figure[TW_FIGURE_BYTES], count[TW_FIGURE_BYTES + 4] = "";
	if (times > 1)
		snprintf(count, sizeof count, "  x %s", tw_figure_count(figure, times));
	size_t used = put_head(lines, stack, head) + strlen(count);
	put_text(lines, line, !lines->columns ? SIZE_MAX : lines->columns > used ? lines->columns - used : 0);
	tw_out_text(lines->out, count);
	tw_out_text(lines->out, "\n");
}

static struct waiting *waiting_of(struct tw_tree_lines *lines, struct tw_stack *stack)
{
	if (!stack->user)
		stack->user = calloc(1, sizeof(struct waiting));
	lines->has_no_memory |= !stack->user;
	return stack->user;
}

struct tw_tree_line *tw_tree_lines_pending(struct tw_tree_lines *lines, struct tw_stack *stack)
{
	struct waiting *waiting = waiting_of(lines, stack);
	return waiting ? &waiting->pending : NULL;
}

static void put_waiting(struct tw_tree_lines *lines, struct tw_stack *stack)
{
	struct waiting *waiting = stack->user;
	if (!waiting || !waiting->times)
		return;
	put_line(lines, stack, &waiting->head, &waiting->leaf, waiting->times);
	waiting->times = 0;
}

void tw_tree_lines_put(struct tw_tree_lines *lines, struct tw_stack *stack, const struct tw_tree_head *head,
		       const struct tw_tree_line *line)
{
	put_waiting(lines, stack);
	put_line(lines, stack, head, line, 1);
}

static bool is_equal(const struct waiting *waiting, const struct tw_tree_head *head, const struct tw_tree_line *line)
{
	return waiting->times && waiting->head.depth == head->depth && waiting->head.mark == head->mark &&
	       (waiting->head.ns == TW_TREE_NO_TIME) == (head->ns == TW_TREE_NO_TIME) &&
	       waiting->leaf.bytes == line->bytes && memcmp(waiting->leaf.text, line->text, line->bytes) == 0;
}

void tw_tree_lines_put_leaf(struct tw_tree_lines *lines, struct tw_stack *stack, const struct tw_tree_head *head,
			    const struct tw_tree_line *line)
{
	struct waiting *waiting = waiting_of(lines, stack);
	if (!waiting)
		return;
	if (is_equal(waiting, head, line)) {
		waiting->times++;
		if (head->ns != TW_TREE_NO_TIME)
			waiting->head.ns += head->ns;
		waiting->head.off_ns += head->off_ns;
		waiting->head.preempted_ns += head->preempted_ns;
		waiting->head.is_divided &= head->is_divided;
		return;
	}
	put_waiting(lines, stack);
	tw_tree_line_clear(&waiting->leaf);
	for (unsigned i = 0; i < line->count; i++)
		tw_tree_line_add(lines, &waiting->leaf, line->parts[i].kind, line->text + begin_of(line, i),
				 line->parts[i].end - begin_of(line, i));
	waiting->head = *head;
	waiting->times = 1;
}

/* ---- all stacks ---- */

static int by_number(const void *a, const void *b)
{
	const struct tw_stack *x = *(struct tw_stack *const *)a, *y = *(struct tw_stack *const *)b;
	return TW_ORDER(x->number, y->number);
}

struct tw_stack **tw_tree_lines_stacks(const struct tw_stacks *stacks, size_t *count)
{
	struct tw_stack **all = malloc((stacks->count + (size_t)1) * sizeof *all);
	*count = 0;
	for (struct tw_stack *stack = NULL; all && (stack = tw_stacks_next(stacks, stack));)
		all[(*count)++] = stack;
	if (all)
		qsort(all, *count, sizeof *all, by_number);
	return all;
}

void tw_tree_lines_flush(struct tw_tree_lines *lines)
{
	size_t count;
	struct tw_stack **all = tw_tree_lines_stacks(lines->stacks, &count);
	lines->has_no_memory |= !all;
	for (size_t i = 0; i < count; i++)
		put_waiting(lines, all[i]);
	free(all);
}

void tw_tree_lines_free(struct tw_tree_lines *lines)
{
	for (struct tw_stack *stack = NULL; lines->stacks && (stack = tw_stacks_next(lines->stacks, stack));) {
		struct waiting *waiting = stack->user;
		free(waiting ? waiting->pending.text : NULL);
		free(waiting ? waiting->leaf.text : NULL);
		free(waiting);
		stack->user = NULL;
	}
}
