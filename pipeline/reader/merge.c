/* SPDX-License-Identifier: Apache-2.0 */
/* merge.c - cursors, the heap of them, and cursors that wait for runs. */
#include "pipeline/reader/merge.h"
#include "base/assert.h"
#include "base/error.h"
#include "pipeline/reader/scan.h"

#include <stdlib.h>

/* The most memory for blocks that are decoded ahead. */
#define AHEAD_BYTES_MAX (UINT64_C(64) << 20)

/* ---- the heap ---- */

static bool is_before(const struct tw_merge_cursor *a, const struct tw_merge_cursor *b)
{
	if (a->ticks != b->ticks)
		return a->ticks < b->ticks;
	if (a->scheduler_id != b->scheduler_id)
		return a->scheduler_id < b->scheduler_id;
	return a->lease < b->lease;
}

static struct tw_merge_cursor *at_index(const struct tw_merge *merge, uint32_t index)
{
	return &merge->cursors[merge->heap[index]];
}

static void put_at(struct tw_merge *merge, uint32_t index, struct tw_merge_cursor *cursor)
{
	merge->heap[index] = cursor->number;
	cursor->heap_index = index;
}

static void sift_up(struct tw_merge *merge, struct tw_merge_cursor *cursor)
{
	uint32_t index = cursor->heap_index;

	while (index && is_before(cursor, at_index(merge, (index - 1) / 2))) {
		put_at(merge, index, at_index(merge, (index - 1) / 2));
		index = (index - 1) / 2;
	}
	put_at(merge, index, cursor);
}

static void sift_down(struct tw_merge *merge, struct tw_merge_cursor *cursor)
{
	uint32_t index = cursor->heap_index;

	for (;;) {
		uint32_t child = index * 2 + 1;

		if (child >= merge->heap_count)
			break;
		if (child + 1 < merge->heap_count && is_before(at_index(merge, child + 1), at_index(merge, child)))
			child++;
		if (!is_before(at_index(merge, child), cursor))
			break;
		put_at(merge, index, at_index(merge, child));
		index = child;
	}
	put_at(merge, index, cursor);
}

static void push(struct tw_merge *merge, struct tw_merge_cursor *cursor)
{
	cursor->heap_index = merge->heap_count++;
	sift_up(merge, cursor);
}

static void remove_from_heap(struct tw_merge *merge, struct tw_merge_cursor *cursor)
{
	struct tw_merge_cursor *last = at_index(merge, --merge->heap_count);

	if (last == cursor)
		return;
	put_at(merge, cursor->heap_index, last);
	sift_up(merge, last);
	sift_down(merge, last);
}

/* Is the first cursor of the heap still the earliest? */
static bool is_first(const struct tw_merge *merge, const struct tw_merge_cursor *cursor)
{
	for (uint32_t child = 1; child <= 2 && child < merge->heap_count; child++) {
		if (is_before(at_index(merge, child), cursor))
			return false;
	}
	return true;
}

/* ---- runs ---- */

static void wake_waiters(struct tw_merge *merge, struct tw_runs_tracee *tracee)
{
	while (tracee->waiters != TW_RUNS_NOBODY) {
		struct tw_merge_cursor *waiter = &merge->cursors[tracee->waiters];

		tracee->waiters = waiter->next_waiter;
		waiter->is_waiting = false;
		merge->waiting_count--;
		merge->is_changed = true;
		push(merge, waiter);
	}
}

/* The cursor's current run is over. */
static void finish_run(struct tw_merge *merge, struct tw_merge_cursor *cursor)
{
	struct tw_runs_tracee *tracee;
	uint64_t run = cursor->run_seq;

	cursor->run_seq = 0;
	cursor->needs_check = false;
	if (!merge->has_runs || !run)
		return;
	tracee = tw_runs_find(&merge->runs, cursor->image, cursor->tracee_id);
	if (!tracee)
		return;
	if (tracee->cursor == cursor->number)
		tracee->cursor = TW_RUNS_NOBODY;
	if (run > tracee->finished_run)
		tracee->finished_run = run;
	wake_waiters(merge, tracee);
}

static void start_run(struct tw_merge *merge, struct tw_merge_cursor *cursor)
{
	struct tw_runs_tracee *tracee = tw_runs_find(&merge->runs, cursor->image, cursor->tracee_id);

	if (tracee) {
		tracee->cursor = cursor->number;
		tracee->active_run = cursor->run_seq;
	}
}

static bool is_switch(const uint8_t *record)
{
	return TW_RB_HEAD_KIND(tw_record_head(record)) == TW_EVENT_SWITCH;
}

/* ---- blocks ---- */

static const struct tw_source_block *wanted_block(const struct tw_merge *merge, struct tw_merge_cursor *cursor)
{
	while (cursor->next_block < cursor->end_block) {
		const struct tw_source_block *block = &merge->capture->blocks[cursor->next_block];

		if (tw_scan_wants_block(merge->capture, merge->filter, &block->header))
			return block;
		cursor->next_block++;
	}
	return NULL;
}

/* The cursor has passed its block. If records were handed out, now or with an earlier tw_merge_lend(), they stay. */
static void retire(struct tw_merge *merge, struct tw_merge_cursor *cursor)
{
	struct tw_decode_job *job = cursor->job;

	if (job && job->is_lent) {
		job->next_free = merge->retired;
		merge->retired = job;
		merge->retired_bytes += job->raw_capacity;
	} else if (job) {
		tw_decode_put_back(merge->pool, job);
	}
	cursor->job = NULL;
	cursor->at = cursor->end = NULL;
}

/* Begins to decode the block that this cursor needs next. */
static void decode_ahead(struct tw_merge *merge, struct tw_merge_cursor *cursor)
{
	const struct tw_source_block *block = wanted_block(merge, cursor);

	if (!block || tw_decode_pool_depth(merge->pool) == 1 ||
	    merge->ahead_bytes + block->header.raw_bytes > AHEAD_BYTES_MAX)
		return;
	cursor->ahead = tw_decode_begin(merge->pool, block);
	if (cursor->ahead)
		merge->ahead_bytes += block->header.raw_bytes;
}

/* Moves the cursor to the first record of its new block that is not known yet; false: there is none. */
static bool enter_block(struct tw_merge *merge, struct tw_merge_cursor *cursor)
{
	const struct tw_source_block *block = cursor->job->block;
	struct tw_scan_start start = tw_scan_start(block, cursor->job->raw);

	if (!start.records)
		return false;
	cursor->at = start.first;
	cursor->end = cursor->job->raw + block->header.raw_bytes;
	if (start.sequence != cursor->sequence) {
		finish_run(merge, cursor);
		cursor->tracee_id = start.tracee_id;
		cursor->run_seq = start.run_seq;
		cursor->needs_check = start.run_seq != 0;
	}
	cursor->sequence = start.sequence;
	cursor->ticks = tw_get64(cursor->at);
	if (is_switch(cursor->at))
		finish_run(merge, cursor);
	return true;
}

/* It is reported where its events would be, and by the thread that owns the capture. */
static void keep_damaged(struct tw_merge *merge, struct tw_decode_job *job)
{
	tw_decode_empty(job);
	job->next_free = merge->damaged;
	merge->damaged = job;
}

/*
 * Loads the next block that can be read. Returns 1, 0 when there is none: the cursor is at its end, or TW_ENOMEM.
 * Afterwards the cursor's position in the heap must be updated.
 */
static int load(struct tw_merge *merge, struct tw_merge_cursor *cursor)
{
	const struct tw_source_block *block;

	while ((block = wanted_block(merge, cursor)) != NULL) {
		struct tw_decode_job *job = cursor->ahead;
		int error;

		if (job)
			merge->ahead_bytes -= block->header.raw_bytes;
		else
			job = tw_decode_begin(merge->pool, block);
		cursor->ahead = NULL;
		if (!job)
			return TW_ENOMEM;
		cursor->next_block++;
		error = tw_decode_wait(merge->pool, job);
		if (error) {
			keep_damaged(merge, job);
			continue;
		}
		cursor->job = job;
		decode_ahead(merge, cursor);
		if (enter_block(merge, cursor))
			return 1;
		retire(merge, cursor);
	}
	finish_run(merge, cursor);
	return 0;
}

/* Loads the block of a cursor in the heap, and updates its position. */
static int load_in_heap(struct tw_merge *merge, struct tw_merge_cursor *cursor)
{
	int loaded = load(merge, cursor);

	if (loaded == 0)
		remove_from_heap(merge, cursor);
	if (loaded > 0) {
		sift_down(merge, cursor);
		sift_up(merge, cursor);
	}
	return loaded < 0 ? loaded : 0;
}

/* ---- waiting ---- */

/* Must an earlier run of this tracee come first, and is it unfinished? */
static int must_wait(struct tw_merge *merge, struct tw_merge_cursor *cursor, uint32_t tracee_id, uint64_t run)
{
	struct tw_runs_tracee *tracee = tw_runs_find(&merge->runs, cursor->image, tracee_id);
	uint64_t before = tracee ? tw_runs_before(tracee, run) : 0;
	struct tw_merge_cursor *holder;
	int error;

	if (!before || tracee->finished_run >= before)
		return 0;
	if (tracee->cursor == TW_RUNS_NOBODY || tracee->cursor == cursor->number)
		return 1;
	/* It may be over: the stream that holds it ends with its block, or a switch comes next. */
	holder = &merge->cursors[tracee->cursor];
	if (!holder->at && !holder->is_waiting) {
		error = load_in_heap(merge, holder);
		if (error)
			return error;
	}
	return tracee->finished_run < before;
}

static void wait_for(struct tw_merge *merge, struct tw_merge_cursor *cursor, uint32_t tracee_id)
{
	struct tw_runs_tracee *tracee = tw_runs_find(&merge->runs, cursor->image, tracee_id);

	remove_from_heap(merge, cursor);
	cursor->is_waiting = true;
	cursor->waits_for = tracee_id;
	cursor->next_waiter = tracee->waiters;
	tracee->waiters = cursor->number;
	merge->waiting_count++;
}

/* All cursors wait: the earliest one waits for a run that never comes, and is forced on. */
static void force_one(struct tw_merge *merge)
{
	struct tw_merge_cursor *first = NULL;
	struct tw_runs_tracee *tracee;
	uint32_t *link;

	for (uint32_t i = 0; i < merge->cursor_count; i++) {
		struct tw_merge_cursor *cursor = &merge->cursors[i];

		if (cursor->is_waiting && (!first || is_before(cursor, first)))
			first = cursor;
	}
	tracee = tw_runs_find(&merge->runs, first->image, first->waits_for);
	link = &tracee->waiters;
	while (*link != first->number)
		link = &merge->cursors[*link].next_waiter;
	*link = first->next_waiter;
	first->is_waiting = false;
	first->is_forced = true;
	merge->waiting_count--;
	push(merge, first);
}

/* May the first cursor's record be handed out? 1, 0: it waits now, or an error. */
static int may_go(struct tw_merge *merge, struct tw_merge_cursor *cursor)
{
	uint32_t tracee_id = cursor->tracee_id;
	uint64_t run = cursor->run_seq;
	int waits;

	if (!cursor->needs_check && !is_switch(cursor->at))
		return 1;
	if (is_switch(cursor->at)) {
		tracee_id = TW_RB_HEAD_ID(tw_record_head(cursor->at));
		run = tw_get64(cursor->at + TW_CODEC_HEAD_BYTES);
	}
	if (!merge->has_runs) {
		cursor->tracee_id = tracee_id;
		cursor->needs_check = false;
		return 1;
	}
	waits = cursor->is_forced || !tracee_id ? 0 : must_wait(merge, cursor, tracee_id, run);
	if (waits > 0)
		wait_for(merge, cursor, tracee_id);
	if (waits)
		return waits > 0 ? 0 : waits;
	cursor->is_forced = false;
	cursor->needs_check = false;
	cursor->tracee_id = tracee_id;
	cursor->run_seq = run;
	start_run(merge, cursor);
	return 1;
}

int tw_merge_next(struct tw_merge *merge, struct tw_merge_cursor **out)
{
	*out = NULL;
	for (;;) {
		struct tw_merge_cursor *cursor;
		int result;

		if (merge->error)
			return merge->error;

		if (!merge->heap_count && merge->waiting_count)
			force_one(merge);
		if (!merge->heap_count)
			return 0;
		cursor = at_index(merge, 0);
		if (tw_unlikely(cursor->ticks > merge->runs_through)) {
			result = tw_merge_find_runs_until(merge, cursor->ticks);
			if (result)
				return result;
		}
		if (!cursor->at) {
			result = load_in_heap(merge, cursor);
			if (result)
				return result;
			continue;
		}
		result = may_go(merge, cursor);
		if (result < 0)
			return result;
		/* Loading another block may have changed which cursor is first. */
		if (result && at_index(merge, 0) == cursor) {
			merge->is_changed = false;
			*out = cursor;
			return 0;
		}
	}
}

/* Moves the cursor past a block: its position in the heap is that of the next block's time. */
static void leave_block(struct tw_merge *merge, struct tw_merge_cursor *cursor)
{
	const struct tw_source_block *block = cursor->stream == TW_CAPTURE_NONE ? NULL : wanted_block(merge, cursor);

	if (!block) {
		finish_run(merge, cursor);
		remove_from_heap(merge, cursor);
		return;
	}
	cursor->ticks = block->header.first_ticks;
	sift_down(merge, cursor);
	sift_up(merge, cursor);
	/* The run may end with this block, and another cursor may wait for that: loads the next block at once. */
	if (merge->has_runs && cursor->run_seq)
		merge->error = load_in_heap(merge, cursor);
}

bool tw_merge_step(struct tw_merge *merge, struct tw_merge_cursor *cursor)
{
	cursor->sequence += tw_scan_sequence_step(cursor->at);
	cursor->at += TW_RB_HEAD_BYTES(tw_record_head(cursor->at));
	if (cursor->at < cursor->end) {
		cursor->ticks = tw_get64(cursor->at);
		if (tw_unlikely(is_switch(cursor->at))) {
			finish_run(merge, cursor);
			sift_down(merge, cursor);
			return false;
		}
		if (tw_likely(is_first(merge, cursor) && !merge->is_changed))
			return true;
		sift_down(merge, cursor);
		return false;
	}
	retire(merge, cursor);
	leave_block(merge, cursor);
	return false;
}

/* Before these ticks the first cursor of the heap stays the first. */
static uint64_t first_until(const struct tw_merge *merge)
{
	uint64_t ticks = UINT64_MAX;

	for (uint32_t child = 1; child <= 2 && child < merge->heap_count; child++) {
		if (at_index(merge, child)->ticks < ticks)
			ticks = at_index(merge, child)->ticks;
	}
	return ticks;
}

const uint8_t *tw_merge_skip(struct tw_merge *merge, struct tw_merge_cursor *cursor, uint32_t max, uint64_t *records)
{
	const uint64_t until = merge->is_changed ? 0 : first_until(merge);
	const uint8_t *at = cursor->at, *next;
	uint64_t sequence = cursor->sequence;
	uint32_t count = 1;

	/* The steps that tw_merge_step() takes to all but the last. */
	for (; count < max; count++, at = next) {
		next = at + TW_RB_HEAD_BYTES(tw_record_head(at));
		if (next >= cursor->end || tw_get64(next) >= until || is_switch(next))
			break;
		sequence += tw_scan_sequence_step(at);
	}
	*records += count;
	cursor->at = at;
	cursor->ticks = tw_get64(at);
	cursor->sequence = sequence;
	next = at + TW_RB_HEAD_BYTES(tw_record_head(at));
	tw_merge_step(merge, cursor);
	return next;
}

void tw_merge_lend(struct tw_merge *merge, struct tw_merge_lent *lent)
{
	*lent = (struct tw_merge_lent){merge->retired, merge->damaged};
	merge->retired = merge->damaged = NULL;
	merge->retired_bytes = 0;
}

static void put_back(struct tw_merge *merge, struct tw_decode_job **list)
{
	while (*list) {
		struct tw_decode_job *job = *list;

		*list = job->next_free;
		tw_decode_put_back(merge->pool, job);
	}
}

void tw_merge_take_back(struct tw_merge *merge, struct tw_merge_lent *lent)
{
	put_back(merge, &lent->retired);
	put_back(merge, &lent->damaged);
}

/* ---- beginning and end ---- */

static void add_stream(struct tw_merge *merge, const struct tw_source_stream *stream)
{
	struct tw_merge_cursor *cursor = &merge->cursors[merge->cursor_count];
	const struct tw_source_block *block;

	/* Views have arrays by stream and by image. */
	TW_ASSERT(stream->info.stream < merge->capture->stream_count &&
		  stream->info.image < merge->capture->image_count);
	*cursor = (struct tw_merge_cursor){
		.stream = stream->info.stream,
		.image = stream->info.image,
		.scheduler_id = stream->info.scheduler_id,
		.number = merge->cursor_count,
		.lease = stream->lease,
		.sequence = UINT64_MAX,
		.next_block = stream->first_block,
		.end_block = stream->first_block + stream->block_count,
	};
	block = wanted_block(merge, cursor);
	if (!block)
		return;
	merge->cursor_count++;
	cursor->ticks = block->header.first_ticks;
	push(merge, cursor);
}

static void add_losses(struct tw_merge *merge, const struct tw_source_image *image)
{
	struct tw_merge_cursor *cursor = &merge->cursors[merge->cursor_count];

	if (!image->loss_count)
		return;
	*cursor = (struct tw_merge_cursor){
		.stream = TW_CAPTURE_NONE,
		.image = image->info.image,
		.number = merge->cursor_count++,
		.ticks = image->losses[0].record.ticks,
		.at = (const uint8_t *)image->losses,
		.end = (const uint8_t *)(image->losses + image->loss_count),
	};
	push(merge, cursor);
}

int tw_merge_init(struct tw_merge *merge, struct tw_capture *capture, const struct tw_capture_filter *filter)
{
	size_t capacity = (size_t)capture->stream_count + capture->image_count + 1;
	int error;

	memset(merge, 0, sizeof *merge);
	merge->capture = capture;
	merge->filter = filter;
	merge->runs_through = UINT64_MAX;
	error = tw_decode_pool_create(capture, &merge->pool);
	if (error)
		return error;
	merge->wants = tw_scan_wanted_streams(capture, filter);
	merge->cursors = malloc(capacity * sizeof *merge->cursors);
	merge->heap = malloc(capacity * sizeof *merge->heap);
	if (!merge->wants || !merge->cursors || !merge->heap)
		error = TW_ENOMEM;
	else if (!filter || !filter->by_time_only)
		error = tw_merge_find_runs(merge);
	if (error) {
		tw_merge_fini(merge);
		return error;
	}
	for (uint32_t i = 0; i < capture->stream_count; i++) {
		if (merge->wants[i])
			add_stream(merge, &capture->streams[i]);
	}
	for (uint32_t i = 0; i < capture->image_count; i++)
		add_losses(merge, capture->images[i]);
	return 0;
}

void tw_merge_fini(struct tw_merge *merge)
{
	put_back(merge, &merge->retired);
	put_back(merge, &merge->damaged);
	for (uint32_t i = 0; i < merge->cursor_count; i++) {
		tw_decode_put_back(merge->pool, merge->cursors[i].job);
		tw_decode_put_back(merge->pool, merge->cursors[i].ahead);
	}
	tw_decode_pool_destroy(merge->pool);
	tw_runs_fini(&merge->runs);
	free(merge->run_blocks);
	free(merge->wants);
	free(merge->cursors);
	free(merge->heap);
}
