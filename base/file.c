/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.c - opens files that others have named.
 *
 *  1. a descriptor of the path alone (O_PATH), which opens nothing
 *  2. its kind and size
 *  3. the file itself, through that descriptor: another file that has the name by now is not opened
 *
 * O_NONBLOCK alone does not suffice: a device acts on being opened (a watchdog starts, a tape is rewound).
 */
#include "base/file.h"

#include "base/error.h"
#include "base/limits.h"
#include "tracewheel/error.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define READING (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
/* More pieces are not counted: the rest is taken for data. */
#define PIECES_MAX 1024
/* The longest tick of a kernel's clock is 10 ms. */
#define SETTLED_NS UINT64_C(30000000)
/* Of file systems that store whole seconds, or two. */
#define SETTLED_COARSE_NS UINT64_C(3000000000)
#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif

static int from_errno(int number)
{
	return number == ELOOP ? TW_ENOENT : tw_error_from_errno(number);
}

/* Does the file have data in less than a piece of its size?  Then its reader would need much more memory than it needs disk. */
static bool is_mostly_holes(int fd, uint64_t bytes)
{
	uint64_t data = 0, least = bytes / TW_FILE_HOLES_FACTOR;
	off_t at = 0;

	for (unsigned i = 0; i < PIECES_MAX && data < least; i++) {
		off_t end;

		at = lseek(fd, at, SEEK_DATA);
		if (at < 0)
			return errno == ENXIO;
		end = lseek(fd, at, SEEK_HOLE);
		if (end < 0)
			return false;
		data += (uint64_t)(end - at);
		at = end;
	}
	return data < least && (uint64_t)at >= bytes;
}

static int check(int fd, const struct stat *status, bool is_open)
{
	if (!S_ISREG(status->st_mode))
		return TW_EFORMAT;
	if ((uint64_t)status->st_size > TW_FILE_BYTES_MAX)
		return TW_ELIMIT;
	return is_open && (uint64_t)status->st_size > TW_FILE_HOLES_BYTES_MIN &&
			       is_mostly_holes(fd, (uint64_t)status->st_size)
		       ? TW_ELIMIT
		       : 0;
}

/* Opens for reading what a descriptor of a path refers to.  Without procfs by the name once more, which must lead to the same. */
static int open_again(int path_fd, const char *path, const struct stat *expected, struct stat *status)
{
	char name[32];
	int fd, error;

	snprintf(name, sizeof name, "/proc/self/fd/%d", path_fd);
	fd = open(name, READING);
	if (fd < 0 && errno == ENOENT)
		fd = open(path, READING);
	if (fd < 0)
		return from_errno(errno);
	if (fstat(fd, status))
		error = TW_EIO;
	else if (status->st_dev != expected->st_dev || status->st_ino != expected->st_ino)
		error = TW_ENOENT;
	else
		error = check(fd, status, true);
	if (!error)
		return fd;
	close(fd);
	return error;
}

/* Takes the descriptor. */
static int open_checked(int path_fd, const char *path, struct stat *out)
{
	struct stat expected, status;
	int fd;

	if (path_fd < 0)
		return from_errno(errno);
	fd = fstat(path_fd, &expected) ? TW_EIO : check(path_fd, &expected, false);
	if (!fd)
		fd = open_again(path_fd, path, &expected, &status);
	close(path_fd);
	if (fd >= 0)
		*out = status;
	return fd;
}

int tw_file_open(const char *path, struct stat *status)
{
	return open_checked(open(path, O_PATH | O_CLOEXEC), path, status);
}

int tw_file_open_exactly(const char *path, struct stat *status)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	long fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);

	if (fd < 0 && errno == ENOSYS)
		return TW_ENOTSUP;
	return open_checked((int)fd, path, status);
}

void tw_file_identify(const struct stat *status, struct tw_file_identity *out)
{
	/* All bytes of it are compared and hashed. */
	memset(out, 0, sizeof *out);
	out->device = status->st_dev;
	out->inode = status->st_ino;
	out->bytes = (uint64_t)status->st_size;
	out->changed_s = status->st_ctim.tv_sec;
	out->changed_ns = (uint32_t)status->st_ctim.tv_nsec;
	out->modified_s = status->st_mtim.tv_sec;
	out->modified_ns = (uint32_t)status->st_mtim.tv_nsec;
}

bool tw_file_is_settled(const struct tw_file_identity *identity)
{
	uint64_t least_ns = identity->changed_ns ? SETTLED_NS : SETTLED_COARSE_NS;
	struct timespec now;
	int64_t past_ns;

	clock_gettime(CLOCK_REALTIME, &now);
	/* A change in the future: the clock was set. */
	if (identity->changed_s > now.tv_sec)
		return false;
	if (now.tv_sec - identity->changed_s > (int64_t)(SETTLED_COARSE_NS / 1000000000u) + 1)
		return true;
	past_ns = (now.tv_sec - identity->changed_s) * 1000000000 + now.tv_nsec - identity->changed_ns;
	return past_ns > (int64_t)least_ns;
}

bool tw_file_is_trusted(const struct stat *status)
{
	return S_ISREG(status->st_mode) && (status->st_uid == 0 || status->st_uid == geteuid()) &&
	       !(status->st_mode & (S_IWGRP | S_IWOTH));
}

bool tw_file_is_synthetic(int fd)
{
	struct statfs system;

	return fstatfs(fd, &system) || system.f_type == PROC_SUPER_MAGIC || system.f_type == FUSE_SUPER_MAGIC;
}

int tw_file_read_at(int fd, void *out, uint64_t bytes, uint64_t offset)
{
	uint8_t *at = out;

	if (offset > INT64_MAX || bytes > INT64_MAX - offset)
		return TW_EFORMAT;
	while (bytes) {
		ssize_t got = pread(fd, at, bytes, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? TW_EIO : TW_EFORMAT;
		at += got;
		offset += (uint64_t)got;
		bytes -= (uint64_t)got;
	}
	return 0;
}

int tw_file_write_at(int fd, const void *data, uint64_t bytes, uint64_t offset)
{
	const uint8_t *at = data;

	while (bytes) {
		ssize_t put = pwrite(fd, at, bytes, (off_t)offset);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return put < 0 ? tw_error_from_errno(errno) : TW_EIO;
		at += put;
		offset += (uint64_t)put;
		bytes -= (uint64_t)put;
	}
	return 0;
}
