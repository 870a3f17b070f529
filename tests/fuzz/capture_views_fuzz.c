/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: whatever events a capture holds, report, print in all its forms and flame show them, in bounded time
 * and memory.
 *
 * Method: the bytes are ring records: kind, flags, place, how much later, and payload words, some of which
 * begin as terms do. They are written as a real capture of two threads and shown by every command, to
 * /dev/null.
 */
#include "base/assert.h"
#include "pipeline/format/definitions.h"
#include "pipeline/format/event.h"
#include "pipeline/recorder/writer.h"
#include "tools/tool.h"
#include "tracewheel/consumer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static char directory[64], path[128];

static void clean_up(void)
{
	char file[200];

	snprintf(file, sizeof file, "%s/segment-000001.tws", path);
	unlink(file);
	rmdir(path);
	rmdir(directory);
}

static void begin(void)
{
	int null = open("/dev/null", O_WRONLY);

	strcpy(directory, "/dev/shm/tracewheel-fuzz-XXXXXX");
	TW_ASSERT(mkdtemp(directory) && null >= 0);
	snprintf(path, sizeof path, "%s/a.tw", directory);
	dup2(null, STDOUT_FILENO);
	close(null);
	atexit(clean_up);
}

/* Makes one thread's records from the bytes; returns their size. */
static uint32_t make_records(const uint8_t **data, const uint8_t *end, uint8_t *raw)
{
	static const uint64_t starts[] = {0x6c83, 0x6d83, 0x6883, 0x7483, 0x6e83, 0x6b83, 0x7783, 0};
	uint32_t used = 0;
	uint64_t ticks = 2000;

	while (end - *data >= 5 && used < 60000) {
		const uint8_t *d = *data;
		uint32_t words = d[3] % 6, size = 16 + (words + 1) / 2 * 16;
		uint64_t *record = (uint64_t *)(raw + used);

		ticks += d[4];
		*data += 5;
		memset(record, 0, size);
		record[0] = ticks;
		record[1] =
			TW_RB_HEAD(d[0] % 44 + 1, (d[1] & 0xfb) | (words % 2 ? TW_EVENT_FLAG_HALF : 0), size, d[2] % 8);
		/* Loss records have a format of their own, and are made by the writer. */
		if (TW_RB_HEAD_KIND(record[1]) == TW_EVENT_LOSS || TW_RB_HEAD_KIND(record[1]) == TW_EVENT_SWITCH) {
			words = TW_RB_HEAD_KIND(record[1]) == TW_EVENT_LOSS ? 6 : 1;
			size = 16 + (words + 1) / 2 * 16;
			memset(record + 2, 0, size - 16);
			record[1] = TW_RB_HEAD(TW_RB_HEAD_KIND(record[1]), words % 2 ? TW_EVENT_FLAG_HALF : 0, size,
					       words == 6 ? 0 : d[2] % 8);
			record[2] = ticks - d[4];
			record[3] = words == 6 ? d[2] + 1u : 0;
			words = 0;
		}
		for (uint32_t i = 0; i < words && end - *data >= 8; i++, *data += 8)
			memcpy(&record[2 + i], *data, 8);
		if (words > 1 && d[3] & 0x80) {
			record[2] = (uint64_t)(words - 1) * 8 << 32 | (d[3] >> 3 & 3);
			record[3] = (record[3] & ~UINT64_C(0xffff)) | starts[d[4] & 7];
		}
		used += size;
	}
	return used;
}

static void write_capture(const uint8_t *data, size_t bytes)
{
	static uint8_t raw[1 << 17];
	const struct tw_recorder_options options = {.path = path, .force = true};
	struct tw_store store;
	struct tw_store_image image = {.lease = 1, .process_id = 7, .process_start_time = 7, .start_ticks = 1000};
	const uint8_t *end = data + bytes, *stored;

	clean_up();
	mkdir(directory, 0700);
	TW_ASSERT(tw_store_create(&store, &options, false) == 0);
	store.header.ticks_per_second = 1000000000;
	store.header.clock = (struct tw_format_clock){1000, 1000, 5000, 1000};
	TW_ASSERT(tw_store_open_segment(&store, &image) == 1);
	for (uint32_t stream = 0; stream < 2; stream++) {
		const uint8_t *half = stream ? end : data + bytes / 2;
		uint32_t used = make_records(&data, half, raw);
		struct tw_block_header header = {.thread_id = 100 + (int32_t)stream,
						 .scheduler_id = stream,
						 .ring_lease = 50 + stream,
						 .tracee_id = stream + 1,
						 .end_pos = used,
						 .clock = {1000, 1000, 5000, 1000}};

		if (used && tw_block_encode_events(store.encoder, &header, raw, used, &stored) == 0)
			tw_store_append(&store, &image, &header, stored);
	}
	tw_store_close_segment(&store, &image, TW_SEGMENT_LAST | TW_SEGMENT_FINAL);
	tw_store_destroy(&store);
}

static void show(int (*run)(int, char **), const char *one, const char *other)
{
	char *argv[] = {(char *)"command", (char *)one, (char *)other, path, NULL};

	run(4, argv);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const struct {
		int (*run)(int, char **);
		const char *one, *other;
	} views[] = {
		{tw_tool_report, "--top", "0"},
		{tw_tool_report, "--tree", "--callers"},
		{tw_tool_report, "--json", "--sort=p99"},
		{tw_tool_print, "--tree", "--limit=1000"},
		{tw_tool_print, "--format", "erlang"},
		{tw_tool_print, "--format", "json"},
		{tw_tool_print, "--format", "text"},
		{tw_tool_print, "--format", "chrome"},
		{tw_tool_flame, "--by-process", "--least=0"},
		{tw_tool_flame, "--folded", "--by-process"},
	};

	if (!*directory)
		begin();
	if (bytes < 1 || bytes > 100000)
		return 0;
	write_capture(data + 1, bytes - 1);
	show(views[data[0] % TW_COUNT_OF(views)].run, views[data[0] % TW_COUNT_OF(views)].one,
	     views[data[0] % TW_COUNT_OF(views)].other);
	return 0;
}
