/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: counts that share a scan count the same as in scans of their own, and an error ends a scan. Blocks that are said to be in order
 * have the events in their order; those of threads that ran at once are not said to be.
 *
 * Method: a capture of random calls and returns of three threads, of which some functions never return; totals and places are made
 * from one scan and from two, and compared with what was put into the capture.
 */
#include "views_help.h"

#include "tracewheel/blocks.h"
#include "tracewheel/error.h"
#include "views/folds/places.h"
#include "views/folds/totals.h"
#include "tests/common/random.h"

enum { FUNCTIONS = 8, EVENTS = 4000 };

static uint64_t calls[FUNCTIONS], all_calls, returns;

/* Only functions with an even number return. */
static void make(void)
{
	struct maker *maker = begin_view(3, true);
	uint64_t ticks[3] = {1000, 1001, 1002}, random = 20261128;

	memset(calls, 0, sizeof calls);
	all_calls = returns = 0;
	for (unsigned i = 0; i < EVENTS; i++) {
		uint64_t word = random_word(&random);
		uint32_t stream = (uint32_t)word % 3;
		uint32_t place = (uint32_t)(word >> 50) % FUNCTIONS;

		ticks[stream] += 3 + (word >> 33) % 90;
		if (place % 2 == 0 && (word >> 40) % 2) {
			view_return(maker, stream, ticks[stream], place);
			returns++;
			continue;
		}
		view_call(maker, stream, ticks[stream], place);
		calls[place]++;
		all_calls++;
	}
	end_maker(maker, true);
}

static void check_totals(const struct tw_totals *totals)
{
	uint64_t sum = 0;

	assert_int_equal(totals->calls, all_calls);
	assert_int_equal(totals->events, all_calls + returns);
	assert_int_equal(totals->kinds[TW_CAPTURE_RETURN_FROM], returns);
	assert_int_equal(totals->functions.count, FUNCTIONS);
	assert_int_equal(totals->threads.count, 3);
	for (size_t i = 0; i < totals->functions.count; i++)
		sum += totals->functions.rows[i].calls;
	assert_int_equal(sum, all_calls);
}

static void check_places(const struct tw_places *places)
{
	assert_int_equal(places->kinds[TW_CAPTURE_CALL], all_calls);
	assert_int_equal(places->kinds[TW_CAPTURE_RETURN_FROM], returns);
	for (uint32_t id = 0; id < FUNCTIONS; id++) {
		assert_int_equal(places->calls[tw_places_function(places, 0, id)], calls[id]);
		assert_int_equal(tw_places_is_moment(places, 0, id), id % 2);
	}
}

static void counts_are_equal_in_one_scan_and_in_two(void **state)
{
	const struct tw_capture_filter all = {0};
	struct tw_totals totals;
	struct tw_places places;
	struct tw_count counts[2];

	make();
	struct tw_capture *capture = open_capture();

	for (size_t together = 1; together <= 2; together++) {
		assert_int_equal(tw_totals_begin(&totals, capture, &all, &counts[0]), 0);
		assert_int_equal(tw_places_begin(&places, capture, &counts[1]), 0);
		for (size_t i = 0; i < 2; i += together)
			assert_int_equal(tw_scan(capture, &all, &counts[i], together, NULL), 0);
		assert_int_equal(tw_totals_end(&totals), 0);
		assert_int_equal(tw_places_end(&places), 0);
		check_totals(&totals);
		check_places(&places);
		tw_totals_free(&totals);
		tw_places_free(&places);
	}
	assert_int_equal(tw_places_make(&places, capture, &(struct tw_capture_filter){.from_ns = 1}), 0);
	check_places(&places);
	tw_places_free(&places);
	tw_capture_close(capture);
}

static int refuse(void *self, const struct tw_capture_batch *batch)
{
	++*(unsigned *)self;
	return TW_ENOMEM;
}

static int count_blocks(void *self, const struct tw_capture_batch *batch)
{
	++*(unsigned *)self;
	return 0;
}

static void an_error_ends_a_scan(void **state)
{
	const struct tw_capture_filter all = {0};
	unsigned before = 0, failing = 0, after = 0;
	const struct tw_count counts[3] = {{&before, count_blocks}, {&failing, refuse}, {&after, count_blocks}};
	struct tw_places unfinished;
	struct tw_count count;

	make();
	struct tw_capture *capture = open_capture();

	assert_int_equal(tw_scan(capture, &all, counts, 3, NULL), TW_ENOMEM);
	assert_int_equal(before, 1);
	assert_int_equal(failing, 1);
	assert_int_equal(after, 0);
	/* Without its end it is freed as well. */
	assert_int_equal(tw_places_begin(&unfinished, capture, &count), 0);
	tw_places_free(&unfinished);
	tw_capture_close(capture);
}

/* Calls of three threads, one after another. */
static void make_apart(void)
{
	struct maker *maker = begin_view(3, true);
	uint64_t ticks = 1000;

	for (uint32_t stream = 3; stream-- > 0;)
		for (unsigned i = 0; i < EVENTS; i++)
			view_call(maker, stream, ticks += 1 + i % 90, i % FUNCTIONS);
	end_maker(maker, true);
}

/* The next event, or NULL. */
static const struct tw_capture_event *next_event(struct tw_capture_events *events, int64_t *left)
{
	static const struct tw_capture_event *batch;

	if (!*left)
		*left = tw_capture_events_next(events, &batch);
	return (*left)-- > 0 ? batch++ : NULL;
}

static void blocks_in_order_have_the_events_in_order(void **state)
{
	struct tw_capture_blocks *blocks;
	struct tw_capture_events *events;
	struct tw_capture_batch batch;
	unsigned records = 0;
	int64_t left = 0;

	make_apart();
	struct tw_capture *capture = open_capture();

	assert_int_equal(tw_capture_blocks_create(capture, NULL, true, &blocks), 0);
	assert_true(tw_capture_blocks_are_ordered(blocks));
	assert_int_equal(tw_capture_events_create(capture, NULL, &events), 0);
	while (tw_capture_blocks_next(blocks, &batch) > 0) {
		for (const struct tw_capture_record *record = batch.first; record < batch.end;
		     record = tw_capture_record_next(record), records++) {
			const struct tw_capture_event *event = next_event(events, &left);

			assert_non_null(event);
			assert_int_equal(event->ticks, record->ticks);
			assert_int_equal(event->stream, batch.stream);
			assert_int_equal(event->id, tw_capture_record_id(record));
			assert_int_equal(event->time_ns, tw_capture_blocks_ns(blocks, record->ticks));
		}
	}
	assert_int_equal(records, 3 * EVENTS);
	assert_null(next_event(events, &left));
	tw_capture_events_destroy(events);
	tw_capture_blocks_destroy(blocks);
	/* Ended before its end, and without a beginning. */
	assert_int_equal(tw_capture_blocks_create(capture, NULL, false, &blocks), 0);
	assert_false(tw_capture_blocks_are_ordered(blocks));
	assert_int_equal(tw_capture_blocks_next(blocks, &batch), 1);
	tw_capture_blocks_destroy(blocks);
	assert_int_equal(tw_capture_blocks_create(capture, NULL, true, &blocks), 0);
	tw_capture_blocks_destroy(blocks);
	tw_capture_close(capture);
}

static bool wants_first(void *context, const struct tw_capture_stream *stream)
{
	return stream->stream == 0;
}

static void blocks_of_threads_at_once_are_not_in_order(void **state)
{
	const struct tw_capture_filter first = {.wants_stream = wants_first};
	struct tw_capture_blocks *blocks;

	make();
	struct tw_capture *capture = open_capture();

	assert_int_equal(tw_capture_blocks_create(capture, NULL, true, &blocks), 0);
	assert_false(tw_capture_blocks_are_ordered(blocks));
	tw_capture_blocks_destroy(blocks);
	assert_int_equal(tw_capture_blocks_create(capture, &first, true, &blocks), 0);
	assert_true(tw_capture_blocks_are_ordered(blocks));
	tw_capture_blocks_destroy(blocks);
	tw_capture_close(capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_are_equal_in_one_scan_and_in_two),
		cmocka_unit_test(an_error_ends_a_scan),
		cmocka_unit_test(blocks_in_order_have_the_events_in_order),
		cmocka_unit_test(blocks_of_threads_at_once_are_not_in_order),
	};

	return RUN_IN_DIRECTORY(tests);
}
