/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_tree_lines.h - the lines of `print --tree`: columns, equal neighbours as one line, and the width of a terminal.
 *
 *	 0.000150835     900 us  17512 worker  |    app:step(0x1) = 5  x 900
 *	 begin         duration  thread             name    args  value
 *
 * Of captures with states of threads a column says how much of the duration the thread was off, and on wide screens one more how
 * much it was preempted: nothing if it was not at all, and - if its states are not known for a part of it.
 *
 *	 0.000150835    20.3 ms  off  20.1 ms  preempted   82 us  |    app:rest() = 0
 *
 * Leaves that follow each other in a call and are equal, with arguments and value, are one line: the time of the first,
 * and the sum of their durations. Lines of other threads may lie between them, so a line stands where the last of its calls
 * ended.
 *
 * A line that is too wide loses the end of its arguments, then that of its value, then parts of its name.
 *
 * Threads  one: the command's own.
 */
#ifndef TW_TOOLS_PRINT_TREE_LINES_H
#define TW_TOOLS_PRINT_TREE_LINES_H

#include "views/folds/stacks.h"
#include "views/output/output.h"

enum tw_tree_part { TW_TREE_NAME, TW_TREE_ARGUMENTS, TW_TREE_VALUE, TW_TREE_RED, TW_TREE_FIXED };

#define TW_TREE_PARTS_MAX 8
#define TW_TREE_NO_TIME	  UINT64_MAX

/* The columns before the bar. */
struct tw_tree_head {
	uint64_t at_ns; /* when the call began; of other lines: of the event */
	uint64_t ns;	/* the call's duration; TW_TREE_NO_TIME: none */
	uint32_t depth;
	char mark;	 /* before the duration; a blank: it is exact */
	bool is_divided; /* the states of the thread are known all the time */
	uint64_t off_ns, preempted_ns;
};

/* The text after the bar. */
struct tw_tree_line {
	char *text;
	size_t bytes, capacity;
	struct {
		enum tw_tree_part kind;
		size_t end; /* the next begins there */
	} parts[TW_TREE_PARTS_MAX];
	unsigned count;
};

struct tw_tree_lines {
	struct tw_out *out;
	struct tw_stacks *stacks;
	uint64_t zero_ns;
	int time_columns, name_columns; /* name_columns 0: lines do not name their thread or process */
	size_t columns;			/* of the terminal; 0: lines have any width */
	bool has_off, has_preempted;	/* these columns */
	uint32_t indent_max;		/* levels; deeper calls show their depth as a number */
	bool is_coloured;
	bool has_no_memory;
};

/* The widths are those of the capture's names and of standard output. @out, @stacks: borrowed until the last call. */
void tw_tree_lines_init(struct tw_tree_lines *lines, struct tw_out *out, struct tw_stacks *stacks, bool has_pids);
/* Frees what is kept for stacks: before tw_stacks_free(). */
void tw_tree_lines_free(struct tw_tree_lines *lines);

static inline void tw_tree_line_clear(struct tw_tree_line *line)
{
	line->bytes = 0;
	line->count = 0;
}

/* Adds a part; at most TW_TREE_PARTS_MAX. No memory: it is left out, which lines->has_no_memory says. */
void tw_tree_line_add(struct tw_tree_lines *lines, struct tw_tree_line *line, enum tw_tree_part kind, const char *text,
		      size_t bytes);

/* The text of the stack's innermost call, which is not printed yet. Lends: until tw_tree_lines_free(). NULL: no memory. */
struct tw_tree_line *tw_tree_lines_pending(struct tw_tree_lines *lines, struct tw_stack *stack);

/* Writes a line, after those of its stack that wait. */
void tw_tree_lines_put(struct tw_tree_lines *lines, struct tw_stack *stack, const struct tw_tree_head *head,
		       const struct tw_tree_line *line);
/* The same for a call that made no calls: the line waits for equal ones. */
void tw_tree_lines_put_leaf(struct tw_tree_lines *lines, struct tw_stack *stack, const struct tw_tree_head *head,
			    const struct tw_tree_line *line);
/* Writes all lines that wait. */
void tw_tree_lines_flush(struct tw_tree_lines *lines);

/* All stacks in the order of their appearance; gives, NULL: no memory. */
struct tw_stack **tw_tree_lines_stacks(const struct tw_stacks *stacks, size_t *count);

#endif
