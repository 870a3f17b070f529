/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: recovery completes whatever a dying recorder leaves, however little or torn it is.
 *
 * Method: a recorder in a child process, whose disk kills it at a chosen write; then tw_recover().  The result must be
 * complete, undamaged, and contain every committed event. tests/crash/ does the same at random instants.
 */
#include "capture_help.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#define EVENTS 2000

enum death { AT_CREATION, AT_HEADER, IN_DEFINITIONS_OVER_EVENTS, WITH_NOTHING_STORED };

static enum death death;
static unsigned refusals;

static uint8_t type_of(const struct iovec *pieces)
{
	const struct tw_block_header *header = pieces[0].iov_base;

	return pieces[0].iov_len == sizeof *header && header->magic == TW_BLOCK_MAGIC ? header->type : 0;
}

static ssize_t write_until_death(int fd, const struct iovec *pieces, int count, off_t offset)
{
	struct iovec some[2] = {pieces[0], pieces[count > 1]};

	if (death == AT_CREATION)
		raise(SIGKILL);
	if (death == AT_HEADER) {
		if (pwrite(fd, pieces[0].iov_base, 100, offset) == 100)
			raise(SIGKILL);
	}
	/* The disk is full in the middle of events; the next definitions overwrite them. */
	if (type_of(pieces) == TW_BLOCK_EVENTS) {
		some[1].iov_len -= some[1].iov_len / 10;
		refusals += pwritev(fd, some, 2, offset) > 0;
		errno = ENOSPC;
		return -1;
	}
	if (type_of(pieces) == TW_BLOCK_DEFINITIONS && refusals) {
		some[1].iov_len = 8;
		if (pwritev(fd, some, 2, offset) > 0)
			raise(SIGKILL);
	}
	return pwritev(fd, pieces, count, offset);
}

static const struct tw_segment_io deadly_disk = {write_until_death, fdatasync};

static uint64_t noise(uint64_t i)
{
	i *= UINT64_C(0x9e3779b97f4a7c15);
	i ^= i >> 29;
	return i * UINT64_C(0xbf58476d1ce4e5b9);
}

static void record_and_die(void)
{
	struct tw_recorder_options options = {.path = capture_path, .ring_bytes = 1 << 18};
	struct tw_def_function another = {.function_id = 99, .module_id = 1, .name_bytes = 3};
	struct tw_rb_producer producer;
	struct program program;
	struct tw_recorder *recorder;

	if (tw_recorder_create(&options, &recorder) != 0)
		_exit(1);
	if (death == WITH_NOTHING_STORED)
		raise(SIGKILL);
	tw_recorder_set_io(recorder, &deadly_disk);
	begin_program(&program, tw_recorder_ring_set(recorder), 10);
	if (!begin_thread(&program, &producer, 1))
		_exit(1);
	for (uint64_t i = 0; i < EVENTS; i++)
		emit_call(&producer, 1, i, noise(i));
	tw_recorder_drain(recorder);
	define(&program, TW_DEF_FUNCTION, &another, sizeof another, "new");
	tw_recorder_drain(recorder);
	_exit(2);
}

static int count_calls(void *context, const struct tw_capture_batch *batch)
{
	uint64_t *calls = context;

	for (const struct tw_capture_record *r = batch->first; r < batch->end; r = tw_capture_record_next(r)) {
		if (tw_capture_record_kind(r) != TW_CAPTURE_CALL)
			continue;
		assert_int_equal(r->payload[0], *calls);
		assert_int_equal(r->payload[1], noise(*calls));
		++*calls;
	}
	return 0;
}

static void die_and_recover(enum death how, uint64_t expected)
{
	struct tw_recorder_stats stats;
	struct tw_capture_info info;
	struct tw_capture *capture;
	uint64_t calls = 0;
	int status;
	pid_t child;

	remove_folder(capture_path);
	death = how;
	child = fork();
	if (child == 0)
		record_and_die();
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(tw_recover(capture_path, &stats), 0);
	assert_int_equal(stats.events, expected);
	/* A second recovery changes nothing. */
	assert_int_equal(tw_recover(capture_path, &stats), 0);
	assert_int_equal(stats.events, 0);
	capture = open_capture();
	tw_capture_info(capture, &info);
	tw_capture_scan(capture, NULL, count_calls, &calls);
	assert_int_equal(calls, expected);
	assert_int_equal(info.events, expected);
	assert_null(tw_capture_damage(capture, 0));
	assert_true(info.is_complete);
	assert_false(info.is_live);
	tw_capture_close(capture);
	remove_folder(capture_path);
}

static void a_segment_without_a_byte(void **state)
{
	die_and_recover(AT_CREATION, EVENTS);
}

static void half_a_segment_header(void **state)
{
	die_and_recover(AT_HEADER, EVENTS);
}

static void a_block_over_the_remains_of_another(void **state)
{
	die_and_recover(IN_DEFINITIONS_OVER_EVENTS, EVENTS);
}

static void nothing_at_all(void **state)
{
	die_and_recover(WITH_NOTHING_STORED, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_segment_without_a_byte),
		cmocka_unit_test(half_a_segment_header),
		cmocka_unit_test(a_block_over_the_remains_of_another),
		cmocka_unit_test(nothing_at_all),
	};

	use_fresh_memory();
	return RUN_IN_DIRECTORY(tests);
}
