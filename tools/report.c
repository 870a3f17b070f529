/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.c - `tracewheel report`: a screen that says what a program did.
 *
 * What it was and how it went, first; then three tables with shares; losses where everybody sees them.
 */
#include "tools/names.h"
#include "tools/tally.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TOP_DEFAULT 20
#define TOP_THREADS 10
/* Columns before the bar: count, share, and the blanks between. */
#define HEAD_COLUMNS 25

enum { KEY_JSON = 256, KEY_SORT };

static const struct tw_option options_table[] = {
	{KEY_JSON, "json", NULL, "as JSON (docs/json.md)"},
	{KEY_SORT, "sort", "calls|name", "most calls first (default), or by name"},
	{'n', "top", "N", "so many functions (20); 0 is all"},
	TW_SELECTION_OPTIONS,
	{0}};

static const struct tw_command command = {
	.name = "report",
	.arguments = "[OPTION]... NAME.tw",
	.summary = "Calls by function, caller and thread; rates; losses.",
	.options = options_table,
	.examples = "  tracewheel report sqlite3.tw\n"
		    "  tracewheel report --top 0 --sort name sqlite3.tw\n"
		    "  tracewheel report -t 'libc:mem*' --from 0.5 sqlite3.tw\n"
		    "  tracewheel report --json sqlite3.tw | jq '.by_function[0]'\n",
};

struct request {
	struct tw_selection selection;
	uint64_t top;
	bool is_by_name;
	bool is_json;
};

struct screen {
	struct tw_out *out;
	int columns;
	bool is_coloured;
	bool is_utf8;
	double seconds;
};

static struct tw_out out;

static const char *bold(const struct screen *screen)
{
	return screen->is_coloured ? "\033[1m" : "";
}

static const char *red(const struct screen *screen)
{
	return screen->is_coloured ? "\033[1;31m" : "";
}

static const char *plain(const struct screen *screen)
{
	return screen->is_coloured ? "\033[0m" : "";
}

static bool is_utf8_locale(void)
{
	const char *names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
	for (size_t i = 0; i < 3; i++) {
		const char *value = getenv(names[i]);
		if (value && *value)
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

/* Eighths of a column where the terminal can show them. */
static void put_bar(const struct screen *screen, double share, int width)
{
	static const char *const eighths[] = {"",       "\u258f", "\u258e", "\u258d",
					      "\u258c", "\u258b", "\u258a", "\u2589"};
	int units = (int)(share * width * 8 + 0.5), columns = 0;
	if (screen->is_coloured)
		tw_out_text(screen->out, "\033[36m");
	for (; units >= 8; units -= 8, columns++)
		tw_out_text(screen->out, screen->is_utf8 ? "\u2588" : "#");
	if (units && screen->is_utf8) {
		tw_out_text(screen->out, eighths[units]);
		columns++;
	} else if (columns == 0 && share > 0 && !screen->is_utf8) {
		tw_out_text(screen->out, ".");
		columns++;
	}
	tw_out_format(screen->out, "%s%*s", plain(screen), width - columns, "");
}

static void put_head(const struct screen *screen, const struct tw_capture *capture,
		     const struct tw_capture_info *info)
{
	const struct tw_capture_image *images[100], *image = NULL;
	size_t count = tw_names_images(capture, images, sizeof images / sizeof *images);
	if (count)
		image = images[0];
	int left = screen->columns - 1;
	tw_out_text(screen->out, bold(screen));
	for (size_t i = 0; image && i + 1 < image->command_bytes && left > 0; i++, left--)
		tw_out_format(screen->out, "%c",
			      (unsigned char)image->command[i] < ' ' ? ' ' : image->command[i]);
	if (!image)
		tw_out_text(screen->out, "(no process was recorded)");
	tw_out_format(screen->out, "%s\n", plain(screen));
	if (info->images > 1)
		tw_out_format(screen->out, "and %u more processes or programs started by it\n",
			      info->images - 1);
}

static void put_losses(const struct screen *screen, const struct tw_tally *tally,
		       const struct tw_capture_info *info)
{
	char figure[TW_FIGURE_BYTES];
	uint64_t lost = 0;
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
		lost += tally->lost[cause];
	if (!lost) {
		/* What the end of a capture would tell is not known without its end. */
		tw_out_text(screen->out, info->is_complete ? "Nothing was lost.\n"
					 : info->is_live   ? "Nothing was lost so far.\n"
							   : "It tells of no losses, but parts of it are missing.\n");
		return;
	}
	tw_out_format(screen->out, "%sLOST %s events, %.2f %% of all:", red(screen),
		      tw_figure_count(figure, lost), 100.0 * (double)lost / (double)(lost + tally->events));
	const char *between = " ";
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++) {
		if (!tally->lost[cause])
			continue;
		tw_out_format(screen->out, "%s%s %s", between, tw_lost_cause_name(cause),
			      tw_figure_count(figure, tally->lost[cause]));
		between = ", ";
	}
	tw_out_format(screen->out, "%s\n", plain(screen));
}

static void put_sums(const struct screen *screen, const struct tw_tally *tally,
		     const struct tw_capture_info *info)
{
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], c[TW_FIGURE_BYTES], d[TW_FIGURE_BYTES];
	tw_out_format(screen->out, "%s events in %s (%s/s), %zu thread%s, %s on disk, %.2f B an event\n",
		      tw_figure_count(a, tally->events), tw_figure_seconds(b, screen->seconds),
		      tw_figure_short(c, screen->seconds > 0 ? (double)tally->events / screen->seconds : 0),
		      tally->threads.count, tally->threads.count == 1 ? "" : "s",
		      tw_figure_bytes(d, info->file_bytes),
		      info->events ? (double)info->file_bytes / (double)info->events : 0);
	put_losses(screen, tally, info);
	if (!info->is_complete)
		tw_out_format(screen->out, "%sThis capture is not complete: %s.%s\n", red(screen),
			      info->is_live   ? "it is being recorded, or its recorder died"
			      : info->damages ? "parts of it are damaged; what can be read is shown"
					      : "it was cut off; what can be read is shown",
			      plain(screen));
}

/* Long names lose their middle: both ends say something. */
static void put_name(const struct screen *screen, const char *name, int width)
{
	int bytes = (int)strlen(name);
	if (bytes <= width)
		tw_out_format(screen->out, "%s\n", name);
	else
		tw_out_format(screen->out, "%.*s..%s\n", width / 2 - 1, name,
			      name + bytes - (width - width / 2 - 1));
}

static void put_table(const struct screen *screen, const struct tw_tally_table *table, const char *title,
		      uint64_t calls, size_t top)
{
	char figure[TW_FIGURE_BYTES];
	int bar = screen->columns >= 110 ? 24 : 10, name = screen->columns - HEAD_COLUMNS - bar - 1;
	size_t shown = top && top < table->count ? top : table->count;
	double largest = 0;
	for (size_t i = 0; i < table->count; i++)
		largest = table->rows[i].calls > largest ? (double)table->rows[i].calls : largest;
	tw_out_format(screen->out, "\n%s%14s  %7s  %s%s\n", bold(screen), "calls", "share", title,
		      plain(screen));
	for (size_t i = 0; i < shown; i++) {
		const struct tw_tally_row *row = &table->rows[i];
		double share = calls ? (double)row->calls / (double)calls : 0;
		tw_out_format(screen->out, "%14s  %5.1f %%  ", tw_figure_count(figure, row->calls),
			      share * 100);
		put_bar(screen, largest > 0 ? (double)row->calls / largest : 0, bar);
		tw_out_text(screen->out, " ");
		put_name(screen, row->name, name);
		uint64_t lost = 0;
		for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
			lost += row->lost[cause];
		if (lost)
			tw_out_format(screen->out, "%s%14s  lost on this thread%s\n", red(screen),
				      tw_figure_count(figure, lost), plain(screen));
	}
	if (shown < table->count) {
		uint64_t rest = 0;
		for (size_t i = shown; i < table->count; i++)
			rest += table->rows[i].calls;
		tw_out_format(screen->out, "%14s  %5.1f %%  in %zu more\n", tw_figure_count(figure, rest),
			      calls ? 100.0 * (double)rest / (double)calls : 0, table->count - shown);
	}
}

static void put_screen(const struct request *request, const struct tw_capture *capture,
		       const struct tw_capture_info *info, const struct tw_tally *tally, double seconds)
{
	struct screen screen = {.out = &out,
				.columns = tw_terminal_columns(STDOUT_FILENO),
				.is_utf8 = is_utf8_locale(),
				.is_coloured = tw_colour_is_wanted(STDOUT_FILENO),
				.seconds = seconds};
	char title[64];
	put_head(&screen, capture, info);
	put_sums(&screen, tally, info);
	snprintf(title, sizeof title, "by function (%zu were called)", tally->functions.count);
	put_table(&screen, &tally->functions, title, tally->calls, request->top);
	put_table(&screen, &tally->callers, "by caller", tally->calls, request->top);
	put_table(&screen, &tally->threads, "by thread", tally->calls, request->top ? TOP_THREADS : 0);
}

static void put_json_table(struct tw_json *json, const char *name, const struct tw_tally_table *table,
			   uint64_t calls, size_t top)
{
	size_t shown = top && top < table->count ? top : table->count;
	tw_json_open(json, name, '[');
	for (size_t i = 0; i < shown; i++) {
		const struct tw_tally_row *row = &table->rows[i];
		tw_json_open(json, NULL, '{');
		tw_json_text(json, "name", row->name, strlen(row->name));
		tw_json_u64(json, "calls", row->calls);
		tw_json_double(json, "share", calls ? (double)row->calls / (double)calls : 0);
		if (strcmp(name, "by_thread") == 0) {
			tw_json_u64(json, "events", row->events);
			tw_json_double(json, "seconds", row->seconds);
			tw_json_open(json, "lost", '{');
			for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
				tw_json_u64(json, tw_lost_cause_name(cause), row->lost[cause]);
			tw_json_close(json, '}');
		}
		tw_json_close(json, '}');
	}
	tw_json_close(json, ']');
}

static void put_json(const struct request *request, const struct tw_capture_info *info,
		     const struct tw_tally *tally, double seconds)
{
	struct tw_json json = {.out = &out, .is_spread = true};
	tw_json_open(&json, NULL, '{');
	tw_json_u64(&json, "events", tally->events);
	tw_json_u64(&json, "calls", tally->calls);
	tw_json_open(&json, "lost", '{');
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
		tw_json_u64(&json, tw_lost_cause_name(cause), tally->lost[cause]);
	tw_json_close(&json, '}');
	tw_json_double(&json, "seconds", seconds);
	tw_json_double(&json, "events_per_second", seconds > 0 ? (double)tally->events / seconds : 0);
	tw_json_u64(&json, "bytes", info->file_bytes);
	tw_json_bool(&json, "complete", info->is_complete);
	tw_json_u64(&json, "functions", tally->functions.count);
	put_json_table(&json, "by_function", &tally->functions, tally->calls, request->top);
	put_json_table(&json, "by_caller", &tally->callers, tally->calls, request->top);
	put_json_table(&json, "by_thread", &tally->threads, tally->calls, 0);
	tw_json_close(&json, '}');
}

static bool take_option(struct request *request, int key, const char *value)
{
	if (key == KEY_JSON) {
		request->is_json = true;
	} else if (key == KEY_SORT) {
		request->is_by_name = strcmp(value, "name") == 0;
		if (!request->is_by_name && strcmp(value, "calls") != 0) {
			tw_usage(&command, "--sort is calls or name, not '%s'.", value);
			return false;
		}
	} else if (key == 'n') {
		if (!tw_parse_count(value, &request->top)) {
			tw_usage(&command, "--top is a number, not '%s'.", value);
			return false;
		}
	} else {
		return tw_selection_take(&request->selection, &command, key, value);
	}
	return true;
}

/* The capture is open; answers the exit code. */
static int report(struct request *request, struct tw_capture *capture, const char *path)
{
	struct tw_capture_filter filter;
	struct tw_capture_info info;
	struct tw_tally tally;
	if (!tw_selection_filter(&request->selection, capture, &command, &filter))
		return TW_EXIT_USAGE;
	int error = tw_tally_make(&tally, capture, &request->selection, &filter);
	if (error) {
		tw_tally_free(&tally);
		return tw_fail("reading '%s' failed: %s", path, tw_strerror(error));
	}
	tw_capture_info(capture, &info);
	tw_tally_sort(&tally.functions, request->is_by_name);
	tw_tally_sort(&tally.callers, request->is_by_name);
	tw_tally_sort(&tally.threads, false);
	uint64_t from = filter.from_ns > info.start_ns ? filter.from_ns : info.start_ns;
	uint64_t to = filter.to_ns && filter.to_ns < info.end_ns ? filter.to_ns : info.end_ns;
	double seconds = to > from ? (double)(to - from) / 1e9 : 0;
	tw_out_init(&out, STDOUT_FILENO);
	if (request->is_json)
		put_json(request, &info, &tally, seconds);
	else
		put_screen(request, capture, &info, &tally, seconds);
	tw_tally_free(&tally);
	int code = tw_out_finish(&out);
	tw_names_say_damage(capture, path);
	return code;
}

int tw_tool_report(int argc, char **argv)
{
	struct tw_options options = {.command = &command, .argc = argc, .argv = argv};
	struct request request = {.top = TOP_DEFAULT};
	int key, code = TW_EXIT_USAGE;
	while ((key = tw_options_next(&options)) > 0) {
		if (!take_option(&request, key, options.value))
			goto free_selection;
	}
	if (key < 0) {
		code = tw_options_exit(key);
		goto free_selection;
	}
	const char *path = tw_options_capture(&options);
	if (!path)
		goto free_selection;
	struct tw_capture *capture = tw_names_open(path);
	code = TW_EXIT_FAILURE;
	if (capture) {
		code = report(&request, capture, path);
		tw_capture_close(capture);
	}
free_selection:
	tw_selection_free(&request.selection);
	return code;
}
