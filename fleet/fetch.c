/* SPDX-License-Identifier: Apache-2.0 */
/* fetch.c - segments come back from a store, as a capture. */
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

static bool is_asked(const struct tw_fleet_rows *rows, const struct tw_fleet_segment *segment,
		     const struct tw_fleet_segment *last, const struct tw_fleet_asked *asked)
{
	struct tw_segment_identity identity;
	bool is_near = last && segment->image == last->image && segment->image_segment <= last->image_segment &&
		       last->image_segment - segment->image_segment <= asked->before;
	if (segment->is_dropped || (asked->key && !is_near) || (asked->knows_label && !segment->knows_label))
		return false;
	if (asked->node && (strcmp(rows->images[segment->image].node, asked->node) != 0 ||
			    !tw_segment_parse_key(segment->key, strlen(segment->key), &identity) ||
			    memcmp(identity.boot_id, asked->boot_id, sizeof identity.boot_id) != 0))
		return false;
	return !asked->functions || has_function(rows, segment, asked->functions);
}

/* The segments that are asked for. NULL: no memory. */
static const struct tw_fleet_segment **choose(const struct tw_fleet_rows *rows, const struct tw_fleet_asked *asked,
					      size_t *count)
{
	const struct tw_fleet_segment **chosen = calloc(rows->segment_count + 1, sizeof *chosen), *last = NULL;
	*count = 0;
	for (size_t i = 0; asked->key && i < rows->segment_count; i++)
		last = strcmp(rows->segments[i].key, asked->key) == 0 ? &rows->segments[i] : last;
	for (size_t i = 0; chosen && i < rows->segment_count; i++) {
		if (is_asked(rows, &rows->segments[i], last, asked))
			chosen[(*count)++] = &rows->segments[i];
	}
	return chosen;
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
static const char *put_file(int to, const char *key, const struct tw_fleet_bytes *segment)
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

static const char *fetch_one(struct tw_fleet_store *from, int to, const struct tw_fleet_rows *rows,
			     const struct tw_fleet_segment *segment, char path[TW_FLEET_PATH_BYTES])
{
	char summary[TW_FLEET_PATH_BYTES];
	struct tw_segment_identity identity = {0};
	struct tw_fleet_bytes packed, plain;
	snprintf(path, TW_FLEET_PATH_BYTES, "%s", segment->key);
	const char *node = rows->images[segment->image].node;
	if (!tw_fleet_is_node(node) || !tw_segment_parse_key(segment->key, strlen(segment->key), &identity))
		return "its summary has no such node, or no key";
	identity.end_wall_ns = segment->to_ns;
	tw_fleet_paths(&identity, node, path, summary);
	const char *reason = tw_fleet_store_get(from, path, PACKED_BYTES_MAX, &packed);
	if (!reason && !tw_fleet_unpack(&packed, TW_FLEET_SEGMENT_BYTES_MAX, &plain))
		reason = "it is not compressed by zstd, too large, or was cut off";
	free(packed.data);
	if (reason)
		return reason;
	reason = put_file(to, segment->key, &plain);
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

int tw_fleet_fetch(const struct tw_fleet_rows *rows, struct tw_fleet_store *store, struct tw_fleet_asked *asked,
		   const char *path)
{
	char object[TW_FLEET_PATH_BYTES];
	size_t wanted;
	bool is_written = true;
	int to = -1;
	const struct tw_fleet_segment **segments = choose(rows, asked, &wanted);
	if (!segments || !wanted) {
		free(segments);
		return asked->key
			       ? tw_fail("no segment has the key %s, or it was dropped.", asked->key)
			       : tw_fail("no segment of these nodes and this time has such a function, or all were dropped.");
	}
	FILE *list = make_capture(path, &to);
	for (size_t i = 0; list && is_written && i < wanted; i++) {
		const char *reason = fetch_one(store, to, rows, segments[i], object);
		asked->got += !reason;
		if (reason)
			tw_say("%s/%s was set aside: %s.", tw_fleet_store_name(store), object, reason);
		/* Whether it came or not: a report then says that it is absent. */
		is_written = fprintf(list, "%s\n", segments[i]->key) > 0;
	}
	free(segments);
	is_written &= list && fclose(list) == 0;
	if (list && !is_written)
		tw_say("'%s' cannot be written: %s.", path, strerror(errno));
	if (to >= 0)
		close(to);
	if (!is_written)
		return TW_EXIT_FAILURE;
	return asked->got == wanted ? TW_EXIT_OK : TW_EXIT_FAILURE;
}
