/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	A live reader of a stream gets the events of a process in the order of its runs, whatever the clocks of its
 *	threads say, and wherever the marks cut its runs; and their times, however long the stream continues.
 * Method	Handmade streams: two threads whose clocks disagree, a process that moves between them, and marks in the
 *	middle of its runs; a counter whose rate changes with each of a thousand snapshots.
 */
#include "capture_help.h"

enum { PROCESS = 7, FIRST = 0, SECOND = 1 };

/* Calls are numbered in the order in which the process made them. */
static uint64_t next_number;

static void begin_run(struct maker *maker, uint32_t thread, uint64_t ticks, uint64_t run)
{
	maker_record(maker, thread, ticks, TW_EVENT_SWITCH, PROCESS, &run, 1);
}

static void put_calls(struct maker *maker, uint32_t thread, uint64_t ticks, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		maker_call(maker, thread, ticks + i, next_number++, 0);
}

/* All events up to these ticks are in the stream. */
static void put_mark(struct maker *maker, uint64_t ticks)
{
	struct tw_block_header header = {.type = TW_BLOCK_MARK, .first_ticks = ticks, .last_ticks = ticks};
	const uint8_t *stored;

	maker_flush(maker, FIRST);
	maker_flush(maker, SECOND);
	tw_block_encode_bytes(maker->store.encoder, &header, NULL, 0, &stored);
	assert_int_equal(tw_store_append(&maker->store, &maker->image, &header, stored), 0);
}

static int open_only_segment(void)
{
	DIR *opened = opendir(capture_path);
	const struct dirent *entry;
	int fd = -1;

	while ((entry = readdir(opened)) != NULL)
		if (entry->d_name[0] != '.' && fd < 0)
			fd = openat(dirfd(opened), entry->d_name, O_RDONLY);
	closedir(opened);
	return fd;
}

static void comes_in_order(struct maker *maker, uint64_t count)
{
	struct tw_capture_events *events;
	const struct tw_capture_event *batch;
	struct tw_capture *capture;
	uint64_t seen = 0;
	int64_t got;
	int fd;

	assert_int_equal(next_number, count);
	end_maker(maker, true);
	fd = open_only_segment();
	assert_int_equal(tw_capture_open_stream(fd, &capture), 0);
	assert_int_equal(tw_capture_events_create(capture, NULL, &events), 0);
	while ((got = tw_capture_events_next(events, &batch)) > 0)
		for (int64_t i = 0; i < got; i++)
			assert_int_equal(batch[i].payload[0], seen++);
	assert_int_equal(got, 0);
	assert_int_equal(seen, count);
	tw_capture_events_destroy(events);
	tw_capture_close(capture);
	close(fd);
}

/* The second thread's clock is behind: its run seems to begin before the rest of the first one's was made. */
static void a_run_waits_for_one_that_continues_past_a_mark(void **state)
{
	struct maker *maker = begin_maker();

	next_number = 0;
	begin_run(maker, FIRST, 2000, 1);
	put_calls(maker, FIRST, 2001, 5);
	put_mark(maker, 3000);
	put_calls(maker, FIRST, 5000, 5);
	begin_run(maker, SECOND, 4000, 2);
	put_calls(maker, SECOND, 4001, 5);
	put_mark(maker, 6000);
	comes_in_order(maker, 15);
}

/*
 * The second thread's clock is ahead.  The rest of its run comes after the mark, and so does the rest of the run after
 * it, whose beginning came before: at that time there was nothing to wait for.
 */
static void a_continued_run_waits_for_late_records(void **state)
{
	struct maker *maker = begin_maker();

	next_number = 0;
	begin_run(maker, SECOND, 2000, 2);
	put_calls(maker, SECOND, 2001, 5);
	begin_run(maker, FIRST, 2100, 3);
	put_mark(maker, 3000);
	put_calls(maker, SECOND, 8000, 5);
	put_calls(maker, FIRST, 7000, 5);
	put_mark(maker, 9000);
	comes_in_order(maker, 15);
}

/* ---- time ---- */

/* One second of the program's time each; each has fewer ticks than the one before. */
static struct tw_format_clock clock_at(unsigned second)
{
	struct tw_format_clock clock = {1000, 1000, 1000, 1000};

	for (unsigned i = 0; i < second; i++)
		clock.ticks += 1000000000 - i * 500000;
	clock.monotonic_ns += second * UINT64_C(1000000000);
	clock.realtime_ns = clock.boottime_ns = clock.monotonic_ns;
	return clock;
}

/* Records like marks, of a kind that means nothing to a reader of streams. */
static void put_snapshot(struct maker *maker, unsigned second)
{
	struct tw_block_header header = {.type = TW_BLOCK_ACCOUNT, .clock = clock_at(second)};
	const uint8_t *stored;

	tw_block_encode_bytes(maker->store.encoder, &header, NULL, 0, &stored);
	assert_int_equal(tw_store_append(&maker->store, &maker->image, &header, stored), 0);
}

static void times_are_right_however_long_it_goes_on(void **state)
{
	enum { SECONDS = 1000, BETWEEN_MARKS = 9 };
	struct maker *maker = begin_maker();
	struct tw_capture_events *events;
	const struct tw_capture_event *batch;
	struct tw_capture *capture;
	uint64_t seen = 0;
	int64_t got;
	int fd;

	for (unsigned second = 1; second <= SECONDS; second++) {
		put_snapshot(maker, second);
		if (second % BETWEEN_MARKS)
			continue;
		/* In the middle of the second before the last known one. */
		maker_call(maker, FIRST, (clock_at(second - 1).ticks + clock_at(second - 2).ticks) / 2, second, 0);
		put_mark(maker, clock_at(second).ticks);
	}
	end_maker(maker, true);
	fd = open_only_segment();
	assert_int_equal(tw_capture_open_stream(fd, &capture), 0);
	assert_int_equal(tw_capture_events_create(capture, NULL, &events), 0);
	while ((got = tw_capture_events_next(events, &batch)) > 0) {
		for (int64_t i = 0; i < got; i++) {
			uint64_t right = (batch[i].payload[0] - 2) * 1000000000 + 500000000 + 1000;

			assert_in_range(batch[i].time_ns, right - 1000, right + 1000);
			seen++;
		}
	}
	assert_int_equal(seen, SECONDS / BETWEEN_MARKS);
	tw_capture_events_destroy(events);
	tw_capture_close(capture);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_waits_for_one_that_continues_past_a_mark),
		cmocka_unit_test(a_continued_run_waits_for_late_records),
		cmocka_unit_test(times_are_right_however_long_it_goes_on),
	};

	return RUN_IN_DIRECTORY(tests);
}
