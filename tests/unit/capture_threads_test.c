/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    However many threads a program has, one after the other, the log of definitions stays as it is, and each segment
 *	   names the threads whose events it holds: also those that began long before it, and those that the recorder
 *	   left in the rings when it died.
 * Method  Thousands of threads with a name of their own write one event each, beside one that lives all along, into
 *	   segments that are small, of which the first are removed.  Each segment that is left is read alone.
 */
#include "capture_producers.h"

#include <sys/prctl.h>
#include <sys/wait.h>

enum { SHORT = 3000, FIRST_SHORT = 2, LASTING = 1, LASTING_EVENTS = 40 };

static void name_of(uint32_t tracee, char name[16])
{
	snprintf(name, 16, "%s %u", tracee == LASTING ? "lasting" : "short", tracee);
}

/* This thread, as if it were another: it has that one's name when it gets its ring. */
static bool begin_as(struct program *program, struct tw_rb_producer *producer, uint32_t tracee)
{
	struct tw_rs_claim who = {.scheduler_id = tracee, .tracee_id = tracee, .is_own_tracee = true};
	char name[16];

	name_of(tracee, name);
	assert_int_equal(prctl(PR_SET_NAME, name), 0);
	if (!tw_rs_ring_claim(program->rs, &who, producer))
		return false;
	/* Space for many events, as a busy thread gets it. */
	while (tracee == LASTING &&
	       (tw_rs_ring_grow(program->rs, producer) || tw_rs_ring_populate(program->rs, producer, true)))
		;
	return true;
}

static uint64_t log_of(const struct program *program)
{
	return tw_load_relaxed(&program->rs->own.head->defs_committed_bytes);
}

static void play(struct tw_recorder *recorder, struct program *program, struct tw_rb_producer *lasting)
{
	uint64_t log = log_of(program);

	assert_true(begin_as(program, lasting, LASTING));
	for (uint32_t i = 0; i < SHORT; i++) {
		struct tw_rb_producer producer;

		assert_true(begin_as(program, &producer, FIRST_SHORT + i));
		assert_true(emit_call(&producer, 1, i, with_noise(0, i)));
		tw_rs_ring_end(program->rs, &producer);
		for (uint32_t j = 0; i % 10 == 0 && j < LASTING_EVENTS; j++)
			assert_true(emit_call(lasting, 2, j, with_noise(1, i * LASTING_EVENTS + j)));
		if (i % 10 == 9 && i < SHORT - 100)
			assert_int_equal(tw_recorder_drain(recorder), 0);
	}
	assert_int_equal(log_of(program), log);
}

struct seen {
	const struct tw_capture *capture;
	uint64_t shorts, lasting;
};

static int check_names(void *context, const struct tw_capture_batch *batch)
{
	struct seen *seen = context;
	const struct tw_capture_tracee *tracee = tw_capture_tracee(seen->capture, 0, batch->tracee_id);
	char name[16];

	if (batch->first == batch->end)
		return 0;
	assert_non_null(tracee);
	name_of(batch->tracee_id, name);
	assert_string_equal(tracee->name, name);
	assert_int_equal(tracee->pid_number, batch->tracee_id);
	assert_int_not_equal(tracee->thread_id, 0);
	seen->shorts += batch->tracee_id != LASTING;
	seen->lasting += batch->tracee_id == LASTING;
	return 0;
}

static void check_alone(const char *path, struct seen *all)
{
	const struct tw_capture_options options = {.no_workers = true};
	struct seen seen = {0};
	struct tw_capture *capture;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(tw_capture_open_stream_file(fd, &options, &capture), 0);
	seen.capture = capture;
	tw_capture_scan(capture, NULL, check_names, &seen);
	tw_capture_close(capture);
	close(fd);
	all->shorts += seen.shorts;
	all->lasting += seen.lasting;
}

/* The number of segments. */
static uint32_t check_each(struct seen *all)
{
	DIR *opened = opendir(capture_path);
	const struct dirent *entry;
	uint32_t segments = 0;

	assert_non_null(opened);
	while ((entry = readdir(opened)) != NULL) {
		char path[600];

		if (!strstr(entry->d_name, ".tws"))
			continue;
		snprintf(path, sizeof path, "%s/%s", capture_path, entry->d_name);
		check_alone(path, all);
		segments++;
	}
	closedir(opened);
	return segments;
}

static void short_threads_leave_nothing_in_the_log(void **state)
{
	struct tw_recorder_options options = {.ring_bytes = 1 << 16, .segment_bytes = 1 << 16, .segments_kept = 4};
	struct tw_recorder *recorder = begin_recording(&options);
	struct tw_recorder_stats stats;
	struct tw_rb_producer lasting;
	struct program program;
	struct seen all = {0};

	begin_program(&program, tw_recorder_ring_set(recorder), 10);
	play(recorder, &program, &lasting);
	tw_rs_ring_end(program.rs, &lasting);
	assert_int_equal(tw_recorder_finish(recorder, &stats), 0);
	assert_int_equal(stats.definitions_refused, 0);
	assert_true(stats.segments_removed > 2);
	assert_in_range(check_each(&all), 3, 5);
	assert_true(all.shorts > 100);
	assert_true(all.lasting > 0);
	remove_folder(capture_path);
}

/* Dies with the events of a hundred threads in their rings. */
static void die_with_threads_in_rings(void)
{
	struct tw_recorder_options options = {.ring_bytes = 1 << 16, .segment_bytes = 1 << 16, .segments_kept = 4};
	struct tw_recorder *recorder = begin_recording(&options);
	struct tw_rb_producer lasting;
	struct program program;

	begin_program(&program, tw_recorder_ring_set(recorder), 10);
	play(recorder, &program, &lasting);
	_exit(0);
}

static void recovery_names_the_threads_that_it_finds(void **state)
{
	struct tw_recorder_stats stats;
	struct seen all = {0};
	pid_t child = fork();
	int status;

	if (!child)
		die_with_threads_in_rings();
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(tw_recover(capture_path, &stats), 0);
	assert_true(check_each(&all) >= 4);
	assert_true(all.shorts >= 100);
	assert_true(all.lasting > 0);
	remove_folder(capture_path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_threads_leave_nothing_in_the_log),
		cmocka_unit_test(recovery_names_the_threads_that_it_finds),
	};

	return RUN_IN_DIRECTORY(tests);
}
