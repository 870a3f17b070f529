/* SPDX-License-Identifier: Apache-2.0 */
/* thread_states.c - from switches of threads to blocks of their states: thread_states.h. */
#include "pipeline/recorder/thread_states.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/grow.h"

#include <errno.h>
#include <stdlib.h>

#define MS UINT64_C(1000000)
/* Rounds of the kernel's rings: often enough that they are not half full, and not for a few switches each. */
#define ROUND_LEAST_NS (2 * MS)
#define ROUND_MOST_NS  (20 * MS)
#define FULL_ENOUGH    25
/* A stream is written when it holds a page, or records that are a second old; or this much while the disk is slow. */
#define BLOCK_BYTES 4096
#define BLOCK_NS    (1000 * MS)
#define HELD_BYTES  (UINT32_C(256) << 10)
/* Streams are written after so many switches: one thread may have made all of them. */
#define SWITCHES_MOST (HELD_BYTES / RECORD_BYTES / 4)
#define RECORD_BYTES  ((uint32_t)sizeof(struct tw_rb_record))
/* A ring is seen some time after its thread has begun to use it: changes that are kept until then. */
#define CHANGES_KEPT 4
/* Ended threads are forgotten together. */
#define DEAD_MOST  1024
#define ENDED_MOST 256

_Static_assert(HELD_BYTES <= TW_BLOCK_RAW_BYTES_MAX, "what is held fits into a block");

struct change {
	uint64_t ticks;
	uint32_t state;
};

struct tw_state_thread {
	int32_t thread_id;     /* 0: it has ended */
	uint32_t first_stream; /* 1 + its index; 0: none */
	uint32_t change_count; /* of all */
	uint32_t source;       /* 1 + that of its switches; 0: none was told yet */
	uint64_t since_ns;     /* no switch was told since then, when it had not blocked; 0: not known, or one was */
	struct change changes[CHANGES_KEPT];
};

struct tw_state_stream {
	uint64_t lease;		       /* of the ring */
	uint32_t image, thread;	       /* thread: UINT32_MAX: it has ended */
	uint32_t next;		       /* of the thread: 1 + its index; 0: none */
	struct tw_block_header header; /* what all blocks have */
	uint8_t *records;
	uint32_t used, capacity;
	uint64_t begin_ticks; /* when the thread took the ring */
	uint64_t oldest_ns;   /* of the records that wait */
};

/* ---- records ---- */

static uint64_t ticks_of(const struct tw_thread_states *states, uint64_t ns)
{
	const struct tw_clock_snapshot *from = &states->before, *to = &states->now;
	int64_t ns_between = (int64_t)(to->monotonic_ns - from->monotonic_ns);
	int64_t ticks_between = (int64_t)(to->ticks - from->ticks);

	if (ns_between <= 0)
		return to->ticks;
	return from->ticks +
	       (uint64_t)(int64_t)((__int128)(int64_t)(ns - from->monotonic_ns) * ticks_between / ns_between);
}

/* They are stored. */
static void pass_records(struct tw_state_stream *stream)
{
	stream->header.first_sequence += stream->used / RECORD_BYTES;
	stream->header.first_pos += stream->used;
	stream->used = 0;
}

/* Of the records that wait only the first stays, and says that the state is unknown from then on. */
static void forget_records(struct tw_thread_states *states, struct tw_state_stream *stream)
{
	struct tw_rb_record *first = (struct tw_rb_record *)(void *)stream->records;

	first->head = TW_RB_HEAD(TW_EVENT_THREAD_STATE, 0, RECORD_BYTES, TW_CAPTURE_STATE_UNKNOWN);
	states->lost += stream->used / RECORD_BYTES;
	stream->used = RECORD_BYTES;
}

static void append(struct tw_thread_states *states, struct tw_state_stream *stream, const struct change *change)
{
	struct tw_rb_record record = {.ticks = change->ticks,
				      .head = TW_RB_HEAD(TW_EVENT_THREAD_STATE, 0, RECORD_BYTES, change->state)};

	if (stream->used + RECORD_BYTES > stream->capacity) {
		uint32_t more = stream->capacity ? stream->capacity * 2 : 16 * RECORD_BYTES;
		void *moved = more <= HELD_BYTES ? realloc(stream->records, more) : NULL;

		/* No memory, or a disk that is full for long: the sequence numbers tell that a record is missing. */
		if (!moved && !stream->capacity) {
			states->lost++;
			stream->header.first_sequence++;
			return;
		}
		if (!moved)
			forget_records(states, stream);
		stream->records = moved ? moved : stream->records;
		stream->capacity = moved ? more : stream->capacity;
	}
	if (!stream->used)
		stream->oldest_ns = states->now.monotonic_ns;
	memcpy(stream->records + stream->used, &record, sizeof record);
	stream->used += RECORD_BYTES;
}

static const struct change *last_change(const struct tw_state_thread *thread)
{
	return thread->change_count ? &thread->changes[(thread->change_count - 1) % CHANGES_KEPT] : NULL;
}

/* The thread is in this state from then on. */
static void change(struct tw_thread_states *states, struct tw_state_thread *thread, uint32_t state, uint64_t ticks)
{
	const struct change *last = last_change(thread);
	struct change now = {last && last->ticks > ticks ? last->ticks : ticks, state};

	thread->changes[thread->change_count++ % CHANGES_KEPT] = now;
	for (uint32_t i = thread->first_stream; i; i = states->streams[i - 1].next)
		append(states, &states->streams[i - 1], &now);
}

/* ---- threads ---- */

static struct tw_state_thread *find_thread(struct tw_thread_states *states, int32_t thread_id)
{
	uint32_t at = tw_map_get(&states->by_thread_id, (uint32_t)thread_id);
	struct tw_state_thread *thread;

	if (at != TW_MAP_NONE) {
		thread = &states->threads[at];
		if (!thread->thread_id) {
			*thread = (struct tw_state_thread){.thread_id = thread_id};
			states->dead_count--;
		}
		return thread;
	}
	if (!tw_grow(states->threads, states->thread_count, states->thread_capacity) ||
	    !tw_map_add(&states->by_thread_id, (uint32_t)thread_id, states->thread_count))
		return NULL;
	thread = &states->threads[states->thread_count++];
	*thread = (struct tw_state_thread){.thread_id = thread_id};
	return thread;
}

/*
 * Its streams get nothing more: the state is unknown from then on.  Rings that were taken later are those of a new program, or of
 * another thread that has the number now: they may be seen before the end of the old one is.
 */
static void end_streams(struct tw_thread_states *states, struct tw_state_thread *thread, uint64_t ticks)
{
	uint32_t *link = &thread->first_stream;

	if (*link)
		change(states, thread, TW_CAPTURE_STATE_UNKNOWN, ticks);
	while (*link) {
		struct tw_state_stream *stream = &states->streams[*link - 1];

		if (stream->begin_ticks > ticks) {
			link = &stream->next;
			continue;
		}
		*link = stream->next;
		stream->next = 0;
		stream->thread = UINT32_MAX;
	}
}

static void end_thread(struct tw_thread_states *states, struct tw_state_thread *thread, uint64_t ticks)
{
	end_streams(states, thread, ticks);
	thread->change_count = 0;
	if (thread->first_stream)
		return;
	thread->thread_id = 0;
	states->dead_count++;
}

/* Ended threads leave the table once they are its larger part. */
static void forget_dead(struct tw_thread_states *states)
{
	struct tw_map map = {0};
	uint32_t kept = 0;

	if (states->dead_count < DEAD_MOST || states->dead_count < states->thread_count / 2)
		return;
	for (uint32_t i = 0; i < states->thread_count; i++) {
		if (states->threads[i].thread_id && !tw_map_add(&map, (uint32_t)states->threads[i].thread_id, kept++)) {
			tw_map_fini(&map);
			return;
		}
	}
	kept = 0;
	for (uint32_t i = 0; i < states->thread_count; i++) {
		struct tw_state_thread *thread = &states->threads[i];

		if (!thread->thread_id)
			continue;
		for (uint32_t at = thread->first_stream; at; at = states->streams[at - 1].next)
			states->streams[at - 1].thread = kept;
		states->threads[kept++] = *thread;
	}
	states->thread_count = kept;
	states->dead_count = 0;
	tw_map_fini(&states->by_thread_id);
	states->by_thread_id = map;
}

/* ---- switches ---- */

static uint32_t state_after(enum tw_switch_kind kind)
{
	switch (kind) {
	case TW_SWITCH_OUT: return TW_CAPTURE_STATE_OFF;
	case TW_SWITCH_PREEMPTED: return TW_CAPTURE_STATE_PREEMPTED;
	default: return TW_CAPTURE_STATE_RUNNING;
	}
}

/* Any switch of any thread may be missing there. */
static void take_gap(struct tw_thread_states *states, const struct tw_switch *gap)
{
	states->lost += gap->lost;
	if (gap->until_ns <= states->blind_until_ns)
		return;
	states->blind_until_ns = gap->until_ns;
	for (uint32_t i = 0; i < states->thread_count; i++) {
		struct tw_state_thread *thread = &states->threads[i];
		const struct change *last = last_change(thread);

		thread->since_ns = 0;
		if (thread->thread_id && last && last->state != TW_CAPTURE_STATE_UNKNOWN)
			change(states, thread, TW_CAPTURE_STATE_UNKNOWN, ticks_of(states, gap->ns));
	}
}

static void take_switch(struct tw_thread_states *states, const struct tw_switch *taken)
{
	struct tw_state_thread *thread = find_thread(states, taken->thread_id);
	uint64_t ticks = ticks_of(states, taken->ns);
	uint32_t state = state_after(taken->kind);
	const struct change *last;

	if (!thread || (thread->source && thread->source != taken->source + 1))
		return;
	thread->source = taken->source + 1;
	/* A thread that loses the processor first, or ends, has had it all the time. */
	if (thread->since_ns && state_after(taken->kind) != TW_CAPTURE_STATE_RUNNING)
		change(states, thread, TW_CAPTURE_STATE_RUNNING, ticks_of(states, thread->since_ns));
	thread->since_ns = 0;
	if (taken->kind == TW_SWITCH_EXIT) {
		end_thread(states, thread, ticks);
		return;
	}
	if (taken->kind == TW_SWITCH_EXEC) {
		end_streams(states, thread, ticks);
		thread->change_count = 0;
	}
	if (taken->ns <= states->blind_until_ns)
		return;
	/* Each processor that it got, it must have lost before, and the other way round. */
	last = last_change(thread);
	if (last && last->state != TW_CAPTURE_STATE_UNKNOWN &&
	    (last->state == TW_CAPTURE_STATE_RUNNING) == (state == TW_CAPTURE_STATE_RUNNING))
		change(states, thread, TW_CAPTURE_STATE_UNKNOWN, last->ticks);
	change(states, thread, state, ticks);
}

/* ---- streams ---- */

static struct tw_state_stream *new_stream(struct tw_thread_states *states, uint64_t lease)
{
	struct tw_state_stream *stream;
	uint32_t at = tw_map_get(&states->by_lease, lease);

	if (at != TW_MAP_NONE || !tw_grow(states->streams, states->stream_count, states->stream_capacity) ||
	    !tw_map_add(&states->by_lease, lease, states->stream_count))
		return NULL;
	stream = &states->streams[states->stream_count++];
	*stream = (struct tw_state_stream){.lease = lease};
	return stream;
}

/* A ring that is new: its thread's states are wanted from now on. */
static void add_stream(struct tw_writer *writer, struct tw_thread_states *states, uint32_t index)
{
	const struct tw_writer_ring *ring = &writer->rings[index];
	struct tw_state_thread *thread = find_thread(states, ring->thread_id);
	struct tw_state_stream *stream = thread ? new_stream(states, ring->lease) : NULL;
	uint32_t first;

	if (!stream)
		return;
	stream->begin_ticks = ring->first_ticks;
	stream->image = tw_rs_ring_image(&writer->rs, index);
	stream->thread = (uint32_t)(thread - states->threads);
	stream->next = thread->first_stream;
	stream->header = (struct tw_block_header){.thread_id = ring->thread_id,
						  .thread_start = ring->thread_start_ticks,
						  .session_index = ring->session_index,
						  .scheduler_id = ring->scheduler_id,
						  .tracee_id = ring->own_tracee_id,
						  .ring_lease = TW_FORMAT_LEASE_OF_STATES(ring->lease)};
	memcpy(stream->header.thread_name, ring->thread_name, sizeof stream->header.thread_name);
	thread->first_stream = (uint32_t)(stream - states->streams) + 1;
	first = thread->change_count > CHANGES_KEPT ? thread->change_count - CHANGES_KEPT : 0;
	for (uint32_t i = first; i < thread->change_count; i++)
		append(states, stream, &thread->changes[i % CHANGES_KEPT]);
}

static void find_streams(struct tw_writer *writer, struct tw_thread_states *states)
{
	for (uint32_t i = 0; i < writer->rs.ring_count; i++) {
		struct tw_writer_ring *ring = &writer->rings[i];

		if (!ring->is_seen || ring->has_states || !ring->own_tracee_id)
			continue;
		ring->has_states = true;
		add_stream(writer, states, i);
	}
}

/* Returns 0 or the error. */
static int write_stream(struct tw_writer *writer, struct tw_state_stream *stream)
{
	struct tw_writer_image *image = &writer->images[stream->image];
	struct tw_block_header header = stream->header;
	const uint8_t *stored;
	int error = tw_writer_drain_queue(writer);

	if (!error)
		error = tw_writer_definitions(writer, stream->image);
	if (error < 0)
		return error;
	header.end_pos = header.first_pos + stream->used;
	tw_store_clock(&header.clock);
	TW_ASSERT(!tw_block_encode_events(writer->store.encoder, &header, stream->records, stream->used, &stored));
	error = tw_store_append(&writer->store, &image->store, &header, stored);
	if (error)
		return error;
	pass_records(stream);
	return tw_writer_rotate(writer, stream->image);
}

static bool is_worth_a_block(struct tw_writer *writer, const struct tw_state_stream *stream, uint64_t now_ns)
{
	if (tw_store_is_slow(&writer->store))
		return stream->used >= HELD_BYTES / 2;
	return stream->used >= BLOCK_BYTES || now_ns - stream->oldest_ns >= BLOCK_NS;
}

/* Those of an image, or of threads that have ended, leave the table; what the latter hold is written before. */
static void forget_streams(struct tw_thread_states *states, uint32_t image)
{
	uint32_t kept = 0;

	tw_map_fini(&states->by_lease);
	for (uint32_t i = 0; i < states->thread_count; i++)
		states->threads[i].first_stream = 0;
	for (uint32_t i = 0; i < states->stream_count; i++) {
		struct tw_state_stream *stream = &states->streams[i];

		if (image == TW_STATES_ALL_IMAGES || stream->image == image ||
		    (stream->thread == UINT32_MAX && !stream->used)) {
			free(stream->records);
			continue;
		}
		states->streams[kept] = *stream;
		stream = &states->streams[kept++];
		tw_map_add(&states->by_lease, stream->lease, kept - 1);
		if (stream->thread == UINT32_MAX)
			continue;
		stream->next = states->threads[stream->thread].first_stream;
		states->threads[stream->thread].first_stream = kept;
	}
	states->stream_count = kept;
}

/* Returns 0 or the first error. */
static int write_streams(struct tw_writer *writer, struct tw_thread_states *states, uint64_t now_ns, bool wants_all)
{
	uint32_t ended = 0;
	int error = 0;

	for (uint32_t i = 0; i < states->stream_count && error >= 0; i++) {
		struct tw_state_stream *stream = &states->streams[i];

		if (stream->used && (wants_all || is_worth_a_block(writer, stream, now_ns)))
			error = write_stream(writer, stream);
		ended += stream->thread == UINT32_MAX && !stream->used;
	}
	if (ended > ENDED_MOST && ended > states->stream_count / 2)
		forget_streams(states, TW_STATES_NO_IMAGE);
	writer->store.account[TW_ACCOUNT_SWITCHES] = states->lost;
	writer->store.stats.switches_lost = states->lost;
	return error < 0 ? error : 0;
}

/* ---- rounds ---- */

/* Takes in the switches until now. */
static void take_all(struct tw_writer *writer, struct tw_thread_states *states)
{
	struct tw_switch taken;
	uint32_t count = 0;
	unsigned full;

	/* Two moments that are very near say little of the rate. */
	if (states->now.monotonic_ns - states->before.monotonic_ns >= MS)
		states->before = states->now;
	tw_clock_snapshot(&states->now);
	tw_switches_begin(states->switches);
	while (tw_switches_next(states->switches, &taken)) {
		if (taken.kind == TW_SWITCH_GAP)
			take_gap(states, &taken);
		else
			take_switch(states, &taken);
		if (++count % SWITCHES_MOST == 0)
			write_streams(writer, states, states->now.monotonic_ns, false);
	}
	full = tw_switches_end(states->switches);
	states->due_ns = states->now.monotonic_ns + (full >= FULL_ENOUGH ? ROUND_LEAST_NS : ROUND_MOST_NS);
	forget_dead(states);
}

int tw_thread_states_open(struct tw_thread_states *states)
{
	int error = tw_switches_open(&states->switches);

	if (!error)
		tw_clock_snapshot(&states->before);
	states->now = states->before;
	return error;
}

int tw_thread_states_open_process(struct tw_thread_states *states, int32_t process_id)
{
	const struct tw_switches_thread *threads;
	uint32_t count;
	int error;

	tw_clock_snapshot(&states->before);
	error = tw_switches_open_process(&states->switches, process_id);
	if (error)
		return error;
	tw_clock_snapshot(&states->now);
	threads = tw_switches_threads(states->switches, &count);
	for (uint32_t i = 0; i < count; i++) {
		struct tw_state_thread *thread = find_thread(states, threads[i].thread_id);

		if (thread && threads[i].is_off)
			change(states, thread, TW_CAPTURE_STATE_OFF, ticks_of(states, threads[i].ns));
		else if (thread)
			thread->since_ns = threads[i].ns;
	}
	return 0;
}

void tw_thread_states_close(struct tw_thread_states *states)
{
	tw_switches_close(states->switches);
	for (uint32_t i = 0; i < states->stream_count; i++)
		free(states->streams[i].records);
	free(states->streams);
	free(states->threads);
	tw_map_fini(&states->by_lease);
	tw_map_fini(&states->by_thread_id);
	*states = (struct tw_thread_states){0};
}

int tw_thread_states_round(struct tw_writer *writer, struct tw_thread_states *states, uint64_t now_ns, bool wants_all)
{
	if (!states->switches)
		return 0;
	/* Rings first: what happened after they were seen is told after this. */
	find_streams(writer, states);
	if (wants_all || now_ns >= states->due_ns)
		take_all(writer, states);
	/* A file gets few, large blocks, unless somebody waits for it. */
	return write_streams(writer, states, now_ns, wants_all && (writer->store.is_stream || states->is_asked));
}

int tw_thread_states_end(struct tw_writer *writer, struct tw_thread_states *states, uint32_t image)
{
	int error;

	if (!states->switches)
		return 0;
	find_streams(writer, states);
	take_all(writer, states);
	for (uint32_t i = 0; i < states->stream_count; i++) {
		struct tw_state_stream *stream = &states->streams[i];

		if (stream->thread != UINT32_MAX && (image == TW_STATES_ALL_IMAGES || stream->image == image))
			end_streams(states, &states->threads[stream->thread], states->now.ticks);
	}
	error = write_streams(writer, states, states->now.monotonic_ns, true);
	if (!error)
		forget_streams(states, image);
	return error;
}

uint64_t tw_thread_states_rest_ns(const struct tw_thread_states *states, uint64_t now_ns, uint64_t longest_ns)
{
	uint64_t left = states->due_ns > now_ns ? states->due_ns - now_ns : 0;

	return states->switches && left < longest_ns ? left : longest_ns;
}
