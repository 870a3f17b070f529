/* SPDX-License-Identifier: Apache-2.0 */
/* flame_notes.c - the sentences of a flame graph's page. */
#include "tools/report/flame.h"
#include "tools/report/report_diff.h"
#include "views/names/counted.h"
#include "views/names/missing.h"
#include "views/names/names.h"
#include "views/output/page.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Formatted first, then escaped like any other text. */
static void put_note(struct tw_out *out, bool warns, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void put_note(struct tw_out *out, bool warns, const char *format, ...)
{
	static bool is_next;
	char text[400];
	va_list list;
	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	tw_out_text(out, is_next ? ",{\"text\":" : "{\"text\":");
	tw_page_text(out, text, strlen(text));
	tw_out_format(out, ",\"warns\":%s}", warns ? "true" : "false");
	is_next = true;
}

/* Of calls whose times are those of a part, or of others. */
static void put_notes_of_calls(struct tw_out *out, const struct tw_calltree *tree)
{
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], c[TW_FIGURE_BYTES], when[TW_WHEN_SENTENCE_BYTES];
	char clause[TW_COST_CLAUSE_BYTES];
	if (tree->stacks.open)
		put_note(out, false, "Calls that were open at the end, and count up to %s: %s.",
			 tw_stacks_open_until(&tree->stacks), tw_figure_count(a, tree->stacks.open));
	if (tree->stacks.before)
		put_note(out, false,
			 "Calls that were open at the beginning of this part: %s. Their time counts from there.",
			 tw_figure_count(a, tree->stacks.before));
	if (tw_when_selects(tree->when))
		put_note(out, false, "Calls %s, and their time is that of the calls around.",
			 tw_when_describe(tree->when, tree->stacks.hidden, when));
	if (tree->hides_waits)
		put_note(out, false, "Without %s, %s: the calls around do not have this time.",
			 tw_figure_of(a, tree->hidden_waits, "call that waits", "calls that wait"),
			 tw_figure_duration(b, tree->hidden_wait_ns));
	if (*tw_tracer_cost_clause(tree->cost.ns, clause))
		put_note(
			out, false,
			"The tracer's own cost is in these times: %s; \"tracer\" in the table is each function's part.",
			clause);
	if (tree->stacks.cut || tree->stacks.unmatched)
		put_note(out, false, "Calls without a return: %s; returns without a call: %s. They have no time.",
			 tw_figure_count(b, tree->stacks.cut), tw_figure_count(c, tree->stacks.unmatched));
}

static void put_extent(struct tw_out *out, const struct tw_calltree *tree, const struct tw_capture_filter *filter,
		       const struct tw_capture_info *info, double least_percent)
{
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], threads[TW_FIGURE_BYTES];
	bool is_part = filter->from_ns || filter->to_ns;
	uint64_t from_ns = filter->from_ns > info->start_ns ? filter->from_ns : info->start_ns;
	uint64_t to_ns = filter->to_ns && filter->to_ns < info->end_ns ? filter->to_ns : info->end_ns;
	put_note(out, false, "%s%s%s in %s%s. Frames of less than %g %% of the whole are drawn together.",
		 tw_figure_of(a, tree->events, "event", "events"), is_part ? "" : " of ",
		 is_part ? "" : tw_figure_of(threads, info->threads, "thread", "threads"),
		 tw_figure_seconds(b, to_ns > from_ns ? (double)(to_ns - from_ns) / 1e9 : 0),
		 is_part ? ", a part of the capture" : "", least_percent);
}

static uint64_t count_lost(const struct tw_calltree *tree, const struct tw_capture_filter *filter,
			   const struct tw_capture_info *info)
{
	bool is_part = filter->from_ns || filter->to_ns;
	uint64_t lost = is_part ? tree->lost : 0;
	for (unsigned cause = 0; !is_part && cause < TW_LOST_CAUSES; cause++)
		lost += info->lost[cause];
	for (uint32_t i = 0; is_part && i < info->images; i++)
		lost += tw_capture_no_ring_lost(tree->capture, i, filter->from_ns, filter->to_ns);
	return lost;
}

/* The missing events, and the time that is not in the times. */
static void put_account(struct tw_out *out, const struct tw_calltree *tree, const struct tw_capture_info *info,
			bool has_times)
{
	struct tw_capture_account account;
	char clause[TW_MISSING_TEXT_BYTES];
	tw_capture_account(tree->capture, &account);
	for (unsigned cause = TW_MISSING_OVERWRITTEN; cause < TW_MISSING_CAUSES; cause++) {
		if (*tw_missing_clause(&account, cause, clause))
			put_note(out, cause != TW_MISSING_OVERWRITTEN && cause != TW_MISSING_REMOVED, "%c%s.",
				 toupper((unsigned char)*clause), clause + 1);
	}
	if (info->is_live)
		put_note(out, true, "The capture is not complete: %s.", tw_names_unfinished());
	if (has_times && *tw_missing_waits(&account, clause))
		put_note(out, false, "The program %s: this is not in the times of calls.", clause);
	if (has_times && *tw_missing_setups(&account, clause))
		put_note(out, false, "%c%s: this is not in the times of calls.", toupper((unsigned char)*clause),
			 clause + 1);
}

/* Notes on the recording, and on missing data. */
void tw_flame_notes(struct tw_out *out, const struct tw_calltree *tree, const struct tw_capture_filter *filter,
		    bool has_times, double least_percent)
{
	struct tw_capture_info info;
	char a[TW_FIGURE_BYTES], counted[TW_COUNTED_TEXT_BYTES];
	tw_capture_info(tree->capture, &info);
	uint64_t lost = count_lost(tree, filter, &info);
	put_extent(out, tree, filter, &info, least_percent);
	if (tree->is_by_stack)
		put_note(
			out, false,
			"No returns were recorded: widths are numbers of events, by the call stacks that were recorded "
			"with them. A stack ends at the requested depth, or where it could not be followed.");
	else if (!has_times)
		put_note(out, true,
			 "No returns were recorded: widths are calls, and nothing is known of calls "
			 "within calls.");
	if (tree->is_of_off)
		put_note(
			out, false,
			"Widths and sums are the time in which threads were off the processor: blocked, and then waiting for it.");
	if (*tw_counted_clause(tree->capture, counted))
		put_note(out, false, "%s: they are not drawn, and their time is that of their callers.", counted);
	if (tree->stackless)
		put_note(out, false, "Calls without a stack: %s.", tw_figure_count(a, tree->stackless));
	if (lost)
		put_note(out, true, "%s lost: calls around that are cut or unseen.",
			 tw_figure_of(a, lost, "event was", "events were"));
	put_account(out, tree, &info, true);
	put_notes_of_calls(out, tree);
	if (tree->is_full)
		put_note(out, true, "The tree has too many nodes: some calls are missing in it.");
}

/* Sentences that a screen has, one a line. */
static void put_lines(struct tw_out *out, struct tw_out *text, const char *warning)
{
	char *next;
	tw_out_bytes(text, "", 1);
	for (char *line = text->data; *line; line = next) {
		next = line + strcspn(line, "\n");
		next += *next == '\n' ? (*next = 0, 1) : 0;
		put_note(out, strstr(line, warning) != NULL, "%s", line);
	}
}

void tw_flame_memory_notes(struct tw_out *out, const struct tw_flame *flame, const struct tw_calltree *tree,
			   double least_percent)
{
	static struct tw_out text;
	const struct tw_memory *memory = &flame->memory;
	struct tw_capture_info info;
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], c[TW_FIGURE_BYTES], d[TW_FIGURE_BYTES];
	tw_capture_info(tree->capture, &info);
	put_note(out, false, "%s allocated in %s; peak %s, at %s; at the end %s.", tw_figure_bytes(a, memory->bytes),
		 tw_figure_of(b, memory->calls, "call", "calls"), tw_figure_bytes(c, memory->peak_bytes),
		 tw_figure_seconds(d, (double)(memory->peak_ns - info.zero_ns) / 1e9),
		 tw_figure_bytes((char[TW_FIGURE_BYTES]){0}, memory->live_bytes));
	put_note(out, false, "Frames of less than %g %% of the whole are drawn together.", least_percent);
	tw_out_init(&text, -1);
	struct tw_screen screen = {.out = &text};
	tw_memory_sentences(&screen, memory);
	put_lines(out, &text, " lost");
	put_account(out, tree, &info, false);
	if (tree->is_full)
		put_note(out, true, "The tree has too many nodes: some stacks are missing in it.");
}

void tw_flame_diff_notes(struct tw_out *out, const struct tw_sides *sides, double least_percent)
{
	static struct tw_out text;
	tw_out_init(&text, -1);
	struct tw_screen screen = {.out = &text};
	tw_diff_sentences(&screen, sides);
	put_lines(out, &text, "LOST ");
	put_note(out, false, "Frames of less than %g %% of the whole on both sides are drawn together.", least_percent);
	if (sides->tree.is_full)
		put_note(out, true, "A tree has too many nodes: some calls are missing in it, and in the differences.");
}
