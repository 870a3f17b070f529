/* SPDX-License-Identifier: Apache-2.0 */
/* report_memory.c - memory by the callers that allocated it: `report --memory`. */
#include "tools/common/select.h"
#include "tools/report/report.h"
#include "views/folds/memory.h"
#include "views/names/lines.h"
#include "views/names/missing.h"
#include "views/names/names.h"
#include "views/names/notes.h"
#include "base/search.h"

#include "tracewheel/error.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Callers of a row on the screen, behind the first. */
#define CALLERS_SHOWN  5
#define CALLER_COLUMNS 40

/* ---- columns ---- */

/* As those of report_times.c: key, title, unit, width, place, from how many columns on, hidden rows have a sum; value, unknown. */
/* clang-format off */
#define COLUMNS(column) \
	column(peak, "at peak", TW_UNIT_BYTES, 10, 1, 0, true, row->peak_bytes, false) \
	column(live, "at end", TW_UNIT_BYTES, 10, 2, 0, true, row->live_bytes, false) \
	column(blocks, "blocks", TW_UNIT_COUNT, 9, 3, 50, true, row->live_blocks, false) \
	column(bytes, "allocated", TW_UNIT_BYTES, 10, 4, 76, true, row->bytes, false) \
	column(calls, "calls", TW_UNIT_COUNT, 11, 5, 76, true, row->calls, false) \
	column(temporary, "temporary", TW_UNIT_COUNT, 11, 6, 120, true, row->temporary, false) \
	column(largest, "largest", TW_UNIT_BYTES, 10, 7, 120, false, row->largest, !row->calls)
/* clang-format on */

#define CELL(key, title, unit, width, place, from, is_summed, number, unknown)                 \
	static struct tw_cell cell_##key(const void *at)                                       \
	{                                                                                      \
		const struct tw_memory_row *row = *(const struct tw_memory_row *const *)at;    \
		return (struct tw_cell){.value = (uint64_t)(number), .is_unknown = (unknown)}; \
	}
COLUMNS(CELL)
#define COLUMN(key, title, unit, width, place, from, is_summed, number, unknown) \
	{#key, title, unit, width, place, from, is_summed, cell_##key, false},
static const struct tw_column columns[] = {COLUMNS(COLUMN)};
const struct tw_table tw_memory_columns = {columns, sizeof columns / sizeof *columns};

/* ---- rows ---- */

/* The order of equal rows is that of their first calls. */
static int compare(const void *a, const void *b, void *context)
{
	const struct tw_column *const *orders = context;
	const struct tw_memory_row *x = *(const struct tw_memory_row *const *)a,
				   *y = *(const struct tw_memory_row *const *)b;
	int order = 0;
	for (unsigned i = 0; orders[i] && !order; i++)
		order = tw_table_compare(orders[i], a, b);
	return order ?: TW_ORDER(x, y);
}

/* The rows with blocks or calls in the selection, to be freed. NULL: no memory. */
static const struct tw_memory_row **rows_of(const struct tw_memory *memory, const char *sort, size_t *count)
{
	const struct tw_column *orders[] = {&columns[0], &columns[1], &columns[3], NULL};
	const struct tw_memory_row **rows = malloc((memory->row_count + (size_t)1) * sizeof(*rows));
	*count = 0;
	for (uint32_t i = 0; rows && i < memory->row_count; i++) {
		const struct tw_memory_row *row = &memory->rows[i];
		if (row->calls || row->live_blocks || row->peak_bytes)
			rows[(*count)++] = row;
	}
	if (sort)
		orders[0] = tw_table_column(&tw_memory_columns, sort, strlen(sort));
	if (rows)
		qsort_r(rows, *count, sizeof(*rows), compare, orders);
	return rows;
}

/* Code that allocates for its callers: of the C and C++ libraries. */
static bool is_helper(const struct tw_line *line)
{
	const char *name = line->module ? line->module->name : "";
	return !strcmp(name, "libc") || !strcmp(name, "libstdc++") || !strcmp(name, "libc++") ||
	       (line->function && !strncmp(line->function, "_Zn", 3) &&
		(line->function[3] == 'w' || line->function[3] == 'a'));
}

/* Below it no code of the program follows. */
static bool is_bottom(const struct tw_line *line)
{
	return line->function &&
	       (!strncmp(line->function, "__libc_start_", 13) || !strcmp(line->function, "start_thread"));
}

/* The caller by which a row is named: the first that is no helper. */
static uint32_t first_of(const struct tw_memory *memory, const struct tw_memory_row *row, uint32_t count)
{
	struct tw_line line;
	for (uint32_t i = 0; i < count; i++) {
		tw_line_of_return(memory->capture, row->image, row->words[i], &line);
		if (!is_helper(&line))
			return i;
	}
	return 0;
}

/* ---- the screen ---- */

/* A caller, in at most so many columns where names are cut. */
static const char *caller_text(const struct tw_screen *screen, const struct tw_memory *memory,
			       const struct tw_memory_row *row, uint32_t number, int width,
			       char name[TW_NAME_SHORT_BYTES])
{
	static struct tw_out text;
	tw_out_init(&text, -1);
	tw_line_put(&text, memory->capture, row->image, row->words[number]);
	tw_put_char(&text, 0);
	return tw_screen_short(screen, text.data, width, name);
}

static void put_callers(const struct tw_screen *screen, const struct tw_memory *memory, const struct tw_memory_row *row,
			int width)
{
	static struct tw_out text;
	char name[TW_NAME_SHORT_BYTES];
	struct tw_line line;
	uint32_t count = tw_line_stack_count(memory->capture, row->image, row->words, row->word_count),
		 first = first_of(memory, row, count);
	tw_screen_cut(screen,
		      count ? caller_text(screen, memory, row, first, screen->columns - width, name)
			    : "(no callers were recorded)",
		      width);
	tw_out_init(&text, -1);
	for (uint32_t i = first + 1; i < count && i <= first + CALLERS_SHOWN; i++) {
		tw_line_of_return(memory->capture, row->image, row->words[i], &line);
		if (is_bottom(&line))
			break;
		tw_out_text(&text, text.used ? " <- " : "<- ");
		tw_out_text(&text, caller_text(screen, memory, row, i, CALLER_COLUMNS, name));
	}
	tw_put_char(&text, 0);
	if (*text.data) {
		tw_out_format(screen->out, "%*s", width, "");
		tw_screen_cut(screen, text.data, width);
	}
}

static void put_rows(const struct tw_screen *screen, const struct tw_memory *memory, const struct tw_memory_row **rows,
		     size_t count, const struct tw_report_order *order)
{
	struct tw_table_shape shape;
	const struct tw_column *sort =
		order->sort ? tw_table_column(&tw_memory_columns, order->sort, strlen(order->sort)) : NULL;
	size_t shown = order->top && order->top < count ? order->top : count;
	char figure[TW_FIGURE_BYTES];
	if (order->columns)
		tw_table_choose(&tw_memory_columns, order->columns, &shape);
	else
		tw_table_fit(&tw_memory_columns, screen->columns, sort, &shape);
	tw_out_format(screen->out, "\n%s", tw_screen_bold(screen));
	tw_table_titles(screen->out, &shape);
	tw_out_format(screen->out, "  allocated by (%zu)%s\n", count, tw_screen_plain(screen));
	for (size_t i = 0; i < shown; i++) {
		tw_table_cells(screen->out, &shape, &rows[i]);
		tw_out_text(screen->out, "  ");
		put_callers(screen, memory, rows[i], shape.width + 2);
	}
	if (shown < count) {
		tw_table_sums(screen->out, &shape, rows + shown, count - shown, sizeof(*rows));
		tw_out_format(screen->out, "  in %s more\n", tw_figure_count(figure, count - shown));
	}
}

/* The live memory over time, as a line of bars. */
static void put_parts(const struct tw_screen *screen, const struct tw_memory *memory, uint64_t zero_ns)
{
	static const char *const bars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES];
	uint64_t most = 1;
	if (!screen->is_utf8 || memory->to_ns <= memory->from_ns)
		return;
	for (unsigned i = 0; i < TW_MEMORY_PARTS; i++)
		most = memory->parts[i] > most ? memory->parts[i] : most;
	tw_out_text(screen->out, "\n|");
	for (unsigned i = 0; i < TW_MEMORY_PARTS; i++)
		tw_out_text(screen->out, bars[(uint64_t)((__uint128_t)memory->parts[i] * 8 / most)]);
	tw_out_format(screen->out, "|\nlive from %s to %s\n",
		      tw_figure_seconds(a, (double)(memory->from_ns - zero_ns) / 1e9),
		      tw_figure_seconds(b, (double)(memory->to_ns - zero_ns) / 1e9));
}

static void put_unknown(struct tw_out *out, uint64_t count, const char *one, const char *more, const char *what)
{
	char figure[TW_FIGURE_BYTES];
	if (count)
		tw_out_format(out, "%s %s\n", tw_figure_of(figure, count, one, more), what);
}

void tw_memory_sentences(const struct tw_screen *screen, const struct tw_memory *memory)
{
	struct tw_out *out = screen->out;
	const struct tw_capture_image *images[2];
	char gone[TW_MISSING_TEXT_BYTES];
	if (memory->lost || memory->overwritten)
		tw_out_format(
			out,
			"%s%s: blocks that were freed there look live, and those that were made there are unknown.%s\n",
			memory->lost ? tw_screen_red(screen) : "",
			tw_missing_gone(memory->lost, memory->overwritten, gone),
			memory->lost ? tw_screen_plain(screen) : "");
	for (unsigned i = 0; i < memory->functions->count; i++) {
		const struct tw_memory_function *function = &memory->functions->list[i];
		if (tw_memory_lacks(memory, i))
			tw_out_format(out, "No call of %s was recorded: %s.\n", function->name,
				      function->does == TW_MEMORY_FREES ? "blocks that it freed look live"
									: "blocks that it made are unknown");
	}
	put_unknown(out, memory->unknown_frees, "block was", "blocks were",
		    "freed and not seen to be made: before the recording, or by a function that is not recorded.");
	put_unknown(
		out, memory->inherited_frees, "block was", "blocks were",
		"freed by children that had them from the process that forked them: they are live until that process frees its own.");
	put_unknown(out, memory->unseen_frees, "block was", "blocks were",
		    "not seen to be freed, and counted as live until another lay there.");
	put_unknown(out, memory->unreturned, "call has", "calls have",
		    "no return in the selection, and made no known block.");
	put_unknown(out, memory->nowhere, "block is", "blocks are",
		    "counted as allocated only: posix_memalign() does not return the address.");
	put_unknown(out, memory->wordless, "call has", "calls have",
		    "no arguments or results as numbers: record with --memory.");
	put_unknown(out, memory->failed, "call", "calls", "failed.");
	if (tw_names_images(memory->capture, images, 2) > 1)
		tw_out_text(
			out,
			"There are several programs: what each of them had at its end counts as live from there on.\n");
	if (memory->is_full)
		tw_out_text(out, "There are too many stacks of callers: blocks of some stand together.\n");
}

static void put_notes(const struct tw_screen *screen, const struct tw_memory *memory)
{
	static struct tw_out text;
	struct tw_screen plain = *screen;
	tw_out_init(&text, -1);
	plain.out = &text;
	tw_memory_sentences(&plain, memory);
	tw_screen_wrapped(screen, text.data, text.used);
}

static void put_screen(const struct tw_screen *screen, const struct tw_memory *memory,
		       const struct tw_memory_row **rows, size_t count, const struct tw_report_order *order,
		       uint64_t zero_ns)
{
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], c[TW_FIGURE_BYTES], d[TW_FIGURE_BYTES];
	put_notes(screen, memory);
	if (!memory->places.has_any) {
		tw_out_text(
			screen->out,
			tw_memory_is_of_pairs(memory)
				? "No calls of these functions were recorded: tracewheel record --returns --args=raw --stack 8 -t them.\n"
				: "No calls of memory were recorded: tracewheel record --memory -- COMMAND.\n");
		return;
	}
	tw_out_format(screen->out, "\n%sallocated%s  %s in %s, %s freed\n", tw_screen_bold(screen),
		      tw_screen_plain(screen), tw_figure_bytes(a, memory->bytes),
		      tw_figure_of(b, memory->calls, "call", "calls"),
		      tw_figure_of(c, memory->frees, "block", "blocks"));
	tw_out_format(screen->out, "%speak%s       %s, at %s\n", tw_screen_bold(screen), tw_screen_plain(screen),
		      tw_figure_bytes(a, memory->peak_bytes),
		      tw_figure_seconds(b, (double)(memory->peak_ns - zero_ns) / 1e9));
	tw_out_format(screen->out, "%sat the end%s %s in %s\n", tw_screen_bold(screen), tw_screen_plain(screen),
		      tw_figure_bytes(c, memory->live_bytes), tw_figure_of(d, memory->live_blocks, "block", "blocks"));
	put_parts(screen, memory, zero_ns);
	if (count)
		put_rows(screen, memory, rows, count, order);
}

/* ---- JSON ---- */

static void put_row_json(struct tw_json *json, const struct tw_memory *memory, const struct tw_memory_row *const *row)
{
	static struct tw_out text;
	const struct tw_capture_image *image = tw_capture_image(memory->capture, (*row)->image);
	uint32_t count = tw_line_stack_count(memory->capture, (*row)->image, (*row)->words, (*row)->word_count);
	tw_json_open(json, NULL, '{');
	tw_table_json(json, &tw_memory_columns, tw_memory_columns.count, row);
	tw_json_u64(json, "process", image ? (uint64_t)image->process_id : 0);
	tw_json_open(json, "callers", '[');
	for (uint32_t i = 0; i < count; i++) {
		tw_out_init(&text, -1);
		tw_line_put(&text, memory->capture, (*row)->image, (*row)->words[i]);
		tw_json_text(json, NULL, text.data, text.used);
	}
	tw_json_close(json, ']');
	tw_json_close(json, '}');
}

static void put_json(struct tw_out *out, const struct tw_memory *memory, const struct tw_memory_row **rows,
		     size_t count, size_t top, uint64_t zero_ns)
{
	struct tw_json json = {.out = out, .is_spread = true};
	struct tw_capture_account account;
	tw_json_open(&json, NULL, '{');
	tw_json_u64(&json, "bytes", memory->bytes);
	tw_json_u64(&json, "calls", memory->calls);
	tw_json_u64(&json, "frees", memory->frees);
	tw_json_u64(&json, "inherited_frees", memory->inherited_frees);
	tw_json_u64(&json, "failed", memory->failed);
	tw_json_u64(&json, "live", memory->live_bytes);
	tw_json_u64(&json, "live_blocks", memory->live_blocks);
	tw_json_u64(&json, "peak", memory->peak_bytes);
	tw_json_u64(&json, "peak_ns", memory->peak_ns - zero_ns);
	tw_json_open(&json, "unknown", '{');
	tw_json_u64(&json, "frees", memory->unknown_frees);
	tw_json_u64(&json, "not_freed", memory->unseen_frees);
	tw_json_u64(&json, "unreturned", memory->unreturned);
	tw_json_u64(&json, "addresses", memory->nowhere);
	tw_json_u64(&json, "wordless", memory->wordless);
	tw_json_u64(&json, "lost", memory->lost);
	tw_json_u64(&json, "overwritten", memory->overwritten);
	tw_json_open(&json, "not_recorded", '[');
	for (unsigned i = 0; i < memory->functions->count; i++)
		if (tw_memory_lacks(memory, i))
			tw_json_string(&json, NULL, memory->functions->list[i].name);
	tw_json_close(&json, ']');
	tw_json_close(&json, '}');
	tw_json_u64(&json, "from_ns", memory->from_ns - zero_ns);
	tw_json_u64(&json, "to_ns", memory->to_ns - zero_ns);
	tw_json_open(&json, "live_over_time", '[');
	for (unsigned i = 0; i < TW_MEMORY_PARTS; i++)
		tw_json_u64(&json, NULL, memory->parts[i]);
	tw_json_close(&json, ']');
	tw_json_open(&json, "by_callers", '[');
	for (size_t i = 0; i < count && (!top || i < top); i++)
		put_row_json(&json, memory, &rows[i]);
	tw_json_close(&json, ']');
	tw_capture_account(memory->capture, &account);
	tw_missing_json(&json, &account);
	tw_notes_json(&json, memory->capture);
	tw_json_close(&json, '}');
}

/* ---- the view ---- */

int tw_report_memory_view(struct tw_selection *selection, const struct tw_report_order *order,
			  const struct tw_command *command, bool is_json, struct tw_capture *capture, const char *path)
{
	static struct tw_out out;
	struct tw_capture_filter filter;
	struct tw_capture_info info;
	struct tw_memory memory = {0};
	size_t count = 0;
	if (!tw_selection_filter(selection, capture, command, &filter))
		return TW_EXIT_USAGE;
	int error = tw_memory_make(&memory, capture, &filter, tw_pairs_functions(&selection->pairs));
	const struct tw_memory_row **rows = error ? NULL : rows_of(&memory, order->sort, &count);
	tw_capture_info(capture, &info);
	tw_out_init(&out, STDOUT_FILENO);
	if (!rows) {
		error = error ? error : TW_ENOMEM;
	} else if (is_json) {
		put_json(&out, &memory, rows, count, order->top, info.zero_ns);
	} else {
		struct tw_screen screen = tw_screen_make(&out, 0);
		tw_report_preface(&screen, capture);
		put_screen(&screen, &memory, rows, count, order, info.zero_ns);
	}
	int code = error ? tw_selection_fail(selection, path, error) : tw_out_finish(&out);
	free(rows);
	tw_memory_free(&memory);
	tw_lines_forget();
	return tw_names_end(capture, path, code);
}
