/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mailboxes_sends.h - finds the send of each received message.
 *
 * A receive contains the message and not its sender. It is paired with the oldest unreceived send of an equal message
 * to this process, or to a name. Only the newest TW_MAILBOX_SENDS are kept: a message is received soon after it was
 * sent.
 */
#ifndef TW_VIEWS_MAILBOXES_SENDS_H
#define TW_VIEWS_MAILBOXES_SENDS_H

#include "views/folds/mailboxes.h"

#define TW_MAILBOX_SENDS (UINT32_C(1) << 16)

struct tw_mailbox_send {
	uint64_t hash; /* of the message, its image, and the receiver if that is a pid */
	uint64_t sent_ns;
	uint32_t sender;
	uint32_t next; /* in its slot: index + 1 */
	bool is_open;
};

struct tw_mailbox_sends;

struct tw_mailbox_sends *tw_mailbox_sends_create(void);
void tw_mailbox_sends_destroy(struct tw_mailbox_sends *sends);
void tw_mailbox_sends_add(struct tw_mailbox_sends *sends, const struct tw_capture_event *event,
			  const struct tw_mailbox_process *sender);
/* False: its send is not known. */
bool tw_mailbox_sends_match(struct tw_mailbox_sends *sends, const struct tw_capture_event *event,
			    const struct tw_mailbox_process *receiver, struct tw_mailbox_send *out);
/* Is the message of a receive the atom timeout? */
bool tw_mailbox_is_timeout(const struct tw_capture_event *event);

#endif
