/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: a fold sees the same events whether it has a pass of its own or shares one; it begins once, where its selection
 * does; it may end early, and an error ends the pass. The number of threads that read changes none of it.
 *
 * Method: a capture of random calls, returns, schedules and losses of three threads; folds with different times, kinds,
 * places, threads and own time read it alone and in every pair, and a sum over what they saw is compared. A longer one, with
 * blocks that are damaged, is read by one thread, and by 2 to 8 of them: folds see the same, and damage becomes known with
 * the same event. Places of a hostile file have the largest numbers.
 */
#include "views_help.h"

#include "views/folds/mailboxes.h"
#include "views/folds/pass.h"
#include "tracewheel/error.h"
#include "tests/common/random.h"

struct seen {
	uint64_t events, sum, begins, begun_after; /* events before the selection began */
	uint64_t most;				   /* 0: all */
	int answer;				   /* when there are so many */
	struct tw_capture *damaged;		   /* its damage is seen as well */
};

static int begin(void *self, uint64_t from_ns)
{
	struct seen *seen = self;

	seen->begins++;
	seen->begun_after = seen->events;
	seen->sum = seen->sum * 31 + from_ns;
	return 0;
}

static int see(void *self, const struct tw_capture_event *event)
{
	struct seen *seen = self;

	seen->events++;
	seen->sum = (seen->sum ^ event->time_ns) * 31 + event->kind * 7u + event->id * 3u + event->stream;
	if (seen->damaged && seen->events % 16 == 0) {
		struct tw_capture_info info;

		tw_capture_info(seen->damaged, &info);
		seen->sum = seen->sum * 31 + info.damages * 5u + info.events;
	}
	return seen->most && seen->events == seen->most ? seen->answer : 0;
}

static bool wants_step(void *context, uint32_t image, const struct tw_capture_place *place)
{
	return place->place_id == STEP || place->place_id == LOOP;
}

static bool wants_second(void *context, const struct tw_capture_stream *stream)
{
	return stream->thread_id == 101;
}

/* One of each kind of selection. */
static const struct tw_fold selections[] = {
	{.filter = {0}},
	{.filter = {.wants_own_time = true}},
	{.filter = {.from_ns = 30000, .to_ns = 60000}},
	{.filter = {.from_ns = 50000}, .wants_before = true},
	{.filter = {.kinds = UINT64_C(1) << TW_CAPTURE_CALL, .to_ns = 45000}},
	{.filter = {.kinds = UINT64_C(1) << TW_CAPTURE_SWITCH | UINT64_C(1) << TW_CAPTURE_RETURN_FROM}},
	{.filter = {.wants_place = wants_step}},
	{.filter = {.wants_stream = wants_second, .from_ns = 10000}},
	{.filter = {.from_ns = 10000000}, .wants_before = true},
};
enum { SELECTIONS = TW_COUNT_OF(selections) };

static void make_events(unsigned count, unsigned flush_every)
{
	struct maker *maker = begin_view(3, true);
	uint64_t ticks[3] = {1000, 1001, 1002}, random = 20260101;

	for (unsigned i = 0; i < count; i++) {
		uint64_t word = random_word(&random);
		uint32_t stream = (uint32_t)word % 3;
		uint32_t what = (uint32_t)(word >> 40) % 20, place = (uint32_t)(random >> 50) % 8;

		ticks[stream] += 3 + (word >> 33) % 90;
		if (what == 0)
			view_put(maker, &(struct view_event){stream, ticks[stream] + 50, TW_EVENT_LOSS, 0, 0},
				 (const uint64_t[6]){ticks[stream], 5, 0, 0, 0, 0}, 6);
		else if (what == 1)
			view_put(maker, &(struct view_event){stream, ticks[stream], TW_EVENT_OWN_TIME, 0, 1},
				 (const uint64_t[1]){ticks[stream] + 40}, 1);
		else if (what == 2)
			view_switch(maker, stream, ticks[stream], stream + 1, i);
		else if (what < 12)
			view_call(maker, stream, ticks[stream], place);
		else
			view_return(maker, stream, ticks[stream], place);
		ticks[stream] += 60;
		for (uint32_t j = 0; j < 3 && i % flush_every == flush_every - 1; j++)
			maker_flush(maker, j);
	}
	end_maker(maker, true);
}

static void make(void)
{
	make_events(3000, 3000);
}

static struct tw_fold fold_of(unsigned selection, struct seen *seen)
{
	struct tw_fold fold = selections[selection];

	fold.self = seen;
	fold.begin = begin;
	fold.see = see;
	return fold;
}

static void folds_see_the_same_together(void **state)
{
	struct seen alone[SELECTIONS] = {0};

	make();
	struct tw_capture *capture = open_capture();

	for (unsigned i = 0; i < SELECTIONS; i++) {
		struct tw_fold fold = fold_of(i, &alone[i]);

		assert_int_equal(tw_pass_one(capture, &fold, NULL), 0);
		assert_true(alone[i].events > 0);
		assert_int_equal(alone[i].begins, 1);
	}
	assert_int_equal(alone[8].begun_after, alone[8].events);
	assert_in_range(alone[3].begun_after, 1, alone[3].events - 1);
	for (unsigned i = 0; i < SELECTIONS; i++) {
		for (unsigned j = 0; j < SELECTIONS; j++) {
			struct seen seen[2] = {0};
			struct tw_fold folds[2] = {fold_of(i, &seen[0]), fold_of(j, &seen[1])};

			assert_int_equal(tw_pass(capture, folds, 2, NULL), 0);
			assert_memory_equal(&seen[0], &alone[i], sizeof seen[0]);
			assert_memory_equal(&seen[1], &alone[j], sizeof seen[1]);
		}
	}
	tw_capture_close(capture);
}

static void folds_end_early(void **state)
{
	make();
	struct tw_capture *capture = open_capture();
	struct seen all = {0}, some = {.most = 17, .answer = TW_FOLD_DONE}, failed = {.most = 40, .answer = TW_ENOMEM};
	struct tw_fold folds[2] = {fold_of(0, &some), fold_of(0, &all)};

	assert_int_equal(tw_pass(capture, folds, 2, NULL), 0);
	assert_int_equal(some.events, 17);
	assert_true(all.events > 2000);
	some = (struct seen){.most = 17, .answer = TW_FOLD_DONE};
	all = (struct seen){.most = 5, .answer = TW_FOLD_DONE};
	assert_int_equal(tw_pass(capture, folds, 2, NULL), 0);
	assert_int_equal(some.events, 17);
	assert_int_equal(all.events, 5);
	all = (struct seen){0};
	folds[0] = fold_of(0, &failed);
	assert_int_equal(tw_pass(capture, folds, 2, NULL), TW_ENOMEM);
	assert_int_equal(failed.events, 40);
	assert_in_range(all.events, 39, 40);
	tw_capture_close(capture);
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

static struct seen read_with(uint32_t workers, const struct tw_fold *kind, uint64_t most, uint64_t *damages)
{
	const struct tw_capture_options options = {.no_workers = !workers, .workers = workers};
	struct seen seen[2] = {{.most = most, .answer = TW_FOLD_DONE}, {.most = most, .answer = TW_FOLD_DONE}};
	struct tw_fold folds[2] = {fold_of(0, &seen[0]), *kind};
	struct tw_capture_info info;
	struct tw_capture *capture = NULL;

	assert_int_equal(tw_capture_open(capture_path, &options, &capture), 0);
	seen[0].damaged = seen[1].damaged = capture;
	folds[1].self = &seen[1];
	assert_int_equal(tw_pass(capture, folds, 2, NULL), 0);
	tw_capture_info(capture, &info);
	*damages = info.damages;
	tw_capture_close(capture);
	seen[0].sum ^= seen[1].sum * 17 + seen[1].events;
	seen[0].damaged = NULL;
	return seen[0];
}

static void workers_change_nothing(void **state)
{
	static const uint64_t ends[] = {0, 1, 511, 513, 5000, 20000};
	uint64_t damages, of_one;

	make_events(30000, 700);
	damage();
	for (unsigned i = 0; i < TW_COUNT_OF(ends); i++) {
		struct seen unused;
		struct tw_fold kind = fold_of(i, &unused);
		struct seen one = read_with(0, &kind, ends[i], &of_one);

		assert_true(ends[i] || (one.events > 10000 && of_one > 3));
		for (uint32_t workers = 1; workers < 8; workers += 2) {
			struct seen seen = read_with(workers, &kind, ends[i], &damages);

			assert_memory_equal(&seen, &one, sizeof seen);
			assert_int_equal(damages, of_one);
		}
	}
}

static bool wants_all(void *context, uint32_t image, const struct tw_capture_place *place)
{
	return true;
}

/* A hostile file may give a place any number. */
static void places_of_no_program_are_left_out(void **state)
{
	const struct tw_def_image image = {.process_id = 1001, .program_bytes = 8};
	const uint32_t ids[] = {1, UINT32_MAX, UINT32_MAX - 1};
	struct maker *maker = begin_maker();
	struct tw_mailboxes mailboxes;
	struct seen seen[2] = {0};
	uint8_t bytes[512] = {0};
	uint32_t at = 0;

	view_definition(bytes, &at, TW_DEF_IMAGE, &image, sizeof image, "/bin/app");
	for (unsigned i = 0; i < TW_COUNT_OF(ids); i++) {
		const struct tw_def_place place = {.place_id = ids[i], .kind = TW_PLACE_SLED};

		view_definition(bytes, &at, TW_DEF_PLACE, &place, sizeof place, "");
	}
	maker_definitions(maker, bytes, at, 0);
	for (unsigned i = 0; i < TW_COUNT_OF(ids); i++)
		view_call(maker, 0, 1000 + i, ids[i]);
	end_maker(maker, true);

	struct tw_capture *capture = open_capture();
	struct tw_fold folds[2] =
		{{.self = &seen[0], .filter = {.wants_place = wants_all}, .begin = begin, .see = see},
		 {.self = &seen[1], .filter = {.wants_place = wants_all}, .begin = begin, .see = see}};

	assert_int_equal(tw_pass(capture, folds, 2, NULL), 0);
	assert_int_equal(seen[0].events, 1);
	assert_int_equal(seen[1].events, 1);
	assert_int_equal(tw_mailboxes_init(&mailboxes, capture, 0), 0);
	tw_mailboxes_free(&mailboxes);
	tw_capture_close(capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_of_no_program_are_left_out),
		cmocka_unit_test(workers_change_nothing),
		cmocka_unit_test(folds_see_the_same_together),
		cmocka_unit_test(folds_end_early),
	};

	return RUN_IN_DIRECTORY(tests);
}
