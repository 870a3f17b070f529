/* SPDX-License-Identifier: Apache-2.0 */
/*
 * messages.h - trace messages with the names that all views show, and words with types from debug information.
 *
 * Threads  one.
 */
#ifndef TW_VIEWS_MESSAGES_H
#define TW_VIEWS_MESSAGES_H

#include "tracewheel/message.h"

struct tw_named_message {
	struct tw_message_form form; /* first: converted back */
	const struct tw_capture *capture;
};

/* @stamp: TW_PRINT_STAMP_*; -1: each event's own.  @capture: borrows; NULL: it is set before the first event. */
void tw_named_message_init(struct tw_named_message *message, const struct tw_capture *capture, int stamp);

#endif
