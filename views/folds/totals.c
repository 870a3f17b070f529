/* SPDX-License-Identifier: Apache-2.0 */
/* totals.c - counts calls by place and stream, and then finds their names. */
#include "views/folds/totals.h"
#include "views/folds/marks.h"
#include "views/folds/places_inside.h"
#include "base/grow.h"
#include "base/search.h"
#include "views/output/output.h"
#include "views/names/missing.h"
#include "views/names/names.h"
#include "views/names/threads.h"

#include "tracewheel/counts.h"
#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>

/* The calls of one image, indexed by place id. */
struct image_counts {
	uint64_t *calls;
	bool *is_wanted;
	uint32_t count;
	uint64_t unknown; /* of places that the capture does not define */
};

struct tw_totals_scan {
	const struct tw_capture_filter *filter;
	struct image_counts *images;
	uint32_t image_count;
	uint64_t *stream_calls;
	uint64_t *stream_events;
	uint64_t *stream_first;			 /* ticks of its oldest event; 0: none */
	uint64_t (*stream_lost)[TW_LOST_CAUSES]; /* by loss records, if a time was selected */
	uint64_t all_events;
	uint64_t *kinds;
	uint32_t stream_count;
	const struct tw_capture *capture;
};

/* Does a loss overlap the selected times? */
static bool has_time_of(const struct tw_totals_scan *scan, uint64_t first_ticks, uint64_t last_ticks)
{
	return tw_capture_ns(scan->capture, last_ticks) >= scan->filter->from_ns &&
	       (!scan->filter->to_ns || tw_capture_ns(scan->capture, first_ticks) < scan->filter->to_ns);
}

/* Is the record within the selected times? Blocks at the edges contain others. */
static bool is_in_time(const struct tw_totals_scan *scan, const struct tw_capture_record *record)
{
	uint64_t ns = tw_capture_ns(scan->capture, record->ticks);
	return ns >= scan->filter->from_ns && (!scan->filter->to_ns || ns < scan->filter->to_ns);
}

/* A loss counts if it overlaps the selected times: when in it each event was lost is not known. */
static void count_loss(struct tw_totals_scan *scan, const struct tw_capture_batch *batch,
		       const struct tw_capture_record *record)
{
	const struct tw_capture_loss *loss = (const void *)record->payload;
	if (tw_capture_record_words(record) < 1 + TW_LOST_CAUSES ||
	    !has_time_of(scan, loss->first_ticks, record->ticks))
		return;
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
		scan->stream_lost[batch->stream][cause] += loss->lost[cause];
}

/* Does the whole batch lie within the selected times? Then its records need no check. */
static bool is_all_in_time(const struct tw_totals_scan *scan, const struct tw_capture_batch *batch)
{
	return tw_capture_ns(scan->capture, batch->start_ticks) >= scan->filter->from_ns &&
	       (!scan->filter->to_ns || tw_capture_ns(scan->capture, batch->end_ticks) < scan->filter->to_ns);
}

static void count_batch(struct tw_totals_scan *scan, const struct tw_capture_batch *batch, bool is_part)
{
	bool checks_time = is_part && !is_all_in_time(scan, batch);
	struct image_counts *image = &scan->images[batch->image];
	uint64_t calls = 0, events = 0, *first = &scan->stream_first[batch->stream];
	for (const struct tw_capture_record *record = batch->first; record < batch->end;
	     record = tw_capture_record_next(record)) {
		unsigned kind = tw_capture_record_kind(record);
		if (kind == TW_CAPTURE_LOSS && is_part)
			count_loss(scan, batch, record);
		if (kind <= TW_CAPTURE_SWITCH || kind == TW_CAPTURE_OWN_TIME ||
		    (checks_time && !is_in_time(scan, record)))
			continue;
		uint32_t id = tw_capture_record_id(record);
		bool is_placed = kind <= TW_CAPTURE_STACK;
		scan->all_events++;
		*first = *first && *first < record->ticks ? *first : record->ticks;
		if (is_placed && id < image->count && !image->is_wanted[id])
			continue;
		events++;
		if (kind != TW_CAPTURE_CALL) {
			scan->kinds[kind < 63 ? kind : 63]++;
			continue;
		}
		calls++;
		if (id < image->count)
			image->calls[id]++;
		else
			image->unknown++;
	}
	scan->stream_calls[batch->stream] += calls;
	scan->stream_events[batch->stream] += events;
}

static int see(void *self, const struct tw_capture_batch *batch)
{
	struct tw_totals_scan *scan = self;
	if (batch->image < scan->image_count && batch->stream < scan->stream_count)
		count_batch(scan, batch, scan->filter->from_ns || scan->filter->to_ns);
	return 0;
}

static bool is_wanted(const struct tw_capture_filter *filter, uint32_t image, const struct tw_capture_place *place)
{
	return !filter->wants_place || filter->wants_place(filter->context, image, place);
}

static bool init_image(struct image_counts *counts, const struct tw_capture *capture, uint32_t image,
		       const struct tw_capture_filter *filter)
{
	const struct tw_capture_place *place;
	counts->count = tw_marks_rows(capture, image);
	counts->calls = calloc(counts->count, sizeof *counts->calls);
	counts->is_wanted = calloc(counts->count, sizeof *counts->is_wanted);
	if (!counts->calls || !counts->is_wanted)
		return false;
	/* Events whose place the capture does not define, as a return_to of an unknown function. */
	const struct tw_capture_place undefined = {.place_id = 0};
	memset(counts->is_wanted, is_wanted(filter, image, &undefined), counts->count);
	for (uint32_t at = 0; (place = tw_capture_place_next(capture, image, &at));) {
		if (place->place_id < counts->count)
			counts->is_wanted[place->place_id] = is_wanted(filter, image, place);
	}
	return true;
}

/* ---- rows ---- */

static bool add_row(struct tw_totals_table *table, const char *name, size_t bytes, uint64_t calls)
{
	if (!tw_grow_one(table->rows, table->count))
		return false;
	struct tw_totals_row *row = &table->rows[table->count];
	*row = (struct tw_totals_row){.name = strndup(name, bytes), .calls = calls, .events = calls};
	if (!row->name)
		return false;
	table->count++;
	return true;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct tw_totals_row *)a)->name, ((const struct tw_totals_row *)b)->name);
}

static int by_calls(const void *a, const void *b)
{
	const struct tw_totals_row *x = a, *y = b;
	return TW_ORDER(y->calls, x->calls) ?: by_name(a, b);
}

void tw_totals_sort(struct tw_totals_table *table, bool is_by_name)
{
	if (table->count)
		qsort(table->rows, table->count, sizeof *table->rows, is_by_name ? by_name : by_calls);
}

/* Joins rows with one name. */
static void join_rows(struct tw_totals_table *table)
{
	size_t kept = 0;
	tw_totals_sort(table, true);
	for (size_t i = 0; i < table->count; i++) {
		if (kept && strcmp(table->rows[kept - 1].name, table->rows[i].name) == 0) {
			table->rows[kept - 1].calls += table->rows[i].calls;
			table->rows[kept - 1].events += table->rows[i].events;
			free(table->rows[i].name);
			free(table->rows[i].thread_name);
		} else {
			table->rows[kept++] = table->rows[i];
		}
	}
	table->count = kept;
}

static bool name_image(struct tw_totals *totals, const struct tw_totals_scan *scan, uint32_t image)
{
	const struct image_counts *counts = &scan->images[image];
	const struct tw_capture_place *place;
	char text[TW_NAME_TEXT_BYTES];
	uint32_t at = 0;
	while ((place = tw_capture_place_next(scan->capture, image, &at))) {
		uint64_t calls = place->place_id < counts->count ? counts->calls[place->place_id] : 0;
		if (!calls)
			continue;
		/* A row is a function, wherever it was called from: declared functions and sleds have no caller. */
		const char *caller = "(any object)";
		char caller_name[TW_NAME_TEXT_BYTES];
		if (place->caller) {
			caller_name[tw_clean(place->caller->name, strlen(place->caller->name), caller_name,
					     sizeof caller_name - 1)] = 0;
			caller = caller_name;
		}
		if (!add_row(&totals->functions, text, tw_name_function(place->function, text, sizeof text), calls))
			return false;
		struct tw_totals_row *row = &totals->functions.rows[totals->functions.count - 1];
		row->function = place->function;
		row->lacks_arity = tw_name_lacks_arity(place->function);
		if (!add_row(&totals->callers, caller, strlen(caller), calls))
			return false;
		counts->calls[place->place_id] = 0;
	}
	uint64_t unknown = counts->unknown;
	for (uint32_t id = 0; id < counts->count; id++)
		unknown += counts->calls[id];
	return !unknown || (add_row(&totals->functions, "(not defined in the capture)", 28, unknown) &&
			    add_row(&totals->callers, "(not defined in the capture)", 28, unknown));
}

static bool name_stream(struct tw_totals *totals, const struct tw_totals_scan *scan, uint32_t number)
{
	const struct tw_capture_stream *stream = tw_capture_stream(scan->capture, number);
	char text[TW_THREAD_TEXT_BYTES], name[TW_THREAD_NAME_BYTES];
	if (!stream || (scan->filter->wants_stream && !scan->filter->wants_stream(scan->filter->context, stream)))
		return true;
	uint64_t calls = scan->stream_calls[number];
	if (!add_row(&totals->threads, text, tw_thread_text(scan->capture, stream, text), calls))
		return false;
	struct tw_totals_row *row = &totals->threads.rows[totals->threads.count - 1];
	row->thread_id = (uint32_t)stream->thread_id;
	row->exec = tw_exec_number(scan->capture, stream->image);
	row->thread_name = strdup(tw_thread_name(scan->capture, stream, name));
	if (!row->thread_name)
		return false;
	row->thread = stream->thread;
	row->events = scan->stream_events[number];
	row->start_ns = stream->start_ns;
	row->end_ns = stream->end_ns;
	bool is_part = scan->filter->from_ns || scan->filter->to_ns;
	memcpy(row->lost, is_part ? scan->stream_lost[number] : stream->lost, sizeof row->lost);
	row->overwritten = tw_missing_overwritten(scan->capture, number, row->lost);
	/* The stream begins with the loss. */
	if (row->overwritten && scan->stream_first[number])
		row->start_ns = row->kept_from_ns = tw_capture_ns(scan->capture, scan->stream_first[number]);
	totals->overwritten += row->overwritten;
	totals->calls += row->calls;
	totals->events += row->events;
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
		totals->lost[cause] += row->lost[cause];
	return true;
}

static int by_thread(const void *a, const void *b)
{
	const struct tw_totals_row *x = a, *y = b;
	return TW_ORDER(x->thread, y->thread) ?: TW_ORDER(x->start_ns, y->start_ns);
}

/* A thread may have had several rings: joins them to one row. */
static void join_threads(struct tw_totals_table *table)
{
	size_t kept = 0;
	if (table->count)
		qsort(table->rows, table->count, sizeof *table->rows, by_thread);
	for (size_t i = 0; i < table->count; i++) {
		struct tw_totals_row *row = &table->rows[i], *last = kept ? &table->rows[kept - 1] : NULL;
		if (!last || last->thread != row->thread) {
			table->rows[kept++] = *row;
			continue;
		}
		last->calls += row->calls;
		last->events += row->events;
		last->end_ns = row->end_ns > last->end_ns ? row->end_ns : last->end_ns;
		for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
			last->lost[cause] += row->lost[cause];
		last->overwritten += row->overwritten;
		last->kept_from_ns = row->overwritten ? row->kept_from_ns : last->kept_from_ns;
		free(row->name);
		free(row->thread_name);
	}
	table->count = kept;
	for (size_t i = 0; i < kept; i++) {
		struct tw_totals_row *row = &table->rows[i];
		row->seconds = row->end_ns > row->start_ns ? (double)(row->end_ns - row->start_ns) / 1e9 : 0;
	}
}

static bool has_wanted_stream(const struct tw_totals_scan *scan, uint32_t image)
{
	const struct tw_capture_filter *filter = scan->filter;
	bool found = !filter->wants_stream;
	for (uint32_t i = 0; i < scan->stream_count && !found; i++) {
		const struct tw_capture_stream *stream = tw_capture_stream(scan->capture, i);
		found = stream && stream->image == image && filter->wants_stream(filter->context, stream);
	}
	return found;
}

static bool name_all(struct tw_totals *totals, const struct tw_totals_scan *scan)
{
	for (uint32_t i = 0; i < scan->image_count; i++) {
		if (!name_image(totals, scan, i))
			return false;
	}
	for (uint32_t i = 0; i < scan->stream_count; i++) {
		if (!name_stream(totals, scan, i))
			return false;
	}
	/* Threads without a ring are in no stream: they may be among the selected ones. */
	for (uint32_t i = 0; i < scan->image_count; i++) {
		if (has_wanted_stream(scan, i))
			totals->lost[TW_LOST_NO_RING] +=
				tw_capture_no_ring_lost(scan->capture, i, scan->filter->from_ns, scan->filter->to_ns);
	}
	totals->all_events = scan->all_events;
	join_rows(&totals->functions);
	join_rows(&totals->callers);
	join_threads(&totals->threads);
	return true;
}

/* ---- counted calls ---- */

/* Since when a place is counted, by place id; zeros: it is not. */
static uint64_t *counted_since(const struct tw_capture *capture, uint32_t image, uint32_t place_count)
{
	uint64_t *since = calloc(place_count + (size_t)1, sizeof *since);
	struct tw_capture_counted counted;
	uint32_t at = 0;
	while (since && tw_capture_counted_next(capture, image, &at, &counted)) {
		if (counted.place_id < place_count)
			since[counted.place_id] = counted.since_ns;
	}
	return since;
}

/* The row of the thread: its number and name, or that of all threads that are not told apart. */
static bool add_counted_thread(struct tw_totals *totals, const struct tw_totals_scan *scan, uint32_t image,
			       const struct tw_capture_count *count)
{
	const struct tw_capture_tracee *tracee = tw_capture_tracee(scan->capture, image, count->tracee_id);
	char text[TW_THREAD_TEXT_BYTES] = "(threads that are not told apart)";
	size_t bytes = strlen(text);
	if (count->lease && tracee) {
		bytes = (size_t)snprintf(text, sizeof text, "%d ", tracee->thread_id);
		bytes += tw_clean(tracee->name, strlen(tracee->name), text + bytes, sizeof text - bytes - 1);
	}
	if (!add_row(&totals->counted_threads, text, bytes, count->count))
		return false;
	struct tw_totals_row *row = &totals->counted_threads.rows[totals->counted_threads.count - 1];
	row->thread_id = count->lease && tracee ? (uint32_t)tracee->thread_id : 0;
	row->thread_name = strdup(count->lease && tracee ? tracee->name : "");
	return row->thread_name != NULL;
}

static bool name_counted(struct tw_totals *totals, const struct tw_totals_scan *scan, uint32_t image,
			 const uint64_t *since)
{
	const struct tw_capture_count *count;
	const struct image_counts *counts = &scan->images[image];
	struct tw_capture_info info;
	char text[TW_NAME_TEXT_BYTES];
	tw_capture_info(scan->capture, &info);
	for (uint32_t at = 0; (count = tw_capture_count_next(scan->capture, image, &at));) {
		const struct tw_capture_place *place = tw_capture_place(scan->capture, image, count->place_id);
		if (!place || count->place_id >= counts->count || !counts->is_wanted[count->place_id])
			continue;
		if (!add_row(&totals->counted, text, tw_name_function(place->function, text, sizeof text),
			     count->count) ||
		    !add_counted_thread(totals, scan, image, count))
			return false;
		struct tw_totals_row *row = &totals->counted.rows[totals->counted.count - 1];
		row->function = place->function;
		row->lacks_arity = tw_name_lacks_arity(place->function);
		if (since[count->place_id] > info.zero_ns && info.events)
			row->since = (double)(since[count->place_id] - info.zero_ns) / 1e9;
		totals->counted_calls += count->count;
	}
	return true;
}

/* Of a part of the time, or of one thread, nothing is known. */
static bool name_all_counted(struct tw_totals *totals, const struct tw_totals_scan *scan)
{
	bool is_done = true;
	for (uint32_t i = 0; i < scan->image_count && is_done; i++) {
		uint64_t *since = counted_since(scan->capture, i, scan->images[i].count);
		is_done = since && name_counted(totals, scan, i, since);
		free(since);
	}
	join_rows(&totals->counted);
	join_rows(&totals->counted_threads);
	tw_totals_sort(&totals->counted, false);
	tw_totals_sort(&totals->counted_threads, false);
	return is_done;
}

int tw_totals_begin(struct tw_totals *totals, struct tw_capture *capture, const struct tw_capture_filter *filter,
		    struct tw_count *count)
{
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	*totals = (struct tw_totals){.scan = calloc(1, sizeof *totals->scan)};
	struct tw_totals_scan *scan = totals->scan;
	if (!scan)
		return TW_ENOMEM;
	*scan = (struct tw_totals_scan){.filter = filter,
					.capture = capture,
					.image_count = info.images,
					.stream_count = info.streams,
					.kinds = totals->kinds};
	*count = (struct tw_count){scan, see};
	scan->images = calloc(info.images + 1, sizeof *scan->images);
	scan->stream_calls = calloc(info.streams + 1, sizeof *scan->stream_calls);
	scan->stream_events = calloc(info.streams + 1, sizeof *scan->stream_events);
	scan->stream_first = calloc(info.streams + 1, sizeof *scan->stream_first);
	scan->stream_lost = calloc(info.streams + 1, sizeof *scan->stream_lost);
	if (!scan->images || !scan->stream_calls || !scan->stream_events || !scan->stream_first || !scan->stream_lost)
		return TW_ENOMEM;
	for (uint32_t i = 0; i < info.images; i++) {
		if (!init_image(&scan->images[i], capture, i, filter))
			return TW_ENOMEM;
	}
	return 0;
}

static void free_scan(struct tw_totals *totals)
{
	struct tw_totals_scan *scan = totals->scan;
	if (!scan)
		return;
	for (uint32_t i = 0; scan->images && i < scan->image_count; i++) {
		free(scan->images[i].calls);
		free(scan->images[i].is_wanted);
	}
	free(scan->images);
	free(scan->stream_calls);
	free(scan->stream_events);
	free(scan->stream_first);
	free(scan->stream_lost);
	free(scan);
	totals->scan = NULL;
}

int tw_totals_end(struct tw_totals *totals)
{
	const struct tw_capture_filter *filter = totals->scan->filter;
	bool is_part = filter->from_ns || filter->to_ns || filter->wants_stream;
	bool is_made = name_all(totals, totals->scan) && (is_part || name_all_counted(totals, totals->scan));
	free_scan(totals);
	return is_made ? 0 : TW_ENOMEM;
}

int tw_totals_make(struct tw_totals *totals, struct tw_places *places, struct tw_capture *capture,
		   const struct tw_capture_filter *filter)
{
	struct tw_count counts[2];
	size_t count = 0;
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	bool has_places = !info.has_moments_only && !filter->from_ns && !filter->to_ns;
	int error = tw_totals_begin(totals, capture, filter, &counts[count++]);
	if (!error && has_places)
		error = tw_places_begin(places, capture, &counts[count++]);
	if (!error)
		error = tw_scan(capture, filter, counts, count, "counting");
	if (!error)
		error = tw_totals_end(totals);
	return error || !has_places ? error : tw_places_end(places);
}

int tw_totals_take(struct tw_totals *totals, const struct tw_places *places, struct tw_capture *capture,
		   const struct tw_capture_filter *filter)
{
	const struct tw_places_scan *from = places->scan;
	struct tw_count unused;
	int error = tw_totals_begin(totals, capture, filter, &unused);
	if (error)
		return error;
	struct tw_totals_scan *scan = totals->scan;
	for (uint32_t i = 0; i < scan->image_count; i++) {
		scan->images[i].unknown = from->unknown[i];
		/* Both have the highest id of the capture's definitions. */
		for (uint32_t id = 0; id < scan->images[i].count && id < places->images[i].count; id++)
			scan->images[i].calls[id] = from->seen[i][id].made;
	}
	for (uint32_t i = 0; i < scan->stream_count; i++) {
		scan->stream_calls[i] = from->streams[i].calls;
		scan->stream_events[i] = from->streams[i].events;
		scan->all_events += from->streams[i].events;
	}
	for (unsigned kind = TW_CAPTURE_SWITCH + 1; kind < 64; kind++) {
		if (kind != TW_CAPTURE_CALL && kind != TW_CAPTURE_OWN_TIME)
			totals->kinds[kind] = from->kinds[kind];
	}
	return tw_totals_end(totals);
}

uint64_t tw_totals_durations(const struct tw_totals *totals, const struct tw_places *places)
{
	uint64_t durations = places->has_returns ? totals->calls : 0;
	for (unsigned kind = 0; kind < 64; kind++) {
		bool is_stretch = kind == TW_CAPTURE_RETURN_FROM || kind == TW_CAPTURE_EXCEPTION_FROM ||
				  (kind >= TW_CAPTURE_GC_MINOR_START && kind <= TW_CAPTURE_GC_MAJOR_END);
		durations += is_stretch ? totals->kinds[kind] : 0;
	}
	return durations;
}

bool tw_totals_have_activity(const struct tw_totals *totals)
{
	uint64_t events = totals->kinds[TW_CAPTURE_MONITOR];
	for (unsigned kind = TW_CAPTURE_SEND; kind <= TW_CAPTURE_OUT_EXITED; kind++)
		events += totals->kinds[kind];
	return events != 0;
}

static void free_table(struct tw_totals_table *table)
{
	for (size_t i = 0; i < table->count; i++) {
		free(table->rows[i].name);
		free(table->rows[i].thread_name);
	}
	free(table->rows);
}

void tw_totals_free(struct tw_totals *totals)
{
	free_scan(totals);
	free_table(&totals->functions);
	free_table(&totals->callers);
	free_table(&totals->threads);
	free_table(&totals->counted);
	free_table(&totals->counted_threads);
	*totals = (struct tw_totals){0};
}
