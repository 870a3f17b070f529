/* SPDX-License-Identifier: Apache-2.0 */
/* writer.h - the writer of a capture inside the program. */
#ifndef TW_SESSION_WRITER_H
#define TW_SESSION_WRITER_H

#include "session/session.h"

/* Starts the writer of a capture and attaches the ring set that it owns. */
int tw_session_writer_start(const struct tw_tracer *tracer, struct tw_session *session);
/* Makes the writer drain everything and close the capture; waits unless called by the writer itself. */
void tw_session_writer_stop(struct tw_session_writer *writer);

#endif
