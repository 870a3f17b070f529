/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.c - the folder of a capture that is made of others.
 *
 *	1 PATH.part, locked, with the mark of an unfinished capture   2 segments, called .part
 *	3 their own names    4 the mark is removed    5 PATH.part becomes PATH
 *
 * A call that is cut off before 5 leaves nothing at PATH. It leaves PATH.part, which no command takes for a capture; the
 * next call with the same path removes it.
 */
#include "pipeline/combine/target.h"
#include "base/error.h"
#include "base/sys.h"
#include "pipeline/block/segment.h"
#include "pipeline/recorder/folder.h"
#include "pipeline/recorder/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Is there something at the path that may not be replaced? */
int tw_target_check(const struct tw_target *target)
{
	uint32_t number;
	bool has_others = false;
	struct stat st;
	int fd, error;

	if (lstat(target->path, &st) < 0)
		return errno == ENOENT ? 0 : tw_error_from_errno(errno);
	if (!target->is_forced || !S_ISDIR(st.st_mode) || tw_recording_is_alive(target->path))
		return TW_EEXIST;
	fd = tw_folder_open(target->path);
	if (fd < 0)
		return fd;
	error = tw_folder_check(fd, &number, &has_others);
	close(fd);
	return error ? error : has_others ? TW_EEXIST : 0;
}

/* 1: a folder that an earlier call left is emptied. Another call holds a lock on its own. */
int tw_target_open(struct tw_target *target)
{
	size_t bytes = strlen(target->path);
	int error = 0;

	while (bytes > 1 && target->path[bytes - 1] == '/')
		bytes--;
	if ((size_t)snprintf(target->part, sizeof target->part, "%.*s.part", (int)bytes, target->path) >=
	    sizeof target->part)
		return TW_EBADARG;
	target->fd = tw_folder_open(target->part);
	if (target->fd >= 0) {
		if (flock(target->fd, LOCK_EX | LOCK_NB) < 0)
			error = TW_EPERM;
		else
			error = tw_store_remove(target->part);
		close(target->fd);
	}
	target->fd = -1;
	if (error)
		return error;
	/* As that of a recording: only its user may read it. */
	if (mkdir(target->part, 0700) < 0)
		return tw_error_from_errno(errno);
	target->fd = tw_folder_open(target->part);
	if (target->fd < 0)
		return target->fd;
	if (flock(target->fd, LOCK_EX | LOCK_NB) < 0)
		return TW_EPERM;
	return tw_folder_put(target->fd, TW_CAPTURE_LIVE_FILE, TW_CAPTURE_LIVE_MERGE, false);
}

void tw_target_drop(struct tw_target *target)
{
	if (target->fd < 0)
		return;
	tw_store_remove(target->part);
	close(target->fd);
}

/* 3, 4, 5 */
int tw_target_publish(struct tw_target *target, const uint32_t *numbers, uint32_t count)
{
	int error = 0;

	for (uint32_t i = 0; i < count && !error; i++) {
		char open_name[TW_SEGMENT_NAME_BYTES], name[TW_SEGMENT_NAME_BYTES];

		tw_segment_name(numbers[i], true, open_name);
		tw_segment_name(numbers[i], false, name);
		if (renameat(target->fd, open_name, target->fd, name) < 0)
			error = tw_error_from_errno(errno);
	}
	if (!error && unlinkat(target->fd, TW_CAPTURE_LIVE_FILE, 0) < 0)
		error = tw_error_from_errno(errno);
	if (!error && fsync(target->fd) < 0)
		error = tw_error_from_errno(errno);
	if (!error && target->is_forced) {
		error = tw_target_check(target);
		if (!error)
			error = tw_store_remove(target->path);
		if (error == TW_ENOENT)
			error = 0;
	}
	if (!error && rename(target->part, target->path) < 0)
		error = errno == ENOTEMPTY || errno == ENOTDIR ? TW_EEXIST : tw_error_from_errno(errno);
	if (!error) {
		close(target->fd);
		target->fd = -1;
	}
	return error;
}
