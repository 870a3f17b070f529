/* SPDX-License-Identifier: Apache-2.0 */
/* spool.c - the segments that a node still has to ship. */
#include "fleet/fleet.h"
#include "views/output/output.h"
#include "base/grow.h"

#include "tracewheel/error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SENT_FILE "sent"
/* At the beginning older keys are forgotten: their segments would be shipped again, to the same place. */
#define SENT_KEYS_MAX 100000
#define NAME_BYTES    128

static bool ends_in(const char *name, const char *end)
{
	size_t bytes = strlen(name), rest = strlen(end);
	return bytes > rest && strcmp(name + bytes - rest, end) == 0;
}

/* ---- keys that were sent ---- */

static bool remember(struct tw_fleet_spool *spool, const char *key)
{
	size_t bytes = strlen(key);
	if (!tw_grow_by(spool->sent, spool->sent_bytes, spool->sent_capacity, bytes + 2))
		return false;
	memcpy(spool->sent + spool->sent_bytes, key, bytes);
	spool->sent[spool->sent_bytes + bytes] = '\n';
	spool->sent_bytes += bytes + 1;
	spool->sent[spool->sent_bytes] = 0;
	return true;
}

static bool was_sent(const struct tw_fleet_spool *spool, const char *key)
{
	char line[NAME_BYTES + 16];
	snprintf(line, sizeof line, "%s\n", key);
	return spool->sent && strstr(spool->sent, line);
}

static void read_sent(struct tw_fleet_spool *spool)
{
	int fd = openat(spool->folder, SENT_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	struct tw_segment_identity identity;
	struct stat status;
	char line[NAME_BYTES];
	if (file && fstat(fd, &status) == 0 && status.st_size > (off_t)SENT_KEYS_MAX * TW_SEGMENT_KEY_BYTES)
		fseek(file, -(long)SENT_KEYS_MAX * TW_SEGMENT_KEY_BYTES, SEEK_END);
	while (file && fgets(line, sizeof line, file)) {
		line[strcspn(line, "\n")] = 0;
		if (tw_segment_parse_key(line, strlen(line), &identity))
			remember(spool, line);
	}
	if (file)
		fclose(file);
	else if (fd >= 0)
		close(fd);
}

/* Another content of the same boot, capture and number: one of them is not what it says. */
static void tell_double(const struct tw_fleet_spool *spool, const char *key)
{
	const char *last = strrchr(key, '-');
	char begin[TW_SEGMENT_KEY_BYTES];
	snprintf(begin, sizeof begin, "%.*s", (int)(last - key + 1), key);
	const char *other = spool->sent ? strstr(spool->sent, begin) : NULL;
	if (other && strncmp(other, key, strlen(key)) != 0)
		tw_say("two segments have the number %s and different contents: both are shipped, and one of them was changed.",
		       begin);
}

/* ---- the folder ---- */

bool tw_fleet_spool_open(struct tw_fleet_spool *spool, const char *path)
{
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return tw_complain("the spool '%s' cannot be made: %s.", path, strerror(errno));
	spool->folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (spool->folder < 0)
		return tw_complain("the spool '%s' cannot be opened: %s.", path, strerror(errno));
	read_sent(spool);
	return true;
}

void tw_fleet_spool_close(struct tw_fleet_spool *spool)
{
	if (spool->folder >= 0)
		close(spool->folder);
	free(spool->sent);
}

static int error_of(int number)
{
	return number == ENOENT ? TW_ENOENT : number == EACCES || number == EPERM ? TW_EPERM : TW_EIO;
}

int tw_fleet_spool_link(struct tw_fleet_spool *spool, int folder, const char *name, bool *is_sent)
{
	struct tw_segment_identity identity;
	char key[TW_SEGMENT_KEY_BYTES], to[NAME_BYTES], dropped[NAME_BYTES], bad[NAME_BYTES];
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return error_of(errno);
	int error = tw_segment_identify(fd, &identity);
	close(fd);
	if (!error && identity.bytes > TW_FLEET_SEGMENT_BYTES_MAX)
		error = TW_ELIMIT;
	if (error)
		return error;
	tw_segment_key(&identity, key);
	*is_sent = was_sent(spool, key);
	if (*is_sent)
		return 0;
	tell_double(spool, key);
	snprintf(to, sizeof to, "%s.tws", key);
	snprintf(dropped, sizeof dropped, "%s.drop", key);
	snprintf(bad, sizeof bad, "%s.tws.bad", key);
	/* It was dropped, or refused: it stays so. */
	if (faccessat(spool->folder, dropped, F_OK, 0) == 0 || faccessat(spool->folder, bad, F_OK, 0) == 0)
		return 0;
	if (linkat(folder, name, spool->folder, to, 0) == 0)
		spool->linked++;
	else if (errno != EEXIST)
		return errno == EXDEV ? TW_ENOTSUP : error_of(errno);
	return 0;
}

static int is_entry(const struct dirent *entry)
{
	return strlen(entry->d_name) < NAME_BYTES &&
	       (ends_in(entry->d_name, ".tws") || ends_in(entry->d_name, ".drop"));
}

int tw_fleet_spool_list(const struct tw_fleet_spool *spool, struct dirent ***entries)
{
	return scandirat(spool->folder, ".", entries, is_entry, alphasort);
}

bool tw_fleet_spool_is_dropped(const char *name)
{
	return ends_in(name, ".drop");
}

bool tw_fleet_spool_undo(struct tw_fleet_spool *spool, const char *name)
{
	char segment[NAME_BYTES + 8];
	snprintf(segment, sizeof segment, "%.*s.tws", (int)(strrchr(name, '.') - name), name);
	return tw_fleet_spool_is_dropped(name) && faccessat(spool->folder, segment, F_OK, 0) == 0 &&
	       unlinkat(spool->folder, name, 0) == 0;
}

bool tw_fleet_spool_done(struct tw_fleet_spool *spool, const char *name)
{
	char line[NAME_BYTES + 2];
	snprintf(line, sizeof line, "%.*s", (int)(strrchr(name, '.') - name), name);
	if (!was_sent(spool, line)) {
		if (!remember(spool, line))
			return false;
		strcat(line, "\n");
		int fd = openat(spool->folder, SENT_FILE, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
		bool is_written = fd >= 0 && write(fd, line, strlen(line)) == (ssize_t)strlen(line);
		if (fd >= 0)
			close(fd);
		if (!is_written)
			return false;
	}
	/* Another shipper may have been first. */
	return unlinkat(spool->folder, name, 0) == 0 || errno == ENOENT;
}

void tw_fleet_spool_refuse(struct tw_fleet_spool *spool, const char *name)
{
	char bad[NAME_BYTES + 8];
	snprintf(bad, sizeof bad, "%s.bad", name);
	renameat(spool->folder, name, spool->folder, bad);
}

/* ---- the quota ---- */

struct waiting {
	char name[NAME_BYTES];
	uint64_t bytes;
	struct timespec written;
};

static int by_age(const void *a, const void *b)
{
	const struct waiting *x = a, *y = b;
	if (x->written.tv_sec != y->written.tv_sec)
		return x->written.tv_sec < y->written.tv_sec ? -1 : 1;
	if (x->written.tv_nsec != y->written.tv_nsec)
		return x->written.tv_nsec < y->written.tv_nsec ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* First the name that says so, then the segment goes: a shipper that dies between drops it again. */
static void drop(struct tw_fleet_spool *spool, const struct waiting *segment)
{
	struct tw_segment_identity identity = {0};
	char dropped[NAME_BYTES];
	int fd = openat(spool->folder, segment->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && tw_segment_identify(fd, &identity) == 0)
		spool->dropped_events += identity.events;
	if (fd >= 0)
		close(fd);
	snprintf(dropped, sizeof dropped, "%.*s.drop", (int)(strlen(segment->name) - 4), segment->name);
	fd = openat(spool->folder, dropped, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	/* Its row needs what the segment says of itself. */
	bool is_written = fd >= 0 && write(fd, &identity, sizeof identity) == (ssize_t)sizeof identity;
	if (fd >= 0)
		close(fd);
	if (is_written && unlinkat(spool->folder, segment->name, 0) == 0)
		spool->dropped++;
}

void tw_fleet_spool_limit(struct tw_fleet_spool *spool)
{
	struct dirent **entries = NULL;
	int found = spool->quota_bytes ? tw_fleet_spool_list(spool, &entries) : 0;
	struct waiting *segments = found > 0 ? calloc((size_t)found, sizeof *segments) : NULL;
	size_t count = 0;
	uint64_t bytes = 0;
	struct stat status;
	for (int i = 0; i < found; i++) {
		const char *name = entries[i]->d_name;
		if (segments && !tw_fleet_spool_is_dropped(name) &&
		    fstatat(spool->folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
			segments[count] =
				(struct waiting){.bytes = (uint64_t)status.st_size, .written = status.st_mtim};
			snprintf(segments[count++].name, NAME_BYTES, "%.*s", NAME_BYTES - 1, name);
			bytes += (uint64_t)status.st_size;
		}
		free(entries[i]);
	}
	free(entries);
	if (count)
		qsort(segments, count, sizeof *segments, by_age);
	for (size_t i = 0; i < count && bytes > spool->quota_bytes; i++) {
		drop(spool, &segments[i]);
		bytes -= segments[i].bytes;
	}
	free(segments);
}
