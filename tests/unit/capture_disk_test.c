/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: a disk that is full, slow, interrupted or broken loses no event uncounted, and stops no thread.
 *
 * Method: a recorder whose writes pass through a function that fails on request, and threads (pthread_create) that
 * continue; then everything is counted.
 */
#include "capture_producers.h"

static uint64_t disk_room; /* bytes that the disk still accepts */
static unsigned disk_errno;
static unsigned write_calls;

static ssize_t write_to_small_disk(int fd, const struct iovec *pieces, int count, off_t offset)
{
	struct iovec first = pieces[0];

	write_calls++;
	if (write_calls % 5 == 0) {
		errno = EINTR;
		return -1;
	}
	if (!disk_room) {
		errno = (int)disk_errno;
		return -1;
	}
	/* In small pieces, as a disk may do. */
	if (write_calls % 3 == 0 && first.iov_len > 100)
		first.iov_len = 100;
	if (first.iov_len > disk_room)
		first.iov_len = disk_room;
	disk_room -= first.iov_len;
	return pwritev(fd, &first, 1, offset);
}

static _Atomic unsigned failed_syncs;

static int sync_fails(int fd)
{
	failed_syncs++;
	errno = EIO;
	return -1;
}

static const struct tw_segment_io small_disk = {write_to_small_disk, fdatasync};
/* Syncs have a thread of their own, which is asked between two writes: a write gives it time until one has failed. */
static ssize_t write_slowly_at_first(int fd, const struct iovec *pieces, int count, off_t offset)
{
	for (unsigned i = 0; i < 200 && !failed_syncs; i++)
		usleep(1000);
	return pwritev(fd, pieces, count, offset);
}

static const struct tw_segment_io lying_disk = {write_slowly_at_first, sync_fails};

static void a_full_disk_loses_nothing_uncounted(void **state)
{
	struct tw_recorder_options options = {.ring_bytes = 1 << 18};
	struct tw_recorder *recorder = begin_recording(&options);
	struct tw_recorder_stats stats;
	struct account account = {0};
	struct tw_capture *capture;
	struct program program;
	struct tw_rb_producer producer;
	uint64_t emitted = 0;

	disk_room = 60000;
	disk_errno = ENOSPC;
	tw_recorder_set_io(recorder, &small_disk);
	begin_program(&program, tw_recorder_ring_set(recorder), 10);
	assert_true(begin_thread(&program, &producer, 1));
	for (uint64_t i = 0; i < 100000; i++) {
		emitted += emit_call(&producer, 1, emitted, with_noise(0, i));
		if (i % 1000 == 0)
			tw_recorder_poll(recorder, 0);
		if (i == 50000) {
			tw_recorder_stats(recorder, &stats);
			/* Of a disk that was slow for a moment, blocks are written behind the recorder's back. */
			for (unsigned waits = 0; waits < 5000 && !stats.is_stalled; waits++) {
				usleep(1000);
				tw_recorder_poll(recorder, 0);
				tw_recorder_stats(recorder, &stats);
			}
			assert_true(stats.is_stalled);
			assert_int_equal(stats.last_error, TW_ENOSPC);
			assert_true(stats.write_errors > 0);
			/* Space is freed. */
			disk_room = 1 << 30;
			usleep(25000);
		}
	}
	assert_int_equal(tw_recorder_finish(recorder, &stats), 0);
	assert_int_equal(stats.unstored, 0);
	assert_int_equal(stats.events, emitted);
	assert_int_equal(stats.lost[TW_LOST_FULL], 100000 - emitted);
	assert_true(emitted < 100000);
	capture = open_capture();
	tw_capture_scan(capture, NULL, check_batch, &account);
	assert_int_equal(account.calls, emitted);
	assert_int_equal(account.lost, 100000 - emitted);
	tw_capture_close(capture);
	remove_folder(capture_path);
}

static void a_disk_that_stays_full_is_reported(void **state)
{
	struct tw_recorder_options options = {.ring_bytes = 1 << 18};
	struct tw_recorder *recorder = begin_recording(&options);
	struct tw_recorder_stats stats;
	struct account account = {0};
	struct tw_capture_info info;
	struct tw_capture *capture;
	struct program program;
	uint64_t emitted;

	disk_room = 60000;
	disk_errno = ENOSPC;
	tw_recorder_set_io(recorder, &small_disk);
	begin_program(&program, tw_recorder_ring_set(recorder), 10);
	produce_with(recorder, &program, 1, 40000, &emitted);
	assert_int_equal(tw_recorder_finish(recorder, &stats), TW_ENOSPC);
	assert_true(stats.unstored > 0);
	assert_int_equal(stats.events + stats.lost[TW_LOST_FULL], 40000);
	capture = open_capture();
	tw_capture_info(capture, &info);
	assert_int_equal(info.events, stats.events);
	assert_false(info.is_complete);
	tw_capture_scan(capture, NULL, check_batch, &account);
	assert_int_equal(account.calls, stats.events);
	tw_capture_close(capture);
	remove_folder(capture_path);
}

static void a_disk_that_cannot_sync_gets_a_new_file(void **state)
{
	struct tw_recorder_options options = {.ring_bytes = 1 << 18,
					      .policy = TW_RECORDER_BLOCK,
					      .durable_ns = 1000000};
	struct tw_recorder *recorder = begin_recording(&options);
	struct tw_recorder_stats stats;
	struct account account = {0};
	struct tw_capture *capture;
	struct program program;
	uint64_t emitted;

	failed_syncs = 0;
	tw_recorder_set_io(recorder, &lying_disk);
	begin_program(&program, tw_recorder_ring_set(recorder), 10);
	produce_with(recorder, &program, 1, 200000, &emitted);
	assert_int_equal(tw_recorder_finish(recorder, &stats), TW_EIO);
	assert_true(stats.segments > 1);
	assert_int_equal(stats.last_error, TW_EIO);
	capture = open_capture();
	tw_capture_scan(capture, NULL, check_batch, &account);
	assert_int_equal(account.calls, 200000);
	tw_capture_close(capture);
	remove_folder(capture_path);
}

static const struct tw_rs *watched;
static pthread_t recording;
static uint64_t last_beat_ns;
static unsigned beats;
static _Atomic bool is_queued; /* a write took long, and another thread writes from then on, several blocks at a time */

/* Counts the recorder's heartbeats between two writes. */
static ssize_t write_and_watch(int fd, const struct iovec *pieces, int count, off_t offset)
{
	uint64_t beat_ns;

	if (pthread_equal(pthread_self(), recording)) {
		/* RELAXED test.heartbeat: of this thread. */
		beat_ns = tw_load_relaxed(&watched->control->heartbeat_ns);
		beats += beat_ns != last_beat_ns;
		last_beat_ns = beat_ns;
	} else {
		is_queued = true;
	}
	return pwritev(fd, pieces, count, offset);
}

static const struct tw_segment_io watched_disk = {write_and_watch, fdatasync};

/* False: the disk was slow, and the recorder had no part in its writes. */
static bool watch_a_round(void)
{
	struct tw_recorder_options options = {.ring_bytes = 1 << 20, .policy = TW_RECORDER_BLOCK};
	struct tw_recorder *recorder = begin_recording(&options);
	struct tw_recorder_stats stats;
	struct program program;
	struct tw_rb_producer producer;
	uint64_t emitted = 0;
	unsigned seen;

	tw_recorder_set_io(recorder, &watched_disk);
	watched = tw_recorder_ring_set(recorder);
	recording = pthread_self();
	begin_program(&program, tw_recorder_ring_set(recorder), 10);
	assert_true(begin_thread(&program, &producer, 1));
	for (uint64_t i = 0; i < 30000; i++)
		emitted += emit_call(&producer, 1, emitted, with_noise(0, i));
	beats = 0;
	is_queued = false;
	tw_recorder_poll(recorder, 0);
	seen = beats;
	assert_int_equal(tw_recorder_finish(recorder, &stats), 0);
	assert_int_equal(stats.events, emitted);
	remove_folder(capture_path);
	assert_true(seen >= 3 || is_queued);
	return !is_queued;
}

/* A thread that waits for space waits as long as there is progress, even within a round that is not over. */
static void each_block_is_progress(void **state)
{
	while (!watch_a_round())
		;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_block_is_progress),
		cmocka_unit_test(a_full_disk_loses_nothing_uncounted),
		cmocka_unit_test(a_disk_that_stays_full_is_reported),
		cmocka_unit_test(a_disk_that_cannot_sync_gets_a_new_file),
	};

	return RUN_IN_DIRECTORY(tests);
}
