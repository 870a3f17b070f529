/* SPDX-License-Identifier: Apache-2.0 */
/* spool.c - copies a pipe into a file without a name. */
#include "views/names/spool.h"
#include "views/output/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE_BYTES (256 << 10)

static const char *folder(void)
{
	const char *path = getenv("TMPDIR");
	return path && *path ? path : "/tmp";
}

static int open_nameless(void)
{
	int fd = open(folder(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char path[4096];
	/* Not all file systems support O_TMPFILE. */
	if (fd < 0 && (size_t)snprintf(path, sizeof path, "%s/tracewheel-XXXXXX", folder()) < sizeof path) {
		fd = mkostemp(path, O_CLOEXEC);
		if (fd >= 0)
			unlink(path);
	}
	return fd;
}

/* Returns 0 or an errno; *was_reading: the pipe failed, not the file. */
static int copy(int from, int to, bool *was_reading)
{
	static char piece[PIECE_BYTES];
	struct tw_meter meter;
	uint64_t done = 0;
	int error = 0;
	tw_meter_start(&meter, "receiving");
	while (!error) {
		ssize_t got = read(from, piece, sizeof piece);
		if (got < 0 && errno == EINTR)
			continue;
		*was_reading = got < 0;
		if (got <= 0) {
			error = got < 0 ? errno : 0;
			break;
		}
		for (ssize_t at = 0; at < got && !error;) {
			ssize_t put = write(to, piece + at, (size_t)(got - at));
			if (put < 0 && errno != EINTR)
				error = errno;
			at += put < 0 ? 0 : put;
		}
		done += (uint64_t)got;
		tw_meter_at(&meter, done, 0);
	}
	tw_meter_stop(&meter);
	return error;
}

static void do_nothing(int number)
{
	(void)number;
}

int tw_spool(int fd)
{
	struct sigaction patient = {.sa_handler = do_nothing, .sa_flags = SA_RESTART | SA_RESETHAND}, before;
	struct stat status;
	bool was_reading = false;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && lseek(fd, 0, SEEK_CUR) == 0)
		return fd;
	int file = open_nameless();
	if (file < 0) {
		tw_fail("no file for the stream could be made in '%s' (TMPDIR): %s.", folder(), strerror(errno));
		return -1;
	}
	sigaction(SIGINT, NULL, &before);
	if (before.sa_handler == SIG_DFL)
		sigaction(SIGINT, &patient, NULL);
	int error = copy(fd, file, &was_reading);
	sigaction(SIGINT, &before, NULL);
	if (!error)
		return file;
	close(file);
	if (was_reading)
		tw_fail("the stream could not be read: %s.", strerror(error));
	else
		tw_fail("the stream could not be kept in '%s' (TMPDIR): %s.", folder(), strerror(error));
	return -1;
}
