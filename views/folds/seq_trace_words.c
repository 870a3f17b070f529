/* SPDX-License-Identifier: Apache-2.0 */
/* seq_trace_words.c - processes, messages and gaps of a trace in words. */
#include "views/folds/seq_trace.h"
#include "views/names/missing.h"
#include "views/names/names.h"
#include "views/names/threads.h"
#include "views/output/output.h"

#include <stdio.h>

const char *tw_seq_trace_process(const struct tw_seq_trace *trace, uint32_t number, char text[TW_SEQ_TRACE_TEXT_BYTES])
{
	const struct tw_seq_trace_process *process = &trace->processes[number];
	char node[TW_SEQ_NODE_BYTES], name[TW_THREAD_TEXT_BYTES];
	if (process->term) {
		text[tw_clean(process->term, strlen(process->term), text, TW_SEQ_TRACE_TEXT_BYTES - 1)] = 0;
		return text;
	}
	if (process->tracee_id)
		tw_process_text_alone(trace->capture, process->image, process->tracee_id, name);
	else
		tw_name_numbers(process->is.number, process->is.serial, name);
	if (tw_seq_nodes_are_shown(&trace->nodes))
		snprintf(text, TW_SEQ_TRACE_TEXT_BYTES, "%s @%s", name,
			 tw_seq_node_text(&trace->nodes, process->is.node, node));
	else
		snprintf(text, TW_SEQ_TRACE_TEXT_BYTES, "%s", name);
	return text;
}

uint32_t tw_seq_trace_thread(const struct tw_seq_trace *trace, uint32_t event)
{
	const struct tw_capture_stream *stream =
		event == TW_SEQ_TRACE_NONE ? NULL : tw_capture_stream(trace->capture, trace->events[event].stream);
	return stream ? (uint32_t)stream->thread_id : 0;
}

size_t tw_seq_trace_message(const struct tw_seq_trace *trace, const struct tw_hop *hop, char *text, size_t capacity)
{
	const struct tw_seq_trace_event *event =
		&trace->events[hop->send != TW_SEQ_TRACE_NONE ? hop->send : hop->receive];
	struct tw_arena arena;
	struct tw_term term;
	size_t used = 0, bytes;
	tw_arena_init(&arena, TW_SEQ_TRACE_BYTES_MAX);
	if (!event->message_bytes ||
	    tw_etf_decode(&arena, trace->bytes + event->message, event->message_bytes, NULL, &used, &term))
		bytes = (size_t)snprintf(text, capacity, "?");
	else
		bytes = tw_term_format(term, TW_PRINT_PRETTY | TW_PRINT_NODES, text, capacity);
	tw_arena_fini(&arena);
	return bytes;
}

const char *tw_seq_trace_gap(const struct tw_seq_trace *trace, const struct tw_hop *hop)
{
	bool misses_send = hop->send == TW_SEQ_TRACE_NONE;
	switch (hop->gap) {
	case TW_SEQ_TRACE_ABSENT:
		return misses_send ? "its sender's node is not in this capture"
				   : "its receiver's node is not in this capture";
	case TW_SEQ_TRACE_LOST:
		return misses_send ? "no send: events are missing there" : "no receive: events are missing there";
	case TW_SEQ_TRACE_OPEN: return misses_send ? "no send" : "no receive";
	default: return "";
	}
}

/* The messages with this gap. */
static uint64_t count_gaps(const struct tw_seq_trace *trace, enum tw_seq_trace_gap gap, bool of_sends)
{
	uint64_t count = 0;
	for (uint32_t i = 0; i < trace->hop_count; i++)
		count += trace->hops[i].gap == gap && (trace->hops[i].send == TW_SEQ_TRACE_NONE) == of_sends;
	return count;
}

static void note_absent(const struct tw_seq_trace *trace, char text[TW_SEQ_TRACE_NOTE])
{
	uint64_t sends = count_gaps(trace, TW_SEQ_TRACE_ABSENT, true),
		 receives = count_gaps(trace, TW_SEQ_TRACE_ABSENT, false);
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES];
	size_t used;
	*text = 0;
	if (!sends && !receives)
		return;
	used = (size_t)snprintf(text, TW_SEQ_TRACE_NOTE,
				"%s came from and %s went to nodes that are not in this capture:",
				tw_figure_of(a, sends, "message", "messages"), tw_figure_count(b, receives));
	for (uint32_t i = 0, shown = 0; i < trace->nodes.count && used < TW_SEQ_TRACE_NOTE; i++) {
		char node[TW_SEQ_NODE_BYTES];
		if (trace->nodes.nodes[i].image != TW_CAPTURE_NONE)
			continue;
		if (shown == 3) {
			used += (size_t)snprintf(text + used, TW_SEQ_TRACE_NOTE - used, " and others");
			break;
		}
		used += (size_t)snprintf(text + used, TW_SEQ_TRACE_NOTE - used, "%s %s", shown++ ? "," : "",
					 tw_seq_node_text(&trace->nodes, i, node));
	}
	if (used < TW_SEQ_TRACE_NOTE)
		snprintf(text + used, TW_SEQ_TRACE_NOTE - used, ". `tracewheel merge` joins captures.");
}

static void note_lost(const struct tw_seq_trace *trace, char text[TW_SEQ_TRACE_NOTE])
{
	char figure[TW_FIGURE_BYTES], gone[TW_MISSING_TEXT_BYTES];
	if (trace->lost)
		snprintf(text, TW_SEQ_TRACE_NOTE,
			 "LOST %s while this request went on: sends, receives and prints may be among them.",
			 tw_figure_of(figure, trace->lost, "event", "events"));
	else if (trace->overwritten)
		snprintf(text, TW_SEQ_TRACE_NOTE,
			 "%s while this request went on: sends, receives and prints may be among them.",
			 tw_missing_gone(0, trace->overwritten, gone));
}

static void note_unseen(const struct tw_seq_trace *trace, char text[TW_SEQ_TRACE_NOTE])
{
	if (!trace->has_sends && trace->has_receives)
		snprintf(
			text, TW_SEQ_TRACE_NOTE,
			"Sends were not recorded (flag `send` of the token): times between send and receive are not known.");
	else if (trace->has_sends && !trace->has_receives)
		snprintf(
			text, TW_SEQ_TRACE_NOTE,
			"Receives were not recorded (flag `receive` of the token): times between send and receive are not known.");
}

static void note_serials(const struct tw_seq_trace *trace, char text[TW_SEQ_TRACE_NOTE])
{
	char figure[TW_FIGURE_BYTES];
	if (trace->went_back)
		snprintf(
			text, TW_SEQ_TRACE_NOTE,
			"Serials went back %s (an overflow, a serial that was set, reset_trace, or a label used again): there "
			"time decides which send belongs to a receive.",
			tw_figure_of(figure, trace->went_back, "time", "times"));
}

static void note_limits(const struct tw_seq_trace *trace, char text[TW_SEQ_TRACE_NOTE])
{
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES];
	if (trace->left_out)
		snprintf(text, TW_SEQ_TRACE_NOTE,
			 "%s beyond the first %s of this request %s left out; --from and --to select.",
			 tw_figure_of(a, trace->left_out, "event", "events"),
			 tw_figure_count(b, TW_SEQ_TRACE_EVENTS_MAX), trace->left_out == 1 ? "is" : "are");
}

static void note_damaged(const struct tw_seq_trace *trace, char text[TW_SEQ_TRACE_NOTE])
{
	char figure[TW_FIGURE_BYTES];
	if (trace->damaged)
		snprintf(text, TW_SEQ_TRACE_NOTE, "%s of sequential tracing cannot be decoded.",
			 tw_figure_of(figure, trace->damaged, "event", "events"));
}

bool tw_seq_trace_note(const struct tw_seq_trace *trace, unsigned number, char text[TW_SEQ_TRACE_NOTE])
{
	static void (*const notes[])(const struct tw_seq_trace *, char *) = {note_lost,	   note_absent, note_unseen,
									     note_serials, note_limits, note_damaged};
	if (number >= sizeof notes / sizeof *notes)
		return false;
	*text = 0;
	notes[number](trace, text);
	return true;
}
