/* SPDX-License-Identifier: Apache-2.0 */
/* info.c - `tracewheel info`: summarises a capture. It checks its blocks and decodes no events. */
#include "views/names/counted.h"
#include "views/names/holes.h"
#include "views/names/missing.h"
#include "views/names/notes.h"
#include "views/names/crash.h"
#include "views/names/names.h"
#include "tools/common/pager.h"
#include "tools/tool.h"

#include "tracewheel/error.h"
#include "tracewheel/segment.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { KEY_JSON = 256 };

struct request {
	bool is_json;
};

static const struct tw_option options_table[] = {
	{TW_SETS(0, struct request, is_json), "json", NULL, "as JSON (docs/json.md)"},
	{0},
};

static const struct tw_command command = {
	.name = "info",
	.arguments = "[--json] [NAME.tw | FILE | -]",
	.summary = "Summarises a capture: events, losses by cause, bytes, time, damage.\n" TW_STREAM_HELP,
	.options = options_table,
	.has_pager = true,
	.examples = "  tracewheel info sqlite3.tw\n"
		    "  tracewheel info --json sqlite3.tw | jq .lost\n"
		    "  tracewheel record -q -o - -- ls | tracewheel info -\n",
};

/* The most processes that are listed one by one. */
#define IMAGES_MAX 1000

static struct tw_out out;
static struct tw_meter meter;
static const struct tw_capture_image *images[IMAGES_MAX];
static char key[TW_SEGMENT_KEY_BYTES];
static bool has_identity;

static double seconds_of(const struct tw_capture_info *info)
{
	return info->end_ns > info->start_ns ? (double)(info->end_ns - info->start_ns) / 1e9 : 0;
}

static double bytes_per_event(const struct tw_capture_info *info)
{
	return info->events ? (double)info->file_bytes / (double)info->events : 0;
}

static void put_lost(const struct tw_capture *capture, const struct tw_capture_info *info,
		     const struct tw_capture_account *account)
{
	char text[TW_MISSING_TEXT_BYTES];
	tw_missing_lost(info->lost, tw_missing_apart_of(account), text);
	tw_out_format(&out, "lost          %s\n",
		      *text				       ? text
		      : info->is_live			       ? "nothing so far"
		      : tw_missing_is_part(account, info)      ? "nothing is reported, but parts of it are missing"
		      : tw_notes_is_untraced(capture, account) ? "nothing, but not everything was traced"
							       : "nothing");
}

/* Shows data missing for other causes, and the tracer's own time. */
static void put_missing(const struct tw_capture *capture, const struct tw_capture_account *account)
{
	char clause[TW_MISSING_TEXT_BYTES];
	for (unsigned cause = TW_MISSING_OVERWRITTEN; cause < TW_MISSING_CAUSES; cause++) {
		if (*tw_missing_clause(account, cause, clause))
			tw_out_format(&out, "%-14s%s\n", tw_missing_cause_name(cause), clause);
	}
	for (uint32_t i = 0; tw_missing_hole(capture, i, clause); i++)
		tw_out_format(&out, "hole          %s\n", clause);
	if (tw_capture_is_asked(capture))
		tw_out_text(
			&out,
			"asked for     some segments only: the folder names them, and others count as not wanted\n");
	if (*tw_missing_waits(account, clause))
		tw_out_format(&out, "waits         %s\n", clause);
	if (*tw_missing_setups(account, clause))
		tw_out_format(&out, "set-up        %s\n", clause);
	if (account->switches_lost)
		tw_out_format(&out, "switches      %s lost: states of threads are unknown there\n",
			      tw_figure_of(clause, account->switches_lost, "context switch was",
					   "context switches were"));
}

static void put_ending(const struct tw_capture *capture)
{
	char ending[TW_ENDING_BYTES], stop[TW_STOP_BYTES], trigger[TW_TRIGGER_BYTES];
	bool is_well;
	enum tw_stop why;
	uint64_t limit;
	if (has_identity)
		tw_out_format(&out, "key           %s\n", key);
	if (tw_name_trigger(capture, trigger))
		tw_out_format(&out, "snapshot      %s\n", trigger);
	tw_crash_put(&out, capture, "crash         ", "              ");
	if (tw_capture_stopped(capture, &why, &limit))
		tw_out_format(&out, "stopped       the recording ended %s; the program went on\n",
			      tw_name_stop(why, limit, stop));
	if (tw_name_ending(capture, ending, &is_well))
		tw_out_format(&out, "ended         %s\n", ending);
}

static void put_complete(const struct tw_capture_info *info, const struct tw_capture_account *account)
{
	tw_out_text(&out, "complete      ");
	const char *between = "no: ";
	if (info->is_live)
		tw_out_format(&out, "no: %s", tw_names_unfinished());
	for (unsigned cause = TW_MISSING_REMOVED; cause <= TW_MISSING_FUNCTIONS && !info->is_live; cause++) {
		static const char *const words[] = {[TW_MISSING_REMOVED] = "the oldest of it was removed",
						    [TW_MISSING_SEGMENTS] = "segments are missing",
						    [TW_MISSING_DAMAGED] = "damaged",
						    [TW_MISSING_RINGS] = "rings were damaged",
						    [TW_MISSING_CUT] = "cut off",
						    [TW_MISSING_UNSTORED] = "the disk was full",
						    [TW_MISSING_PLANS] = "plans were not ready in time",
						    [TW_MISSING_FUNCTIONS] = "functions were not armed"};
		if (!words[cause] || !tw_missing_any(account, cause))
			continue;
		tw_out_format(&out, "%s%s", between, words[cause]);
		between = ", ";
	}
	tw_out_text(&out, info->is_complete ? "yes\n" : *between == 'n' && !info->is_live ? "no: cut off\n" : "\n");
}

static void put_images(const struct tw_capture *capture)
{
	size_t count = tw_names_images(capture, images, IMAGES_MAX);
	for (size_t i = 0; i < count; i++) {
		tw_out_text(&out, "process       ");
		if (images[i]->process_id)
			tw_out_format(&out, "%d: ", images[i]->process_id);
		tw_out_command(&out, images[i]->command, images[i]->command_bytes, SIZE_MAX);
		tw_out_text(&out, "\n");
		const char *note;
		uint32_t at = 0;
		while ((note = tw_capture_note_next(capture, images[i]->image, &at))) {
			tw_out_text(&out, "  note        ");
			tw_out_name(&out, note);
			tw_out_text(&out, "\n");
		}
	}
}

static void put_text(const struct tw_capture *capture, const struct tw_capture_info *info)
{
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], when[64] = "?";
	time_t start = (time_t)(info->start_wall_ns / 1000000000);
	struct tm broken;
	if (localtime_r(&start, &broken))
		strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S %z", &broken);
	tw_out_format(&out, "events        %s\n", tw_figure_count(a, info->events));
	struct tw_capture_account account;
	tw_capture_account(capture, &account);
	put_lost(capture, info, &account);
	put_missing(capture, &account);
	tw_out_format(&out, "bytes         %s (%s, %.2f an event)\n", tw_figure_count(a, info->file_bytes),
		      tw_figure_bytes(b, info->file_bytes), bytes_per_event(info));
	tw_out_format(&out, "time          %s, from %s\n", tw_figure_seconds(a, seconds_of(info)), when);
	tw_out_format(&out, "threads       %s\n", tw_figure_count(a, info->threads));
	tw_out_format(&out, "functions     %s in %s\n", tw_figure_count(a, info->functions),
		      tw_figure_of(b, info->modules, "module", "modules"));
	tw_out_format(&out, "segments      %s, %s\n", tw_figure_count(a, info->segments),
		      tw_figure_of(b, info->blocks, "block", "blocks"));
	put_ending(capture);
	char counted[TW_COUNTED_TEXT_BYTES];
	if (*tw_counted_clause(capture, counted))
		tw_out_format(&out, "counted       %s\n", counted);
	put_complete(info, &account);
	put_images(capture);
	const struct tw_capture_damage *damage;
	for (uint32_t i = 0; (damage = tw_capture_damage(capture, i)); i++) {
		tw_out_text(&out, "damage        ");
		tw_out_name(&out, damage->file);
		tw_out_format(&out, " at byte %llu: %s\n", (unsigned long long)damage->offset, damage->reason);
	}
}

static void put_json_lists(struct tw_json *json, const struct tw_capture *capture)
{
	tw_json_open(json, "processes", '[');
	size_t count = tw_names_images(capture, images, IMAGES_MAX);
	for (size_t i = 0; i < count; i++) {
		const struct tw_capture_image *image = images[i];
		tw_json_open(json, NULL, '{');
		tw_json_u64(json, "process_id", (uint32_t)image->process_id);
		tw_json_string(json, "program", image->program);
		tw_json_open(json, "command", '[');
		for (size_t at = 0; at < image->command_bytes;) {
			size_t bytes = strnlen(image->command + at, image->command_bytes - at);
			tw_json_text(json, NULL, image->command + at, bytes);
			at += bytes + 1;
		}
		tw_json_close(json, ']');
		tw_json_string(json, "host", image->host);
		tw_json_open(json, "notes", '[');
		const char *note;
		uint32_t at = 0;
		while ((note = tw_capture_note_next(capture, image->image, &at)))
			tw_json_string(json, NULL, note);
		tw_json_close(json, ']');
		tw_json_close(json, '}');
	}
	tw_json_close(json, ']');
	tw_json_open(json, "damage", '[');
	const struct tw_capture_damage *damage;
	for (uint32_t i = 0; (damage = tw_capture_damage(capture, i)); i++) {
		tw_json_open(json, NULL, '{');
		tw_json_string(json, "file", damage->file);
		tw_json_u64(json, "offset", damage->offset);
		tw_json_u64(json, "bytes", damage->bytes);
		tw_json_string(json, "reason", damage->reason);
		tw_json_close(json, '}');
	}
	tw_json_close(json, ']');
}

static void put_json(const struct tw_capture *capture, const struct tw_capture_info *info)
{
	struct tw_json json = {.out = &out, .is_spread = true};
	struct tw_capture_account account;
	tw_capture_account(capture, &account);
	tw_json_open(&json, NULL, '{');
	tw_json_u64(&json, "events", info->events);
	tw_missing_lost_json(&json, info->lost, account.missing[TW_MISSING_OVERWRITTEN].events);
	tw_json_u64(&json, "bytes", info->file_bytes);
	tw_json_double(&json, "bytes_per_event", bytes_per_event(info));
	tw_json_double(&json, "seconds", seconds_of(info));
	tw_json_u64(&json, "threads", info->threads);
	tw_json_u64(&json, "functions", info->functions);
	tw_json_u64(&json, "segments", info->segments);
	if (has_identity)
		tw_json_string(&json, "key", key);
	tw_json_bool(&json, "complete", info->is_complete);
	tw_json_ending(&json, capture);
	tw_json_bool(&json, "live", info->is_live);
	tw_json_u64(&json, "blocks", info->blocks);
	tw_json_u64(&json, "modules", info->modules);
	tw_json_u64(&json, "places", info->places);
	tw_json_u64(&json, "raw_bytes", info->raw_bytes);
	tw_json_u64(&json, "damaged_records", info->damaged_records);
	tw_json_u64(&json, "start_wall_ns", info->start_wall_ns);
	tw_missing_json(&json, &account);
	tw_missing_holes_json(&json, capture);
	tw_json_bool(&json, "asked", tw_capture_is_asked(capture));
	struct tw_counted counted;
	tw_counted_sum(capture, &counted);
	if (counted.functions) {
		tw_json_open(&json, "counted", '{');
		tw_json_u64(&json, "functions", counted.functions);
		tw_json_u64(&json, "calls", counted.calls);
		if (counted.longer_ns)
			tw_json_u64(&json, "longer_ns", counted.longer_ns);
		if (counted.condition)
			tw_json_string(&json, "condition", counted.condition);
		if (counted.has_children)
			tw_json_bool(&json, "children", true);
		tw_json_close(&json, '}');
	}
	put_json_lists(&json, capture);
	tw_json_close(&json, '}');
}

/* A closed segment by itself has a name of its own. */
static void identify(const char *path)
{
	struct tw_segment_identity identity;
	int fd = strcmp(path, "-") == 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	has_identity = fd >= 0 && tw_segment_identify(fd, &identity) == 0;
	if (has_identity)
		tw_segment_key(&identity, key);
	if (fd >= 0)
		close(fd);
}

static void on_progress(void *context, uint64_t bytes)
{
	tw_meter_at(&meter, bytes, *(const uint64_t *)context);
}

/* Finds what is damaged, as views find it that show every event. */
static int check(struct tw_capture *capture)
{
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	tw_meter_start(&meter, "checking");
	int error = tw_capture_check(capture, on_progress, &info.file_bytes);
	tw_meter_stop(&meter);
	return error;
}

int tw_tool_info(int argc, char **argv)
{
	struct tw_options options = {.command = &command, .argc = argc, .argv = argv};
	struct request request = {0};
	int code;
	const char *path = tw_options_take(&options, NULL, &request, &code);
	if (!path)
		return code;
	tw_pager_start();
	struct tw_capture *capture = tw_names_open(path);
	if (!capture)
		return TW_EXIT_FAILURE;
	struct tw_capture_info info;
	int error = check(capture);
	if (error) {
		tw_capture_close(capture);
		return tw_fail("reading '%s' failed: %s", path, tw_strerror(error));
	}
	tw_capture_info(capture, &info);
	identify(path);
	tw_out_init(&out, STDOUT_FILENO);
	if (request.is_json)
		put_json(capture, &info);
	else
		put_text(capture, &info);
	code = tw_names_exit(capture, path, tw_out_finish(&out));
	tw_capture_close(capture);
	return code;
}
