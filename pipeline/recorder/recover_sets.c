/* SPDX-License-Identifier: Apache-2.0 */
/* recover_sets.c - consumer.h: all ring sets of interrupted recordings, listed or removed. */
#include "base/export.h"
#include "pipeline/recorder/folder.h"
#include "pipeline/recorder/recorder.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Does the mark of the capture name this ring set, and was the set made for it? */
static bool is_capture_of(const char *capture_path, const char *ring_set_path, const char *text)
{
	char named[TW_RS_PATH_BYTES];
	int fd = tw_folder_open(capture_path);
	bool is_it;

	if (fd < 0)
		return false;
	is_it = tw_store_read_mark(fd, named, sizeof named) == 0 && strcmp(named, ring_set_path) == 0 &&
		tw_folder_has_set(fd, text);
	close(fd);
	return is_it;
}

/*
 * Finds the capture by the line that recorder.c put into the set's text. A later recording may have moved it to
 * NAME.old; a capture that has moved elsewhere is not found.
 */
static void find_capture(const char *ring_set_path, const char *text, char *path, size_t bytes)
{
	int length;
	const char *line = tw_folder_line(text, TW_RECORDER_CAPTURE_KEY, &length);

	path[0] = '\0';
	if (!line)
		return;
	for (int old = 0; old < 2; old++) {
		if ((size_t)snprintf(path, bytes, "%.*s%s", length, line, old ? ".old" : "") < bytes &&
		    is_capture_of(path, ring_set_path, text))
			return;
	}
	path[0] = '\0';
}

struct visit {
	void (*fn)(const struct tw_recover_set *set, void *arg);
	void *arg;
	bool is_cleaning;
	unsigned removed;
};

static void visit_set(const char *ring_set_path, const char *text, uint64_t bytes, void *arg)
{
	struct visit *visit = arg;
	char capture_path[PATH_MAX];
	struct tw_recover_set set = {ring_set_path, capture_path, bytes, 0};

	find_capture(ring_set_path, text, capture_path, sizeof capture_path);
	if (visit->is_cleaning) {
		set.error = capture_path[0] ? tw_recover(capture_path, NULL) : tw_rs_remove(ring_set_path);
		visit->removed += set.error == 0;
	}
	if (visit->fn)
		visit->fn(&set, visit->arg);
}

TW_API unsigned tw_recover_list(void (*fn)(const struct tw_recover_set *set, void *arg), void *arg)
{
	struct visit visit = {.fn = fn, .arg = arg};

	return tw_rs_list_dead(fn ? visit_set : NULL, &visit);
}

TW_API unsigned tw_recover_clean(void (*fn)(const struct tw_recover_set *set, void *arg), void *arg)
{
	struct visit visit = {.fn = fn, .arg = arg, .is_cleaning = true};

	tw_rs_list_dead(visit_set, &visit);
	return visit.removed;
}
