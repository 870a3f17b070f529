/* SPDX-License-Identifier: Apache-2.0 */
/* report_lengths.c - mailboxes over time, each as a row of bars. */
#include "views/names/names.h"
#include "views/names/threads.h"
#include "tools/report/report.h"

#include <stdio.h>

/* Prints the greatest length of the parts of each column, on a scale of the row's own: eighths, or digits. */
static void put_bars(const struct tw_screen *screen, const struct tw_length *row, unsigned columns)
{
	static const char *const eighths[] = {" ",	"\u2581", "\u2582", "\u2583", "\u2584",
					      "\u2585", "\u2586", "\u2587", "\u2588"};
	for (unsigned i = 0; i < columns; i++) {
		uint32_t most = 0;
		for (unsigned k = i * TW_LENGTHS_COLUMNS / columns; k < (i + 1) * TW_LENGTHS_COLUMNS / columns; k++)
			most = row->columns[k] > most ? row->columns[k] : most;
		unsigned height = row->max ? (unsigned)(((uint64_t)most * 8 + row->max - 1) / row->max) : 0;
		if (screen->is_utf8)
			tw_out_text(screen->out, eighths[height]);
		else
			tw_out_format(screen->out, "%c", height ? '0' + (int)height : '.');
	}
}

void tw_report_lengths(const struct tw_screen *screen, const struct tw_lengths *lengths, uint64_t start_ns, size_t top)
{
	char a[TW_FIGURE_BYTES], name[TW_THREAD_TEXT_BYTES];
	unsigned columns = screen->columns >= 110 ? TW_LENGTHS_COLUMNS : 24;
	size_t shown = top && top < lengths->count ? top : lengths->count;
	if (!lengths->count || !lengths->rows[0].max)
		return;
	if (lengths->rows[0].max == 1) {
		tw_out_text(screen->out, "\nNo mailbox ever held more than one message.\n");
		return;
	}
	tw_out_format(screen->out, "\n%slengths of mailboxes over time%s, each beside its longest\n",
		      tw_screen_bold(screen), tw_screen_plain(screen));
	if (lengths->mailboxes.lost)
		tw_out_format(screen->out, "%sEvents were lost: in each gap mailboxes begin anew, as if empty.%s\n",
			      tw_screen_red(screen), tw_screen_plain(screen));
	tw_out_format(screen->out, "%s%9s%9s%12s  %-*s  process%s\n", tw_screen_bold(screen), "longest", "mean", "at",
		      (int)columns, "", tw_screen_plain(screen));
	for (size_t i = 0; i < shown && lengths->rows[i].max; i++) {
		const struct tw_length *row = &lengths->rows[i];
		double seconds = row->max_at_ns > start_ns ? (double)(row->max_at_ns - start_ns) / 1e9 : 0;
		double all = lengths->to_ns > lengths->from_ns ? (double)(lengths->to_ns - lengths->from_ns) : 1;
		tw_out_format(screen->out, "%9s%9.3g%12.6f  ", tw_figure_count(a, row->max), row->area / all, seconds);
		put_bars(screen, row, columns);
		size_t bytes = tw_mailboxes_name(&lengths->mailboxes, row->process, name);
		int width = screen->columns - 34 - (int)columns;
		if (screen->cuts_names && (int)bytes > width && width > 4)
			tw_out_format(screen->out, "  %.*s..\n", (int)tw_utf8_part(name, (size_t)width - 2), name);
		else
			tw_out_format(screen->out, "  %s\n", name);
	}
	if (shown < lengths->count)
		tw_out_format(screen->out, "%*sin %s more processes\n", 34 + (int)columns, "",
			      tw_figure_count(a, lengths->count - shown));
}

void tw_report_lengths_json(struct tw_json *json, const struct tw_lengths *lengths, uint64_t start_ns, size_t top)
{
	double all = lengths->to_ns > lengths->from_ns ? (double)(lengths->to_ns - lengths->from_ns) : 1;
	tw_json_open(json, "mailboxes", '[');
	for (size_t i = 0; i < lengths->count && (!top || i < top); i++) {
		const struct tw_length *row = &lengths->rows[i];
		const struct tw_mailbox_process *process = lengths->mailboxes.processes[row->process];
		char text[TW_THREAD_NAME_BYTES];
		size_t bytes =
			tw_name_pid(lengths->mailboxes.capture, process->image, process->tracee_id, text, sizeof text);
		tw_json_open(json, NULL, '{');
		tw_json_text(json, "pid", text, bytes);
		tw_process_name(lengths->mailboxes.capture, process->image, process->tracee_id, text);
		tw_json_string(json, "name", text);
		tw_json_u64(json, "longest", row->max);
		tw_json_u64(json, "longest_ns", row->max_at_ns > start_ns ? row->max_at_ns - start_ns : 0);
		tw_json_double(json, "mean", row->area / all);
		tw_json_u64(json, "at_end", row->now);
		tw_json_open(json, "lengths", '[');
		for (unsigned k = 0; k < TW_LENGTHS_COLUMNS; k++)
			tw_json_u64(json, NULL, row->columns[k]);
		tw_json_close(json, ']');
		tw_json_close(json, '}');
	}
	tw_json_close(json, ']');
}
