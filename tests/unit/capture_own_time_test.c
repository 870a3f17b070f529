/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: time that the tracer took for itself stands in a capture, and is no event of the program.
 *
 * Method: a capture made by hand is read with and without it.
 */
#include "capture_help.h"

static void it_is_no_event(void **state)
{
	struct maker *maker = begin_maker();
	const struct tw_capture_filter with = {.wants_own_time = true};
	const uint64_t wait = 300, setup = 40;
	struct tw_block_header header;
	struct tw_capture *capture;
	struct tw_capture_info info;

	maker_call(maker, 0, 2000, 0, 0);
	maker_record(maker, 0, 2100, TW_EVENT_OWN_TIME, TW_OWN_TIME_WAIT, &wait, 1);
	maker_call(maker, 0, 2100, 1, 0);
	maker_record(maker, 0, 2500, TW_EVENT_OWN_TIME, TW_OWN_TIME_SETUP, &setup, 1);
	header = maker_flush(maker, 0);
	assert_int_equal(header.event_count, 2);
	assert_int_equal(header.own_count, 2);
	assert_int_equal(header.own[0].count, 1);
	assert_int_equal(header.own[0].ticks, 300);
	assert_int_equal(header.own[1].count, 1);
	assert_int_equal(header.own[1].ticks, 40);
	assert_int_equal(header.end_sequence, 4);
	end_maker(maker, true);
	capture = open_capture();
	tw_capture_info(capture, &info);
	assert_int_equal(info.events, 2);
	for (int wants = 0; wants < 2; wants++) {
		const struct tw_capture_event *batch;
		struct tw_capture_events *events;
		uint64_t own_ns = 0;

		assert_int_equal(tw_capture_events_create(capture, wants ? &with : NULL, &events), 0);
		assert_int_equal(tw_capture_events_next(events, &batch), wants ? 4 : 2);
		for (int i = 0; i < (wants ? 4 : 2); i++)
			own_ns += tw_capture_own_ns(capture, &batch[i]);
		assert_int_equal(own_ns, wants ? 340 : 0);
		tw_capture_events_destroy(events);
	}
	tw_capture_close(capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_no_event),
	};
	int failed;

	begin_directory();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	end_directory();
	return failed;
}
