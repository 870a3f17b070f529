/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Captures of one boot are put on one clock: those of another time namespace are moved to it, and neither drift nor a
 *		suspended machine is taken for a namespace.
 * Method	Clock readings made up: a tick is a nanosecond since boot, and CLOCK_MONOTONIC and CLOCK_BOOTTIME deviate as they do.
 */
#include "tracewheel/error.h"
#include "tracewheel/merge.h"

#include "pipeline/reader/reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define S    INT64_C(1000000000)
#define ZERO (5000 * S)

struct made {
	struct tw_capture capture;
	struct tw_source_image image, *images[1];
};

/* The deviations of a recorder's clocks from ticks. */
struct clocks {
	int64_t monotonic, boottime;
	int64_t ppm; /* of both, since ZERO */
};

/* A recording of ten seconds. */
static void make(struct made *made, int64_t start, struct clocks by)
{
	*made = (struct made){.images = {&made->image}};
	made->image.header.clock_source = 1;
	made->image.header.ticks_per_second = (uint64_t)S;
	made->capture.images = made->images;
	made->capture.image_count = 1;
	for (int64_t at = start; at <= start + 10 * S; at += S) {
		int64_t ns = at + (at - ZERO) / 1000000 * by.ppm + at % 50;
		struct tw_format_clock clock = {(uint64_t)at, (uint64_t)(ns + by.monotonic), (uint64_t)(ns + 77 * S),
						(uint64_t)(ns + by.boottime)};

		assert_true(tw_clockmap_add(&made->capture.clocks, &clock));
	}
	tw_clockmap_finish(&made->capture.clocks, (uint64_t)S);
	made->capture.info.start_ns = made->capture.clocks.points[0].clock.monotonic_ns;
}

static void destroy(struct made *made)
{
	tw_clockmap_fini(&made->capture.clocks);
}

/* The shift of a capture beside one of the plain clock, and that both tell the same time then. */
static int64_t shift(int64_t start, struct clocks by)
{
	struct made plain, other;
	struct tw_capture *both[] = {&plain.capture, &other.capture};

	make(&plain, ZERO, (struct clocks){0});
	make(&other, start, by);
	uint64_t before = other.capture.info.start_ns;
	assert_int_equal(tw_captures_share_clock(both, 2), 0);
	assert_int_equal(tw_capture_clock_shift_ns(&plain.capture), 0);
	int64_t by_ns = tw_capture_clock_shift_ns(&other.capture);
	assert_int_equal(other.capture.info.start_ns - before, (uint64_t)by_ns);
	for (int64_t at = ZERO - 5 * S; at < ZERO + 20 * S; at += S / 3)
		assert_int_equal(tw_capture_ns(&plain.capture, (uint64_t)at),
				 tw_capture_ns(&other.capture, (uint64_t)at));
	destroy(&plain);
	destroy(&other);
	return by_ns;
}

static void one_clock_is_not_moved(void **state)
{
	/* At the same time; after it and before it, also with drift. */
	assert_int_equal(shift(ZERO + 3 * S, (struct clocks){0}), 0);
	assert_int_equal(shift(ZERO - 3 * S, (struct clocks){500, 500, 0}), 0);
	for (int after = 0; after < 2; after++) {
		int64_t start = after ? ZERO + 900 * S : ZERO - 900 * S;

		assert_int_equal(shift(start, (struct clocks){0}), 0);
		assert_int_equal(shift(start, (struct clocks){.ppm = 300}), 0);
		assert_int_equal(shift(start, (struct clocks){.ppm = -300}), 0);
	}
	/* Suspended in between: the counter went on, or it stood still as well. */
	assert_int_equal(shift(ZERO + 900 * S, (struct clocks){.monotonic = -600 * S}), 0);
	assert_int_equal(shift(ZERO - 900 * S, (struct clocks){.monotonic = 600 * S}), 0);
	assert_int_equal(shift(ZERO + 900 * S, (struct clocks){.boottime = 600 * S}), 0);
	/* CLOCK_BOOTTIME alone is another one: nothing depends on it. */
	assert_int_equal(shift(ZERO + 3 * S, (struct clocks){.boottime = 1000 * S}), 0);
}

static void another_namespace_is_moved(void **state)
{
	static const int64_t starts[] = {ZERO, ZERO + 3 * S, ZERO - 3 * S, ZERO + 900 * S, ZERO - 900 * S};

	for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
		assert_int_equal(shift(starts[i], (struct clocks){1000 * S, 1000 * S, 0}), -1000 * S);
		assert_int_equal(shift(starts[i], (struct clocks){-400 * S, -400 * S, 0}), 400 * S);
		assert_int_equal(shift(starts[i], (struct clocks){1000 * S, 0, 0}), -1000 * S);
	}
	/* No whole seconds; drift in between is not part of it where it can be told. */
	int64_t exact = shift(ZERO + 3 * S, (struct clocks){123 * S + 456789012, 123 * S, 0});
	assert_in_range(-exact, 123 * S + 456789012 - 100, 123 * S + 456789012 + 100);
	assert_int_equal(shift(ZERO + 900 * S, (struct clocks){1000 * S, 1000 * S, 100}), -1000 * S);
}

static void several_are_moved(void **state)
{
	struct made made[4];
	struct tw_capture *captures[4];

	make(&made[0], ZERO, (struct clocks){0});
	make(&made[1], ZERO + 400 * S, (struct clocks){1000 * S, 1000 * S, 0});
	make(&made[2], ZERO + 405 * S, (struct clocks){2000 * S, 2000 * S, 0});
	make(&made[3], ZERO + 2 * S, (struct clocks){0});
	for (int i = 0; i < 4; i++)
		captures[i] = &made[i].capture;
	assert_int_equal(tw_captures_share_clock(captures, 4), 0);
	assert_int_equal(tw_capture_clock_shift_ns(captures[1]), -1000 * S);
	assert_int_equal(tw_capture_clock_shift_ns(captures[2]), -2000 * S);
	assert_int_equal(tw_capture_clock_shift_ns(captures[3]), 0);
	/* Without knots the copy would have the old times. */
	struct tw_merge_input inputs[2] = {{.capture = captures[0], .node = "a"},
					   {.capture = captures[1], .node = "b"}};
	const struct tw_merge_options options = {.path = "not-made.tw"};
	struct tw_merge_result result;
	assert_int_equal(tw_captures_merge(inputs, 2, &options, &result), TW_EBADARG);
	made[3].image.header.clock_source = 2;
	assert_int_equal(tw_captures_share_clock(captures, 4), TW_ENOTSUP);
	for (int i = 0; i < 4; i++)
		destroy(&made[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_clock_is_not_moved),
		cmocka_unit_test(another_namespace_is_moved),
		cmocka_unit_test(several_are_moved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
