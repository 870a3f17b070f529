/* SPDX-License-Identifier: Apache-2.0 */
/* report_activity.c - messages and schedules as tables: which process waits for which. */
#include "tools/report/report.h"
#include "views/names/names.h"
#include "base/search.h"

#include <stdio.h>
#include <stdlib.h>

static int by_traffic(const void *a, const void *b)
{
	const struct tw_activity_process *x = *(struct tw_activity_process *const *)a;
	const struct tw_activity_process *y = *(struct tw_activity_process *const *)b;
	uint64_t k = x->sent + x->received, l = y->sent + y->received;
	return TW_ORDER(l, k) ?: TW_ORDER(x->number, y->number);
}

static int by_run_time(const void *a, const void *b)
{
	const struct tw_activity_process *x = *(struct tw_activity_process *const *)a;
	const struct tw_activity_process *y = *(struct tw_activity_process *const *)b;
	return TW_ORDER(y->run_ns, x->run_ns) ?: by_traffic(a, b);
}

static int by_wait(const void *a, const void *b)
{
	const struct tw_activity_pair *x = a, *y = b;
	return TW_ORDER(y->wait_ns, x->wait_ns) ?: TW_ORDER(y->messages, x->messages);
}

/* Sorted copies, so that the activity is not changed; to be freed. */
static struct tw_activity_process **sorted_processes(const struct tw_activity *activity,
						     int (*compare)(const void *, const void *))
{
	struct tw_activity_process **sorted = malloc((activity->process_count + (size_t)1) * sizeof *sorted);
	if (sorted && activity->process_count) {
		memcpy(sorted, activity->processes, activity->process_count * sizeof *sorted);
		qsort(sorted, activity->process_count, sizeof *sorted, compare);
	}
	return sorted;
}

static struct tw_activity_pair *sorted_pairs(const struct tw_activity *activity)
{
	struct tw_activity_pair *sorted = malloc((activity->pair_count + (size_t)1) * sizeof *sorted);
	if (sorted && activity->pair_count) {
		memcpy(sorted, activity->pairs, activity->pair_count * sizeof *sorted);
		qsort(sorted, activity->pair_count, sizeof *sorted, by_wait);
	}
	return sorted;
}

static size_t rows_shown(size_t count, size_t top)
{
	return top && top < count ? top : count;
}

static void put_name(const struct tw_screen *screen, const struct tw_activity *activity, uint32_t process, int used)
{
	char text[200];
	size_t bytes = tw_activity_name(activity, process, text, sizeof text);
	size_t width = screen->columns > used + 1 ? (size_t)(screen->columns - used - 1) : 0;
	const char *blank = *text == '<' ? memchr(text, ' ', bytes) : NULL;
	/* The pid identifies the process: if there is no space, the name is cut. */
	size_t pid = blank ? (size_t)(blank - text) : bytes;
	if (!screen->cuts_names || bytes <= width)
		tw_out_format(screen->out, "%s\n", text);
	else if (width >= pid + 6)
		tw_out_format(screen->out, "%.*s..\n", (int)tw_utf8_part(text, width - 2), text);
	else
		tw_out_format(screen->out, "%.*s\n", (int)pid, text);
}

static void put_messages(const struct tw_screen *screen, const struct tw_activity *activity, size_t top)
{
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], c[TW_FIGURE_BYTES], d[TW_FIGURE_BYTES];
	struct tw_activity_process **rows = sorted_processes(activity, by_traffic);
	tw_out_format(screen->out, "\n%smessages: %s sent, %s received%s", tw_screen_bold(screen),
		      tw_figure_count(a, activity->sent), tw_figure_count(b, activity->received),
		      tw_screen_plain(screen));
	if (activity->timeouts)
		tw_out_format(screen->out, ", %s", tw_figure_of(a, activity->timeouts, "time-out", "time-outs"));
	if (activity->to_nobody)
		tw_out_format(screen->out, ", %s to processes that do not exist",
			      tw_figure_count(a, activity->to_nobody));
	tw_out_format(screen->out, "\n%s%13s%13s%11s%9s  process%s\n", tw_screen_bold(screen), "sent", "received",
		      "mean wait", "longest", tw_screen_plain(screen));
	size_t shown = rows ? rows_shown(activity->process_count, top) : 0;
	for (size_t i = 0; i < shown; i++) {
		const struct tw_activity_process *row = rows[i];
		tw_out_format(screen->out, "%13s%13s%11s%9s  ", tw_figure_count(a, row->sent),
			      tw_figure_count(b, row->received),
			      row->waits ? tw_figure_duration(c, row->wait_ns / row->waits) : "-",
			      row->waits ? tw_figure_duration(d, row->wait_max_ns) : "-");
		put_name(screen, activity, row->number, 48);
	}
	if (shown < activity->process_count)
		tw_out_format(screen->out, "%48sin %s more processes\n", "",
			      tw_figure_count(a, activity->process_count - shown));
	free(rows);
}

/* "<0.45.0> worker2 <- <0.44.0> worker1"; only the pids if that is too long. */
static void put_pair(const struct tw_screen *screen, const struct tw_activity *activity, uint32_t receiver,
		     uint32_t sender, int used)
{
	const uint32_t ends[2] = {receiver, sender};
	char names[420], pids[420];
	size_t bytes = 0, pid_bytes = 0;
	for (int i = 0; i < 2; i++) {
		char text[200];
		size_t length = tw_activity_name(activity, ends[i], text, sizeof text);
		const char *blank = *text == '<' ? memchr(text, ' ', length) : NULL;
		int pid = blank ? (int)(blank - text) : (int)length;
		bytes += (size_t)snprintf(names + bytes, sizeof names - bytes, "%s%s", i ? " <- " : "", text);
		pid_bytes += (size_t)snprintf(pids + pid_bytes, sizeof pids - pid_bytes, "%s%.*s", i ? " <- " : "", pid,
					      text);
	}
	tw_out_format(screen->out, "%s\n", (int)bytes < screen->columns - used || !screen->cuts_names ? names : pids);
}

static void put_waits(const struct tw_screen *screen, const struct tw_activity *activity, uint64_t start_ns, size_t top)
{
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], c[TW_FIGURE_BYTES];
	struct tw_activity_pair *pairs = sorted_pairs(activity);
	tw_out_format(screen->out,
		      "\n%swaits by sender%s: from a message's arrival until its process runs; median %s, "
		      "p99 %s\n",
		      tw_screen_bold(screen), tw_screen_plain(screen),
		      tw_figure_duration(a, tw_histogram_quantile(&activity->waits, 0.5)),
		      tw_figure_duration(b, tw_histogram_quantile(&activity->waits, 0.99)));
	tw_out_format(screen->out, "%s%9s%9s%11s%12s  process <- sender%s\n", tw_screen_bold(screen), "waited",
		      "longest", "times", "messages", tw_screen_plain(screen));
	size_t shown = pairs ? rows_shown(activity->pair_count, top) : 0;
	for (size_t i = 0; i < shown && pairs[i].waits; i++) {
		tw_out_format(screen->out, "%9s%9s", tw_figure_duration(a, pairs[i].wait_ns),
			      tw_figure_duration(b, pairs[i].wait_max_ns));
		tw_out_format(screen->out, "%11s%12s  ", tw_figure_count(a, pairs[i].waits),
			      tw_figure_count(c, pairs[i].messages));
		put_pair(screen, activity, pairs[i].receiver, pairs[i].sender, 43);
	}
	if (activity->are_pairs_full)
		tw_out_format(screen->out, "There are more than %s pairs of processes: the rest is not shown.\n",
			      tw_figure_count(a, TW_ACTIVITY_PAIRS_MAX));
	tw_out_format(screen->out, "%s%9s%16s  longest waits%s\n", tw_screen_bold(screen), "waited", "at",
		      tw_screen_plain(screen));
	for (uint32_t i = 0; i < activity->longest_count && (!top || i < 5); i++) {
		const struct tw_activity_wait *wait = &activity->longest[i];
		uint64_t at_ns = wait->at_ns > start_ns ? wait->at_ns - start_ns : 0;
		tw_out_format(screen->out, "%9s%16s  ", tw_figure_duration(a, wait->ns), tw_figure_moment(b, at_ns));
		put_pair(screen, activity, wait->receiver, wait->sender, 27);
	}
	free(pairs);
}

static void put_schedules(const struct tw_screen *screen, const struct tw_activity *activity, size_t top)
{
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], c[TW_FIGURE_BYTES], d[TW_FIGURE_BYTES];
	struct tw_activity_process **rows = sorted_processes(activity, by_run_time);
	uint64_t all_ns = 0;
	for (uint32_t i = 0; i < activity->process_count; i++)
		all_ns += activity->processes[i]->run_ns;
	tw_out_format(screen->out, "\n%sschedules: %s%s, median %s, p99 %s, longest %s\n", tw_screen_bold(screen),
		      tw_figure_of(a, activity->runs.count, "run", "runs"), tw_screen_plain(screen),
		      tw_figure_duration(b, tw_histogram_quantile(&activity->runs, 0.5)),
		      tw_figure_duration(c, tw_histogram_quantile(&activity->runs, 0.99)),
		      tw_figure_duration(d, activity->runs.max));
	tw_out_format(screen->out, "%s%9s%9s%13s%9s  process%s\n", tw_screen_bold(screen), "ran", "share", "runs",
		      "longest", tw_screen_plain(screen));
	size_t shown = rows ? rows_shown(activity->process_count, top) : 0;
	for (size_t i = 0; i < shown && rows[i]->runs; i++) {
		tw_out_format(screen->out, "%9s  %5.1f %%%13s%9s  ", tw_figure_duration(a, rows[i]->run_ns),
			      all_ns ? 100.0 * (double)rows[i]->run_ns / (double)all_ns : 0,
			      tw_figure_count(b, rows[i]->runs), tw_figure_duration(c, rows[i]->run_max_ns));
		put_name(screen, activity, rows[i]->number, 42);
	}
	tw_out_format(screen->out, "%s%9s%9s%13s%9s  scheduler%s\n", tw_screen_bold(screen), "busy", "share", "runs",
		      "", tw_screen_plain(screen));
	for (uint32_t i = 0; i < activity->scheduler_count && (!top || i < top); i++) {
		const struct tw_activity_scheduler *row = &activity->schedulers[i];
		if (row->runs)
			tw_out_format(screen->out, "%9s  %5.1f %%%13s%9s  %u\n", tw_figure_duration(a, row->run_ns),
				      screen->seconds > 0 ? (double)row->run_ns / 1e7 / screen->seconds : 0,
				      tw_figure_count(b, row->runs), "", row->scheduler_id);
	}
	free(rows);
}

static int by_delay(const void *a, const void *b)
{
	const struct tw_activity_process *x = *(struct tw_activity_process *const *)a;
	const struct tw_activity_process *y = *(struct tw_activity_process *const *)b;
	return TW_ORDER(y->delay_ns, x->delay_ns) ?: by_traffic(a, b);
}

static void put_delays(const struct tw_screen *screen, const struct tw_activity *activity, size_t top)
{
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], c[TW_FIGURE_BYTES];
	struct tw_activity_process **rows = sorted_processes(activity, by_delay);
	tw_out_format(screen->out, "\n%sready without a processor: %s%s (long_schedule)\n", tw_screen_bold(screen),
		      tw_figure_of(a, activity->delays, "time", "times"), tw_screen_plain(screen));
	tw_out_format(screen->out, "%s%9s%9s%13s  process%s\n", tw_screen_bold(screen), "waited", "longest", "times",
		      tw_screen_plain(screen));
	size_t shown = rows ? rows_shown(activity->process_count, top) : 0;
	for (size_t i = 0; i < shown && rows[i]->delays; i++) {
		tw_out_format(screen->out, "%9s%9s%13s  ", tw_figure_duration(a, rows[i]->delay_ns),
			      tw_figure_duration(b, rows[i]->delay_max_ns), tw_figure_count(c, rows[i]->delays));
		put_name(screen, activity, rows[i]->number, 33);
	}
	free(rows);
}

static int by_times(const void *a, const void *b)
{
	const struct tw_activity_system *x = a, *y = b;
	return TW_ORDER(y->times, x->times) ?: TW_ORDER(x->process, y->process) ?: strcmp(x->name, y->name);
}

static struct tw_activity_system *sorted_systems(const struct tw_activity *activity)
{
	struct tw_activity_system *sorted = malloc((activity->system_count + (size_t)1) * sizeof *sorted);
	if (sorted && activity->system_count) {
		memcpy(sorted, activity->systems, activity->system_count * sizeof *sorted);
		qsort(sorted, activity->system_count, sizeof *sorted, by_times);
	}
	return sorted;
}

static void put_systems(const struct tw_screen *screen, const struct tw_activity *activity, size_t top)
{
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES];
	struct tw_activity_system *rows = sorted_systems(activity);
	tw_out_format(screen->out, "\n%ssystem events: %s%s\n%s%13s%9s  %-24sprocess%s\n", tw_screen_bold(screen),
		      tw_figure_count(a, activity->system_events), tw_screen_plain(screen), tw_screen_bold(screen),
		      "times", "longest", "event", tw_screen_plain(screen));
	size_t shown = rows ? rows_shown(activity->system_count, top) : 0;
	for (size_t i = 0; i < shown; i++) {
		tw_out_format(screen->out, "%13s%9s  %-24s", tw_figure_count(a, rows[i].times),
			      rows[i].longest_ms ? tw_figure_duration(b, rows[i].longest_ms * 1000000) : "-",
			      rows[i].name);
		put_name(screen, activity, rows[i].process, 48);
	}
	if (shown < activity->system_count)
		tw_out_format(screen->out, "%24sin %s more rows\n", "",
			      tw_figure_count(a, activity->system_count - shown));
	free(rows);
}

void tw_report_activity(const struct tw_screen *screen, const struct tw_activity *activity, uint64_t start_ns,
			size_t top)
{
	size_t rows = top > 10 ? 10 : top;
	if (tw_activity_has_messages(activity))
		put_messages(screen, activity, rows);
	if (activity->waits.count)
		put_waits(screen, activity, start_ns, rows);
	if (activity->runs.count)
		put_schedules(screen, activity, rows);
	if (activity->delays)
		put_delays(screen, activity, rows);
	if (activity->system_count)
		put_systems(screen, activity, rows);
}

/* ---- JSON ---- */

static void put_process(struct tw_json *json, const char *name, const struct tw_activity *activity, uint32_t process)
{
	char text[64] = "";
	if (process < activity->process_count)
		tw_name_numbers(activity->processes[process]->pid_number, activity->processes[process]->pid_serial,
				text);
	tw_json_string(json, name, text);
}

static void put_processes_json(struct tw_json *json, const struct tw_activity *activity, size_t top)
{
	struct tw_activity_process **rows = sorted_processes(activity, by_traffic);
	tw_json_open(json, "processes", '[');
	for (size_t i = 0; rows && i < rows_shown(activity->process_count, top); i++) {
		const struct tw_activity_process *row = rows[i];
		tw_json_open(json, NULL, '{');
		put_process(json, "pid", activity, row->number);
		tw_json_string(json, "name", row->name ? row->name : "");
		tw_json_u64(json, "sent", row->sent);
		tw_json_u64(json, "received", row->received);
		tw_json_u64(json, "waits", row->waits);
		tw_json_seconds(json, "waited", row->wait_ns);
		tw_json_seconds(json, "longest_wait", row->wait_max_ns);
		tw_json_u64(json, "runs", row->runs);
		tw_json_seconds(json, "ran", row->run_ns);
		tw_json_seconds(json, "longest_run", row->run_max_ns);
		tw_json_close(json, '}');
	}
	tw_json_close(json, ']');
	free(rows);
}

static void put_waits_json(struct tw_json *json, const struct tw_activity *activity, uint64_t start_ns, size_t top)
{
	struct tw_activity_pair *pairs = sorted_pairs(activity);
	tw_json_open(json, "pairs", '[');
	for (size_t i = 0; pairs && i < rows_shown(activity->pair_count, top); i++) {
		tw_json_open(json, NULL, '{');
		put_process(json, "sender", activity, pairs[i].sender);
		put_process(json, "receiver", activity, pairs[i].receiver);
		tw_json_u64(json, "messages", pairs[i].messages);
		tw_json_u64(json, "waits", pairs[i].waits);
		tw_json_seconds(json, "waited", pairs[i].wait_ns);
		tw_json_seconds(json, "longest_wait", pairs[i].wait_max_ns);
		tw_json_close(json, '}');
	}
	tw_json_close(json, ']');
	free(pairs);
	tw_json_open(json, "longest_waits", '[');
	for (uint32_t i = 0; i < activity->longest_count; i++) {
		tw_json_open(json, NULL, '{');
		put_process(json, "sender", activity, activity->longest[i].sender);
		put_process(json, "receiver", activity, activity->longest[i].receiver);
		tw_json_seconds(json, "waited", activity->longest[i].ns);
		tw_json_u64(json, "ns",
			    activity->longest[i].at_ns > start_ns ? activity->longest[i].at_ns - start_ns : 0);
		tw_json_close(json, '}');
	}
	tw_json_close(json, ']');
}

static void put_delays_json(struct tw_json *json, const struct tw_activity *activity, size_t top)
{
	struct tw_activity_process **rows = sorted_processes(activity, by_delay);
	tw_json_open(json, "run_delays", '[');
	for (size_t i = 0; rows && i < rows_shown(activity->process_count, top) && rows[i]->delays; i++) {
		tw_json_open(json, NULL, '{');
		put_process(json, "pid", activity, rows[i]->number);
		tw_json_string(json, "name", rows[i]->name ? rows[i]->name : "");
		tw_json_u64(json, "times", rows[i]->delays);
		tw_json_seconds(json, "waited", rows[i]->delay_ns);
		tw_json_seconds(json, "longest", rows[i]->delay_max_ns);
		tw_json_close(json, '}');
	}
	tw_json_close(json, ']');
	free(rows);
}

static void put_systems_json(struct tw_json *json, const struct tw_activity *activity, size_t top)
{
	struct tw_activity_system *rows = sorted_systems(activity);
	tw_json_open(json, "system_events", '[');
	for (size_t i = 0; rows && i < rows_shown(activity->system_count, top); i++) {
		tw_json_open(json, NULL, '{');
		tw_json_string(json, "event", rows[i].name);
		put_process(json, "pid", activity, rows[i].process);
		tw_json_u64(json, "times", rows[i].times);
		tw_json_seconds(json, "longest", rows[i].longest_ms * 1000000);
		tw_json_close(json, '}');
	}
	tw_json_close(json, ']');
	free(rows);
}

void tw_report_activity_json(struct tw_json *json, const struct tw_activity *activity, uint64_t start_ns, size_t top)
{
	tw_json_open(json, "messages", '{');
	tw_json_u64(json, "sent", activity->sent);
	tw_json_u64(json, "received", activity->received);
	tw_json_u64(json, "timeouts", activity->timeouts);
	tw_json_u64(json, "to_nobody", activity->to_nobody);
	tw_json_u64(json, "spawned", activity->spawned);
	tw_json_u64(json, "exited", activity->exited);
	tw_json_seconds(json, "median_wait", tw_histogram_quantile(&activity->waits, 0.5));
	tw_json_seconds(json, "p99_wait", tw_histogram_quantile(&activity->waits, 0.99));
	put_waits_json(json, activity, start_ns, top);
	tw_json_close(json, '}');
	put_processes_json(json, activity, top);
	if (activity->delays)
		put_delays_json(json, activity, top);
	if (activity->system_count)
		put_systems_json(json, activity, top);
	tw_json_open(json, "schedulers", '[');
	for (uint32_t i = 0; i < activity->scheduler_count; i++) {
		if (!activity->schedulers[i].runs)
			continue;
		tw_json_open(json, NULL, '{');
		tw_json_u64(json, "scheduler", activity->schedulers[i].scheduler_id);
		tw_json_u64(json, "runs", activity->schedulers[i].runs);
		tw_json_seconds(json, "busy", activity->schedulers[i].run_ns);
		tw_json_close(json, '}');
	}
	tw_json_close(json, ']');
}
