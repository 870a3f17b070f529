/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seq_page.c - a request as one page: seq.html, which is built into the program, with the data as JSON, escaped so that
 * it cannot end its element.
 */
#include "tools/seq/seq.h"
#include "views/output/page.h"

#include <stdio.h>
#include <stdlib.h>

/* A browser draws no more in a moment. */
#define HOPS_MAX      5000
#define MESSAGE_BYTES 400

TW_PAGE(tw_seq_page_text, TW_PAGE_FILE);

static void put_text(struct tw_out *out, const char *text)
{
	tw_page_text(out, text, strlen(text));
}

static void put_hop(struct tw_out *out, const struct tw_seq_trace *trace, const struct tw_hop *hop,
		    const uint32_t *lanes)
{
	char message[MESSAGE_BYTES];
	tw_out_format(out, "{\"from\":%u", lanes[hop->from]);
	if (hop->is_print)
		tw_out_text(out, ",\"print\":true");
	else
		tw_out_format(out, ",\"to\":%u", lanes[hop->to]);
	if (hop->send != TW_SEQ_TRACE_NONE)
		tw_out_format(out, ",\"sent\":%llu",
			      (unsigned long long)(trace->events[hop->send].time_ns - trace->start_ns));
	if (hop->receive != TW_SEQ_TRACE_NONE)
		tw_out_format(out, ",\"received\":%llu",
			      (unsigned long long)(trace->events[hop->receive].time_ns - trace->start_ns));
	if (hop->parent != TW_SEQ_TRACE_NONE)
		tw_out_format(out, ",\"cause\":%u", hop->parent);
	if (*tw_seq_trace_gap(trace, hop)) {
		tw_out_text(out, ",\"gap\":");
		put_text(out, tw_seq_trace_gap(trace, hop));
	}
	tw_seq_trace_message(trace, hop, message, sizeof message);
	tw_out_text(out, ",\"text\":");
	put_text(out, message);
	tw_out_text(out, "}");
}

/* Numbers the processes of the hops that are drawn, in the order in which they take part. */
static uint32_t number_lanes(const struct tw_seq_trace *trace, uint32_t hops, uint32_t *lanes, uint32_t *processes)
{
	uint32_t count = 0;
	memset(lanes, 0xff, trace->process_count * sizeof *lanes);
	for (uint32_t i = 0; i < hops; i++) {
		const struct tw_hop *hop = &trace->hops[i];
		for (unsigned end = 0; end < (hop->is_print ? 1 : 2); end++) {
			uint32_t process = end ? hop->to : hop->from;
			if (lanes[process] != UINT32_MAX)
				continue;
			processes[count] = process;
			lanes[process] = count++;
		}
	}
	return count;
}

static void put_data(struct tw_out *out, const struct tw_seq_trace *trace, const char *path, uint32_t *lanes,
		     uint32_t *processes)
{
	uint32_t hops = trace->hop_count < HOPS_MAX ? trace->hop_count : HOPS_MAX;
	uint32_t lane_count = number_lanes(trace, hops, lanes, processes);
	char text[TW_SEQ_TRACE_TEXT_BYTES], note[TW_SEQ_TRACE_NOTE];
	bool is_next = false;
	tw_out_text(out, "{\"title\":");
	put_text(out, path);
	tw_out_text(out, ",\"label\":");
	put_text(out, trace->shown ? trace->shown : trace->label);
	tw_out_format(out, ",\"messages\":%llu,\"prints\":%llu,\"ns\":%llu,\"notes\":[",
		      (unsigned long long)trace->messages, (unsigned long long)trace->prints,
		      (unsigned long long)(trace->end_ns - trace->start_ns));
	for (unsigned i = 0; tw_seq_trace_note(trace, i, note); i++) {
		if (!*note)
			continue;
		tw_out_text(out, is_next ? "," : "");
		put_text(out, note);
		is_next = true;
	}
	if (hops < trace->hop_count) {
		snprintf(note, sizeof note,
			 "Only the first %u of %u messages and prints are drawn; --from and --to select.", hops,
			 trace->hop_count);
		tw_out_text(out, is_next ? "," : "");
		put_text(out, note);
	}
	tw_out_text(out, "],\"lanes\":[");
	for (uint32_t i = 0; i < lane_count; i++) {
		tw_out_text(out, i ? "," : "");
		put_text(out, tw_seq_trace_process(trace, processes[i], text));
	}
	tw_out_text(out, "],\"hops\":[");
	for (uint32_t i = 0; i < hops; i++) {
		tw_out_text(out, i ? ",\n" : "\n");
		put_hop(out, trace, &trace->hops[i], lanes);
	}
	tw_out_text(out, "]}");
}

bool tw_seq_page(struct tw_out *out, const struct tw_seq_trace *trace, const char *path)
{
	uint32_t *lanes = malloc((trace->process_count + (size_t)1) * sizeof *lanes);
	uint32_t *processes = malloc((trace->process_count + (size_t)1) * sizeof *processes);
	const char *rest = lanes && processes ? tw_page_begin(out, tw_seq_page_text) : NULL;
	if (rest) {
		put_data(out, trace, path, lanes, processes);
		tw_out_text(out, rest);
	}
	free(lanes);
	free(processes);
	return rest != NULL;
}
