/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seq_show.c - a request as text: a tree of causes. A hop with one effect is followed by it on the next line of the same
 * branch; several effects branch.
 *
 *	        0 ns   1.20 us  <0.30.0> a -> <0.31.0> b  {get,1}
 *	     1.90 us   3.10 us  |- <0.31.0> b -> <0.32.0> c  {read,1}
 *	     5.20 us    900 ns  |  <0.32.0> c -> <0.31.0> b  {data,1}
 *	     2.00 us            `- <0.31.0> b: "asked c"
 */
#include "tools/seq/seq.h"
#include "views/names/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Branches beyond these are not indented further. */
#define BRANCHES_MAX  24
#define MESSAGE_BYTES 1000

struct screen {
	struct tw_out *out;
	const struct tw_seq_trace *trace;
	const char *bold, *red, *soft, *plain;
	int columns; /* 0: nothing is cut */
	bool has_threads;
	char bars[BRANCHES_MAX]; /* by branch: '|' or ' ' */
};

/* A hop that is still to be shown. */
struct entry {
	uint32_t hop;
	uint32_t branches;
	char glyph; /* '|', '`': it begins a branch; 0: it goes on with one */
};

static void begin_screen(struct screen *screen, struct tw_out *out)
{
	bool has_colour = tw_colour_is_wanted(STDOUT_FILENO);
	screen->out = out;
	screen->bold = has_colour ? "\33[1m" : "";
	screen->red = has_colour ? "\33[31m" : "";
	screen->soft = has_colour ? "\33[2m" : "";
	screen->plain = has_colour ? "\33[0m" : "";
	screen->columns = tw_width_is_wanted(STDOUT_FILENO) ? tw_terminal_columns(STDOUT_FILENO) : 0;
}

/* "thread 101", "thread 101 > 102". */
static size_t thread_text(const struct tw_seq_trace *trace, const struct tw_hop *hop, char *text, size_t capacity)
{
	uint32_t from = tw_seq_trace_thread(trace, hop->send), to = tw_seq_trace_thread(trace, hop->receive);
	if (from && to && (from != to || tw_seq_nodes_are_shown(&trace->nodes)))
		return (size_t)snprintf(text, capacity, "  [thread %u > %u]", from, to);
	return (size_t)snprintf(text, capacity, "  [thread %u]", from ? from : to);
}

static void put_hop(struct screen *screen, const struct tw_hop *hop, const struct entry *entry)
{
	const struct tw_seq_trace *trace = screen->trace;
	char figure[TW_FIGURE_BYTES], text[TW_SEQ_TRACE_TEXT_BYTES], threads[64] = "", message[MESSAGE_BYTES];
	uint64_t start_ns = tw_hop_start(trace, hop);
	struct tw_out *out = screen->out;
	tw_out_format(out, "%12s", tw_figure_duration(figure, start_ns - trace->start_ns));
	if (hop->send != TW_SEQ_TRACE_NONE && hop->receive != TW_SEQ_TRACE_NONE) {
		uint64_t end_ns = trace->events[hop->receive].time_ns;
		tw_out_format(out, " %9s  ", tw_figure_duration(figure, end_ns > start_ns ? end_ns - start_ns : 0));
	} else {
		tw_out_format(out, " %9s  ", hop->is_print || hop->gap == TW_SEQ_TRACE_UNSEEN ? "" : "?");
	}
	uint64_t mark = out->flushed_bytes + out->used;
	for (uint32_t i = 0; i < entry->branches && i < BRANCHES_MAX; i++)
		tw_out_format(out, "%c%c ", screen->bars[i], i + 1 == entry->branches && entry->glyph ? '-' : ' ');
	if (entry->branches > BRANCHES_MAX)
		tw_out_format(out, "(%u) ", entry->branches);
	tw_out_text(out, tw_seq_trace_process(trace, hop->from, text));
	if (hop->is_print) {
		tw_out_text(out, ": ");
	} else {
		tw_out_format(out, " -> %s  ", tw_seq_trace_process(trace, hop->to, text));
	}
	size_t bytes = tw_seq_trace_message(trace, hop, message, sizeof message);
	if (screen->has_threads)
		thread_text(trace, hop, threads, sizeof threads);
	const char *gap = tw_seq_trace_gap(trace, hop);
	size_t used =
		24 + (size_t)(out->flushed_bytes + out->used - mark) + strlen(threads) + (*gap ? strlen(gap) + 4 : 0);
	size_t capacity = !screen->columns		       ? sizeof message
			  : (size_t)screen->columns > used + 8 ? (size_t)screen->columns - used
							       : 8;
	if (bytes <= capacity)
		tw_out_text(out, message);
	else
		tw_out_format(out, "%.*s..", (int)tw_utf8_part(message, capacity - 2), message);
	tw_out_format(out, "%s%s%s", screen->soft, threads, screen->plain);
	if (*gap)
		tw_out_format(out, "  %s(%s)%s", screen->red, gap, screen->plain);
	tw_out_text(out, "\n");
}

static uint32_t count_children(const struct tw_seq_trace *trace, const struct tw_hop *hop)
{
	uint32_t count = 0;
	for (uint32_t child = hop->first_child; child != TW_SEQ_TRACE_NONE; child = trace->hops[child].next)
		count++;
	return count;
}

/* Puts siblings on the stack, the last at the bottom. */
static uint32_t push_siblings(const struct tw_seq_trace *trace, struct entry *stack, uint32_t used, uint32_t first,
			      uint32_t count, uint32_t branches)
{
	uint32_t at = used + count;
	for (uint32_t hop = first; hop != TW_SEQ_TRACE_NONE; hop = trace->hops[hop].next) {
		bool is_last = trace->hops[hop].next == TW_SEQ_TRACE_NONE;
		stack[--at] = count == 1 ? (struct entry){hop, branches, 0}
					 : (struct entry){hop, branches + 1, is_last ? '`' : '|'};
	}
	return used + count;
}

static void put_tree(struct screen *screen)
{
	const struct tw_seq_trace *trace = screen->trace;
	struct entry *stack = malloc((trace->hop_count + (size_t)1) * sizeof *stack);
	uint32_t used = 0;
	if (!stack) {
		tw_say("no memory.");
		return;
	}
	used = push_siblings(trace, stack, 0, trace->first_root, trace->root_count, 0);
	while (used && !screen->out->error) {
		struct entry entry = stack[--used];
		const struct tw_hop *hop = &trace->hops[entry.hop];
		char *bar = entry.glyph && entry.branches <= BRANCHES_MAX ? &screen->bars[entry.branches - 1] : NULL;
		if (bar)
			*bar = entry.glyph;
		put_hop(screen, hop, &entry);
		/* Below the last of several there is no bar. */
		if (bar && *bar == '`')
			*bar = ' ';
		used = push_siblings(trace, stack, used, hop->first_child, count_children(trace, hop), entry.branches);
	}
	free(stack);
}

static void put_notes(struct screen *screen)
{
	char note[TW_SEQ_TRACE_NOTE];
	for (unsigned i = 0; tw_seq_trace_note(screen->trace, i, note); i++) {
		if (*note)
			tw_out_format(screen->out, "%s%s%s\n", strncmp(note, "LOST", 4) == 0 ? screen->red : "", note,
				      screen->plain);
	}
}

static uint32_t count_nodes(const struct tw_seq_trace *trace)
{
	bool *is_seen = calloc(trace->nodes.count + (size_t)1, sizeof *is_seen);
	uint32_t count = 0;
	for (uint32_t i = 0; i < trace->process_count && is_seen; i++) {
		const struct tw_seq_trace_process *process = &trace->processes[i];
		if (!process->takes_part || process->is.node == TW_SEQ_NO_NODE || is_seen[process->is.node])
			continue;
		is_seen[process->is.node] = true;
		count++;
	}
	free(is_seen);
	return count;
}

void tw_seq_text(struct tw_out *out, const struct tw_seq_trace *trace)
{
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], c[TW_FIGURE_BYTES];
	struct screen screen = {.trace = trace};
	uint32_t nodes = count_nodes(trace);
	begin_screen(&screen, out);
	screen.has_threads = tw_processes_are_declared(trace->capture);
	tw_out_format(out, "%srequest ", screen.bold);
	tw_out_name(out, trace->shown);
	tw_out_format(out, "%s: %s message%s, %s print%s, %u process%s", screen.plain,
		      tw_figure_count(a, trace->messages), trace->messages == 1 ? "" : "s",
		      tw_figure_count(b, trace->prints), trace->prints == 1 ? "" : "s", trace->taking_part,
		      trace->taking_part == 1 ? "" : "es");
	if (nodes > 1)
		tw_out_format(out, " on %u nodes", nodes);
	tw_out_format(out, ", %s\n", tw_figure_duration(c, trace->end_ns - trace->start_ns));
	put_notes(&screen);
	tw_out_format(out, "\n%12s %9s\n", "at", "waited");
	put_tree(&screen);
}

void tw_seq_list(struct tw_out *out, const struct tw_requests *requests, const struct tw_capture *capture)
{
	struct screen screen = {0};
	struct tw_capture_info info;
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], c[TW_FIGURE_BYTES], d[TW_FIGURE_BYTES];
	begin_screen(&screen, out);
	tw_capture_info(capture, &info);
	tw_out_format(out, "%s request%s; --label LABEL shows one of them.\n\n", tw_figure_count(a, requests->count),
		      requests->count == 1 ? "" : "s");
	tw_out_format(out, "%12s %9s %9s %9s %9s %6s  %s\n", "at", "lasted", "events", "messages", "processes", "nodes",
		      "label");
	for (uint32_t i = 0; i < requests->count; i++) {
		const struct tw_request *row = &requests->rows[i];
		tw_out_format(out, "%12s %9s %9s %9s %9u %6u  ",
			      tw_figure_duration(a, row->first_ns > info.zero_ns ? row->first_ns - info.zero_ns : 0),
			      tw_figure_duration(b, row->last_ns - row->first_ns), tw_figure_count(c, row->events),
			      tw_figure_count(d, tw_request_messages(row)), row->processes, row->nodes);
		tw_out_name(out, row->shown);
		tw_out_text(out, "\n");
	}
	if (requests->left_out)
		tw_out_format(out, "\n%s of further labels left out; --from and --to select.\n",
			      tw_figure_of(a, requests->left_out, "event", "events"));
	if (requests->is_unsure)
		tw_out_text(out,
			    "\nThere were too many processes to count them all: their numbers are lower bounds.\n");
	if (requests->damaged)
		tw_out_format(out, "\n%s of sequential tracing cannot be decoded.\n",
			      tw_figure_of(a, requests->damaged, "event", "events"));
}
