/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.c - `tracewheel merge`: captures of several nodes become one.
 *
 *	1 open and check them   2 which machine each is of   3 messages between machines   4 the common time
 *	5 write                 6 say what was found
 */
#include "views/names/names.h"
#include "tools/common/unwritten.h"
#include "tools/merge/messages.h"
#include "tools/merge/merge.h"
#include "tools/tool.h"

#include "tracewheel/error.h"
#include "tracewheel/merge.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct request {
	const char *output;
	bool is_forced, is_json, is_quiet;
};

static const struct tw_option options_table[] =
	{{TW_SETS('o', struct request, output), "output", "ALL.tw", "the new capture"},
	 {TW_SETS('f', struct request, is_forced), "force", NULL, "replace a capture of that name"},
	 {TW_SETS(0, struct request, is_json), "json", NULL, "print what was found as JSON (docs/json.md)"},
	 {TW_SETS('q', struct request, is_quiet), "quiet", NULL, "say nothing when all went well"},
	 {0}};

static const struct tw_command command = {
	.name = "merge",
	.arguments = "[OPTION]... -o ALL.tw A.tw B.tw...",
	.summary =
		"Merges captures of several nodes, on one machine or many, into one. All commands read it like any other, and show the "
		"node of each process: the name of the capture that it comes from.\n"
		"\nCaptures of one machine since one boot share its clock. Clocks of different machines are aligned by the messages of "
		"sequential tracing between them (seq_trace, docs/seq-trace.md): none may be received before it was sent. Times are those of the "
		"first capture; the offset and the drift of each other clock are printed with their uncertainty. Without messages in both directions "
		"the machines' wall clocks are used. Captures whose clocks were stepped meanwhile are refused.",
	.options = options_table,
	.examples = "  tracewheel merge -o all.tw shop.tw stock.tw\n"
		    "  tracewheel merge -o all.tw web*.tw && tracewheel seq all.tw\n"
		    "  tracewheel merge --json -o all.tw a.tw b.tw | jq '.captures[].offset_ns'\n",
};

/* ---- 1: opening ---- */

/* "shop" of /tmp/shop.tw; the same name again gets a number. */
static bool name_node(struct tw_merging *merging, uint32_t number)
{
	char name[TW_MERGING_NODE_BYTES], *slash;
	size_t bytes = strlen(merging->paths[number]);
	char *path = strndup(merging->paths[number], bytes);
	while (path && bytes > 1 && path[bytes - 1] == '/')
		path[--bytes] = 0;
	if (path && bytes > 3 && strcmp(path + bytes - 3, ".tw") == 0)
		path[bytes - 3] = 0;
	slash = path ? strrchr(path, '/') : NULL;
	const char *base = path ? (slash && slash[1] ? slash + 1 : path) : "?";
	for (unsigned copy = 1, is_taken = 1; is_taken; copy++) {
		is_taken = 0;
		if (copy == 1)
			snprintf(name, sizeof name, "%.*s", (int)tw_utf8_part(base, strnlen(base, 48)), base);
		else
			snprintf(name, sizeof name, "%.*s-%u", (int)tw_utf8_part(base, strnlen(base, 48)), base, copy);
		for (uint32_t i = 0; i < number; i++)
			is_taken |= strcmp(merging->nodes[i], name) == 0;
	}
	free(path);
	strcpy(merging->nodes[number], name);
	return path != NULL;
}

/* A capture that can be merged; false: it cannot, which has been reported. */
static bool check_capture(const struct tw_merging *merging, uint32_t number)
{
	const struct tw_capture *capture = merging->captures[number];
	const char *path = merging->paths[number];
	const struct tw_capture_image *image;
	const struct tw_capture_segment *segment = tw_capture_segment(capture, 0);
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	if (!segment || !tw_capture_image(capture, 0))
		return tw_complain("'%s' is a stream, or empty: only captures in folders are merged.", path);
	for (uint32_t i = 0; (segment = tw_capture_segment(capture, i)); i++)
		info.is_live |= !segment->is_closed;
	if (info.is_live)
		return tw_complain(
			"%s has no end yet: let its recording end, or complete it with `tracewheel recover %s`.", path,
			path);
	for (uint32_t i = 0; (image = tw_capture_image(capture, i)); i++) {
		if (info.is_part)
			return tw_complain(
				"%s is a part that `tracewheel cut` made: merge whole captures, and cut the merged one.",
				path);
		if (*image->node)
			return tw_complain(
				"%s is merged already: merge the captures that it was made of, and the others, at once.",
				path);
	}
	return true;
}

static bool is_same_boot(const struct tw_capture_image *a, const struct tw_capture_image *b)
{
	return memcmp(a->boot_id, b->boot_id, sizeof a->boot_id) == 0;
}

static bool check_same(const struct tw_merging *merging, uint32_t a, uint32_t b)
{
	if (tw_capture_image(merging->captures[a], 0)->capture_id ==
	    tw_capture_image(merging->captures[b], 0)->capture_id)
		return tw_complain("%s and %s are the same capture.", merging->paths[a], merging->paths[b]);
	return true;
}

static bool open_captures(struct tw_merging *merging)
{
	for (uint32_t i = 0; i < merging->count; i++) {
		merging->captures[i] = tw_names_open(merging->paths[i]);
		if (!merging->captures[i] || !check_capture(merging, i))
			return false;
		if (!name_node(merging, i))
			return !tw_fail("no memory.");
		for (uint32_t before = 0; before < i; before++) {
			if (!check_same(merging, before, i))
				return false;
		}
	}
	return true;
}

/* ---- 2: machines ---- */

/* Captures of one boot share a clock. */
static bool find_machines(struct tw_merging *merging)
{
	struct tw_capture **same = calloc(merging->count, sizeof *same);
	bool is_done = same != NULL;
	for (uint32_t i = 0; i < merging->count && is_done; i++) {
		uint32_t machine = UINT32_MAX, count = 0;
		for (uint32_t before = 0; before < i && machine == UINT32_MAX; before++) {
			if (is_same_boot(tw_capture_image(merging->captures[before], 0),
					 tw_capture_image(merging->captures[i], 0)))
				machine = merging->machine_of[before];
		}
		merging->machine_of[i] = machine == UINT32_MAX ? merging->machine_count++ : machine;
		if (machine != UINT32_MAX)
			continue;
		for (uint32_t other = i; other < merging->count; other++) {
			if (is_same_boot(tw_capture_image(merging->captures[other], 0),
					 tw_capture_image(merging->captures[i], 0)))
				same[count++] = merging->captures[other];
		}
		is_done = tw_captures_share_clock(same, count) != TW_ENOMEM;
	}
	for (uint32_t i = 0; i < merging->count && is_done; i++) {
		struct tw_align_machine *machine = &merging->machines[merging->machine_of[i]];
		struct tw_capture_info info;
		tw_capture_info(merging->captures[i], &info);
		if (!machine->end_ns || info.start_ns < machine->start_ns) {
			machine->start_ns = info.start_ns;
			machine->start_wall_ns = tw_capture_wall_ns(merging->captures[i], info.start_ns);
		}
		machine->end_ns = info.end_ns > machine->end_ns ? info.end_ns : machine->end_ns;
		machine->end_ns = machine->end_ns > machine->start_ns ? machine->end_ns : machine->start_ns + 1;
	}
	free(same);
	return is_done || !tw_fail("no memory.");
}

/* ---- 3, 4: the common time ---- */

static bool check_nodes(const struct tw_merging *merging)
{
	for (uint32_t i = 0; i < merging->messages.node_count; i++) {
		const struct tw_messages_node *node = &merging->messages.nodes[i];
		if (!node->is_twice)
			continue;
		return tw_complain(
			"%s and %s are both of the node '%s': its events would be there twice, or which messages are whose "
			"cannot be told. Leave one of them out.",
			merging->paths[node->capture], merging->paths[node->other], node->name);
	}
	return true;
}

/* The first capture of a machine. */
static const char *path_of(const struct tw_merging *merging, uint32_t machine)
{
	for (uint32_t i = 0; i < merging->count; i++) {
		if (merging->machine_of[i] == machine)
			return merging->paths[i];
	}
	return "?";
}

static void say_conflict(const struct tw_merging *merging, const struct tw_align_conflict *conflict)
{
	const struct tw_align_machine *machine = &merging->machines[conflict->machine];
	char by[TW_FIGURE_BYTES], at[TW_FIGURE_BYTES];
	tw_say("the clocks of %s and %s cannot be aligned: messages contradict each other by %s, about %s after the start of %s. "
	       "A clock was stepped or its machine was suspended in between. Record both again, or merge captures of the time before it "
	       "and after it separately. Nothing was written.",
	       path_of(merging, conflict->machine), path_of(merging, conflict->other),
	       tw_figure_duration(by, (uint64_t)conflict->by_ns),
	       tw_figure_duration(at, conflict->at_ns > machine->start_ns ? conflict->at_ns - machine->start_ns : 0),
	       path_of(merging, conflict->machine));
}

static bool find_time(struct tw_merging *merging)
{
	struct tw_align_conflict conflict;
	int error;
	merging->messages = (struct tw_messages){.captures = merging->captures,
						 .machines = merging->machine_of,
						 .count = merging->count,
						 .align = merging->align =
							 tw_align_create(merging->machines, merging->machine_count)};
	if (!merging->align)
		return !tw_fail("no memory.");
	error = tw_messages_find_nodes(&merging->messages);
	if (error == 0 && !check_nodes(merging))
		return false;
	if (error == 0)
		error = tw_messages_read(&merging->messages);
	if (error)
		return !tw_fail("the captures cannot be read: %s", tw_strerror(error));
	error = tw_align_solve(merging->align, merging->machine_of[0], &conflict);
	if (error == TW_EFORMAT)
		say_conflict(merging, &conflict);
	else if (error)
		tw_fail("the clocks cannot be aligned: %s", tw_strerror(error));
	return error == 0;
}

/* ---- 5: writing ---- */

/* Moves all times so that none is before 0. */
static double shift_of(const struct tw_merging *merging)
{
	const struct tw_align_machine *reference = &merging->machines[merging->machine_of[0]];
	double least = 0;
	for (uint32_t i = 0; i < merging->machine_count; i++)
		least = fmin(least, merging->machines[i].common[0] + (double)reference->start_ns);
	return least < 0 ? ceil(1e9 - least) : 0;
}

/* The knots of a machine. Returns their number; 0: no memory. */
static uint32_t make_knots(const struct tw_merging *merging, uint32_t number, uint64_t shift_ns,
			   struct tw_merge_knot **out)
{
	const struct tw_align_machine *machine = &merging->machines[number];
	const struct tw_align_machine *reference = &merging->machines[merging->machine_of[0]];
	double step = (double)(machine->end_ns - machine->start_ns) / machine->pieces;
	struct tw_merge_knot *knots = calloc(machine->pieces + (size_t)1, sizeof *knots);
	uint32_t count = 0;
	*out = knots;
	for (uint32_t i = 0; knots && i <= machine->pieces; i++) {
		struct tw_merge_knot knot = {machine->start_ns + (uint64_t)llround(step * i),
					     (uint64_t)((int64_t)(reference->start_ns + shift_ns) +
							llround(machine->common[i]))};
		if (!count || knot.from_ns > knots[count - 1].from_ns)
			knots[count++] = knot;
	}
	return count;
}

static struct tw_meter meter;

static void on_progress(void *context, uint64_t events)
{
	tw_meter_at(&meter, events, *(const uint64_t *)context);
}

/* Else blocks are copied as they are. */
static bool changes_times(const struct tw_merging *merging)
{
	bool is_moved = merging->machine_count > 1;
	for (uint32_t i = 0; i < merging->count; i++)
		is_moved |= tw_capture_clock_shift_ns(merging->captures[i]) != 0;
	return is_moved;
}

static bool write_capture(struct tw_merging *merging, const struct request *request)
{
	struct tw_merge_input *inputs = calloc(merging->count, sizeof *inputs);
	char(*notes)[TW_MERGING_LINE_BYTES] = calloc(merging->count, sizeof *notes);
	uint64_t events = 0, shift_ns = (uint64_t)shift_of(merging);
	struct tw_merge_options options = {.path = request->output,
					   .is_forced = request->is_forced,
					   .progress = on_progress,
					   .context = &events};
	int error = inputs && notes ? 0 : TW_ENOMEM;
	for (uint32_t i = 0; i < merging->count && error == 0; i++) {
		struct tw_merge_knot *knots = NULL;
		struct tw_capture_info info;
		tw_capture_info(merging->captures[i], &info);
		events += info.events;
		inputs[i] = (struct tw_merge_input){.capture = merging->captures[i],
						    .node = merging->nodes[i],
						    .note = notes[i]};
		size_t used = (size_t)snprintf(notes[i], sizeof notes[i], "merged from %s: ", merging->nodes[i]);
		tw_merging_line(merging, i, notes[i] + used, sizeof notes[i] - used);
		if (!changes_times(merging))
			continue;
		inputs[i].knot_count = make_knots(merging, merging->machine_of[i], shift_ns, &knots);
		inputs[i].knots = knots;
		error = knots ? 0 : TW_ENOMEM;
	}
	tw_meter_start(&meter, "merging");
	if (error == 0)
		error = tw_captures_merge(inputs, merging->count, &options, &merging->result);
	tw_meter_stop(&meter);
	for (uint32_t i = 0; inputs && i < merging->count; i++)
		free((void *)(uintptr_t)inputs[i].knots);
	free(inputs);
	free(notes);
	return !error || tw_unwritten(request->output, request->is_forced, error);
}

/* ---- all of it ---- */

static struct tw_out out;

static int show(const struct tw_merging *merging, const struct request *request)
{
	tw_out_init(&out, STDOUT_FILENO);
	if (request->is_json)
		tw_merging_json(&out, merging, request->output);
	else if (!request->is_quiet)
		tw_merging_text(&out, merging, request->output);
	return tw_out_finish(&out);
}

static int merge(struct tw_merging *merging, const struct request *request)
{
	size_t count = merging->count;
	int code = TW_EXIT_FAILURE;
	merging->captures = calloc(count, sizeof *merging->captures);
	merging->machines = calloc(count, sizeof *merging->machines);
	merging->machine_of = calloc(count, sizeof *merging->machine_of);
	merging->nodes = calloc(count, sizeof *merging->nodes);
	if (!merging->captures || !merging->machines || !merging->machine_of || !merging->nodes)
		tw_fail("no memory.");
	else if (open_captures(merging) && find_machines(merging) && find_time(merging) &&
		 write_capture(merging, request))
		code = show(merging, request);
	/* Anything that an input lacks is missing in the new capture too. */
	for (uint32_t i = 0; i < count && code == TW_EXIT_OK; i++) {
		int end = tw_names_end(merging->captures[i], merging->paths[i], TW_EXIT_OK);
		merging->is_lacking |= end != TW_EXIT_OK;
	}
	if (code == TW_EXIT_OK && merging->is_lacking)
		code = TW_EXIT_FAILURE;
	for (uint32_t i = 0; merging->captures && i < count; i++)
		tw_capture_close(merging->captures[i]);
	tw_messages_free(&merging->messages);
	tw_align_destroy(merging->align);
	free(merging->captures);
	free(merging->machines);
	free(merging->machine_of);
	free(merging->nodes);
	return code;
}

int tw_tool_merge(int argc, char **argv)
{
	struct tw_options options = {.command = &command, .argc = argc, .argv = argv};
	struct request request = {0};
	int code;
	if (!tw_options_read(&options, NULL, &request, &code))
		return code;
	/* A limit on the size of files is a full disk. */
	signal(SIGXFSZ, SIG_IGN);
	struct tw_merging merging = {.paths = argv + options.index, .count = (uint32_t)(argc - options.index)};
	if (!request.output || !*request.output)
		return tw_usage(&command, "where to? -o ALL.tw names the new capture.");
	if (merging.count < 2)
		return tw_usage(&command, "which captures? At least two.");
	if (merging.count > TW_ALIGN_MACHINES_MAX)
		return tw_usage(&command, "at most %d captures at once.", TW_ALIGN_MACHINES_MAX);
	return merge(&merging, &request);
}
