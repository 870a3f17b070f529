/* SPDX-License-Identifier: Apache-2.0 */
/* capture_help.h - shared by the tests of captures: made-up programs, directories, reading back. */
#ifndef CAPTURE_HELP_H
#define CAPTURE_HELP_H

#include "base/clock.h"
#include "base/error.h"
#include "pipeline/format/definitions.h"
#include "pipeline/format/event.h"
#include "pipeline/recorder/writer.h"
#include "tests/common/folder.h"
#include "tracewheel/consumer.h"

#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
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

/*
 * Large pieces of memory are fresh from the kernel each time, as they are in a command, which makes one recorder: else
 * libc keeps them, and clears some 30 MiB for each recorder and each recovery.  For tests that make many of these; it
 * is dearer where many captures are opened.
 */
static inline void use_fresh_memory(void)
{
#ifdef M_MMAP_THRESHOLD
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
#endif
}

static inline void begin_directory(void)
{
	/* In memory: thousands of small files are written. */
	snprintf(directory, sizeof directory, "%s/tracewheel-test-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(directory));
	snprintf(capture_path, sizeof capture_path, "%s/a.tw", directory);
}

static inline void end_directory(void)
{
	remove_folder(capture_path);
	rmdir(directory);
}

static inline int end_directory_with(int failed)
{
	end_directory();
	return failed;
}

/* The tests of main(), in a directory of their own; the number of failed ones. */
#define RUN_IN_DIRECTORY(tests) (begin_directory(), end_directory_with(cmocka_run_group_tests((tests), NULL, NULL)))

/* ---- a traced program ---- */

struct program {
	struct tw_rs *rs;
	uint32_t image;
};

static inline void define(struct program *program, uint32_t type, const void *fixed, size_t bytes, const char *text)
{
	uint8_t payload[512];
	size_t text_bytes = text ? strlen(text) : 0;

	memcpy(payload, fixed, bytes);
	memcpy(payload + bytes, text ? text : "", text_bytes);
	assert_int_equal(tw_rs_defs_append(program->rs, type, payload, bytes + text_bytes), 0);
}

/* An image with one module, `functions` functions named f0, f1 ... and a place for each, all of the same id.
 */
static inline void begin_program(struct program *program, struct tw_rs *rs, uint32_t functions)
{
	struct tw_def_image image = {.process_id = getpid(), .program_bytes = 8, .command_bytes = 3, .host_bytes = 4};
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
						   .name_bytes = (uint16_t)snprintf(name, sizeof name, "f%u", i)};
		struct tw_def_place place = {.place_id = i, .function_id = i, .kind = TW_PLACE_DECLARED};

		define(program, TW_DEF_FUNCTION, &function, sizeof function, name);
		define(program, TW_DEF_PLACE, &place, sizeof place, NULL);
	}
}

static inline bool begin_thread(struct program *program, struct tw_rb_producer *producer, uint32_t scheduler_id)
{
	struct tw_rs_claim who = {.scheduler_id = scheduler_id, .tracee_id = scheduler_id};

	if (!tw_rs_ring_claim(program->rs, &who, producer))
		return false;
	/* Grown to the configured size, as a busy thread does. */
	while (tw_rs_ring_grow(program->rs, producer) || tw_rs_ring_populate(program->rs, producer, true))
		;
	return true;
}

/* Writes one record; waits if the ring requires it. */
static inline bool emit(struct tw_rb_producer *producer, unsigned kind, uint32_t id, const uint64_t *words,
			uint32_t count)
{
	uint32_t bytes = 16 + (count + 1) / 2 * 16;
	uint64_t ticks = tw_clock_ticks();
	enum tw_rb_outcome outcome;
	void *space;
	uint64_t *record;

	while ((outcome = tw_rb_reserve(producer, bytes, ticks, &space)) == TW_RB_WAIT)
		tw_rb_wait_space(producer, bytes, 1000000000);
	if (outcome != TW_RB_OK)
		return false;
	record = space;
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
	/* A record that is no event, like the library's own. */
	bool result = emit(producer, TW_EVENT_SWITCH, tracee, &run, 1);

	producer->records--;
	return result;
}

static inline bool emit_setup(struct tw_rb_producer *producer, uint64_t ticks)
{
	bool result = emit(producer, TW_EVENT_OWN_TIME, TW_OWN_TIME_SETUP, &ticks, 1);

	producer->records--;
	return result;
}

/* ---- handmade captures: the test chooses every tick and every byte ---- */

enum { MAKER_STREAMS = 16 };

struct maker {
	struct tw_store store;
	struct tw_store_image image;
	struct maker_stream {
		uint64_t pos;
		uint64_t sequence;
		struct tw_block_tracee tracee;
		uint64_t lost[TW_FORMAT_CAUSES];
		int32_t thread_id; /* 0: a number of its own */
		uint64_t thread_start;
		uint8_t raw[TW_BLOCK_RAW_BYTES_MAX];
		uint32_t bytes;
	} streams[MAKER_STREAMS];
};

static inline void maker_segment(struct maker *maker, uint64_t image)
{
	maker->image = (struct tw_store_image){.lease = image,
					       .process_id = (int32_t)(1000 + image),
					       .process_start_time = 7,
					       .start_ticks = 1000};
	assert_int_equal(tw_store_open_segment(&maker->store, &maker->image), 1);
}

/* A capture whose ticks are nanoseconds: on a machine, of which it has one reading of the clocks, of one image. */
static inline struct maker *begin_maker_at(const char *path, uint8_t boot, const struct tw_format_clock *clock,
					   uint64_t image)
{
	struct maker *maker = calloc(1, sizeof *maker);
	const struct tw_recorder_options options = {.path = path};

	remove_folder(path);
	assert_int_equal(tw_store_create(&maker->store, &options, false), 0);
	maker->store.header.ticks_per_second = 1000000000;
	maker->store.header.capture_id = image;
	memset(maker->store.header.boot_id, boot, sizeof(maker->store.header.boot_id));
	maker->store.header.clock = *clock;
	maker_segment(maker, image);
	return maker;
}

/* The same at the usual path. */
static inline struct maker *begin_maker(void)
{
	return begin_maker_at(capture_path, 7, &(struct tw_format_clock){1000, 1000, 5000, 1000}, 1);
}

static inline void maker_header(const struct maker *maker, uint32_t number, struct tw_block_header *header)
{
	const struct maker_stream *stream = &maker->streams[number];

	memset(header, 0, sizeof *header);
	header->thread_id = stream->thread_id ? stream->thread_id : (int32_t)(100 + number);
	header->thread_start = stream->thread_start;
	header->scheduler_id = number + 1;
	header->ring_lease = 50 + number;
	header->tracee_id = stream->tracee.tracee_id;
	header->run_seq = stream->tracee.run_seq;
	header->first_sequence = stream->sequence;
	header->first_pos = stream->pos;
	header->end_pos = stream->pos + stream->bytes;
	header->clock = maker->store.header.clock;
	memcpy(header->lost, stream->lost, sizeof header->lost);
}

/* Writes a stream's pending records; returns the block's header as written. */
static inline struct tw_block_header maker_flush(struct maker *maker, uint32_t number)
{
	struct maker_stream *stream = &maker->streams[number];
	struct tw_block_header header = {0};
	const uint8_t *stored;

	if (!stream->bytes)
		return header;
	maker_header(maker, number, &header);
	assert_int_equal(tw_block_encode_events(maker->store.encoder, &header, stream->raw, stream->bytes, &stored), 0);
	assert_int_equal(tw_store_append(&maker->store, &maker->image, &header, stored), 0);
	stream->tracee = tw_block_encoder_tracee(maker->store.encoder);
	stream->pos = header.end_pos;
	stream->sequence = header.end_sequence;
	memcpy(stream->lost, header.lost, sizeof header.lost);
	stream->bytes = 0;
	return header;
}

static inline void maker_record(struct maker *maker, uint32_t number, uint64_t ticks, unsigned kind, uint32_t id,
				const uint64_t *words, uint32_t count)
{
	struct maker_stream *stream = &maker->streams[number];
	uint32_t bytes = 16 + (count + 1) / 2 * 16;
	uint64_t *record = (uint64_t *)(stream->raw + stream->bytes);

	assert_true(stream->bytes + bytes <= sizeof stream->raw);
	memset(record, 0, bytes);
	record[0] = ticks;
	record[1] = TW_RB_HEAD(kind, count % 2 ? TW_EVENT_FLAG_HALF : 0, bytes, id);
	if (count)
		memcpy(record + 2, words, count * sizeof *words);
	stream->bytes += bytes;
}

static inline void maker_call(struct maker *maker, uint32_t number, uint64_t ticks, uint64_t a, uint64_t b)
{
	const uint64_t words[2] = {a, b};

	maker_record(maker, number, ticks, TW_EVENT_CALL, (uint32_t)(a % 4), words, 2);
}

static inline void maker_definitions(struct maker *maker, const void *bytes, uint32_t count, uint64_t first_pos)
{
	struct tw_block_header header = {.type = TW_BLOCK_DEFINITIONS,
					 .first_pos = first_pos,
					 .end_pos = first_pos + count};
	const uint8_t *stored;

	header.clock = maker->store.header.clock;
	tw_block_encode_definitions(maker->store.encoder, &header, bytes, count, &stored);
	assert_int_equal(tw_store_append(&maker->store, &maker->image, &header, stored), 0);
}

/* Closes the segment, or leaves it as a crash would. */
static inline void end_maker(struct maker *maker, bool is_closed)
{
	for (uint32_t i = 0; i < MAKER_STREAMS; i++)
		maker_flush(maker, i);
	if (is_closed)
		assert_int_equal(tw_store_close_segment(&maker->store, &maker->image,
							TW_SEGMENT_LAST | TW_SEGMENT_FINAL),
				 0);
	else
		tw_segment_abandon(&maker->image.segment);
	tw_store_destroy(&maker->store);
	free(maker);
}

/* ---- reading back ---- */

static inline struct tw_capture *open_capture(void)
{
	/* More workers than most machines have processors, which tests more interleavings. */
	const struct tw_capture_options options = {.workers = 4};
	struct tw_capture *capture = NULL;

	assert_int_equal(tw_capture_open(capture_path, &options, &capture), 0);
	return capture;
}

#endif
