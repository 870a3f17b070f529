/* SPDX-License-Identifier: Apache-2.0 */
/* capture_help.h - what the tests of captures share: made-up programs, directories, reading back. */
#ifndef CAPTURE_HELP_H
#define CAPTURE_HELP_H

#include "base/clock.h"
#include "base/error.h"
#include "pipeline/definitions.h"
#include "pipeline/event.h"
#include "pipeline/writer.h"
#include "tracewheel/consumer.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

/* A directory of this test's own; removed by end_directory(). */
static char directory[256];
static char capture_path[300];

static inline void begin_directory(void)
{
	snprintf(directory, sizeof directory, "%s/tracewheel-test-XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	assert_non_null(mkdtemp(directory));
	snprintf(capture_path, sizeof capture_path, "%s/a.tw", directory);
}

static inline void remove_capture(const char *path)
{
	DIR *opened = opendir(path);
	const struct dirent *entry;

	if (!opened)
		return;
	while ((entry = readdir(opened)) != NULL)
		unlinkat(dirfd(opened), entry->d_name, 0);
	closedir(opened);
	rmdir(path);
}

static inline void end_directory(void)
{
	remove_capture(capture_path);
	rmdir(directory);
}

/* ---- a traced program ---- */

struct program {
	struct tw_rs *rs;
	uint32_t image;
};

static inline void define(struct program *program, uint32_t type, const void *fixed, size_t bytes,
			  const char *text)
{
	uint8_t payload[512];
	size_t text_bytes = text ? strlen(text) : 0;

	memcpy(payload, fixed, bytes);
	memcpy(payload + bytes, text ? text : "", text_bytes);
	assert_int_equal(tw_rs_defs_append(program->rs, program->image, type, payload, bytes + text_bytes),
			 0);
}

/* An image with one module, `functions` functions named f0, f1 ... and a place for each, all of the same id.
 */
static inline void begin_program(struct program *program, struct tw_rs *rs, uint32_t functions)
{
	struct tw_def_image image = {
		.process_id = getpid(), .program_bytes = 8, .command_bytes = 3, .host_bytes = 4};
	struct tw_def_module module = {.module_id = 1, .is_declared = 1, .name_bytes = 3};

	program->rs = rs;
	assert_int_equal(tw_rs_image_claim(rs, &program->image), 0);
	define(program, TW_DEF_IMAGE, &image, sizeof image, "/bin/appapphost");
	define(program, TW_DEF_MODULE, &module, sizeof module, "lib");
	for (uint32_t i = 0; i < functions; i++) {
		char name[16];
		struct tw_def_function function = {.function_id = i,
						   .module_id = 1,
						   .arity = 2,
						   .name_bytes =
							   (uint16_t)snprintf(name, sizeof name, "f%u", i)};
		struct tw_def_place place = {.place_id = i, .function_id = i, .kind = TW_PLACE_DECLARED};

		define(program, TW_DEF_FUNCTION, &function, sizeof function, name);
		define(program, TW_DEF_PLACE, &place, sizeof place, NULL);
	}
}

static inline bool begin_thread(struct program *program, struct tw_rb_producer *producer,
				uint32_t scheduler_id)
{
	struct tw_rs_claim who = {program->image, 0, scheduler_id, scheduler_id};

	return tw_rs_ring_claim(program->rs, &who, producer);
}

/* Writes one record; waits where the ring says so. */
static inline bool emit(struct tw_rb_producer *producer, unsigned kind, uint32_t id, const uint64_t *words,
			uint32_t count)
{
	uint32_t bytes = 16 + (count + 1) / 2 * 16;
	uint64_t ticks = tw_clock_ticks();
	enum tw_rb_outcome outcome;
	void *room;
	uint64_t *record;

	while ((outcome = tw_rb_reserve(producer, bytes, ticks, &room)) == TW_RB_WAIT)
		tw_rb_wait_room(producer, bytes, 1000000000);
	if (outcome != TW_RB_OK)
		return false;
	record = room;
	record[0] = ticks;
	record[1] = TW_RB_HEAD(kind, count % 2 ? TW_EVENT_FLAG_HALF : 0, bytes, id);
	memcpy(record + 2, words, count * sizeof *words);
	if (count % 2)
		record[2 + count] = 0;
	tw_rb_commit(producer, bytes);
	return true;
}

static inline bool emit_call(struct tw_rb_producer *producer, uint32_t place, uint64_t a, uint64_t b)
{
	const uint64_t words[2] = {a, b};

	return emit(producer, TW_EVENT_CALL, place, words, 2);
}

static inline bool emit_switch(struct tw_rb_producer *producer, uint32_t tracee, uint64_t run)
{
	return emit(producer, TW_EVENT_SWITCH, tracee, &run, 1);
}

/* ---- reading back ---- */

static inline struct tw_capture *open_capture(void)
{
	struct tw_capture *capture = NULL;

	assert_int_equal(tw_capture_open(capture_path, NULL, &capture), 0);
	return capture;
}

#endif
