/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame.c - `tracewheel flame`: the call tree as one page for a browser (flame_page.c), or as folded stacks.
 */
#include "tools/report/flame.h"
#include "views/folds/folded.h"
#include "views/names/lines.h"
#include "views/names/missing.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	KEY_BY = 256,
	KEY_LEAST,
	KEY_DIFF,
	KEY_MEMORY,
};

static const struct tw_option options_table[] = {
	{TW_SETS(0, struct tw_flame, is_folded), "folded", NULL,
	 "folded stacks for other tools instead of a page: a;b;c N,\nwhere N is the self time in ns, or "
	 "calls; with --diff two numbers, the old one first; with --memory bytes"},
	{TW_SETS(0, struct tw_flame, is_by_process), "by-process", NULL, "a tree for each process, not one of all"},
	{KEY_BY, "by", "KEY",
	 "a tree for each process, name (of a process or thread), or for each\ninitial-call, behaviour, application or label of an Erlang node's processes (docs/erlang.md)"},
	{KEY_DIFF, "diff", "OLD.tw",
	 "what differs from this capture: frames whose own time is longer\nthan there are red, shorter blue, and grey where it may be "
	 "chance.\nMay be repeated, and several captures may follow (docs/differences.md)"},
	{TW_SETS(0, struct tw_flame, is_off), "off", NULL,
	 "frames are as wide as the time in which threads were off the\nprocessor in them (blocked); for captures of `record --sched` (docs/latency.md)"},
	{KEY_MEMORY, "memory", "[=peak|live|allocated]",
	 "frames are as wide as the bytes that they and those above\nthem allocated: what was live when most was (peak), what was not freed at the end, or all; for captures of `record --memory`"},
	TW_PAIR_OPTION,
	{KEY_LEAST, "least", "PERCENT",
	 "draw frames with a smaller share of the whole together with\ntheir neighbours (0.01, or more if there are too many); 0 keeps all"},
	TW_WHEN_OPTIONS,
	TW_HIDE_WAITS_OPTION,
	TW_SELECTION_OPTIONS,
	{0}};

static const struct tw_command command = {
	.name = "flame",
	.arguments = "[OPTION]... [NAME.tw | FILE | -]... > NAME.html",
	.summary = "Makes a flame graph: one page for a browser, without network. Frames are\n"
		   "functions below their callers, as wide as their share of the time; if no\n"
		   "returns were recorded, as their share of the calls, by the call stacks of\n"
		   "`record --stack` if there are any.\n" TW_STREAM_HELP,
	.options = options_table,
	.examples = "  tracewheel flame sqlite3.tw > sqlite3.html\n"
		    "  tracewheel flame --by-process --from 1.5 --to 2 app.tw > app.html\n"
		    "  tracewheel flame --by application shop@localhost.tw > shop.html\n"
		    "  tracewheel record -q --returns -o - -- ls | tracewheel flame - > ls.html\n"
		    "  tracewheel flame --diff before.tw after.tw > difference.html\n"
		    "  tracewheel flame --memory=live server.tw > leaks.html\n"
		    "  tracewheel flame --off server.tw > off.html\n"
		    "  tracewheel flame --folded sqlite3.tw | flamegraph.pl > sqlite3.svg\n",
};

static struct tw_out out;

/* ---- the command ---- */

static bool take_option(void *context, int key, const char *value)
{
	struct tw_flame *flame = context;
	char *end;
	switch (key) {
	case KEY_BY:
		flame->is_by_process = true;
		flame->is_by_kind = strcmp(value, "process") != 0;
		if (!flame->is_by_kind || tw_process_kind_parse(value, &flame->by))
			return true;
		return tw_refuse(&command,
				 "--by is process, name, initial-call, behaviour, application or label, not '%s'.",
				 value);
	case KEY_MEMORY:
		flame->kind = tw_flame_memory_kind(value);
		if (!flame->kind)
			tw_usage(&command, "--memory is peak, live or allocated, not '%s'.", value);
		return flame->kind != NULL;
	case KEY_DIFF: return tw_sides_take(&flame->sides, &command, value);
	case KEY_LEAST:
		flame->is_least_given = true;
		flame->least_percent = strtod(value, &end);
		if (*end || end == value || !(flame->least_percent >= 0 && flame->least_percent <= 100))
			return tw_refuse(&command, "--least is a percentage, not '%s'.", value);
		return true;
	default: return tw_selection_take(&flame->selection, &command, key, value);
	}
}

static int show(struct tw_flame *flame, struct tw_capture *capture, const char *path)
{
	struct tw_capture_filter filter;
	struct tw_calltree tree = {.is_by_process = flame->is_by_process,
				   .is_by_kind = flame->is_by_kind,
				   .kind = flame->by,
				   .is_of_off = flame->is_off,
				   .hides_waits = flame->selection.hides_waits};
	if (!tw_selection_filter(&flame->selection, capture, &command, &filter))
		return TW_EXIT_USAGE;
	tree.when = tw_selection_when(&flame->selection);
	struct tw_parts parts = {0};
	if (!flame->is_folded && !flame->is_off)
		tw_flame_want_parts(&tree, &parts, capture, &filter);
	int error = tw_calltree_make(&tree, capture, &filter), code = TW_EXIT_FAILURE;
	tw_out_init(&out, STDOUT_FILENO);
	bool lacks_states = !error && flame->is_off && !tree.stacks.has_states;
	if (error == 0 && !lacks_states)
		error = flame->is_folded ? tw_folded_put(&out, &tree, NULL, tw_places_have_returns(&tree.places))
					 : tw_flame_page(&out, flame, &tree, &filter, path);
	if (lacks_states)
		tw_say("'%s' has no states of threads: tracewheel record --sched --returns -- COMMAND.", path);
	else if (!error && !tree.events && !tree.stacks.before)
		tw_selection_say_empty(&flame->selection, capture, &filter);
	else if (!error && flame->is_folded && tree.node_count <= TW_CALLTREE_FIRST)
		tw_say("no calls are in the selection, only other events.");
	if (!error && flame->is_folded)
		tw_missing_say(capture);
	if (error)
		tw_selection_fail(&flame->selection, path, error);
	else if (!lacks_states)
		code = tw_out_finish(&out);
	tw_calltree_free(&tree);
	tw_parts_free(&parts);
	tw_lines_forget();
	return tw_names_end(capture, path, code);
}

/* The unknown about blocks, on standard error: folded stacks have no place for it. */
static void say_unknown(const struct tw_memory *memory)
{
	static struct tw_out text;
	tw_out_init(&text, -1);
	tw_memory_sentences(&(struct tw_screen){.out = &text}, memory);
	tw_out_bytes(&text, "", 1);
	for (char *rest = text.data, *line; (line = strsep(&rest, "\n")) != NULL;)
		if (*line)
			tw_say("%s", line);
}

/* --memory; returns the exit code. */
static int show_memory(struct tw_flame *flame, struct tw_capture *capture, const char *path)
{
	struct tw_capture_filter filter;
	struct tw_calltree tree = {0};
	int code = TW_EXIT_FAILURE;
	if (!tw_selection_filter(&flame->selection, capture, &command, &filter))
		return TW_EXIT_USAGE;
	int error = tw_flame_memory_make(flame, &tree, capture, &filter);
	tw_out_init(&out, STDOUT_FILENO);
	if (!error)
		error = flame->is_folded ? tw_folded_put(&out, &tree, NULL, true)
					 : tw_flame_page(&out, flame, &tree, &filter, path);
	if (error == TW_ENOTSUP)
		tw_say(flame->selection.pairs.patterns.wanted_count
			       ? "'%s' has no calls of these functions: tracewheel record --returns --args=raw --stack 8 -t them."
			       : "'%s' has no calls of memory: tracewheel record --memory -- COMMAND.",
		       path);
	else if (error)
		tw_selection_fail(&flame->selection, path, error);
	else
		code = tw_out_finish(&out);
	if (!error && tree.node_count <= TW_CALLTREE_FIRST)
		tw_say("there is no %s.", flame->kind->title);
	if (!error && flame->is_folded) {
		say_unknown(&flame->memory);
		tw_missing_say(capture);
	}
	tw_calltree_free(&tree);
	tw_memory_free(&flame->memory);
	tw_lines_forget();
	return tw_names_end(capture, path, code);
}

/* --diff; returns the exit code. */
static int show_diff(struct tw_flame *flame, char **paths)
{
	struct tw_sides *sides = &flame->sides;
	sides->command = &command;
	sides->selection = &flame->selection;
	sides->wants_tree = true;
	int code = tw_sides_read(sides, paths), error = 0;
	tw_out_init(&out, STDOUT_FILENO);
	if (!code) {
		error = flame->is_folded
				? tw_folded_put(&out, &sides->tree.tree, &sides->tree, !sides->differences.lacks_times)
				: tw_flame_diff_page(&out, flame);
		code = error ? tw_fail("no memory.") : tw_out_finish(&out);
		code = code ? code : sides->code;
	}
	tw_sides_free(sides);
	return code;
}

/* Do the options go together? Returns 0, or an exit code after reporting that they do not. */
static int check(const struct tw_flame *flame, const struct tw_options *options)
{
	if (flame->sides.old_count && options->index >= options->argc)
		return tw_usage(&command, "which capture is compared with '%s'? Its name follows.",
				flame->sides.old[0]);
	if (flame->sides.old_count && (flame->is_by_process || flame->selection.hides_waits))
		return tw_usage(
			&command,
			"--diff goes without --by, --by-process and --hide-waits: processes of two runs are other ones, and chance is known of whole calls.");
	if (flame->is_off && (flame->sides.old_count || flame->kind || flame->selection.hides_waits))
		return tw_usage(&command,
				"--off goes without --diff, --memory and --hide-waits: waits are what it shows.");
	if (!flame->kind && flame->selection.pairs.patterns.wanted_count)
		return tw_usage(&command, "--pair goes with --memory.");
	if (flame->kind && (flame->sides.old_count || flame->is_by_process || flame->selection.hides_waits))
		return tw_usage(&command, "--memory goes without --diff, --by, --by-process and --hide-waits.");
	if (flame->kind &&
	    (tw_selection_is_of_events(&flame->selection) || tw_selection_has_conditions(&flame->selection)))
		return tw_usage(
			&command,
			"--memory follows all calls of whole processes: only --from and --to select a part of them.");
	if (!flame->is_folded && isatty(STDOUT_FILENO)) {
		tw_say("a page is not for a terminal: tracewheel flame %s > flame.html",
		       options->index < options->argc ? options->argv[options->index] : "NAME.tw");
		return TW_EXIT_FAILURE;
	}
	return 0;
}

int tw_tool_flame(int argc, char **argv)
{
	struct tw_options options = {.command = &command, .argc = argc, .argv = argv};
	struct tw_flame flame = {.least_percent = TW_FLAME_LEAST};
	int code;
	bool is_right = tw_options_read(&options, take_option, &flame, &code);
	if (is_right)
		code = check(&flame, &options);
	is_right = is_right && !code;
	const char *path = is_right && !flame.sides.old_count ? tw_options_capture(&options) : NULL;
	struct tw_capture *capture = path ? tw_names_open(path) : NULL;
	if (is_right && flame.sides.old_count)
		code = show_diff(&flame, argv + options.index);
	else if (is_right)
		code = !path	    ? TW_EXIT_USAGE
		       : !capture   ? TW_EXIT_FAILURE
		       : flame.kind ? show_memory(&flame, capture, path)
				    : show(&flame, capture, path);
	if (capture)
		tw_capture_close(capture);
	tw_selection_free(&flame.selection);
	return code;
}
