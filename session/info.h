/* SPDX-License-Identifier: Apache-2.0 */
/* info.h - parsing of the arguments of tw_trace_info() and tw_session_info(). */
#ifndef TW_SESSION_INFO_H
#define TW_SESSION_INFO_H

#include "session/places.h"
#include "session/session.h"
#include "tracewheel/term.h"

/* Is it the atom of this name? */
bool tw_info_is(struct tw_term term, const char *name);
/* Reads the pid of a process of this program, which may have exited; false: another term. */
bool tw_info_read_pid(struct tw_term what, tw_pid *out);
/* Reads a port of this program, which may be closed, as its number (port.h); 0: it is not open. */
bool tw_info_read_port(struct tw_term what, uint64_t *out);
/* Reads {M,F,A} without wildcards; strings are borrowed by the atoms.  TW_EBADARG. */
int tw_info_read_function(struct tw_term what, struct tw_wanted *out);

#endif
