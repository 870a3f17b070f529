/* SPDX-License-Identifier: Apache-2.0 */
/* layouts.c - a text of any size beside the rings, written once by the owner, read by members. */
#include "base/error.h"
#include "ringbuf/ringset.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_it(const char *path, int flags)
{
	char name[512];
	int used = snprintf(name, sizeof name, "%s/%s", path, TW_RS_LAYOUTS_FILE), fd;

	if (used < 0 || (size_t)used >= sizeof name)
		return TW_EBADARG;
	fd = open(name, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? tw_error_from_errno(errno) : fd;
}

int tw_rs_layouts_write(const char *path, const char *text)
{
	size_t bytes = strlen(text), done = 0;
	int fd = bytes > TW_RS_LAYOUTS_BYTES_MAX ? TW_ELIMIT : open_it(path, O_WRONLY | O_CREAT | O_EXCL);
	int error = 0;

	if (fd < 0)
		return fd;
	while (done < bytes && !error) {
		ssize_t n = write(fd, text + done, bytes - done);

		if (n > 0)
			done += (size_t)n;
		else if (n == 0 || errno != EINTR)
			error = n == 0 ? TW_EIO : tw_error_from_errno(errno);
	}
	close(fd);
	return error;
}

static int read_all(int fd, char **text, size_t *bytes)
{
	struct stat st;
	size_t done = 0;
	char *all;

	if (fstat(fd, &st) < 0)
		return tw_error_from_errno(errno);
	if (!S_ISREG(st.st_mode) || (st.st_uid != geteuid() && st.st_uid != 0) || (st.st_mode & 022))
		return TW_EPERM;
	if ((uint64_t)st.st_size > TW_RS_LAYOUTS_BYTES_MAX)
		return TW_ELIMIT;
	all = malloc((size_t)st.st_size + 1);
	if (!all)
		return TW_ENOMEM;
	while (done < (size_t)st.st_size) {
		ssize_t n = read(fd, all + done, (size_t)st.st_size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	all[done] = '\0';
	*text = all;
	*bytes = done;
	return 0;
}

int tw_rs_layouts_read(const struct tw_rs *rs, char **text, size_t *bytes)
{
	int fd = open_it(rs->path, O_RDONLY), error;

	if (fd < 0)
		return fd;
	error = read_all(fd, text, bytes);
	close(fd);
	return error;
}
