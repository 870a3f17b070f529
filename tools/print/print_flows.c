/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_flows.c - messages that are sent and not yet received: a hash table, each slot in the order of their sends.
 */
#include "base/map.h"
#include "tools/print/print_flows.h"
#include "views/names/names.h"
#include "base/grow.h"

#include <stdlib.h>

/* The most messages that are unreceived at one time, 40 bytes each; and slots for them. */
#define MESSAGES_MAX (UINT32_C(1) << 20)
#define SLOTS	     (UINT32_C(1) << 16)

struct message {
	uint64_t hash; /* of the message and its image */
	uint64_t number;
	uint32_t to_number, to_serial;
	uint32_t next; /* in its slot, or of the free ones; 0: none */
	bool has_to;
};

struct tw_flows {
	const struct tw_capture *capture;
	struct message *messages; /* from 1 on */
	uint32_t count, capacity;
	uint32_t unused; /* the first free one; 0: none */
	uint64_t numbers;
	uint64_t left_out;
	uint32_t first[SLOTS], last[SLOTS];
};

struct tw_flows *tw_flows_create(const struct tw_capture *capture)
{
	struct tw_flows *flows = calloc(1, sizeof *flows);
	if (flows)
		flows->capture = capture;
	return flows;
}

void tw_flows_destroy(struct tw_flows *flows)
{
	if (flows)
		free(flows->messages);
	free(flows);
}

uint64_t tw_flows_left_out(const struct tw_flows *flows)
{
	return flows->left_out;
}

/* Hashes the first term, which is the message. False: it cannot be decoded. */
static bool hash_message(const struct tw_capture_event *event, uint64_t *out)
{
	struct tw_message_payload payload;
	struct tw_term term;
	tw_print_payload_take(event, &payload);
	const unsigned char *from = payload.terms;
	if (!payload.has_terms || !payload.term_count || !tw_print_next_term(&payload, &term))
		return false;
	*out = tw_hash_bytes(from, (size_t)((const unsigned char *)payload.terms - from), event->image);
	return true;
}

/* Takes an unused entry; 0: there is none. */
static uint32_t take_message(struct tw_flows *flows)
{
	uint32_t at = flows->unused;
	if (at) {
		flows->unused = flows->messages[at].next;
		return at;
	}
	if (flows->count + 1 >= MESSAGES_MAX || !tw_grow(flows->messages, flows->count + 1, flows->capacity))
		return 0;
	return ++flows->count;
}

uint64_t tw_flows_send(struct tw_flows *flows, const struct tw_capture_event *event)
{
	struct message message = {0};
	if (!hash_message(event, &message.hash))
		return 0;
	uint32_t at = take_message(flows), slot = (uint32_t)message.hash & (SLOTS - 1);
	if (!at) {
		flows->left_out++;
		return 0;
	}
	message.has_to = tw_print_receiver(event, &message.to_number, &message.to_serial);
	message.number = ++flows->numbers;
	flows->messages[at] = message;
	if (flows->first[slot])
		flows->messages[flows->last[slot]].next = at;
	else
		flows->first[slot] = at;
	flows->last[slot] = at;
	return message.number;
}

uint64_t tw_flows_receive(struct tw_flows *flows, const struct tw_capture_event *event)
{
	const struct tw_capture_tracee *tracee = tw_capture_tracee(flows->capture, event->image, event->tracee_id);
	uint64_t hash;
	if (!tracee || !hash_message(event, &hash))
		return 0;
	uint32_t slot = (uint32_t)hash & (SLOTS - 1), before = 0;
	for (uint32_t at = flows->first[slot]; at; before = at, at = flows->messages[at].next) {
		struct message *message = &flows->messages[at];
		if (message->hash != hash || (message->has_to && (message->to_number != tracee->pid_number ||
								  message->to_serial != tw_name_serial(tracee))))
			continue;
		if (before)
			flows->messages[before].next = message->next;
		else
			flows->first[slot] = message->next;
		if (flows->last[slot] == at)
			flows->last[slot] = before;
		message->next = flows->unused;
		flows->unused = at;
		return message->number;
	}
	return 0;
}
