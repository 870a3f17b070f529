/* SPDX-License-Identifier: Apache-2.0 */
/* merge_show.c - what merging found, as text and as JSON. */
#include "tools/merge/merge.h"

#include <math.h>
#include <stdio.h>

#define NODES_SHOWN 5

/* The time that is added to the clock of a machine at its start, in ns. */
static double offset_of(const struct tw_merging *merging, const struct tw_align_machine *machine)
{
	const struct tw_align_machine *reference = &merging->machines[merging->machine_of[0]];
	return machine->common[0] + (double)((int64_t)reference->start_ns - (int64_t)machine->start_ns);
}

/* "+3,600.000000123 s": in whole nanoseconds. */
static void offset_text(double offset, char *text, size_t capacity)
{
	long long ns = llround(offset), size = ns < 0 ? -ns : ns;
	char seconds[TW_FIGURE_BYTES];
	snprintf(text, capacity, "%c%s.%09lld s", ns < 0 ? '-' : '+',
		 tw_figure_count(seconds, (uint64_t)(size / 1000000000)), size % 1000000000);
}

/* The capture, before this one, whose clock it shares; UINT32_MAX: none. */
static uint32_t shares_with(const struct tw_merging *merging, uint32_t capture)
{
	for (uint32_t i = 0; i < capture; i++) {
		if (merging->machine_of[i] == merging->machine_of[capture])
			return i;
	}
	return UINT32_MAX;
}

void tw_merging_line(const struct tw_merging *merging, uint32_t capture, char *text, size_t capacity)
{
	const struct tw_align_machine *machine = &merging->machines[merging->machine_of[capture]];
	char offset[64], error[TW_FIGURE_BYTES], worst[TW_FIGURE_BYTES], sent[TW_FIGURE_BYTES], got[TW_FIGURE_BYTES];
	uint32_t shared = shares_with(merging, capture);
	offset_text(offset_of(merging, machine), offset, sizeof offset);
	tw_figure_count(sent, machine->sent);
	tw_figure_count(got, machine->received);
	if (shared != UINT32_MAX) {
		int64_t shift = tw_capture_clock_shift_ns(merging->captures[capture]);
		offset_text((double)shift, offset, sizeof offset);
		snprintf(text, capacity, "the clock of %s%s%s%s", merging->nodes[shared],
			 shift ? ", read in another time namespace: " : "", shift ? offset : "",
			 shift ? " from there" : "");
		return;
	}
	switch (machine->by) {
	case TW_ALIGN_REFERENCE: snprintf(text, capacity, "its clock is that of the merged capture"); break;
	case TW_ALIGN_MESSAGES:
		snprintf(
			text, capacity,
			"clock %s, within %s (%s at the ends), drift %+.3f ppm within %.3f ppm%s; %s sent, %s received",
			offset, tw_figure_duration(error, (uint64_t)ceil(machine->uncertainty_ns)),
			tw_figure_duration(worst, (uint64_t)ceil(machine->uncertainty_max_ns)), machine->drift * 1e6,
			machine->drift_uncertainty * 1e6, machine->pieces > 1 ? ", which changed" : "",
			tw_figure_of(sent, machine->sent, "message", "messages"), got);
		break;
	case TW_ALIGN_ONE_WAY:
		snprintf(
			text, capacity,
			"clock %s by wall clocks, as far as messages one way allow (%s sent, %s received): how wrong that is is not known",
			offset, sent, got);
		break;
	default:
		snprintf(text, capacity, "clock %s by wall clocks alone, without messages: as wrong as those are",
			 offset);
		break;
	}
}

static void put_absent(struct tw_out *out, const struct tw_merging *merging)
{
	const struct tw_messages *messages = &merging->messages;
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES];
	uint32_t shown = 0, absent = 0;
	for (uint32_t i = 0; i < messages->node_count; i++) {
		const struct tw_messages_node *node = &messages->nodes[i];
		if (!node->no_sends && !node->no_receives)
			continue;
		absent += node->capture == UINT32_MAX;
		if (shown++ >= NODES_SHOWN)
			continue;
		tw_out_format(out, "%s from and %s to the node ",
			      tw_figure_of(a, node->no_sends, "message", "messages"),
			      tw_figure_count(b, node->no_receives));
		tw_out_name(out, node->capture == UINT32_MAX ? node->name : merging->nodes[node->capture]);
		tw_out_text(out, node->capture == UINT32_MAX
					 ? ", which is in none of the captures, have one end only.\n"
					 : " have one end only: the other was not recorded, or lost.\n");
	}
	if (shown > NODES_SHOWN)
		tw_out_format(out, "... and of %u more nodes, %u of all in none of the captures.\n",
			      shown - NODES_SHOWN, absent);
}

void tw_merging_text(struct tw_out *out, const struct tw_merging *merging, const char *path)
{
	const struct tw_messages *messages = &merging->messages;
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], line[TW_MERGING_LINE_BYTES];
	size_t widest = 0;
	tw_out_name(out, path);
	tw_out_format(out, ": %s of %u captures, %s between them\n",
		      tw_figure_of(a, merging->result.events, "event", "events"), merging->count,
		      tw_figure_of(b, messages->pairs, "message", "messages"));
	for (uint32_t i = 0; i < merging->count; i++)
		widest = strlen(merging->nodes[i]) > widest ? strlen(merging->nodes[i]) : widest;
	for (uint32_t i = 0; i < merging->count; i++) {
		tw_merging_line(merging, i, line, sizeof line);
		tw_out_text(out, "  ");
		tw_out_name(out, merging->nodes[i]);
		tw_out_format(out, "%*s  %s\n", (int)(widest - strlen(merging->nodes[i])), "", line);
	}
	put_absent(out, merging);
	if (messages->ambiguous)
		tw_out_format(out, "%s not used, with serials that occur more than once.\n",
			      tw_figure_of(a, messages->ambiguous, "message was", "messages were"));
	if (merging->result.damaged_blocks)
		tw_out_format(
			out, "%s with %s cannot be read and are left out; the merged capture counts them as damaged.\n",
			tw_figure_of(a, merging->result.damaged_blocks, "block", "blocks"),
			tw_figure_of(b, merging->result.damaged_events, "event", "events"));
}

/* ---- JSON ---- */

static void json_text(struct tw_json *json, const char *name, const char *text)
{
	tw_json_string(json, name, text);
}

static void json_capture(struct tw_json *json, const struct tw_merging *merging, uint32_t number)
{
	static const char *const ways[] = {"reference", "messages", "one way", "wall clock"};
	const struct tw_align_machine *machine = &merging->machines[merging->machine_of[number]];
	tw_json_open(json, NULL, '{');
	json_text(json, "capture", merging->paths[number]);
	json_text(json, "node", merging->nodes[number]);
	tw_json_u64(json, "clock", merging->machine_of[number]);
	json_text(json, "by", ways[machine->by]);
	tw_json_i64(json, "offset_ns",
		    (int64_t)llround(offset_of(merging, machine)) +
			    tw_capture_clock_shift_ns(merging->captures[number]));
	tw_json_double(json, "drift_ppm", machine->drift * 1e6);
	if (machine->by == TW_ALIGN_MESSAGES) {
		tw_json_double(json, "uncertainty", machine->uncertainty_ns / 1e9);
		tw_json_double(json, "uncertainty_max", machine->uncertainty_max_ns / 1e9);
		tw_json_double(json, "drift_uncertainty_ppm", machine->drift_uncertainty * 1e6);
		tw_json_u64(json, "pieces", machine->pieces);
	}
	tw_json_u64(json, "sent", machine->sent);
	tw_json_u64(json, "received", machine->received);
	tw_json_close(json, '}');
}

void tw_merging_json(struct tw_out *out, const struct tw_merging *merging, const char *path)
{
	const struct tw_messages *messages = &merging->messages;
	struct tw_json json = {.out = out, .is_spread = true};
	tw_json_open(&json, NULL, '{');
	json_text(&json, "capture", path);
	tw_json_u64(&json, "events", merging->result.events);
	tw_json_u64(&json, "segments", merging->result.segments);
	tw_json_u64(&json, "messages", messages->pairs);
	tw_json_u64(&json, "ambiguous", messages->ambiguous);
	tw_json_u64(&json, "no_send", messages->no_send);
	tw_json_u64(&json, "no_receive", messages->no_receive);
	tw_json_u64(&json, "damaged_blocks", merging->result.damaged_blocks);
	tw_json_u64(&json, "damaged_events", merging->result.damaged_events);
	tw_json_open(&json, "captures", '[');
	for (uint32_t i = 0; i < merging->count; i++)
		json_capture(&json, merging, i);
	tw_json_close(&json, ']');
	tw_json_open(&json, "absent_nodes", '[');
	for (uint32_t i = 0; i < messages->node_count; i++) {
		const struct tw_messages_node *node = &messages->nodes[i];
		if (node->capture != UINT32_MAX)
			continue;
		tw_json_open(&json, NULL, '{');
		json_text(&json, "node", node->name);
		tw_json_u64(&json, "no_send", node->no_sends);
		tw_json_u64(&json, "no_receive", node->no_receives);
		tw_json_close(&json, '}');
	}
	tw_json_close(&json, ']');
	tw_json_close(&json, '}');
	tw_out_text(out, "\n");
}
