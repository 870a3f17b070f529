/* SPDX-License-Identifier: Apache-2.0 */
/* seq_forms.c - a request as JSON, as a sequence diagram of Mermaid, and as the terms of seq_trace. */
#include "tools/seq/seq.h"
#include "views/names/names.h"
#include "views/names/payload.h"
#include "views/names/threads.h"

#include <stdio.h>

#define MESSAGE_BYTES 1000

/* ---- JSON ---- */

static void json_text(struct tw_json *json, const char *name, const char *text)
{
	tw_json_string(json, name, text);
}

static void json_process(struct tw_json *json, const char *name, const struct tw_seq_trace *trace, uint32_t process)
{
	char text[TW_SEQ_TRACE_TEXT_BYTES];
	json_text(json, name, tw_seq_trace_process(trace, process, text));
}

static void json_hop(struct tw_json *json, const struct tw_seq_trace *trace, uint32_t number)
{
	static const char *const gaps[] = {[TW_SEQ_TRACE_UNSEEN] = "not recorded",
					   [TW_SEQ_TRACE_ABSENT] = "node absent",
					   [TW_SEQ_TRACE_LOST] = "lost",
					   [TW_SEQ_TRACE_OPEN] = "none"};
	const struct tw_hop *hop = &trace->hops[number];
	bool has_send = hop->send != TW_SEQ_TRACE_NONE, has_receive = hop->receive != TW_SEQ_TRACE_NONE;
	const struct tw_seq_trace_event *event = &trace->events[has_send ? hop->send : hop->receive];
	char message[MESSAGE_BYTES];
	tw_json_open(json, NULL, '{');
	tw_json_u64(json, "id", number);
	if (hop->parent != TW_SEQ_TRACE_NONE)
		tw_json_u64(json, "cause", hop->parent);
	json_text(json, "kind", hop->is_print ? "print" : "message");
	json_process(json, "from", trace, hop->from);
	if (!hop->is_print)
		json_process(json, "to", trace, hop->to);
	tw_json_open(json, "serial", '[');
	tw_out_format(json->out, "%lld,%lld", (long long)event->previous, (long long)event->current);
	tw_json_close(json, ']');
	if (has_send) {
		tw_json_u64(json, hop->is_print ? "at_ns" : "sent_ns", event->time_ns);
		tw_json_u64(json, hop->is_print ? "thread" : "sent_thread", tw_seq_trace_thread(trace, hop->send));
	}
	if (has_receive) {
		tw_json_u64(json, "received_ns", trace->events[hop->receive].time_ns);
		tw_json_u64(json, "received_thread", tw_seq_trace_thread(trace, hop->receive));
	}
	if (has_send && has_receive) {
		uint64_t end_ns = trace->events[hop->receive].time_ns;
		tw_json_double(json, "waited", end_ns > event->time_ns ? (double)(end_ns - event->time_ns) / 1e9 : 0);
	}
	if (hop->gap)
		json_text(json, has_send ? "no_receive" : "no_send", gaps[hop->gap]);
	tw_seq_trace_message(trace, hop, message, sizeof message);
	json_text(json, "message", message);
	tw_json_close(json, '}');
}

/* The label is a term here, also that which people are shown as a trace-id. */
static void json_label(struct tw_json *json, const char *label, const char *shown,
		       const unsigned char id[TW_SEQ_TRACE_ID_BYTES])
{
	char text[TW_SEQ_TRACE_ID_TEXT];
	tw_seq_trace_id_text(id, text);
	json_text(json, "label", shown && strcmp(shown, text) != 0 ? shown : label);
	json_text(json, "trace_id", text);
}

void tw_seq_json(struct tw_out *out, const struct tw_seq_trace *trace)
{
	struct tw_json json = {.out = out, .is_spread = true};
	char note[TW_SEQ_TRACE_NOTE];
	tw_json_open(&json, NULL, '{');
	json_label(&json, trace->label, trace->shown, trace->trace_id);
	tw_json_u64(&json, "events", trace->event_count);
	tw_json_u64(&json, "messages", trace->messages);
	tw_json_u64(&json, "prints", trace->prints);
	tw_json_u64(&json, "processes", trace->taking_part);
	tw_json_u64(&json, "depth", trace->hop_count ? trace->depth + 1 : 0);
	tw_json_u64(&json, "start_ns", trace->start_ns);
	tw_json_seconds(&json, "seconds", trace->end_ns - trace->start_ns);
	tw_json_u64(&json, "no_receive", trace->sends_alone);
	tw_json_u64(&json, "no_send", trace->receives_alone);
	tw_json_u64(&json, "lost", trace->lost);
	tw_json_u64(&json, "overwritten", trace->overwritten);
	tw_json_open(&json, "notes", '[');
	for (unsigned i = 0; tw_seq_trace_note(trace, i, note); i++) {
		if (*note)
			json_text(&json, NULL, note);
	}
	tw_json_close(&json, ']');
	tw_json_open(&json, "hops", '[');
	for (uint32_t i = 0; i < trace->hop_count; i++)
		json_hop(&json, trace, i);
	tw_json_close(&json, ']');
	tw_json_close(&json, '}');
	tw_out_text(out, "\n");
}

void tw_seq_list_json(struct tw_out *out, const struct tw_requests *requests)
{
	struct tw_json json = {.out = out, .is_spread = true};
	tw_json_open(&json, NULL, '{');
	tw_json_open(&json, "requests", '[');
	for (uint32_t i = 0; i < requests->count; i++) {
		const struct tw_request *row = &requests->rows[i];
		tw_json_open(&json, NULL, '{');
		json_label(&json, row->label, row->shown, row->trace_id);
		tw_json_u64(&json, "events", row->events);
		tw_json_u64(&json, "messages", tw_request_messages(row));
		tw_json_u64(&json, "prints", row->prints);
		tw_json_u64(&json, "processes", row->processes);
		tw_json_u64(&json, "nodes", row->nodes);
		tw_json_u64(&json, "start_ns", row->first_ns);
		tw_json_seconds(&json, "seconds", row->last_ns - row->first_ns);
		tw_json_close(&json, '}');
	}
	tw_json_close(&json, ']');
	tw_json_u64(&json, "left_out", requests->left_out);
	tw_json_u64(&json, "damaged", requests->damaged);
	tw_json_close(&json, '}');
	tw_out_text(out, "\n");
}

/* ---- Mermaid ---- */

/* Characters with a meaning in Mermaid stand by their numbers. */
static void put_mermaid(struct tw_out *out, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		if (c == '#' || c == ';' || c == '<' || c == '>' || c == '&' || c == '"' || c == ':' || c == '%' ||
		    c < 0x20)
			tw_out_format(out, "#%u;", c);
		else
			tw_out_bytes(out, text, 1);
	}
}

void tw_seq_mermaid(struct tw_out *out, const struct tw_seq_trace *trace)
{
	char text[TW_SEQ_TRACE_TEXT_BYTES], message[200], figure[TW_FIGURE_BYTES], note[TW_SEQ_TRACE_NOTE];
	tw_out_text(out, "sequenceDiagram\n");
	for (uint32_t i = 0; i < trace->process_count; i++) {
		if (!trace->processes[i].takes_part)
			continue;
		tw_out_format(out, "    participant p%u as ", i);
		put_mermaid(out, tw_seq_trace_process(trace, i, text));
		tw_out_text(out, "\n");
	}
	for (unsigned i = 0; tw_seq_trace_note(trace, i, note); i++) {
		if (!*note)
			continue;
		tw_out_text(out, "    %% ");
		tw_out_text(out, note);
		tw_out_text(out, "\n");
	}
	for (uint32_t i = 0; i < trace->hop_count; i++) {
		const struct tw_hop *hop = &trace->hops[i];
		bool is_whole = hop->send != TW_SEQ_TRACE_NONE && hop->receive != TW_SEQ_TRACE_NONE;
		tw_seq_trace_message(trace, hop, message, sizeof message);
		if (hop->is_print)
			tw_out_format(out, "    Note over p%u: ", hop->from);
		else
			tw_out_format(out, "    p%u%sp%u: ", hop->from,
				      is_whole || hop->gap == TW_SEQ_TRACE_UNSEEN ? "->>"
				      : hop->receive == TW_SEQ_TRACE_NONE	  ? "-x"
										  : "-->>",
				      hop->to);
		put_mermaid(out, message);
		if (is_whole) {
			uint64_t start_ns = tw_hop_start(trace, hop), end_ns = trace->events[hop->receive].time_ns;
			tw_out_format(out, " (%s)",
				      tw_figure_duration(figure, end_ns > start_ns ? end_ns - start_ns : 0));
		} else if (*tw_seq_trace_gap(trace, hop)) {
			tw_out_text(out, " (");
			put_mermaid(out, tw_seq_trace_gap(trace, hop));
			tw_out_text(out, ")");
		}
		tw_out_text(out, "\n");
	}
}

/* ---- Erlang ---- */

struct out_sink {
	struct tw_sink sink; /* the first member: converted back to this structure */
	struct tw_out *out;
	char buffer[1024];
};

static int drain(struct tw_sink *sink)
{
	struct out_sink *own = (struct out_sink *)sink;
	tw_out_bytes(own->out, sink->start, (size_t)(sink->at - sink->start));
	sink->at = sink->start;
	return 0;
}

static void put_message(struct tw_out *out, const struct tw_seq_trace *trace, const struct tw_seq_trace_event *event)
{
	struct out_sink own = {.out = out};
	struct tw_arena arena;
	struct tw_term term;
	size_t used = 0;
	own.sink = (struct tw_sink){own.buffer, own.buffer, own.buffer + sizeof own.buffer, drain, NULL};
	tw_arena_init(&arena, TW_SEQ_TRACE_BYTES_MAX);
	if (!event->message_bytes ||
	    tw_etf_decode(&arena, trace->bytes + event->message, event->message_bytes, NULL, &used, &term)) {
		tw_out_text(out, "'?'");
	} else {
		tw_term_print(term, TW_PRINT_CONSULT | TW_PRINT_NODES, &own.sink);
		drain(&own.sink);
	}
	tw_arena_fini(&arena);
}

/* An atom: file:consult/1 reads it. With several nodes it names the node. */
static void put_pid(struct tw_out *out, const struct tw_seq_trace *trace, uint32_t number)
{
	const struct tw_seq_trace_process *process = number == TW_SEQ_TRACE_NONE ? NULL : &trace->processes[number];
	char node[TW_SEQ_NODE_BYTES], pid[TW_SEQ_NODE_BYTES + 40], atom[TW_NAME_ATOM_BYTES];
	if (!process)
		tw_out_text(out, "[]");
	else if (process->term)
		tw_out_text(out, process->term);
	if (!process || process->term)
		return;
	size_t used = (size_t)snprintf(pid, sizeof pid, "<0.%u.%u>", process->is.number, process->is.serial);
	if (tw_seq_nodes_are_shown(&trace->nodes))
		snprintf(pid + used, sizeof pid - used, "@%s", tw_seq_node_text(&trace->nodes, process->is.node, node));
	tw_out_bytes(out, atom, tw_name_atom(pid, atom, sizeof atom));
}

static void put_stamp(struct tw_out *out, const struct tw_seq_trace *trace, const struct tw_seq_trace_event *event)
{
	unsigned long long ns = event->time_ns, us;
	switch (event->flags & TW_CAPTURE_STAMP_MASK) {
	case TW_PRINT_STAMP_MONOTONIC: tw_out_format(out, ",%llu", ns); break;
	case TW_PRINT_STAMP_STRICT: tw_out_format(out, ",{%llu,%llu}", ns, (unsigned long long)event->unique); break;
	case TW_PRINT_STAMP_WALL:
		us = tw_capture_wall_ns(trace->capture, event->time_ns) / 1000;
		tw_out_format(out, ",{%llu,%llu,%llu}", us / 1000000000000, us / 1000000 % 1000000, us % 1000000);
		break;
	default: break;
	}
}

static void put_label(struct tw_out *out, const struct tw_seq_trace *trace)
{
	struct tw_arena arena;
	struct tw_term term;
	char text[TW_LABEL_BYTES * 2];
	tw_arena_init(&arena, SIZE_MAX);
	if (tw_term_parse(&arena, trace->label, strlen(trace->label), &term, NULL) == 0)
		tw_term_format(term, TW_PRINT_CONSULT, text, sizeof text);
	else
		snprintf(text, sizeof text, "'?'");
	tw_out_text(out, text);
	tw_arena_fini(&arena);
}

void tw_seq_erlang(struct tw_out *out, const struct tw_seq_trace *trace)
{
	for (uint32_t i = 0; i < trace->event_count && !out->error; i++) {
		const struct tw_seq_trace_event *event = &trace->events[i];
		tw_out_text(out, "{seq_trace,");
		put_label(out, trace);
		tw_out_format(out, ",{%s,{%lld,%lld},", tw_print_kind(event->kind)->atom, (long long)event->previous,
			      (long long)event->current);
		put_pid(out, trace, event->from);
		tw_out_text(out, ",");
		put_pid(out, trace, event->to);
		tw_out_text(out, ",");
		put_message(out, trace, event);
		tw_out_text(out, "}");
		put_stamp(out, trace, event);
		tw_out_text(out, "}.\n");
	}
}
