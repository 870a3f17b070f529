/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: times of functions are right: total, self, recursion, exceptions, open calls, losses, processes that are
 * scheduled out or move; messages and schedules give which process waits for which.
 *
 * Method: reports of handmade captures, with sums counted by hand, are compared with tests/golden/report-*; random
 * calls of several processes are summed up by a model that knows every interval, and compared with the call tree.
 */
#include "views_help.h"

#include "views/folds/calltree.h"
#include "tests/common/random.h"

/* One thread, with every possible course of a call. */
static void make_calls(void)
{
	const uint64_t lost[6] = {21000, 7, 0, 0, 0, 0};
	const char *const thrown[] = {"{throw,'std::runtime_error'}"};
	struct maker *maker = begin_view(1, true);

	view_switch(maker, 0, 1000, 1, 1);
	view_return(maker, 0, 1500, QUOTED); /* returns from a call before the recording */
	view_call(maker, 0, 2000, MAIN);
	for (uint64_t i = 0; i < 5; i++) {
		view_call(maker, 0, 3000 + i * 1000, STEP);
		view_call(maker, 0, 3100 + i * 1000, BIND);
		view_call(maker, 0, 3200 + i * 1000, ALLOC);
		if (i == 3)
			view_terms(maker, &(struct view_event){0, 3300 + i * 1000, TW_EVENT_EXCEPTION_FROM, 0, BIND},
				   thrown, 1);
		else
			view_return(maker, 0, 3300 + i * 1000, BIND);
		view_return(maker, 0, 3500 + i * 1000 + i * 10, STEP);
	}
	/* Recursion: 10 deep, 100 each way. */
	for (uint64_t i = 0; i < 10; i++)
		view_call(maker, 0, 10000 + i * 100, LOOP);
	for (uint64_t i = 0; i < 10; i++)
		view_return(maker, 0, 11000 + i * 100, LOOP);
	/* The return of the inner one is missing: it is cut. */
	view_call(maker, 0, 13000, STEP);
	view_call(maker, 0, 13100, MOVE);
	view_return(maker, 0, 13600, STEP);
	view_call(maker, 0, 14000, MOVE);
	view_return(maker, 0, 14250, MOVE);
	/* A loss inside step, and step is called again after it. */
	view_call(maker, 0, 20000, STEP);
	view_put(maker, &(struct view_event){0, 30000, TW_EVENT_LOSS, 0, 0}, lost, 6);
	view_call(maker, 0, 31000, STEP);
	view_return(maker, 0, 31400, STEP);
	view_call(maker, 0, 40000, HOSTILE);
	view_call(maker, 0, 41000, HOSTILE);
	view_return(maker, 0, 41500, HOSTILE);
	end_maker(maker, true);
}

/* Two schedulers, three processes that move; messages that wait. */
static void make_actors(void)
{
	static const char *const to[][2] = {{"{work,1}", "<0.45.0>"},
					    {"{work,2}", "<0.46.0>"},
					    {"done", "<0.44.0>"},
					    {"lost", "gone"}};
	struct maker *maker = begin_view(3, false);
	uint64_t runs[4] = {0};

	for (uint64_t i = 0; i < 8; i++) {
		uint64_t t = 10000 + i * 10000;
		uint32_t at = i % 2, other = 1 - at;

		view_switch(maker, at, t, 1, ++runs[1]);
		view_term(maker, at, t, TW_CAPTURE_IN, "{app,main,0}");
		view_call(maker, at, t + 100, STEP);
		view_terms(maker, &(struct view_event){at, t + 200, TW_CAPTURE_SEND, 0, 0}, to[i % 2], 2);
		view_switch(maker, at, t + 250, 2 + (uint32_t)i % 2, ++runs[2 + i % 2]);
		view_term(maker, at, t + 250, TW_CAPTURE_RECEIVE, to[i % 2][0]);
		view_switch(maker, at, t + 260, 1, ++runs[1]);
		/* It is scheduled out within its call, and continues elsewhere. */
		view_term(maker, at, t + 300, TW_CAPTURE_OUT, "{app,step,1}");
		view_switch(maker, other, t + 1250 + i * 100, 2 + (uint32_t)i % 2, ++runs[2 + i % 2]);
		view_term(maker, other, t + 1250 + i * 100, TW_CAPTURE_IN, "{app,loop,0}");
		view_term(maker, other, t + 2250 + i * 100, TW_CAPTURE_OUT, "{app,loop,0}");
		view_switch(maker, other, t + 5300, 1, ++runs[1]);
		view_term(maker, other, t + 5300, TW_CAPTURE_IN, "{app,step,1}");
		view_return(maker, other, t + 5400, STEP);
		view_terms(maker, &(struct view_event){other, t + 5450, TW_CAPTURE_SEND_TO_NON_EXISTING_PROCESS, 0, 0},
			   to[3], 2);
		view_term(maker, other, t + 5500, TW_CAPTURE_OUT, "0");
	}
	end_maker(maker, true);
}

static void compare_tree(const char *arguments, const char *name)
{
	char *text = view_answer(tw_tool_print, arguments, 0);

	view_golden(name, text);
	free(text);
}

static void compare(const char *arguments, const char *name)
{
	char *text = view_answer(tw_tool_report, arguments, 0);
	char *disk = strstr(text, " on disk");
	/* Compression is not tested here. */
	if (disk)
		for (char *c = disk; c > text && c[-1] != ','; c--)
			c[-1] = c[-1] == '\n' ? '\n' : '.';
	for (char *end = disk ? strchr(disk, '\n') : NULL; end && end > disk; end--)
		*disk++ = '.';
	view_golden(name, text);
	free(text);
}

static void test_calls(void **state)
{
	setenv("COLUMNS", "100", 1);
	make_calls();
	compare("", "report-calls.txt");
	compare("--tree --callers --sort self", "report-tree.txt");
	compare_tree("--tree", "print-tree-calls.txt");
}

static void test_actors(void **state)
{
	setenv("COLUMNS", "100", 1);
	make_actors();
	compare("", "report-actors.txt");
	compare_tree("--tree", "print-tree-actors.txt");
}

static void test_sorted(void **state)
{
	static const char *const keys[] = {"total", "self", "calls", "name", "min", "median", "p99", "max"};
	char arguments[64];

	make_calls();
	for (size_t i = 0; i < TW_COUNT_OF(keys); i++) {
		snprintf(arguments, sizeof arguments, "--sort %s --json", keys[i]);
		char *text = view_answer(tw_tool_report, arguments, 0);
		assert_non_null(strstr(text, strcmp(keys[i], "name") == 0 ? "\"app:alloc/_\"" : "\"app:step/1\""));
		free(text);
	}
}

/* ---- against a model ---- */

struct model {
	uint64_t calls, total, self, least, most;
	uint32_t open;
};

/* Calls of four threads, and processes that move between them, nested at random. */
static void random_calls(struct maker *maker, struct model *model, uint64_t *seed, bool moves, unsigned events)
{
	struct {
		uint32_t function[40];
		uint64_t start[40], inner[40];
		uint32_t depth, stream;
		uint32_t open[8];
		uint64_t run;
	} processes[4] = {0};
	uint64_t now = 5000;

	for (uint32_t i = 0; i < 4; i++) {
		processes[i].stream = i;
		view_switch(maker, i, 4000, i + 1, ++processes[i].run);
	}
	for (unsigned i = 0; i < events; i++) {
		uint32_t who = (uint32_t)random_below(seed, 4);
		uint32_t depth = processes[who].depth, f = (uint32_t)random_below(seed, 8);

		now += 1 + random_word(seed) % (i % 100 == 0 ? 100000 : 300);
		if (moves && random_below(seed, 16) == 0) {
			/* Two processes change their schedulers. */
			uint32_t other = (who + 1) % 4, stream = processes[other].stream;

			processes[other].stream = processes[who].stream;
			processes[who].stream = stream;
			view_switch(maker, processes[other].stream, now, other + 1, ++processes[other].run);
			view_switch(maker, stream, now, who + 1, ++processes[who].run);
			now++;
		}
		if (depth < 40 && (depth == 0 || random_below(seed, 2))) {
			processes[who].function[depth] = f;
			processes[who].start[depth] = now;
			processes[who].inner[depth] = 0;
			processes[who].open[f]++;
			processes[who].depth++;
			model[f].calls++;
			view_call(maker, processes[who].stream, now, f);
			continue;
		}
		f = processes[who].function[--depth];
		processes[who].depth = depth;
		uint64_t took = now - processes[who].start[depth];
		model[f].self += took - processes[who].inner[depth];
		model[f].total += --processes[who].open[f] ? 0 : took;
		model[f].least = model[f].least && model[f].least < took ? model[f].least : took;
		model[f].most = took > model[f].most ? took : model[f].most;
		if (depth)
			processes[who].inner[depth - 1] += took;
		view_return(maker, processes[who].stream, now, f);
	}
	for (uint32_t who = 0; who < 4; who++) {
		while (processes[who].depth) {
			uint32_t depth = --processes[who].depth, f = processes[who].function[depth];
			uint64_t took = ++now - processes[who].start[depth];

			model[f].self += took - processes[who].inner[depth];
			model[f].total += --processes[who].open[f] ? 0 : took;
			model[f].least = model[f].least && model[f].least < took ? model[f].least : took;
			model[f].most = took > model[f].most ? took : model[f].most;
			if (depth)
				processes[who].inner[depth - 1] += took;
			view_return(maker, processes[who].stream, now, f);
		}
	}
}

static void compare_model(const struct model *model, bool is_by_process)
{
	struct tw_capture *capture = open_capture();
	struct tw_calltree tree = {.is_by_process = is_by_process};

	assert_int_equal(tw_calltree_make(&tree, capture, &(struct tw_capture_filter){0}), 0);
	assert_int_equal(tree.stacks.cut + tree.stacks.open + tree.stacks.unmatched, 0);
	for (uint32_t f = 0; f < 8; f++) {
		const struct tw_call_function *sums = &tree.functions[tw_places_function(&tree.places, 0, f)];

		assert_int_equal(sums->calls, model[f].calls);
		assert_int_equal(sums->took.count, model[f].calls);
		assert_int_equal(sums->total_ns, model[f].total);
		assert_int_equal(sums->self_ns, model[f].self);
		assert_int_equal(sums->took.min, model[f].least);
		assert_int_equal(sums->took.max, model[f].most);
	}
	/* The edges and the nodes cover the same calls. */
	size_t count;
	uint64_t calls = 0, of_edges = 0;
	struct tw_call_edge *edges = tw_calltree_edges(&tree, &count);
	for (size_t i = 0; i < count; i++)
		of_edges += edges[i].calls;
	for (uint32_t f = 0; f < 8; f++)
		calls += model[f].calls;
	assert_int_equal(of_edges, calls);
	free(edges);
	tw_calltree_free(&tree);
	tw_capture_close(capture);
}

static void test_model(void **state)
{
	uint64_t seed = 4711;

	for (unsigned round = 0; round < 6; round++) {
		struct model model[8] = {0};
		struct maker *maker = begin_view(4, round % 2 == 0);

		random_calls(maker, model, &seed, round % 2 != 0, 20000);
		end_maker(maker, true);
		compare_model(model, round >= 3);
	}
}

/* More chains of callers than nodes: calls and own time stay right, totals may only become smaller. */
static void test_limit(void **state)
{
	uint64_t seed = 4711;
	struct model model[8] = {0};
	struct maker *maker = begin_view(4, true);

	random_calls(maker, model, &seed, false, 20000);
	end_maker(maker, true);
	struct tw_capture *capture = open_capture();
	/* A power of two, at which the tables grow. */
	struct tw_calltree tree = {.node_max = 1024};
	assert_int_equal(tw_calltree_make(&tree, capture, &(struct tw_capture_filter){0}), 0);
	assert_true(tree.is_full);
	assert_true(tree.node_count >= 1024 && tree.node_count < 1024 + 100);
	for (uint32_t f = 0; f < 8; f++) {
		const struct tw_call_function *sums = &tree.functions[tw_places_function(&tree.places, 0, f)];

		assert_int_equal(sums->calls, model[f].calls);
		assert_int_equal(sums->self_ns, model[f].self);
		assert_true(sums->total_ns <= model[f].total);
	}
	tw_calltree_free(&tree);
	tw_capture_close(capture);
}

/*
 * The tracer's cost, by calls whose spans are known: main calls step 64,000 times, 20 ns in it and 30 ns between, one in 64 delayed
 * by a microsecond; loop spins without calls; move calls alloc, whose returns are not recorded, 40 ns apart; bind takes 5 us.
 */
static void make_costs(void)
{
	struct maker *maker = begin_view(1, true);
	uint64_t t = 1000;

	view_switch(maker, 0, t, 1, 1);
	view_call(maker, 0, t += 100, MAIN);
	for (unsigned i = 0; i < 64000; i++) {
		view_call(maker, 0, t += 30, STEP);
		view_return(maker, 0, t += i % 1000 == 0 ? 1020 : 20, STEP);
	}
	view_call(maker, 0, t += 30, LOOP);
	view_return(maker, 0, t += 5000000, LOOP);
	view_call(maker, 0, t += 30, MOVE);
	for (unsigned i = 0; i < 2000; i++)
		view_call(maker, 0, t += 40, ALLOC);
	view_return(maker, 0, t += 40, MOVE);
	for (unsigned i = 0; i < 2000; i++) {
		view_call(maker, 0, t += 3000, BIND);
		view_return(maker, 0, t += 5000, BIND);
	}
	view_return(maker, 0, t += 100, MAIN);
	end_maker(maker, true);
}

static uint64_t tracer_ns_of(const struct tw_calltree *tree, uint32_t place)
{
	uint32_t function = tw_places_function(&tree->places, 0, place);
	const struct tw_call_function *sums = &tree->functions[function];

	return tw_tracer_cost_of(&tree->cost, &sums->paid, sums->self_ns);
}

/* Within the 1 % of a histogram. */
static void assert_near(double value, double wanted)
{
	assert_true(value >= wanted * 0.99 && value <= wanted * 1.01);
}

static void test_costs(void **state)
{
	make_costs();
	struct tw_capture *capture = open_capture();
	struct tw_calltree tree = {0};

	assert_int_equal(tw_calltree_make(&tree, capture, &(struct tw_capture_filter){0}), 0);
	assert_near(tree.cost.ns[TW_COST_INSIDE], 20);
	assert_near(tree.cost.ns[TW_COST_OUTSIDE], 30);
	assert_near(tree.cost.ns[TW_COST_ALONE], 40);
	/* A caller pays for its calls, and for its own. */
	assert_near((double)tracer_ns_of(&tree, MAIN), 66002 * 30 + 20);
	assert_near((double)tracer_ns_of(&tree, STEP), 64000 * 20);
	assert_near((double)tracer_ns_of(&tree, LOOP), 20);
	assert_near((double)tracer_ns_of(&tree, BIND), 2000 * 20);
	assert_near((double)tracer_ns_of(&tree, MOVE), 2000 * 40 + 20);
	/* Calls without returns have no time. */
	assert_near((double)tracer_ns_of(&tree, ALLOC), 0);
	tw_calltree_free(&tree);
	tw_capture_close(capture);
	char *text = view_answer(tw_tool_report, "", 0);
	assert_non_null(strstr(text,
			       "The tracer's own cost is in these times: up to 20 ns in a call, up to 30 ns in its "
			       "caller, up to 40 ns in the caller of one without a return, as the shortest calls show. "
			       "app:main/0: up to 1.99 ms of 7.92 ms self are the tracer's, app:step/1: up to "
			       "1.29 ms of 1.34 ms, app:"));
	free(text);
}

/* Spans that are too few, too long, or interrupted by other events, are not taken for the tracer's. */
static void test_no_costs(void **state)
{
	struct maker *maker = begin_view(1, true);
	const uint64_t delay = 10;
	uint64_t t = 1000;

	view_switch(maker, 0, t, 1, 1);
	view_call(maker, 0, t += 100, MAIN);
	for (unsigned i = 0; i < 1000; i++) {
		view_call(maker, 0, t += 30, STEP);
		view_return(maker, 0, t += 20, STEP);
	}
	for (unsigned i = 0; i < 5000; i++) {
		view_call(maker, 0, t += 110, BIND);
		view_return(maker, 0, t += 110, BIND);
	}
	for (unsigned i = 0; i < 5000; i++) {
		view_call(maker, 0, t += 110, ALLOC);
		view_put(maker, &(struct view_event){0, t += 5, TW_EVENT_OWN_TIME, 0, 2}, &delay, 1);
		view_return(maker, 0, t += 25, ALLOC);
	}
	view_return(maker, 0, t += 100, MAIN);
	end_maker(maker, true);
	char *text = view_answer(tw_tool_report, "", 0);
	assert_null(strstr(text, "are the tracer's"));
	free(text);
	text = view_answer(tw_tool_report, "--json", 0);
	assert_non_null(strstr(text, "\"inside_ns\": 0,"));
	assert_non_null(strstr(text, "\"outside_ns\": 0,"));
	free(text);
}

static void test_quantiles(void **state)
{
	struct tw_histogram histogram = {0};
	uint64_t seed = 99, *values = malloc(100000 * sizeof *values);

	assert_int_equal(tw_histogram_quantile(&histogram, 0.5), 0);
	for (unsigned i = 0; i < 100000; i++) {
		values[i] = random_word(&seed) >> random_below(&seed, 50);
		assert_true(tw_histogram_add(&histogram, values[i]));
	}
	for (double share = 0.01; share < 1; share += 0.049) {
		uint64_t value = tw_histogram_quantile(&histogram, share);
		uint64_t below = 0, near = 0;

		/* Within 1 %: no more values lie below 99 % of it, no fewer below 101 %. */
		for (unsigned i = 0; i < 100000; i++) {
			below += (double)values[i] < (double)value * 0.991;
			near += (double)values[i] <= (double)value * 1.009;
		}
		assert_true((double)below <= share * 100000 + 1 && (double)near >= share * 100000 - 1);
	}
	assert_true(tw_histogram_add(&histogram, UINT64_MAX));
	assert_true(tw_histogram_add(&histogram, 0));
	assert_int_equal(tw_histogram_quantile(&histogram, 1), UINT64_MAX);
	tw_histogram_free(&histogram);
	free(values);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_costs),  cmocka_unit_test(test_no_costs),	 cmocka_unit_test(test_calls),
		cmocka_unit_test(test_actors), cmocka_unit_test(test_sorted),	 cmocka_unit_test(test_model),
		cmocka_unit_test(test_limit),  cmocka_unit_test(test_quantiles),
	};

	/* For the tests of other commands: the captures themselves. */
	if (argc == 3 && strcmp(argv[1], "captures") == 0) {
		snprintf(capture_path, sizeof capture_path, "%s/calls.tw", argv[2]);
		make_calls();
		snprintf(capture_path, sizeof capture_path, "%s/actors.tw", argv[2]);
		make_actors();
		snprintf(capture_path, sizeof capture_path, "%s/random.tw", argv[2]);
		struct maker *maker = begin_view(4, true);
		random_calls(maker, (struct model[8]){0}, &(uint64_t){4711}, false, 20000);
		end_maker(maker, true);
		return 0;
	}
	if (argc == 3)
		view_golden_directory = argv[2];
	return RUN_IN_DIRECTORY(tests);
}
