/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c - what a recording has stored so far: progress.h. */
#include "tools/record/progress.h"
#include "tools/tool.h"
#include "views/names/names.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EVERY_NS   UINT64_C(1000000000)
#define TEXT_BYTES 512

static volatile sig_atomic_t is_asked;

void tw_progress_ask(void)
{
	is_asked = 1;
}

bool tw_progress_has_terminal(bool is_shared)
{
	return isatty(STDERR_FILENO) && (!is_shared || !isatty(STDOUT_FILENO));
}

static void describe(const struct tw_progress *progress, const struct tw_recorder_stats *stats, uint64_t past_ns,
		     char text[TEXT_BYTES])
{
	char time[TW_FIGURE_BYTES], events[TW_FIGURE_BYTES], rate[TW_FIGURE_BYTES], bytes[TW_FIGURE_BYTES];
	char figure[TW_FIGURE_BYTES], lost[TW_FIGURE_BYTES + 8] = "nothing lost";
	uint64_t count = 0;
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
		count += stats->lost[cause];
	if (count)
		snprintf(lost, sizeof lost, "%s LOST", tw_figure_count(figure, count));
	snprintf(text, TEXT_BYTES, "%s: %s, %s/s, %s, %s%s", tw_figure_seconds(time, (double)stats->duration_ns / 1e9),
		 tw_figure_of(events, stats->events, "event", "events"),
		 tw_figure_short(rate,
				 past_ns ? (double)(stats->events - progress->events) * 1e9 / (double)past_ns : 0),
		 tw_figure_bytes(bytes, stats->file_bytes), lost, stats->is_stalled ? "; the disk takes no more" : "");
}

/* Of the last second. */
static void describe_loudest(struct tw_recorder *recorder, char *text, size_t bytes)
{
	struct tw_recorder_loudest loudest;
	if (!tw_recorder_loudest(recorder, &loudest))
		return;
	char *function = strchr(loudest.function, ':'), *demangled = function ? tw_name_demangled(function + 1) : NULL;
	if (demangled)
		snprintf(text, bytes, "; loudest %.*s:%s, %u %%", (int)(function - loudest.function), loudest.function,
			 demangled, loudest.percent);
	else
		snprintf(text, bytes, "; loudest %s, %u %%", loudest.function, loudest.percent);
	free(demangled);
}

/* One that is replaced must not reach the terminal's next line. */
static void cut_to_terminal(char *text)
{
	size_t columns = (size_t)tw_terminal_columns(STDERR_FILENO) - 1;
	if (strlen(text) > columns)
		strcpy(text + columns - 3, "...");
}

void tw_progress_poll(struct tw_progress *progress)
{
	uint64_t now = tw_now_ns();
	bool is_due = progress->is_shown && now - progress->shown_ns >= EVERY_NS;
	struct tw_recorder_stats stats = {0};
	char text[TEXT_BYTES];
	if (!progress->shown_ns) {
		progress->shown_ns = now;
		if (progress->is_shown)
			describe_loudest(progress->recorder, text, sizeof text);
		return;
	}
	if (!is_due && !is_asked)
		return;
	tw_recorder_stats(progress->recorder, &stats);
	describe(progress, &stats, now - progress->shown_ns, text);
	describe_loudest(progress->recorder, text + strlen(text), sizeof text - strlen(text));
	tw_progress_clear(progress);
	if (is_asked || !isatty(STDERR_FILENO)) {
		is_asked = 0;
		tw_say("%s", text);
	} else {
		cut_to_terminal(text);
		fprintf(stderr, "%s", text);
		progress->is_line = true;
	}
	progress->shown_ns = now;
	progress->events = stats.events;
}

void tw_progress_clear(struct tw_progress *progress)
{
	if (progress->is_line)
		fprintf(stderr, "\r\033[K");
	progress->is_line = false;
}
