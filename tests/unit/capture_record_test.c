/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: committed events are in the capture exactly once, in order, with their definitions and an exact account of
 * losses; across rotation, dead threads and processes.
 *
 * Method: a recorder and made-up programs in one process, with threads (pthread_create), over a real
 * ring set.
 */
#include "capture_producers.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void check_events(struct tw_capture *capture, struct account *account)
{
	const struct tw_capture_event *batch;
	struct tw_capture_events *events;
	int64_t count;

	assert_int_equal(tw_capture_events_create(capture, NULL, &events), 0);
	while ((count = tw_capture_events_next(events, &batch)) > 0) {
		for (int64_t i = 0; i < count; i++) {
			assert_true(batch[i].time_ns >= account->last_ns);
			account->last_ns = batch[i].time_ns;
			if (batch[i].kind == TW_CAPTURE_CALL) {
				assert_int_equal(batch[i].tracee_id, (batch[i].payload[1] & 0xff) + 1);
				assert_string_equal(tw_capture_place(capture, batch[i].image, batch[i].id)
							    ->function->module->name,
						    "lib");
				check_call(account, batch[i].payload[0], batch[i].payload[1]);
			}
		}
	}
	assert_int_equal(count, 0);
	tw_capture_events_destroy(events);
}

static void threads_come_back_exactly_once(void **state)
{
	struct tw_recorder_options options = {.policy = TW_RECORDER_BLOCK,
					      .ring_bytes = 1 << 18,
					      .cap_bytes = 16 << 20};
	struct tw_recorder *recorder = begin_recording(&options);
	struct tw_recorder_stats stats;
	struct account scanned = {0}, merged = {0};
	struct tw_capture_info info;
	struct tw_capture *capture;
	struct program program;
	uint64_t emitted;

	begin_program(&program, tw_recorder_ring_set(recorder), 10);
	produce_with(recorder, &program, 4, 100000, &emitted);
	tw_rs_image_end(program.rs, program.image);
	assert_int_equal(tw_recorder_finish(recorder, &stats), 0);
	assert_int_equal(emitted, 400000);
	assert_int_equal(stats.events, 400000);
	assert_int_equal(stats.functions, 10);
	assert_int_equal(stats.streams, 4);
	capture = open_capture();
	tw_capture_info(capture, &info);
	assert_int_equal(info.events, 400000);
	assert_int_equal(info.threads, 4);
	assert_int_equal(info.file_bytes, stats.file_bytes);
	assert_true(info.is_complete);
	assert_false(info.is_live);
	assert_true(tw_capture_image(capture, 0)->is_final);
	assert_string_equal(tw_capture_image(capture, 0)->program, "/bin/app");
	assert_int_equal(tw_capture_scan(capture, NULL, check_batch, &scanned), 0);
	assert_int_equal(scanned.calls, 400000);
	check_events(capture, &merged);
	assert_int_equal(merged.calls, 400000);
	tw_capture_close(capture);
	remove_folder(capture_path);
}

static void losses_are_exact(void **state)
{
	struct tw_recorder_options options = {.ring_bytes = 1 << 16, .cap_bytes = 16 << 20};
	struct tw_recorder *recorder = begin_recording(&options);
	struct tw_recorder_stats stats;
	struct tw_capture_info info;
	struct tw_capture *capture;
	struct program program;
	struct tw_rb_producer producer;
	uint64_t emitted = 0;
	struct account account = {0};

	begin_program(&program, tw_recorder_ring_set(recorder), 10);
	assert_true(begin_thread(&program, &producer, 1));
	for (uint64_t i = 0; i < 50000; i++) {
		emitted += emit_call(&producer, 1, emitted, with_noise(0, i));
		if (i % 7000 == 0)
			tw_recorder_drain(recorder);
	}
	/* Lost at the very end: no record in the ring reports them. */
	tw_rs_count_no_ring(program.rs, tw_clock_ticks());
	assert_int_equal(tw_recorder_finish(recorder, &stats), 0);
	assert_true(emitted < 50000);
	assert_int_equal(stats.events, emitted);
	assert_int_equal(stats.lost[TW_LOST_FULL], 50000 - emitted);
	assert_int_equal(stats.lost[TW_LOST_NO_RING], 1);
	capture = open_capture();
	tw_capture_info(capture, &info);
	assert_int_equal(info.events, emitted);
	assert_int_equal(info.lost[TW_LOST_FULL], 50000 - emitted);
	assert_int_equal(info.lost[TW_LOST_NO_RING], 1);
	assert_int_equal(info.damaged_records, 0);
	tw_capture_scan(capture, NULL, check_batch, &account);
	assert_int_equal(account.lost, 50000 - emitted);
	tw_capture_close(capture);
	remove_folder(capture_path);
}

/* A loss reported at the very end may close a segment whose time is over: the capture is complete all the same. */
static void the_last_segment_is_marked(void **state)
{
	struct tw_recorder_options options = {.ring_bytes = 1 << 16, .segment_ns = 10000000};
	struct tw_recorder *recorder = begin_recording(&options);
	struct tw_capture_account account;
	struct tw_recorder_stats stats;
	struct tw_rb_producer producer;
	struct tw_capture *capture;
	struct program program;

	begin_program(&program, tw_recorder_ring_set(recorder), 10);
	assert_true(begin_thread(&program, &producer, 1));
	assert_true(emit_call(&producer, 1, 0, with_noise(0, 0)));
	assert_int_equal(tw_recorder_drain(recorder), 0);
	tw_rs_count_no_ring(program.rs, tw_clock_ticks());
	usleep(12000);
	assert_int_equal(tw_recorder_finish(recorder, &stats), 0);
	capture = open_capture();
	tw_capture_account(capture, &account);
	assert_true(account.is_complete);
	tw_capture_close(capture);
	remove_folder(capture_path);
}

static void every_rotated_segment_decodes_alone(void **state)
{
	struct tw_recorder_options options = {.ring_bytes = 1 << 18,
					      .policy = TW_RECORDER_BLOCK,
					      .segment_bytes = 100000};
	struct tw_recorder *recorder = begin_recording(&options);
	struct tw_recorder_stats stats;
	struct account account = {0};
	struct tw_capture_info info;
	struct tw_capture *capture;
	struct program program;
	uint64_t emitted;
	char path[400];

	begin_program(&program, tw_recorder_ring_set(recorder), 10);
	produce_with(recorder, &program, 1, 200000, &emitted);
	assert_int_equal(tw_recorder_finish(recorder, &stats), 0);
	assert_in_range(stats.segments, 4, 100);
	capture = open_capture();
	tw_capture_info(capture, &info);
	assert_int_equal(info.segments, stats.segments);
	assert_int_equal(info.functions, 10);
	check_events(capture, &account);
	assert_int_equal(account.calls, 200000);
	tw_capture_close(capture);
	/* Without the first and the second segment the others are complete. */
	for (int i = 1; i <= 2; i++) {
		snprintf(path, sizeof path, "%s/segment-%06d.tws", capture_path, i);
		assert_int_equal(unlink(path), 0);
	}
	capture = open_capture();
	tw_capture_info(capture, &info);
	assert_int_equal(info.functions, 10);
	assert_in_range(info.events, 1, 199999);
	memset(&account, 0, sizeof account);
	account.next[0] = 200000 - info.events;
	check_events(capture, &account);
	assert_int_equal(account.calls, info.events);
	tw_capture_close(capture);
	remove_folder(capture_path);
}

static void old_segments_go(void **state)
{
	struct tw_recorder_options options = {.ring_bytes = 1 << 18,
					      .policy = TW_RECORDER_BLOCK,
					      .segment_bytes = 50000,
					      .segments_kept = 2};
	struct tw_recorder *recorder = begin_recording(&options);
	struct tw_recorder_stats stats;
	struct tw_capture_info info;
	struct tw_capture *capture;
	struct program program;
	uint64_t emitted;

	begin_program(&program, tw_recorder_ring_set(recorder), 10);
	produce_with(recorder, &program, 1, 200000, &emitted);
	assert_int_equal(tw_recorder_finish(recorder, &stats), 0);
	assert_true(stats.segments_removed >= 2);
	capture = open_capture();
	tw_capture_info(capture, &info);
	assert_in_range(info.segments, 2, 3);
	assert_int_equal(info.segments + stats.segments_removed, stats.segments);
	assert_int_equal(info.damaged_records, 0);
	tw_capture_close(capture);
	remove_folder(capture_path);
}

/* ---- the dead ---- */

static void a_killed_process_is_drained_to_the_end(void **state)
{
	struct tw_recorder_options options = {.ring_bytes = 1 << 20};
	struct tw_recorder *recorder = begin_recording(&options);
	struct tw_recorder_loudest loudest;
	struct tw_recorder_stats stats;
	struct account account = {0};
	struct tw_capture *capture;
	pid_t child = fork();

	if (child == 0) {
		struct tw_rb_producer producer;
		struct program program;
		struct tw_rs rs;

		if (tw_rs_attach(&rs, tw_recorder_ring_set_path(recorder)) != 0)
			_exit(1);
		begin_program(&program, &rs, 10);
		begin_thread(&program, &producer, 1);
		for (uint64_t i = 0; i < 1000; i++)
			emit_call(&producer, 1, i, 0);
		raise(SIGKILL);
	}
	assert_false(tw_recorder_loudest(recorder, &loudest));
	assert_int_equal(waitpid(child, NULL, 0), child);
	for (int i = 0; i < 100; i++) {
		tw_recorder_poll(recorder, 1000000);
		tw_recorder_stats(recorder, &stats);
		if (stats.images && !stats.images_alive && stats.events == 1000)
			break;
	}
	/* Its definitions are gone with it. */
	assert_false(tw_recorder_loudest(recorder, &loudest));
	assert_int_equal(stats.events, 1000);
	assert_int_equal(stats.images, 1);
	assert_int_equal(tw_recorder_finish(recorder, &stats), 0);
	capture = open_capture();
	tw_capture_scan(capture, NULL, check_batch, &account);
	assert_int_equal(account.calls, 1000);
	assert_true(tw_capture_image(capture, 0)->is_final);
	tw_capture_close(capture);
	remove_folder(capture_path);
}

/* Events that newer ones replaced are in the account, and are not lost. */
static void assert_overwritten(const struct tw_capture *capture, uint64_t events)
{
	struct tw_capture_info info;
	struct tw_capture_account account;

	tw_capture_info(capture, &info);
	tw_capture_account(capture, &account);
	assert_int_equal(info.lost[TW_LOST_FULL], 0);
	assert_int_equal(account.missing[TW_MISSING_OVERWRITTEN].events, events);
}

static void a_flight_recorder_keeps_the_newest(void **state)
{
	struct tw_recorder_options options = {.ring_bytes = 1 << 16, .policy = TW_RECORDER_OVERWRITE};
	struct tw_recorder *recorder = begin_recording(&options);
	struct tw_recorder_stats stats;
	struct account account = {0};
	struct tw_capture_info info;
	struct tw_capture *capture;
	struct program program;
	struct tw_rb_producer producer;
	uint64_t stored_before;

	begin_program(&program, tw_recorder_ring_set(recorder), 10);
	assert_true(begin_thread(&program, &producer, 1));
	for (uint64_t i = 0; i < 100000; i++) {
		/* Records that are no events are overwritten, stored and given up like events, and counted nowhere. */
		if (i % 100 == 0)
			assert_true(emit_setup(&producer, 1));
		assert_true(emit_call(&producer, 1, i, 0));
		if (i % 1000 == 0)
			tw_recorder_poll(recorder, 0);
		/* Twice while little was written, once after everything was overwritten. */
		if (i == 50000 || i == 50100 || i == 80000)
			assert_int_equal(tw_recorder_snapshot(recorder), 0);
	}
	tw_recorder_stats(recorder, &stats);
	stored_before = stats.events;
	assert_int_equal(tw_recorder_finish(recorder, &stats), 0);
	assert_true(stats.events > stored_before);
	assert_int_equal(stats.events + stats.lost[TW_LOST_FULL], 100000);
	capture = open_capture();
	tw_capture_info(capture, &info);
	assert_int_equal(info.events, stats.events);
	assert_overwritten(capture, stats.lost[TW_LOST_FULL]);
	assert_int_equal(info.duplicate_blocks, 0);
	{
		const struct tw_capture_event *batch;
		struct tw_capture_events *events;
		int64_t count;
		uint64_t next = 0;

		assert_int_equal(tw_capture_events_create(capture, NULL, &events), 0);
		while ((count = tw_capture_events_next(events, &batch)) > 0) {
			for (int64_t i = 0; i < count; i++) {
				if (batch[i].kind == TW_CAPTURE_LOSS) {
					next += tw_capture_event_loss(&batch[i])->lost[TW_LOST_FULL];
					continue;
				}
				assert_int_equal(batch[i].payload[0], next);
				/* Records that are no events have a number as well. */
				assert_in_range(batch[i].sequence, next, next + 1000);
				next++;
				account.calls++;
			}
		}
		tw_capture_events_destroy(events);
		assert_int_equal(next, 100000);
	}
	assert_int_equal(account.calls, stats.events);
	tw_capture_close(capture);
	remove_folder(capture_path);
}

/* More threads than rings: rings of ended threads are reused, the oldest first, and their events are counted. */
static void a_flight_recorder_gives_up_the_oldest_threads(void **state)
{
	struct tw_recorder_options options = {.ring_bytes = 1 << 16,
					      .cap_bytes = 73 * 4096,
					      .policy = TW_RECORDER_OVERWRITE};
	struct tw_recorder *recorder = begin_recording(&options);
	struct tw_recorder_stats stats;
	struct tw_capture_info info;
	struct tw_capture *capture;
	struct program program;

	begin_program(&program, tw_recorder_ring_set(recorder), 10);
	for (uint32_t thread = 0; thread < 20; thread++) {
		struct tw_rb_producer producer;

		while (!begin_thread(&program, &producer, thread + 1))
			tw_recorder_poll(recorder, 0);
		assert_true(emit_switch(&producer, thread + 1, 1));
		for (uint64_t i = 0; i < 100; i++)
			assert_true(emit_call(&producer, 1, i, thread));
		if (thread == 10)
			assert_int_equal(tw_recorder_snapshot(recorder), 0);
		tw_rs_ring_end(program.rs, &producer);
	}
	assert_int_equal(tw_recorder_finish(recorder, &stats), 0);
	assert_int_equal(stats.events + stats.lost[TW_LOST_FULL], 2000);
	assert_true(stats.events >= 500);
	capture = open_capture();
	tw_capture_info(capture, &info);
	assert_int_equal(info.events, stats.events);
	assert_overwritten(capture, stats.lost[TW_LOST_FULL]);
	assert_int_equal(info.streams, 20);
	tw_capture_close(capture);
	remove_folder(capture_path);
}

/* ---- the directory ---- */

static void nothing_is_overwritten_by_mistake(void **state)
{
	struct tw_recorder_options options = {.path = capture_path};
	struct tw_recorder *recorder = begin_recording(&options), *other = NULL;
	char file[400];
	int fd;

	assert_int_equal(tw_recorder_create(&options, &other), TW_EEXIST);
	/* Not even with force while it is being recorded. */
	options.force = true;
	assert_int_equal(tw_recorder_create(&options, &other), TW_EEXIST);
	assert_int_equal(tw_recover(capture_path, NULL), TW_EEXIST);
	assert_int_equal(tw_recorder_finish(recorder, NULL), 0);
	assert_int_equal(tw_recorder_create(&options, &recorder), 0);
	assert_int_equal(tw_recorder_finish(recorder, NULL), 0);
	snprintf(file, sizeof file, "%s/thesis.txt", capture_path);
	fd = open(file, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(tw_recorder_create(&options, &other), TW_EEXIST);
	assert_int_equal(access(file, F_OK), 0);
	remove_folder(capture_path);
}

static void a_living_recording_can_be_read(void **state)
{
	struct tw_recorder_options options = {.ring_bytes = 1 << 18, .policy = TW_RECORDER_BLOCK};
	struct tw_recorder *recorder = begin_recording(&options);
	struct tw_capture *early, *late;
	struct tw_capture_info info;
	struct account account = {0};
	struct program program;
	uint64_t emitted;

	begin_program(&program, tw_recorder_ring_set(recorder), 10);
	produce_with(recorder, &program, 1, 20000, &emitted);
	assert_int_equal(tw_recorder_drain(recorder), 0);
	early = open_capture();
	produce_with(recorder, &program, 1, 5000, &emitted);
	assert_int_equal(tw_recorder_drain(recorder), 0);
	tw_capture_info(early, &info);
	assert_true(info.is_live);
	assert_false(info.is_complete);
	assert_int_equal(info.damages, 0);
	assert_int_equal(info.events, 20000);
	late = open_capture();
	assert_int_equal(tw_recorder_finish(recorder, NULL), 0);
	/* Its file was renamed since it was opened. */
	check_events(early, &account);
	assert_int_equal(account.calls, 20000);
	tw_capture_info(late, &info);
	assert_int_equal(info.events, 25000);
	tw_capture_close(early);
	tw_capture_close(late);
	remove_folder(capture_path);
}

static void an_empty_recording_is_a_capture(void **state)
{
	struct tw_recorder_options options = {.path = capture_path};
	struct tw_recorder *recorder = begin_recording(&options);
	struct tw_capture_info info;
	struct tw_capture *capture;
	struct account account = {0};

	assert_int_equal(tw_recorder_poll(recorder, 0), 0);
	assert_int_equal(tw_recorder_finish(recorder, NULL), 0);
	capture = open_capture();
	tw_capture_info(capture, &info);
	assert_int_equal(info.events, 0);
	assert_int_equal(info.images, 0);
	assert_true(info.is_complete);
	check_events(capture, &account);
	tw_capture_close(capture);
	remove_folder(capture_path);
	recorder = begin_recording(&options);
	tw_recorder_abort(recorder);
	assert_int_equal(access(capture_path, F_OK), -1);
	assert_int_equal(tw_capture_open(capture_path, NULL, &capture), TW_ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_come_back_exactly_once),
		cmocka_unit_test(losses_are_exact),
		cmocka_unit_test(the_last_segment_is_marked),
		cmocka_unit_test(every_rotated_segment_decodes_alone),
		cmocka_unit_test(old_segments_go),
		cmocka_unit_test(a_killed_process_is_drained_to_the_end),
		cmocka_unit_test(a_flight_recorder_keeps_the_newest),
		cmocka_unit_test(a_flight_recorder_gives_up_the_oldest_threads),
		cmocka_unit_test(nothing_is_overwritten_by_mistake),
		cmocka_unit_test(a_living_recording_can_be_read),
		cmocka_unit_test(an_empty_recording_is_a_capture),
	};

	return RUN_IN_DIRECTORY(tests);
}
