/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    A segment after the first holds the definitions of the functions that its events use, and no others: it is
 *	   small even if the program has many functions, and can be read alone.  The capture as a whole knows all.
 * Method  Thousands of functions, of which different ones are called in each part of the recording; some are defined
 *	   late.  Each segment is opened alone: every call has its name, and no other function is defined.  Segments
 *	   that were removed, a slow disk, and a recorder that died with events in the rings.
 */
#include "capture_producers.h"

#include <sys/wait.h>

enum { FUNCTIONS = 5000, USED = 7, PART = 4000, PARTS = 12, LATE = FUNCTIONS + 100 };

/* In part n: functions n * 20 and the USED - 1 after it, and the late one once it is defined. */
static uint32_t place_of(uint64_t i)
{
	uint32_t part = (uint32_t)(i / PART);

	return part >= PARTS / 2 && i % 10 == 0 ? LATE : part * 20 + (uint32_t)(i % USED);
}

static void define_late(struct program *program)
{
	struct tw_def_function function = {.function_id = LATE, .module_id = 1, .arity = 2, .name_bytes = 4};
	struct tw_def_place place = {.place_id = LATE, .function_id = LATE, .kind = TW_PLACE_DECLARED};

	define(program, TW_DEF_FUNCTION, &function, sizeof function, "late");
	define(program, TW_DEF_PLACE, &place, sizeof place, NULL);
}

static void produce_parts(struct tw_recorder *recorder, struct program *program, unsigned parts)
{
	struct tw_rb_producer producer;

	assert_true(begin_thread(program, &producer, 1));
	for (uint64_t i = 0; i < (uint64_t)parts * PART; i++) {
		if (i == PART * PARTS / 2)
			define_late(program);
		assert_true(emit_call(&producer, place_of(i), i, with_noise(0, i)));
		if (recorder && i % 500 == 499)
			assert_int_equal(tw_recorder_drain(recorder), 0);
	}
	if (recorder)
		tw_rs_ring_end(program->rs, &producer);
}

struct seen {
	const struct tw_capture *capture;
	uint64_t calls;
	bool is_used[LATE + 1];
	uint32_t used;
};

static int check_names(void *context, const struct tw_capture_batch *batch)
{
	struct seen *seen = context;

	for (const struct tw_capture_record *record = batch->first; record < batch->end;
	     record = tw_capture_record_next(record)) {
		const struct tw_capture_place *place;
		char name[16];
		uint32_t id;

		if (tw_capture_record_kind(record) != TW_CAPTURE_CALL)
			continue;
		id = place_of(record->payload[0]);
		place = tw_capture_place(seen->capture, 0, id);
		assert_true(place && place->function && place->function->module);
		snprintf(name, sizeof name, id == LATE ? "late" : "f%u", id);
		assert_string_equal(place->function->name, name);
		seen->used += !seen->is_used[id];
		seen->is_used[id] = true;
		seen->calls++;
	}
	return 0;
}

static uint64_t check_alone(const char *path, bool is_first)
{
	const struct tw_capture_options options = {.no_workers = true};
	struct seen *seen = calloc(1, sizeof *seen);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct tw_capture *capture;
	struct stat st;
	struct tw_capture_info info;
	uint64_t calls;

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(S_ISDIR(st.st_mode) ? tw_capture_open(path, &options, &capture)
					     : tw_capture_open_stream_file(fd, &options, &capture),
			 0);
	tw_capture_info(capture, &info);
	seen->capture = capture;
	tw_capture_scan(capture, NULL, check_names, seen);
	if (!is_first)
		assert_int_equal(info.places, seen->used);
	calls = seen->calls;
	tw_capture_close(capture);
	close(fd);
	free(seen);
	return calls;
}

/* Checks each segment alone.  Returns the number of all calls. */
static uint64_t check_each(uint32_t *segments)
{
	DIR *opened = opendir(capture_path);
	const struct dirent *entry;
	uint64_t calls = 0;

	assert_non_null(opened);
	*segments = 0;
	while ((entry = readdir(opened)) != NULL) {
		char path[600];
		struct stat st;

		if (!strstr(entry->d_name, ".tws"))
			continue;
		snprintf(path, sizeof path, "%s/%s", capture_path, entry->d_name);
		calls += check_alone(path, strstr(entry->d_name, "000001"));
		(*segments)++;
		assert_int_equal(stat(path, &st), 0);
		/* The first holds 5,000 definitions. */
		if (!strstr(entry->d_name, "000001"))
			assert_in_range(st.st_size, 0, 100000);
	}
	closedir(opened);
	return calls;
}

static void a_segment_has_the_names_that_it_uses(void **state)
{
	struct tw_recorder_options options = {.ring_bytes = 1 << 16, .segment_bytes = 1 << 16};
	struct tw_recorder *recorder = begin_recording(&options);
	struct tw_recorder_stats stats;
	struct tw_capture_info info;
	struct tw_capture *capture;
	struct program program;
	uint32_t segments;

	begin_program(&program, tw_recorder_ring_set(recorder), FUNCTIONS);
	produce_parts(recorder, &program, PARTS);
	assert_int_equal(tw_recorder_finish(recorder, &stats), 0);
	assert_int_equal(stats.events, PART * PARTS);
	assert_int_equal(stats.functions, FUNCTIONS + 1);
	assert_int_equal(check_each(&segments), PART * PARTS);
	assert_true(segments > 5);
	capture = open_capture();
	tw_capture_info(capture, &info);
	assert_int_equal(info.places, FUNCTIONS + 1);
	tw_capture_close(capture);
	remove_folder(capture_path);
}

/* A removed segment takes its definitions along; those of the remaining ones are complete. */
static void removed_segments_take_no_names_along(void **state)
{
	struct tw_recorder_options options = {.ring_bytes = 1 << 16, .segment_bytes = 1 << 16, .segments_kept = 3};
	struct tw_recorder *recorder = begin_recording(&options);
	struct tw_recorder_stats stats;
	struct program program;
	uint32_t segments;
	uint64_t calls;

	begin_program(&program, tw_recorder_ring_set(recorder), FUNCTIONS);
	produce_parts(recorder, &program, PARTS);
	assert_int_equal(tw_recorder_finish(recorder, &stats), 0);
	assert_true(stats.segments_removed > 2);
	calls = check_each(&segments);
	assert_int_equal(calls, stats.events - stats.events_removed);
	assert_int_equal(check_alone(capture_path, false), calls);
	remove_folder(capture_path);
}

static unsigned writes;

/* Slow at first, then full in turns: definitions and blocks are refused and written again. */
static ssize_t write_badly(int fd, const struct iovec *pieces, int count, off_t offset)
{
	if (__atomic_add_fetch(&writes, 1, __ATOMIC_RELAXED) % 7 == 0) {
		errno = ENOSPC;
		return -1;
	}
	usleep(writes < 40 ? 2500 : 0);
	return pwritev(fd, pieces, count, offset);
}

static const struct tw_segment_io bad_disk = {write_badly, fdatasync};
static const struct tw_segment_io good_disk = {pwritev, fdatasync};

static void names_that_were_refused_come_again(void **state)
{
	struct tw_recorder_options options = {.ring_bytes = 1 << 20, .segment_ns = 10000000};
	struct tw_recorder *recorder = begin_recording(&options);
	struct tw_recorder_stats stats;
	struct tw_rb_producer producer;
	struct program program;
	uint32_t segments;
	uint64_t emitted = 0;

	begin_program(&program, tw_recorder_ring_set(recorder), FUNCTIONS);
	tw_recorder_set_io(recorder, &bad_disk);
	assert_true(begin_thread(&program, &producer, 1));
	for (uint64_t i = 0; i < 300; i++) {
		for (int j = 0; j < 50; j++)
			emitted += emit_call(&producer, place_of(emitted), emitted, with_noise(0, emitted));
		tw_recorder_drain(recorder);
		usleep(300);
	}
	tw_recorder_set_io(recorder, &good_disk);
	/* A segment whose index was refused stays open: its definitions are checked as well. */
	tw_recorder_finish(recorder, &stats);
	assert_int_equal(stats.events, emitted);
	assert_int_equal(check_each(&segments), emitted);
	assert_true(segments > 2);
	remove_folder(capture_path);
}

/* Dies with events in the rings whose functions the current segment does not define. */
static void die_with_names_in_rings(void)
{
	struct tw_recorder_options options = {.ring_bytes = 1 << 20, .segment_bytes = 1 << 16};
	struct tw_recorder *recorder = begin_recording(&options);
	struct program program;
	struct tw_rb_producer producer;

	begin_program(&program, tw_recorder_ring_set(recorder), FUNCTIONS);
	assert_true(begin_thread(&program, &producer, 1));
	for (uint64_t i = 0; i < PART * 3; i++) {
		assert_true(emit_call(&producer, place_of(i), i, with_noise(0, i)));
		if (i == PART * 2)
			assert_int_equal(tw_recorder_drain(recorder), 0);
	}
	_exit(0);
}

static void recovery_names_what_it_finds(void **state)
{
	struct tw_recorder_stats stats;
	uint32_t segments;
	pid_t child = fork();
	int status;

	if (!child)
		die_with_names_in_rings();
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(tw_recover(capture_path, &stats), 0);
	assert_int_equal(check_each(&segments), PART * 3);
	remove_folder(capture_path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_segment_has_the_names_that_it_uses),
		cmocka_unit_test(removed_segments_take_no_names_along),
		cmocka_unit_test(names_that_were_refused_come_again),
		cmocka_unit_test(recovery_names_what_it_finds),
	};

	return RUN_IN_DIRECTORY(tests);
}
