/* SPDX-License-Identifier: Apache-2.0 */
/* finish.c - consumer.h: the end of a recording. */
#include "base/error.h"
#include "base/export.h"
#include "pipeline/recorder/recorder.h"
#include "pipeline/recorder/restore.h"

#include <stdlib.h>
#include <time.h>

#define MS UINT64_C(1000000)
/* Attempts to write to a full disk at the end of a recording. */
#define FINISH_TRIES 10

/* No stream continues in so many rings; a hostile program may claim that it does. */
#define FINISH_ROUNDS 64

/* Rings of threads that are gone, and rings that continue a stream whose previous ring is not drained yet. */
static bool is_anything_left(const struct tw_writer *writer)
{
	for (uint32_t i = 0; i < writer->rs.ring_count; i++) {
		const struct tw_writer_ring *ring = &writer->rings[i];

		if (ring->is_held || (ring->is_seen && tw_rs_ring_state(&writer->rs, i) == TW_RB_ENDED))
			return true;
	}
	return false;
}

/* The entry of a larger ring may precede that of the ring that it grew from: then the first pass skips it. */
static int drain_for_good(struct tw_recorder *recorder)
{
	int error;

	if (recorder->policy == TW_RECORDER_OVERWRITE)
		return tw_recorder_snapshot(recorder);
	error = tw_recorder_drain(recorder);
	for (unsigned round = 1; !error && round < FINISH_ROUNDS && is_anything_left(&recorder->writer); round++)
		error = tw_recorder_drain(recorder);
	return error;
}

/* Takes over the loss counts of rings of living threads, which are not read again. */
static int tell_last_losses(struct tw_recorder *recorder)
{
	struct tw_writer *writer = &recorder->writer;
	uint32_t count = writer->rs.ring_count;

	for (uint32_t i = 0; recorder->policy != TW_RECORDER_OVERWRITE && i < count; i++) {
		int reported = writer->rings[i].is_seen && tw_rs_ring_state(&writer->rs, i) == TW_RB_LIVE
				       ? tw_writer_tell_loss(writer, i)
				       : 0;

		if (reported < 0)
			return reported;
	}
	return 0;
}

static int end_all_images(struct tw_recorder *recorder)
{
	struct tw_writer *writer = &recorder->writer;
	int first_error = 0, wait_error;

	for (uint32_t i = 0; i < tw_rs_image_count(&writer->rs); i++) {
		enum tw_rs_image_state state = tw_rs_image_state(&writer->rs, i);
		int error = 0;

		if (tw_writer_knows_image(writer, i) && state == TW_RS_IMAGE_ENDED)
			tw_writer_count_unreached(writer, i);
		if (tw_writer_knows_image(writer, i) && (state == TW_RS_IMAGE_LIVE || state == TW_RS_IMAGE_ENDED))
			error = tw_writer_end_image(writer, i, state == TW_RS_IMAGE_ENDED);
		if (error && !first_error)
			first_error = error;
		if (writer->images[i].store.is_open)
			tw_segment_abandon(&writer->images[i].store.segment);
	}
	wait_error = tw_store_await_synced(&writer->store);
	return first_error ? first_error : wait_error;
}

static void destroy(struct tw_recorder *recorder)
{
	tw_holder_end(&recorder->holder);
	tw_thread_states_close(&recorder->states);
	tw_rs_destroy(&recorder->writer.rs);
	tw_store_destroy(&recorder->writer.store);
	tw_writer_fini(&recorder->writer);
	free(recorder);
}

/* The processes that do not know yet that the recording has ended. */
static uint64_t count_living(struct tw_recorder *recorder)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < tw_rs_image_count(&recorder->writer.rs); i++)
		count += tw_rs_image_state(&recorder->writer.rs, i) == TW_RS_IMAGE_LIVE;
	return count;
}

static uint64_t count_ring_bytes(const struct tw_rs *rs)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < rs->ring_count; i++)
		bytes += tw_rs_ring(rs, i) ? tw_rs_ring_bytes(rs, i) : 0;
	return bytes;
}

static enum tw_unrestored reason_of(enum tw_rs_held_outcome outcome)
{
	switch (outcome) {
	case TW_RS_HELD_DENIED: return TW_UNRESTORED_DENIED;
	case TW_RS_HELD_TRACED: return TW_UNRESTORED_TRACED;
	case TW_RS_HELD_TOO_MANY: return TW_UNRESTORED_TOO_MANY;
	case TW_RS_HELD_STUCK: return TW_UNRESTORED_STUCK;
	case TW_RS_HELD_ENDED: return TW_UNRESTORED_ENDED;
	default: return TW_UNRESTORED_BUSY;
	}
}

/* No process records any more, and code is as it was. */
static void end_recording(struct tw_recorder *recorder)
{
	struct tw_writer *writer = &recorder->writer;
	struct tw_restore_failure failure;

	writer->closed_ticks = tw_clock_ticks();
	tw_rs_close(&writer->rs);
	tw_rs_end_waits(&writer->rs);
	recorder->is_finishing = true;
	tw_asked_finish(&recorder->asked, &recorder->holder, &writer->rs);
	tw_restore_all(&recorder->holder, &writer->rs, &failure);
	tw_holder_end(&recorder->holder);
	writer->store.stats.unrestored_processes = failure.processes;
	writer->store.stats.unrestored_places = failure.pieces;
	writer->store.stats.unrestored_reason = reason_of(failure.outcome);
	writer->store.stats.unrestored_threads = failure.number;
}

/* The rings' contents are not wanted any more, and the folder held nothing but the mark. */
static int finish_flight(struct tw_recorder *recorder, struct tw_recorder_stats *stats)
{
	struct tw_writer *writer = &recorder->writer;

	tw_writer_scan(writer);
	tw_writer_tell_refusals(writer);
	tw_rs_unlink(&writer->rs);
	tw_store_remove(writer->store.path);
	if (writer->rs.leaves_memory)
		writer->store.stats.memory_left = count_ring_bytes(&writer->rs);
	if (stats)
		tw_recorder_stats(recorder, stats);
	destroy(recorder);
	return 0;
}

TW_API int tw_recorder_finish(struct tw_recorder *recorder, struct tw_recorder_stats *stats)
{
	struct tw_writer *writer = &recorder->writer;
	const struct timespec pause = {0, (long)TW_PACE_RETRY_NS};
	uint32_t count;
	int error, end_error;

	end_recording(recorder);
	if (recorder->is_flight)
		return finish_flight(recorder, stats);
	error = drain_for_good(recorder);
	/* A thread that was in the middle of a hit when the rings were closed commits during the pause. */
	if (!error && tw_rs_is_anybody_there(&writer->rs)) {
		nanosleep(&(struct timespec){0, (long)MS}, NULL);
		error = drain_for_good(recorder);
	}
	for (int i = 0; error && i < FINISH_TRIES && !writer->store.stream.error; i++) {
		nanosleep(&pause, NULL);
		error = drain_for_good(recorder);
	}
	if (!error)
		error = tell_last_losses(recorder);
	if (!error)
		error = tw_thread_states_end(writer, &recorder->states, TW_STATES_ALL_IMAGES);
	count = writer->rs.ring_count;
	for (uint32_t i = 0; error && i < count; i++) {
		if (writer->rings[i].is_seen)
			tw_writer_count_unstored(writer, i);
	}
	writer->store.is_short = error != 0;
	if (!recorder->ends_inside)
		writer->store.account[TW_ACCOUNT_PROCESSES_WENT_ON] = count_living(recorder);
	tw_writer_tell_refusals(&recorder->writer);
	end_error = end_all_images(recorder);
	if (!end_error)
		end_error = tw_store_leave_something(&writer->store);
	/* Without it a stream that was cut off between two segments would be taken for a whole one. */
	if (!end_error && writer->store.is_stream)
		end_error = tw_store_mark_stream(&writer->store, UINT64_MAX, true);
	tw_store_stop_queue(&writer->store);
	/*
	 * If the recorder dies in between, a mark without rings is left, rather than rings without a mark, and the mark
	 * says that they are not missed. The capture is complete before the memory is freed, which takes long.
	 */
	if (!error && !end_error && !writer->store.is_stream)
		tw_store_mark_ended(&writer->store);
	tw_rs_unlink(&writer->rs);
	tw_store_unmark_live(&writer->store);
	if (writer->rs.leaves_memory)
		writer->store.stats.memory_left = count_ring_bytes(&writer->rs);
	if (stats)
		tw_recorder_stats(recorder, stats);
	destroy(recorder);
	return error ? error : end_error;
}

TW_API void tw_recorder_abort(struct tw_recorder *recorder)
{
	if (!recorder)
		return;
	tw_rs_close(&recorder->writer.rs);
	tw_rs_end_waits(&recorder->writer.rs);
	tw_writer_drain_queue(&recorder->writer);
	tw_store_stop_queue(&recorder->writer.store);
	for (uint32_t i = 0; i < tw_rs_image_count(&recorder->writer.rs); i++) {
		if (recorder->writer.images[i].store.is_open)
			tw_segment_abandon(&recorder->writer.images[i].store.segment);
	}
	if (!recorder->writer.store.is_stream)
		tw_store_remove(recorder->writer.store.path);
	destroy(recorder);
}
