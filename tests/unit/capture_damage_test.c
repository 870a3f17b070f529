/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: whatever happens to the files, no event is returned that was not recorded, and none twice; undamaged data is
 * read, missing data is named or counted, and nothing crashes.
 *
 * Method: a small handmade capture; each of its bytes changed, the file cut at each length, pieces inserted, removed
 * and doubled; other things than segments in the directory.
 */
#include "capture_help.h"
#include "sanitized_help.h"

#include <errno.h>

enum { EVENTS = 240, STREAMS = 3 };

/*
 * Only a sample of positions is tested, of all places within words; a smaller one with sanitizers, which clear shadow memory for each
 * buffer.  With TW_TEST_LONG each position.
 */
#define STEP (IS_SANITIZED ? test_stride(31) : getenv("TW_TEST_LONG") ? 1u : 3u)

static uint8_t whole[1 << 20];
static size_t whole_bytes;

static void segment_path(char path[400], const char *suffix)
{
	snprintf(path, 400, "%s/segment-000001.tws%s", capture_path, suffix);
}

static void write_file(const char *path, const uint8_t *bytes, size_t count)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, count), (ssize_t)count);
	close(fd);
}

static void read_whole(const char *suffix)
{
	char path[400];
	int fd;

	segment_path(path, suffix);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	whole_bytes = (size_t)read(fd, whole, sizeof whole);
	close(fd);
}

static uint64_t payload_of(uint64_t i)
{
	return i * UINT64_C(0x9e3779b97f4a7c15);
}

/* Streams of calls with a loss in the middle of each, in blocks of forty events. */
static void make_capture(bool is_closed)
{
	const struct tw_def_function function = {.function_id = 1, .module_id = 1, .arity = 2, .name_bytes = 4};
	const struct tw_definition_head head = {TW_DEF_FUNCTION, sizeof function + 4};
	uint8_t definitions[64] = {0};
	struct maker *maker = begin_maker();

	memcpy(definitions, &head, sizeof head);
	memcpy(definitions + sizeof head, &function, sizeof function);
	memcpy(definitions + sizeof head + sizeof function, "open", 4);
	maker_definitions(maker, definitions, (uint32_t)(sizeof head + head.payload_bytes + 7) / 8 * 8, 0);
	for (uint64_t i = 0; i < EVENTS; i++) {
		uint32_t stream = (uint32_t)(i % STREAMS);

		if (i / STREAMS == 50) {
			const uint64_t lost[6] = {2000 + i, 10};

			maker_record(maker, stream, 2000 + i * 10, TW_EVENT_LOSS, 0, lost, 6);
		}
		maker_call(maker, stream, 2000 + i * 10, i, payload_of(i));
		if (i / STREAMS % 40 == 39)
			maker_flush(maker, stream);
	}
	end_maker(maker, is_closed);
	read_whole(is_closed ? "" : ".part");
}

struct seen {
	uint64_t events;
	uint64_t scanned;
	uint64_t lost;
	uint64_t last_sequence[STREAMS + 1];
	struct tw_capture_info info;
};

static int check_batch(void *context, const struct tw_capture_batch *batch)
{
	struct seen *seen = context;
	uint32_t records = 0;

	for (const struct tw_capture_record *record = batch->first; record < batch->end;
	     record = tw_capture_record_next(record)) {
		records++;
		if (tw_capture_record_kind(record) != TW_CAPTURE_CALL)
			continue;
		assert_int_equal(record->payload[1], payload_of(record->payload[0]));
		seen->scanned++;
	}
	assert_int_equal(records, batch->records);
	return 0;
}

static void check_event(struct seen *seen, const struct tw_capture_event *event)
{
	uint64_t i = event->payload[0];
	uint32_t stream = (uint32_t)(i % STREAMS);

	if (event->kind == TW_CAPTURE_LOSS) {
		seen->lost += tw_capture_event_loss(event)->lost[TW_LOST_FULL];
		return;
	}
	assert_int_equal(event->kind, TW_CAPTURE_CALL);
	assert_in_range(i, 0, EVENTS - 1);
	assert_int_equal(event->ticks, 2000 + i * 10);
	assert_int_equal(event->payload[1], payload_of(i));
	assert_int_equal(event->sequence, i / STREAMS + (i / STREAMS >= 50 ? 10 : 0));
	/* Each once, in order. */
	assert_true(!seen->last_sequence[stream] || event->sequence + 1 > seen->last_sequence[stream]);
	seen->last_sequence[stream] = event->sequence + 1;
	seen->events++;
}

/* Checking finds what reading finds. */
static void expect_checked(const struct seen *seen)
{
	struct tw_capture_account read, checked;
	struct tw_capture_info info;
	struct tw_capture *capture;

	assert_int_equal(tw_capture_open(capture_path, NULL, &capture), 0);
	assert_int_equal(tw_capture_check(capture, NULL, NULL), 0);
	tw_capture_info(capture, &info);
	assert_memory_equal(&info, &seen->info, sizeof info);
	tw_capture_account(capture, &checked);
	assert_int_equal(checked.is_complete, info.is_complete);
	/* Nothing is counted twice. */
	assert_int_equal(tw_capture_check(capture, NULL, NULL), 0);
	tw_capture_account(capture, &read);
	assert_memory_equal(&read, &checked, sizeof read);
	tw_capture_close(capture);
}

/* Calls every query on a capture, if it can be opened. */
static int examine(struct seen *seen)
{
	const struct tw_capture_options options = {.no_workers = true};
	const struct tw_capture_event *batch;
	struct tw_capture_events *events;
	struct tw_capture *capture;
	int64_t count;
	int error = tw_capture_open(capture_path, &options, &capture);

	memset(seen, 0, sizeof *seen);
	if (error)
		return error;
	assert_int_equal(tw_capture_scan(capture, NULL, check_batch, seen), 0);
	assert_int_equal(tw_capture_events_create(capture, NULL, &events), 0);
	while ((count = tw_capture_events_next(events, &batch)) > 0) {
		for (int64_t i = 0; i < count; i++)
			check_event(seen, &batch[i]);
	}
	assert_int_equal(count, 0);
	tw_capture_events_destroy(events);
	assert_int_equal(seen->scanned, seen->events);
	tw_capture_info(capture, &seen->info);
	for (uint32_t i = 0; i < seen->info.damages; i++)
		assert_non_null(tw_capture_damage(capture, i)->reason);
	assert_null(tw_capture_damage(capture, seen->info.damages));
	tw_capture_close(capture);
	expect_checked(seen);
	return 0;
}

static void every_changed_byte_is_survived_and_told(void **state)
{
	struct seen seen;
	char path[400];

	make_capture(true);
	segment_path(path, "");
	assert_int_equal(examine(&seen), 0);
	assert_int_equal(seen.events, EVENTS);
	assert_int_equal(seen.lost, 10 * STREAMS);
	assert_true(seen.info.is_complete);
	for (size_t i = 0; i < whole_bytes; i += STEP) {
		int error;

		whole[i] ^= 1u << i % 8;
		write_file(path, whole, whole_bytes);
		whole[i] ^= 1u << i % 8;
		error = examine(&seen);
		assert_true(error == 0 || error == TW_EFORMAT || error == TW_EVERSION);
		/* Padding between blocks holds no data; a change anywhere else is noticed. */
		if (!error && seen.events < EVENTS) {
			assert_true(seen.info.damages > 0);
			assert_false(seen.info.is_complete);
		}
		/* One byte never costs more than one block. */
		assert_true(error || seen.events >= EVENTS - 41);
	}
	remove_folder(capture_path);
}

static void every_cut_is_survived(void **state)
{
	struct seen seen;
	uint64_t before = 0;
	char path[400];

	make_capture(false);
	segment_path(path, ".part");
	for (size_t length = whole_bytes % STEP; length <= whole_bytes; length += STEP) {
		int error;

		write_file(path, whole, length);
		error = examine(&seen);
		assert_true(error == (length < sizeof(struct tw_segment_header) ? TW_EFORMAT : 0));
		assert_true(seen.events >= before);
		assert_false(!error && seen.info.is_complete);
		before = seen.events;
	}
	assert_int_equal(before, EVENTS);
	remove_folder(capture_path);
}

/* The positions of the blocks in `whole`. */
static size_t find_blocks(size_t offsets[], size_t most)
{
	size_t count = 0, at = sizeof(struct tw_segment_header);

	while (at + sizeof(struct tw_block_header) <= whole_bytes && count < most) {
		struct tw_block_header header;

		memcpy(&header, whole + at, sizeof header);
		if (tw_block_header_check(&header) || header.type == TW_BLOCK_INDEX)
			break;
		offsets[count++] = at;
		at += tw_block_file_bytes(&header);
	}
	offsets[count] = at;
	return count;
}

static size_t put_piece(uint8_t *to, size_t at, size_t from, size_t end)
{
	memcpy(to + at, whole + from, end - from);
	return at + (end - from);
}

static void garbage_between_blocks_is_passed_over(void **state)
{
	static uint8_t changed[1 << 20];
	struct seen seen;
	size_t offsets[40], count, at;
	char path[400];

	make_capture(false);
	segment_path(path, ".part");
	count = find_blocks(offsets, 39);
	assert_true(count >= 6);
	at = put_piece(changed, 0, 0, offsets[0]);
	for (size_t i = 0; i < count; i++) {
		at = put_piece(changed, at, offsets[i], offsets[i + 1]);
		/* Also data that begins like a block. */
		memset(changed + at, 0x5a, 104);
		tw_put64(changed + at + 16, TW_BLOCK_MAGIC);
		at += 104;
	}
	write_file(path, changed, at);
	assert_int_equal(examine(&seen), 0);
	assert_int_equal(seen.events, EVENTS);
	assert_int_equal(seen.info.damages, count);
	assert_int_equal(seen.info.damaged_records, 0);
	remove_folder(capture_path);
}

static void a_missing_block_is_counted(void **state)
{
	static uint8_t changed[1 << 20];
	struct seen seen;
	size_t offsets[40], at;
	char path[400];

	make_capture(false);
	segment_path(path, ".part");
	find_blocks(offsets, 39);
	/* The first block of events: forty events of its stream, which continues after them. */
	at = put_piece(changed, 0, 0, offsets[1]);
	at = put_piece(changed, at, offsets[2], whole_bytes);
	write_file(path, changed, at);
	assert_int_equal(examine(&seen), 0);
	assert_int_equal(seen.events, EVENTS - 40);
	assert_int_equal(seen.lost, 10 * STREAMS);
	remove_folder(capture_path);
}

static void doubled_blocks_come_once(void **state)
{
	static uint8_t changed[1 << 20];
	struct seen seen;
	size_t offsets[40], count, at;
	char path[400];

	make_capture(false);
	segment_path(path, ".part");
	count = find_blocks(offsets, 39);
	at = put_piece(changed, 0, 0, offsets[0]);
	for (size_t i = 0; i < count; i++) {
		at = put_piece(changed, at, offsets[i], offsets[i + 1]);
		at = put_piece(changed, at, offsets[i / 2], offsets[i / 2 + 1]);
	}
	write_file(path, changed, at);
	assert_int_equal(examine(&seen), 0);
	assert_int_equal(seen.events, EVENTS);
	assert_true(seen.info.duplicate_blocks >= count / 2);
	remove_folder(capture_path);
}

/* After a crash a stretch may be stored again from an earlier position, and be longer. */
static void overlapping_blocks_come_once(void **state)
{
	struct maker *maker = begin_maker();
	struct maker_stream saved, *stream = &maker->streams[0];
	struct seen seen;

	for (uint64_t i = 0; i < 20; i++)
		maker_call(maker, 0, 2000 + i * 3 * 10, i * 3, payload_of(i * 3));
	saved = *stream;
	maker_flush(maker, 0);
	*stream = saved;
	for (uint64_t i = 20; i < 50; i++)
		maker_call(maker, 0, 2000 + i * 3 * 10, i * 3, payload_of(i * 3));
	end_maker(maker, true);
	assert_int_equal(examine(&seen), 0);
	assert_int_equal(seen.events, 50);
	assert_int_equal(seen.info.damages, 0);
	assert_int_equal(seen.info.damaged_records, 0);
	remove_folder(capture_path);
}

static void other_files_are_no_captures(void **state)
{
	struct tw_segment_header header = {0};
	struct seen seen;
	char path[400], second[400];

	remove_folder(capture_path);
	assert_int_equal(examine(&seen), TW_ENOENT);
	assert_int_equal(mkdir(capture_path, 0700), 0);
	assert_int_equal(examine(&seen), TW_EFORMAT);
	segment_path(path, "");
	write_file(path, (const uint8_t *)"nothing", 7);
	assert_int_equal(examine(&seen), TW_EFORMAT);
	tw_segment_header_seal(&header, 1);
	header.version = TW_FORMAT_VERSION + 1;
	write_file(path, (const uint8_t *)&header, sizeof header);
	assert_int_equal(examine(&seen), TW_EVERSION);
	/* Several segments of another version; and a second kind of damage. */
	for (int is_other = 0; is_other < 2; is_other++) {
		snprintf(second, sizeof second, "%s/segment-000002.tws", capture_path);
		if (is_other)
			write_file(second, (const uint8_t *)"nothing", 7);
		else
			write_file(second, (const uint8_t *)&header, sizeof header);
		assert_int_equal(examine(&seen), is_other ? TW_EFORMAT : TW_EVERSION);
		assert_int_equal(unlink(second), 0);
	}
	/* A pipe would block forever, a link leads elsewhere. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(examine(&seen), TW_EFORMAT);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/dev/zero", path), 0);
	assert_int_equal(examine(&seen), TW_EFORMAT);
	remove_folder(capture_path);
	write_file(capture_path, (const uint8_t *)"x", 1);
	assert_int_equal(examine(&seen), TW_EFORMAT);
	unlink(capture_path);
}

static void another_segment_helps_out(void **state)
{
	struct seen seen;
	char path[400], second[400];

	make_capture(true);
	segment_path(path, "");
	snprintf(second, sizeof second, "%s/segment-000002.tws", capture_path);
	write_file(second, whole, whole_bytes);
	assert_int_equal(examine(&seen), 0);
	assert_int_equal(seen.events, EVENTS);
	assert_true(seen.info.duplicate_blocks > 0);
	assert_int_equal(seen.info.functions, 1);
	/* A definition missing in one segment is found in the other. */
	memset(whole + 200, 0, 2000);
	write_file(path, whole, whole_bytes);
	assert_int_equal(examine(&seen), 0);
	assert_in_range(seen.events, 1, EVENTS);
	assert_int_equal(seen.info.functions, 1);
	assert_true(seen.info.damages > 0);
	remove_folder(capture_path);
}

static int fini_group(void **state)
{
	end_directory();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_changed_byte_is_survived_and_told),
		cmocka_unit_test(every_cut_is_survived),
		cmocka_unit_test(garbage_between_blocks_is_passed_over),
		cmocka_unit_test(a_missing_block_is_counted),
		cmocka_unit_test(doubled_blocks_come_once),
		cmocka_unit_test(overlapping_blocks_come_once),
		cmocka_unit_test(other_files_are_no_captures),
		cmocka_unit_test(another_segment_helps_out),
	};

	begin_directory();
	return cmocka_run_group_tests(tests, NULL, fini_group);
}
