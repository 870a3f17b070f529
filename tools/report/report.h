/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - the parts of `tracewheel report`: the screen, times of functions, messages and schedules.
 */
#ifndef TW_TOOLS_REPORT_H
#define TW_TOOLS_REPORT_H

#include "tools/report/activity.h"
#include "tools/report/calltree.h"
#include "tools/report/lengths.h"
#include "tools/common/shorten.h"
#include "tools/tool.h"

struct tw_screen {
	struct tw_out *out;
	int columns;
	bool is_coloured;
	bool is_utf8;
	bool cuts_names; /* to the width of a terminal; in a pipe names are not cut */
	double seconds;
};

/* A screen on standard output; @seconds: of the report, 0 where no table needs them. */
struct tw_screen tw_screen_make(struct tw_out *out, double seconds);
const char *tw_screen_bold(const struct tw_screen *screen);
const char *tw_screen_red(const struct tw_screen *screen);
const char *tw_screen_plain(const struct tw_screen *screen);
/* A bar of that many columns: with eighths if the terminal can show them. */
void tw_screen_bar(const struct tw_screen *screen, double share, int width);
/* Prints text made elsewhere: if names are cut, lines wider than the screen are wrapped at blanks. */
void tw_screen_wrapped(const struct tw_screen *screen, const char *text, size_t bytes);
/* The names of a table as they are shown; borrowed until tw_screen_names_free(). */
struct tw_screen_names {
	const char **names;
	char **texts; /* NULL: the names are unchanged */
	size_t count;
};

/*
 * @names: `count` names in an array with one more element; taken.
 */
struct tw_screen_names tw_screen_names(const struct tw_screen *screen, const char **names, size_t count, int width);
const char *tw_screen_names_at(const struct tw_screen_names *names, size_t i);
void tw_screen_names_free(struct tw_screen_names *names);

/* Prints a name, cut to this width if names are cut, and a line end. */
void tw_screen_name(const struct tw_screen *screen, const char *name, int width);

/* The order of functions; TW_SORT_DEFAULT is by total time, or by calls if there are no times. */
enum tw_report_sort {
	TW_SORT_DEFAULT,
	TW_SORT_CALLS,
	TW_SORT_NAME,
	TW_SORT_TOTAL,
	TW_SORT_SELF,
	TW_SORT_MIN,
	TW_SORT_MEDIAN,
	TW_SORT_P99,
	TW_SORT_MAX
};

/* One function to be shown. */
struct tw_report_row {
	const char *name; /* borrowed from the tree */
	uint32_t function;
	const struct tw_call_function *sums;
	uint64_t median_ns, p99_ns;
	uint64_t tracer_ns; /* of the own time: the tracer's, at most */
};

/* The functions that were called, sorted, to be freed. NULL: no memory. */
struct tw_report_row *tw_report_rows(const struct tw_calltree *tree, enum tw_report_sort sort, size_t *count);

/* top: the most rows; 0: all. */
void tw_report_functions(const struct tw_screen *screen, const struct tw_calltree *tree, enum tw_report_sort sort,
			 size_t top);
void tw_report_callers(const struct tw_screen *screen, const struct tw_calltree *tree, enum tw_report_sort sort,
		       size_t top);
void tw_report_tree(const struct tw_screen *screen, const struct tw_calltree *tree, size_t top);
/* Reports what the times do not contain: open calls, calls whose end or beginning is not in the capture. */
void tw_report_honestly(const struct tw_screen *screen, const struct tw_calltree *tree);
/* Reports the tracer's cost of a call, and names the functions whose own time contains most of it. */
void tw_report_cost(const struct tw_screen *screen, const struct tw_calltree *tree);
void tw_report_times_json(struct tw_json *json, const struct tw_calltree *tree, enum tw_report_sort sort, size_t top);

void tw_report_activity(const struct tw_screen *screen, const struct tw_activity *activity, uint64_t start_ns,
			size_t top);
void tw_report_activity_json(struct tw_json *json, const struct tw_activity *activity, uint64_t start_ns, size_t top);

/* Mailboxes over time; seconds: of the report. */
void tw_report_lengths(const struct tw_screen *screen, const struct tw_lengths *lengths, uint64_t start_ns, size_t top);
void tw_report_lengths_json(struct tw_json *json, const struct tw_lengths *lengths, uint64_t start_ns, size_t top);

#endif
