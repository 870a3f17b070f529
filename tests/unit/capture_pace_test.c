/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    While events come steadily, the recorder takes large pieces and polls seldom: less than 128 KiB stays in a
 *	   large ring until 20 ms have passed, and is then one block; a pause is never so long that a fast thread fills
 *	   a small ring; if few events come, pauses grow up to the longest.
 * Method  The decision of the pause, for rounds at made-up times.  A ring filled by the test, and a recorder polled
 *	   twice: a verdict counts only if both polls lie within 20 ms.
 */
#include "capture_help.h"
#include "pipeline/recorder/pace.h"

#define US	UINT64_C(1000)
#define MS	UINT64_C(1000000)
#define LONGEST (250 * MS)

static void pauses_follow_the_smallest_ring(void **state)
{
	static const struct {
		uint64_t ring_bytes;
		uint64_t pause_ns;
	} expected[] = {
		{UINT64_C(64) << 10, 20 * US}, /* the shortest sleep */
		{UINT64_C(256) << 10, 65536},  /* a quarter of the ring at a byte a nanosecond */
		{UINT64_C(1) << 20, 262144},
		{UINT64_C(64) << 20, 500 * US},
	};
	struct tw_pace pace;
	struct tw_pace_sleep sleep;
	uint64_t now_ns = 1000 * MS;

	(void)state;
	tw_pace_init(&pace);
	for (unsigned i = 0; i < sizeof expected / sizeof expected[0]; i++) {
		/* Twice at the same time: the time to fill a ring is unknown. */
		pace.last_busy_ns = now_ns;
		tw_pace_note_busy(&pace, expected[i].ring_bytes);
		sleep = tw_pace_next(&pace, LONGEST, now_ns);
		assert_int_equal(sleep.ns, expected[i].pause_ns);
		assert_true(sleep.is_deaf);
	}
	for (unsigned i = 0; i < sizeof expected / sizeof expected[0]; i++)
		tw_pace_note_busy(&pace, expected[3 - i].ring_bytes);
	assert_int_equal(tw_pace_next(&pace, LONGEST, now_ns).ns, 20 * US);
}

static void pauses_follow_the_rate(void **state)
{
	struct tw_pace pace;
	struct tw_pace_sleep sleep;
	uint64_t now_ns = 1000 * MS;

	(void)state;
	tw_pace_init(&pace);
	tw_pace_note_busy(&pace, UINT64_C(64) << 10);
	tw_pace_next(&pace, LONGEST, now_ns);
	/* The ring took 8 ms to fill: the next poll is after 2 ms, and after 4 more; a wake ends these. */
	tw_pace_note_busy(&pace, UINT64_C(64) << 10);
	sleep = tw_pace_next(&pace, LONGEST, now_ns += 8 * MS);
	assert_int_equal(sleep.ns, 2 * MS);
	assert_false(sleep.is_deaf);
	sleep = tw_pace_next(&pace, LONGEST, now_ns += 2 * MS);
	assert_int_equal(sleep.ns, 4 * MS);
	assert_false(sleep.is_deaf);
	for (unsigned i = 0; i < 10; i++)
		sleep = tw_pace_next(&pace, LONGEST, now_ns += MS);
	assert_int_equal(sleep.ns, LONGEST);
	/* Much after a long silence; the pause does not pass the next due time. */
	tw_pace_note_busy(&pace, UINT64_C(64) << 10);
	assert_int_equal(tw_pace_next(&pace, 3 * MS, now_ns + 60000 * MS).ns, 3 * MS);
}

static uint64_t stored_bytes(const struct tw_recorder *recorder, uint64_t *blocks)
{
	struct tw_recorder_stats stats;

	tw_recorder_stats(recorder, &stats);
	*blocks = stats.blocks;
	return stats.raw_bytes;
}

static void fill(struct tw_rb_producer *producer, uint64_t bytes)
{
	for (uint64_t at = 0; at < bytes; at += 32)
		assert_true(emit_call(producer, 1, at, at));
}

/* Returns whether both polls were early enough to decide. */
static bool leaves_little(struct tw_recorder *recorder, struct tw_rb_producer *producer)
{
	uint64_t begun_ns, before, after, blocks, blocks_after, filled;

	tw_recorder_drain(recorder);
	tw_recorder_poll(recorder, 0);
	begun_ns = tw_clock_monotonic_ns();
	tw_recorder_poll(recorder, 0);
	before = stored_bytes(recorder, &blocks);
	fill(producer, UINT64_C(96) << 10);
	tw_recorder_poll(recorder, 0);
	after = stored_bytes(recorder, &blocks_after);
	if (tw_clock_monotonic_ns() - begun_ns >= 20 * MS)
		return false;
	assert_int_equal(after, before);
	assert_int_equal(blocks_after, blocks);
	filled = UINT64_C(96) << 10;
	for (unsigned i = 0; i < 2; i++, filled += UINT64_C(16) << 10)
		fill(producer, UINT64_C(16) << 10);
	tw_recorder_poll(recorder, 0);
	after = stored_bytes(recorder, &blocks_after);
	assert_int_equal(after - before, filled);
	assert_int_equal(blocks_after, blocks + 1);
	return true;
}

static void little_is_left_in_a_large_ring(void **state)
{
	struct tw_recorder_options options = {.ring_bytes = UINT64_C(16) << 20, .policy = TW_RECORDER_BLOCK};
	struct tw_recorder *recorder = NULL;
	struct tw_recorder_stats stats;
	struct program program;
	struct tw_rb_producer producer;

	(void)state;
	remove_folder(capture_path);
	options.path = capture_path;
	assert_int_equal(tw_recorder_create(&options, &recorder), 0);
	begin_program(&program, tw_recorder_ring_set(recorder), 4);
	assert_true(begin_thread(&program, &producer, 1));
	fill(&producer, 320);
	tw_recorder_drain(recorder);
	while (!leaves_little(recorder, &producer))
		;
	tw_rs_ring_end(program.rs, &producer);
	assert_int_equal(tw_recorder_finish(recorder, &stats), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pauses_follow_the_smallest_ring),
		cmocka_unit_test(pauses_follow_the_rate),
		cmocka_unit_test(little_is_left_in_a_large_ring),
	};

	return RUN_IN_DIRECTORY(tests);
}
