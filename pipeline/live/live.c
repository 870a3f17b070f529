/* SPDX-License-Identifier: Apache-2.0 */
/* live.c - rounds over the rings of this process: live.h. */
#include "pipeline/live/live.h"
#include "base/error.h"
#include "base/grow.h"
#include "pipeline/format/definitions.h"
#include "pipeline/format/event.h"
#include "pipeline/format/format.h"

#include <stdlib.h>
#include <string.h>

/* Rings are given back in steps of this fraction of their size. */
#define GIVE_PART 8

void tw_live_init(struct tw_live *live, struct tw_rs *rs, uint32_t image)
{
	memset(live, 0, sizeof *live);
	live->rs = rs;
	live->image = image;
	tw_clock_snapshot(&live->clock);
}

void tw_live_fini(struct tw_live *live)
{
	tw_catalog_fini(&live->catalog);
	free(live->cursors);
	tw_round_fini(&live->runs);
}

/* ---- time ---- */

/* CLOCK_MONOTONIC of ticks of this round, in nanoseconds. */
static uint64_t ns_of(const struct tw_live *live, uint64_t ticks)
{
	double per_ns = (double)tw_clock_ticks_per_second() / 1e9;
	int64_t distance = (int64_t)(ticks - live->clock.ticks);

	if (tw_clock_source() == TW_CLOCK_MONOTONIC)
		return ticks;
	return live->clock.monotonic_ns + (uint64_t)(int64_t)((double)distance / per_ns);
}

uint64_t tw_live_wall_ns(const struct tw_live *live, uint64_t ns)
{
	return live->clock.realtime_ns + (ns - live->clock.monotonic_ns);
}

/* ---- definitions ---- */

static int take_definition(struct tw_live *live, uint32_t type, const void *payload, size_t bytes)
{
	struct tw_definition_head head = {type, (uint32_t)bytes};
	size_t whole = (sizeof head + bytes + 7) & ~(size_t)7;
	uint8_t *block = calloc(1, whole);
	int error;

	if (!block)
		return TW_ENOMEM;
	memcpy(block, &head, sizeof head);
	memcpy(block + sizeof head, payload, bytes);
	error = tw_catalog_add(&live->catalog, block, whole);
	free(block);
	return error;
}

/* Takes in everything that was defined before the rings were read. */
static int take_definitions(struct tw_live *live)
{
	bool has_places = false;
	const void *payload;
	uint32_t type;
	size_t bytes;
	int error = 0;

	while (!error && tw_rs_defs_next(live->rs, live->image, &live->defs_at, &type, &payload, &bytes) > 0) {
		error = take_definition(live, type, payload, bytes);
		has_places |= type == TW_DEF_PLACE || type == TW_DEF_FUNCTION || type == TW_DEF_MODULE;
	}
	if (has_places)
		tw_catalog_finish(&live->catalog);
	return error == TW_ENOMEM ? error : 0;
}

/* ---- records in stretches ---- */

static struct tw_rb_shared *ring_of(const struct tw_live *live, const struct tw_live_cursor *cursor)
{
	return tw_rs_ring(live->rs, (uint32_t)(cursor - live->cursors));
}

/* Loads the next stretch below p2. False: there is none, and the cursor is at p2. */
static bool load(const struct tw_live *live, struct tw_live_cursor *cursor)
{
	const struct tw_rb_shared *shared = ring_of(live, cursor);

	cursor->at = cursor->end = NULL;
	while (cursor->pos < cursor->known_pos) {
		uint64_t end_pos;
		const uint8_t *out;
		int64_t bytes = tw_rb_peek(shared, cursor->pos, shared->data_bytes, &out, &end_pos);
		uint64_t left = cursor->known_pos - cursor->pos;

		if (bytes <= 0) {
			/* Padding; or bytes that no producer writes, which are skipped. */
			cursor->pos =
				end_pos > cursor->pos && end_pos < cursor->known_pos ? end_pos : cursor->known_pos;
			continue;
		}
		cursor->at = out;
		cursor->end = out + ((uint64_t)bytes < left ? (uint64_t)bytes : left);
		cursor->next_pos = (uint64_t)bytes < left && end_pos < cursor->known_pos ? end_pos : cursor->known_pos;
		return true;
	}
	return false;
}

static uint64_t head_of(const uint8_t *record)
{
	return ((const struct tw_rb_record *)(const void *)record)->head;
}

static uint64_t ticks_of(const struct tw_live_cursor *cursor)
{
	return ((const struct tw_rb_record *)(const void *)cursor->at)->ticks;
}

static bool is_switch(const uint8_t *record)
{
	return TW_RB_HEAD_KIND(head_of(record)) == TW_EVENT_SWITCH;
}

static uint64_t run_of(const uint8_t *record)
{
	return tw_event_payload((const struct tw_rb_record *)(const void *)record)[0];
}

/* ---- runs ---- */

/* Adds all runs that a ring holds below p2. */
static int find_runs_of(struct tw_live *live, const struct tw_live_cursor *from)
{
	struct tw_live_cursor cursor = *from;
	uint32_t index = (uint32_t)(from - live->cursors);
	const struct tw_rb_shared *shared = tw_rs_ring(live->rs, index);
	int error = from->needs_check ? tw_round_add(&live->runs, 0, from->tracee_id, from->run_seq) : 0;

	while (!error && cursor.pos < cursor.known_pos) {
		uint64_t end_pos, left = cursor.known_pos - cursor.pos;
		const uint8_t *at;
		int64_t bytes = tw_rb_peek(shared, cursor.pos, shared->data_bytes, &at, &end_pos);

		if (bytes > 0 && (uint64_t)bytes > left)
			bytes = (int64_t)left;
		for (int64_t i = 0; !error && i < bytes; i += TW_RB_HEAD_BYTES(head_of(at + i)))
			if (is_switch(at + i))
				error = tw_round_add(&live->runs, 0, TW_RB_HEAD_ID(head_of(at + i)), run_of(at + i));
		if (end_pos <= cursor.pos)
			break;
		cursor.pos = end_pos;
	}
	return error;
}

static void finish_run(struct tw_live *live, const struct tw_live_cursor *cursor)
{
	if (!live->runs.count || !cursor->run_seq)
		return;
	tw_round_finish(&live->runs, 0, cursor->tracee_id, cursor->run_seq);
	for (uint32_t i = 0; i < live->count; i++)
		live->cursors[i].is_waiting = false;
}

/* ---- a round begins ---- */

static int grow(struct tw_live *live, uint32_t count)
{
	if (count && !tw_grow_to(live->cursors, live->capacity, count - 1))
		return TW_ENOMEM;
	live->count = count;
	return 0;
}

/* Reads whether a ring is in use, and by which thread. */
static void read_position(struct tw_live *live, uint32_t index, bool is_first)
{
	struct tw_live_cursor *cursor = &live->cursors[index];
	const struct tw_rb_shared *shared = tw_rs_ring(live->rs, index);
	enum tw_rb_state state = tw_rs_ring_state(live->rs, index);
	uint64_t committed;

	if (is_first || !cursor->is_seen) {
		cursor->is_seen = state == TW_RB_LIVE || state == TW_RB_ENDED;
		cursor->is_ended = is_first && state == TW_RB_ENDED;
		if (!cursor->is_seen)
			return;
		if (cursor->lease != shared->lease)
			*cursor = (struct tw_live_cursor){.lease = shared->lease,
							  .pos = shared->first_pos,
							  .given_pos = shared->first_pos,
							  .tracee_id = shared->tracee_id,
							  .is_unnamed = shared->is_own_tracee != 0,
							  .is_seen = true,
							  .is_ended = cursor->is_ended};
		cursor->due_pos = cursor->known_pos = cursor->pos;
	}
	committed = tw_rb_committed(shared);
	if (is_first)
		cursor->due_pos = committed;
	cursor->known_pos = committed;
}

/* Takes in the threads that the headers of new rings define. */
static int take_threads(struct tw_live *live)
{
	int error = 0;

	for (uint32_t i = 0; error != TW_ENOMEM && i < live->count; i++) {
		const struct tw_rb_shared *shared = ring_of(live, &live->cursors[i]);
		uint8_t payload[TW_DEF_THREAD_BYTES_MAX];

		if (!live->cursors[i].is_unnamed)
			continue;
		error = take_definition(live, TW_DEF_TRACEE, payload,
					tw_def_thread(payload, shared->tracee_id, shared->thread_id,
						      shared->thread_name));
		live->cursors[i].is_unnamed = error == TW_ENOMEM;
	}
	return error == TW_ENOMEM ? error : 0;
}

static int load_all(struct tw_live *live)
{
	uint32_t pending = 0;
	int error = 0;

	live->runs.count = 0;
	live->unfinished = 0;
	for (uint32_t i = 0; i < live->count; i++) {
		struct tw_live_cursor *cursor = &live->cursors[i];

		cursor->is_waiting = cursor->is_forced = cursor->needs_check = false;
		cursor->at = cursor->end = NULL;
		if (!cursor->is_seen || !load(live, cursor))
			continue;
		pending++;
		live->unfinished += cursor->pos < cursor->due_pos;
		cursor->needs_check = cursor->run_seq && !is_switch(cursor->at);
	}
	for (uint32_t i = 0; pending > 1 && !error && i < live->count; i++)
		if (live->cursors[i].at)
			error = find_runs_of(live, &live->cursors[i]);
	tw_round_sort(&live->runs);
	return error;
}

int tw_live_begin(struct tw_live *live)
{
	int error;

	if (live->is_under_way)
		return 1;
	error = grow(live, tw_rs_scan(live->rs));
	for (uint32_t i = 0; !error && i < live->count; i++)
		read_position(live, i, true);
	/* Rings that are new since: a process may have run there before it ran where its events are due now. */
	if (!error)
		error = grow(live, tw_rs_scan(live->rs));
	for (uint32_t i = 0; !error && i < live->count; i++)
		read_position(live, i, false);
	if (!error)
		error = take_definitions(live);
	if (!error)
		error = take_threads(live);
	if (!error)
		error = load_all(live);
	if (error)
		return error;
	tw_clock_snapshot(&live->clock);
	live->is_under_way = true;
	live->is_writing_event = false;
	live->tell_at = 0;
	live->current = NULL;
	return 1;
}

/* ---- the merge ---- */

static bool is_before(const struct tw_live *live, const struct tw_live_cursor *a, const struct tw_live_cursor *b)
{
	if (ticks_of(a) != ticks_of(b))
		return ticks_of(a) < ticks_of(b);
	return ring_of(live, a)->scheduler_id < ring_of(live, b)->scheduler_id;
}

static struct tw_live_cursor *earliest(const struct tw_live *live, bool is_waiting)
{
	struct tw_live_cursor *first = NULL;

	for (uint32_t i = 0; i < live->count; i++) {
		struct tw_live_cursor *cursor = &live->cursors[i];

		if (cursor->at && cursor->is_waiting == is_waiting && (!first || is_before(live, cursor, first)))
			first = cursor;
	}
	return first;
}

/* Gives the bytes that were read back to the producer. */
static void give(const struct tw_live *live, struct tw_live_cursor *cursor)
{
	if (cursor->pos == cursor->given_pos)
		return;
	tw_rb_consume(ring_of(live, cursor), cursor->pos);
	cursor->given_pos = cursor->pos;
}

static void advance(struct tw_live *live, struct tw_live_cursor *cursor)
{
	uint32_t bytes = TW_RB_HEAD_BYTES(head_of(cursor->at));
	bool was_unfinished = cursor->pos < cursor->due_pos;

	cursor->is_forced = cursor->needs_check = false;
	cursor->at += bytes;
	cursor->pos += bytes;
	if (cursor->at >= cursor->end) {
		cursor->pos = cursor->next_pos;
		load(live, cursor);
	}
	if (!cursor->at || is_switch(cursor->at))
		finish_run(live, cursor);
	if (was_unfinished && cursor->pos >= cursor->due_pos)
		live->unfinished--;
	if (cursor->pos - cursor->given_pos >= ring_of(live, cursor)->data_bytes / GIVE_PART)
		give(live, cursor);
}

/* May the record at this cursor be handed out? Skips switch records. */
static bool may_go(struct tw_live *live, struct tw_live_cursor *cursor)
{
	bool begins = is_switch(cursor->at);
	uint32_t tracee_id = begins ? TW_RB_HEAD_ID(head_of(cursor->at)) : cursor->tracee_id;
	uint64_t run = begins ? run_of(cursor->at) : cursor->run_seq;

	if ((begins || cursor->needs_check) && !cursor->is_forced &&
	    tw_round_must_wait(&live->runs, 0, tracee_id, run)) {
		cursor->is_waiting = true;
		return false;
	}
	if (!begins)
		return true;
	cursor->tracee_id = tracee_id;
	cursor->run_seq = run;
	advance(live, cursor);
	return false;
}

/* The cursor of the next record; NULL: all records of the round are handed out. */
static struct tw_live_cursor *next_cursor(struct tw_live *live)
{
	while (live->unfinished) {
		struct tw_live_cursor *cursor = earliest(live, false);

		if (!cursor) {
			/* All cursors wait for a run that is not in this round. */
			cursor = earliest(live, true);
			cursor->is_waiting = false;
			cursor->is_forced = true;
		}
		if (may_go(live, cursor))
			return cursor;
	}
	return NULL;
}

/* ---- losses ---- */

/* Takes in a loss record of the stream, less the losses that were reported before it. */
static bool note_loss(struct tw_live *live, struct tw_live_cursor *cursor)
{
	bool any = false;

	memcpy(&live->loss, cursor->at, sizeof live->loss);
	for (unsigned cause = 0; cause < TW_RB_CAUSES; cause++) {
		uint64_t lost = live->loss.lost[cause];
		uint64_t known = lost < cursor->ahead[cause] ? lost : cursor->ahead[cause];

		cursor->ahead[cause] -= known;
		cursor->reported[cause] += lost - known;
		live->loss.lost[cause] = lost - known;
		any |= lost > known;
	}
	return any;
}

static bool tell_no_ring(struct tw_live *live)
{
	const struct tw_rs_image_head *image = tw_rs_head(live->rs, live->image);
	/* RELAXED rs.no_ring: a count that is reported again when it grows. */
	uint64_t lost = tw_load_relaxed(&image->no_ring_lost);

	if (lost == live->no_ring_reported)
		return false;
	memset(&live->loss, 0, sizeof live->loss);
	/* RELAXED rs.no_ring: as above. */
	live->loss.record.ticks = tw_load_relaxed(&image->no_ring_last_ticks);
	live->loss.lost[TW_RB_LOST_NO_RING] = lost - live->no_ring_reported;
	live->no_ring_reported = lost;
	return true;
}

/* Reports losses of a ring that no record of it reports; then the ring may pass to another thread. */
static bool tell_ring(struct tw_live *live, struct tw_live_cursor *cursor)
{
	bool is_drained = cursor->is_seen && cursor->pos >= cursor->known_pos, any;

	if (!cursor->is_seen)
		return false;
	give(live, cursor);
	any = is_drained && tw_rb_unreported_loss(ring_of(live, cursor), cursor->reported, &live->loss);
	for (unsigned cause = 0; any && cause < TW_RB_CAUSES; cause++) {
		cursor->reported[cause] += live->loss.lost[cause];
		cursor->ahead[cause] += live->loss.lost[cause];
	}
	if (is_drained && cursor->is_ended) {
		cursor->is_seen = cursor->is_ended = false;
		tw_rs_ring_recycle(live->rs, (uint32_t)(cursor - live->cursors));
	}
	return any;
}

static bool next_loss(struct tw_live *live)
{
	if (live->has_loss)
		return true;
	live->loss_tracee = live->loss_scheduler = 0;
	while (live->tell_at < live->count) {
		struct tw_live_cursor *cursor = &live->cursors[live->tell_at++];
		uint32_t scheduler = cursor->is_seen ? ring_of(live, cursor)->scheduler_id : 0;

		if (tell_ring(live, cursor)) {
			live->loss_tracee = cursor->tracee_id;
			live->loss_scheduler = scheduler;
			return live->has_loss = true;
		}
	}
	return live->has_loss = live->tell_at++ == live->count && tell_no_ring(live);
}

static void fill_loss(struct tw_live *live, struct tw_live_event *out, uint32_t tracee_id)
{
	uint64_t ticks = live->loss.record.ticks;

	out->event = (struct tw_capture_event){.ticks = ticks,
					       .time_ns = ns_of(live, ticks),
					       .kind = TW_EVENT_LOSS,
					       .tracee_id = tracee_id,
					       .payload = &live->loss.first_ticks,
					       .payload_words = 1 + TW_RB_CAUSES};
}

/* ---- handing out ---- */

static void fill(struct tw_live *live, struct tw_live_cursor *cursor, struct tw_live_event *out)
{
	const struct tw_rb_record *record = (const struct tw_rb_record *)(const void *)cursor->at;

	out->scheduler_id = ring_of(live, cursor)->scheduler_id;
	out->event = (struct tw_capture_event){.ticks = record->ticks,
					       .time_ns = ns_of(live, record->ticks),
					       .kind = (uint8_t)TW_RB_HEAD_KIND(record->head),
					       .flags = (uint8_t)TW_RB_HEAD_FLAGS(record->head),
					       .id = TW_RB_HEAD_ID(record->head),
					       .tracee_id = cursor->tracee_id,
					       .payload = tw_event_payload(record),
					       .payload_words = tw_event_payload_words(record->head)};
	if (tw_event_has_cpu_time(record->head)) {
		out->event.kind &= TW_EVENT_CPU_TIME - 1;
		out->event.has_cpu_time = true;
		out->event.cpu_ns = *out->event.payload++;
		out->event.payload_words--;
	}
}

int tw_live_next(struct tw_live *live, struct tw_live_event *out)
{
	if (!live->is_under_way)
		return 0;
	while (!live->is_writing_event) {
		struct tw_live_cursor *cursor = live->current ? live->current : next_cursor(live);
		bool is_new = !live->current;

		if (!cursor) {
			live->is_writing_event = true;
			break;
		}
		/* The tracer's own time is no message. */
		if (TW_RB_HEAD_KIND(head_of(cursor->at)) == TW_EVENT_OWN_TIME) {
			advance(live, cursor);
			continue;
		}
		if (TW_RB_HEAD_KIND(head_of(cursor->at)) == TW_EVENT_LOSS) {
			if (is_new && !note_loss(live, cursor)) {
				advance(live, cursor);
				continue;
			}
			fill_loss(live, out, cursor->tracee_id);
			out->scheduler_id = ring_of(live, cursor)->scheduler_id;
		} else {
			fill(live, cursor, out);
		}
		live->current = cursor;
		return 1;
	}
	if (next_loss(live)) {
		fill_loss(live, out, live->loss_tracee);
		out->scheduler_id = live->loss_scheduler;
		return 1;
	}
	live->is_under_way = false;
	return 0;
}

void tw_live_step(struct tw_live *live)
{
	if (live->current)
		advance(live, live->current);
	live->current = NULL;
	live->has_loss = false;
}

uint64_t tw_live_drop(struct tw_live *live)
{
	struct tw_live_event event;
	uint64_t dropped = 0;

	live->current = NULL;
	if (tw_live_begin(live) < 0)
		return 0;
	while (tw_live_next(live, &event)) {
		dropped += event.event.kind != TW_EVENT_LOSS;
		tw_live_step(live);
	}
	return dropped;
}
