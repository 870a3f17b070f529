/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: a capture holds the time that the tracer used for itself, and it is no event of the program: neither among the
 * events read nor among the lost ones.
 *
 * Method: a handmade capture is read with and without it; an overwriting ring has it between its events.
 */
#include "capture_help.h"
#include "pipeline/hit/hit.h"
#include "pipeline/thread/space.h"

static void own_time_is_no_event(void **state)
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

/* Each event is kept or lost, and own time counts as neither. */
static void own_time_is_not_lost_in_overwritten_rings(void **state)
{
	const uint64_t none[TW_RB_CAUSES] = {0};
	struct tw_rb_shared *shared = aligned_alloc(4096, 4096 + TW_RB_BYTES_MIN);
	uint8_t *copy = malloc(TW_RB_BYTES_MIN);
	struct tw_rb_loss_record loss;
	struct tw_thread_ring ring = {0};
	struct tw_rb_stretch copied;
	uint64_t kept = 0, own = 0;
	int64_t bytes;

	memset(shared, 0, 4096 + TW_RB_BYTES_MIN);
	tw_rb_shared_init(shared, 0, TW_RB_BYTES_MIN);
	assert_true(tw_rb_producer_init(&ring.producer, shared, TW_RB_OVERWRITE));
	for (uint64_t number = 1; number <= 20000; number++) {
		struct tw_rb_record *record;

		assert_int_equal(tw_rb_reserve(&ring.producer, 16, number, (void **)&record), TW_RB_OK);
		*record = (struct tw_rb_record){number, TW_RB_HEAD(TW_EVENT_CALL, 0, 16, 1)};
		tw_rb_commit(&ring.producer, 16);
		if (number % 50 == 0)
			tw_space_tell(&ring.producer, TW_OWN_TIME_SETUP, number, 1);
	}
	bytes = tw_rb_snapshot(shared, TW_RB_BYTES_MIN, copy, &copied);
	assert_true(bytes > 0);
	for (int64_t at = 0; at < bytes; at += TW_RB_HEAD_BYTES(((struct tw_rb_record *)(copy + at))->head)) {
		bool is_own = TW_RB_HEAD_KIND(((struct tw_rb_record *)(copy + at))->head) == TW_EVENT_OWN_TIME;

		own += is_own;
		kept += !is_own;
	}
	assert_true(own > 10);
	assert_true(tw_rb_unreported_loss(shared, none, &loss));
	assert_int_equal(loss.lost[TW_RB_LOST_FULL] + kept, 20000);
	free(copy);
	free(shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_time_is_no_event),
		cmocka_unit_test(own_time_is_not_lost_in_overwritten_rings),
	};

	return RUN_IN_DIRECTORY(tests);
}
