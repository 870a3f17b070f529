/* SPDX-License-Identifier: Apache-2.0 */
/* join.c - calls that are open from one segment to another: residues.h says how. */
#include "fleet/rows.h"
#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

struct frame {
	uint32_t sum;
	uint32_t segment; /* the number of its segment in its image */
	uint64_t at_ns, own_ns, inner_ns;
};

/* A thread between two segments. */
struct thread {
	const char *name; /* borrowed from its rows */
	struct frame *frames;
	size_t count, capacity;
	uint64_t own_ns;    /* the tracer's time in all segments so far */
	uint64_t before_ns; /* without the last of them */
	uint64_t last_ns;
};

struct joining {
	struct tw_fleet_rows *rows;
	const struct tw_fleet_segment *segment;
	struct thread *threads;
	size_t count, capacity;
};

static uint64_t u64(const json_t *row, const char *name)
{
	json_int_t value = json_integer_value(json_object_get(row, name));
	return value > 0 ? (uint64_t)value : 0;
}

static bool has_frame(const struct thread *thread, uint32_t sum)
{
	for (size_t i = 0; i < thread->count; i++) {
		if (thread->frames[i].sum == sum)
			return true;
	}
	return false;
}

static void add_inner(struct thread *thread, uint64_t ns)
{
	if (thread->count)
		thread->frames[thread->count - 1].inner_ns += ns;
}

/* Is it one of the slowest? */
static void take_slow(struct joining *joining, const struct frame *frame, uint64_t total_ns)
{
	if (!joining->rows->slowest)
		return;
	uint64_t bins[TW_FLEET_BINS] = {0};
	bins[tw_fleet_bin(total_ns)] = 1;
	const struct tw_fleet_sum call = {.name = joining->rows->sums[frame->sum].name,
					  .calls = 1,
					  .returned = 1,
					  .timed = 1,
					  .total_ns = total_ns,
					  .self_ns = total_ns - frame->inner_ns,
					  .min_ns = total_ns,
					  .max_ns = total_ns,
					  .bins = bins};
	uint32_t before = joining->segment->image_segment - frame->segment;
	joining->rows->has_no_memory |= !tw_fleet_slowest_take(joining->rows, joining->segment, before, &call);
}

/* Ends the innermost frame. @within_ns: of its function, that was counted as outermost inside it. */
static void end_frame(struct joining *joining, struct thread *thread, uint64_t at_ns, uint64_t own_ns, bool is_return,
		      uint64_t within_ns)
{
	struct frame frame = thread->frames[--thread->count];
	struct tw_fleet_sum *sum = &joining->rows->sums[frame.sum];
	uint64_t gross = at_ns > frame.at_ns ? at_ns - frame.at_ns : 0;
	uint64_t own = own_ns > frame.own_ns ? own_ns - frame.own_ns : 0, total = gross > own ? gross - own : 0;
	if (total < frame.inner_ns)
		total = frame.inner_ns;
	if (!has_frame(thread, frame.sum))
		sum->total_ns += total - within_ns;
	sum->self_ns += total - frame.inner_ns;
	sum->returned += is_return;
	sum->open += !is_return;
	if (is_return) {
		tw_fleet_time(joining->rows, sum, total);
		take_slow(joining, &frame, total);
	}
	add_inner(thread, total);
}

static uint32_t sum_at(const struct joining *joining, const json_t *id)
{
	uint64_t number = json_is_integer(id) ? (uint64_t)json_integer_value(id) : UINT64_MAX;
	return number < joining->segment->sum_count ? joining->segment->sums[number] : UINT32_MAX;
}

static void take_return(struct joining *joining, struct thread *thread, const json_t *row)
{
	uint32_t sum = sum_at(joining, json_object_get(row, "id"));
	size_t at = thread->count;
	add_inner(thread, u64(row, "inner"));
	while (at && thread->frames[at - 1].sum != sum)
		at--;
	if (!at || sum == UINT32_MAX)
		return;
	/* Frames within it have no return. */
	for (size_t i = at; i < thread->count; i++)
		joining->rows->sums[thread->frames[i].sum].cut++;
	thread->count = at;
	end_frame(joining, thread, u64(row, "at"), thread->own_ns + u64(row, "own"), true, u64(row, "within"));
	joining->rows->sums[sum].exceptions += json_is_true(json_object_get(row, "exception"));
}

/* The segment's own calls of a function that is open all the time are no outermost ones. */
static void take_back(struct joining *joining, const struct thread *thread, const json_t *row)
{
	const json_t *ids = json_object_get(row, "ids"), *totals = json_object_get(row, "totals");
	for (size_t i = 0; i < json_array_size(ids) && i < json_array_size(totals); i++) {
		uint32_t sum = sum_at(joining, json_array_get(ids, i));
		if (sum != UINT32_MAX && has_frame(thread, sum))
			joining->rows->sums[sum].total_ns -= (uint64_t)json_integer_value(json_array_get(totals, i));
	}
}

static void take_open(struct joining *joining, struct thread *thread, const json_t *row)
{
	uint32_t sum = sum_at(joining, json_object_get(row, "id"));
	if (sum == UINT32_MAX)
		return;
	if (!tw_grow(thread->frames, thread->count, thread->capacity)) {
		joining->rows->has_no_memory = true;
		return;
	}
	thread->frames[thread->count++] = (struct frame){sum, joining->segment->image_segment, u64(row, "at"),
							 thread->before_ns + u64(row, "own"), u64(row, "inner")};
}

static struct thread *thread_of(struct joining *joining, const json_t *row)
{
	const char *name = json_string_value(json_object_get(row, "thread"));
	if (!name)
		return NULL;
	for (size_t i = 0; i < joining->count; i++) {
		if (strcmp(joining->threads[i].name, name) == 0)
			return &joining->threads[i];
	}
	if (!tw_grow(joining->threads, joining->count, joining->capacity)) {
		joining->rows->has_no_memory = true;
		return NULL;
	}
	joining->threads[joining->count] = (struct thread){.name = name};
	return &joining->threads[joining->count++];
}

/* Rows of a thread follow one another as they are taken: its returns, the thread, what is open. */
static void take_segment(struct joining *joining)
{
	const json_t *row;
	size_t i;
	json_array_foreach(joining->segment->crossing, i, row)
	{
		const char *kind = json_string_value(json_object_get(row, "kind"));
		struct thread *thread = thread_of(joining, row);
		if (!thread || !kind)
			continue;
		if (strcmp(kind, "return") == 0) {
			take_return(joining, thread, row);
		} else if (strcmp(kind, "thread") == 0) {
			add_inner(thread, u64(row, "inner"));
			take_back(joining, thread, row);
			thread->last_ns = u64(row, "last") > thread->last_ns ? u64(row, "last") : thread->last_ns;
			thread->before_ns = thread->own_ns;
			thread->own_ns += u64(row, "own");
		} else {
			take_open(joining, thread, row);
		}
	}
}

/* Segments are missing: calls that were open before have no known end. */
static void forget_all(struct joining *joining)
{
	for (size_t i = 0; i < joining->count; i++) {
		struct thread *thread = &joining->threads[i];
		for (size_t j = 0; j < thread->count; j++)
			joining->rows->sums[thread->frames[j].sum].cut++;
		thread->count = 0;
	}
}

/* Segments that are absent before this one. */
static void miss(struct tw_fleet_image *image, const struct tw_fleet_segment *before,
		 const struct tw_fleet_segment *now)
{
	uint64_t through = before->events_before + before->events;
	image->missing += now->image_segment - before->image_segment - 1;
	image->missing_events += now->events_before > through ? now->events_before - through : 0;
}

static void join_image(struct tw_fleet_rows *rows, struct tw_fleet_image *image)
{
	struct joining joining = {.rows = rows};
	const struct tw_fleet_segment *before = NULL;
	for (uint32_t i = image->first; i < image->first + image->count; i++) {
		joining.segment = &rows->segments[i];
		if (before && joining.segment->image_segment > before->image_segment + 1) {
			miss(image, before, joining.segment);
			forget_all(&joining);
		}
		before = joining.segment;
		if (before->is_dropped) {
			image->missing++;
			image->dropped++;
			image->missing_events += before->events;
		}
		if (before->crossing)
			take_segment(&joining);
		else
			forget_all(&joining);
	}
	for (size_t i = 0; i < joining.count; i++) {
		struct thread *thread = &joining.threads[i];
		while (thread->count)
			end_frame(&joining, thread, thread->last_ns, thread->own_ns, false, 0);
		free(thread->frames);
	}
	free(joining.threads);
}

static int by_place(const void *a, const void *b)
{
	const struct tw_fleet_segment *x = a, *y = b;
	if (x->image != y->image)
		return x->image < y->image ? -1 : 1;
	return x->image_segment < y->image_segment ? -1 : x->image_segment > y->image_segment;
}

void tw_fleet_join(struct tw_fleet_rows *rows)
{
	if (rows->segment_count)
		qsort(rows->segments, rows->segment_count, sizeof *rows->segments, by_place);
	for (uint32_t i = 0; i < rows->segment_count; i++) {
		struct tw_fleet_image *image = &rows->images[rows->segments[i].image];
		image->first = image->count ? image->first : i;
		image->count++;
	}
	for (size_t i = 0; i < rows->image_count; i++)
		join_image(rows, &rows->images[i]);
}
