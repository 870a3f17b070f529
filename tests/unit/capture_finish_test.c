/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	The end of a recording takes a thread's records from each of the rings that it grew through, in whatever order
 *	the recorder's entries for them are.
 * Method	Two images of one process, as exec() leaves them.  The recorder frees the first one's entries of rings
 *	after it has seen the second one's first ring, so the larger rings get earlier entries.  Then everything ends at
 *	once.
 */
#include "capture_help.h"

enum { FIRST_RINGS = 4, RECORD_BYTES = 64 };

static uint64_t made;

/* Writes until the largest ring is full. */
static void fill(struct tw_rs *member, struct tw_rb_producer *producer)
{
	for (;;) {
		void *space;
		enum tw_rb_outcome outcome = tw_rb_reserve(producer, RECORD_BYTES, made + 1, &space);

		if (outcome == TW_RB_WAIT && tw_rb_lacks_memory(producer, RECORD_BYTES)) {
			assert_true(tw_rs_ring_populate(member, producer, true));
			continue;
		}
		if (outcome == TW_RB_FULL)
			return;
		if (outcome == TW_RB_WAIT) {
			assert_true(tw_rs_ring_grow(member, producer));
			continue;
		}
		assert_int_equal(outcome, TW_RB_OK);
		memset(space, 0, RECORD_BYTES);
		((uint64_t *)space)[0] = made + 1;
		((uint64_t *)space)[1] = TW_RB_HEAD(TW_EVENT_CALL, 0, RECORD_BYTES, 1);
		tw_rb_commit(producer, RECORD_BYTES);
		made++;
	}
}

static void rings_that_grew_in_any_order(void **unused)
{
	struct tw_recorder_options options = {.path = capture_path, .ring_bytes = 1 << 22, .cap_bytes = 1 << 26};
	struct tw_rs_claim who = {.scheduler_id = 1, .tracee_id = 1};
	struct tw_rb_producer before[FIRST_RINGS], producer;
	struct tw_recorder_stats stats = {0};
	struct tw_rs first, second;
	struct tw_recorder *recorder;
	uint32_t image;

	assert_int_equal(tw_recorder_create(&options, &recorder), 0);
	assert_int_equal(tw_rs_attach(&first, tw_recorder_ring_set_path(recorder)), 0);
	assert_int_equal(tw_rs_image_claim(&first, &image), 0);
	for (unsigned i = 0; i < FIRST_RINGS; i++)
		assert_true(tw_rs_ring_claim(&first, &who, &before[i]));
	tw_recorder_poll(recorder, 0);
	assert_int_equal(tw_rs_attach(&second, tw_recorder_ring_set_path(recorder)), 0);
	assert_int_equal(tw_rs_image_claim(&second, &image), 0);
	assert_true(tw_rs_ring_claim(&second, &who, &producer));
	/* Sees both images, and finishes the first. */
	for (unsigned i = 0; i < 4; i++)
		tw_recorder_poll(recorder, 0);
	fill(&second, &producer);
	tw_rs_ring_end(&second, &producer);
	tw_rs_image_end(&second, image);
	assert_int_equal(tw_recorder_finish(recorder, &stats), 0);
	assert_true(made >= (1 << 22) / RECORD_BYTES);
	assert_int_equal(stats.events, made);
	assert_int_equal(stats.lost[TW_RB_LOST_FULL], 1);
	tw_rs_detach(&first);
	tw_rs_detach(&second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(rings_that_grew_in_any_order)};

	tw_clock_init();
	return RUN_IN_DIRECTORY(tests);
}
