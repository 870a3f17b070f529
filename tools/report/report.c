/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.c - `tracewheel report`: one screen that summarises what a program did.
 *
 * First the program and its end; then tables: functions with their times, if returns were recorded, or with their
 * shares; callers, threads; messages and schedules, if there are any. Losses are shown prominently.
 */
#include "views/names/counted.h"
#include "views/names/lines.h"
#include "views/names/missing.h"
#include "views/names/names.h"
#include "views/names/notes.h"
#include "tools/common/pager.h"
#include "tools/common/select.h"
#include "views/folds/groups.h"
#include "views/folds/locks.h"
#include "views/ports/native_ports.h"
#include "tools/report/report.h"
#include "tools/report/report_diff.h"
#include "tools/report/report_html.h"
#include "tools/report/flame.h"
#include "views/folds/totals.h"

#include "tracewheel/error.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TOP_DEFAULT 20
#define TOP_THREADS 10

enum { KEY_LOCKS = 256, KEY_MEMORY, KEY_PORTS, KEY_DIFF, KEY_BY, KEY_SUM, KEY_QUANTILES, KEY_HISTOGRAM };

struct request {
	struct tw_selection selection;
	struct tw_report_order order;
	bool is_csv, is_json, is_html, follows;
	bool has_callers, has_tree;
	tw_report_view *view; /* NULL: the report */
	bool has_ports, has_each_port;
	const char *port_glob;
	struct tw_diff diff;
	bool has_by;
	struct tw_grouping by;
};

static const struct tw_option options_table[] = {
	{TW_SETS(0, struct request, is_json), "json", NULL, "as JSON (docs/json.md)"},
	{TW_SETS(0, struct request, is_csv), "csv", NULL,
	 "as CSV: the table of functions, all its columns, times in seconds"},
	{TW_SETS(0, struct request, is_html), "html", NULL,
	 "as one page for a browser, without network: the flame graph, tables, histograms of durations, the slowest calls with what they "
	 "did, locks, ports (docs/flame.md)"},
	{TW_SETS(0, struct request, order.sort), "sort", "KEY",
	 "total (default, if returns were recorded), self, calls, name, min, median, p99, max, or another column"},
	{TW_SETS(0, struct request, order.columns), "columns", "LIST",
	 "these columns, such as total,self,p99: also share, returned, exceptions, cut, no_end, no_end_inside, lossy, in_losses, open, before, tracer_ns; after `record --sched` ran, preempted, off, unknown; after `record --locks` in_locks"},
	{TW_SETS(0, struct request, has_callers), "callers", NULL,
	 "the callers of each function, with times; or with numbers of\nevents, from the stacks of `record --stack`"},
	{TW_SETS(0, struct request, has_tree), "tree", NULL, "the tree of calls, likewise"},
	{KEY_LOCKS, "locks", NULL,
	 "show instead the mutexes, rwlocks and condition variables that threads waited for, for how long, and the threads that held "
	 "them meanwhile; for captures of `record --locks`"},
	{KEY_MEMORY, "memory", NULL,
	 "show instead memory by the callers that allocated it: at its peak, at the end, over time; for captures of `record --memory`"},
	TW_PAIR_OPTION,
	{KEY_PORTS, "ports", "[=each|GLOB]",
	 "show instead files, sockets, pipes and timers, and their use; =each: a row for each port; a glob: only ports whose description it matches, '*/var/*'; for captures of `record --ports`"},
	{KEY_BY, "by", "KEY",
	 "show instead calls by arg:N or arg:NAME, result, errno, caller, line (of the caller), thread, process, program, module, name (of the process that a run-time declares), server (the process that the first argument names), initial-call, behaviour, application or label (of an Erlang node's process that calls); with -t of these functions"},
	{KEY_HISTOGRAM, "histogram", "KEY[/STEP]",
	 "show instead a histogram of arg:N, arg:NAME, result or duration for each function, by powers of two, or in equal steps: arg:size/512, duration/1ms"},
	{KEY_SUM, "sum", "NUMBER",
	 "show instead calls, sum, mean and percentiles of arg:N, arg:NAME, result or duration for each function"},
	{KEY_QUANTILES, "quantiles", "NUMBER", "the same"},
	{KEY_DIFF, "diff", "OLD.tw",
	 "show instead what differs from this capture: own time, calls and percentiles by function, that which explains most first, and "
	 "how much of it may be chance. May be repeated, and several captures may follow: then means are compared (docs/differences.md)"},
	{TW_SETS(0, struct request, follows), "follow", NULL,
	 "of a capture that is being recorded: every two seconds, until the recording ends; with --from -10s of the last ten seconds"},
	{'n', "top", "N", "the first N functions (20); 0 is all"},
	TW_WHEN_OPTIONS,
	TW_HIDE_WAITS_OPTION,
	TW_SELECTION_OPTIONS,
	{0}};

static const struct tw_command command = {
	.name = "report",
	.arguments = "[OPTION]... [NAME.tw | FILE | -]...",
	.summary = "Shows calls by function, caller and thread; times, if returns were recorded;\n"
		   "messages and schedules; rates; losses.\n" TW_STREAM_HELP "\n\n"
		   "total: time in the function and everything it called; recursive calls count\n"
		   "once, at the outermost. self: without calls that are in the capture, and\n"
		   "without time in which the process was scheduled out. min to max: of single\n"
		   "calls, exact to 1 %.",
	.options = options_table,
	.has_colour = true,
	.has_pager = true,
	.examples = "  tracewheel report sqlite3.tw\n"
		    "  tracewheel report --top 0 --sort name sqlite3.tw\n"
		    "  tracewheel report --sort self --callers sqlite3.tw\n"
		    "  tracewheel report --html sqlite3.tw > sqlite3.html\n"
		    "  tracewheel report -t 'libc:mem*' --from 0.5 sqlite3.tw\n"
		    "  tracewheel record -q -o - -- ls | tracewheel report -\n"
		    "  tracewheel record --locks -- ./server; tracewheel report --locks server.tw\n"
		    "  tracewheel record --memory -- ./server; tracewheel report --memory server.tw\n"
		    "  tracewheel report --diff before.tw after.tw\n"
		    "  tracewheel record --args --returns -t libc:read -- ./server\n"
		    "  tracewheel report --by result -t libc:read server.tw\n"
		    "  tracewheel report --histogram arg:3 -t libc:read server.tw\n"
		    "  tracewheel report --follow --from -10s server.tw\n"
		    "  tracewheel report --json sqlite3.tw | jq '.by_function[0]'\n",
};

/* All sums of a report. */
struct sums {
	struct tw_totals totals;
	struct tw_calltree tree;
	struct tw_activity activity;
	struct tw_lengths lengths;
	struct tw_native_ports ports;
	bool wants_tree,
		wants_ports; /* are they still to be made?  Ports: also of pages, unless they select functions */
	bool has_times;	     /* the tree is made of calls and returns, or of selected calls */
	bool has_stacks;     /* the tree is made of call stacks: nothing returned */
	bool has_activity;   /* there are messages or schedules */
	uint64_t start_ns;
	double seconds;
};

static struct tw_out out;

static void put_sums(const struct tw_screen *screen, const struct sums *sums, const struct tw_capture *capture,
		     const struct tw_capture_info *info, bool is_part)
{
	const struct tw_totals *totals = &sums->totals;
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], c[TW_FIGURE_BYTES], d[TW_FIGURE_BYTES], e[TW_FIGURE_BYTES];
	if (totals->events || !totals->counted.count)
		tw_out_format(screen->out, "%s in %s (%s/s), %s, %s on disk, %.2f B an event\n",
			      tw_figure_of(a, totals->events, "event", "events"), tw_figure_seconds(b, screen->seconds),
			      tw_figure_short(c, screen->seconds > 0 ? (double)totals->events / screen->seconds : 0),
			      tw_figure_of(e, totals->threads.count, "thread", "threads"),
			      tw_figure_bytes(d, info->file_bytes),
			      info->events ? (double)info->file_bytes / (double)info->events : 0);
	struct tw_capture_account account;
	tw_capture_account(capture, &account);
	char counted[TW_COUNTED_TEXT_BYTES];
	if (*tw_counted_clause(capture, counted))
		tw_out_format(screen->out, "%s%s.\n", counted,
			      totals->counted.count ? ": all of them, in a table of their own" : "");
	tw_report_losses(screen, totals, capture, &account, info, is_part);
	tw_report_account(screen, capture, info);
	tw_report_ending(screen, capture);
}

static bool is_part(const struct tw_selection *selection)
{
	return selection->from || selection->to || tw_selection_is_of_events(selection);
}

/* Prints the lines above the tables; `empty`: only those. */
static void put_sentences(const struct tw_screen *screen, const struct request *request,
			  const struct tw_capture *capture, const struct tw_capture_info *info, const struct sums *sums,
			  const char *empty, bool has_tree)
{
	static struct tw_out text;
	struct tw_screen plain = *screen;
	tw_out_init(&text, -1);
	plain.out = &text;
	if (empty) {
		tw_out_format(&text, "%c%s.\n", toupper((unsigned char)*empty), empty + 1);
	} else {
		tw_report_stopped(&plain, capture);
		put_sums(&plain, sums, capture, info, is_part(&request->selection));
		tw_report_notes(&plain, capture);
		if (has_tree)
			tw_report_honestly(&plain, &sums->tree);
		else if (request->has_callers || request->has_tree)
			tw_out_text(
				&text,
				"No returns were recorded: there are no times, and nothing is known of calls within calls.\n");
		if (sums->has_times)
			tw_report_setups(&plain, capture);
	}
	tw_screen_wrapped(screen, text.data, text.used);
}

/* empty: why the selection is empty; NULL: it is not. */
static void put_screen(const struct request *request, const struct tw_capture *capture,
		       const struct tw_capture_info *info, const struct sums *sums, const char *empty)
{
	const struct tw_totals *totals = &sums->totals;
	struct tw_screen screen = tw_screen_make(&out, sums->seconds);
	char figure[TW_FIGURE_BYTES];
	char title[64];
	bool has_tree = sums->has_times || (sums->has_stacks && (request->has_callers || request->has_tree));
	bool is_empty = !totals->events && empty && !sums->tree.stacks.before && !totals->counted.count;
	tw_report_head(&screen, capture, info);
	put_sentences(&screen, request, capture, info, sums, is_empty ? empty : NULL, has_tree);
	if (is_empty)
		return;
	if (request->has_ports) {
		tw_native_ports_screen(&screen, &sums->ports, request->order.top);
		return;
	}
	snprintf(title, sizeof title, screen.columns < 60 ? "by function" : "by function (%s)",
		 tw_figure_of(figure, totals->functions.count, "was called", "were called"));
	if (has_tree && request->has_tree)
		tw_report_tree(&screen, &sums->tree, request->order.top);
	else if (sums->has_times)
		tw_report_functions(&screen, &sums->tree, &request->order);
	else if (totals->functions.count)
		tw_report_table(&screen, &totals->functions, title, totals->calls, request->order.top);
	tw_report_counted(&screen, totals, request->order.top);
	if (has_tree && request->has_callers)
		tw_report_callers(&screen, &sums->tree, &request->order);
	/* With times, a table of unknown callers is of no use. */
	bool has_callers = totals->callers.count > 1 ||
			   (totals->callers.count && (!sums->has_times || *totals->callers.rows->name != '('));
	if (has_callers && !request->has_tree)
		tw_report_table(&screen, &totals->callers, "from object", totals->calls, request->order.top);
	if (!request->has_tree && totals->threads.count)
		tw_report_table(&screen, &totals->threads, "by thread", totals->calls,
				request->order.top ? TOP_THREADS : 0);
	if (sums->has_activity) {
		tw_report_activity(&screen, &sums->activity, sums->start_ns, request->order.top);
		tw_report_lengths(&screen, &sums->lengths, sums->start_ns,
				  request->order.top > 10 ? 10 : request->order.top);
	}
}

static void put_json(const struct request *request, const struct tw_capture *capture,
		     const struct tw_capture_info *info, const struct sums *sums)
{
	const struct tw_totals *totals = &sums->totals;
	double seconds = sums->seconds;
	struct tw_json json = {.out = &out, .is_spread = true};
	tw_json_open(&json, NULL, '{');
	tw_json_u64(&json, "events", totals->events);
	tw_json_u64(&json, "calls", totals->calls);
	tw_missing_lost_json(&json, totals->lost, totals->overwritten);
	tw_json_double(&json, "seconds", seconds);
	tw_json_double(&json, "events_per_second", seconds > 0 ? (double)totals->events / seconds : 0);
	tw_json_u64(&json, "bytes", info->file_bytes);
	tw_json_bool(&json, "complete", info->is_complete);
	tw_json_bool(&json, "live", info->is_live);
	tw_json_ending(&json, capture);
	struct tw_capture_account account;
	tw_capture_account(capture, &account);
	tw_missing_json(&json, &account);
	tw_notes_json(&json, capture);
	tw_json_u64(&json, "functions", totals->functions.count);
	if (request->has_ports)
		tw_native_ports_json(&json, &sums->ports, request->order.top);
	else if (sums->has_times || sums->has_stacks)
		tw_report_times_json(&json, &sums->tree, &request->order);
	else
		tw_report_table_json(&json, "by_function", &totals->functions, totals->calls, request->order.top);
	tw_report_counted_json(&json, capture, totals, request->order.top);
	tw_report_table_json(&json, "by_caller", &totals->callers, totals->calls, request->order.top);
	tw_report_table_json(&json, "by_thread", &totals->threads, totals->calls, 0);
	if (sums->has_activity) {
		tw_report_activity_json(&json, &sums->activity, sums->start_ns, request->order.top);
		tw_report_lengths_json(&json, &sums->lengths, sums->start_ns, request->order.top);
	}
	tw_json_close(&json, '}');
}

/* The arguments of put_json(), for a page. */
struct html {
	const struct request *request;
	struct tw_capture *capture;
	const struct tw_capture_info *info;
	const struct sums *sums;
};

static void put_report(void *context)
{
	const struct html *html = context;
	put_json(html->request, html->capture, html->info, html->sums);
}

/* Returns 0 or an error. */
static int put_html(struct html *html, const struct tw_capture_filter *filter, const char *path)
{
	const struct tw_report_html page = {.selection = &html->request->selection,
					    .capture = html->capture,
					    .filter = filter,
					    .tree = &html->sums->tree,
					    .ports = html->sums->ports.is_recorded ? &html->sums->ports : NULL,
					    .path = path,
					    .put_report = put_report,
					    .context = html};
	return tw_report_html(&out, &page);
}

static bool take_by(struct request *request, int key, const char *value)
{
	request->by.is_summary = key == KEY_SUM || key == KEY_QUANTILES;
	return request->has_by = tw_report_by_take(&request->by, &command, key != KEY_BY, value);
}

static bool take_option(void *context, int key, const char *value)
{
	struct request *request = context;
	if (key == KEY_LOCKS || key == KEY_MEMORY) {
		request->view = key == KEY_LOCKS ? tw_report_locks_view : tw_report_memory_view;
	} else if (key == KEY_PORTS) {
		request->has_ports = true;
		request->has_each_port = value && !strcmp(value, "each");
		request->port_glob = request->has_each_port ? NULL : value;
	} else if (key == KEY_BY || key == KEY_HISTOGRAM || key == KEY_SUM || key == KEY_QUANTILES) {
		return take_by(request, key, value);
	} else if (key == KEY_DIFF) {
		return tw_sides_take(&request->diff.sides, &command, value);
	} else if (key == 'n') {
		if (!tw_parse_count(value, &request->order.top))
			return tw_refuse(&command, "--top is a number, not '%s'.", value);
	} else {
		return tw_selection_take(&request->selection, &command, key, value);
	}
	return true;
}

static bool on_event(void *context, const struct tw_capture_event *event, const struct tw_step *step)
{
	struct sums *sums = context;
	return tw_activity_event(&sums->activity, event, step) && tw_lengths_event(&sums->lengths, event);
}

/* Messages and schedules. Returns 0 or an error. */
static int begin_activity(struct sums *sums, struct tw_capture *capture, const struct tw_capture_filter *filter)
{
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	if (!tw_activity_init(&sums->activity, capture) ||
	    !tw_lengths_init(&sums->lengths, capture, info.zero_ns, filter->to_ns ? filter->to_ns : info.end_ns))
		return TW_ENOMEM;
	/* The contents of mailboxes at the beginning of a part are not known. */
	sums->lengths.mailboxes.has_takes &= !filter->from_ns;
	sums->tree.on_event = on_event;
	sums->tree.context = sums;
	return 0;
}

/* The tree as well where one reading makes both; else a fast scan says whether events are to be read. Returns 0 or an error. */
static int make_sums(struct sums *sums, struct request *request, struct tw_capture *capture,
		     const struct tw_capture_filter *filter)
{
	uint64_t returns = 0;
	int made = 0;
	sums->tree.when = tw_selection_when(&request->selection);
	sums->tree.hides_waits = request->selection.hides_waits;
	sums->tree.follows_locks = !request->selection.hides_waits;
	sums->wants_ports =
		request->has_ports || (request->is_html && !tw_selection_is_of_events(&request->selection) &&
				       !tw_selection_has_conditions(&request->selection));
	if (!request->is_html && !sums->wants_ports)
		made = tw_report_at_once(&sums->totals, &sums->tree, capture, filter, &returns);
	int error = made ? (made < 0 ? made : 0)
			 : tw_report_totals(&sums->totals, &sums->tree.places, capture, filter, &returns);
	if (!error && !returns && tw_when_is_late(sums->tree.when))
		return TW_ENOTSUP;
	sums->has_times = returns != 0 || sums->tree.when;
	sums->has_activity = tw_totals_have_activity(&sums->totals);
	/* Only for views that show callers: resolving their names takes time. */
	bool wants_stacks =
		request->is_html || request->is_json || request->is_csv || request->has_callers || request->has_tree;
	sums->has_stacks = !returns && wants_stacks && sums->totals.kinds[TW_CAPTURE_STACK] != 0;
	sums->wants_tree = !made && (sums->has_times || sums->has_activity || sums->has_stacks || request->is_html);
	return error || !sums->has_activity ? error : begin_activity(sums, capture, filter);
}

/* Everything that needs events in their order is made from one reading of them. */
static int fold_events(struct sums *sums, const struct request *request, struct tw_capture *capture,
		       const struct tw_capture_filter *filter)
{
	struct tw_fold folds[3];
	size_t count = 0;
	int error = sums->wants_tree ? tw_calltree_folds(&sums->tree, capture, filter, folds, &count) : 0;
	if (!error && sums->wants_ports)
		error = tw_native_ports_begin(&sums->ports, capture, filter, request->has_each_port, &folds[count++]);
	if (!error && count)
		error = tw_pass(capture, folds, count, "reading");
	if (!error && sums->wants_tree)
		tw_calltree_end(&sums->tree, filter);
	if (!error && sums->wants_ports)
		error = tw_native_ports_end(&sums->ports, request->port_glob);
	tw_lengths_finish(&sums->lengths);
	return sums->tree.has_no_memory ? TW_ENOMEM : error;
}

static void free_sums(struct sums *sums)
{
	tw_totals_free(&sums->totals);
	tw_calltree_free(&sums->tree);
	tw_activity_free(&sums->activity);
	tw_lengths_free(&sums->lengths);
	tw_native_ports_free(&sums->ports);
}

/* Makes the report of an open capture; returns the exit code. */
static int report(struct request *request, struct tw_capture *capture, const char *path)
{
	struct tw_capture_filter filter;
	struct tw_capture_info info;
	struct sums sums = {0};
	struct tw_parts parts = {0};
	char empty[TW_SELECTION_SENTENCE_BYTES];
	if (!tw_selection_filter(&request->selection, capture, &command, &filter))
		return TW_EXIT_USAGE;
	int error = make_sums(&sums, request, capture, &filter);
	if (!error && request->is_html)
		tw_flame_want_parts(&sums.tree, &parts, capture, &filter);
	if (!error)
		error = fold_events(&sums, request, capture, &filter);
	if (error) {
		free_sums(&sums);
		tw_parts_free(&parts);
		return tw_selection_fail(&request->selection, path, error);
	}
	tw_capture_info(capture, &info);
	bool is_by_name = request->order.sort && strcmp(request->order.sort, "name") == 0;
	tw_totals_sort(&sums.totals.functions, is_by_name);
	tw_totals_sort(&sums.totals.callers, is_by_name);
	tw_totals_sort(&sums.totals.threads, false);
	uint64_t from = filter.from_ns > info.start_ns ? filter.from_ns : info.start_ns;
	uint64_t to = filter.to_ns && filter.to_ns < info.end_ns ? filter.to_ns : info.end_ns;
	sums.start_ns = info.zero_ns;
	sums.seconds = to > from ? (double)(to - from) / 1e9 : 0;
	bool has_reason = tw_selection_explain(&request->selection, capture, &filter, empty);
	tw_out_init(&out, STDOUT_FILENO);
	if (request->is_html)
		error = put_html(&(struct html){request, capture, &info, &sums}, &filter, path);
	else if (request->is_json)
		put_json(request, capture, &info, &sums);
	else if (request->is_csv && (sums.has_times || sums.has_stacks))
		tw_report_functions_csv(&out, &sums.tree, &request->order);
	else if (request->is_csv)
		tw_report_table_csv(&out, &sums.totals.functions, sums.totals.calls, request->order.top);
	else
		put_screen(request, capture, &info, &sums, has_reason ? empty : NULL);
	if (error)
		tw_selection_fail(&request->selection, path, error);
	if (request->is_csv)
		tw_missing_say(capture);
	if ((request->is_json || request->is_csv || request->is_html) && !sums.totals.events &&
	    !sums.tree.stacks.before && has_reason)
		tw_say("%s.", empty);
	free_sums(&sums);
	tw_parts_free(&parts);
	tw_lines_forget();
	tw_lock_names_forget();
	return tw_names_end(capture, path, error ? TW_EXIT_FAILURE : tw_out_finish(&out));
}

/* Which of the views, and do its options go together? False: they do not, which has been reported. */
static bool check_request(const struct request *request)
{
	bool is_other = request->has_ports || request->view || request->has_tree || request->has_callers;
	const char *problem = NULL;
	if (request->is_html &&
	    (request->is_csv || request->is_json || is_other || request->has_by || request->diff.sides.old_count))
		problem =
			"--html is the whole report: it goes without --json, --csv, --tree, --callers, --ports, --locks, --memory, --by, --histogram and --diff.";
	else if (request->is_csv && (request->is_json || is_other))
		problem =
			"--csv is the table of functions: it goes without --json, --tree, --callers, --ports, --locks and --memory.";
	else if ((request->diff.sides.old_count || request->has_by) &&
		 (is_other || (request->diff.sides.old_count && request->has_by)))
		problem =
			"--diff, --by and --histogram are views of their own: one of them, without --tree, --callers, --ports, --locks and --memory.";
	else if (request->selection.hides_waits &&
		 (request->diff.sides.old_count || request->has_by || request->has_ports || request->view))
		problem =
			"--hide-waits is about times of calls: it goes without --diff, --by, --histogram, --ports, --locks and --memory.";
	else if (request->follows && (request->is_html || request->diff.sides.old_count))
		problem = "--follow is for screens, JSON and CSV: it goes without --html and --diff.";
	else if (request->selection.pairs.patterns.wanted_count && request->view != tw_report_memory_view)
		problem = "--pair goes with --memory.";
	else if ((request->has_ports || request->view) && tw_selection_has_conditions(&request->selection))
		problem = "--ports, --locks and --memory need all calls: conditions are for other views.";
	else if ((request->has_ports || request->view == tw_report_memory_view) &&
		 tw_selection_is_of_events(&request->selection))
		problem =
			"--ports and --memory follow all calls of whole processes: only --from and --to select a part of them.";
	if (problem)
		tw_usage(&command, "%s", problem);
	return !problem && tw_report_check_order(&request->order,
						 request->diff.sides.old_count		  ? &tw_difference_columns
						 : request->view == tw_report_memory_view ? &tw_memory_columns
											  : &tw_report_columns,
						 &command);
}

static int report_by(struct request *request, struct tw_capture *capture, const char *path)
{
	char format = request->is_json ? 'j' : request->is_csv ? 'c' : 't';
	return tw_report_by(&request->selection, &request->by, &request->order, &command, format, capture, path);
}

static int report_diff(struct request *request, const struct tw_options *options)
{
	request->diff.sides.command = &command;
	request->diff.sides.selection = &request->selection;
	request->diff.order = &request->order;
	request->diff.format = request->is_json ? TW_DIFF_JSON : request->is_csv ? TW_DIFF_CSV : TW_DIFF_SCREEN;
	return tw_diff_run(&request->diff, options->argv + options->index);
}

/* Is it a capture of nothing but calls that the program has summed up, and no other view asked for? */
static bool is_summed_up(const struct request *request, const struct tw_capture *capture)
{
	struct tw_grouping by;
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	return !request->has_by && !request->has_ports && !request->view && !request->has_tree &&
	       !request->has_callers && !request->is_json && !request->is_csv && !request->is_html && !info.events &&
	       tw_grouping_of_capture(capture, &by);
}

/* Shows the capture as it is now. Returns the exit code. */
static int show(void *context, const char *path)
{
	struct request *request = context;
	struct tw_capture *capture = tw_names_open(path);
	if (!capture)
		return TW_EXIT_FAILURE;
	if (is_summed_up(request, capture))
		request->has_by = tw_grouping_of_capture(capture, &request->by);
	int code = request->has_by ? report_by(request, capture, path)
		   : request->view ? request->view(&request->selection, &request->order, &command, request->is_json,
						   capture, path)
				   : report(request, capture, path);
	tw_capture_close(capture);
	return code;
}

int tw_tool_report(int argc, char **argv)
{
	struct tw_options options = {.command = &command, .argc = argc, .argv = argv};
	struct request request = {.order = {.top = TOP_DEFAULT}};
	const char *path = NULL;
	int code;
	bool is_right = tw_options_read(&options, take_option, &request, &code);
	if (is_right && !check_request(&request)) {
		code = TW_EXIT_USAGE;
		is_right = false;
	}
	if (is_right && request.diff.sides.old_count && options.index < argc)
		code = report_diff(&request, &options);
	else if (is_right && request.diff.sides.old_count)
		code = tw_usage(&command, "which capture is compared with '%s'? Its name follows.",
				request.diff.sides.old[0]);
	else if (is_right)
		path = tw_options_capture(&options);
	if ((path && !request.follows) || (is_right && request.diff.sides.old_count))
		tw_pager_start();
	if (path)
		code = request.follows ? tw_report_follow(show, &request, path) : show(&request, path);
	tw_selection_free(&request.selection);
	return code;
}
