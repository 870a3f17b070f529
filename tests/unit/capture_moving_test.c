/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: a capture may change while it is read: grow, be cut, be replaced by other files.  Reading ends, and every
 * record it gives is sound.
 *
 * Method: one thread cuts, lengthens and overwrites the segment at random while another reads it again and
 * again; then a folder, a device and files of absurd sizes in place of segments.
 */
#include "capture_help.h"

#include "base/atomic.h"
#include "sanitized_help.h"
#include "tests/common/random.h"

#include <errno.h>
#include <sys/sysmacros.h>

#define EVENTS 40000

static uint64_t mixed(uint64_t number)
{
	number *= UINT64_C(0x9e3779b97f4a7c15);
	return number ^ number >> 29;
}

static void make_capture(void)
{
	struct tw_recorder_options options = {.path = capture_path, .ring_bytes = 1 << 16};
	struct tw_rb_producer producer;
	struct program program;
	struct tw_recorder *recorder;

	remove_folder(capture_path);
	assert_int_equal(tw_recorder_create(&options, &recorder), 0);
	begin_program(&program, tw_recorder_ring_set(recorder), 10);
	assert_true(begin_thread(&program, &producer, 1));
	for (uint64_t i = 0; i < EVENTS; i++) {
		assert_true(emit_call(&producer, 1, i, mixed(i)));
		if (i % 500 == 0)
			assert_int_equal(tw_recorder_drain(recorder), 0);
	}
	assert_int_equal(tw_recorder_finish(recorder, NULL), 0);
}

static void segment_path(char path[400])
{
	snprintf(path, 400, "%s/segment-000001.tws", capture_path);
}

/* Reads everything; each event must be sound and later than the previous one. */
static int read_all(uint64_t *count)
{
	const struct tw_capture_event *batch;
	struct tw_capture_events *events;
	struct tw_capture *capture;
	uint64_t next = 0;
	int64_t got;
	int error = tw_capture_open(capture_path, NULL, &capture);

	*count = 0;
	if (error)
		return error;
	assert_int_equal(tw_capture_events_create(capture, NULL, &events), 0);
	while ((got = tw_capture_events_next(events, &batch)) > 0) {
		for (int64_t i = 0; i < got; i++) {
			if (batch[i].kind != TW_CAPTURE_CALL)
				continue;
			assert_true(batch[i].payload[0] >= next);
			assert_int_equal(batch[i].payload[1], mixed(batch[i].payload[0]));
			next = batch[i].payload[0] + 1;
			++*count;
		}
	}
	assert_int_equal(got, 0);
	tw_capture_events_destroy(events);
	tw_capture_close(capture);
	return 0;
}

static _Atomic bool is_over;

static uint64_t random_number(void)
{
	static uint64_t state = 88172645463325252u;

	return random_word(&state);
}

static void *change_the_file(void *unused)
{
	static uint8_t whole[4 << 20];
	char path[400];
	ssize_t bytes;
	int fd;

	segment_path(path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	bytes = pread(fd, whole, sizeof whole, 0);
	/* RELAXED test.over: a flag that ends the loop. */
	while (bytes > 0 && !tw_load_relaxed(&is_over)) {
		uint64_t at = random_number() % (uint64_t)bytes;
		int failed = ftruncate(fd, (off_t)at);

		if (random_number() % 2)
			failed |= pwrite(fd, whole, 4096, (off_t)(random_number() % (uint64_t)bytes)) < 0;
		failed |= pwrite(fd, whole, (size_t)bytes, 0) < 0;
		if (failed)
			break;
	}
	close(fd);
	return NULL;
}

static void files_that_move_are_read_to_an_end(void **state)
{
	pthread_t thread;
	uint64_t count;

	make_capture();
	assert_int_equal(read_all(&count), 0);
	assert_int_equal(count, EVENTS);
	assert_int_equal(pthread_create(&thread, NULL, change_the_file, NULL), 0);
	for (int i = 0; i < (int)test_rounds(500, 12); i++) {
		int error = read_all(&count);

		assert_true(error == 0 || error == TW_EFORMAT || error == TW_EIO || error == TW_EVERSION);
		assert_true(count <= EVENTS);
	}
	/* RELAXED test.over: as above. */
	tw_store_relaxed(&is_over, true);
	pthread_join(thread, NULL);
	remove_folder(capture_path);
}

static void other_things_in_place_of_segments(void **state)
{
	uint64_t count;
	char path[400];
	int fd;

	make_capture();
	snprintf(path, sizeof path, "%s/segment-000002.tws", capture_path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(read_all(&count), 0);
	assert_int_equal(count, EVENTS);
	assert_int_equal(rmdir(path), 0);
	/* Zeros without end, which are never read. */
	snprintf(path, sizeof path, "%s/segment-000003.tws", capture_path);
	if (mknod(path, S_IFCHR | 0600, makedev(1, 5)) == 0) {
		assert_int_equal(read_all(&count), 0);
		assert_int_equal(count, EVENTS);
		unlink(path);
	}
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(read_all(&count), 0);
	assert_int_equal(count, EVENTS);
	unlink(path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_true(ftruncate(fd, (off_t)1 << 42) == 0 || errno == EFBIG);
	close(fd);
	assert_int_equal(read_all(&count), 0);
	assert_int_equal(count, EVENTS);
	unlink(path);
	remove_folder(capture_path);
}

static void a_folder_that_cannot_be_written_is_readable(void **state)
{
	uint64_t count;

	make_capture();
	assert_int_equal(chmod(capture_path, 0500), 0);
	assert_int_equal(read_all(&count), 0);
	assert_int_equal(count, EVENTS);
	assert_int_equal(chmod(capture_path, 0700), 0);
	remove_folder(capture_path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_that_move_are_read_to_an_end),
		cmocka_unit_test(other_things_in_place_of_segments),
		cmocka_unit_test(a_folder_that_cannot_be_written_is_readable),
	};

	return RUN_IN_DIRECTORY(tests);
}
