/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: a tree that is made in one reading, with places that are presumed, is that of a scan and a reading, and so are the totals taken from it;
 * and where what was presumed is wrong, or cannot be known, that is said, and the tree is made by a scan.
 *
 * Method: captures of random nested calls of three threads, most of them of functions that return, with one thing more each: calls that never return,
 * in numbers around those that decide, a loss, an event of a run-time system, a damaged block, undefined places. Each is read in both ways, which are compared
 * in places, nodes, functions and totals; and it is known which way is to be possible.
 */
#include "views_help.h"

#include "views/folds/calltree.h"
#include "views/folds/totals.h"
#include "tests/common/random.h"

enum { THREADS = 3, DEPTH = 12, EVENTS = 6000, UNDEFINED = 90 };

struct thread {
	uint64_t ticks;
	uint32_t depth, open[DEPTH];
};

static struct thread threads[THREADS];
static uint64_t random_state;

static uint64_t tick(uint32_t stream)
{
	return threads[stream].ticks += 2 + random_below(&random_state, 90);
}

static void put_calls(struct maker *maker, unsigned events)
{
	for (unsigned i = 0; i < events; i++) {
		uint32_t stream = (uint32_t)random_below(&random_state, THREADS);
		struct thread *thread = &threads[stream];

		if (thread->depth && (thread->depth == DEPTH || random_below(&random_state, 2))) {
			view_return(maker, stream, tick(stream), thread->open[--thread->depth]);
			continue;
		}
		thread->open[thread->depth] = (uint32_t)random_below(&random_state, LOOP);
		view_call(maker, stream, tick(stream), thread->open[thread->depth++]);
	}
}

static void put_other(struct maker *maker, unsigned kind, const uint64_t *words, uint32_t count)
{
	view_put(maker, &(struct view_event){1, tick(1), kind, 0, kind == TW_EVENT_OWN_TIME}, words, count);
}

static void nothing(struct maker *maker)
{
	put_other(maker, TW_EVENT_OWN_TIME, (const uint64_t[1]){threads[1].ticks + 40}, 1);
}

static void one_open_call_a_thread(struct maker *maker)
{
	for (uint32_t i = 0; i < THREADS; i++)
		view_call(maker, i, tick(i), LOOP);
}

static void two_open_calls(struct maker *maker)
{
	view_call(maker, 2, tick(2), LOOP);
	put_calls(maker, 100);
	view_call(maker, 2, tick(2), LOOP);
}

static void many_open_calls(struct maker *maker)
{
	for (unsigned i = 0; i < 9000; i++)
		view_call(maker, i % THREADS, tick(i % THREADS), LOOP);
}

static void late_return(struct maker *maker)
{
	two_open_calls(maker);
	view_return(maker, 2, tick(2), LOOP);
}

static void exception(struct maker *maker)
{
	two_open_calls(maker);
	view_put(maker, &(struct view_event){2, tick(2), TW_EVENT_EXCEPTION_FROM, 0, LOOP}, (const uint64_t[1]){7}, 1);
}

static void loss(struct maker *maker)
{
	put_other(maker, TW_EVENT_LOSS, (const uint64_t[6]){threads[1].ticks, 2, 0, 0, 0, 0}, 6);
}

static void link_of_processes(struct maker *maker)
{
	view_term(maker, 1, tick(1), TW_EVENT_LINK, "a");
}

static void undefined(struct maker *maker)
{
	for (unsigned i = 0; i < 5; i++)
		view_call(maker, 1, tick(1), UNDEFINED + i % 2);
}

static void switches(struct maker *maker)
{
	for (uint32_t i = 0; i < THREADS; i++)
		view_switch(maker, i, tick(i), i + 1, 10 + i);
}

/* @is_empty: no other calls. */
static void make(uint64_t seed, void (*more)(struct maker *), bool is_empty)
{
	struct maker *maker = begin_view(THREADS, true);

	memset(threads, 0, sizeof threads);
	for (uint32_t i = 0; i < THREADS; i++)
		threads[i].ticks = 1000 + i;
	random_state = seed;
	if (!is_empty)
		put_calls(maker, EVENTS / 2);
	more(maker);
	for (uint32_t i = 0; i < THREADS; i++)
		maker_flush(maker, i);
	if (!is_empty)
		put_calls(maker, EVENTS / 2);
	end_maker(maker, true);
}

static void compare_places(const struct tw_places *places, const struct tw_places *expected)
{
	assert_memory_equal(places->kinds, expected->kinds, sizeof places->kinds);
	assert_int_equal(places->function_count, expected->function_count);
	assert_int_equal(places->calls_count, expected->calls_count);
	assert_memory_equal(places->calls, expected->calls, places->calls_count * sizeof *places->calls);
	assert_memory_equal(places->ends, expected->ends, places->calls_count * sizeof *places->ends);
	assert_memory_equal(places->whole_calls, expected->whole_calls,
			    places->calls_count * sizeof *places->whole_calls);
	assert_int_equal(places->images[0].count, expected->images[0].count);
	for (uint32_t id = 0; id < places->images[0].count; id++)
		assert_int_equal(places->images[0].is_moment[id], expected->images[0].is_moment[id]);
}

static void compare_tables(const struct tw_totals_table *table, const struct tw_totals_table *expected)
{
	assert_int_equal(table->count, expected->count);
	for (size_t i = 0; i < table->count; i++) {
		assert_string_equal(table->rows[i].name, expected->rows[i].name);
		assert_int_equal(table->rows[i].calls, expected->rows[i].calls);
		assert_int_equal(table->rows[i].events, expected->rows[i].events);
		assert_int_equal(table->rows[i].start_ns, expected->rows[i].start_ns);
	}
}

static void compare_totals(const struct tw_totals *totals, const struct tw_totals *expected)
{
	assert_int_equal(totals->calls, expected->calls);
	assert_int_equal(totals->events, expected->events);
	assert_int_equal(totals->all_events, expected->all_events);
	assert_memory_equal(totals->kinds, expected->kinds, sizeof totals->kinds);
	compare_tables(&totals->functions, &expected->functions);
	compare_tables(&totals->callers, &expected->callers);
	compare_tables(&totals->threads, &expected->threads);
}

static void compare_trees(const struct tw_calltree *tree, const struct tw_calltree *expected)
{
	compare_places(&tree->places, &expected->places);
	assert_int_equal(tree->events, expected->events);
	assert_int_equal(tree->node_count, expected->node_count);
	for (uint32_t i = 0; i < tree->node_count; i++)
		assert_memory_equal(&tree->nodes[i], &expected->nodes[i], sizeof tree->nodes[i]);
	for (uint32_t i = 0; i < tree->function_count; i++) {
		assert_int_equal(tree->functions[i].no_end, expected->functions[i].no_end);
		assert_int_equal(tree->functions[i].took.count, expected->functions[i].took.count);
	}
	assert_memory_equal(tree->cost.ns, expected->cost.ns, sizeof tree->cost.ns);
	assert_int_equal(tree->stacks.cut, expected->stacks.cut);
	assert_int_equal(tree->stacks.open, expected->stacks.open);
}

/* The tree by a scan, as views made it before there were others. */
static void scan_tree(struct tw_calltree *tree, struct tw_capture *capture, const struct tw_capture_filter *filter)
{
	struct tw_fold fold;

	assert_int_equal(tw_places_make(&tree->places, capture, filter), 0);
	assert_int_equal(tw_calltree_begin(tree, capture, filter, &fold), 0);
	assert_int_equal(tw_pass_one(capture, &fold, NULL), 0);
	tw_calltree_end(tree, filter);
}

static void expect_same(uint32_t workers, int at_once)
{
	const struct tw_capture_options options = {.no_workers = !workers, .workers = workers};
	const struct tw_capture_filter filter = {.wants_own_time = true};
	struct tw_calltree tree = {.is_by_process = true}, expected = {.is_by_process = true};
	const struct tw_calltree before = tree;
	struct tw_totals totals, expected_totals;
	struct tw_places places = {0};
	struct tw_capture *capture, *other;

	assert_int_equal(tw_capture_open(capture_path, &options, &capture), 0);
	assert_int_equal(tw_capture_open(capture_path, &options, &other), 0);
	scan_tree(&expected, other, &filter);
	assert_int_equal(tw_calltree_make_at_once(&tree, capture, &filter), at_once);
	if (at_once == 1) {
		assert_int_equal(tw_totals_take(&totals, &tree.places, capture, &filter), 0);
		assert_int_equal(tw_totals_make(&expected_totals, &places, other, &filter), 0);
		compare_totals(&totals, &expected_totals);
		assert_int_equal(tw_totals_durations(&totals, &tree.places),
				 tw_totals_durations(&expected_totals, &places));
		tw_totals_free(&totals);
		tw_totals_free(&expected_totals);
		tw_places_free(&places);
	} else {
		assert_memory_equal(&tree, &before, sizeof tree);
		assert_int_equal(tw_calltree_make(&tree, capture, &filter), 0);
	}
	compare_trees(&tree, &expected);
	tw_calltree_free(&tree);
	tw_calltree_free(&expected);
	tw_capture_close(capture);
	tw_capture_close(other);
}

static const struct {
	void (*more)(struct maker *);
	bool is_empty;
	int at_once;
} cases[] = {
	{nothing, false, 1},
	{one_open_call_a_thread, false, 1},
	{two_open_calls, false, 0},
	{many_open_calls, false, 0},
	{late_return, false, 1},
	{exception, false, 1},
	{loss, false, 0},
	{link_of_processes, false, 0},
	{undefined, false, 1},
	{switches, false, 1},
	/* Calls alone: none has a duration. */
	{one_open_call_a_thread, true, 1},
	{many_open_calls, true, 1},
};

static void one_reading_makes_what_two_do(void **state)
{
	for (unsigned i = 0; i < TW_COUNT_OF(cases); i++) {
		for (uint32_t workers = 0; workers < 8; workers = workers * 2 + 1) {
			make(300 + i, cases[i].more, cases[i].is_empty);
			expect_same(workers, cases[i].at_once);
		}
	}
}

static void parts_need_a_scan(void **state)
{
	static const struct tw_capture_filter parts[] = {{.from_ns = 2000}, {.to_ns = 90000}, {.kinds = 8}};
	struct tw_places places;
	struct tw_count count;

	make(5, nothing, false);
	struct tw_capture *capture = open_capture();

	for (unsigned i = 0; i < TW_COUNT_OF(parts); i++)
		assert_int_equal(tw_places_presume(&places, capture, &parts[i], &count), 0);
	tw_capture_close(capture);
}

/* A fold that takes events, not spans, has no pass that counts. */
static int see_nothing(void *self, const struct tw_capture_event *event)
{
	return 0;
}

static void events_are_not_counted(void **state)
{
	struct tw_fold fold = {.see = see_nothing};
	struct tw_places places;
	struct tw_count count;

	make(6, nothing, false);
	struct tw_capture *capture = open_capture();

	assert_int_equal(tw_places_presume(&places, capture, &fold.filter, &count), 1);
	assert_int_equal(tw_pass_counted(capture, &fold, 1, &count, NULL), TW_ENOTSUP);
	tw_places_free(&places);
	tw_capture_close(capture);
}

/* The blocks that are left have no return: what the index promises is not so. */
static void damage_is_found_on_the_way(void **state)
{
	char path[400];
	uint8_t byte;

	make(7, two_open_calls, false);
	snprintf(path, sizeof path, "%s/segment-000001.tws", capture_path);
	FILE *file = fopen(path, "r+");
	assert_non_null(file);
	for (long at = 16000; fseek(file, at, SEEK_SET) == 0 && fread(&byte, 1, 1, file) == 1; at += 4096) {
		byte ^= 0x55;
		assert_int_equal(fseek(file, at, SEEK_SET), 0);
		assert_int_equal(fwrite(&byte, 1, 1, file), 1);
	}
	assert_int_equal(fclose(file), 0);
	expect_same(0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_reading_makes_what_two_do),
		cmocka_unit_test(parts_need_a_scan),
		cmocka_unit_test(events_are_not_counted),
		cmocka_unit_test(damage_is_found_on_the_way),
	};

	return RUN_IN_DIRECTORY(tests);
}
