/* SPDX-License-Identifier: Apache-2.0 */
/* seq_events.c - reads events of sequential tracing, and finds the nodes of their pids. */
#include "views/folds/seq_events.h"
#include "views/folds/scan.h"
#include "base/grow.h"
#include "views/names/missing.h"
#include "views/names/payload.h"
#include "base/map.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>

#define KINDS                                                                         \
	(UINT64_C(1) << TW_CAPTURE_SEQ_SEND | UINT64_C(1) << TW_CAPTURE_SEQ_RECEIVE | \
	 UINT64_C(1) << TW_CAPTURE_SEQ_PRINT)
/* A node name is an atom. */
#define NAME_BYTES 1024

/* ---- nodes ---- */

static uint64_t key_of(const char *name)
{
	return tw_hash_bytes(name, strlen(name), 0);
}

static uint32_t find_name(const struct tw_seq_nodes *nodes, const char *name)
{
	return tw_map_find(&nodes->by_name, key_of(name), i, strcmp(nodes->nodes[i].name, name) == 0);
}

static uint32_t add_node(struct tw_seq_nodes *nodes, const char *name, uint32_t image)
{
	if (nodes->count >= TW_SEQ_NODES_MAX)
		return TW_SEQ_NO_NODE;
	if (!tw_grow(nodes->nodes, nodes->count, nodes->capacity))
		return TW_SEQ_NO_NODE;
	char *copy = strdup(name);
	if (!copy || !tw_map_add(&nodes->by_name, key_of(name), nodes->count)) {
		free(copy);
		return TW_SEQ_NO_NODE;
	}
	nodes->nodes[nodes->count] = (struct tw_seq_node){.name = copy, .image = image};
	return nodes->count++;
}

static void name_image(const struct tw_capture_image *image, char name[NAME_BYTES])
{
	if (*image->node_name) {
		snprintf(name, NAME_BYTES, "%s", image->node_name);
		return;
	}
	snprintf(name, NAME_BYTES, "tw-%d-%llu@%02x%02x%02x%02x", image->process_id,
		 (unsigned long long)image->process_start, image->boot_id[0], image->boot_id[1], image->boot_id[2],
		 image->boot_id[3]);
}

int tw_seq_nodes_make(struct tw_seq_nodes *nodes, const struct tw_capture *capture)
{
	const struct tw_capture_image *image;
	*nodes = (struct tw_seq_nodes){.capture = capture};
	while (tw_capture_image(capture, nodes->image_count))
		nodes->image_count++;
	nodes->of_image = calloc(nodes->image_count + (size_t)1, sizeof *nodes->of_image);
	if (!nodes->of_image)
		return TW_ENOMEM;
	for (uint32_t i = 0; (image = tw_capture_image(capture, i)); i++) {
		char name[NAME_BYTES];
		name_image(image, name);
		/* A program that executes another keeps its name. */
		uint32_t node = find_name(nodes, name);
		if (node == TW_SEQ_NO_NODE)
			node = add_node(nodes, name, i);
		if (node == TW_SEQ_NO_NODE)
			return TW_ENOMEM;
		nodes->of_image[i] = node;
	}
	return 0;
}

void tw_seq_nodes_free(struct tw_seq_nodes *nodes)
{
	for (uint32_t i = 0; i < nodes->count; i++)
		free(nodes->nodes[i].name);
	free(nodes->nodes);
	free(nodes->of_image);
	tw_map_fini(&nodes->by_name);
	*nodes = (struct tw_seq_nodes){0};
}

const char *tw_seq_node_text(const struct tw_seq_nodes *nodes, uint32_t number, char text[TW_SEQ_NODE_BYTES])
{
	const struct tw_seq_node *node = number < nodes->count ? &nodes->nodes[number] : NULL;
	const struct tw_capture_image *image = node ? tw_capture_image(nodes->capture, node->image) : NULL;
	char name[TW_SEQ_NODE_BYTES * 4];
	if (!node)
		snprintf(name, sizeof name, "?");
	else if (image && *image->node)
		snprintf(name, sizeof name, "%s", image->node);
	else if (!image || node->is_learnt || *image->node_name)
		snprintf(name, sizeof name, "%s", node->name);
	else {
		const char *slash = strrchr(image->program, '/');
		snprintf(name, sizeof name, "%s-%d", slash ? slash + 1 : image->program, image->process_id);
	}
	text[tw_clean(name, strlen(name), text, TW_SEQ_NODE_BYTES - 1)] = 0;
	return text;
}

bool tw_seq_nodes_are_shown(const struct tw_seq_nodes *nodes)
{
	return nodes->count > 1;
}

/* The node of an atom; no memory: TW_SEQ_NO_NODE. */
static uint32_t node_of_atom(struct tw_seq_nodes *nodes, struct tw_term atom)
{
	unsigned slot = (unsigned)(atom.word * 0x9e3779b97f4a7c15 >> 60);
	if (tw_term_is_same(nodes->atoms[slot], atom))
		return nodes->atom_nodes[slot];
	size_t bytes;
	const char *name = tw_term_atom_name(atom, &bytes);
	uint32_t node = name ? find_name(nodes, name) : TW_SEQ_NO_NODE;
	if (name && node == TW_SEQ_NO_NODE)
		node = add_node(nodes, name, TW_CAPTURE_NONE);
	if (node != TW_SEQ_NO_NODE) {
		nodes->atoms[slot] = atom;
		nodes->atom_nodes[slot] = node;
	}
	return node;
}

/*
 * A process that records an event of its own by a pid of a named node is a process of that node: an Erlang node knows
 * its name, which nothing else in the capture tells.
 */
static void learn_node(struct tw_seq_nodes *nodes, uint32_t image, struct tw_seq_process *own)
{
	uint32_t node = nodes->of_image[image];
	if (own->node == TW_SEQ_NO_NODE || own->node == node)
		return;
	if (nodes->nodes[own->node].image == TW_CAPTURE_NONE) {
		nodes->nodes[own->node].image = image;
		nodes->nodes[own->node].is_learnt = true;
	}
	nodes->of_image[image] = own->node;
}

/* ---- one event ---- */

static bool take_process(struct tw_seq_nodes *nodes, uint32_t image, struct tw_term term, struct tw_seq_process *out)
{
	struct tw_identifier parts;
	*out = (struct tw_seq_process){.node = TW_SEQ_NO_NODE, .term = term};
	if (tw_term_type(term) != TW_TYPE_PID || tw_term_get_identifier(term, &parts))
		return true;
	out->number = parts.words[0];
	out->serial = parts.words[1];
	if (tw_term_is_none(parts.node)) {
		out->node = nodes->of_image[image];
		return true;
	}
	out->node = node_of_atom(nodes, parts.node);
	if (out->node == TW_SEQ_NO_NODE)
		return false;
	/* A node does not say its own creation in its events. */
	if (nodes->nodes[out->node].image == TW_CAPTURE_NONE)
		out->creation = parts.creation;
	return true;
}

static bool take_serial(struct tw_term pair, struct tw_seq_event *event)
{
	return tw_term_tuple_count(pair) == 2 && !tw_term_get_int64(tw_term_element(pair, 0), &event->previous) &&
	       !tw_term_get_int64(tw_term_element(pair, 1), &event->current);
}

int tw_seq_take(struct tw_seq_nodes *nodes, const struct tw_capture_event *from, struct tw_seq_event *event)
{
	struct tw_message_payload payload;
	struct tw_term serial, sender, receiver;
	*event = (struct tw_seq_event){.ticks = from->ticks,
				       .image = from->image,
				       .stream = from->stream,
				       .kind = from->kind,
				       .flags = from->flags};
	tw_print_payload_take(from, &payload);
	if (payload.is_damaged || !payload.has_terms || payload.term_count + payload.has_extra < 5)
		return 0;
	if (tw_print_stamp(from) == TW_PRINT_STAMP_STRICT)
		event->unique = from->payload[0];
	if (!tw_print_next_term(&payload, &event->label) || !tw_print_next_term(&payload, &serial) ||
	    !tw_print_next_term(&payload, &sender) || !tw_print_next_term(&payload, &receiver) ||
	    !take_serial(serial, event))
		return 0;
	if (!take_process(nodes, from->image, sender, &event->from) ||
	    !take_process(nodes, from->image, receiver, &event->to))
		return TW_ENOMEM;
	learn_node(nodes, from->image, from->kind == TW_CAPTURE_SEQ_RECEIVE ? &event->to : &event->from);
	event->message = payload.terms;
	event->message_bytes = payload.term_bytes;
	return 1;
}

uint64_t tw_seq_key(const struct tw_seq_event *event)
{
	uint64_t hash = tw_hash_word(tw_term_hash(event->label), (uint64_t)event->current);
	hash = tw_hash_word(tw_hash_word(hash, (uint64_t)event->previous), event->from.node);
	return tw_hash_word(tw_hash_word(hash, (uint64_t)event->from.serial << 32 | event->from.number),
			    event->from.creation);
}

/* ---- blocks ---- */

struct scan {
	struct tw_seq_reader *reader;
	struct tw_capture *capture;
};

static int take_loss(struct scan *scan, const struct tw_capture_batch *batch, const struct tw_capture_record *record)
{
	struct tw_seq_reader *reader = scan->reader;
	const struct tw_capture_loss *loss = (const struct tw_capture_loss *)(const void *)record->payload;
	if (!reader->loss)
		return 0;
	struct tw_seq_loss lost = {.from_ns = tw_capture_ns(scan->capture, loss->first_ticks),
				   .to_ns = tw_capture_ns(scan->capture, record->ticks),
				   .image = batch->image,
				   .stream = batch->stream};
	struct tw_missing_loss missing;
	tw_missing_loss_of(scan->capture, batch->stream, loss, &missing);
	lost.count = missing.sum;
	lost.overwritten = missing.overwritten;
	if (lost.to_ns < reader->from_ns || (reader->to_ns && lost.from_ns >= reader->to_ns) ||
	    !(lost.count + lost.overwritten))
		return 0;
	return reader->loss(reader->context, &lost) ? 0 : TW_ENOMEM;
}

static int take_record(struct scan *scan, const struct tw_capture_batch *batch, const struct tw_capture_record *record)
{
	struct tw_seq_reader *reader = scan->reader;
	struct tw_capture_event event = {.ticks = record->ticks,
					 .payload = record->payload,
					 .payload_words = tw_capture_record_words(record),
					 .stream = batch->stream,
					 .image = batch->image,
					 .kind = (uint8_t)tw_capture_record_kind(record),
					 .flags = (uint8_t)tw_capture_record_flags(record)};
	struct tw_seq_event out;
	if (tw_capture_record_has_cpu_time(record) && event.payload_words) {
		event.payload++;
		event.payload_words--;
	}
	event.time_ns = tw_capture_ns(scan->capture, record->ticks);
	if (event.time_ns < reader->from_ns || (reader->to_ns && event.time_ns >= reader->to_ns))
		return 0;
	int taken = tw_seq_take(reader->nodes, &event, &out);
	if (taken < 0)
		return taken;
	reader->damaged += !taken;
	out.time_ns = event.time_ns;
	return !taken || reader->event(reader->context, &out) ? 0 : TW_ENOMEM;
}

static int see(void *self, const struct tw_capture_batch *batch)
{
	struct scan *scan = self;
	int result = 0;
	for (const struct tw_capture_record *record = batch->first; record < batch->end && !result;
	     record = tw_capture_record_next(record)) {
		unsigned kind = tw_capture_record_kind(record);
		if (kind == TW_CAPTURE_LOSS)
			result = take_loss(scan, batch, record);
		else if (kind >= TW_CAPTURE_SEQ_SEND && kind <= TW_CAPTURE_SEQ_PRINT)
			result = take_record(scan, batch, record);
	}
	return result;
}

int tw_seq_read(struct tw_seq_reader *reader, struct tw_capture *capture)
{
	struct tw_capture_filter filter = {.from_ns = reader->from_ns, .to_ns = reader->to_ns, .kinds = KINDS};
	struct scan scan = {reader, capture};
	reader->damaged = 0;
	return tw_scan(capture, &filter, &(struct tw_count){&scan, see}, 1, NULL);
}
