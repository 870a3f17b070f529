/* SPDX-License-Identifier: Apache-2.0 */
/* sides.c - captures of two sides. */
#include "tools/report/sides.h"
#include "views/names/lines.h"
#include "views/names/missing.h"
#include "views/names/names.h"
#include "tools/report/report.h"

#include "tracewheel/error.h"

#include <string.h>

const char *const tw_side_names[TW_SIDES] = {"old", "new"};

bool tw_sides_take(struct tw_sides *sides, const struct tw_command *command, const char *path)
{
	if (sides->old_count == TW_SIDES_CAPTURES_MAX)
		return tw_refuse(command, "--diff takes at most %d captures.", TW_SIDES_CAPTURES_MAX);
	sides->old[sides->old_count++] = path;
	return true;
}

static void note_capture(struct tw_sides *sides, unsigned side, const char *path, const struct tw_capture *capture,
			 const struct tw_capture_filter *filter, const struct tw_totals *totals)
{
	struct tw_sides_capture *note = &sides->captures[sides->count++];
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	uint64_t from = filter->from_ns > info.start_ns ? filter->from_ns : info.start_ns;
	uint64_t to = filter->to_ns && filter->to_ns < info.end_ns ? filter->to_ns : info.end_ns;
	*note = (struct tw_sides_capture){.path = path,
					  .side = side,
					  .events = totals->events,
					  .seconds = to > from ? (double)(to - from) / 1e9 : 0};
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
		note->lost += totals->lost[cause];
	/* Also what is missing for other causes than losses of a selected part. */
	tw_missing_say(capture);
}

/* Sums up an open capture. Returns 0 or an error. */
static int add_capture(struct tw_sides *sides, unsigned side, const char *path, struct tw_capture *capture,
		       const struct tw_capture_filter *filter)
{
	struct tw_totals totals = {0};
	struct tw_calltree tree = {.has_spread = true,
				   .has_node_spread = sides->wants_tree,
				   .follows_locks = true,
				   .when = tw_selection_when(sides->selection)};
	uint64_t durations;
	int made = tw_report_at_once(&totals, &tree, capture, filter, &durations), error = made < 0 ? made : 0;
	bool is_tree = made == 1;
	if (!made) {
		error = tw_report_totals(&totals, &tree.places, capture, filter, &durations);
		if (!error && !durations && tw_when_is_late(tree.when))
			error = TW_ENOTSUP;
		is_tree = !error && (durations || sides->wants_tree);
		if (is_tree)
			error = tw_calltree_make(&tree, capture, filter);
	}
	if (!error && sides->wants_tree && !tw_treediff_add(&sides->tree, side, &tree))
		error = TW_ENOMEM;
	if (!error && !tw_differences_add(&sides->differences, side, capture, durations ? &tree : NULL, &totals))
		error = TW_ENOMEM;
	if (!error) {
		note_capture(sides, side, path, capture, filter, &totals);
		memcpy(sides->captures[sides->count - 1].cost_ns, tree.cost.ns, sizeof tree.cost.ns);
	}
	tw_calltree_free(&tree);
	tw_totals_free(&totals);
	tw_lines_forget();
	return error;
}

/* False: it cannot be compared, which has been reported. */
static bool read_capture(struct tw_sides *sides, unsigned side, const char *path)
{
	struct tw_capture *capture = tw_names_open(path);
	struct tw_capture_filter filter;
	if (!capture)
		return false;
	bool is_read = tw_selection_filter(sides->selection, capture, sides->command, &filter);
	int error = is_read ? add_capture(sides, side, path, capture, &filter) : 0;
	if (error)
		tw_selection_fail(sides->selection, path, error);
	int code = tw_names_end(capture, path, TW_EXIT_OK);
	sides->code = sides->code ? sides->code : code;
	tw_capture_close(capture);
	return is_read && !error;
}

int tw_sides_read(struct tw_sides *sides, char **paths)
{
	unsigned count = 0;
	bool is_read = true;
	while (paths[count])
		count++;
	if (count > TW_SIDES_CAPTURES_MAX)
		return tw_usage(sides->command, "--diff takes at most %d captures.", TW_SIDES_CAPTURES_MAX);
	sides->tree.captures[TW_OLD] = sides->old_count;
	sides->tree.captures[TW_NEW] = count;
	for (unsigned i = 0; i < sides->old_count && is_read; i++)
		is_read = read_capture(sides, TW_OLD, sides->old[i]);
	for (unsigned i = 0; i < count && is_read; i++)
		is_read = read_capture(sides, TW_NEW, paths[i]);
	if (!is_read)
		return TW_EXIT_FAILURE;
	if (!tw_differences_finish(&sides->differences) || (sides->wants_tree && !tw_treediff_finish(&sides->tree)))
		return tw_fail("no memory.");
	if (!sides->differences.common)
		return tw_fail(
			"no function was called in both: these are captures of different programs, or of different functions (-t).");
	return 0;
}

void tw_sides_free(struct tw_sides *sides)
{
	tw_differences_free(&sides->differences);
	tw_treediff_free(&sides->tree);
}
