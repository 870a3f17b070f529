/* SPDX-License-Identifier: Apache-2.0 */
/* story_words.c - processes, messages and gaps of a story in words. */
#include "tools/seq/story.h"
#include "tools/common/names.h"
#include "tools/common/threads.h"

#include <stdio.h>

const char *tw_story_process(const struct tw_story *story, uint32_t number, char text[TW_STORY_TEXT_BYTES])
{
	const struct tw_story_process *process = &story->processes[number];
	char node[TW_SEQ_NODE_BYTES], name[TW_THREAD_TEXT_BYTES];
	if (process->term) {
		text[tw_clean(process->term, strlen(process->term), text, TW_STORY_TEXT_BYTES - 1)] = 0;
		return text;
	}
	if (process->tracee_id)
		tw_process_text_alone(story->capture, process->image, process->tracee_id, name);
	else
		tw_name_numbers(process->is.number, process->is.serial, name);
	if (tw_seq_nodes_are_shown(&story->nodes))
		snprintf(text, TW_STORY_TEXT_BYTES, "%s @%s", name,
			 tw_seq_node_text(&story->nodes, process->is.node, node));
	else
		snprintf(text, TW_STORY_TEXT_BYTES, "%s", name);
	return text;
}

uint32_t tw_story_thread(const struct tw_story *story, uint32_t event)
{
	const struct tw_capture_stream *stream =
		event == TW_STORY_NONE ? NULL : tw_capture_stream(story->capture, story->events[event].stream);
	return stream ? (uint32_t)stream->thread_id : 0;
}

size_t tw_story_message(const struct tw_story *story, const struct tw_hop *hop, char *text, size_t capacity)
{
	const struct tw_story_event *event = &story->events[hop->send != TW_STORY_NONE ? hop->send : hop->receive];
	struct tw_arena arena;
	struct tw_term term;
	size_t used = 0, bytes;
	tw_arena_init(&arena, TW_STORY_BYTES_MAX);
	if (!event->message_bytes ||
	    tw_etf_decode(&arena, story->bytes + event->message, event->message_bytes, NULL, &used, &term))
		bytes = (size_t)snprintf(text, capacity, "?");
	else
		bytes = tw_term_format(term, TW_PRINT_PRETTY | TW_PRINT_NODES, text, capacity);
	tw_arena_fini(&arena);
	return bytes;
}

const char *tw_story_gap(const struct tw_story *story, const struct tw_hop *hop)
{
	bool misses_send = hop->send == TW_STORY_NONE;
	switch (hop->gap) {
	case TW_STORY_ABSENT:
		return misses_send ? "its sender's node is not in this capture"
				   : "its receiver's node is not in this capture";
	case TW_STORY_LOST:
		return misses_send ? "no send: events were lost there" : "no receive: events were lost there";
	case TW_STORY_OPEN: return misses_send ? "no send" : "no receive";
	default: return "";
	}
}

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

/* The messages with this gap. */
static uint64_t count_gaps(const struct tw_story *story, enum tw_story_gap gap, bool of_sends)
{
	uint64_t count = 0;
	for (uint32_t i = 0; i < story->hop_count; i++)
		count += story->hops[i].gap == gap && (story->hops[i].send == TW_STORY_NONE) == of_sends;
	return count;
}

static void note_absent(const struct tw_story *story, char text[TW_STORY_NOTE])
{
	uint64_t sends = count_gaps(story, TW_STORY_ABSENT, true), receives = count_gaps(story, TW_STORY_ABSENT, false);
	size_t used;
	*text = 0;
	if (!sends && !receives)
		return;
	used = (size_t)snprintf(text, TW_STORY_NOTE,
				"%llu message%s came from and %llu went to nodes that are not in this capture:",
				(unsigned long long)sends, plural(sends), (unsigned long long)receives);
	for (uint32_t i = 0, shown = 0; i < story->nodes.count && used < TW_STORY_NOTE; i++) {
		char node[TW_SEQ_NODE_BYTES];
		if (story->nodes.nodes[i].image != TW_CAPTURE_NONE)
			continue;
		if (shown == 3) {
			used += (size_t)snprintf(text + used, TW_STORY_NOTE - used, " and others");
			break;
		}
		used += (size_t)snprintf(text + used, TW_STORY_NOTE - used, "%s %s", shown++ ? "," : "",
					 tw_seq_node_text(&story->nodes, i, node));
	}
	if (used < TW_STORY_NOTE)
		snprintf(text + used, TW_STORY_NOTE - used, ". `tracewheel merge` joins captures.");
}

static void note_lost(const struct tw_story *story, char text[TW_STORY_NOTE])
{
	if (story->lost)
		snprintf(text, TW_STORY_NOTE,
			 "LOST %llu event%s while this request went on: sends, receives and prints may be among them.",
			 (unsigned long long)story->lost, plural(story->lost));
}

static void note_unseen(const struct tw_story *story, char text[TW_STORY_NOTE])
{
	if (!story->has_sends && story->has_receives)
		snprintf(
			text, TW_STORY_NOTE,
			"Sends were not recorded (flag `send` of the token): times between send and receive are not known.");
	else if (story->has_sends && !story->has_receives)
		snprintf(
			text, TW_STORY_NOTE,
			"Receives were not recorded (flag `receive` of the token): times between send and receive are not known.");
}

static void note_serials(const struct tw_story *story, char text[TW_STORY_NOTE])
{
	if (story->went_back)
		snprintf(
			text, TW_STORY_NOTE,
			"Serials went back %llu time%s (an overflow, a serial that was set, reset_trace, or a label used again): there "
			"time decides which send belongs to a receive.",
			(unsigned long long)story->went_back, plural(story->went_back));
}

static void note_limits(const struct tw_story *story, char text[TW_STORY_NOTE])
{
	if (story->left_out)
		snprintf(text, TW_STORY_NOTE,
			 "%llu event%s beyond the first %u of this request are left out; --from and --to select.",
			 (unsigned long long)story->left_out, plural(story->left_out), TW_STORY_EVENTS_MAX);
}

static void note_damaged(const struct tw_story *story, char text[TW_STORY_NOTE])
{
	if (story->damaged)
		snprintf(text, TW_STORY_NOTE, "%llu event%s of sequential tracing cannot be decoded.",
			 (unsigned long long)story->damaged, plural(story->damaged));
}

bool tw_story_note(const struct tw_story *story, unsigned number, char text[TW_STORY_NOTE])
{
	static void (*const notes[])(const struct tw_story *, char *) = {note_lost,    note_absent, note_unseen,
									 note_serials, note_limits, note_damaged};
	if (number >= sizeof notes / sizeof *notes)
		return false;
	*text = 0;
	notes[number](story, text);
	return true;
}
