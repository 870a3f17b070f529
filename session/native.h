/* SPDX-License-Identifier: Apache-2.0 */
/* native.h - functions of loaded objects: found, and offered to sessions that set more than is known yet. */
#ifndef TW_SESSION_NATIVE_H
#define TW_SESSION_NATIVE_H

#include "session/session.h"

/* ---- module.c ---- */

struct tw_sym_object;
/* The module that a loaded object is: found or added.  TW_ENOMEM. */
int tw_native_module(struct tw_permit *permit, const struct tw_sym_object *object, struct tw_module **out);

/* ---- native.c ---- */

/* Makes the functions of loaded objects of that name known, unless this was tried since the last load.  Calls the loader. */
void tw_native_find(const char *module);

/* ---- declare.c ---- */

struct tw_declared_function;
/*
 * tw_functions_declare - tw_function_declare() of several functions, in one change; their names are 1 to 255 bytes.
 *
 * @functions	shares, for the life of the process.  An arity of UINT32_MAX is not known.
 * @soname	of their modules: another name for patterns; NULL: none.
 *
 * Errors: TW_ENOMEM, TW_EDEADLK; then none is set.
 */
int tw_functions_declare(struct tw_declared_function *const *functions, size_t count, const char *soname);

/* ---- offer.c ---- */

/* Stages the settings of on_load and of patterns on a new place. */
int tw_sessions_offer(struct tw_permit *permit, struct tw_place *place);
/* Stages the settings of one session's patterns on a declared function; @arg is not used. */
int tw_session_stage_pattern(struct tw_session *session, struct tw_permit *permit, struct tw_place *place,
			     const void *arg);
/* Does a module of the same name declare a function of this name?  Sessions with patterns record that one in its place. */
bool tw_session_has_declared(struct tw_permit *permit, const struct tw_function *native);

#endif
