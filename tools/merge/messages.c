/* SPDX-License-Identifier: Apache-2.0 */
/* messages.c - ends of messages, sorted by what they have in common. */
#include "tools/merge/messages.h"
#include "base/grow.h"
#include "base/map.h"
#include "base/search.h"

#include "tracewheel/error.h"

#include <stdlib.h>

/* One end of a message between nodes. */
struct end {
	uint64_t key; /* equal for both ends, and hardly for others */
	uint64_t time_ns;
	uint32_t capture;
	uint32_t other_node; /* of the other end; UINT32_MAX: not known */
	bool is_receive;
};

struct reading {
	struct tw_messages *messages;
	struct tw_seq_nodes nodes;
	uint32_t *global; /* by node of the capture: its number in messages->nodes + 1; 0: not looked up yet */
	uint32_t global_count;
	uint32_t capture;
	struct end *ends;
	uint64_t count, capacity; /* the count goes on beyond the capacity */
	uint32_t part, parts;
};

/* ---- nodes ---- */

static uint32_t find_node(struct tw_messages *messages, const char *name)
{
	uint64_t key = tw_hash_bytes(name, strlen(name), 0);
	uint32_t known = tw_map_find(&messages->by_name, key, i, strcmp(messages->nodes[i].name, name) == 0);
	if (known != TW_MAP_NONE)
		return known;
	if (!tw_grow(messages->nodes, messages->node_count, messages->node_capacity))
		return UINT32_MAX;
	char *copy = strdup(name);
	if (!copy || !tw_map_add(&messages->by_name, key, messages->node_count)) {
		free(copy);
		return UINT32_MAX;
	}
	messages->nodes[messages->node_count] = (struct tw_messages_node){.name = copy, .capture = UINT32_MAX};
	return messages->node_count++;
}

static uint32_t global_node(struct reading *reading, uint32_t node)
{
	if (node == TW_SEQ_NO_NODE)
		return UINT32_MAX;
	if (!tw_grow_to(reading->global, reading->global_count, node))
		return UINT32_MAX;
	if (!reading->global[node])
		reading->global[node] = find_node(reading->messages, reading->nodes.nodes[node].name) + 1;
	return reading->global[node] - 1;
}

static bool begin_capture(struct reading *reading, uint32_t capture)
{
	reading->capture = capture;
	reading->global = NULL;
	reading->global_count = 0;
	return tw_seq_nodes_make(&reading->nodes, reading->messages->captures[capture]) == 0;
}

static void end_capture(struct reading *reading)
{
	tw_seq_nodes_free(&reading->nodes);
	free(reading->global);
}

/* A node that a capture has processes of. */
static bool own_node(struct reading *reading, uint32_t node)
{
	uint32_t number = global_node(reading, node);
	if (number == UINT32_MAX)
		return false;
	struct tw_messages_node *known = &reading->messages->nodes[number];
	if (known->capture != UINT32_MAX && known->capture != reading->capture) {
		known->is_twice = true;
		known->other = reading->capture;
	} else {
		known->capture = reading->capture;
	}
	return true;
}

static bool skip_event(void *context, const struct tw_seq_event *event)
{
	return true;
}

/* Erlang nodes say their names in their events. */
int tw_messages_find_nodes(struct tw_messages *messages)
{
	int error = 0;
	for (uint32_t i = 0; i < messages->count && error == 0; i++) {
		struct reading reading = {.messages = messages};
		struct tw_seq_reader reader = {.nodes = &reading.nodes, .event = skip_event};
		error = begin_capture(&reading, i) ? tw_seq_read(&reader, messages->captures[i]) : TW_ENOMEM;
		for (uint32_t image = 0; error == 0 && image < reading.nodes.image_count; image++)
			error = own_node(&reading, reading.nodes.of_image[image]) ? 0 : TW_ENOMEM;
		messages->damaged += reader.damaged;
		end_capture(&reading);
	}
	return error;
}

/* ---- ends ---- */

/* A node does not know its own creation in its events: it is no part of the key. */
static uint64_t key_of(const struct tw_seq_event *event, uint32_t from_node)
{
	uint64_t hash = tw_hash_word(tw_term_hash(event->label), (uint64_t)event->current);
	return tw_hash_word(tw_hash_word(tw_hash_word(hash, (uint64_t)event->previous), from_node),
			    (uint64_t)event->from.serial << 32 | event->from.number);
}

static bool on_event(void *context, const struct tw_seq_event *event)
{
	struct reading *reading = context;
	bool is_receive = event->kind == TW_CAPTURE_SEQ_RECEIVE;
	const struct tw_seq_process *other = is_receive ? &event->from : &event->to;
	uint32_t own = reading->nodes.of_image[event->image];
	if (event->kind == TW_CAPTURE_SEQ_PRINT || other->node == own || event->from.node == TW_SEQ_NO_NODE)
		return true;
	/* Messages within the capture need no pairing here, unless their receiver is only known by a name. */
	uint32_t from_node = global_node(reading, event->from.node), node = global_node(reading, other->node);
	if (from_node == UINT32_MAX || (other->node != TW_SEQ_NO_NODE && node == UINT32_MAX))
		return false;
	if (node != UINT32_MAX && reading->messages->nodes[node].capture == reading->capture)
		return true;
	uint64_t key = key_of(event, from_node);
	if (key % reading->parts != reading->part)
		return true;
	if (reading->count < reading->capacity)
		reading->ends[reading->count] = (struct end){key, event->time_ns, reading->capture, node, is_receive};
	reading->count++;
	return true;
}

static int by_key(const void *a, const void *b)
{
	const struct end *left = a, *right = b;
	return TW_ORDER(left->key, right->key) ?: (int)left->is_receive - (int)right->is_receive;
}

static bool take_pair(struct tw_messages *messages, const struct end *send, const struct end *receive)
{
	uint32_t from = messages->machines[send->capture], to = messages->machines[receive->capture];
	messages->pairs++;
	if (from == to)
		return true;
	messages->between++;
	return tw_align_add(messages->align, from, send->time_ns, to, receive->time_ns);
}

/* An end whose other one is nowhere. A send to a name may have gone to the own node. */
static void take_lonely(struct tw_messages *messages, const struct end *end)
{
	struct tw_messages_node *node = end->other_node == UINT32_MAX ? NULL : &messages->nodes[end->other_node];
	if (!end->is_receive && !node)
		return;
	if (end->is_receive) {
		messages->no_send++;
		node->no_sends++;
	} else {
		messages->no_receive++;
		node->no_receives++;
	}
}

static bool match_ends(struct tw_messages *messages, struct end *ends, uint64_t count)
{
	if (count)
		qsort(ends, count, sizeof *ends, by_key);
	for (uint64_t i = 0, next; i < count; i = next) {
		uint64_t sends = 0;
		for (next = i; next < count && ends[next].key == ends[i].key; next++)
			sends += !ends[next].is_receive;
		if (next - i == 1)
			take_lonely(messages, &ends[i]);
		else if (next - i != 2 || sends != 1)
			messages->ambiguous += next - i - sends;
		else if (!take_pair(messages, &ends[i], &ends[i + 1]))
			return false;
	}
	return true;
}

static int read_part(struct tw_messages *messages, struct end *ends, uint32_t capacity, uint32_t part, uint32_t parts,
		     uint64_t *found)
{
	struct reading reading = {.messages = messages,
				  .ends = ends,
				  .capacity = capacity,
				  .part = part,
				  .parts = parts};
	int error = 0;
	for (uint32_t i = 0; i < messages->count && error == 0; i++) {
		struct tw_seq_reader reader = {.nodes = &reading.nodes, .event = on_event, .context = &reading};
		error = begin_capture(&reading, i) ? tw_seq_read(&reader, messages->captures[i]) : TW_ENOMEM;
		end_capture(&reading);
	}
	*found = reading.count;
	return error;
}

int tw_messages_read(struct tw_messages *messages)
{
	uint32_t capacity = messages->ends_max ? messages->ends_max : TW_MESSAGES_ENDS_MAX, parts = 1;
	struct end *ends = malloc(capacity * sizeof *ends);
	uint64_t found;
	int error = ends ? read_part(messages, ends, capacity, 0, 1, &found) : TW_ENOMEM;
	/* Half of the space stays free, since parts differ in size. */
	if (error == 0 && found > capacity)
		parts = (uint32_t)(found / (capacity / 2 + 1) + 1);
	for (uint32_t part = 0; part < parts && error == 0; part++) {
		if (parts > 1)
			error = read_part(messages, ends, capacity, part, parts, &found);
		if (error == 0 && found > capacity)
			error = TW_ELIMIT;
		if (error == 0 && !match_ends(messages, ends, found))
			error = TW_ENOMEM;
	}
	free(ends);
	return error;
}

void tw_messages_free(struct tw_messages *messages)
{
	for (uint32_t i = 0; i < messages->node_count; i++)
		free(messages->nodes[i].name);
	free(messages->nodes);
	tw_map_fini(&messages->by_name);
}
