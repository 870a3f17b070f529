/* SPDX-License-Identifier: Apache-2.0 */
/* fetch.c - segments come back from a folder, as a capture. */
#include "fleet/fleet.h"
#include "fleet/rows.h"
#include "tools/tool.h"
#include "views/output/output.h"

#include "tracewheel/error.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PACKED_BYTES_MAX (TW_FLEET_SEGMENT_BYTES_MAX + (1 << 20))

static bool has_function(const struct tw_fleet_rows *rows, const struct tw_fleet_segment *segment,
			 const char *functions)
{
	for (size_t id = 0; id < segment->sum_count; id++) {
		uint32_t number = segment->sums[id];
		if (number != UINT32_MAX && fnmatch(functions, rows->sums[number].name, 0) == 0)
			return true;
	}
	return false;
}

/* @at: gives: all bytes of a file. Returns why not, or NULL. */
static const char *read_packed(int folder, const char *path, struct tw_fleet_bytes *at)
{
	const char *reason = NULL;
	struct stat status;
	int fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	*at = (struct tw_fleet_bytes){NULL, 0};
	if (fd < 0)
		return errno == ENOENT ? "it is not there" : strerror(errno);
	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size > (off_t)PACKED_BYTES_MAX)
		reason = "it is no file, or too large";
	else
		at->bytes = (size_t)status.st_size;
	if (!reason && !(at->data = malloc(at->bytes + 1)))
		reason = "there is no memory";
	if (!reason && pread(fd, at->data, at->bytes, 0) != (ssize_t)at->bytes)
		reason = "it cannot be read";
	close(fd);
	return reason;
}

static const char *write_all(int fd, const struct tw_fleet_bytes *from)
{
	for (size_t done = 0; done < from->bytes;) {
		ssize_t got = write(fd, from->data + done, from->bytes - done);
		if (got <= 0)
			return got < 0 ? strerror(errno) : "nothing was written";
		done += (size_t)got;
	}
	return NULL;
}

/* Under its last name only when it is whole, and what its key says. */
static const char *store(int to, const char *key, const struct tw_fleet_bytes *segment)
{
	char name[TW_SEGMENT_KEY_BYTES + 8], found[TW_SEGMENT_KEY_BYTES];
	struct tw_segment_identity identity;
	int fd = openat(to, "part", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return strerror(errno);
	const char *reason = write_all(fd, segment);
	if (!reason && tw_segment_identify(fd, &identity) != 0)
		reason = "it is no closed segment";
	if (!reason) {
		tw_segment_key(&identity, found);
		reason = strcmp(found, key) == 0 ? NULL : "it is another segment than its name says";
	}
	snprintf(name, sizeof name, "%s.tws", key);
	if (!reason && renameat(to, "part", to, name) < 0)
		reason = strerror(errno);
	if (reason)
		unlinkat(to, "part", 0);
	if (close(fd) < 0 && !reason)
		reason = strerror(errno);
	return reason;
}

/* Summaries may be anybody's. */
static bool is_node(const char *name)
{
	return *name && strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-") == strlen(name);
}

static const char *fetch_one(int from, int to, const struct tw_fleet_rows *rows, const struct tw_fleet_segment *segment,
			     char path[TW_FLEET_PATH_BYTES])
{
	char summary[TW_FLEET_PATH_BYTES];
	struct tw_segment_identity identity = {0};
	struct tw_fleet_bytes packed, plain;
	snprintf(path, TW_FLEET_PATH_BYTES, "%s", segment->key);
	const char *node = rows->images[segment->image].node;
	if (!is_node(node) || !tw_segment_parse_key(segment->key, strlen(segment->key), &identity))
		return "its summary has no such node, or no key";
	identity.end_wall_ns = segment->to_ns;
	tw_fleet_paths(&identity, node, path, summary);
	const char *reason = read_packed(from, path, &packed);
	if (!reason && !tw_fleet_unpack(&packed, TW_FLEET_SEGMENT_BYTES_MAX, &plain))
		reason = "it is not compressed by zstd, too large, or was cut off";
	free(packed.data);
	if (reason)
		return reason;
	reason = store(to, segment->key, &plain);
	free(plain.data);
	return reason;
}

static FILE *make_capture(const char *path, int *to)
{
	int fd = -1;
	if (mkdir(path, 0700) < 0) {
		tw_say("'%s' cannot be made: %s.", path, strerror(errno));
		return NULL;
	}
	*to = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*to >= 0)
		fd = openat(*to, TW_CAPTURE_ASKED_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	FILE *asked = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (!asked)
		tw_say("'%s' cannot be written: %s.", path, strerror(errno));
	return asked;
}

int tw_fleet_fetch(const struct tw_fleet_rows *rows, const char *folder, const char *functions, const char *path)
{
	char object[TW_FLEET_PATH_BYTES], figure[TW_FIGURE_BYTES];
	uint64_t wanted = 0, got = 0;
	bool is_written = true;
	int to = -1, from = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < rows->segment_count; i++)
		wanted += !rows->segments[i].is_dropped &&
			  (!functions || has_function(rows, &rows->segments[i], functions));
	if (from < 0)
		return tw_fail("'%s' cannot be read: %s.", folder, strerror(errno));
	if (!wanted) {
		close(from);
		return tw_fail("no segment of these nodes and this time has such a function, or all were dropped.");
	}
	FILE *asked = make_capture(path, &to);
	for (size_t i = 0; asked && is_written && i < rows->segment_count; i++) {
		const struct tw_fleet_segment *segment = &rows->segments[i];
		if (segment->is_dropped || (functions && !has_function(rows, segment, functions)))
			continue;
		const char *reason = fetch_one(from, to, rows, segment, object);
		got += !reason;
		if (reason)
			tw_say("%s/%s was set aside: %s.", folder, object, reason);
		/* Whether it came or not: a report then says that it is absent. */
		is_written = fprintf(asked, "%s\n", segment->key) > 0;
	}
	is_written &= asked && fclose(asked) == 0;
	if (asked && !is_written)
		tw_say("'%s' cannot be written: %s.", path, strerror(errno));
	if (to >= 0)
		close(to);
	close(from);
	if (!is_written)
		return TW_EXIT_FAILURE;
	tw_say("%s in %s", tw_figure_of(figure, got, "segment", "segments"), path);
	return got == wanted ? TW_EXIT_OK : TW_EXIT_FAILURE;
}
