/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: the small parts of a reader are correct: maps of ids, intervals of runs, ticks as time, definitions.
 *
 * Method: each compared with the simplest equivalent, on random input.
 */
#include "capture_help.h"

#include "pipeline/format/catalog.h"
#include "pipeline/reader/clockmap.h"
#include "pipeline/reader/runs.h"
#include "tests/common/random.h"

static uint64_t seed = 88172645463325252u;

static uint64_t number(void)
{
	return random_word(&seed);
}

static void runs_are_a_set_of_numbers(void **state)
{
	enum { RUNS = 400 };

	for (int round = 0; round < 200; round++) {
		struct tw_runs runs = {0};
		bool has[RUNS] = {false};
		uint64_t before = 0;

		for (int i = 0; i < 100 + round; i++) {
			uint64_t run = 1 + number() % (RUNS - 1);

			has[run] = true;
			assert_true(tw_runs_add(&runs, 1, 2, run));
		}
		for (uint64_t run = 1; run < RUNS; run++) {
			assert_int_equal(tw_runs_before(tw_runs_find(&runs, 1, 2), run), before);
			before = has[run] ? run : before;
		}
		assert_null(tw_runs_find(&runs, 2, 1));
		assert_int_equal(runs.count, 1);
		tw_runs_fini(&runs);
	}
}

static void in_order_runs_are_one_interval(void **state)
{
	struct tw_runs runs = {0};

	/* As from several threads: nearly in order. */
	for (uint64_t run = 1; run <= 10000; run++)
		assert_true(tw_runs_add(&runs, 0, 1, (run - 1) / 4 * 4 + 4 - (run - 1) % 4));
	assert_int_equal(runs.intervals, 1);
	tw_runs_fini(&runs);
}

static void time_never_goes_backwards(void **state)
{
	for (int round = 0; round < 50; round++) {
		struct tw_clockmap map = {0};
		struct tw_format_clock clock = {1000000, 5000000, 9000000, 5000000};
		uint64_t before = 0;
		size_t hint = 0;

		for (int i = 0; i < 40; i++) {
			uint64_t ticks = number() % 1000000000;

			assert_true(tw_clockmap_add(&map, &clock));
			clock.ticks += ticks;
			/* A clock that drifts, stands still, is set, and once goes backwards. */
			clock.monotonic_ns += i == 20 ? 0 : ticks / 3 + number() % 1000;
			clock.monotonic_ns -= i == 30 ? 1000 : 0;
			clock.realtime_ns = clock.monotonic_ns + 4000000 + (i > 10 ? 7000000 : 0);
			clock.boottime_ns = clock.monotonic_ns;
		}
		tw_clockmap_finish(&map, 3000000000);
		for (uint64_t ticks = 0; ticks < clock.ticks + 1000000000; ticks += 1 + number() % 20000000) {
			uint64_t ns = tw_clockmap_ns(&map, ticks, &hint);
			size_t none = 0;

			assert_true(ns >= before);
			assert_int_equal(tw_clockmap_ns(&map, ticks, &none), ns);
			before = ns;
		}
		tw_clockmap_fini(&map);
	}
}

static void time_is_exact_at_its_points(void **state)
{
	struct tw_clockmap map = {0};
	const struct tw_format_clock clocks[] = {{1000, 100000000, 500000000, 100000000},
						 {3000000000, 1100000000, 1500000000, 1100000000},
						 {9000000000, 2100000000, 9500000000, 2600000000}};
	size_t hint = 0;

	for (int i = 2; i >= 0; i--)
		assert_true(tw_clockmap_add(&map, &clocks[i]));
	tw_clockmap_finish(&map, 1000000000);
	for (int i = 0; i < 3; i++) {
		uint64_t ns = tw_clockmap_ns(&map, clocks[i].ticks, &hint);

		assert_int_equal(ns, clocks[i].monotonic_ns);
		assert_int_equal(tw_clockmap_wall_ns(&map, ns), clocks[i].realtime_ns);
		assert_int_equal(tw_clockmap_boot_ns(&map, ns), clocks[i].boottime_ns);
	}
	/* Half of the ticks, half of the time. */
	assert_in_range(tw_clockmap_ns(&map, 6000000000, &hint), 1599999990, 1600000010);
	tw_clockmap_fini(&map);
}

static uint32_t put(uint8_t *to, uint32_t type, const void *fixed, size_t bytes, const char *text)
{
	const struct tw_definition_head head = {type, (uint32_t)(bytes + strlen(text))};

	memcpy(to, &head, sizeof(head));
	memcpy(to + sizeof(head), fixed, bytes);
	memcpy(to + sizeof(head) + bytes, text, strlen(text));
	return (uint32_t)(sizeof(head) + head.payload_bytes + 7) / 8 * 8;
}

/* The clock was set forward by an hour, and back by two: each wall-clock time is found, by its first moment. */
static void a_wall_clock_time_is_found_across_steps(void **state)
{
	const uint64_t second = 1000000000, hour = 3600 * second, wall = 1000 * hour;
	const struct tw_format_clock clocks[] = {{1 * second, 1 * second, wall, 0},
						 {3 * second, 3 * second, wall + hour + 2 * second, 0},
						 {5 * second, 5 * second, wall - hour + 4 * second, 0}};
	struct tw_clockmap map = {0};

	for (size_t i = 0; i < TW_COUNT_OF(clocks); i++)
		assert_true(tw_clockmap_add(&map, &clocks[i]));
	tw_clockmap_finish(&map, second);
	assert_int_equal(tw_clockmap_of_wall(&map, wall + second), 2 * second);
	assert_int_equal(tw_clockmap_of_wall(&map, wall + hour + 3 * second), 4 * second);
	assert_int_equal(tw_clockmap_of_wall(&map, wall - hour + 7 * second), 8 * second);
	/* A time that the wall clock skipped: by the clock before the step. */
	assert_int_equal(tw_clockmap_of_wall(&map, wall - 2 * hour), 0);
	tw_clockmap_fini(&map);
}

static void the_first_definition_counts(void **state)
{
	struct tw_catalog catalog = {0};
	struct tw_def_function function = {.function_id = 3, .module_id = 9, .name_bytes = 3};
	const struct tw_def_module module = {.module_id = 9, .name_bytes = 1};
	const struct tw_capture_function *found;
	uint8_t bytes[256] = {0};
	uint32_t count;

	count = put(bytes, TW_DEF_FUNCTION, &function, sizeof(function), "one");
	count += put(bytes + count, TW_DEF_FUNCTION, &function, sizeof(function), "two");
	/* Its module is defined after it. */
	count += put(bytes + count, TW_DEF_MODULE, &module, sizeof(module), "m");
	assert_int_equal(tw_catalog_add(&catalog, bytes, count), 0);
	assert_int_equal(tw_catalog_add(&catalog, bytes, count), 0);
	/* Cut off in the middle of a name. */
	function.function_id = 4;
	count = put(bytes, TW_DEF_FUNCTION, &function, sizeof(function), "cut");
	assert_int_equal(tw_catalog_add(&catalog, bytes, count - 8), TW_EFORMAT);
	tw_catalog_finish(&catalog);
	found = tw_catalog_find(&catalog.functions, 3);
	assert_string_equal(found->name, "one");
	assert_string_equal(found->module->name, "m");
	assert_null(tw_catalog_find(&catalog.functions, 4));
	assert_int_equal(catalog.functions.count, 1);
	tw_catalog_fini(&catalog);
}

static int add_thread(struct tw_catalog *catalog, uint32_t id, const char *name)
{
	const struct tw_def_tracee tracee = {.tracee_id = id, .thread_id = 1, .name_bytes = (uint16_t)strlen(name)};
	uint8_t bytes[64] = {0};

	return tw_catalog_add(catalog, bytes, put(bytes, TW_DEF_TRACEE, &tracee, sizeof(tracee), name));
}

static int add_origin(struct tw_catalog *catalog, uint32_t id, const char *name, const char *origin, size_t missing)
{
	const struct tw_def_tracee tracee = {.tracee_id = id,
					     .name_bytes = (uint16_t)strlen(name),
					     .origin_bytes = (uint16_t)(strlen(origin) + missing)};
	uint8_t bytes[256] = {0};
	char both[128];

	snprintf(both, sizeof both, "%s%s", name, origin);
	return tw_catalog_add(catalog, bytes, put(bytes, TW_DEF_TRACEE, &tracee, sizeof(tracee), both));
}

/* A process is described after it was defined, and named after that. */
static void a_process_has_an_origin(void **state)
{
	struct tw_catalog catalog = {0};
	const struct tw_capture_tracee *found;
	const char *label;
	uint64_t before;

	assert_int_equal(add_origin(&catalog, 1, "", "", 0), 0);
	found = tw_catalog_find(&catalog.tracees, 1);
	assert_string_equal(found->initial_call, "");
	assert_int_equal(add_origin(&catalog, 1, "", "cart:init/1\ngen_server\nshop\nthe first", 0), 0);
	assert_int_equal(add_origin(&catalog, 1, "cart", "", 0), 0);
	assert_string_equal(found->name, "cart");
	assert_string_equal(found->initial_call, "cart:init/1");
	assert_string_equal(found->behaviour, "gen_server");
	assert_string_equal(found->application, "shop");
	assert_string_equal(found->label, "the first");
	/* The same again takes no memory; another leaves that which a reader may hold. */
	before = catalog.record_bytes;
	label = found->label;
	assert_int_equal(add_origin(&catalog, 1, "", "cart:init/1\ngen_server\nshop\nthe first", 0), 0);
	assert_int_equal(catalog.record_bytes, before);
	assert_int_equal(add_origin(&catalog, 1, "", "cart:init/1", 0), 0);
	assert_true(catalog.record_bytes > before);
	assert_string_equal(label, "the first");
	assert_string_equal(found->label, "");
	/* In one definition; cut off; more lines than there are. */
	assert_int_equal(add_origin(&catalog, 2, "desk", "desk:init/1\n\n\n1\n2\n", 0), 0);
	found = tw_catalog_find(&catalog.tracees, 2);
	assert_string_equal(found->name, "desk");
	assert_string_equal(found->label, "1");
	assert_int_equal(add_origin(&catalog, 3, "", "x", 9), TW_EFORMAT);
	tw_catalog_fini(&catalog);
}

/* A capture of days: more threads than one log of definitions holds at a time. */
static void a_catalog_holds_more_than_a_log(void **state)
{
	const uint32_t threads = (uint32_t)(TW_RS_DEFS_BYTES / 40 + 10);
	struct tw_catalog catalog = {0};
	const struct tw_capture_tracee *last;

	for (uint32_t id = 1; id <= threads; id++)
		assert_int_equal(add_thread(&catalog, id, "worker"), 0);
	tw_catalog_finish(&catalog);
	assert_true(catalog.record_bytes > TW_RS_DEFS_BYTES);
	last = tw_catalog_find(&catalog.tracees, threads);
	assert_non_null(last);
	assert_string_equal(last->name, "worker");
	tw_catalog_fini(&catalog);
}

/* Names of threads count, later names too; what is known, and records of a later version, take no memory. */
static void one_image_cannot_define_without_end(void **state)
{
	struct tw_catalog catalog = {0};
	uint8_t later[1024] = {0};
	uint64_t before;

	/* Records of an unknown type, 8 bytes each. */
	for (size_t i = 0; i < sizeof(later); i += 8)
		later[i] = 200;
	assert_int_equal(add_thread(&catalog, 1, "first"), 0);
	before = catalog.record_bytes;
	assert_true(before > 0);
	assert_int_equal(tw_catalog_add(&catalog, later, sizeof(later)), 0);
	assert_int_equal(add_thread(&catalog, 1, "first"), 0);
	assert_int_equal(catalog.record_bytes, before);
	assert_int_equal(add_thread(&catalog, 1, "other"), 0);
	assert_int_equal(catalog.record_bytes, 2 * before);
	/* As if all but one record of space were used. */
	catalog.record_bytes = TW_CATALOG_BYTES_MAX - before;
	assert_int_equal(add_thread(&catalog, 2, "added"), 0);
	assert_int_equal(add_thread(&catalog, 3, "never"), TW_ELIMIT);
	assert_null(tw_catalog_find(&catalog.tracees, 3));
	tw_catalog_fini(&catalog);
}

static void add_count(struct tw_catalog *catalog, uint32_t type, uint64_t calls)
{
	const struct {
		struct tw_def_counts head;
		struct tw_def_count pair;
	} counts = {{.lease = 5, .tracee_id = 1, .pair_count = 1}, {.place_id = 3, .count = calls}};
	uint8_t bytes[64] = {0};

	assert_int_equal(tw_catalog_add(catalog, bytes, put(bytes, type, &counts, sizeof(counts), "")), 0);
}

/* A recorder that died has stored some of them, and a recovery all of them later, while the difference fell. */
static void counts_are_the_newest_in_any_order(void **state)
{
	static const uint64_t calls[] = {10, 12, 13}, recorded[] = {2, 8, 9};
	static const unsigned orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}};

	for (size_t i = 0; i < TW_COUNT_OF(orders); i++) {
		struct tw_catalog catalog = {0};
		const struct tw_capture_count *count;
		uint32_t at = 0;

		for (unsigned j = 0; j < 3; j++) {
			add_count(&catalog, TW_DEF_RECORDED_COUNTS, recorded[orders[i][j]]);
			add_count(&catalog, TW_DEF_COUNTS, calls[orders[i][j]]);
		}
		tw_catalog_finish(&catalog);
		count = tw_catalog_next(&catalog.counts, &at);
		assert_non_null(count);
		assert_int_equal(count->count, 4);
		assert_int_equal(count->place_id, 3);
		assert_int_equal(count->lease, 5);
		assert_null(tw_catalog_next(&catalog.counts, &at));
		tw_catalog_fini(&catalog);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_are_a_set_of_numbers),
		cmocka_unit_test(in_order_runs_are_one_interval),
		cmocka_unit_test(time_never_goes_backwards),
		cmocka_unit_test(time_is_exact_at_its_points),
		cmocka_unit_test(a_wall_clock_time_is_found_across_steps),
		cmocka_unit_test(the_first_definition_counts),
		cmocka_unit_test(a_process_has_an_origin),
		cmocka_unit_test(a_catalog_holds_more_than_a_log),
		cmocka_unit_test(one_image_cannot_define_without_end),
		cmocka_unit_test(counts_are_the_newest_in_any_order),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	printf("seed %llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
