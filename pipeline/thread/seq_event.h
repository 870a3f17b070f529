/* SPDX-License-Identifier: Apache-2.0 */
/* seq_event.h - the terms of an event of sequential tracing: for a record, and for a tracer module. */
#ifndef TW_PIPELINE_SEQ_EVENT_H
#define TW_PIPELINE_SEQ_EVENT_H

#include "pipeline/thread/runtime_event.h"

/* Label, Serial, From, To, Message in the external term format, one behind the other. Terms that do not fit are cut. */
size_t tw_seq_event_encode(const struct tw_runtime_event *event, uint8_t *at, size_t capacity);
/* The stamp that the token asks for, as TW_EVENT_FLAG_STAMP_MASK. */
unsigned tw_seq_event_stamp(const struct tw_seq_words *token);
/* Calls the callback of the session's tracer module. */
void tw_seq_event_tell(struct tw_hit_tls *t, unsigned session, const struct tw_runtime_event *event, unsigned flags);

#endif
