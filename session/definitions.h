/* SPDX-License-Identifier: Apache-2.0 */
/* definitions.h - what a capture must know before a record may name it: written once for each session and image. */
#ifndef TW_SESSION_DEFINITIONS_H
#define TW_SESSION_DEFINITIONS_H

#include "session/session.h"

int tw_define(struct tw_session *session, uint32_t type, const void *payload, size_t bytes);
/* A sentence for readers of the capture, cut after 512 bytes. */
int tw_define_note(struct tw_session *session, const char *text);
/* Defines the module, so that a reader can resolve addresses in it. */
int tw_define_module(struct tw_session *session, const struct tw_module *module);
/* Defines place, function and modules, as far as not yet defined. */
int tw_define_place(struct tw_session *session, struct tw_permit *permit, const struct tw_place *place);
/* Has it defined them?  Under the permit. */
bool tw_is_place_defined(const struct tw_session *session, const struct tw_place *place);
bool tw_is_function_defined(const struct tw_session *session, const struct tw_function *function);
/*
 * In a forked child, whose image has no definitions: all places that the session has set, and all modules that it had defined, since callers may
 * lie in modules without a place.
 */
int tw_definitions_continue(struct tw_session *session, struct tw_permit *permit);
/* The place, which is defined, is counted from now on, and not recorded, unless set->longer says so. */
int tw_define_counted(struct tw_session *session, const struct tw_session_place *set);
int tw_define_tracee(struct tw_session *session, const struct tw_tracee *tracee);
int tw_define_image(struct tw_session *session);
/* The session again, if it is wanted that calls are recorded with their returns. */
int tw_define_wanted(struct tw_session *session);
void tw_definitions_fini(struct tw_session *session);

#endif
