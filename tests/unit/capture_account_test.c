/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: every event that was made and is not in a capture has a cause, and a number if one is known.
 *
 * Method: handmade captures of several segments lose a segment at each end and in the middle, bytes, a header, an end;
 * the account of each is compared with what was removed.  A real recorder removes segments and skips a damaged ring.
 */
#include "capture_help.h"

enum { SEGMENTS = 5, EACH = 1000 };

/* Two threads; the second loses two events in each segment.  None of them has a ring of its own. */
static void make_segments(void)
{
	struct maker *maker = begin_maker();

	for (uint32_t segment = 0; segment < SEGMENTS; segment++) {
		const uint64_t lost[6] = {2000, 1, 0, 1, 0, 0};

		for (uint64_t i = 0; i < EACH; i++)
			maker_call(maker, i % 2, 2000 + segment * EACH + i, i, 0);
		maker_record(maker, 1, 2999 + segment * EACH, TW_EVENT_LOSS, 0, lost, 6);
		maker_flush(maker, 0);
		maker_flush(maker, 1);
		if (segment + 1 == SEGMENTS)
			break;
		maker->image.lost[0]++;
		maker->image.lost[2]++;
		assert_int_equal(tw_store_close_segment(&maker->store, &maker->image, 0), 0);
		assert_int_equal(tw_store_open_segment(&maker->store, &maker->image), 1);
	}
	end_maker(maker, true);
}

static void path_of(uint32_t number, char *path, size_t capacity)
{
	char name[TW_SEGMENT_NAME_BYTES];

	tw_segment_name(number, false, name);
	snprintf(path, capacity, "%s/%s", capture_path, name);
}

static void remove_segment(uint32_t number)
{
	char path[400];

	path_of(number, path, sizeof path);
	assert_int_equal(unlink(path), 0);
}

/* Reads everything, so that all damage is found. */
static uint64_t account_of(struct tw_capture_account *account)
{
	struct tw_capture *capture = open_capture();
	const struct tw_capture_event *batch;
	struct tw_capture_events *events;
	struct tw_capture_info info;
	uint64_t read = 0;
	int64_t count;

	assert_int_equal(tw_capture_events_create(capture, NULL, &events), 0);
	while ((count = tw_capture_events_next(events, &batch)) > 0) {
		for (int64_t i = 0; i < count; i++)
			read += batch[i].kind != TW_CAPTURE_LOSS;
	}
	assert_int_equal(count, 0);
	tw_capture_events_destroy(events);
	tw_capture_account(capture, account);
	tw_capture_info(capture, &info);
	assert_int_equal(info.is_complete, account->is_complete);
	assert_int_equal(account->events, read);
	tw_capture_close(capture);
	return read;
}

static void expect(const struct tw_capture_account *account, enum tw_missing_cause cause, uint64_t events,
		   uint64_t places, bool has_more)
{
	const struct tw_capture_missing *missing = &account->missing[cause];

	if (missing->events != events || missing->places != places || missing->has_more != has_more)
		printf("%s: %llu events, %llu places, more %d\n", tw_missing_cause_name(cause),
		       (unsigned long long)missing->events, (unsigned long long)missing->places, missing->has_more);
	assert_int_equal(missing->events, events);
	assert_int_equal(missing->places, places);
	assert_int_equal(missing->has_more, has_more);
}

static void losses_do_not_make_it_incomplete(void **state)
{
	struct tw_capture_account account;

	make_segments();
	assert_int_equal(account_of(&account), SEGMENTS * EACH);
	expect(&account, TW_MISSING_FULL, SEGMENTS, 0, false);
	expect(&account, TW_MISSING_NESTED, SEGMENTS, 0, false);
	for (unsigned cause = TW_MISSING_OVERWRITTEN; cause < TW_MISSING_CAUSES; cause++)
		expect(&account, cause, 0, 0, false);
	assert_true(account.is_complete);
	assert_false(account.is_whole);
}

static void a_hole_has_a_number(void **state)
{
	struct tw_capture_account account;

	make_segments();
	remove_segment(3);
	remove_segment(4);
	assert_int_equal(account_of(&account), 3 * EACH);
	expect(&account, TW_MISSING_SEGMENTS, 2 * EACH, 2, false);
	expect(&account, TW_MISSING_DAMAGED, 0, 0, false);
	assert_false(account.is_complete);
	/* The first one too: its removal was not requested. */
	remove_segment(1);
	account_of(&account);
	expect(&account, TW_MISSING_SEGMENTS, 3 * EACH, 3, false);
	expect(&account, TW_MISSING_REMOVED, 0, 0, false);
}

/* Nothing of an image is left: no other image knows how many events it had. */
static void a_removed_image_has_no_number(void **state)
{
	struct maker *maker = begin_maker();
	struct tw_capture_account account;

	for (uint64_t image = 1; image <= 3; image++) {
		if (image > 1) {
			maker_flush(maker, 0);
			assert_int_equal(tw_store_close_segment(&maker->store, &maker->image, TW_SEGMENT_LAST), 0);
			maker_segment(maker, image);
		}
		maker_call(maker, 0, 2000 + image, image, 0);
	}
	end_maker(maker, true);
	account_of(&account);
	expect(&account, TW_MISSING_SEGMENTS, 0, 0, false);
	remove_segment(2);
	account_of(&account);
	expect(&account, TW_MISSING_SEGMENTS, 0, 1, true);
	assert_false(account.is_complete);
}

static void a_missing_end_has_none(void **state)
{
	struct tw_capture_account account;

	make_segments();
	remove_segment(SEGMENTS);
	account_of(&account);
	expect(&account, TW_MISSING_SEGMENTS, 0, 0, true);
	assert_false(account.is_complete);
}

static void write_at(uint32_t number, off_t offset, uint8_t byte)
{
	char path[400];
	int fd;

	path_of(number, path, sizeof path);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, &byte, 1, offset), 1);
	close(fd);
}

static void damage_has_the_number_that_the_next_segment_tells(void **state)
{
	struct tw_capture_account account;
	uint64_t read;
	char path[400];

	/* Cut in the first block of events: the events of one stream are gone, or of both. */
	make_segments();
	path_of(2, path, sizeof path);
	assert_int_equal(truncate(path, sizeof(struct tw_segment_header) + sizeof(struct tw_block_header) + 100), 0);
	read = account_of(&account);
	assert_int_equal(account.missing[TW_MISSING_DAMAGED].events, SEGMENTS * EACH - read);
	assert_false(account.missing[TW_MISSING_DAMAGED].has_more);
	assert_true(account.missing[TW_MISSING_DAMAGED].places > 0);
	assert_false(account.is_complete);
	/* An invalid header: the segment cannot be read. */
	make_segments();
	write_at(2, 20, 0x55);
	assert_int_equal(account_of(&account), (SEGMENTS - 1) * EACH);
	expect(&account, TW_MISSING_SEGMENTS, 0, 0, false);
	assert_int_equal(account.missing[TW_MISSING_DAMAGED].events, EACH);
	assert_false(account.missing[TW_MISSING_DAMAGED].has_more);
	/* A byte of a payload. */
	make_segments();
	write_at(2, sizeof(struct tw_segment_header) + sizeof(struct tw_block_header) + 50, 0x55);
	read = account_of(&account);
	assert_int_equal(account.missing[TW_MISSING_DAMAGED].events, SEGMENTS * EACH - read);
	assert_int_equal(account.missing[TW_MISSING_DAMAGED].events, EACH / 2);
	assert_false(account.missing[TW_MISSING_DAMAGED].has_more);
}

static void a_cut_end_has_none(void **state)
{
	struct tw_capture_account account;
	struct maker *maker = begin_maker();

	maker_call(maker, 0, 2000, 0, 0);
	end_maker(maker, false);
	assert_int_equal(account_of(&account), 1);
	expect(&account, TW_MISSING_CUT, 0, 1, true);
	assert_false(account.is_complete);
}

static void the_recorder_s_account_is_read(void **state)
{
	struct maker *maker = begin_maker();
	struct tw_capture_account account;

	maker_call(maker, 0, 2000, 0, 0);
	maker->store.account[TW_ACCOUNT_DAMAGED_RINGS] = 2;
	maker->store.account[TW_ACCOUNT_UNSTORED] = 7;
	maker->store.account[TW_ACCOUNT_DEFINITIONS] = 3;
	maker->store.account[TW_ACCOUNT_PROCESSES_FULL] = 4;
	end_maker(maker, true);
	assert_int_equal(account_of(&account), 1);
	expect(&account, TW_MISSING_RINGS, 0, 2, true);
	expect(&account, TW_MISSING_UNSTORED, 7, 0, false);
	expect(&account, TW_MISSING_NAMES, 0, 3, false);
	expect(&account, TW_MISSING_PROCESSES, 0, 4, true);
	assert_false(account.is_complete);
}

static void segments_and_threads_are_told_apart(void **state)
{
	struct tw_capture *capture;
	struct tw_capture_info info;
	const struct tw_capture_segment *segment;
	const struct tw_capture_image *image;
	struct maker *maker;

	make_segments();
	remove_segment(2);
	capture = open_capture();
	segment = tw_capture_segment(capture, 1);
	assert_non_null(segment);
	assert_int_equal(segment->number, 3);
	assert_int_equal(segment->image_segment, 3);
	assert_int_equal(segment->events_before, 2 * EACH);
	assert_int_equal(segment->events, EACH);
	assert_true(segment->is_closed);
	assert_false(segment->is_last);
	assert_string_equal(segment->file, "segment-000003.tws");
	assert_true(tw_capture_segment(capture, 3)->is_last);
	assert_null(tw_capture_segment(capture, 4));
	image = tw_capture_image(capture, segment->image);
	assert_int_equal(image->lease, 1);
	assert_int_equal(image->process_start, 7);
	assert_int_equal(image->capture_id, 1);
	assert_int_equal(image->boot_id[3], 7);
	assert_int_equal(tw_capture_stream(capture, 0)->lease, 50);
	tw_capture_close(capture);
	/* Three threads had the number 77 in turn, the last of them two rings. */
	maker = begin_maker();
	for (uint32_t i = 0; i < 4; i++) {
		maker->streams[i].thread_id = 77;
		maker->streams[i].thread_start = i < 3 ? 1000 + i : 1002;
		maker_call(maker, i, 2000 + i, 0, 0);
	}
	end_maker(maker, true);
	capture = open_capture();
	tw_capture_info(capture, &info);
	assert_int_equal(info.streams, 4);
	assert_int_equal(info.threads, 3);
	assert_int_equal(tw_capture_stream(capture, 2)->thread, tw_capture_stream(capture, 3)->thread);
	assert_int_not_equal(tw_capture_stream(capture, 1)->thread, tw_capture_stream(capture, 2)->thread);
	tw_capture_close(capture);
}

/* ---- a real recorder ---- */

enum { MADE = 200000 };

static void events_removed_by_keep_are_exact(void **state)
{
	const struct tw_recorder_options options = {.path = capture_path,
						    .ring_bytes = UINT64_C(64) << 10,
						    .cap_bytes = UINT64_C(4) << 20,
						    .segment_bytes = UINT64_C(64) << 10,
						    .segments_kept = 2};
	struct tw_recorder *recorder;
	struct tw_recorder_stats stats;
	struct tw_rb_producer producer;
	struct program program;
	struct tw_capture_account account;
	uint64_t made = 0, lost = 0, run = 1;

	remove_folder(capture_path);
	assert_int_equal(tw_recorder_create(&options, &recorder), 0);
	begin_program(&program, tw_recorder_ring_set(recorder), 4);
	while (!begin_thread(&program, &producer, 1))
		tw_recorder_poll(recorder, 1000000);
	for (uint32_t i = 0; i < MADE; i++) {
		/* Switches are records but no events; draining is late enough for losses. */
		if (i % 7 == 0)
			emit_switch(&producer, 1, run++);
		lost += !emit_call(&producer, i % 4, i * UINT64_C(0x9e3779b97f4a7c15), i);
		made++;
		if (i % 2000 == 0)
			assert_int_equal(tw_recorder_drain(recorder), 0);
	}
	tw_rs_ring_end(program.rs, &producer);
	assert_int_equal(tw_recorder_finish(recorder, &stats), 0);
	account_of(&account);
	assert_true(lost > 0 && stats.segments_removed > 3);
	assert_int_equal(account.segments_kept, 2);
	assert_int_equal(account.missing[TW_MISSING_REMOVED].places, stats.segments_removed);
	assert_int_equal(account.missing[TW_MISSING_REMOVED].events + account.events, stats.events);
	/* A switch that does not fit is lost as well. */
	assert_int_equal(account.removed_lost + account.missing[TW_MISSING_FULL].events, stats.lost[TW_LOST_FULL]);
	assert_true(account.missing[TW_MISSING_FULL].events < stats.lost[TW_LOST_FULL]);
	assert_int_equal(stats.events + lost, made);
	assert_false(account.missing[TW_MISSING_REMOVED].has_more);
	assert_int_equal(account.missing[TW_MISSING_SEGMENTS].places, 0);
	assert_false(account.is_complete);
}

static void a_damaged_ring_is_reported_in_the_capture(void **state)
{
	const struct tw_recorder_options options = {.path = capture_path, .ring_bytes = UINT64_C(64) << 10};
	struct tw_recorder *recorder;
	struct tw_rb_producer producer;
	struct program program;
	struct tw_capture_account account;

	remove_folder(capture_path);
	assert_int_equal(tw_recorder_create(&options, &recorder), 0);
	begin_program(&program, tw_recorder_ring_set(recorder), 4);
	while (!begin_thread(&program, &producer, 1))
		tw_recorder_poll(recorder, 1000000);
	emit_call(&producer, 1, 1, 1);
	emit_call(&producer, 1, 2, 2);
	/* The program writes over its first record's head. */
	memset(tw_rb_data(producer.shared), 0x11, 16);
	tw_rs_ring_end(program.rs, &producer);
	assert_int_equal(tw_recorder_finish(recorder, NULL), 0);
	account_of(&account);
	assert_int_equal(account.missing[TW_MISSING_RINGS].places, 1);
	assert_true(account.missing[TW_MISSING_RINGS].has_more);
	assert_false(account.is_complete);
}

static int fini_group(void **state)
{
	end_directory();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(losses_do_not_make_it_incomplete),
		cmocka_unit_test(a_hole_has_a_number),
		cmocka_unit_test(a_removed_image_has_no_number),
		cmocka_unit_test(a_missing_end_has_none),
		cmocka_unit_test(damage_has_the_number_that_the_next_segment_tells),
		cmocka_unit_test(a_cut_end_has_none),
		cmocka_unit_test(the_recorder_s_account_is_read),
		cmocka_unit_test(segments_and_threads_are_told_apart),
		cmocka_unit_test(events_removed_by_keep_are_exact),
		cmocka_unit_test(a_damaged_ring_is_reported_in_the_capture),
	};

	begin_directory();
	return cmocka_run_group_tests(tests, NULL, fini_group);
}
