/* SPDX-License-Identifier: Apache-2.0 */
/* capture_fuzz.h - a capture directory on tmpfs whose one segment is rewritten for each input, and read
 * whole. */
#ifndef CAPTURE_FUZZ_H
#define CAPTURE_FUZZ_H

#include "base/assert.h"
#include "base/checksum.h"
#include "pipeline/block/segment.h"
#include "tracewheel/capture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char fuzz_directory[64];
static int fuzz_fd = -1;

static inline void fuzz_remove(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/segment-000001.tws", fuzz_directory);
	unlink(path);
	rmdir(fuzz_directory);
}

static inline void fuzz_write(const uint8_t *bytes, size_t count)
{
	char path[128];

	if (fuzz_fd < 0) {
		strcpy(fuzz_directory, "/dev/shm/tracewheel-fuzz-XXXXXX");
		TW_ASSERT(mkdtemp(fuzz_directory));
		snprintf(path, sizeof(path), "%s/segment-000001.tws", fuzz_directory);
		fuzz_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		TW_ASSERT(fuzz_fd >= 0);
		atexit(fuzz_remove);
	}
	TW_ASSERT(ftruncate(fuzz_fd, 0) == 0);
	TW_ASSERT(pwrite(fuzz_fd, bytes, count, 0) == (ssize_t)count);
}

static inline int fuzz_look_at_batch(void *context, const struct tw_capture_batch *batch)
{
	const struct tw_capture_record *record = batch->first;
	uint64_t *sum = context;
	uint32_t records = 0;

	for (; record < batch->end; record = tw_capture_record_next(record), records++) {
		uint32_t words = tw_capture_record_words(record);

		*sum += words ? record->payload[words - 1] : record->ticks;
	}
	TW_ASSERT(record == batch->end && records == batch->records);
	return 0;
}

/* Calls every query on the capture. */
static inline void fuzz_read(void)
{
	const struct tw_capture_options options = {.no_workers = true};
	const struct tw_capture_filter filters[] = {{0},
						    {.from_ns = 1u << 20, .to_ns = 1u << 30},
						    {.by_time_only = true}};
	struct tw_capture *capture;
	struct tw_capture_info info;
	uint64_t sum = 0;

	if (tw_capture_open(fuzz_directory, &options, &capture))
		return;
	for (unsigned i = 0; i < 3; i++) {
		const struct tw_capture_event *batch;
		struct tw_capture_events *events;
		int64_t count;

		if (tw_capture_events_create(capture, &filters[i], &events))
			break;
		while ((count = tw_capture_events_next(events, &batch)) > 0) {
			for (int64_t j = 0; j < count; j++) {
				if (batch[j].kind == TW_CAPTURE_LOSS)
					sum += tw_capture_event_loss(&batch[j])->lost[TW_LOST_NO_RING];
				if (batch[j].payload_words)
					sum += batch[j].payload[batch[j].payload_words - 1];
			}
		}
		tw_capture_events_destroy(events);
	}
	tw_capture_scan(capture, NULL, fuzz_look_at_batch, &sum);
	tw_capture_info(capture, &info);
	for (uint32_t i = 0; i < info.damages && tw_capture_damage(capture, i); i++)
		sum += tw_capture_damage(capture, i)->offset;
	tw_capture_close(capture);
	__asm__ volatile("" : : "r"(sum));
}

/* Corrects the checksums of a block header and its payload, as far as they lie inside. */
static inline void fuzz_seal_block(uint8_t *at, size_t capacity)
{
	struct tw_block_header header;

	memcpy(&header, at, sizeof(header));
	header.magic = TW_BLOCK_MAGIC;
	header.version = TW_FORMAT_VERSION;
	header.header_bytes = sizeof(header);
	if (header.stored_bytes <= capacity - sizeof(header))
		header.payload_checksum = tw_checksum64(at + sizeof(header), header.stored_bytes);
	header.header_checksum = tw_block_header_checksum(&header);
	memcpy(at, &header, sizeof(header));
}

#endif
