/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: whichever process dies, and whenever: committed events are in the recovered capture exactly once, and losses
 * are exact.
 *
 * Method: recorders and programs in processes of their own, killed at random times; then tw_recover(),
 * twice.  The writing of a killed recorder is slowed down, so that the kill often meets it in the
 * middle.  Negative control: without recovery the events in the rings are missing.
 */
#include "capture_help.h"
#include "sanitized_help.h"
#include "tests/common/random.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

/* Shared by the parent and its children. */
struct shared {
	_Atomic uint64_t attempted;
	_Atomic uint64_t committed;
	char ring_set[256];
	_Atomic uint32_t is_ready;
};

static struct shared *shared;
static uint64_t seed = 88172645463325252u;

static uint64_t number(void)
{
	return random_word(&seed);
}

/* Many small pieces: a kill leaves half a block behind. */
static ssize_t write_slowly(int fd, const struct iovec *pieces, int count, off_t offset)
{
	struct iovec first = pieces[0];

	if (first.iov_len > 512)
		first.iov_len = 512;
	return pwritev(fd, &first, 1, offset);
}

static const struct tw_segment_io slow_disk = {write_slowly, fdatasync};

static pid_t start_recorder(bool is_slow)
{
	const struct tw_recorder_options options = {.path = capture_path,
						    .ring_bytes = 1 << 18,
						    .cap_bytes = 8 << 20,
						    .segment_bytes = 200000};
	struct tw_recorder *recorder;
	pid_t child;

	/* RELAXED test.start: no child runs yet. */
	tw_store_relaxed(&shared->is_ready, 0);
	child = fork();
	if (child != 0)
		return child;
	if (tw_recorder_create(&options, &recorder))
		_exit(1);
	if (is_slow)
		tw_recorder_set_io(recorder, &slow_disk);
	strcpy(shared->ring_set, tw_recorder_ring_set_path(recorder));
	/* PAIR test.ready: release; acquire in attach(). */
	tw_store_release(&shared->is_ready, 1);
	for (;;)
		tw_recorder_poll(recorder, 1000000);
}

static void attach(struct tw_rs *rs)
{
	/* PAIR test.ready: acquire; release in start_recorder(). */
	while (!tw_load_acquire(&shared->is_ready))
		usleep(100);
	assert_int_equal(tw_rs_attach(rs, shared->ring_set), 0);
}

/*
 * On a busy machine a program may finish before its recorder has written anything: that is no capture yet, nor is one
 * whose first segment is empty.
 */
static void wait_until_begun(void)
{
	struct tw_capture_info info = {0};
	struct tw_capture *capture;

	while (!info.segments) {
		usleep(100);
		if (tw_capture_open(capture_path, NULL, &capture))
			continue;
		tw_capture_info(capture, &info);
		tw_capture_close(capture);
	}
}

enum { AFTER_STOP = 100 };

/*
 * Calls numbered from 0, with short pauses so that not all of them are lost.  The last ones come when `stopped`, which
 * may be 0, stands still.
 */
static void run_program(struct tw_rs *rs, uint64_t count, bool dies, pid_t stopped)
{
	struct tw_rb_producer producer;
	struct program program;
	uint64_t attempted = 0, committed = 0;

	begin_program(&program, rs, 10);
	while (!begin_thread(&program, &producer, 1))
		usleep(100);
	for (uint64_t i = 0; i < count || dies; i++) {
		/* RELAXED test.counts: read after this process has died, or by itself. */
		tw_store_relaxed(&shared->attempted, ++attempted);
		if (stopped && i == count - AFTER_STOP) {
			wait_until_begun();
			assert_int_equal(kill(stopped, SIGSTOP), 0);
			usleep(1000);
		}
		committed += emit_call(&producer, 1, committed, number());
		/* RELAXED test.counts: as above. */
		tw_store_relaxed(&shared->committed, committed);
		if (i % 512 == 0)
			usleep(50);
	}
}

struct account {
	uint64_t calls;
	uint64_t lost;
};

static int check_batch(void *context, const struct tw_capture_batch *batch)
{
	struct account *account = context;

	for (const struct tw_capture_record *record = batch->first; record < batch->end;
	     record = tw_capture_record_next(record)) {
		if (tw_capture_record_kind(record) == TW_CAPTURE_LOSS)
			account->lost += record->payload[1];
		else
			assert_int_equal(record->payload[0], account->calls++);
	}
	return 0;
}

enum ending { WHOLE, LIVE, CUT };

static struct account read_back(enum ending ending)
{
	struct tw_capture *capture = open_capture();
	struct account account = {0};
	struct tw_capture_account missing;
	struct tw_capture_info info;

	assert_int_equal(tw_capture_scan(capture, NULL, check_batch, &account), 0);
	tw_capture_account(capture, &missing);
	assert_int_equal(missing.missing[TW_MISSING_CUT].has_more, ending == CUT);
	assert_int_equal(missing.missing[TW_MISSING_CUT].places, ending == CUT);
	assert_int_equal(missing.is_complete, ending == WHOLE);
	tw_capture_info(capture, &info);
	assert_int_equal(info.events, account.calls);
	assert_int_equal(info.lost[TW_LOST_FULL], account.lost);
	assert_int_equal(info.damaged_records, 0);
	assert_int_equal(info.is_complete, ending == WHOLE);
	assert_int_equal(info.is_live, ending == LIVE);
	tw_capture_close(capture);
	return account;
}

static void kill_and_wait(pid_t child)
{
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void a_killed_recorder_loses_nothing(void **state)
{
	uint64_t only_in_rings = 0;

	for (int round = 0; round < (int)test_sample(24, 3); round++) {
		struct tw_recorder_stats stats;
		struct account account;
		struct tw_rs rs;
		pid_t recorder;
		uint64_t attempted, committed;

		remove_folder(capture_path);
		recorder = start_recorder(round % 2);
		attach(&rs);
		/* In some rounds there are surely events that the recorder has not seen. */
		run_program(&rs, 3000 + number() % 20000, false, round % 4 ? 0 : recorder);
		wait_until_begun();
		kill_and_wait(recorder);
		/* RELAXED test.counts: this process's own. */
		attempted = tw_load_relaxed(&shared->attempted);
		/* RELAXED test.counts: as above. */
		committed = tw_load_relaxed(&shared->committed);
		only_in_rings += committed - read_back(LIVE).calls;
		assert_int_equal(tw_recover(capture_path, &stats), 0);
		account = read_back(WHOLE);
		assert_int_equal(account.calls, committed);
		assert_int_equal(account.lost, attempted - committed);
		assert_int_equal(access(shared->ring_set, F_OK), -1);
		/* Recovering twice changes nothing. */
		assert_int_equal(tw_recover(capture_path, &stats), 0);
		assert_int_equal(stats.events, 0);
		account = read_back(WHOLE);
		assert_int_equal(account.calls, committed);
		tw_rs_detach(&rs);
	}
	/* The negative control: there were events to recover. */
	assert_true(only_in_rings > 0);
	remove_folder(capture_path);
}

static void both_may_die(void **state)
{
	for (int round = 0; round < (int)test_sample(24, 3); round++) {
		struct account account;
		pid_t recorder, program;
		uint64_t attempted, committed;

		remove_folder(capture_path);
		/* RELAXED test.counts: this round's program has not started. */
		tw_store_relaxed(&shared->committed, 0);
		recorder = start_recorder(round % 2);
		program = fork();
		if (program == 0) {
			struct tw_rs rs;

			attach(&rs);
			run_program(&rs, 0, true, 0);
		}
		/* RELAXED test.counts: on a busy machine it may take a while until anything is recorded. */
		while (!tw_load_relaxed(&shared->committed))
			usleep(100);
		usleep(5000 + (unsigned)(number() % 20000));
		if (round % 3 == 0)
			kill(program, SIGSTOP);
		kill_and_wait(round % 2 ? recorder : program);
		usleep((unsigned)(number() % 3000));
		kill_and_wait(round % 2 ? program : recorder);
		/* RELAXED test.counts: its writer is dead. */
		attempted = tw_load_relaxed(&shared->attempted);
		/* RELAXED test.counts: as above. */
		committed = tw_load_relaxed(&shared->committed);
		assert_int_equal(tw_recover(capture_path, NULL), 0);
		account = read_back(WHOLE);
		/* The call in flight may or may not have been committed and counted. */
		assert_in_range(account.calls, committed, committed + 1);
		assert_in_range(account.calls + account.lost, attempted - 1, attempted);
	}
	remove_folder(capture_path);
}

/* Events without a ring: the recorder had reported some of them when it died. */
static void reported_losses_are_not_repeated(void **state)
{
	struct tw_recorder_stats stats;
	struct tw_capture_info info = {0};
	struct tw_capture *capture;
	struct program program;
	pid_t recorder;
	struct tw_rs rs;

	remove_folder(capture_path);
	recorder = start_recorder(false);
	attach(&rs);
	begin_program(&program, &rs, 1);
	for (int i = 0; i < 7; i++)
		tw_rs_count_no_ring(&rs, tw_clock_ticks());
	while (info.lost[TW_LOST_NO_RING] < 7) {
		wait_until_begun();
		capture = open_capture();
		tw_capture_info(capture, &info);
		tw_capture_close(capture);
	}
	assert_int_equal(kill(recorder, SIGSTOP), 0);
	for (int i = 0; i < 5; i++)
		tw_rs_count_no_ring(&rs, tw_clock_ticks());
	kill_and_wait(recorder);
	assert_int_equal(tw_recover(capture_path, &stats), 0);
	/* It may have been stopped a moment after the first of them. */
	assert_in_range(stats.lost[TW_LOST_NO_RING], 1, 5);
	capture = open_capture();
	tw_capture_info(capture, &info);
	tw_capture_close(capture);
	assert_int_equal(info.lost[TW_LOST_NO_RING], 12);
	tw_rs_detach(&rs);
	remove_folder(capture_path);
}

/* A folder of another capture, or a copy, names the rings: it gets none of their events, and they stay. */
static void rings_are_of_one_folder(void **state)
{
	char stranger[300], path[400];
	pid_t recorder;
	struct tw_rs rs;
	FILE *mark;

	remove_folder(capture_path);
	recorder = start_recorder(false);
	attach(&rs);
	run_program(&rs, 5000, false, 0);
	wait_until_begun();
	kill_and_wait(recorder);
	snprintf(stranger, sizeof stranger, "%s/stranger.tw", directory);
	snprintf(path, sizeof path, "%s/live", stranger);
	assert_int_equal(mkdir(stranger, 0700), 0);
	mark = fopen(path, "w");
	assert_true(mark && fprintf(mark, "ringset=%s\n", shared->ring_set) > 0);
	fclose(mark);
	assert_int_equal(tw_recover(stranger, NULL), TW_EPERM);
	/* Nor are they removed with a folder that is replaced. */
	{
		const struct tw_recorder_options options = {.path = stranger, .force = true};
		struct tw_recorder *forced;

		assert_int_equal(tw_recorder_create(&options, &forced), 0);
		tw_recorder_abort(forced);
	}
	/* A folder that was renamed is still the same. */
	snprintf(stranger, sizeof stranger, "%s/renamed.tw", directory);
	assert_int_equal(rename(capture_path, stranger), 0);
	assert_int_equal(tw_recover(stranger, NULL), 0);
	assert_int_equal(rename(stranger, capture_path), 0);
	/* RELAXED test.counts: this process's own. */
	assert_int_equal(read_back(WHOLE).calls, tw_load_relaxed(&shared->committed));
	tw_rs_detach(&rs);
	remove_folder(capture_path);
}

/* No rings, as after a restart of the machine: the end is missing, and stays so. */
static void without_rings_the_end_is_missing(void **state)
{
	struct tw_rs rs;
	pid_t recorder;

	for (int round = 0; round < 4; round++) {
		char path[400];
		FILE *mark;

		remove_folder(capture_path);
		recorder = start_recorder(false);
		attach(&rs);
		run_program(&rs, 30000, false, 0);
		wait_until_begun();
		kill_and_wait(recorder);
		if (round == 0) {
			assert_int_equal(tw_rs_remove(shared->ring_set), 0);
		} else if (round == 1) {
			/* A part of it is gone. */
			snprintf(path, sizeof path, "rm %s/image-*", shared->ring_set);
			assert_int_equal(system(path), 0);
		} else if (round == 2) {
			/* The mark was cut off as well, so it names no rings. */
			snprintf(path, sizeof path, "%s/live", capture_path);
			assert_int_equal(truncate(path, 0), 0);
		} else {
			/* It died when all segments so far were closed, and none was open. */
			assert_int_equal(tw_recover(capture_path, NULL), 0);
			read_back(WHOLE);
			snprintf(path, sizeof path, "%s/live", capture_path);
			mark = fopen(path, "w");
			assert_true(mark && fprintf(mark, "ringset=%s\n", shared->ring_set) > 0);
			fclose(mark);
		}
		for (int repeated = 0; repeated < 3; repeated++) {
			assert_int_equal(tw_recover(capture_path, NULL), 0);
			/* RELAXED test.counts: this process's own. */
			assert_in_range(read_back(CUT).calls, 0, tw_load_relaxed(&shared->committed));
		}
		tw_rs_detach(&rs);
		tw_rs_remove(shared->ring_set);
	}
	remove_folder(capture_path);
}

/* A recorder that died after it had closed everything, before it removed the mark: nothing is missing. */
static void rings_that_were_stored_are_not_missed(void **state)
{
	struct tw_rs rs;
	pid_t recorder;
	char path[400];
	FILE *mark;

	remove_folder(capture_path);
	recorder = start_recorder(false);
	attach(&rs);
	run_program(&rs, 3000, false, 0);
	kill_and_wait(recorder);
	assert_int_equal(tw_recover(capture_path, NULL), 0);
	snprintf(path, sizeof path, "%s/live", capture_path);
	mark = fopen(path, "w");
	assert_true(mark && fprintf(mark, "ringset=%s\nended=1\n", shared->ring_set) > 0);
	fclose(mark);
	assert_int_equal(tw_recover(capture_path, NULL), 0);
	/* RELAXED test.counts: this process's own. */
	assert_int_equal(read_back(WHOLE).calls, tw_load_relaxed(&shared->committed));
	tw_rs_detach(&rs);
	remove_folder(capture_path);
}

static void a_recovery_may_find_no_process(void **state)
{
	char mark[PATH_MAX];
	struct tw_rs rs;
	pid_t recorder;

	remove_folder(capture_path);
	recorder = start_recorder(false);
	attach(&rs);
	tw_rs_detach(&rs);
	kill_and_wait(recorder);
	assert_int_equal(tw_recover(capture_path, NULL), 0);
	assert_int_equal(read_back(WHOLE).calls, 0);
	remove_folder(capture_path);
	assert_int_equal(tw_recover(capture_path, NULL), TW_ENOENT);
	assert_int_equal(mkdir(capture_path, 0700), 0);
	assert_int_equal(tw_recover(capture_path, NULL), TW_EFORMAT);
	/* Killed between making the mark and writing into it: a capture without events. */
	snprintf(mark, sizeof mark, "%s/live", capture_path);
	close(open(mark, O_WRONLY | O_CREAT, 0600));
	assert_int_equal(tw_recover(capture_path, NULL), 0);
	assert_int_equal(read_back(CUT).calls, 0);
	remove_folder(capture_path);
}

static int fini_group(void **state)
{
	end_directory();
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_killed_recorder_loses_nothing),
		cmocka_unit_test(both_may_die),
		cmocka_unit_test(reported_losses_are_not_repeated),
		cmocka_unit_test(rings_are_of_one_folder),
		cmocka_unit_test(without_rings_the_end_is_missing),
		cmocka_unit_test(rings_that_were_stored_are_not_missed),
		cmocka_unit_test(a_recovery_may_find_no_process),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	printf("seed %llu\n", (unsigned long long)seed);
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	use_fresh_memory();
	begin_directory();
	return cmocka_run_group_tests(tests, NULL, fini_group);
}
