/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: the records of spans are the events of a capture, in the same order, for any number of threads that read; and call trees, slowest
 * calls and groups of spans are those of events, and folds that want some functions see the same beside them.
 *
 * Method: captures of random calls of three threads, or of processes that move between them: mostly nested, with returns that have no
 * call, exceptions, losses, waits for space, and damaged blocks. A fold that makes an event of each record sees what one of events sees. A
 * tree is made alone or beside a fold of some functions, so that it gets spans, and beside one of all events, so that it gets events.
 */
#include "views_help.h"

#include "views/folds/calltree.h"
#include "views/folds/groups.h"
#include "views/folds/slowest.h"
#include "tracewheel/error.h"
#include "tests/common/random.h"

enum { THREADS = 3, DEPTH = 40 };

struct thread {
	uint64_t ticks;
	uint32_t depth, open[DEPTH];
};

static uint64_t random_state;

static uint32_t next_random(uint32_t most)
{
	return (uint32_t)random_below(&random_state, most);
}

static void put_call_or_return(struct maker *maker, uint32_t stream, struct thread *thread)
{
	uint32_t place = next_random(LOOP);

	if (thread->depth && (thread->depth == DEPTH || next_random(2))) {
		place = next_random(30) ? thread->open[--thread->depth] : place;
		if (next_random(20))
			view_return(maker, stream, thread->ticks, place);
		else
			view_put(maker, &(struct view_event){stream, thread->ticks, TW_EVENT_EXCEPTION_FROM, 0, place},
				 (const uint64_t[1]){7}, 1);
		return;
	}
	/* Calls of LOOP have no returns. */
	if (next_random(6)) {
		thread->open[thread->depth++] = place;
		view_call(maker, stream, thread->ticks, place);
	} else {
		view_call(maker, stream, thread->ticks, LOOP);
	}
}

static void put_other(struct maker *maker, uint32_t stream, struct thread *thread, uint64_t number, bool moves)
{
	uint32_t what = next_random(3);

	if (what == 0) {
		view_put(maker, &(struct view_event){stream, thread->ticks + 50, TW_EVENT_LOSS, 0, 0},
			 (const uint64_t[6]){thread->ticks, next_random(3), 0, next_random(2) * 2, 0, 0}, 6);
		thread->ticks += 60;
	} else if (what == 1) {
		view_put(maker, &(struct view_event){stream, thread->ticks, TW_EVENT_OWN_TIME, 0, 1},
			 (const uint64_t[1]){thread->ticks + 40}, 1);
	} else if (moves) {
		view_switch(maker, stream, thread->ticks, next_random(THREADS) + 1, number);
	}
}

/* @others: one of so many events is no call or return; 0: none. */
static void make(uint64_t seed, uint32_t others, bool moves, unsigned events)
{
	struct maker *maker = begin_view(THREADS, !moves);
	struct thread threads[THREADS] = {{1000, 0, {0}}, {1001, 0, {0}}, {1002, 0, {0}}};
	uint32_t stream = 0;

	random_state = seed;
	for (uint32_t i = 0; moves && i < THREADS; i++)
		view_switch(maker, i, 900 + i, i + 1, i + 1);
	for (unsigned i = 0; i < events; i++) {
		/* Threads run for some events each, and at once. */
		stream = next_random(4) ? stream : next_random(THREADS);
		threads[stream].ticks += 3 + next_random(60) + (next_random(50) ? 0 : 3000);
		if (others && next_random(others) == 0)
			put_other(maker, stream, &threads[stream], i + 10, moves);
		else
			put_call_or_return(maker, stream, &threads[stream]);
		for (uint32_t j = 0; j < THREADS && i % 700 == 699; j++)
			maker_flush(maker, j);
	}
	end_maker(maker, true);
}

/* A byte in every 16 KB is changed. */
static void damage(void)
{
	char path[400];
	uint8_t byte;

	snprintf(path, sizeof path, "%s/segment-000001.tws", capture_path);
	FILE *file = fopen(path, "r+");
	assert_non_null(file);
	for (long at = 16384; fseek(file, at, SEEK_SET) == 0 && fread(&byte, 1, 1, file) == 1; at += 16384) {
		byte ^= 0x55;
		assert_int_equal(fseek(file, at, SEEK_SET), 0);
		assert_int_equal(fwrite(&byte, 1, 1, file), 1);
	}
	assert_int_equal(fclose(file), 0);
}

static struct tw_capture *open_with(uint32_t workers)
{
	const struct tw_capture_options options = {.no_workers = !workers, .workers = workers};
	struct tw_capture *capture = NULL;

	assert_int_equal(tw_capture_open(capture_path, &options, &capture), 0);
	return capture;
}

/* ---- events of spans ---- */

struct seen {
	const struct tw_capture *capture;
	uint64_t events, sum, records, most;
};

static int see(void *self, const struct tw_capture_event *event)
{
	struct seen *seen = self;
	const uint64_t fields[] = {event->time_ns,   event->ticks,  event->sequence,	 event->kind,
				   event->flags,     event->id,	    event->stream,	 event->image,
				   event->tracee_id, event->cpu_ns, event->payload_words};

	seen->events++;
	for (unsigned i = 0; i < TW_COUNT_OF(fields); i++)
		seen->sum = (seen->sum ^ fields[i]) * 31 + 7;
	for (uint32_t i = 0; i < event->payload_words; i++)
		seen->sum = (seen->sum ^ event->payload[i]) * 31 + 7;
	return seen->events == seen->most ? TW_FOLD_DONE : 0;
}

static int see_span(void *self, struct tw_fold_span *span)
{
	struct seen *seen = self;
	const struct tw_capture_record *record = span->records.first;
	uint64_t sequence = span->records.first_sequence;
	int answer = 0;

	assert_true(record < span->records.end);
	for (; record < span->records.end && !answer;
	     sequence += tw_capture_record_sequences(record), record = tw_capture_record_next(record)) {
		struct tw_capture_clock clock;

		tw_capture_clock_at(seen->capture, record->ticks, &clock);
		assert_true(tw_capture_clock_has(&clock, record->ticks));
		assert_int_equal(tw_capture_clock_ns(&clock, record->ticks),
				 tw_capture_ns(seen->capture, record->ticks));
		span->seen++;
		answer = tw_pass_event(span, record, sequence);
	}
	return answer;
}

static bool wants_second(void *context, const struct tw_capture_stream *stream)
{
	return stream->stream == 1;
}

static const struct tw_capture_filter filters[] = {
	{0},
	{.wants_own_time = true},
	{.wants_stream = wants_second, .wants_thread_states = true},
};

static struct seen read_events(uint32_t workers, const struct tw_capture_filter *filter, bool has_spans, uint64_t most)
{
	struct tw_capture *capture = open_with(workers);
	struct seen seen = {.capture = capture, .most = most};
	struct tw_fold fold = {.self = &seen, .filter = *filter, .see = see, .see_span = has_spans ? see_span : NULL};
	struct tw_capture_info info;

	assert_int_equal(tw_pass_one(capture, &fold, NULL), 0);
	tw_capture_info(capture, &info);
	/* A view that ends early hears of the damage in its last batch. */
	seen.sum += most ? 0 : info.damages * 1000003;
	tw_capture_close(capture);
	seen.capture = NULL;
	return seen;
}

static void spans_have_the_events(void **state)
{
	for (unsigned round = 0; round < 4; round++) {
		make(round + 1, round % 2 ? 9 : 200, round >= 2, 20000);
		if (round % 2)
			damage();
		for (unsigned i = 0; i < TW_COUNT_OF(filters); i++) {
			struct seen all = read_events(0, &filters[i], false, 0);
			struct seen some = read_events(0, &filters[i], false, 3000);

			assert_true(all.events > 3000);
			for (uint32_t workers = 0; workers < 8; workers = workers * 2 + 1) {
				struct seen spans = read_events(workers, &filters[i], true, 0);

				assert_memory_equal(&spans, &all, sizeof spans);
				spans = read_events(workers, &filters[i], true, 3000);
				assert_memory_equal(&spans, &some, sizeof spans);
			}
		}
	}
}

static void a_reader_gives_one_of_both(void **state)
{
	const struct tw_capture_event *batch;
	const struct tw_capture_span *spans;
	struct tw_capture_events *events;

	make(7, 50, false, 3000);
	for (unsigned first = 0; first < 2; first++) {
		struct tw_capture *capture = open_with(2);

		assert_int_equal(tw_capture_events_create(capture, NULL, &events), 0);
		assert_true((first ? tw_capture_spans_next(events, &spans) : tw_capture_events_next(events, &batch)) >
			    0);
		assert_int_equal(first ? tw_capture_events_next(events, &batch) : tw_capture_spans_next(events, &spans),
				 TW_EBADARG);
		tw_capture_events_destroy(events);
		tw_capture_close(capture);
	}
}

/* ---- trees ---- */

static int see_nothing(void *self, const struct tw_capture_event *event)
{
	return 0;
}

static bool wants_some(void *context, uint32_t image, const struct tw_capture_place *place)
{
	return place->place_id % 5 == 2;
}

/* @has_spans: else a fold that wants all events is beside it. @some: what a fold sees that wants a few functions; NULL: there is none. */
static void make_tree(struct tw_calltree *tree, struct tw_parts *parts, struct tw_capture *capture, bool has_spans,
		      struct seen *some)
{
	const struct tw_capture_filter filter = {.wants_own_time = true};
	struct tw_fold folds[3] = {{.self = some, .filter.wants_place = wants_some, .see = see},
				   {0},
				   {.see = see_nothing}};
	struct tw_capture_info info;

	tw_capture_info(capture, &info);
	parts->cell_max = 6000;
	tw_parts_init(parts, info.start_ns, info.end_ns);
	*tree = (struct tw_calltree){.is_by_process = true, .parts = parts, .node_max = 3000};
	assert_int_equal(tw_calltree_begin(tree, capture, &filter, &folds[1]), 0);
	assert_non_null(folds[1].see_span);
	assert_int_equal(tw_pass(capture, &folds[!some], (some ? 2 : 1) + !has_spans, NULL), 0);
	tw_calltree_end(tree, &filter);
	assert_false(tree->has_no_memory);
	/* Are records taken without events? */
	assert_true(has_spans ? tree->spans.plain > tree->events / 4 : !tree->spans.plain);
	tw_parts_sort(parts);
}

static void expect_same_functions(const struct tw_calltree *tree, const struct tw_calltree *expected)
{
	assert_int_equal(tree->function_count, expected->function_count);
	for (uint32_t i = 0; i < tree->function_count; i++) {
		struct tw_call_function a = tree->functions[i], b = expected->functions[i];

		for (unsigned power = 0; power < TW_COUNT_OF(a.took.parts); power++) {
			assert_int_equal(!a.took.parts[power], !b.took.parts[power]);
			if (a.took.parts[power])
				assert_memory_equal(a.took.parts[power], b.took.parts[power],
						    TW_HISTOGRAM_PARTS * sizeof(uint64_t));
			a.took.parts[power] = b.took.parts[power] = NULL;
		}
		assert_memory_equal(&a, &b, sizeof a);
		assert_memory_equal(&tree->cost.functions[i], &expected->cost.functions[i],
				    sizeof tree->cost.functions[i]);
	}
	assert_memory_equal(tree->cost.ns, expected->cost.ns, sizeof tree->cost.ns);
}

static void expect_same_trees(uint32_t workers, bool has_some)
{
	struct seen some = {0}, expected_some = {0};
	struct tw_calltree tree, expected;
	struct tw_parts parts = {0}, expected_parts = {0};
	struct tw_capture *capture = open_with(workers), *other = open_with(0);

	make_tree(&tree, &parts, capture, true, has_some ? &some : NULL);
	make_tree(&expected, &expected_parts, other, false, has_some ? &expected_some : NULL);
	assert_true(!has_some || some.events > 100);
	assert_memory_equal(&some, &expected_some, sizeof some);
	assert_true(tree.events > 3000 && tree.node_count > 100);
	assert_int_equal(tree.events, expected.events);
	assert_int_equal(tree.lost, expected.lost);
	assert_int_equal(tree.node_count, expected.node_count);
	for (uint32_t i = 0; i < tree.node_count; i++)
		assert_memory_equal(&tree.nodes[i], &expected.nodes[i], sizeof tree.nodes[i]);
	expect_same_functions(&tree, &expected);
	assert_int_equal(tree.stacks.unmatched, expected.stacks.unmatched);
	assert_int_equal(tree.stacks.cut, expected.stacks.cut);
	assert_int_equal(tree.stacks.open, expected.stacks.open);
	assert_int_equal(tree.stacks.lost, expected.stacks.lost);
	assert_int_equal(parts.count, expected_parts.count);
	assert_true(parts.count > 100);
	assert_memory_equal(parts.cells, expected_parts.cells, parts.count * sizeof *parts.cells);
	tw_calltree_free(&tree);
	tw_calltree_free(&expected);
	tw_parts_free(&parts);
	tw_parts_free(&expected_parts);
	tw_capture_close(capture);
	tw_capture_close(other);
}

static void trees_are_the_same(void **state)
{
	for (unsigned round = 0; round < 10; round++) {
		static const uint32_t others[] = {0, 400, 60, 9};

		make(100 + round, others[round % 4], round >= 5, 8000);
		if (round == 3 || round == 8)
			damage();
		expect_same_trees(round % 4, false);
		expect_same_trees(round % 4, true);
	}
}

/* ---- other views ---- */

/* A selection that ends behind the end selects all, and is read by events. */
static struct tw_capture_filter all_of(const struct tw_capture *capture, bool has_spans)
{
	struct tw_capture_info info;

	tw_capture_info(capture, &info);
	return (struct tw_capture_filter){.wants_own_time = true, .to_ns = has_spans ? 0 : info.end_ns + 1000000};
}

static void expect_same_slowest(uint32_t workers, const struct tw_capture_filter *pattern)
{
	struct tw_capture *captures[2] = {open_with(workers), open_with(0)};
	struct tw_slowest found[2];

	for (unsigned i = 0; i < 2; i++) {
		struct tw_capture_filter filter = all_of(captures[i], i == 0);

		filter.wants_place = pattern->wants_place;
		found[i] = (struct tw_slowest){.most = 40};
		assert_int_equal(tw_slowest_make(&found[i], captures[i], &filter), 0);
	}
	assert_int_equal(found[0].count, 40);
	assert_int_equal(found[1].count, 40);
	assert_int_equal(found[0].compared, found[1].compared);
	assert_int_equal(found[0].node_count, found[1].node_count);
	for (unsigned i = 0; i < 40; i++) {
		assert_string_equal(found[0].calls[i].callers, found[1].calls[i].callers);
		assert_string_equal(found[0].calls[i].process, found[1].calls[i].process);
		free(found[0].calls[i].callers);
		free(found[0].calls[i].process);
		found[0].calls[i].callers = found[1].calls[i].callers;
		found[0].calls[i].process = found[1].calls[i].process;
		assert_memory_equal(&found[0].calls[i], &found[1].calls[i], sizeof found[0].calls[i]);
		found[0].calls[i].callers = found[0].calls[i].process = NULL;
		assert_int_equal(tw_slowest_tracer_ns(&found[0], &found[0].calls[i]),
				 tw_slowest_tracer_ns(&found[1], &found[1].calls[i]));
	}
	for (unsigned i = 1; i < found[0].node_count; i++)
		assert_memory_equal(&found[0].nodes[i], &found[1].nodes[i], sizeof found[0].nodes[i]);
	for (unsigned i = 0; i < 2; i++) {
		tw_slowest_free(&found[i]);
		tw_capture_close(captures[i]);
	}
}

static void expect_same_groups(uint32_t workers, const char *by)
{
	struct tw_capture *captures[2] = {open_with(workers), open_with(0)};
	struct tw_groups groups[2];

	for (unsigned i = 0; i < 2; i++) {
		const struct tw_capture_filter filter = all_of(captures[i], i == 0);

		groups[i] = (struct tw_groups){0};
		assert_true(strcmp(by, "duration") == 0 ? tw_grouping_parse_histogram(by, &groups[i].by)
							: tw_grouping_parse(by, &groups[i].by));
		assert_int_equal(tw_groups_make(&groups[i], captures[i], &filter), 0);
	}
	assert_true(groups[0].spans.plain > 0 && !groups[1].spans.plain);
	assert_true(groups[0].count > 2);
	assert_int_equal(groups[0].count, groups[1].count);
	for (unsigned i = 0; i < groups[0].count; i++) {
		struct tw_group *a = &groups[0].groups[i], *b = &groups[1].groups[i];

		assert_string_equal(a->value, b->value);
		assert_int_equal(a->function, b->function);
		assert_int_equal(a->sum, b->sum);
		assert_int_equal(a->sums.calls, b->sums.calls);
		assert_int_equal(a->sums.total_ns, b->sums.total_ns);
		assert_int_equal(a->sums.self_ns, b->sums.self_ns);
		assert_int_equal(a->sums.cut, b->sums.cut);
		assert_int_equal(a->sums.lossy, b->sums.lossy);
		assert_memory_equal(&a->sums.paid, &b->sums.paid, sizeof a->sums.paid);
	}
	for (unsigned i = 0; i < 2; i++) {
		tw_groups_free(&groups[i]);
		tw_capture_close(captures[i]);
	}
}

static void slowest_and_groups_are_the_same(void **state)
{
	static const char *const keys[] = {"caller", "thread", "program", "module", "duration"};
	static const struct tw_capture_filter all = {0}, some = {.wants_place = wants_some};

	for (unsigned round = 0; round < 8; round++) {
		static const uint32_t others[] = {0, 400, 60, 9};

		make(200 + round, others[round % 4], round >= 5, 8000);
		if (round == 3 || round == 7)
			damage();
		expect_same_slowest(round % 4, &all);
		expect_same_slowest(round % 4, &some);
		for (unsigned i = 0; i < TW_COUNT_OF(keys); i++)
			expect_same_groups(round % 4, keys[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spans_have_the_events),
		cmocka_unit_test(a_reader_gives_one_of_both),
		cmocka_unit_test(trees_are_the_same),
		cmocka_unit_test(slowest_and_groups_are_the_same),
	};

	return RUN_IN_DIRECTORY(tests);
}
