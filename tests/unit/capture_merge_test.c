/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: events of many streams are given in one order: each stream's own, then the runs of each tracee, then time.
 *
 * Method: handmade captures of threads whose clocks disagree and tracees that move between them, compared with the true
 * order.  Negative control: sorted by time alone the same capture is in a wrong order.
 */
#include "capture_help.h"
#include "tests/common/random.h"

enum { THREADS = 6, TRACEES = 9, STEPS = 30000 };

static uint64_t seed = 88172645463325252u;

static uint64_t number(void)
{
	return random_word(&seed);
}

typedef void check_fn(void *context, const struct tw_capture_event *event);

static uint64_t for_each(const struct tw_capture_filter *filter, check_fn *check, void *context)
{
	struct tw_capture *capture = open_capture();
	const struct tw_capture_event *batch;
	struct tw_capture_events *events;
	uint64_t total = 0;
	int64_t count;

	assert_int_equal(tw_capture_events_create(capture, filter, &events), 0);
	while ((count = tw_capture_events_next(events, &batch)) > 0) {
		for (int64_t i = 0; i < count; i++)
			check(context, &batch[i]);
		total += (uint64_t)count;
	}
	assert_int_equal(count, 0);
	tw_capture_events_destroy(events);
	tw_capture_close(capture);
	return total;
}

/* ---- by time ---- */

struct by_time {
	uint64_t ticks;
	uint32_t scheduler;
	uint64_t next[THREADS];
	uint64_t sum;
};

static void check_time(void *context, const struct tw_capture_event *event)
{
	struct by_time *seen = context;
	uint32_t scheduler = (uint32_t)event->payload[1];

	assert_true(event->ticks > seen->ticks || (event->ticks == seen->ticks && scheduler >= seen->scheduler));
	assert_int_equal(event->time_ns, event->ticks);
	assert_int_equal(event->payload[0], seen->next[scheduler]++);
	assert_int_equal(event->sequence, event->payload[0]);
	seen->ticks = event->ticks;
	seen->scheduler = scheduler;
}

static void streams_merge_by_time_then_scheduler(void **state)
{
	struct maker *maker = begin_maker();
	struct by_time seen = {0};
	uint64_t ticks[THREADS], counters[THREADS] = {0};

	for (uint32_t i = 0; i < THREADS; i++)
		ticks[i] = 2000;
	for (int i = 0; i < STEPS; i++) {
		uint32_t thread = (uint32_t)(number() % THREADS);

		maker_call(maker, thread, ticks[thread] += number() % 4, counters[thread]++, thread);
		if (number() % 300 == 0)
			maker_flush(maker, thread);
	}
	end_maker(maker, true);
	assert_int_equal(for_each(NULL, check_time, &seen), STEPS);
}

/* ---- tracees that move ---- */

struct mover {
	uint64_t run;
	uint64_t events;
	uint32_t thread; /* the thread that runs it, THREADS: none */
};

struct world {
	struct maker *maker;
	struct mover movers[TRACEES];
	uint32_t current[THREADS]; /* TRACEES: none */
	int64_t skew[THREADS];
	uint64_t last[THREADS];
	uint64_t now;
	uint64_t lost;
	uint64_t written;
	bool loses;
	uint64_t ticks_per_second; /* 0: 10^9 */
};

static uint64_t clock_of(struct world *world, uint32_t thread)
{
	uint64_t ticks = world->now + (uint64_t)world->skew[thread];

	/* A thread's own clock never goes backwards. */
	world->last[thread] = ticks > world->last[thread] ? ticks : world->last[thread] + 1;
	return world->last[thread];
}

static void switch_to(struct world *world, uint32_t thread, uint32_t tracee)
{
	uint64_t run = tracee < TRACEES ? ++world->movers[tracee].run : 0;

	if (world->current[thread] < TRACEES)
		world->movers[world->current[thread]].thread = THREADS;
	world->current[thread] = tracee;
	if (tracee < TRACEES)
		world->movers[tracee].thread = thread;
	if (world->loses && number() % 20 == 0) {
		/* The switch did not fit, nor did the events after it: the ring reports that later. */
		const uint64_t lost[6] = {world->now, 1};

		maker_record(world->maker, thread, clock_of(world, thread), TW_EVENT_LOSS, 0, lost, 6);
		world->lost++;
		world->current[thread] = TRACEES;
		if (tracee < TRACEES)
			world->movers[tracee].thread = THREADS;
		return;
	}
	maker_record(world->maker, thread, clock_of(world, thread), TW_EVENT_SWITCH, tracee < TRACEES ? tracee + 1 : 0,
		     &run, 1);
}

static void live(struct world *world)
{
	world->maker = begin_maker();
	if (world->ticks_per_second) {
		/* The image's first segment contains it. */
		tw_segment_abandon(&world->maker->image.segment);
		remove_folder(capture_path);
		assert_int_equal(mkdir(capture_path, 0700), 0);
		tw_store_destroy(&world->maker->store);
		assert_int_equal(tw_store_create(&world->maker->store,
						 &(struct tw_recorder_options){.path = capture_path}, true),
				 0);
		world->maker->store.header.ticks_per_second = world->ticks_per_second;
		world->maker->store.header.clock = (struct tw_format_clock){1000, 1000, 5000, 1000};
		maker_segment(world->maker, 1);
	}
	world->now = 5000;
	for (uint32_t i = 0; i < THREADS; i++) {
		world->current[i] = TRACEES;
		world->skew[i] = (int64_t)(number() % 101) - 50;
	}
	for (uint32_t i = 0; i < TRACEES; i++)
		world->movers[i].thread = THREADS;
	for (int i = 0; i < STEPS; i++) {
		uint32_t thread = (uint32_t)(number() % THREADS), tracee = (uint32_t)(number() % (TRACEES + 1));

		world->now += 1 + number() % 3;
		if (number() % 4 == 0 && (tracee == TRACEES || world->movers[tracee].thread == THREADS))
			switch_to(world, thread, tracee);
		if (world->current[thread] < TRACEES) {
			struct mover *mover = &world->movers[world->current[thread]];

			maker_call(world->maker, thread, clock_of(world, thread), mover->events++, mover->run);
			world->written++;
		}
		if (number() % 100 == 0)
			maker_flush(world->maker, thread);
	}
	end_maker(world->maker, true);
}

struct by_run {
	uint64_t next[TRACEES + 1];
	uint64_t last_run[TRACEES + 1];
	uint64_t wrong;
	uint64_t backwards;
	uint64_t calls;
	uint64_t latest;
	uint64_t worst; /* greatest deviation from the order of time */
};

static void check_runs(void *context, const struct tw_capture_event *event)
{
	struct by_run *seen = context;

	if (event->ticks > seen->latest)
		seen->latest = event->ticks;
	if (seen->latest - event->ticks > seen->worst)
		seen->worst = seen->latest - event->ticks;
	if (event->kind != TW_CAPTURE_CALL)
		return;
	assert_in_range(event->tracee_id, 1, TRACEES);
	seen->calls++;
	seen->wrong += event->payload[0] != seen->next[event->tracee_id];
	seen->backwards += event->payload[0] < seen->next[event->tracee_id];
	seen->backwards += event->payload[1] < seen->last_run[event->tracee_id];
	seen->next[event->tracee_id] = event->payload[0] + 1;
	seen->last_run[event->tracee_id] = event->payload[1];
}

static void tracees_keep_their_order_across_threads(void **state)
{
	const struct tw_capture_filter by_time = {.by_time_only = true};
	struct world world = {0};
	struct by_run seen = {0}, control = {0};

	live(&world);
	for_each(NULL, check_runs, &seen);
	assert_int_equal(seen.calls, world.written);
	assert_int_equal(seen.wrong, 0);
	assert_int_equal(seen.backwards, 0);
	/* Deviates no more than a few times the difference of the clocks. */
	assert_in_range(seen.worst, 1, 1000);
	for_each(&by_time, check_runs, &control);
	assert_int_equal(control.calls, world.written);
	assert_true(control.backwards > 100);
}

/* Runs are looked ahead by a tenth of a second: here 200 ticks, of tens of thousands. */
static void runs_are_found_as_they_are_needed(void **state)
{
	struct world world = {.ticks_per_second = 2000};
	struct by_run seen = {0};
	struct tw_capture *capture;
	struct tw_capture_info info;
	struct tw_capture_events *events;
	const struct tw_capture_event *batch;
	uint8_t byte = 0x55;
	char path[400];
	int fd;

	live(&world);
	for_each(NULL, check_runs, &seen);
	assert_int_equal(seen.calls, world.written);
	assert_int_equal(seen.wrong, 0);
	assert_int_equal(seen.backwards, 0);
	/* A much later block is damaged: the first events are given without reading it. */
	capture = open_capture();
	snprintf(path, sizeof path, "%s/segment-000001.tws", capture_path);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)(lseek(fd, 0, SEEK_END) * 2 / 3)), 1);
	close(fd);
	assert_int_equal(tw_capture_events_create(capture, NULL, &events), 0);
	assert_true(tw_capture_events_next(events, &batch) > 0);
	tw_capture_info(capture, &info);
	assert_int_equal(info.damages, 0);
	while (tw_capture_events_next(events, &batch) > 0)
		;
	tw_capture_info(capture, &info);
	assert_int_equal(info.damages, 1);
	tw_capture_events_destroy(events);
	tw_capture_close(capture);
}

static void lost_runs_are_not_waited_for(void **state)
{
	struct world world = {.loses = true};
	struct by_run seen = {0};

	live(&world);
	assert_true(world.lost > 100);
	for_each(NULL, check_runs, &seen);
	assert_int_equal(seen.calls, world.written);
	assert_int_equal(seen.wrong, 0);
	assert_int_equal(seen.backwards, 0);
	assert_in_range(seen.worst, 1, 1000);
}

static void a_part_of_the_time_keeps_the_order_too(void **state)
{
	const struct tw_capture_filter part = {.from_ns = 20000, .to_ns = 40000};
	struct world world = {0};
	struct by_run seen = {0};

	live(&world);
	for_each(&part, check_runs, &seen);
	assert_in_range(seen.calls, 1000, world.written - 1000);
	assert_int_equal(seen.backwards, 0);
}

static void count_only(void *context, const struct tw_capture_event *event)
{
	++*(uint64_t *)context;
}

/* No recorder writes this: two streams that each wait for the other's later run. */
static void a_ring_of_waits_ends(void **state)
{
	struct maker *maker = begin_maker();
	const uint64_t one = 1, two = 2, three = 3;
	uint64_t calls = 0;

	maker_record(maker, 0, 2000, TW_EVENT_SWITCH, 1, &two, 1);
	maker_call(maker, 0, 2001, 0, 0);
	maker_record(maker, 0, 2002, TW_EVENT_SWITCH, 2, &one, 1);
	maker_call(maker, 0, 2003, 0, 0);
	maker_record(maker, 1, 2000, TW_EVENT_SWITCH, 2, &two, 1);
	maker_call(maker, 1, 2001, 0, 0);
	maker_record(maker, 1, 2002, TW_EVENT_SWITCH, 1, &one, 1);
	maker_call(maker, 1, 2003, 0, 0);
	/* And one that waits for itself. */
	maker_record(maker, 2, 2000, TW_EVENT_SWITCH, 3, &three, 1);
	maker_record(maker, 2, 2000, TW_EVENT_SWITCH, 3, &three, 1);
	maker_record(maker, 2, 2001, TW_EVENT_SWITCH, 3, &two, 1);
	maker_call(maker, 2, 2003, 0, 0);
	end_maker(maker, true);
	assert_int_equal(for_each(NULL, count_only, &calls), 5);
	assert_int_equal(calls, 5);
}

/* A thread that becomes idle without a record must not hold the tracee that left it. */
static void an_idle_thread_delays_no_stream(void **state)
{
	struct maker *maker = begin_maker();
	const uint64_t runs[] = {1, 2};
	struct by_run seen = {0};

	maker_record(maker, 0, 2000, TW_EVENT_SWITCH, 1, &runs[0], 1);
	maker_call(maker, 0, 2010, 0, 1);
	maker_flush(maker, 0);
	maker_record(maker, 1, 1995, TW_EVENT_SWITCH, 1, &runs[1], 1);
	maker_call(maker, 1, 2012, 1, 2);
	maker_call(maker, 2, 2500, 0, 0);
	maker_record(maker, 0, 900000, TW_EVENT_SWITCH, 2, &runs[0], 1);
	maker_call(maker, 0, 900001, 0, 1);
	maker->streams[2].tracee.tracee_id = 5;
	end_maker(maker, true);
	assert_int_equal(for_each(NULL, check_runs, &seen), 4);
	assert_int_equal(seen.wrong, 0);
	assert_int_equal(seen.backwards, 0);
	assert_in_range(seen.worst, 0, 20);
}

/* ---- filters ---- */

static bool wants_even_stream(void *context, const struct tw_capture_stream *stream)
{
	return stream->scheduler_id % 2 == 0;
}

static bool wants_place_2(void *context, uint32_t image, const struct tw_capture_place *place)
{
	return place->place_id == 2;
}

static void check_filtered(void *context, const struct tw_capture_event *event)
{
	uint64_t *what = context;

	if (*what == 1)
		assert_int_equal(event->payload[1] % 2, 1);
	if (*what == 2)
		assert_int_equal(event->id, 2);
	if (*what == 3)
		assert_in_range(event->time_ns, 3000, 3999);
	if (*what == 4)
		assert_int_equal(event->kind, TW_CAPTURE_SWITCH);
}

static void filters_leave_out_what_is_not_wanted(void **state)
{
	struct maker *maker = begin_maker();
	struct tw_capture_filter filter = {0};
	uint8_t definitions[4 * (8 + sizeof(struct tw_def_place))];
	uint64_t run = 1, what = 0, all;

	for (uint32_t i = 0; i < 4; i++) {
		const struct tw_definition_head head = {TW_DEF_PLACE, sizeof(struct tw_def_place)};
		const struct tw_def_place place = {.place_id = i, .kind = TW_PLACE_DECLARED};
		uint8_t *to = definitions + i * (sizeof head + sizeof place);

		memcpy(to, &head, sizeof head);
		memcpy(to + sizeof head, &place, sizeof place);
	}
	maker_definitions(maker, definitions, sizeof definitions, 0);
	for (uint32_t i = 0; i < 4000; i++) {
		maker_call(maker, i % 4, 2000 + i, i, i % 4);
		if (i % 1000 == 0)
			maker_record(maker, i % 4, 2000 + i, TW_EVENT_SWITCH, 0, &run, 1);
		if (i % 97 == 0)
			maker_flush(maker, i % 4);
	}
	end_maker(maker, true);
	all = for_each(&filter, check_filtered, &what);
	assert_int_equal(all, 4000);
	what = 1;
	filter.wants_stream = wants_even_stream;
	assert_int_equal(for_each(&filter, check_filtered, &what), 2000);
	what = 2;
	filter = (struct tw_capture_filter){.wants_place = wants_place_2};
	assert_int_equal(for_each(&filter, check_filtered, &what), 1000);
	what = 3;
	filter = (struct tw_capture_filter){.from_ns = 3000, .to_ns = 4000};
	assert_int_equal(for_each(&filter, check_filtered, &what), 1000);
	what = 4;
	filter = (struct tw_capture_filter){.kinds = UINT64_C(1) << TW_CAPTURE_SWITCH};
	assert_int_equal(for_each(&filter, check_filtered, &what), 4);
}

static int fini_group(void **state)
{
	end_directory();
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_merge_by_time_then_scheduler),
		cmocka_unit_test(tracees_keep_their_order_across_threads),
		cmocka_unit_test(runs_are_found_as_they_are_needed),
		cmocka_unit_test(lost_runs_are_not_waited_for),
		cmocka_unit_test(a_part_of_the_time_keeps_the_order_too),
		cmocka_unit_test(a_ring_of_waits_ends),
		cmocka_unit_test(an_idle_thread_delays_no_stream),
		cmocka_unit_test(filters_leave_out_what_is_not_wanted),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	printf("seed %llu\n", (unsigned long long)seed);
	begin_directory();
	return cmocka_run_group_tests(tests, NULL, fini_group);
}
