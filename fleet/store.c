/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - where objects go: a folder, or by s3.c a bucket. */
#include "fleet/fleet.h"
#include "views/output/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define REASON_BYTES 512

struct tw_fleet_store {
	struct tw_fleet_s3 *s3; /* NULL: a folder */
	int folder;
	char reason[REASON_BYTES];
};

static bool is_there(const char *path)
{
	struct stat status;
	return mkdir(path, 0700) == 0 || (errno == EEXIST && stat(path, &status) == 0 && S_ISDIR(status.st_mode));
}

struct tw_fleet_store *tw_fleet_store_open(const char *to)
{
	struct tw_fleet_store *store = calloc(1, sizeof *store);
	if (!store) {
		tw_say("there is no memory.");
		return NULL;
	}
	store->folder = -1;
	if (strncmp(to, "s3://", 5) == 0) {
		store->s3 = tw_fleet_s3_open(to + 5);
		if (store->s3)
			return store;
		free(store);
		return NULL;
	}
	if (is_there(to))
		store->folder = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store->folder < 0) {
		tw_say("the folder '%s' cannot be used as a store: %s.", to, strerror(errno));
		free(store);
		return NULL;
	}
	return store;
}

void tw_fleet_store_close(struct tw_fleet_store *store)
{
	if (!store)
		return;
	tw_fleet_s3_close(store->s3);
	if (store->folder >= 0)
		close(store->folder);
	free(store);
}

/* The folders above a path. */
static bool make_folders(int folder, const char *path)
{
	char above[TW_FLEET_PATH_BYTES];
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(above, sizeof above, "%.*s", (int)(slash - path), path);
		if (mkdirat(folder, above, 0700) < 0 && errno != EEXIST)
			return false;
	}
	return true;
}

static bool write_all(int fd, const struct tw_fleet_bytes *from)
{
	for (size_t done = 0; done < from->bytes;) {
		ssize_t put = write(fd, from->data + done, from->bytes - done);
		if (put < 0 && errno != EINTR)
			return false;
		done += put < 0 ? 0 : (size_t)put;
	}
	return fdatasync(fd) == 0;
}

/* Under another name first, so that a reader finds the whole or nothing. */
static bool put_file(int folder, const char *path, const struct tw_fleet_bytes *from)
{
	char part[TW_FLEET_PATH_BYTES + 32];
	snprintf(part, sizeof part, "%s.part-%d", path, (int)getpid());
	if (!make_folders(folder, path))
		return false;
	int fd = openat(folder, part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	bool is_written = write_all(fd, from);
	int error = errno;
	close(fd);
	if (is_written && renameat(folder, part, folder, path) == 0)
		return true;
	error = is_written ? errno : error;
	unlinkat(folder, part, 0);
	errno = error;
	return false;
}

enum tw_fleet_answer tw_fleet_store_put(struct tw_fleet_store *store, const char *path,
					const struct tw_fleet_bytes *from, const char **reason)
{
	*reason = store->reason;
	if (store->s3)
		return tw_fleet_s3_put(store->s3, path, from, store->reason, sizeof store->reason);
	if (put_file(store->folder, path, from))
		return TW_FLEET_STORED;
	snprintf(store->reason, sizeof store->reason, "the folder takes no file: %s", strerror(errno));
	return TW_FLEET_LATER;
}
