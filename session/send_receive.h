/* SPDX-License-Identifier: Apache-2.0 */
/* send_receive.h - which messages a session wants: patterns of send and receive. */
#ifndef TW_SESSION_SEND_RECEIVE_H
#define TW_SESSION_SEND_RECEIVE_H

#include "session/session.h"

/*
 * A pattern for messages as info/3 shows it: true, false or the match specification, copied into @arena.
 * @want is TW_WANT_SEND or TW_WANT_RECEIVE.  TW_EDEAD, TW_ENOMEM.
 */
int tw_session_pattern(struct tw_session *session, enum tw_want want, struct tw_arena *arena, struct tw_term *out);
/* Frees the patterns of a session that ends, after the last runtime event could use it. */
void tw_session_forget_patterns(struct tw_session *session);

#endif
