/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.c - numbers of calls by function and thread: table.h.
 *
 * Numbers of a thread only grow, so that the difference of two rounds is what was called between them, exactly; what has become of
 * threads that ended stays.
 */
#include "tools/top/table.h"
#include "views/names/names.h"
#include "views/output/output.h"

#include "base/grow.h"
#include "base/search.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- what the user chose ---- */

enum tw_top_errors tw_top_errors_of(const char *text)
{
	static const struct {
		const char *sign;
		enum tw_top_errors errors;
	} signs[] = {{"<=", TW_TOP_LESS_OR_ZERO}, {"<", TW_TOP_LESS},	       {"==", TW_TOP_ZERO},
		     {"!=", TW_TOP_NOT_ZERO},	  {">=", TW_TOP_MORE_OR_ZERO}, {">", TW_TOP_MORE}};
	const char *at = text + strspn(text, " ");
	if (strncmp(at, "result", 6) != 0)
		return TW_TOP_NO_ERRORS;
	at += 6 + strspn(at + 6, " ");
	for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
		size_t bytes = strlen(signs[i].sign);
		if (strncmp(at, signs[i].sign, bytes) != 0)
			continue;
		at += bytes + strspn(at + bytes, " ");
		return strcmp(at, "0") == 0 ? signs[i].errors : TW_TOP_NO_ERRORS;
	}
	return TW_TOP_NO_ERRORS;
}

/* A row of a histogram by powers of two: 0 and each negative number have rows of their own. */
static bool is_error(enum tw_top_errors errors, int64_t number)
{
	switch (errors) {
	case TW_TOP_LESS: return number < 0;
	case TW_TOP_LESS_OR_ZERO: return number <= 0;
	case TW_TOP_ZERO: return number == 0;
	case TW_TOP_NOT_ZERO: return number != 0;
	case TW_TOP_MORE_OR_ZERO: return number >= 0;
	case TW_TOP_MORE: return number > 0;
	default: return false;
	}
}

static const char *const orders[] = {[TW_TOP_BY_RATE] = "rate",
				     [TW_TOP_BY_CALLS] = "calls",
				     [TW_TOP_BY_TIME] = "time",
				     [TW_TOP_BY_ERRORS] = "errors",
				     [TW_TOP_BY_NAME] = "name"};

const char *tw_top_order_name(enum tw_top_order order)
{
	return orders[order];
}

enum tw_top_order tw_top_order_named(const char *name)
{
	enum tw_top_order order = 0;
	while (order < TW_TOP_ORDERS && strcmp(orders[order], name) != 0)
		order++;
	return order;
}

bool tw_top_has_order(const struct tw_top *top, enum tw_top_order order)
{
	return order < TW_TOP_ORDERS && (order != TW_TOP_BY_TIME || top->has_times) &&
	       (order != TW_TOP_BY_ERRORS || top->errors);
}

/* ---- cells ---- */

static void add(struct tw_top_sums *to, const struct tw_top_sums *more)
{
	to->calls += more->calls;
	to->errors += more->errors;
	to->ns += more->ns;
}

static struct tw_top_sums minus(const struct tw_top_sums *a, const struct tw_top_sums *b)
{
	return (struct tw_top_sums){a->calls - b->calls, a->errors - b->errors, a->ns - b->ns};
}

/* The number of a function's name; UINT32_MAX: no memory. */
static uint32_t name_of(struct tw_top *top, const struct tw_capture_function *function)
{
	char text[TW_TOP_LINE_BYTES / 2];
	size_t bytes = tw_name_function(function, text, sizeof text - 1);
	text[bytes] = 0;
	uint64_t hash = tw_hash_bytes(text, bytes, 0);
	uint32_t at = tw_map_find(&top->names_by_text, hash, i, strcmp(top->names[i].text, text) == 0);
	if (at != TW_MAP_NONE)
		return at;
	char *copy = strdup(text);
	if (!copy || !tw_grow(top->names, top->name_count, top->name_capacity) ||
	    !tw_map_add(&top->names_by_text, hash, top->name_count)) {
		free(copy);
		return UINT32_MAX;
	}
	top->names[top->name_count] = (struct tw_top_name){copy, function};
	return top->name_count++;
}

static void name_thread(struct tw_top_cell *cell, const struct tw_capture *capture, uint32_t tracee_id)
{
	const struct tw_capture_tracee *tracee = tw_capture_tracee(capture, cell->image, tracee_id);
	if (!cell->lease || !tracee) {
		snprintf(cell->thread, sizeof cell->thread, "(not told apart)");
		return;
	}
	size_t bytes = (size_t)snprintf(cell->thread, sizeof cell->thread, "%d ", tracee->thread_id);
	bytes += tw_clean(tracee->name, strlen(tracee->name), cell->thread + bytes, sizeof cell->thread - bytes - 1);
	cell->thread[bytes] = 0;
}

static bool is_cell(const struct tw_top_cell *cell, uint32_t image, uint32_t place_id, uint64_t lease)
{
	return cell->image == image && cell->place_id == place_id && cell->lease == lease;
}

/* NULL: no memory. */
static struct tw_top_cell *cell_of(struct tw_top *top, const struct tw_capture *capture, uint32_t image,
				   const struct tw_capture_count *count)
{
	const struct tw_capture_place *place;
	uint64_t hash = tw_hash_word(tw_hash_word(image, count->place_id), count->lease);
	uint32_t at =
		tw_map_find(&top->cells_by_key, hash, i, is_cell(&top->cells[i], image, count->place_id, count->lease));
	if (at != TW_MAP_NONE)
		return &top->cells[at];
	place = tw_capture_place(capture, image, count->place_id);
	uint32_t name = name_of(top, place ? place->function : NULL);
	if (name == UINT32_MAX || !tw_grow(top->cells, top->cell_count, top->cell_capacity) ||
	    !tw_map_add(&top->cells_by_key, hash, top->cell_count))
		return NULL;
	struct tw_top_cell *cell = &top->cells[top->cell_count++];
	*cell = (struct tw_top_cell){.image = image, .place_id = count->place_id, .lease = count->lease, .name = name};
	name_thread(cell, capture, count->tracee_id);
	return cell;
}

static int take_image(struct tw_top *top, const struct tw_capture *capture, uint32_t image)
{
	const struct tw_capture_count *count;
	const struct tw_capture_aggregate *row;
	struct tw_top_cell *cell;
	for (uint32_t at = 0; (count = tw_capture_count_next(capture, image, &at));) {
		cell = cell_of(top, capture, image, count);
		if (!cell)
			return TW_ENOMEM;
		cell->now.calls = count->count;
	}
	for (uint32_t at = 0; (row = tw_capture_aggregate_next(capture, image, &at));) {
		cell = cell_of(top, capture, image,
			       &(struct tw_capture_count){.place_id = row->place_id,
							  .tracee_id = row->tracee_id,
							  .lease = row->lease});
		if (!cell)
			return TW_ENOMEM;
		if (row->aggregation.of == TW_AGGREGATE_DURATION)
			cell->now.ns += (uint64_t)row->sum;
		else if (!row->is_rest && is_error(top->errors, row->number))
			cell->now.errors += row->count;
	}
	return 0;
}

static uint64_t clock_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Since then calls are counted. */
static uint64_t beginning_of(const struct tw_capture *capture)
{
	struct tw_capture_counted counted;
	uint64_t first = clock_ns();
	for (uint32_t image = 0; tw_capture_image(capture, image); image++)
		for (uint32_t at = 0; tw_capture_counted_next(capture, image, &at, &counted);)
			first = counted.since_ns < first ? counted.since_ns : first;
	return first;
}

int tw_top_update(struct tw_top *top, const struct tw_capture *capture, uint64_t now_ns)
{
	int error = 0;
	/* The end may come in several pieces, which are one round. */
	bool is_new = now_ns || !top->has_ended;
	top->has_ended |= !now_ns;
	for (uint32_t i = 0; i < top->cell_count; i++) {
		if (is_new)
			top->cells[i].before = top->cells[i].now;
		/* Counts are set, sums are summed up again. */
		top->cells[i].now.errors = top->cells[i].now.ns = 0;
	}
	for (uint32_t image = 0; !error && tw_capture_image(capture, image); image++)
		error = take_image(top, capture, image);
	if (!top->begun_ns)
		top->begun_ns = top->now_ns = beginning_of(capture);
	if (is_new)
		top->before_ns = top->now_ns;
	top->now_ns = now_ns ? now_ns : clock_ns();
	return error ? error : tw_top_arrange(top);
}

void tw_top_reset(struct tw_top *top)
{
	for (uint32_t i = 0; i < top->cell_count; i++)
		top->cells[i].base = top->cells[i].now;
	top->begun_ns = top->now_ns;
}

double tw_top_seconds(const struct tw_top *top)
{
	return (double)(top->now_ns - top->before_ns) / 1e9;
}

double tw_top_all_seconds(const struct tw_top *top)
{
	return (double)(top->now_ns - top->begun_ns) / 1e9;
}

/* ---- rows ---- */

static int compare_numbers(uint64_t a, uint64_t b)
{
	return TW_ORDER(a, b);
}

/* Cells of one row are neighbours. */
static int by_identity(const void *a, const void *b)
{
	const struct tw_top_cell *x = ((const struct tw_top_row *)a)->cell, *y = ((const struct tw_top_row *)b)->cell;
	return compare_numbers(x->name, y->name)
		       ?: compare_numbers(x->image, y->image)
		       ?: compare_numbers(x->lease, y->lease);
}

static bool are_one(const struct tw_top *top, const struct tw_top_cell *a, const struct tw_top_cell *b)
{
	return a->name == b->name && (!top->is_by_thread || (a->image == b->image && a->lease == b->lease));
}

static int by_order(const void *a, const void *b, void *arg)
{
	const struct tw_top_row *x = a, *y = b;
	enum tw_top_order order = *(const enum tw_top_order *)arg;
	int result = order == TW_TOP_BY_RATE	 ? compare_numbers(y->last.calls, x->last.calls)
		     : order == TW_TOP_BY_TIME	 ? compare_numbers(y->last.ns, x->last.ns)
		     : order == TW_TOP_BY_ERRORS ? compare_numbers(y->all.errors, x->all.errors)
						 : 0;
	if (!result && order != TW_TOP_BY_NAME)
		result = compare_numbers(y->all.calls, x->all.calls);
	result = result ? result : strcmp(x->name, y->name);
	return result ? result : strcmp(x->cell->thread, y->cell->thread);
}

static void join(struct tw_top *top)
{
	uint32_t kept = 0;
	if (top->row_count)
		qsort(top->rows, top->row_count, sizeof *top->rows, by_identity);
	for (uint32_t i = 1; i < top->row_count; i++) {
		if (!are_one(top, top->rows[kept].cell, top->rows[i].cell)) {
			top->rows[++kept] = top->rows[i];
			continue;
		}
		add(&top->rows[kept].all, &top->rows[i].all);
		add(&top->rows[kept].last, &top->rows[i].last);
	}
	top->row_count = top->row_count ? kept + 1 : 0;
}

int tw_top_arrange(struct tw_top *top)
{
	top->row_count = 0;
	top->all = top->last = (struct tw_top_sums){0};
	for (uint32_t i = 0; i < top->cell_count; i++) {
		const struct tw_top_cell *cell = &top->cells[i];
		const struct tw_top_name *name = &top->names[cell->name];
		struct tw_top_row row = {.cell = cell,
					 .name = name->text,
					 .function = name->function,
					 .all = minus(&cell->now, &cell->base),
					 .last = minus(&cell->now, &cell->before)};
		if (!row.all.calls || (top->filter[0] && !strstr(name->text, top->filter)))
			continue;
		if (!tw_grow(top->rows, top->row_count, top->row_capacity))
			return TW_ENOMEM;
		top->rows[top->row_count++] = row;
		add(&top->all, &row.all);
		add(&top->last, &row.last);
	}
	join(top);
	if (top->row_count)
		qsort_r(top->rows, top->row_count, sizeof *top->rows, by_order, &top->order);
	return 0;
}

/* ---- as text ---- */

static uint64_t per_second(const struct tw_top *top, uint64_t number)
{
	double seconds = tw_top_seconds(top);
	return seconds > 0 ? (uint64_t)((double)number / seconds + 0.5) : 0;
}

const char *tw_top_titles(const struct tw_top *top, char text[TW_TOP_LINE_BYTES])
{
	int used = snprintf(text, TW_TOP_LINE_BYTES, "%12s %15s", "calls/s", "calls");
	if (top->has_times)
		used += snprintf(text + used, TW_TOP_LINE_BYTES - (size_t)used, " %7s %9s %9s", "time", "mean",
				 "total");
	if (top->errors)
		used += snprintf(text + used, TW_TOP_LINE_BYTES - (size_t)used, " %10s %12s", "errors/s", "errors");
	snprintf(text + used, TW_TOP_LINE_BYTES - (size_t)used, top->is_by_thread ? "  %-23s function" : "  function",
		 "thread");
	return text;
}

const char *tw_top_line(const struct tw_top *top, const struct tw_top_row *row, char text[TW_TOP_LINE_BYTES])
{
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES];
	double seconds = tw_top_seconds(top);
	int used = snprintf(text, TW_TOP_LINE_BYTES, "%12s %15s", tw_figure_count(a, per_second(top, row->last.calls)),
			    tw_figure_count(b, row->all.calls));
	if (top->has_times)
		used += snprintf(text + used, TW_TOP_LINE_BYTES - (size_t)used, " %5.1f %% %9s %9s",
				 seconds > 0 ? (double)row->last.ns / 1e7 / seconds : 0,
				 tw_figure_duration(a, row->all.calls ? row->all.ns / row->all.calls : 0),
				 tw_figure_duration(b, row->all.ns));
	if (top->errors)
		used += snprintf(text + used, TW_TOP_LINE_BYTES - (size_t)used, " %10s %12s",
				 tw_figure_count(a, per_second(top, row->last.errors)),
				 tw_figure_count(b, row->all.errors));
	if (top->is_by_thread)
		used += snprintf(text + used, TW_TOP_LINE_BYTES - (size_t)used, "  %-23s", row->cell->thread);
	snprintf(text + used, TW_TOP_LINE_BYTES - (size_t)used, "%s%s", top->is_by_thread ? " " : "  ", row->name);
	return text;
}

const char *tw_top_head(const struct tw_top *top, char text[TW_TOP_LINE_BYTES])
{
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], c[TW_FIGURE_BYTES];
	snprintf(text, TW_TOP_LINE_BYTES, "%.1f s: %s, %s a second, in %s", tw_top_all_seconds(top),
		 tw_figure_of(a, top->all.calls, "call", "calls"), tw_figure_count(b, per_second(top, top->last.calls)),
		 tw_figure_of(c, top->row_count, top->is_by_thread ? "row" : "function",
			      top->is_by_thread ? "rows" : "functions"));
	return text;
}

void tw_top_free(struct tw_top *top)
{
	for (uint32_t i = 0; i < top->name_count; i++)
		free(top->names[i].text);
	free(top->names);
	free(top->cells);
	free(top->rows);
	tw_map_fini(&top->cells_by_key);
	tw_map_fini(&top->names_by_text);
}
