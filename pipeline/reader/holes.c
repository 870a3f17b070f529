/* SPDX-License-Identifier: Apache-2.0 */
/* holes.c - segment.h: which segments of a capture are absent, and whether they were asked for. */
#include "base/error.h"
#include "base/export.h"
#include "base/grow.h"
#include "pipeline/reader/reader.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Longer lines are no keys. */
#define LINE_BYTES 256
#define ASKED_MAX  (UINT32_C(1) << 20)

void tw_source_add_hole(struct tw_capture *capture, const struct tw_source_hole *hole)
{
	if (tw_grow_one(capture->holes, capture->hole_count))
		capture->holes[capture->hole_count++] = *hole;
}

/* The first or last moment of a file's events; 0: it has none. */
static uint64_t bound_of(const struct tw_capture *capture, uint32_t file, bool is_end)
{
	uint64_t ticks = 0;
	bool is_found = false;

	for (uint32_t i = 0; i < capture->block_count; i++) {
		const struct tw_source_block *block = &capture->blocks[i];
		uint64_t bound = is_end ? block->header.last_ticks : block->header.first_ticks;

		if (block->file != file || (block->header.flags & TW_BLOCK_FLAG_STATES) ||
		    (is_found && (is_end ? bound <= ticks : bound >= ticks)))
			continue;
		ticks = bound;
		is_found = true;
	}
	return is_found ? tw_capture_ns(capture, ticks) : 0;
}

TW_API bool tw_capture_hole(const struct tw_capture *capture, uint32_t number, struct tw_capture_hole *out)
{
	const struct tw_source_hole *hole = number < capture->hole_count ? &capture->holes[number] : NULL;

	if (!hole)
		return false;
	*out = hole->info;
	out->from_ns = bound_of(capture, hole->before, true);
	out->to_ns = bound_of(capture, hole->after, false);
	return true;
}

/* ---- the segments that were asked for ---- */

static int add_asked(struct tw_capture *capture, const char *line, size_t bytes)
{
	struct tw_segment_identity identity;

	while (bytes && (line[bytes - 1] == '\n' || line[bytes - 1] == '\r'))
		bytes--;
	if (!tw_segment_parse_key(line, bytes, &identity) || capture->asked_count == ASKED_MAX)
		return 0;
	if (!tw_grow_one(capture->asked, capture->asked_count))
		return TW_ENOMEM;
	capture->asked[capture->asked_count++] = identity;
	return 0;
}

int tw_source_read_asked(struct tw_capture *capture)
{
	int fd = openat(capture->directory_fd, TW_CAPTURE_ASKED_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	char line[LINE_BYTES];
	int error = 0;

	if (!file) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while (!error && fgets(line, sizeof line, file))
		error = add_asked(capture, line, strlen(line));
	fclose(file);
	capture->is_asked = capture->asked_count != 0;
	return error;
}

uint32_t tw_source_asked_absent(const struct tw_capture *capture)
{
	uint32_t absent = 0;

	for (uint32_t i = 0; i < capture->asked_count; i++) {
		const struct tw_segment_identity *asked = &capture->asked[i];
		bool is_here = false;

		for (uint32_t j = 0; j < capture->file_count && !is_here; j++) {
			const struct tw_source_file *file = &capture->files[j];
			const struct tw_source_image *image = file->is_listed ? capture->images[file->image] : NULL;

			is_here = image && file->number == asked->number &&
				  image->info.capture_id == asked->capture_id &&
				  memcmp(image->info.boot_id, asked->boot_id, sizeof asked->boot_id) == 0;
		}
		absent += !is_here;
	}
	return absent;
}

TW_API bool tw_capture_is_asked(const struct tw_capture *capture)
{
	return capture->is_asked;
}
