/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - the parts of `tracewheel report`: the screen, times of functions, messages and schedules.
 */
#ifndef TW_TOOLS_REPORT_H
#define TW_TOOLS_REPORT_H

#include "views/folds/activity.h"
#include "views/folds/calltree.h"
#include "views/folds/lengths.h"
#include "views/output/shorten.h"
#include "views/ports/native_ports.h"
#include "views/folds/totals.h"
#include "views/output/shorten.h"
#include "views/output/table.h"
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

/* Prints text, cut to what is left of a line behind so many columns if names are cut, and a line end. */
void tw_screen_cut(const struct tw_screen *screen, const char *text, int used);

/*
 * A name, or a place of code as "MODULE:FUNCTION at FILE:LINE", in so many columns if names are cut: the function is shortened, and
 * the line left out where too little would remain of it.
 * @out: holds TW_NAME_SHORT_BYTES. Returns it, or the text itself.
 */
const char *tw_screen_short(const struct tw_screen *screen, const char *text, int width, char *out);

/* Prints a name, cut to this width if names are cut, and a line end. */
void tw_screen_name(const struct tw_screen *screen, const char *name, int width);

/*
 * Totals of a selection; *durations: how many events end something that takes time, so that a tree of calls has times.
 * Returns 0 or an error; tw_totals_free() and tw_places_free() in both cases.
 */
int tw_report_totals(struct tw_totals *totals, struct tw_places *places, struct tw_capture *capture,
		     const struct tw_capture_filter *filter, uint64_t *durations);

/*
 * The same and a tree from one reading of the capture, if places can be presumed. Returns 1; 0: they cannot, and nothing is made; or an error.
 */
int tw_report_at_once(struct tw_totals *totals, struct tw_calltree *tree, struct tw_capture *capture,
		      const struct tw_capture_filter *filter, uint64_t *durations);

/* Losses; other data that is missing, and waits; the tracer's own time of new threads; notes of the agent. */
void tw_report_losses(const struct tw_screen *screen, const struct tw_totals *totals, const struct tw_capture *capture,
		      const struct tw_capture_account *account, const struct tw_capture_info *info, bool is_part);
void tw_report_setups(const struct tw_screen *screen, const struct tw_capture *capture);
void tw_report_account(const struct tw_screen *screen, const struct tw_capture *capture,
		       const struct tw_capture_info *info);
/* Why the recording ended before the program; how the program ended, if not well. */
void tw_report_stopped(const struct tw_screen *screen, const struct tw_capture *capture);
void tw_report_ending(const struct tw_screen *screen, const struct tw_capture *capture);
void tw_report_notes(struct tw_screen *screen, const struct tw_capture *capture);
/* The command of the first process, and how many others there were. */
void tw_report_head(const struct tw_screen *screen, const struct tw_capture *capture,
		    const struct tw_capture_info *info);

/* For views of their own: the head, how the recording ended, what is missing but for losses, notes of the agent. */
void tw_report_preface(const struct tw_screen *screen, const struct tw_capture *capture);

/* Which functions, in which order, with which columns. */
struct tw_report_order {
	const char *sort;    /* "name", or a key of tw_report_columns; NULL: by total time */
	const char *columns; /* keys, separated by commas; NULL: those that fit */
	size_t top;	     /* the most rows; 0: all */
};
/* The columns of functions with times; their rows are struct tw_report_row. */
extern const struct tw_table tw_report_columns;
/* The first columns: those of a tree that is made of stacks, which has no times. */
enum { TW_REPORT_COLUMNS_WITHOUT_TIMES = 2 };
/* The columns that these rows have: the last are of captures with waits for locks, and with states of threads. */
struct tw_report_row;
struct tw_table tw_report_table_of(const struct tw_report_row *rows, size_t count);
/* Do its --sort and --columns name columns of the table? If not, that is reported. */
struct tw_command;
bool tw_report_check_order(const struct tw_report_order *order, const struct tw_table *table,
			   const struct tw_command *command);
/* NULL: "name", or no such column. */
const struct tw_column *tw_report_sort(const char *key);

/* One function to be shown. */
struct tw_report_row {
	const char *name; /* borrowed from the tree */
	uint32_t function;
	const struct tw_call_function *sums;
	double share; /* of all calls */
	uint64_t median_ns, p99_ns;
	bool waits;	    /* what the function is for */
	bool knows_locks;   /* waits for locks are known */
	uint64_t tracer_ns; /* of the own time: the tracer's, at most */
};

/* The functions that were called, sorted, to be freed. NULL: no memory. */
struct tw_report_row *tw_report_rows(const struct tw_calltree *tree, const char *sort, size_t *count);

/* Shares of all calls, and the order. */
void tw_report_sort_rows(struct tw_report_row *rows, size_t count, const char *sort);
/* A table of rows; @title: of the names; @one, @more: what is said behind their number. As CSV: without times only their numbers. */
void tw_report_put_rows(const struct tw_screen *screen, const struct tw_report_row *rows, size_t count,
			const struct tw_report_order *order, const char *title, const char *one, const char *more);
void tw_report_put_rows_csv(struct tw_out *out, const struct tw_report_row *rows, size_t count,
			    const struct tw_report_order *order, bool has_times);

void tw_report_functions(const struct tw_screen *screen, const struct tw_calltree *tree,
			 const struct tw_report_order *order);
void tw_report_functions_csv(struct tw_out *out, const struct tw_calltree *tree, const struct tw_report_order *order);
void tw_report_callers(const struct tw_screen *screen, const struct tw_calltree *tree,
		       const struct tw_report_order *order);
/* The sum of a node: a duration, or a number of events. */
void tw_report_put_weight(const struct tw_screen *screen, const struct tw_calltree *tree, uint64_t weight,
			  bool is_known, bool is_lossy);
/* top: the most rows; 0: all. */
void tw_report_tree(const struct tw_screen *screen, const struct tw_calltree *tree, size_t top);
/* Reports what the times do not contain: open calls, calls whose end or beginning is not in the capture. */
void tw_report_honestly(const struct tw_screen *screen, const struct tw_calltree *tree);
/* Reports how much of the times are waits for locks, and for which most. */
void tw_report_in_locks(const struct tw_screen *screen, const struct tw_calltree *tree);
/* Reports the tracer's cost of a call, and names the functions whose own time contains most of it. */
void tw_report_cost(const struct tw_screen *screen, const struct tw_calltree *tree);
void tw_report_times_json(struct tw_json *json, const struct tw_calltree *tree, const struct tw_report_order *order);

void tw_report_activity(const struct tw_screen *screen, const struct tw_activity *activity, uint64_t start_ns,
			size_t top);
void tw_report_activity_json(struct tw_json *json, const struct tw_activity *activity, uint64_t start_ns, size_t top);

/* Mailboxes over time; seconds: of the report. */
void tw_report_lengths(const struct tw_screen *screen, const struct tw_lengths *lengths, uint64_t start_ns, size_t top);
void tw_report_lengths_json(struct tw_json *json, const struct tw_lengths *lengths, uint64_t start_ns, size_t top);

/* A table on the screen, and as an array of JSON; top: so many rows, 0: all.  @calls: the whole that shares are of. */
void tw_report_table(const struct tw_screen *screen, const struct tw_totals_table *table, const char *title,
		     uint64_t calls, size_t top);
void tw_report_table_csv(struct tw_out *out, const struct tw_totals_table *table, uint64_t calls, size_t top);
void tw_report_table_json(struct tw_json *json, const char *name, const struct tw_totals_table *table, uint64_t calls,
			  size_t top);

/* Calls that were counted, not recorded: nothing if there are none. */
void tw_report_counted(const struct tw_screen *screen, const struct tw_totals *totals, size_t top);
void tw_report_counted_json(struct tw_json *json, const struct tw_capture *capture, const struct tw_totals *totals,
			    size_t top);

/*
 * The keys that `report --by`, --histogram (is_histogram), and --sum and --quantiles (by->is_summary as well) name. False: nothing that they know,
 * which has been reported.
 */
struct tw_selection;
struct tw_grouping;
bool tw_report_by_take(struct tw_grouping *by, const struct tw_command *command, bool is_histogram, const char *value);
/* `report --by`, of an open capture, as text, JSON or CSV. Returns the exit code. */
int tw_report_by(struct tw_selection *selection, const struct tw_grouping *by, const struct tw_report_order *order,
		 const struct tw_command *command, char format, struct tw_capture *capture, const char *path);

/* The same for `report --sum` and --quantiles: rows in order of functions and ranges; as CSV ('c') or JSON. */
struct tw_groups;
void tw_report_put_summary(const struct tw_screen *screen, const struct tw_groups *groups,
			   const struct tw_report_row *rows, size_t count, const struct tw_report_order *order);
void tw_report_put_summary_as(struct tw_out *out, const struct tw_groups *groups, const struct tw_report_row *rows,
			      size_t count, const struct tw_report_order *order, char format);

/* `report --locks` and --memory, of an open capture. Return the exit code. */
typedef int tw_report_view(struct tw_selection *selection, const struct tw_report_order *order,
			   const struct tw_command *command, bool is_json, struct tw_capture *capture,
			   const char *path);
tw_report_view tw_report_locks_view, tw_report_memory_view;
/* The columns of memory; their rows are pointers to struct tw_memory_row. */
extern const struct tw_table tw_memory_columns;

/* The unknown about blocks, a sentence a line. */
struct tw_memory;
void tw_memory_sentences(const struct tw_screen *screen, const struct tw_memory *memory);
/* Descriptors (record --ports); top: so many rows, 0: all. */
void tw_native_ports_screen(const struct tw_screen *screen, const struct tw_native_ports *ports, size_t top);
void tw_native_ports_json(struct tw_json *json, const struct tw_native_ports *ports, size_t top);

/*
 * `report --follow` - calls @show again and again, each time on a cleared screen, as long as the capture that it opens is being
 * recorded.
 *
 * Returns the exit code of the last time.
 */
int tw_report_follow(int (*show)(void *context, const char *path), void *context, const char *path);

#endif
