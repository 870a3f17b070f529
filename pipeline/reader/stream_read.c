/* SPDX-License-Identifier: Apache-2.0 */
/* stream_read.c - reads blocks as they arrive, and merges records up to the last mark: stream_read.h. */
#include "pipeline/reader/stream_read.h"
#include "base/error.h"
#include "base/export.h"
#include "base/grow.h"
#include "pipeline/format/event.h"
#include "base/map.h"
#include "pipeline/format/round.h"
#include "pipeline/reader/scan.h"
#include "tracewheel/counts.h"
#include "tracewheel/follow.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define CLOCKS_MAX 128

/* The records of one block. */
struct chunk {
	struct chunk *next;
	const uint8_t *end;
	uint64_t first_sequence;
	uint8_t raw[];
};

struct cursor {
	uint32_t stream, image, scheduler_id;
	struct chunk *first;
	const uint8_t *at; /* in the first chunk; NULL: there are no records */
	uint64_t sequence, run_seq;
	uint32_t tracee_id;
	bool is_waiting, is_forced, needs_check;
};

struct tw_stream_in {
	struct tw_capture *capture;
	struct tw_stream_source source;
	struct tw_block_decoder *decoder;
	struct tw_source_image *image; /* of the current segment of the stream */
	uint64_t offset;
	uint64_t horizon; /* of the last mark */
	uint64_t mark_count;
	uint64_t ticks_per_second;
	unsigned version;
	bool is_over;
	struct tw_map segments; /* by number */
	struct tw_stream_end end;
	struct tw_map streams;	/* by image and lease */
	struct cursor *cursors; /* by stream */
	uint32_t count;
	struct tw_round round;
	struct chunk *retired;
};

/* ---- bytes ---- */

static int64_t read_fd(void *self, void *to, size_t bytes)
{
	ssize_t got;

	do
		got = read((int)(intptr_t)self, to, bytes);
	while (got < 0 && errno == EINTR);
	return got < 0 ? TW_EIO : got;
}

/* 1; 0: the stream ends before the first byte; TW_EFORMAT: it ends after it; TW_EIO. */
static int read_all(struct tw_stream_in *in, void *to, size_t bytes)
{
	size_t done = 0;

	while (done < bytes) {
		int64_t got = in->source.read(in->source.self, (char *)to + done, bytes - done);

		if (got < 0)
			return TW_EIO;
		if (got == 0)
			return done ? TW_EFORMAT : 0;
		done += (size_t)got;
		in->offset += (size_t)got;
	}
	return 1;
}

/* More bytes of a piece that has begun: 0 or an error. */
static int read_rest(struct tw_stream_in *in, void *to, size_t bytes)
{
	int found = read_all(in, to, bytes);

	return found > 0 ? 0 : found ? found : TW_EFORMAT;
}

/* ---- input ---- */

static int take_segment(struct tw_stream_in *in, uint64_t magic)
{
	struct tw_capture *capture = in->capture;
	struct tw_segment_header header = {.magic = magic};
	uint32_t image;
	int error = read_rest(in, (uint8_t *)&header + sizeof magic, sizeof header - sizeof magic);

	if (!error)
		error = tw_segment_header_check(&header);
	if (error)
		return error;
	image = tw_source_find_image(capture, &header);
	if (image == TW_CAPTURE_NONE || !tw_clockmap_add(&capture->clocks, &header.clock) ||
	    !tw_map_put(&in->segments, header.segment_number, image))
		return TW_ENOMEM;
	in->image = capture->images[image];
	tw_source_begin_image(in->image, &header);
	if (!capture->info.start_ns) {
		capture->info.start_ns = capture->info.zero_ns = header.clock.monotonic_ns;
		capture->info.start_wall_ns = header.clock.realtime_ns;
	}
	capture->info.images = capture->image_count;
	in->ticks_per_second = header.ticks_per_second;
	in->version = header.version;
	tw_clockmap_finish(&capture->clocks, in->ticks_per_second);
	return 0;
}

static int find_cursor(struct tw_stream_in *in, const struct tw_block_header *header, struct cursor **out)
{
	struct tw_capture *capture = in->capture;
	uint32_t image = in->image->info.image;
	uint64_t key = header->ring_lease ^ (uint64_t)image << 48;
	uint32_t at = tw_map_get(&in->streams, key);

	if (at != TW_MAP_NONE) {
		*out = &in->cursors[at];
		/* The last name that it had. */
		memcpy(capture->streams[at].info.thread_name, header->thread_name, sizeof header->thread_name);
		return 0;
	}
	if (!tw_grow_one(capture->streams, capture->stream_count) || !tw_grow_one(in->cursors, in->count) ||
	    !tw_map_put(&in->streams, key, in->count))
		return TW_ENOMEM;
	capture->streams[in->count] =
		(struct tw_source_stream){.lease = header->ring_lease,
					  .info = {.stream = in->count,
						   .thread = in->count,
						   .lease = header->ring_lease,
						   .image = image,
						   .thread_id = header->thread_id,
						   .session_index = header->session_index,
						   .scheduler_id = header->scheduler_id,
						   .tracee_id = header->tracee_id,
						   .is_of_states = header->flags & TW_BLOCK_FLAG_STATES}};
	memcpy(capture->streams[in->count].info.thread_name, header->thread_name, sizeof header->thread_name);
	in->cursors[in->count] = (struct cursor){.stream = in->count,
						 .image = image,
						 .scheduler_id = header->scheduler_id,
						 .tracee_id = header->tracee_id,
						 .run_seq = header->run_seq};
	*out = &in->cursors[in->count];
	capture->info.streams = capture->stream_count = ++in->count;
	return 0;
}

static void append(struct cursor *cursor, struct chunk *chunk)
{
	struct chunk *last = cursor->first;

	chunk->next = NULL;
	while (last && last->next)
		last = last->next;
	if (last) {
		last->next = chunk;
		return;
	}
	cursor->first = chunk;
	cursor->at = chunk->raw;
	cursor->sequence = chunk->first_sequence;
}

static int take_events(struct tw_stream_in *in, const struct tw_block_header *header)
{
	struct chunk *chunk = malloc(sizeof *chunk + header->raw_bytes + TW_COLUMN_SLACK_BYTES);
	struct cursor *cursor;
	int error = chunk ? tw_block_decode_events(in->decoder, header, chunk->raw) : TW_ENOMEM;

	if (!error)
		error = find_cursor(in, header, &cursor);
	if (error || !header->raw_bytes) {
		free(chunk);
		return error;
	}
	chunk->end = chunk->raw + header->raw_bytes;
	chunk->first_sequence = header->first_sequence;
	append(cursor, chunk);
	in->capture->info.events += header->event_count;
	return 0;
}

/* Counts are cumulative: an increase becomes a loss record, in a stream of its own. */
static int take_loss(struct tw_stream_in *in, const struct tw_block_header *header)
{
	uint64_t lost = header->lost[TW_LOST_NO_RING];
	struct tw_rb_loss_record record = {.first_ticks = header->first_ticks};
	struct chunk *chunk;
	struct cursor *cursor;
	int error;

	if (lost <= in->image->no_ring_reported)
		return 0;
	error = find_cursor(in, header, &cursor);
	chunk = error ? NULL : malloc(sizeof *chunk + sizeof record);
	if (!chunk)
		return TW_ENOMEM;
	record.record.ticks = header->last_ticks;
	record.record.head = TW_RB_HEAD(TW_EVENT_LOSS, 0, sizeof record, 0);
	record.lost[TW_LOST_NO_RING] = lost - in->image->no_ring_reported;
	in->image->no_ring_reported = lost;
	memcpy(chunk->raw, &record, sizeof record);
	chunk->end = chunk->raw + sizeof record;
	chunk->first_sequence = 0;
	append(cursor, chunk);
	return 0;
}

static int take_definitions(struct tw_stream_in *in, const struct tw_block_header *header)
{
	struct tw_source_image *image = in->image;
	struct tw_catalog *catalog = &image->catalog;
	const uint8_t *bytes;
	uint32_t count, ends = catalog->ends.count;
	int error = tw_block_decode_definitions(in->decoder, header, &bytes, &count);

	if (!error)
		error = tw_catalog_add(catalog, bytes, count);
	tw_catalog_finish(catalog);
	if (catalog->ends.count != ends)
		tw_source_take_ends(in->capture);
	in->capture->info.places = 0;
	for (uint32_t i = 0; i < in->capture->image_count; i++)
		in->capture->info.places += in->capture->images[i]->catalog.places.count;
	return error == TW_ELIMIT ? 0 : error;
}

static bool is_switch(const uint8_t *record)
{
	return TW_RB_HEAD_KIND(tw_record_head(record)) == TW_EVENT_SWITCH;
}

static uint64_t run_of(const uint8_t *record)
{
	return tw_get64(record + TW_CODEC_HEAD_BYTES);
}

static uint32_t bytes_of(const uint8_t *record)
{
	return TW_RB_HEAD_BYTES(tw_record_head(record));
}

static int find_runs(struct tw_stream_in *in, struct cursor *cursor)
{
	const uint8_t *at = cursor->at;
	int error = 0;

	cursor->is_waiting = cursor->is_forced = false;
	cursor->needs_check = at && cursor->run_seq && !is_switch(at);
	if (cursor->needs_check)
		error = tw_round_add(&in->round, cursor->image, cursor->tracee_id, cursor->run_seq);
	for (const struct chunk *chunk = cursor->first; chunk && !error; chunk = chunk->next) {
		for (at = at ? at : chunk->raw; at < chunk->end && !error; at += bytes_of(at))
			if (is_switch(at))
				error = tw_round_add(&in->round, cursor->image, TW_RB_HEAD_ID(tw_record_head(at)),
						     run_of(at));
		at = NULL;
	}
	return error;
}

/* All records up to these ticks have arrived. */
static int take_mark(struct tw_stream_in *in, uint64_t ticks)
{
	struct tw_clockmap *clocks = &in->capture->clocks;
	int error = 0;

	tw_stream_end_mark(&in->end, ticks);
	in->mark_count++;
	if (ticks > in->horizon)
		in->horizon = ticks;
	/* A stream may have no end: clock points of times that were shown long ago are dropped. */
	if (clocks->count > CLOCKS_MAX) {
		memmove(clocks->points, clocks->points + clocks->count - CLOCKS_MAX / 2,
			CLOCKS_MAX / 2 * sizeof *clocks->points);
		clocks->count = CLOCKS_MAX / 2;
	}
	tw_clockmap_finish(clocks, in->ticks_per_second);
	in->round.count = 0;
	for (uint32_t i = 0; i < in->count && !error; i++)
		error = find_runs(in, &in->cursors[i]);
	tw_round_sort(&in->round);
	return error;
}

static int take_index(struct tw_stream_in *in, const struct tw_block_header *header)
{
	struct tw_segment_totals totals;
	const uint8_t *bytes;
	int error = tw_block_decode_bytes(in->decoder, header, &bytes);

	if (error || header->encoded_bytes < sizeof totals)
		return error ? error : TW_EFORMAT;
	memcpy(&totals, bytes, sizeof totals);
	tw_stream_end_take(&in->end, totals.ending);
	return 0;
}

static int take_block(struct tw_stream_in *in, uint64_t magic)
{
	struct tw_block_header header = {.magic = magic};
	uint64_t stored;
	int error = read_rest(in, (uint8_t *)&header + sizeof magic, tw_block_header_bytes(in->version) - sizeof magic);

	if (!error)
		error = in->image ? tw_block_header_check(&header) : TW_EFORMAT;
	if (error || header.version != in->version)
		return error ? error : TW_EFORMAT;
	stored = tw_block_file_bytes(&header) - header.header_bytes;
	error = read_rest(in, tw_block_decoder_input(in->decoder), stored);
	if (error)
		return error;
	if (header.clock.ticks && !tw_clockmap_add(&in->capture->clocks, &header.clock))
		return TW_ENOMEM;
	switch (header.type) {
	case TW_BLOCK_EVENTS: return take_events(in, &header);
	case TW_BLOCK_DEFINITIONS: return take_definitions(in, &header);
	case TW_BLOCK_MARK: tw_stream_end_mark(&in->end, header.first_ticks); return take_mark(in, header.first_ticks);
	case TW_BLOCK_LOSS: return take_loss(in, &header);
	case TW_BLOCK_INDEX: return take_index(in, &header);
	default: return 0; /* of a later version */
	}
}

/* A closed segment, alone or after others: its index block was its end. */
static int take_trailer(struct tw_stream_in *in, uint64_t magic)
{
	struct tw_segment_trailer trailer = {.magic = magic};

	return read_rest(in, (uint8_t *)&trailer + sizeof magic, sizeof trailer - sizeof magic);
}

/* Reads the next piece of the stream: 1, 0 at its end, or TW_ENOMEM. */
static int take_next(struct tw_stream_in *in)
{
	uint64_t magic, offset = in->offset;
	const char *cut;
	int found = read_all(in, &magic, sizeof magic);

	if (found > 0)
		found = magic == TW_SEGMENT_MAGIC   ? take_segment(in, magic)
			: magic == TW_BLOCK_MAGIC   ? take_block(in, magic)
			: magic == TW_TRAILER_MAGIC ? take_trailer(in, magic)
						    : TW_EFORMAT;
	else if (found == 0)
		in->is_over = true;
	if (found == TW_ENOMEM)
		return found;
	cut = (found < 0 || in->is_over) && in->source.cut ? in->source.cut(in->source.self) : NULL;
	if (found < 0 || cut)
		tw_source_note_damage(in->capture, 0, offset, in->offset - offset, found < 0 ? found : TW_EFORMAT,
				      cut ? cut : TW_STREAM_IS_CUT);
	else if (in->is_over && !tw_stream_end_is_there(&in->end, in->segments.count))
		tw_source_note_damage(in->capture, 0, offset, 0, TW_EFORMAT, TW_STREAM_HAS_NO_END);
	in->is_over |= found < 0;
	if (!in->is_over)
		return 1;
	in->capture->info.is_live = false;
	return take_mark(in, UINT64_MAX);
}

/* ---- output ---- */

static struct cursor *earliest(struct tw_stream_in *in, bool is_waiting)
{
	struct cursor *first = NULL;

	for (uint32_t i = 0; i < in->count; i++) {
		struct cursor *cursor = &in->cursors[i];

		if (!cursor->at || cursor->is_waiting != is_waiting)
			continue;
		if (!first || tw_get64(cursor->at) < tw_get64(first->at) ||
		    (tw_get64(cursor->at) == tw_get64(first->at) && cursor->scheduler_id < first->scheduler_id))
			first = cursor;
	}
	return first;
}

static void finish_run(struct tw_stream_in *in, const struct cursor *cursor)
{
	if (!in->round.count || !cursor->run_seq)
		return;
	tw_round_finish(&in->round, cursor->image, cursor->tracee_id, cursor->run_seq);
	for (uint32_t i = 0; i < in->count; i++)
		in->cursors[i].is_waiting = false;
}

static void advance(struct tw_stream_in *in, struct cursor *cursor)
{
	cursor->is_forced = cursor->needs_check = false;
	cursor->sequence += tw_scan_sequence_step(cursor->at);
	cursor->at += bytes_of(cursor->at);
	if (cursor->at >= cursor->first->end) {
		struct chunk *done = cursor->first;

		cursor->first = done->next;
		done->next = in->retired;
		in->retired = done;
		cursor->at = cursor->first ? cursor->first->raw : NULL;
		if (cursor->first)
			cursor->sequence = cursor->first->first_sequence;
	}
	if (!cursor->at || is_switch(cursor->at))
		finish_run(in, cursor);
}

/* May the record at this cursor be handed out? */
static bool may_go(struct tw_stream_in *in, struct cursor *cursor)
{
	bool begins = is_switch(cursor->at);
	uint32_t tracee_id = begins ? TW_RB_HEAD_ID(tw_record_head(cursor->at)) : cursor->tracee_id;
	uint64_t run = begins ? run_of(cursor->at) : cursor->run_seq;

	if ((begins || cursor->needs_check) && !cursor->is_forced &&
	    tw_round_must_wait(&in->round, cursor->image, tracee_id, run)) {
		cursor->is_waiting = true;
		return false;
	}
	cursor->tracee_id = tracee_id;
	cursor->run_seq = run;
	return true;
}

/* The cursor of the next record; NULL: none up to the mark. */
static struct cursor *ready(struct tw_stream_in *in)
{
	for (;;) {
		struct cursor *cursor = earliest(in, false);

		if (!cursor) {
			cursor = earliest(in, true);
			if (!cursor || tw_get64(cursor->at) > in->horizon)
				return NULL;
			cursor->is_waiting = false;
			cursor->is_forced = true;
		}
		/* A run that is waited for may have a time after the mark: it had begun before. */
		if (tw_get64(cursor->at) > in->horizon) {
			const struct cursor *waiting = earliest(in, true);

			if (!waiting || tw_get64(waiting->at) > in->horizon)
				return NULL;
		}
		if (may_go(in, cursor))
			return cursor;
	}
}

int tw_stream_in_next(struct tw_stream_in *in, bool may_wait, struct tw_stream_record *out)
{
	for (;;) {
		struct cursor *cursor = ready(in);
		int found;

		if (cursor) {
			*out = (struct tw_stream_record){cursor->at, cursor->sequence, cursor->stream, cursor->image,
							 cursor->tracee_id};
			advance(in, cursor);
			return 1;
		}
		if (in->is_over || !may_wait)
			return 0;
		found = take_next(in);
		if (found < 0)
			return found;
	}
}

void tw_stream_in_let_go(struct tw_stream_in *in)
{
	while (in->retired) {
		struct chunk *chunk = in->retired;

		in->retired = chunk->next;
		free(chunk);
	}
}

TW_API int tw_capture_skip_to_mark(struct tw_capture *capture, uint64_t *mark_ns)
{
	struct tw_stream_in *in = capture->stream_in;
	struct tw_stream_record record;
	uint64_t seen;
	int found;

	if (!in)
		return TW_ENOTSUP;
	seen = in->mark_count;
	found = !in->is_over;
	while (found > 0 && in->mark_count == seen && !in->is_over)
		found = take_next(in);
	if (in->mark_count == seen)
		return found;
	while (tw_stream_in_next(in, false, &record) > 0)
		;
	tw_stream_in_let_go(in);
	*mark_ns = in->horizon == UINT64_MAX ? 0 : tw_capture_ns(capture, in->horizon);
	return 1;
}

/* ---- beginning and end ---- */

int tw_stream_in_create(struct tw_capture *capture, const struct tw_stream_source *source, struct tw_stream_in **out)
{
	struct tw_stream_in *in = calloc(1, sizeof *in);
	uint64_t magic;
	int error;

	if (!in && source->close)
		source->close(source->self);
	if (!in)
		return TW_ENOMEM;
	in->capture = capture;
	in->source = *source;
	in->decoder = tw_block_decoder_create();
	error = tw_source_name_stream(capture);
	error = in->decoder && !error ? read_rest(in, &magic, sizeof magic) : TW_ENOMEM;
	if (!error)
		error = magic == TW_SEGMENT_MAGIC ? take_segment(in, magic) : TW_EFORMAT;
	if (error) {
		tw_stream_in_destroy(in);
		return error;
	}
	*out = in;
	return 0;
}

void tw_stream_in_from(struct tw_stream_in *in, uint64_t ns)
{
	if (in->source.from)
		in->source.from(in->source.self, ns);
}

void tw_stream_in_destroy(struct tw_stream_in *in)
{
	if (!in)
		return;
	if (in->source.close)
		in->source.close(in->source.self);
	tw_stream_in_let_go(in);
	for (uint32_t i = 0; i < in->count; i++) {
		in->retired = in->cursors[i].first;
		tw_stream_in_let_go(in);
	}
	free(in->cursors);
	tw_round_fini(&in->round);
	tw_map_fini(&in->segments);
	tw_map_fini(&in->streams);
	tw_block_decoder_destroy(in->decoder);
	free(in);
}

TW_API int tw_capture_open_stream(int fd, struct tw_capture **out)
{
	const struct tw_stream_source source = {.read = read_fd, .self = (void *)(intptr_t)fd};

	return tw_stream_in_open(&source, out);
}

int tw_stream_in_open(const struct tw_stream_source *source, struct tw_capture **out)
{
	struct tw_capture *capture = calloc(1, sizeof *capture);
	int error;

	if (!capture && source->close)
		source->close(source->self);
	if (!capture)
		return TW_ENOMEM;
	pthread_mutex_init(&capture->lock, NULL);
	capture->directory_fd = -1;
	error = tw_stream_in_create(capture, source, &capture->stream_in);
	if (error) {
		tw_capture_close(capture);
		return error;
	}
	*out = capture;
	return 0;
}
