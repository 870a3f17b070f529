/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backing.c - files on tmpfs, made and opened without trusting anybody.
 *
 * Sparse files are allocated (posix_fallocate) before anything is written to them: on a full tmpfs
 * a store into a hole would kill the program with SIGBUS.
 */
#include "ringbuf/backing.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* TRACEWHEEL_SHM names another tmpfs (or, slower, any directory): small ones for tests, large ones for long captures. */
static const char *tmpfs_root(void)
{
	const char *root = secure_getenv("TRACEWHEEL_SHM");

	return root && root[0] == '/' ? root : "/dev/shm";
}

int tw_backing_check_directory(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return tw_error_from_errno(errno);
	if (!S_ISDIR(st.st_mode) || (st.st_uid != geteuid() && st.st_uid != 0) || (st.st_mode & 022))
		return TW_EPERM;
	return 0;
}

int tw_backing_make_directory(const char *name, char *path, size_t path_bytes)
{
	int used = snprintf(path, path_bytes, "%s/tracewheel-%u", tmpfs_root(), (unsigned)geteuid());
	int error;

	if (used < 0 || (size_t)used >= path_bytes)
		return TW_EBADARG;
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return tw_error_from_errno(errno);
	error = tw_backing_check_directory(path);
	if (error)
		return error;
	used += snprintf(path + used, path_bytes - (size_t)used, "/%s", name);
	if ((size_t)used >= path_bytes)
		return TW_EBADARG;
	return mkdir(path, 0700) < 0 ? tw_error_from_errno(errno) : 0;
}

static int file_path(const char *directory, const char *file, char *out, size_t bytes)
{
	int used = snprintf(out, bytes, "%s/%s", directory, file);

	return used < 0 || (size_t)used >= bytes ? TW_EBADARG : 0;
}

int tw_backing_create(const char *directory, const char *file, size_t bytes, void **out, int *fd_out)
{
	char path[512];
	void *p;
	int fd, error = file_path(directory, file, path, sizeof path);

	if (error)
		return error;
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return tw_error_from_errno(errno);
	if (ftruncate(fd, (off_t)bytes) < 0) {
		error = tw_error_from_errno(errno);
		goto close_file;
	}
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (p == MAP_FAILED) {
		error = tw_error_from_errno(errno);
		goto close_file;
	}
	*out = p;
	if (fd_out)
		*fd_out = fd;
	else
		close(fd);
	return 0;
close_file:
	close(fd);
	unlink(path);
	return error;
}

int tw_backing_open(const char *directory, const char *file, bool is_private, void **out, size_t *bytes)
{
	char path[512];
	struct stat st;
	void *p;
	int fd, error = file_path(directory, file, path, sizeof path);

	if (error)
		return error;
	fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return tw_error_from_errno(errno);
	if (fstat(fd, &st) < 0)
		error = tw_error_from_errno(errno);
	else if (!S_ISREG(st.st_mode) || (st.st_uid != geteuid() && st.st_uid != 0) || (st.st_mode & 022))
		error = TW_EPERM;
	else if (st.st_size <= 0)
		error = TW_EFORMAT;
	if (error)
		goto close_file;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, (is_private ? MAP_PRIVATE : MAP_SHARED) | MAP_NORESERVE,
		 fd, 0);
	if (p == MAP_FAILED) {
		error = tw_error_from_errno(errno);
		goto close_file;
	}
	*out = p;
	*bytes = (size_t)st.st_size;
close_file:
	close(fd);
	return error;
}

int tw_backing_anonymous(size_t bytes, void **out)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return tw_error_from_errno(errno);
	*out = p;
	return 0;
}

int tw_backing_allocate(int fd, size_t offset, size_t bytes)
{
	int error = posix_fallocate(fd, (off_t)offset, (off_t)bytes);

	return error ? tw_error_from_errno(error) : 0;
}

void tw_backing_unmap(void *address, size_t bytes)
{
	if (address)
		munmap(address, bytes);
}

int tw_backing_remove_file(const char *directory, const char *file)
{
	char path[512];
	int error = file_path(directory, file, path, sizeof path);

	if (error)
		return error;
	return unlink(path) < 0 ? tw_error_from_errno(errno) : 0;
}
