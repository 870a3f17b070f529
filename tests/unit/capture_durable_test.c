/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    A file is synced as often as durable_ns says, and not more often.  A slow sync does not delay writing,
 *	   rotation or removal; data that could not be synced is reported.
 * Method  A recorder whose syncs are counted, held until the test releases them, or fail.  Only the count depends on
 *	   the clock.
 */
#include "capture_producers.h"

#include <semaphore.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned syncs, failing_after;
static sem_t gate;
static bool is_gated;

static int counted_sync(int fd)
{
	struct timespec end;
	bool fails;

	pthread_mutex_lock(&mutex);
	syncs++;
	fails = failing_after && syncs > failing_after;
	pthread_mutex_unlock(&mutex);
	clock_gettime(CLOCK_REALTIME, &end);
	/* A recorder that waited for this sync would never open the gate. */
	end.tv_sec += 30;
	while (is_gated && sem_timedwait(&gate, &end) && errno == EINTR)
		;
	errno = EIO;
	return fails ? -1 : fdatasync(fd);
}

static const struct tw_segment_io counted_disk = {pwritev, counted_sync};

static unsigned count_syncs(void)
{
	unsigned count;

	pthread_mutex_lock(&mutex);
	count = syncs;
	pthread_mutex_unlock(&mutex);
	return count;
}

static struct tw_recorder *begin(struct tw_recorder_options *options, bool gated, unsigned failing)
{
	struct tw_recorder *recorder = begin_recording(options);

	syncs = 0;
	failing_after = failing;
	is_gated = gated;
	sem_init(&gate, 0, 0);
	tw_recorder_set_io(recorder, &counted_disk);
	return recorder;
}

static unsigned files_that_end_in(const char *end)
{
	DIR *opened = opendir(capture_path);
	const struct dirent *entry;
	unsigned count = 0;

	assert_non_null(opened);
	while ((entry = readdir(opened)) != NULL) {
		size_t bytes = strlen(entry->d_name);

		count += bytes > strlen(end) && strcmp(entry->d_name + bytes - strlen(end), end) == 0;
	}
	closedir(opened);
	return count;
}

/* Polls as often as it can for 200 ms, with new data each time. */
static void a_file_is_synced_as_often_as_asked(void **state)
{
	struct tw_recorder_options options = {.ring_bytes = 1 << 18, .durable_ns = 20000000};
	struct tw_recorder *recorder = begin(&options, false, 0);
	uint64_t begun_ns = tw_clock_monotonic_ns(), emitted = 0, taken_ns;
	struct tw_recorder_stats stats;
	struct program program;
	struct tw_rb_producer producer;

	begin_program(&program, tw_recorder_ring_set(recorder), 10);
	assert_true(begin_thread(&program, &producer, 1));
	while (tw_clock_monotonic_ns() - begun_ns < 200000000) {
		/* Enough that the round itself stores it after reading the clock. */
		for (int i = 0; i < 1200; i++)
			emitted += emit_call(&producer, 1, emitted, 0);
		tw_recorder_poll(recorder, 0);
	}
	assert_int_equal(tw_recorder_finish(recorder, &stats), 0);
	taken_ns = tw_clock_monotonic_ns() - begun_ns;
	assert_int_equal(stats.events, emitted);
	assert_in_range(count_syncs(), 1, taken_ns / options.durable_ns + 1);
	remove_folder(capture_path);
}

/* Records calls as they come; returns how many were stored in the ring. */
static uint64_t record_calls(struct tw_recorder *recorder, uint64_t calls)
{
	struct tw_rb_producer producer;
	struct program program;
	uint64_t emitted = 0;

	begin_program(&program, tw_recorder_ring_set(recorder), 10);
	assert_true(begin_thread(&program, &producer, 1));
	for (uint64_t i = 0; i < calls; i++) {
		emitted += emit_call(&producer, 1, emitted, with_noise(0, i));
		if (i % 500 == 0)
			assert_int_equal(tw_recorder_drain(recorder), 0);
		if (i % 500 == 1)
			tw_recorder_poll(recorder, 0);
	}
	return emitted;
}

/* The disk does not respond: rings are emptied all the same, segments end, the oldest are removed. */
static void a_slow_sync_delays_nothing(void **state)
{
	struct tw_recorder_options options = {.ring_bytes = 1 << 16, .durable_ns = 1, .segment_bytes = 1 << 16};
	struct tw_recorder *recorder = begin(&options, true, 0);
	struct account account = {0};
	struct tw_recorder_stats stats;
	struct tw_capture *capture;

	/* Many times the capacity of the ring. */
	assert_int_equal(record_calls(recorder, 60000), 60000);
	assert_in_range(count_syncs(), 0, 1);
	tw_recorder_stats(recorder, &stats);
	assert_true(stats.segments > 3);
	assert_int_equal(files_that_end_in(".tws"), 0);
	for (int i = 0; i < 1000; i++)
		sem_post(&gate);
	assert_int_equal(tw_recorder_finish(recorder, &stats), 0);
	assert_int_equal(stats.events, 60000);
	assert_int_equal(files_that_end_in(".tws"), stats.segments);
	assert_int_equal(files_that_end_in(".part"), 0);
	capture = open_capture();
	tw_capture_scan(capture, NULL, check_batch, &account);
	assert_int_equal(account.calls, 60000);
	tw_capture_close(capture);
	remove_folder(capture_path);
}

static void old_segments_go_when_they_have_their_name(void **state)
{
	struct tw_recorder_options options = {.ring_bytes = 1 << 16,
					      .durable_ns = 1,
					      .segment_bytes = 1 << 16,
					      .segments_kept = 2};
	struct tw_recorder *recorder = begin(&options, false, 0);
	struct tw_recorder_stats stats;

	record_calls(recorder, 60000);
	assert_int_equal(tw_recorder_finish(recorder, &stats), 0);
	assert_true(stats.segments_removed > 2);
	assert_int_equal(files_that_end_in(".tws"), stats.segments - stats.segments_removed);
	assert_int_equal(files_that_end_in(".part"), 0);
	remove_folder(capture_path);
}

/* The kernel reports a failed write once: the file it was reported for does not become complete later. */
static void unsynced_data_is_reported(void **state)
{
	struct tw_recorder_options options = {.ring_bytes = 1 << 16, .durable_ns = 1, .segment_bytes = 1 << 16};
	struct tw_recorder *recorder = begin(&options, false, 1);
	struct tw_recorder_stats stats;

	record_calls(recorder, 20000);
	assert_int_equal(tw_recorder_finish(recorder, &stats), TW_EIO);
	assert_int_equal(stats.events, 20000);
	assert_int_equal(stats.last_error, TW_EIO);
	assert_true(files_that_end_in(".part") > 0);
	remove_folder(capture_path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_synced_as_often_as_asked),
		cmocka_unit_test(a_slow_sync_delays_nothing),
		cmocka_unit_test(old_segments_go_when_they_have_their_name),
		cmocka_unit_test(unsynced_data_is_reported),
	};

	return RUN_IN_DIRECTORY(tests);
}
