/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Calls that a run-time has counted and not written (tw_producer_sum_calls()) are in the capture: the calls of each function, as
 *	counted from the start, and the time of those that have one.
 * Method	More functions than a block of counters has, in no order of their numbers, every second with a time; read back one by one.
 */
#include "capture_help.h"
#include "tracewheel/counts.h"
#include "tracewheel/producer.h"

enum { FUNCTIONS = 1000 };

static struct tw_producer_name name_of(const char *text)
{
	return (struct tw_producer_name){text, strlen(text)};
}

/* Numbers in another order: 389 and FUNCTIONS have no common divisor. */
static void sum_all(struct tw_producer *producer, const uint32_t ids[FUNCTIONS])
{
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		unsigned at = i * 389 % FUNCTIONS;

		assert_int_equal(tw_producer_sum_calls(producer, ids[at], at + 1,
						       at % 2 ? (uint64_t)at * 1000 : TW_PRODUCER_NO_TIME),
				 0);
	}
	assert_int_equal(tw_producer_sum_calls(producer, UINT32_MAX, 1, 0), TW_ELIMIT);
}

static void record(uint32_t ids[FUNCTIONS])
{
	struct tw_recorder_options options = {.path = capture_path};
	struct tw_recorder_stats stats;
	struct tw_recorder *recorder;
	struct tw_producer *producer;
	uint32_t module;

	remove_folder(capture_path);
	assert_int_equal(tw_recorder_create(&options, &recorder), 0);
	assert_int_equal(tw_producer_open(tw_recorder_ring_set_path(recorder), "test", &producer), 0);
	assert_int_equal(tw_producer_define_module(producer, name_of("bank"), &module), 0);
	for (unsigned i = 0; i < FUNCTIONS; i++)
		assert_int_equal(tw_producer_define_function(producer, module, name_of("deposit"), i % 256, &ids[i]),
				 0);
	sum_all(producer, ids);
	tw_recorder_close(recorder);
	tw_producer_close(producer);
	assert_int_equal(tw_recorder_finish(recorder, &stats), 0);
	assert_int_equal(stats.events, 0);
	assert_int_equal(stats.counted_calls, FUNCTIONS * (FUNCTIONS + 1) / 2);
}

static void sums_are_those_of_each_function(void **state)
{
	static uint32_t ids[FUNCTIONS];
	unsigned counted = 0, calls = 0, times = 0;
	const struct tw_capture_aggregate *row;
	const struct tw_capture_count *count;
	struct tw_capture_counted place;
	struct tw_capture *capture;
	uint32_t at = 0;

	record(ids);
	assert_int_equal(tw_capture_open(capture_path, NULL, &capture), 0);
	while (tw_capture_counted_next(capture, 0, &at, &place))
		counted++;
	for (at = 0; (count = tw_capture_count_next(capture, 0, &at)); calls++)
		assert_int_equal(count->count, count->place_id - ids[0] + 1);
	for (at = 0; (row = tw_capture_aggregate_next(capture, 0, &at)); times++) {
		assert_int_equal(row->aggregation.of, TW_AGGREGATE_DURATION);
		assert_int_equal(row->count, row->place_id - ids[0] + 1);
		assert_int_equal(row->sum, (row->place_id - ids[0]) * 1000);
	}
	assert_int_equal(counted, FUNCTIONS);
	assert_int_equal(calls, FUNCTIONS);
	assert_int_equal(times, FUNCTIONS / 2);
	tw_capture_close(capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_are_those_of_each_function),
	};

	return RUN_IN_DIRECTORY(tests);
}
