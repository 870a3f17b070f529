/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: whatever a dead process left in the memory of a ring set, recovery reads it or refuses.
 *
 * Method: a ring set with two rings, an image and definitions; the bytes are changes to it: {where, offset, count, the
 * new bytes}. Then recovery runs, except for the disk.
 */
#include "base/assert.h"
#include "base/error.h"
#include "pipeline/format/definitions.h"
#include "pipeline/format/event.h"
#include "pipeline/recorder/writer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { RINGS = 2, RING_BYTES = 1 << 16, KEPT_DEFINITIONS = 4096 };

/* The original set, and the parts that may be changed. */
static struct tw_rs set;
static struct tw_rs_config config_before;
static struct tw_rs_control *control_before;
static struct tw_rs_image_head *head_before;
static uint8_t *rings_before;
static uint8_t definitions_before[KEPT_DEFINITIONS];
static size_t rings_bytes;
/* The whole of the image's file, and the file `config`. */
static uint8_t *image_file;
static int config_fd;
static char capture_path[64];

static ssize_t write_nowhere(int fd, const struct iovec *pieces, int count, off_t offset)
{
	ssize_t all = 0;

	for (int i = 0; i < count; i++)
		all += (ssize_t)pieces[i].iov_len;
	return all;
}

static int sync_nothing(int fd)
{
	return 0;
}

static const struct tw_segment_io nowhere = {write_nowhere, sync_nothing};

static void clean_up(void)
{
	tw_rs_destroy(&set);
	tw_store_remove(capture_path);
}

static void fill_ring(void)
{
	struct tw_rs_claim who = {.scheduler_id = 1, .tracee_id = 1};
	struct tw_rb_producer producer;
	void *space;

	TW_ASSERT(tw_rs_ring_claim(&set, &who, &producer));
	for (uint64_t i = 0; i < 60; i++) {
		uint32_t bytes = i % 10 == 9 ? 48 : 16;
		uint64_t *record;

		TW_ASSERT(tw_rb_reserve(&producer, bytes, 100 + i, &space) == TW_RB_OK);
		record = space;
		memset(record, 0, bytes);
		record[0] = 100 + i;
		record[1] = TW_RB_HEAD(i % 20 == 5 ? TW_EVENT_TERM_FIRST : TW_EVENT_CALL, 0, bytes, i);
		tw_rb_commit(&producer, bytes);
	}
}

static void make_set(void)
{
	const struct tw_rs_options options = {.ring_bytes = RING_BYTES, .cap_bytes = 1 << 20};
	const struct tw_def_atom atom = {.atom_id = 1, .text_bytes = 2};
	uint8_t definition[sizeof(atom) + 2];
	char config_path[300];
	uint32_t image;

	TW_ASSERT(tw_rs_create(&set, &options) == 0);
	TW_ASSERT(tw_rs_image_claim(&set, &image) == 0);
	memcpy(definition, &atom, sizeof(atom));
	memcpy(definition + sizeof(atom), "ok", 2);
	TW_ASSERT(tw_rs_defs_append(&set, TW_DEF_ATOM, definition, sizeof(definition)) == 0);
	for (int i = 0; i < RINGS; i++)
		fill_ring();
	TW_ASSERT(tw_rs_scan(&set) == RINGS);
	image_file = set.images[image].memory;
	/* Its owner is a dead process. */
	config_before = set.config;
	config_before.owner_start_time = 1;
	snprintf(config_path, sizeof(config_path), "%s/config", set.path);
	config_fd = open(config_path, O_RDWR | O_CLOEXEC);
	rings_bytes = RINGS * (RING_BYTES + TW_PAGE_BYTES);
	control_before = malloc(sizeof(*control_before));
	head_before = malloc(sizeof(*head_before));
	rings_before = malloc(rings_bytes);
	TW_ASSERT(config_fd >= 0 && control_before && head_before && rings_before);
	memcpy(control_before, set.control, sizeof(*control_before));
	memcpy(head_before, image_file, sizeof(*head_before));
	memcpy(rings_before, image_file + TW_RS_RINGS_AT, rings_bytes);
	memcpy(definitions_before, image_file + TW_RS_HEAD_BYTES, KEPT_DEFINITIONS);
	snprintf(capture_path, sizeof(capture_path), "/dev/shm/tracewheel-fuzz-%d.tw", (int)getpid());
	atexit(clean_up);
}

static void change(const uint8_t *data, size_t bytes)
{
	struct tw_rs_config config = config_before;
	struct tw_rs_image_head *head = (struct tw_rs_image_head *)(void *)image_file;
	uint8_t *const rings = image_file + TW_RS_RINGS_AT, *const definitions = image_file + TW_RS_HEAD_BYTES;
	uint8_t *const pieces[] = {(uint8_t *)&config,
				   (uint8_t *)set.control,
				   (uint8_t *)set.control->slots,
				   (uint8_t *)head,
				   (uint8_t *)head->rings,
				   rings,
				   rings + TW_PAGE_BYTES,
				   definitions};
	const size_t sizes[] = {sizeof(config),
				sizeof(*set.control) - sizeof(set.control->slots),
				256,
				sizeof(*head) - sizeof(head->rings),
				256,
				rings_bytes,
				rings_bytes - TW_PAGE_BYTES,
				KEPT_DEFINITIONS};

	memcpy(set.control, control_before, sizeof(*control_before));
	memcpy(head, head_before, sizeof(*head));
	memcpy(rings, rings_before, rings_bytes);
	memcpy(definitions, definitions_before, KEPT_DEFINITIONS);
	while (bytes >= 4) {
		unsigned piece = data[0] % TW_COUNT_OF(pieces);
		size_t offset = ((size_t)data[1] << 8 | data[2]) % sizes[piece], count = data[3];

		data += 4;
		bytes -= 4;
		count = count < bytes ? count : bytes;
		count = count < sizes[piece] - offset ? count : sizes[piece] - offset;
		memcpy(pieces[piece] + offset, data, count);
		data += count;
		bytes -= count;
	}
	TW_ASSERT(pwrite(config_fd, &config, sizeof(config), 0) == sizeof(config));
}

static void drain(struct tw_writer *writer, bool is_snapshot)
{
	uint32_t count = tw_writer_scan(writer);

	for (uint32_t i = 0; i < count; i++) {
		if (!writer->rings[i].is_seen)
			continue;
		tw_writer_count_unstored(writer, i);
		if (is_snapshot)
			tw_writer_snapshot_ring(writer, i);
		tw_writer_drain_ring(writer, i, 1);
		tw_writer_end_ring(writer, i);
	}
	for (uint32_t i = 0; i < tw_rs_image_count(&writer->rs); i++) {
		enum tw_rs_image_state state = tw_rs_image_state(&writer->rs, i);

		if (state == TW_RS_IMAGE_LIVE || state == TW_RS_IMAGE_ENDED)
			tw_writer_end_image(writer, i, true);
		if (writer->images[i].store.is_open)
			tw_segment_abandon(&writer->images[i].store.segment);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	const struct tw_recorder_options options = {.path = capture_path, .force = true};
	struct tw_writer *writer;

	if (!set.control)
		make_set();
	if (!bytes)
		return 0;
	change(data + 1, bytes - 1);
	writer = calloc(1, sizeof(*writer));
	TW_ASSERT(writer);
	writer->is_dead = true;
	if (tw_rs_open_dead(&writer->rs, set.path, false) == 0) {
		TW_ASSERT(tw_writer_init(writer) == 0 && tw_store_create(&writer->store, &options, false) == 0);
		writer->store.io = &nowhere;
		drain(writer, data[0] & 1);
		tw_store_destroy(&writer->store);
		tw_writer_fini(writer);
		tw_rs_detach(&writer->rs);
	}
	free(writer);
	return 0;
}
