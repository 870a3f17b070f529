/* SPDX-License-Identifier: Apache-2.0 */
/*
 * story.c - one request through all nodes.
 *
 *	1 segments that know its label, by summaries   2 a capture of them for each node and boot   3 merge aligns their clocks
 *	4 seq shows what caused what
 */
#include "fleet/ask.h"
#include "views/folds/seq_trace.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* More are not merged at once: each capture is open. */
#define NODES_MAX 256

struct story {
	struct tw_fleet_ask *ask;
	char folder[PATH_MAX];	   /* temporary */
	char *captures[NODES_MAX]; /* paths below it */
	size_t count;
	uint64_t segments;
	bool is_incomplete;
};

/* Has an earlier segment the same node and boot? */
static bool is_known(const struct tw_fleet_rows *rows, size_t number)
{
	const struct tw_fleet_segment *segment = &rows->segments[number];
	for (size_t i = 0; i < number; i++) {
		const struct tw_fleet_segment *other = &rows->segments[i];
		if (other->knows_label && !other->is_dropped &&
		    strncmp(other->key, segment->key, strcspn(segment->key, "-")) == 0 &&
		    strcmp(rows->images[other->image].node, rows->images[segment->image].node) == 0)
			return true;
	}
	return false;
}

/* The name of the capture is that of the node in what is shown; a node that was booted meanwhile has another clock, and another name. */
static char *name_capture(const struct story *story, const char *node)
{
	char *path;
	for (unsigned copy = 1; copy <= NODES_MAX; copy++) {
		int bytes = copy == 1 ? asprintf(&path, "%s/%s.tw", story->folder, node)
				      : asprintf(&path, "%s/%s-%u.tw", story->folder, node, copy);
		if (bytes < 0)
			return NULL;
		if (access(path, F_OK) < 0)
			return path;
		free(path);
	}
	return NULL;
}

/* False: nothing can be shown, which was said. */
static bool fetch_all(struct story *story)
{
	const struct tw_fleet_rows *rows = &story->ask->rows;
	struct tw_segment_identity identity;
	for (size_t i = 0; i < rows->segment_count; i++) {
		const struct tw_fleet_segment *segment = &rows->segments[i];
		if (!segment->knows_label || segment->is_dropped || is_known(rows, i))
			continue;
		if (story->count == NODES_MAX)
			return tw_complain(
				"more than %d nodes know the label %s: --node or --from say which are merged.",
				NODES_MAX, story->ask->label);
		const char *node = rows->images[segment->image].node;
		if (!tw_fleet_is_node(node)) {
			tw_say("segment %s was set aside: its summary names no node.", segment->key);
			story->is_incomplete = true;
			continue;
		}
		char *path = name_capture(story, node);
		if (!path || !tw_segment_parse_key(segment->key, strlen(segment->key), &identity)) {
			free(path);
			return tw_complain("there is no memory.");
		}
		struct tw_fleet_asked asked = {.node = node, .boot_id = identity.boot_id, .knows_label = true};
		story->is_incomplete |= tw_fleet_fetch(rows, story->ask->store, &asked, path) != TW_EXIT_OK;
		story->segments += asked.got;
		if (asked.got)
			story->captures[story->count++] = path;
		else
			free(path);
	}
	return true;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The merged capture, or the only one. */
static int merge(const struct story *story, const char *output)
{
	const char *arguments[NODES_MAX + 6] = {"merge", "-o", output};
	int count = 3;
	if (story->ask->is_json)
		arguments[count++] = "-q";
	for (size_t i = 0; i < story->count; i++)
		arguments[count++] = story->captures[i];
	if (story->count > 1)
		return tw_tool_merge(count, (char **)arguments);
	if (rename(story->captures[0], output) < 0)
		return tw_fail("'%s' cannot be made: %s.", output, strerror(errno));
	return TW_EXIT_OK;
}

static int show(const struct story *story, const char *output)
{
	const char *arguments[] =
		{"seq", "--label", story->ask->label, "--format", story->ask->is_json ? "json" : "text", output, NULL};
	return tw_tool_seq(6, (char **)arguments);
}

static int tell(struct story *story)
{
	char output[PATH_MAX], segments[TW_FIGURE_BYTES], nodes[TW_FIGURE_BYTES];
	if (!fetch_all(story))
		return TW_EXIT_FAILURE;
	/* Times are those of the first, whatever the order of summaries. */
	qsort(story->captures, story->count, sizeof *story->captures, by_name);
	if (!story->count)
		return tw_fail("no segment of these nodes and this time that the store has knows the label %s.",
			       story->ask->label);
	if (!story->ask->is_json)
		tw_say("%s of %s", tw_figure_of(segments, story->segments, "segment", "segments"),
		       tw_figure_of(nodes, story->count, "node", "nodes"));
	if ((size_t)snprintf(output, sizeof output, "%s/story.merged.tw", story->folder) >= sizeof output)
		return tw_fail("the path of the temporary folder is too long.");
	const char *path = story->ask->output ? story->ask->output : output;
	int code = merge(story, path);
	code = code == TW_EXIT_OK ? show(story, path) : code;
	return code == TW_EXIT_OK && (story->is_incomplete || story->ask->rows.set_aside) ? TW_EXIT_FAILURE : code;
}

/* Beside the output, so that the only capture can be moved to its place. */
static void name_folder(const char *output, char folder[PATH_MAX])
{
	const char *temporary = getenv("TMPDIR"), *slash = output ? strrchr(output, '/') : NULL;
	int bytes = slash ? (int)(slash - output) + 1 : 0;
	if (output)
		snprintf(folder, PATH_MAX, "%.*s.tracewheel-story.XXXXXX", bytes, output);
	else
		snprintf(folder, PATH_MAX, "%s/tracewheel-story.XXXXXX", temporary && *temporary ? temporary : "/tmp");
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *at)
{
	return remove(path);
}

int tw_fleet_story(struct tw_fleet_ask *ask)
{
	static struct story story;
	char label[TW_LABEL_BYTES], digits[TW_SEQ_TRACE_ID_TEXT];
	unsigned char id[TW_SEQ_TRACE_ID_BYTES];
	story.ask = ask;
	tw_seq_label_read(ask->label, label);
	ask->rows.label = label;
	if (tw_seq_trace_id_read(ask->label, id))
		ask->rows.trace_id = tw_seq_trace_id_text(id, digits);
	if (ask->output && access(ask->output, F_OK) == 0)
		return tw_fail("'%s' exists: story makes a new capture.", ask->output);
	if (!tw_fleet_read(&ask->rows, ask->store))
		return TW_EXIT_FAILURE;
	name_folder(ask->output, story.folder);
	if (!mkdtemp(story.folder))
		return tw_fail("a temporary folder cannot be made: %s.", strerror(errno));
	int code = tell(&story);
	for (size_t i = 0; i < story.count; i++)
		free(story.captures[i]);
	nftw(story.folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return code;
}
