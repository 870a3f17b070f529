/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mailboxes_sends.c - a ring of the newest sends, each in the list of its slot, the oldest first.
 *
 * The send that is overwritten is the oldest of all, and so the first in its slot, unless it was received.
 */
#include "views/folds/mailboxes_sends.h"
#include "views/names/names.h"
#include "views/names/payload.h"
#include "base/map.h"

#include <stdlib.h>

struct tw_mailbox_sends {
	struct tw_mailbox_send at[TW_MAILBOX_SENDS];
	uint32_t first[TW_MAILBOX_SENDS], last[TW_MAILBOX_SENDS]; /* by slot: index + 1 */
	uint32_t next;
};

struct tw_mailbox_sends *tw_mailbox_sends_create(void)
{
	return calloc(1, sizeof(struct tw_mailbox_sends));
}

void tw_mailbox_sends_destroy(struct tw_mailbox_sends *sends)
{
	free(sends);
}

static uint64_t with_receiver(uint64_t hash, uint32_t number, uint32_t serial)
{
	return tw_hash_word(hash, (uint64_t)serial << 32 | (number ^ 0x80000000u));
}

/* Hashes the first term, which is the message. False: it cannot be decoded. */
static bool hash_message(const struct tw_capture_event *event, bool is_alone, uint64_t *out)
{
	struct tw_message_payload payload;
	struct tw_term term;
	tw_print_payload_take(event, &payload);
	const unsigned char *from = payload.terms;
	size_t bytes = payload.term_bytes;
	if (!payload.has_terms || payload.is_damaged || !payload.term_count)
		return false;
	/* A single term need not be decoded. */
	if (!is_alone || payload.term_count != 1 || payload.has_extra) {
		if (!tw_print_next_term(&payload, &term))
			return false;
		bytes = (size_t)((const unsigned char *)payload.terms - from);
	}
	*out = tw_hash_bytes(from, bytes, event->image);
	return true;
}

/* A pid of the program itself always has the same bytes before its numbers, and comes last: then nothing is decoded. */
static bool hash_send(const struct tw_capture_event *event, uint64_t *out)
{
	static const char own[] = "\203Xw\015nonode@nohost";
	enum { OWN = sizeof own - 1, PID = OWN + 12 };
	struct tw_message_payload payload;
	uint32_t number, serial;
	bool has_receiver = tw_print_receiver(event, &number, &serial);
	/* A port has no mailbox. */
	if (has_receiver && serial == TW_SERIAL_OF_PORT)
		return false;
	tw_print_payload_take(event, &payload);
	if (has_receiver && payload.has_terms && !payload.has_extra && payload.term_count == 2 &&
	    payload.term_bytes > PID && memcmp((const char *)payload.terms + payload.term_bytes - PID, own, OWN) == 0)
		*out = tw_hash_bytes(payload.terms, payload.term_bytes - PID, event->image);
	else if (!hash_message(event, false, out))
		return false;
	*out = has_receiver ? with_receiver(*out, number, serial) : *out;
	return true;
}

static void unlink_send(struct tw_mailbox_sends *sends, uint32_t place, uint32_t before)
{
	struct tw_mailbox_send *send = &sends->at[place];
	uint32_t slot = (uint32_t)send->hash & (TW_MAILBOX_SENDS - 1);
	if (before)
		sends->at[before - 1].next = send->next;
	else
		sends->first[slot] = send->next;
	if (sends->last[slot] == place + 1)
		sends->last[slot] = before;
	send->is_open = false;
}

void tw_mailbox_sends_add(struct tw_mailbox_sends *sends, const struct tw_capture_event *event,
			  const struct tw_mailbox_process *sender)
{
	uint64_t hash;
	if (!hash_send(event, &hash))
		return;
	uint32_t place = sends->next++ & (TW_MAILBOX_SENDS - 1), slot = (uint32_t)hash & (TW_MAILBOX_SENDS - 1);
	if (sends->at[place].is_open)
		unlink_send(sends, place, 0);
	sends->at[place] = (struct tw_mailbox_send){.hash = hash,
						    .sent_ns = event->time_ns,
						    .sender = sender->number,
						    .is_open = true};
	if (sends->first[slot])
		sends->at[sends->last[slot] - 1].next = place + 1;
	else
		sends->first[slot] = place + 1;
	sends->last[slot] = place + 1;
}

static bool find(struct tw_mailbox_sends *sends, uint64_t hash, struct tw_mailbox_send *out)
{
	uint32_t before = 0;
	for (uint32_t at = sends->first[hash & (TW_MAILBOX_SENDS - 1)]; at; before = at, at = sends->at[at - 1].next) {
		if (sends->at[at - 1].hash != hash)
			continue;
		*out = sends->at[at - 1];
		unlink_send(sends, at - 1, before);
		return true;
	}
	return false;
}

bool tw_mailbox_sends_match(struct tw_mailbox_sends *sends, const struct tw_capture_event *event,
			    const struct tw_mailbox_process *receiver, struct tw_mailbox_send *out)
{
	uint64_t hash;
	return hash_message(event, true, &hash) &&
	       (find(sends, with_receiver(hash, receiver->pid_number, receiver->pid_serial), out) ||
		find(sends, hash, out));
}

bool tw_mailbox_is_timeout(const struct tw_capture_event *event)
{
	static const char timeout[] = "\203w\007timeout";
	struct tw_message_payload payload;
	tw_print_payload_take(event, &payload);
	return payload.has_terms && !payload.is_damaged && payload.term_count == 1 &&
	       payload.term_bytes >= sizeof timeout - 1 && memcmp(payload.terms, timeout, sizeof timeout - 1) == 0;
}
