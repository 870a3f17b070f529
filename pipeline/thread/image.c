/* SPDX-License-Identifier: Apache-2.0 */
/* image.c - describes the calling process in the definitions log of its image. */
#include "pipeline/thread/image.h"
#include "pipeline/format/definitions.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static size_t read_command(char *out, size_t capacity)
{
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t bytes = 0;

	if (fd >= 0) {
		bytes = read(fd, out, capacity);
		close(fd);
	}
	return bytes > 0 ? (size_t)bytes : 0;
}

int tw_image_define(struct tw_rs *rs)
{
	const struct tw_rs_image_head *image = rs->own.head;
	struct {
		struct tw_def_image fixed;
		char text[2 * TW_PATH_BYTES_MAX + 256];
	} record = {.fixed = {.process_id = image->process_id,
			      .parent_process_id = image->parent_process_id,
			      .start_ticks = image->start_ticks}};
	ssize_t program_bytes = readlink("/proc/self/exe", record.text, TW_PATH_BYTES_MAX);
	size_t used = program_bytes > 0 ? (size_t)program_bytes : 0, bytes;

	record.fixed.program_bytes = (uint16_t)used;
	bytes = read_command(record.text + used, TW_PATH_BYTES_MAX);
	record.fixed.command_bytes = (uint16_t)bytes;
	used += bytes;
	gethostname(record.text + used, 255);
	bytes = strnlen(record.text + used, 255);
	record.fixed.host_bytes = (uint16_t)bytes;
	return tw_rs_defs_append(rs, TW_DEF_IMAGE, &record, sizeof record.fixed + used + bytes);
}
