/* SPDX-License-Identifier: Apache-2.0 */
/* report_diff.c - two sides of captures, function by function: `report --diff`. */
#include "tools/report/report_diff.h"
#include "views/names/missing.h"
#include "views/names/names.h"

#include "tracewheel/error.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The columns that are shown if times are not known. */
static const char calls_only[] = "calls_change,old_calls,new_calls";

/* ---- sentences ---- */

static void put_captures(const struct tw_screen *screen, const struct tw_sides *sides)
{
	char events[TW_FIGURE_BYTES], seconds[TW_FIGURE_BYTES], lost[TW_FIGURE_BYTES], clause[TW_COST_CLAUSE_BYTES];
	for (unsigned side = 0; side < TW_SIDES; side++) {
		for (unsigned i = 0; i < sides->count; i++) {
			const struct tw_sides_capture *capture = &sides->captures[i];
			if (capture->side != side)
				continue;
			tw_out_format(screen->out, "%s%s%s  ", tw_screen_bold(screen), tw_side_names[side],
				      tw_screen_plain(screen));
			tw_out_name(screen->out, capture->path);
			tw_out_format(screen->out, ": %s in %s%s",
				      tw_figure_of(events, capture->events, "event", "events"),
				      tw_figure_seconds(seconds, capture->seconds), capture->lost ? ", " : ".\n");
			if (capture->lost)
				tw_out_format(screen->out,
					      "%sLOST %s%s: calls and times with losses in them have a ?.\n",
					      tw_screen_red(screen),
					      tw_figure_of(lost, capture->lost, "event", "events"),
					      tw_screen_plain(screen));
			if (!sides->differences.lacks_times && *tw_tracer_cost_clause(capture->cost_ns, clause))
				tw_out_format(screen->out, "The tracer's own cost is in its times: %s.\n", clause);
		}
	}
}

static void put_programs(const struct tw_screen *screen, const struct tw_differences *differences)
{
	const char *old = differences->program[TW_OLD], *new = differences->program[TW_NEW];
	if (!old || !new || !strcmp(old, new))
		return;
	tw_out_text(screen->out, "The program was ");
	tw_out_name(screen->out, old);
	tw_out_text(screen->out, ", and is ");
	tw_out_name(screen->out, new);
	tw_out_text(screen->out, ": functions of both are compared by name.\n");
}

void tw_diff_sentences(const struct tw_screen *screen, const struct tw_sides *sides)
{
	const struct tw_differences *differences = &sides->differences;
	put_captures(screen, sides);
	put_programs(screen, differences);
	tw_difference_put_whole(screen->out, differences);
	if (!differences->lacks_times && (differences->captures[TW_OLD] < 2 || differences->captures[TW_NEW] < 2))
		tw_out_text(
			screen->out,
			"\"chance\" is what calls within one run vary by; with several captures a side it is what runs vary by.\n");
}

/* ---- the table ---- */

/* With states of threads, on narrower screens than those that have space for all. */
#define STATES_FEW  "self_change,noise,ran_change,off_change,calls_change"
#define LOCKS_FEW   "self_change,ran_change,off_change,in_locks_change,calls_change"
#define STATES_SOME "self_change,noise,ran_change,preempted_change,off_change,old_self,new_self,calls_change"
#define LOCKS_SOME  "self_change,noise,ran_change,preempted_change,off_change,in_locks_change,old_self,calls_change"
enum { STATES_SOME_FROM = 100, STATES_ALL_FROM = 170 };

/* The columns that are shown. */
static void choose_columns(const struct tw_screen *screen, const struct tw_diff *diff, struct tw_table_shape *shape)
{
	const struct tw_differences *differences = &diff->sides.differences;
	const struct tw_table table = tw_difference_table(differences);
	const struct tw_report_order *order = diff->order;
	int columns = screen->cuts_names ? screen->columns : INT_MAX;
	bool is_narrow = !differences->lacks_states && columns < STATES_ALL_FROM && !order->sort;
	const char *chosen = order->columns		? order->columns
			     : differences->lacks_times ? calls_only
			     : is_narrow && tw_differences_have_locks(differences)
				     ? (columns < STATES_SOME_FROM ? LOCKS_FEW : LOCKS_SOME)
			     : is_narrow ? (columns < STATES_SOME_FROM ? STATES_FEW : STATES_SOME)
					 : NULL;
	if (chosen)
		tw_table_choose(&tw_difference_columns, chosen, shape);
	else
		tw_table_fit(&table, columns,
			     order->sort ? tw_table_column(&tw_difference_columns, order->sort, strlen(order->sort))
					 : NULL,
			     shape);
}

static void put_table(const struct tw_screen *screen, const struct tw_diff *diff)
{
	const struct tw_differences *differences = &diff->sides.differences;
	const struct tw_report_order *order = diff->order;
	size_t shown = order->top && order->top < differences->count ? order->top : differences->count;
	struct tw_table_shape shape;
	char figure[TW_FIGURE_BYTES];
	choose_columns(screen, diff, &shape);
	const char **names = malloc((shown + 1) * sizeof *names);
	for (size_t i = 0; names && i < shown; i++)
		names[i] = differences->rows[i].name;
	struct tw_screen_names shortened = tw_screen_names(screen, names, shown, screen->columns - shape.width - 3);
	tw_out_format(screen->out, "\n%s", tw_screen_bold(screen));
	tw_table_titles(screen->out, &shape);
	tw_out_format(screen->out, "  function (%s)%s\n", tw_figure_count(figure, differences->count),
		      tw_screen_plain(screen));
	for (size_t i = 0; i < shown; i++) {
		tw_table_cells(screen->out, &shape, &differences->rows[i]);
		tw_out_format(screen->out, "  %s\n", tw_screen_names_at(&shortened, i));
	}
	if (shown < differences->count) {
		tw_table_sums(screen->out, &shape, differences->rows + shown, differences->count - shown,
			      sizeof *differences->rows);
		tw_out_format(screen->out, "  in %s more\n", tw_figure_count(figure, differences->count - shown));
	}
	tw_screen_names_free(&shortened);
}

static void put_screen(struct tw_out *out, const struct tw_diff *diff)
{
	static struct tw_out text;
	struct tw_screen screen = tw_screen_make(out, 0), plain = screen;
	tw_out_init(&text, -1);
	plain.out = &text;
	tw_diff_sentences(&plain, &diff->sides);
	tw_screen_wrapped(&screen, text.data, text.used);
	put_table(&screen, diff);
}

static void put_side_json(struct tw_json *json, const struct tw_diff *diff, unsigned side)
{
	const struct tw_differences *differences = &diff->sides.differences;
	tw_json_open(json, tw_side_names[side], '{');
	if (differences->program[side])
		tw_json_string(json, "program", differences->program[side]);
	tw_json_u64(json, "calls", differences->calls[side]);
	if (!differences->lacks_times)
		tw_json_double(json, "self", differences->self[side].value / 1e9);
	tw_json_open(json, "captures", '[');
	for (unsigned i = 0; i < diff->sides.count; i++) {
		const struct tw_sides_capture *capture = &diff->sides.captures[i];
		if (capture->side != side)
			continue;
		tw_json_open(json, NULL, '{');
		tw_json_string(json, "path", capture->path);
		tw_json_u64(json, "events", capture->events);
		tw_json_u64(json, "lost", capture->lost);
		tw_json_double(json, "seconds", capture->seconds);
		tw_tracer_cost_json(json, capture->cost_ns);
		tw_json_close(json, '}');
	}
	tw_json_close(json, ']');
	tw_json_close(json, '}');
}

static void put_json(struct tw_out *out, const struct tw_diff *diff)
{
	const struct tw_differences *differences = &diff->sides.differences;
	struct tw_json json = {.out = out, .is_spread = true};
	tw_json_open(&json, NULL, '{');
	put_side_json(&json, diff, TW_OLD);
	put_side_json(&json, diff, TW_NEW);
	tw_difference_put_json(&json, differences, diff->order->top);
	tw_json_close(&json, '}');
}

static int show(struct tw_diff *diff)
{
	static struct tw_out out;
	tw_difference_sort(&diff->sides.differences, diff->order->sort);
	tw_out_init(&out, STDOUT_FILENO);
	if (diff->format == TW_DIFF_JSON)
		put_json(&out, diff);
	else if (diff->format == TW_DIFF_CSV)
		tw_difference_put_csv(&out, &diff->sides.differences, diff->order->top);
	else
		put_screen(&out, diff);
	int code = tw_out_finish(&out);
	return code ? code : diff->sides.code;
}

int tw_diff_run(struct tw_diff *diff, char **paths)
{
	int code = tw_sides_read(&diff->sides, paths);
	if (!code)
		code = show(diff);
	tw_sides_free(&diff->sides);
	return code;
}
