/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorder.c - consumer.h: the owner of a ring set, and the pace at which it works.
 *
 * A ring is taken when it holds TAKE_BYTES or half of its size, or any record for TW_PACE_TAKE_NS. Taking less, or
 * checking more often, makes both sides slower: every check moves a cache line that the producer writes, each block
 * has costs of its own (cleared tables, checksums, a write), and each sleep costs two context switches.
 */
#include "base/error.h"
#include "base/export.h"
#include "base/filter.h"
#include "base/sys.h"
#include "base/vectors.h"
#include "pipeline/recorder/folder.h"
#include "pipeline/recorder/recorder.h"
#include "ringbuf/guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MS	   UINT64_C(1000000)
#define TAKE_BYTES (UINT64_C(128) << 10)
#define REAP_NS	   (50 * MS)
/* While a process or a thread finds no free slot: another one may have ended. */
#define REAP_WANTED_NS MS
/* Asking the kernel for a process' start is slow: with more than this many, some are asked for in each round. */
#define REAP_IMAGES 64

_Static_assert((int)TW_RECORDER_DROP == TW_RB_DROP && (int)TW_RECORDER_BLOCK == TW_RB_BLOCK &&
		       (int)TW_RECORDER_OVERWRITE == TW_RB_OVERWRITE,
	       "the public policies are the rings'");
_Static_assert(TW_RECORDER_PROCESSES_MAX == TW_RS_IMAGES_MAX, "every image may ask");
_Static_assert((int)TW_LOST_CAUSES == TW_RB_CAUSES && (int)TW_LOST_NESTED == TW_RB_LOST_NESTED, "the causes too");

/*
 * session/tracer.c refers to the recorder's functions weakly, and weak references take nothing out of an archive. A
 * program that links tw_recorder_create() must have all of them: this refers to finish.c.
 */
__attribute__((used)) static int (*const brings_finish)(struct tw_recorder *,
							struct tw_recorder_stats *) = tw_recorder_finish;

/*
 * Appends what others need to know: tw_recover() the folder of the capture, tw_recover_clean() its path, if there is
 * one, and each process values that it would have to find out itself: the size of the vector registers, and the number of filters of the recorder: agents
 * under that many know what is allowed, agents under more do not; whether the holder (holder.h) needs their leave.
 */
static int create_rings(struct tw_rs *rs, struct tw_rs_options *options, const struct tw_recorder_options *asked,
			int directory_fd)
{
	char *config = NULL, *path = asked->is_stream ? NULL : realpath(asked->path, NULL), line[TW_FOLDER_LINE_BYTES];
	char flight[48] = "";
	bool has_path = path && !strchr(path, '\n');
	struct tw_vectors vectors;
	char values[64] = "";
	int error = TW_ENOMEM;

	if (options->config) {
		tw_vectors_measure(&vectors);
		snprintf(values, sizeof values, "filters %d\nvectors %u %u\n%s", tw_filter_count("self"),
			 (unsigned)vectors.bytes, (unsigned)vectors.mask,
			 tw_sys_only_ancestors_trace() ? "ancestors 1\n" : "");
	}
	if (asked->is_flight)
		snprintf(flight, sizeof flight, TW_RECORDER_FLIGHT_KEY "%llu\n", (unsigned long long)asked->flight_ns);
	if (asprintf(&config, "%s%s%s%s%s%s%s", options->config ? options->config : "", values, flight,
		     has_path ? TW_RECORDER_CAPTURE_KEY : "", has_path ? path : "", has_path ? "\n" : "",
		     tw_folder_identity(directory_fd, line)) >= 0) {
		options->config = config;
		error = tw_rs_create(rs, options);
		options->config = NULL;
		free(config);
	}
	free(path);
	return error;
}

/* Called on the queue's thread. */
static void wake_from_queue(void *rs)
{
	tw_rs_wake(rs);
}

/*
 * An embedded library finds the recorder by weak names, which take nothing out of an archive: a program that links
 * tw_recorder_create() takes the files of these functions with it.
 */
static void (*const together[])(void)
	__attribute__((used)) = {(void (*)(void))tw_recorder_finish, (void (*)(void))tw_recorder_abort};

/* Takes over what concerns neither the store nor the rings. */
static void take_options(struct tw_recorder *recorder, const struct tw_recorder_options *options)
{
	struct tw_writer *writer = &recorder->writer;

	writer->rs.leaves_memory = options->leaves_memory;
	recorder->policy = options->policy;
	recorder->ends_inside = options->ends_inside;
	recorder->holds_soon = options->holds_soon;
	recorder->is_flight = options->is_flight;
	recorder->run_delay.limit_ns = options->run_delay_ns;
	/* A stream waits for its reader only; an overwriting ring is copied as a whole, and stored at once. */
	if (!options->is_stream && options->policy != TW_RECORDER_OVERWRITE) {
		writer->store.wake = wake_from_queue;
		writer->store.wake_arg = &writer->rs;
	}
	if (options->guards_rings)
		tw_rs_guard(&writer->rs);
	if (options->has_thread_states)
		writer->store.stats.states_error = tw_thread_states_open(&recorder->states);
}

TW_API int tw_recorder_create(const struct tw_recorder_options *options, struct tw_recorder **out)
{
	struct tw_recorder *recorder;
	struct tw_rs_options set = {
		.name = options->name,
		.ring_bytes = options->ring_bytes,
		.cap_bytes = options->cap_bytes,
		.policy = (enum tw_rb_policy)options->policy,
		.block_timeout_ns = options->block_timeout_ns,
		.follow_fork = options->follow_fork,
		.allow_anonymous = options->allow_anonymous,
		.config = options->config,
		.answers = options->layouts,
	};
	int error;

	if (options->policy > TW_RECORDER_OVERWRITE ||
	    (options->policy == TW_RECORDER_OVERWRITE ? options->run_delay_ns || options->has_thread_states
						      : options->is_flight))
		return TW_EBADARG;
	recorder = calloc(1, sizeof *recorder);
	if (!recorder)
		return TW_ENOMEM;
	error = tw_writer_init(&recorder->writer);
	if (error)
		goto free_recorder;
	error = tw_store_create(&recorder->writer.store, options, false);
	if (error)
		goto fini_writer;
	error = create_rings(&recorder->writer.rs, &set, options, recorder->writer.store.directory_fd);
	if (error)
		goto remove_capture;
	recorder->writer.store.stats.last_error = 0;
	error = tw_store_mark_live(&recorder->writer.store, recorder->writer.rs.path);
	if (error)
		goto destroy_rings;
	take_options(recorder, options);
	recorder->started_ns = tw_clock_monotonic_ns();
	tw_pace_init(&recorder->pace);
	*out = recorder;
	return 0;
destroy_rings:
	tw_rs_destroy(&recorder->writer.rs);
remove_capture:
	if (!options->is_stream)
		tw_store_remove(options->path);
	tw_store_destroy(&recorder->writer.store);
fini_writer:
	tw_writer_fini(&recorder->writer);
free_recorder:
	free(recorder);
	return error;
}

TW_API const char *tw_recorder_ring_set_path(const struct tw_recorder *recorder)
{
	return recorder->writer.rs.path;
}

TW_API struct tw_rs *tw_recorder_ring_set(struct tw_recorder *recorder)
{
	return &recorder->writer.rs;
}

void tw_recorder_set_io(struct tw_recorder *recorder, const struct tw_segment_io *io)
{
	recorder->writer.store.io = io;
}

/* ---- one round ---- */

/* The bytes that make a ring worth taking: small rings would be full before they held the usual amount. */
static uint64_t take_bytes(const struct tw_recorder *recorder, uint32_t index)
{
	uint64_t half = tw_rs_ring_bytes(&recorder->writer.rs, index) / 2;

	return half < TAKE_BYTES ? half : TAKE_BYTES;
}

/*
 * Waits until all that was taken is in the files. @stored: the result so far, which is returned unless there is an
 * error.
 */
static int await_written(struct tw_recorder *recorder, int stored)
{
	int error = stored < 0 ? stored : tw_writer_drain_queue(&recorder->writer);

	return error ? error : stored;
}

/*
 * Handles a ring whose thread is gone: drains it, reports the losses that no record reports, and returns it to the
 * pool.
 */
static int drain_ended(struct tw_recorder *recorder, uint32_t index)
{
	struct tw_writer *writer = &recorder->writer;
	int stored = tw_writer_drain_ring(writer, index, 1);
	int reported;

	if (stored >= 0 && recorder->is_finishing)
		stored = await_written(recorder, stored);
	if (stored < 0)
		return stored;
	/* A very large ring continues in the next round. */
	if (tw_rb_committed(tw_rs_ring(&writer->rs, index)) != writer->rings[index].at.pos && stored)
		return stored;
	reported = tw_writer_end_ring(writer, index);
	return reported < 0 ? reported : stored | reported;
}

static int take_ring(struct tw_recorder *recorder, uint32_t index, uint64_t now_ns, bool wants_all)
{
	struct tw_writer *writer = &recorder->writer;
	struct tw_writer_ring *ring = &writer->rings[index];
	uint64_t pending = tw_rb_committed(tw_rs_ring(&writer->rs, index)) - ring->at.pos;
	bool is_ended =
		tw_rs_ring_state(&writer->rs, index) == TW_RB_ENDED || (ring->successor && recorder->is_finishing);
	int stored;

	if (recorder->policy == TW_RECORDER_OVERWRITE)
		return 0;
	if (is_ended)
		return drain_ended(recorder, index);
	if (!pending) {
		ring->pending_ns = 0;
		return 0;
	}
	if (!ring->pending_ns)
		ring->pending_ns = now_ns;
	if (pending >= take_bytes(recorder, index) || (recorder->writer.store.is_stream && wants_all))
		tw_pace_note_busy(&recorder->pace, tw_rs_ring_bytes(&writer->rs, index));
	if (wants_all || now_ns - ring->pending_ns >= TW_PACE_TAKE_NS)
		stored = tw_writer_drain_ring(writer, index, 1);
	else if (pending >= take_bytes(recorder, index))
		stored = tw_writer_drain_ring(writer, index, take_bytes(recorder, index));
	else
		return 0;
	ring->pending_ns = 0;
	return stored;
}

TW_API void tw_recorder_child(struct tw_recorder *recorder, int32_t process_id)
{
	recorder->child = process_id;
}

TW_API void tw_recorder_child_ended(struct tw_recorder *recorder, int wait_status)
{
	struct tw_writer *writer = &recorder->writer;

	if (wait_status >= 0)
		writer->store.account[TW_ACCOUNT_ENDING] = UINT64_C(1) << 32 | (uint32_t)wait_status;
	/* Programs before the last one ended by exec. */
	for (uint32_t i = 0; wait_status >= 0 && recorder->child && i < tw_rs_image_count(&writer->rs); i++)
		if (tw_writer_is_last_of(writer, i, recorder->child) && !writer->images[i].gone_ticks)
			writer->images[i].gone_ticks = tw_clock_ticks();
	recorder->child = 0;
}

/*
 * Ends images whose process is gone and whose rings are all unused. At the end of the recording all images end
 * together.
 */
static int end_images(struct tw_recorder *recorder)
{
	struct tw_writer *writer = &recorder->writer;

	if (recorder->is_finishing)
		return 0;
	for (uint32_t i = 0; i < tw_rs_image_count(&writer->rs); i++) {
		int error;

		if (tw_rs_image_state(&writer->rs, i) != TW_RS_IMAGE_ENDED || !tw_writer_knows_image(writer, i) ||
		    tw_writer_has_rings_in_use(writer, i) || tw_writer_is_last_of(writer, i, recorder->child))
			continue;
		error = tw_thread_states_end(writer, &recorder->states, i);
		error = error || recorder->is_flight ? error : tw_writer_end_image(writer, i, true);
		if (error)
			return error;
		tw_writer_recycle_image(writer, i);
	}
	return 0;
}

static void reap_image(struct tw_writer *writer, uint32_t index)
{
	if (tw_rs_image_reap(&writer->rs, index) && tw_writer_knows_image(writer, index) &&
	    !writer->images[index].gone_ticks)
		writer->images[index].gone_ticks = tw_clock_ticks();
}

/* Asks the kernel which processes and threads have died; rarely, because each question is a system call. */
static void reap(struct tw_recorder *recorder, bool asks_for_all)
{
	struct tw_rs *rs = &recorder->writer.rs;
	uint32_t count = tw_rs_scan(rs), images = tw_rs_image_count(rs), from = recorder->reaped_image;

	for (uint32_t i = 0; i < images; i++) {
		uint32_t distance = (i + images - from) % images;

		if (asks_for_all || distance < REAP_IMAGES || !tw_sys_is_process_there(rs->images[i].process_id))
			reap_image(&recorder->writer, i);
	}
	recorder->reaped_image = images ? (from + REAP_IMAGES) % images : 0;
	for (uint32_t i = 0; i < count; i++)
		tw_rs_ring_reap(rs, i);
	tw_writer_tell_refusals(&recorder->writer);
}

/*
 * A round of a stream, every 20 ms: all that was committed when it began, and then a mark. The reader hands out what
 * precedes the mark.
 */
static int drain_round(struct tw_recorder *recorder, uint64_t now_ns, bool wants_all);

/* Those of all threads so far; those of images that end are written then. */
static int tell_counts(struct tw_recorder *recorder, uint64_t now_ns)
{
	struct tw_writer *writer = &recorder->writer;
	int error = 0;

	recorder->counts_reported_ns = now_ns;
	for (uint32_t i = 0; i < tw_rs_image_count(&writer->rs) && !error; i++)
		if (tw_rs_image_state(&writer->rs, i) == TW_RS_IMAGE_LIVE && tw_writer_knows_image(writer, i))
			error = tw_writer_tell_counts(writer, i, false);
	return error;
}

/* No event waits for space for longer: after a second threads give up.  A process that is stopped holds back nothing behind that. */
#define WAITING_US 2000000

/* The earliest time of an event that waits for space; UINT64_MAX: none does.  Before the rings are drained. */
static uint64_t waiting_ticks(struct tw_writer *writer)
{
	uint64_t least = UINT64_MAX, oldest = tw_clock_ticks() - tw_clock_ticks_of_us(WAITING_US);
	uint32_t count = tw_writer_scan(writer);

	for (uint32_t i = 0; i < count; i++) {
		uint64_t ticks = tw_rs_ring_state(&writer->rs, i) == TW_RB_LIVE
					 ? tw_rb_waiting_ticks(tw_rs_ring(&writer->rs, i))
					 : UINT64_MAX;

		if (ticks >= oldest && ticks < least)
			least = ticks;
	}
	return least;
}

static int stream_round(struct tw_recorder *recorder, uint64_t now_ns, bool wants_all)
{
	struct tw_store *store = &recorder->writer.store;
	uint64_t ticks = tw_clock_ticks() - TW_MARK_MARGIN_NS * tw_clock_ticks_per_second() / 1000000000;
	bool has_counts = store->counts_ns && now_ns - recorder->counts_reported_ns >= store->counts_ns;
	uint64_t waiting;
	int stored, error;

	wants_all |= has_counts || now_ns - recorder->streamed_ns >= TW_PACE_TAKE_NS;
	waiting = wants_all ? waiting_ticks(&recorder->writer) : UINT64_MAX;
	stored = drain_round(recorder, now_ns, wants_all);
	if (stored < 0 || !wants_all)
		return stored;
	if (has_counts && (error = tell_counts(recorder, now_ns)))
		return error;
	recorder->streamed_ns = now_ns;
	ticks = waiting <= ticks ? waiting - 1 : ticks;
	ticks = ticks < store->marked_ticks ? store->marked_ticks : ticks;
	return tw_store_mark_stream(store, ticks, has_counts) ? store->stream.error : stored;
}

static int any_round(struct tw_recorder *recorder, uint64_t now_ns, bool wants_all)
{
	struct tw_store *store = &recorder->writer.store;
	int stored;

	if (!store->is_stream)
		return drain_round(recorder, now_ns, wants_all);
	stored = store->stream.error ? store->stream.error : stream_round(recorder, now_ns, wants_all);
	if (stored < 0)
		store->stats.last_error = stored;
	return stored;
}

/* Returns 1, 0, or a write error. */
static int drain_round(struct tw_recorder *recorder, uint64_t now_ns, bool wants_all)
{
	struct tw_writer *writer = &recorder->writer;
	uint32_t count;
	int any = tw_writer_collect(writer, false), error;

	if (any < 0)
		return any;
	count = tw_writer_scan(writer);
	for (uint32_t i = 0; i < tw_rs_image_count(&writer->rs); i++)
		tw_rs_populate_ahead(&writer->rs, i);
	for (uint32_t i = 0; i < count; i++) {
		int stored;

		if (!writer->rings[i].is_seen)
			continue;
		stored = take_ring(recorder, i, now_ns, wants_all);
		if (stored < 0)
			return stored;
		any |= stored;
	}
	error = tw_thread_states_round(writer, &recorder->states, now_ns, wants_all);
	if (!error)
		error = end_images(recorder);
	return error ? error : any;
}

/*
 * Overwriting rings of threads that ended are kept for the next snapshot until a living thread finds no ring: then
 * the ring of the oldest thread is freed. No file of a flight recorder tells of that thread any more.
 */
static void make_ring_free(struct tw_recorder *recorder)
{
	struct tw_writer *writer = &recorder->writer;
	uint32_t count = writer->rs.ring_count, oldest = count;

	for (uint32_t i = 0; i < count; i++) {
		if (tw_rs_ring_state(&writer->rs, i) == TW_RB_ENDED && writer->rings[i].is_seen &&
		    (oldest == count || writer->rings[i].lease < writer->rings[oldest].lease))
			oldest = i;
	}
	if (oldest < count && (recorder->is_flight || tw_writer_give_up_ring(writer, oldest) == 0))
		tw_writer_recycle_ring(writer, oldest);
}

static void reap_and_check(struct tw_recorder *recorder, uint64_t now_ns)
{
	struct tw_writer *writer = &recorder->writer;
	/* RELAXED rs.wanted: a hint: the number of threads that found no ring. */
	bool is_wanted = tw_load_relaxed(&writer->rs.control->wanted_count) != 0;

	if (now_ns - recorder->reaped_ns < (is_wanted ? REAP_WANTED_NS : REAP_NS))
		return;
	recorder->reaped_ns = now_ns;
	if (is_wanted) {
		/* RELAXED rs.wanted: as above. */
		tw_store_relaxed(&writer->rs.control->wanted_count, 0);
		if (recorder->policy == TW_RECORDER_OVERWRITE)
			make_ring_free(recorder);
	}
	reap(recorder, is_wanted);
	for (uint32_t i = 0; i < tw_rs_image_count(&writer->rs); i++) {
		if (tw_rs_image_state(&writer->rs, i) == TW_RS_IMAGE_LIVE && tw_writer_knows_image(writer, i) &&
		    !writer->store.stats.is_stalled && !recorder->is_flight) {
			tw_writer_tell_no_ring(writer, i);
			tw_writer_tell_ended_counts(writer, i);
		}
	}
}

TW_API int tw_recorder_poll(struct tw_recorder *recorder, uint64_t timeout_ns)
{
	struct tw_writer *writer = &recorder->writer;
	uint64_t now_ns = tw_clock_monotonic_ns();
	uint32_t request;
	bool is_asked = tw_rs_delivery_poll(&writer->rs, &request);
	uint64_t waiting = is_asked ? waiting_ticks(writer) : UINT64_MAX;
	int stored = 0;

	if (now_ns >= recorder->retry_ns) {
		/* After a long sleep, records that came during it have waited long enough. */
		recorder->states.is_asked = is_asked;
		stored = any_round(recorder, now_ns, is_asked || now_ns - recorder->round_ns >= TW_PACE_TAKE_NS);
		recorder->round_ns = now_ns;
		if (is_asked && stored >= 0)
			stored = await_written(recorder, stored);
		if (is_asked && stored >= 0)
			tw_rs_delivery_done(&writer->rs, request, waiting);
	}
	/*
	 * Without a heartbeat for a second threads stop waiting for us: so it is while the disk is full, or takes
	 * that long for a block.
	 */
	if (stored < 0)
		recorder->retry_ns = now_ns + TW_PACE_RETRY_NS;
	else if (now_ns >= recorder->retry_ns && !tw_writer_is_writing(writer))
		tw_rs_heartbeat(&writer->rs);
	if (recorder->holds_soon)
		tw_holder_prepare(&recorder->holder, &writer->rs);
	recorder->holds_soon = false;
	tw_asked_poll(&recorder->asked, &recorder->holder, &writer->rs);
	if (recorder->asked.is_out && timeout_ns > TW_HOLDER_LOOK_NS)
		timeout_ns = TW_HOLDER_LOOK_NS;
	tw_confined_check(&writer->rs, &recorder->confined, now_ns);
	if (stored >= 0)
		tw_run_delay_sample(writer, &recorder->run_delay, now_ns);
	reap_and_check(recorder, now_ns);
	/* Also of images that write nothing more. */
	for (uint32_t i = 0; writer->store.segment_ns && i < tw_rs_image_count(&writer->rs); i++)
		tw_writer_rotate(writer, i);
	for (uint32_t i = 0; writer->store.durable_ns && i < tw_rs_image_count(&writer->rs); i++)
		tw_writer_sync(writer, i, now_ns);
	tw_pace_rest(&recorder->pace, &writer->rs, tw_pace_longest_ns(writer, now_ns < recorder->retry_ns, now_ns),
		     tw_thread_states_rest_ns(&recorder->states, now_ns,
					      tw_run_delay_rest_ns(&recorder->run_delay, now_ns, timeout_ns)));
	return stored > 0;
}

TW_API void tw_recorder_wake(struct tw_recorder *recorder)
{
	tw_rs_wake(&recorder->writer.rs);
}

TW_API void tw_recorder_hurry(struct tw_recorder *recorder)
{
	tw_stream_out_hurry(&recorder->writer.store.stream);
}

TW_API int tw_recorder_drain(struct tw_recorder *recorder)
{
	int stored;

	reap(recorder, true);
	recorder->states.is_asked = true;
	stored = await_written(recorder, any_round(recorder, tw_clock_monotonic_ns(), true));
	if (stored >= 0)
		tw_rs_heartbeat(&recorder->writer.rs);
	return stored < 0 ? stored : 0;
}

static int snapshot_all(struct tw_recorder *recorder)
{
	struct tw_writer *writer = &recorder->writer;
	uint32_t count;

	count = tw_writer_scan(writer);
	for (uint32_t i = 0; i < count; i++) {
		int error = writer->rings[i].is_seen ? tw_writer_snapshot_ring(writer, i) : 0;

		if (error < 0)
			return error;
	}
	return 0;
}

TW_API int tw_recorder_snapshot(struct tw_recorder *recorder)
{
	if (recorder->policy != TW_RECORDER_OVERWRITE)
		return TW_EBADARG;
	reap(recorder, true);
	return snapshot_all(recorder);
}

TW_API void tw_recorder_stats(const struct tw_recorder *recorder, struct tw_recorder_stats *out)
{
	const struct tw_store *store = &recorder->writer.store;

	*out = store->stats;
	out->duration_ns = tw_clock_monotonic_ns() - recorder->started_ns;
	/* If anything was stored, a segment was begun, so the common header is complete. */
	if (store->first_ticks)
		out->events_ns = (uint64_t)((double)(store->last_ticks - store->first_ticks) * 1e9 /
					    (double)store->header.ticks_per_second);
}

TW_API int tw_recorder_follow_threads(struct tw_recorder *recorder, int32_t process_id)
{
	int error = tw_thread_states_open_process(&recorder->states, process_id);

	recorder->writer.store.stats.states_error = error;
	return error;
}

TW_API void tw_recorder_stopped(struct tw_recorder *recorder, enum tw_stop why, uint64_t limit)
{
	recorder->writer.store.account[TW_ACCOUNT_STOPPED] = TW_ACCOUNT_STOP(why, limit);
}

TW_API void tw_recorder_close(struct tw_recorder *recorder)
{
	tw_rs_close(&recorder->writer.rs);
	tw_rs_end_waits(&recorder->writer.rs);
}
