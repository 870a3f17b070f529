/* SPDX-License-Identifier: Apache-2.0 */
/* folder.c - the folder of a capture: made, checked, moved away, removed. */
#include "pipeline/recorder/folder.h"

#include "base/error.h"
#include "base/export.h"
#include "pipeline/recorder/store.h"
#include "ringbuf/ringset.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The directory with an offset of its own; NULL: it cannot be read. */
static DIR *open_again(int directory_fd)
{
	int fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);

	if (!directory && fd >= 0)
		close(fd);
	return directory;
}

int tw_folder_check(int directory_fd, uint32_t *next_number, bool *has_others)
{
	DIR *directory = open_again(directory_fd);
	const struct dirent *entry;

	*next_number = 1;
	*has_others = false;
	if (!directory)
		return TW_EIO;
	while ((entry = readdir(directory)) != NULL) {
		uint32_t number;
		bool is_open;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    strcmp(entry->d_name, TW_CAPTURE_LIVE_FILE) == 0)
			continue;
		if (!tw_segment_parse_name(entry->d_name, &number, &is_open))
			*has_others = true;
		else if (number >= *next_number && number < UINT32_MAX)
			*next_number = number + 1;
	}
	closedir(directory);
	return 0;
}

static void remove_files(int directory_fd)
{
	DIR *directory = open_again(directory_fd);
	const struct dirent *entry;

	if (!directory)
		return;
	while ((entry = readdir(directory)) != NULL) {
		uint32_t number;
		bool is_open;

		if (tw_segment_parse_name(entry->d_name, &number, &is_open))
			unlinkat(directory_fd, entry->d_name, 0);
	}
	closedir(directory);
	unlinkat(directory_fd, TW_CAPTURE_LIVE_FILE, 0);
}

int tw_folder_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? tw_error_from_errno(errno) : fd;
}

int tw_store_remove(const char *path)
{
	uint32_t number;
	bool has_others;
	int fd = tw_folder_open(path), error;

	if (fd < 0)
		return fd;
	error = tw_folder_check(fd, &number, &has_others);
	if (!error && has_others)
		error = TW_EEXIST;
	if (!error)
		remove_files(fd);
	close(fd);
	if (!error && rmdir(path) < 0)
		error = tw_error_from_errno(errno);
	return error;
}

/* Renames a capture, and nothing else, to PATH.old. */
static int move_away(const char *path)
{
	char old[PATH_MAX];
	uint32_t number;
	bool has_others;
	int fd = tw_folder_open(path), error = fd < 0 ? TW_EEXIST : tw_folder_check(fd, &number, &has_others);

	if (fd >= 0)
		close(fd);
	if (error)
		return error;
	if (has_others)
		return TW_EEXIST;
	if ((size_t)snprintf(old, sizeof old, "%s.old", path) >= sizeof old)
		return TW_EBADARG;
	error = tw_store_remove(old);
	if (error && error != TW_ENOENT)
		return error;
	return rename(path, old) < 0 ? tw_error_from_errno(errno) : 0;
}

const char *tw_folder_identity(int directory_fd, char line[TW_FOLDER_LINE_BYTES])
{
	struct stat st;

	line[0] = '\0';
	if (fstat(directory_fd, &st) == 0)
		snprintf(line, TW_FOLDER_LINE_BYTES, "folder %llu %llu %u\n", (unsigned long long)st.st_dev,
			 (unsigned long long)st.st_ino, (unsigned)st.st_uid);
	return line;
}

const char *tw_folder_line(const char *text, const char *key, int *bytes)
{
	size_t key_bytes = strlen(key);

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		*bytes = (int)strcspn(line, "\n") - (int)key_bytes;
		if (strncmp(line, key, key_bytes) == 0)
			return line + key_bytes;
	}
	return NULL;
}

bool tw_folder_has_set(int directory_fd, const char *text)
{
	char line[TW_FOLDER_LINE_BYTES + 1] = "\n";
	const char *expected = tw_folder_identity(directory_fd, line + 1);

	return *expected && (strncmp(text, expected, strlen(expected)) == 0 || strstr(text, line));
}

TW_API bool tw_recording_is_alive(const char *capture_path)
{
	char ring_set[TW_RS_PATH_BYTES];
	struct tw_rs rs;
	int fd = tw_folder_open(capture_path), error;

	if (fd < 0)
		return false;
	error = tw_store_read_mark(fd, ring_set, sizeof ring_set);
	close(fd);
	if (!error)
		error = tw_rs_open_dead(&rs, ring_set, false);
	if (!error)
		tw_rs_detach(&rs);
	return error == TW_EEXIST;
}

/* Removes or renames an old capture; never while a recording is alive, and never anything that is no capture. */
static int replace(const char *path, bool keeps_old)
{
	char ring_set[TW_RS_PATH_BYTES];
	struct tw_rs rs;
	bool is_own;
	int fd = tw_folder_open(path), error;

	if (fd < 0)
		return TW_EEXIST;
	error = tw_store_read_mark(fd, ring_set, sizeof ring_set);
	if (error == 0)
		error = tw_rs_open_dead(&rs, ring_set, false);
	is_own = error == 0 && tw_folder_has_set(fd, rs.text);
	close(fd);
	if (error == TW_EEXIST)
		return error;
	if (error == 0)
		tw_rs_detach(&rs);
	/* The rings of another capture are left alone. */
	if (is_own && !keeps_old)
		tw_rs_remove(ring_set);
	return keeps_old ? move_away(path) : tw_store_remove(path);
}

int tw_folder_make(const struct tw_recorder_options *options)
{
	int error;

	if (mkdir(options->path, 0700) == 0)
		return 0;
	if (errno != EEXIST || (!options->force && !options->keep_old))
		return tw_error_from_errno(errno);
	error = replace(options->path, !options->force);
	if (error)
		return error;
	return mkdir(options->path, 0700) < 0 ? tw_error_from_errno(errno) : 0;
}

/* ---- a small file ---- */

static int fill(int fd, int directory_fd, const char *text, bool is_durable)
{
	size_t bytes = strlen(text);

	if (write(fd, text, bytes) != (ssize_t)bytes)
		return TW_ENOSPC;
	return is_durable && (fsync(fd) < 0 || fsync(directory_fd) < 0) ? TW_ENOSPC : 0;
}

/* Gives it its name when it is complete. */
static int put_unnamed(int fd, int directory_fd, const char *name, const char *text, bool is_durable)
{
	char path[32];
	int error = fill(fd, directory_fd, text, is_durable);

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (!error && linkat(AT_FDCWD, path, directory_fd, name, AT_SYMLINK_FOLLOW))
		error = errno == EEXIST ? TW_EEXIST : TW_ENOTSUP;
	if (!error && is_durable && fsync(directory_fd) < 0)
		error = TW_ENOSPC;
	return error;
}

int tw_folder_put(int directory_fd, const char *name, const char *text, bool is_durable)
{
	int fd = openat(directory_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600), error = TW_ENOTSUP;

	if (fd >= 0) {
		error = put_unnamed(fd, directory_fd, name, text, is_durable);
		close(fd);
	}
	if (error != TW_ENOTSUP)
		return error;
	fd = openat(directory_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return tw_error_from_errno(errno);
	error = fill(fd, directory_fd, text, is_durable);
	close(fd);
	return error;
}
