/* SPDX-License-Identifier: Apache-2.0 */
/*
 * combine.c - merge.h: the folder of a merged capture.
 *
 *	1 PATH.part, locked, with the mark of an unfinished capture   2 segments, called .part
 *	3 their own names    4 the mark is removed    5 PATH.part becomes PATH
 *
 * A merge that is cut off before 5 leaves nothing at PATH. It leaves PATH.part, which no command takes for a capture; the
 * next merge to the same path removes it.
 */
#include "base/error.h"
#include "base/export.h"
#include "base/sys.h"
#include "pipeline/combine/copy.h"
#include "pipeline/recorder/folder.h"
#include "pipeline/recorder/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the folder ---- */

struct folder {
	const char *path;
	char part[PATH_MAX];
	int fd;
};

static int check_inputs(const struct tw_merge_input *inputs, uint32_t count, const struct tw_merge_options *options)
{
	if (!count || options->reference >= count || !options->path || !*options->path)
		return TW_EBADARG;
	for (uint32_t i = 0; i < count; i++) {
		const struct tw_capture *capture = inputs[i].capture;

		if (!inputs[i].knots != !inputs[0].knots || (capture->clock_shift_ns && !inputs[i].knots))
			return TW_EBADARG;
		if (capture->directory_fd < 0 || capture->stream_in)
			return TW_ENOTSUP;
		if (capture->info.is_live)
			return TW_EFORMAT;
		for (uint32_t file = 0; file < capture->file_count; file++) {
			if (capture->files[file].is_listed && !capture->files[file].is_closed)
				return TW_EFORMAT;
		}
	}
	return 0;
}

/* Is there something at the path that may not be replaced? */
static int check_target(const struct tw_merge_options *options)
{
	uint32_t number;
	bool has_others = false;
	struct stat st;
	int fd, error;

	if (lstat(options->path, &st) < 0)
		return errno == ENOENT ? 0 : tw_error_from_errno(errno);
	if (!options->is_forced || !S_ISDIR(st.st_mode) || tw_recording_is_alive(options->path))
		return TW_EEXIST;
	fd = tw_folder_open(options->path);
	if (fd < 0)
		return fd;
	error = tw_folder_check(fd, &number, &has_others);
	close(fd);
	return error ? error : has_others ? TW_EEXIST : 0;
}

/* 1: a folder that an earlier merge left is emptied. Another merge holds a lock on its own. */
static int open_folder(struct folder *folder)
{
	size_t bytes = strlen(folder->path);
	int error = 0, mark;

	while (bytes > 1 && folder->path[bytes - 1] == '/')
		bytes--;
	if ((size_t)snprintf(folder->part, sizeof folder->part, "%.*s.part", (int)bytes, folder->path) >=
	    sizeof folder->part)
		return TW_EBADARG;
	folder->fd = tw_folder_open(folder->part);
	if (folder->fd >= 0) {
		if (flock(folder->fd, LOCK_EX | LOCK_NB) < 0)
			error = TW_EPERM;
		else
			error = tw_store_remove(folder->part);
		close(folder->fd);
	}
	folder->fd = -1;
	if (error)
		return error;
	if (mkdir(folder->part, 0777) < 0)
		return tw_error_from_errno(errno);
	folder->fd = tw_folder_open(folder->part);
	if (folder->fd < 0)
		return folder->fd;
	if (flock(folder->fd, LOCK_EX | LOCK_NB) < 0)
		return TW_EPERM;
	mark = openat(folder->fd, TW_CAPTURE_LIVE_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (mark < 0)
		return tw_error_from_errno(errno);
	if (write(mark, TW_CAPTURE_LIVE_MERGE, strlen(TW_CAPTURE_LIVE_MERGE)) < 0)
		error = tw_error_from_errno(errno);
	close(mark);
	return error;
}

static void drop_folder(struct folder *folder)
{
	if (folder->fd < 0)
		return;
	tw_store_remove(folder->part);
	close(folder->fd);
}

/* 3, 4, 5 */
static int publish(struct folder *folder, const struct tw_copy *copy, const struct tw_merge_options *options)
{
	int error = 0;

	for (uint32_t i = 0; i < copy->number_count && !error; i++) {
		char open_name[TW_SEGMENT_NAME_BYTES], name[TW_SEGMENT_NAME_BYTES];

		tw_segment_name(copy->numbers[i], true, open_name);
		tw_segment_name(copy->numbers[i], false, name);
		if (renameat(folder->fd, open_name, folder->fd, name) < 0)
			error = tw_error_from_errno(errno);
	}
	if (!error && unlinkat(folder->fd, TW_CAPTURE_LIVE_FILE, 0) < 0)
		error = tw_error_from_errno(errno);
	if (!error && fsync(folder->fd) < 0)
		error = tw_error_from_errno(errno);
	if (!error && options->is_forced) {
		error = check_target(options);
		if (!error)
			error = tw_store_remove(options->path);
		if (error == TW_ENOENT)
			error = 0;
	}
	if (!error && rename(folder->part, options->path) < 0)
		error = errno == ENOTEMPTY || errno == ENOTDIR ? TW_EEXIST : tw_error_from_errno(errno);
	if (!error) {
		close(folder->fd);
		folder->fd = -1;
	}
	return error;
}

/* ---- all of it ---- */

static void take_numbers(struct tw_copy *copy, const struct tw_capture *capture)
{
	uint64_t ring = 0, image = 0;
	uint32_t number = 0;

	for (uint32_t i = 0; i < capture->stream_count; i++)
		ring = capture->streams[i].lease > ring ? capture->streams[i].lease : ring;
	for (uint32_t i = 0; i < capture->image_count; i++)
		image = capture->images[i]->header.image_lease > image ? capture->images[i]->header.image_lease : image;
	for (uint32_t i = 0; i < capture->file_count; i++)
		number = capture->files[i].is_listed && capture->files[i].number > number ? capture->files[i].number
											  : number;
	copy->ring_lease_base += ring;
	copy->image_lease_base += image;
	copy->segment_base += number;
}

static int copy_all(struct tw_copy *copy, const struct tw_merge_input *inputs, uint32_t count)
{
	const struct tw_merge_input *reference = &inputs[copy->options->reference];
	int error = 0;

	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t cause = 0; cause < TW_ACCOUNT_CAUSES; cause++)
			copy->account[cause] += inputs[i].capture->told[cause];
	}
	for (uint32_t i = 0; i < count && !error; i++) {
		struct tw_retime retime = {0};

		copy->input = &inputs[i];
		copy->retime = inputs[i].knots ? &retime : NULL;
		if (copy->retime)
			error = tw_retime_init(&retime, &inputs[i], reference);
		if (!error)
			error = tw_copy_input(copy);
		tw_retime_fini(&retime);
		take_numbers(copy, inputs[i].capture);
	}
	return error;
}

TW_API int tw_captures_merge(const struct tw_merge_input *inputs, uint32_t count,
			     const struct tw_merge_options *options, struct tw_merge_result *result)
{
	struct folder folder = {.path = options->path, .fd = -1};
	struct tw_copy copy = {.options = options, .result = result};
	int error = check_inputs(inputs, count, options);

	*result = (struct tw_merge_result){0};
	if (!error)
		error = check_target(options);
	if (error)
		return error;
	error = tw_copy_init(&copy);
	if (!error && getrandom(&copy.capture_id, sizeof copy.capture_id, 0) != sizeof copy.capture_id)
		error = TW_EIO;
	if (!error)
		error = open_folder(&folder);
	copy.directory_fd = folder.fd;
	if (!error)
		error = copy_all(&copy, inputs, count);
	if (!error)
		error = publish(&folder, &copy, options);
	if (error)
		drop_folder(&folder);
	tw_copy_fini(&copy);
	return error;
}
