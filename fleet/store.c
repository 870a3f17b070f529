/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - where objects lie: in a folder, or by s3.c and s3_read.c in a bucket. */
#include "fleet/fleet.h"
#include "views/output/output.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define REASON_BYTES 512

struct tw_fleet_store {
	struct tw_fleet_s3 *s3; /* NULL: a folder */
	int folder;
	char name[PATH_MAX]; /* as it was given */
	char reason[REASON_BYTES];
};

static bool is_there(const char *path)
{
	struct stat status;
	return mkdir(path, 0700) == 0 || (errno == EEXIST && stat(path, &status) == 0 && S_ISDIR(status.st_mode));
}

struct tw_fleet_store *tw_fleet_store_open(const char *to, bool is_written, const char *presign)
{
	struct tw_fleet_store *store = calloc(1, sizeof *store);
	if (!store) {
		tw_say("there is no memory.");
		return NULL;
	}
	store->folder = -1;
	snprintf(store->name, sizeof store->name, "%s", to);
	if (strncmp(to, "s3://", 5) == 0) {
		store->s3 = tw_fleet_s3_open(to + 5, presign);
		if (store->s3)
			return store;
		free(store);
		return NULL;
	}
	if (!is_written || is_there(to))
		store->folder = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store->folder < 0) {
		tw_say(is_written ? "the folder '%s' cannot be used as a store: %s." : "'%s' cannot be read: %s.", to,
		       strerror(errno));
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

/* ---- reading ---- */

void tw_fleet_names_free(struct tw_fleet_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->names[i]);
	free(names->names);
	*names = (struct tw_fleet_names){0};
}

const char *tw_fleet_store_name(const struct tw_fleet_store *store)
{
	return store->name;
}

/* All bytes of a file. */
static const char *get_file(int folder, const char *path, size_t most, struct tw_fleet_bytes *out)
{
	const char *reason = NULL;
	struct stat status;
	int fd = openat(folder, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT ? "it is not there" : strerror(errno);
	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size > (off_t)most)
		reason = "it is no file, or too large";
	else
		out->bytes = (size_t)status.st_size;
	if (!reason && !(out->data = malloc(out->bytes + 1)))
		reason = "there is no memory";
	if (!reason && pread(fd, out->data, out->bytes, 0) != (ssize_t)out->bytes)
		reason = "it cannot be read";
	close(fd);
	return reason;
}

const char *tw_fleet_store_get(struct tw_fleet_store *store, const char *path, size_t most, struct tw_fleet_bytes *out)
{
	const char *reason = NULL;
	*out = (struct tw_fleet_bytes){NULL, 0};
	if (!store->s3)
		reason = get_file(store->folder, path, most, out);
	else if (tw_fleet_s3_get(store->s3, path, most, out, store->reason, sizeof store->reason) != TW_FLEET_STORED)
		reason = store->reason;
	if (!reason)
		return NULL;
	free(out->data);
	*out = (struct tw_fleet_bytes){NULL, 0};
	return reason;
}

static bool has_suffix(const char *path, const char *suffix)
{
	size_t bytes = strlen(path), end = strlen(suffix);
	return bytes > end && strcmp(path + bytes - end, suffix) == 0;
}

/* nftw() has no context. */
static struct tw_fleet_reading *walking;

static int take_file(const char *path, const struct stat *status, int type, struct FTW *at)
{
	struct tw_fleet_bytes packed = {NULL, 0};
	if (type != FTW_F || !S_ISREG(status->st_mode) || !has_suffix(path, walking->suffix))
		return 0;
	walking->found++;
	if (walking->wants && !walking->wants(walking->context, path))
		return 0;
	const char *reason = get_file(AT_FDCWD, path, walking->most, &packed);
	walking->take(walking->context, path, &packed, reason);
	free(packed.data);
	return 0;
}

static bool read_bucket(struct tw_fleet_store *store, struct tw_fleet_reading *reading)
{
	struct tw_fleet_names all = {0};
	bool is_read =
		tw_fleet_s3_list(store->s3, reading->below, reading->after, &all, store->reason, sizeof store->reason);
	size_t kept = 0;
	for (size_t i = 0; i < all.count; i++) {
		bool is_found = has_suffix(all.names[i], reading->suffix);
		reading->found += is_found;
		if (is_found && (!reading->wants || reading->wants(reading->context, all.names[i])))
			all.names[kept++] = all.names[i];
		else
			free(all.names[i]);
	}
	all.count = kept;
	is_read = is_read && tw_fleet_s3_get_all(store->s3, &all, reading, store->reason, sizeof store->reason);
	tw_fleet_names_free(&all);
	return is_read || tw_complain("%s cannot be read: %s.", store->name, store->reason);
}

bool tw_fleet_store_read(struct tw_fleet_store *store, struct tw_fleet_reading *reading)
{
	reading->found = 0;
	if (store->s3)
		return read_bucket(store, reading);
	walking = reading;
	if (nftw(store->name, take_file, 32, FTW_PHYS) == 0)
		return true;
	return tw_complain("'%s' cannot be read: %s.", store->name, strerror(errno));
}
