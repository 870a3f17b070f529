/* SPDX-License-Identifier: Apache-2.0 */
/* recover.c - `tracewheel recover`: completes a capture whose recorder died. */
#include "views/names/missing.h"
#include "tools/tool.h"

#include "tracewheel/capture.h"
#include "tracewheel/consumer.h"
#include "tracewheel/error.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct request {
	bool is_quiet, is_list, is_clean;
};

static const struct tw_option options_table[] = {
	{TW_SETS('q', struct request, is_quiet), "quiet", NULL, "say nothing when all went well"},
	{TW_SETS('l', struct request, is_list), "list", NULL,
	 "list what interrupted recordings left in /dev/shm: bytes, paths, and the captures that they belong to"},
	{TW_SETS('c', struct request, is_clean), "clean", NULL,
	 "remove all of that; captures that are still there are completed first"},
	{0},
};

static const struct tw_command command = {
	.name = "recover",
	.arguments = "[--quiet] NAME.tw | --list | --clean",
	.summary = "Completes a capture whose recorder died: stores what the rings in /dev/shm still hold, and\n"
		   "closes segments that were cut off. May be repeated; a complete capture is left as it is. Only the\n"
		   "folder that was recorded into is completed, not a copy. Ends with 1 if events are missing all the\n"
		   "same, as after a restart of the machine, which empties /dev/shm.",
	.options = options_table,
	.examples = "  tracewheel recover sqlite3.tw\n"
		    "  tracewheel recover --list\n",
};

static void put_set(const struct tw_recover_set *set, void *arg)
{
	unsigned *failures = arg;
	char path[PATH_MAX];
	path[tw_clean(set->capture_path, strlen(set->capture_path), path, sizeof path - 1)] = 0;
	printf("%12llu  %s%s%s\n", (unsigned long long)set->bytes, set->path, *set->capture_path ? "  " : "", path);
	if (set->error && *set->capture_path)
		tw_say("%s stays: %s could not be completed: %s", set->path, path, tw_strerror(set->error));
	*failures += set->error != 0;
}

/* The ring sets of recordings that were cut off, whether their captures are still there or not. */
static int list_or_clean_sets(bool is_clean, bool is_quiet)
{
	unsigned failures = 0;
	unsigned count = is_clean ? tw_recover_clean(put_set, &failures) : tw_recover_list(put_set, &failures);
	if (!is_quiet)
		tw_say("%u %s of recordings that were cut off%s.", count, count == 1 ? "ring set" : "ring sets",
		       is_clean ? " removed"
		       : count	? "; --clean removes them"
				: "");
	return tw_flush_stdout() && !failures ? TW_EXIT_OK : TW_EXIT_FAILURE;
}

/* The additions, and the events that are missing all the same: these are a failure, also where an earlier recovery has found it. */
static int say_result(const char *path, const struct tw_recorder_stats *stats, bool is_quiet)
{
	struct tw_capture_account account;
	struct tw_capture_info info;
	struct tw_capture *capture;
	char figure[TW_FIGURE_BYTES], clause[TW_MISSING_TEXT_BYTES];
	int error = tw_capture_open(path, NULL, &capture);
	if (error)
		return tw_fail("'%s' was closed, but cannot be read: %s", path, tw_strerror(error));
	tw_capture_info(capture, &info);
	tw_capture_account(capture, &account);
	tw_capture_close(capture);
	bool is_failure = tw_missing_is_failure(&account, &info);
	if (!is_quiet || is_failure)
		tw_say("%s is %s: %s event%s added to it.", path, is_failure ? "closed, but not whole" : "whole",
		       tw_figure_count(figure, stats->events), stats->events == 1 ? " was" : "s were");
	if (is_failure && tw_missing_any(&account, TW_MISSING_CUT))
		tw_say("its rings in /dev/shm are gone, with the events that were not stored yet: the machine was restarted, or "
		       "/dev/shm was cleaned.");
	for (unsigned cause = TW_MISSING_SEGMENTS; cause <= TW_MISSING_UNSTORED && is_failure; cause++) {
		if (*tw_missing_clause(&account, cause, clause))
			tw_say("%s: %s.", path, clause);
	}
	return is_failure ? TW_EXIT_FAILURE : TW_EXIT_OK;
}

int tw_tool_recover(int argc, char **argv)
{
	struct tw_options options = {.command = &command, .argc = argc, .argv = argv};
	struct request request = {0};
	int code;
	if (!tw_options_read(&options, NULL, &request, &code))
		return code;
	if (request.is_list || request.is_clean)
		return list_or_clean_sets(request.is_clean, request.is_quiet);
	/* The command changes its argument, so it guesses none. */
	if (options.index >= argc)
		return tw_usage(&command, "which capture? Give the name of a folder such as sqlite3.tw.");
	const char *path = tw_options_capture(&options);
	if (!path)
		return TW_EXIT_USAGE;
	if (strcmp(path, "-") == 0)
		return tw_fail("a stream cannot be completed: `tracewheel report` shows as much as arrived.");
	struct tw_recorder_stats stats = {0};
	int error = tw_recover(path, &stats);
	struct stat status;
	if (error == TW_ENOENT && stat(path, &status) == 0 && !S_ISDIR(status.st_mode))
		return tw_fail(
			"'%s' is a file, not a capture's folder: a stream or a single segment is read as far as it goes.",
			path);
	if (error == TW_ENOENT)
		return tw_fail("there is no capture '%s'.", path);
	if (error == TW_EFORMAT)
		return tw_fail("'%s' is not a capture; it was not touched.", path);
	if (error == TW_EEXIST)
		return tw_fail("'%s' is being recorded at this moment; there is nothing to recover.", path);
	if (error == TW_ENOTSUP)
		return tw_fail("'%s' is half of a merge that was cut off: it cannot be completed. Merge again.", path);
	if (error == TW_EPERM)
		return tw_fail(
			"'%s' was not touched: you may not write to it, or the rings that it names are not yours, or were made for "
			"another folder. A copy is not completed, nor what was moved to another file system.",
			path);
	if (error)
		return tw_fail("'%s' could not be recovered: %s", path, tw_strerror(error));
	return say_result(path, &stats, request.is_quiet);
}
