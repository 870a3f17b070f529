/* SPDX-License-Identifier: Apache-2.0 */
/* tracer_module.h - the callbacks of a session whose tracer is a module: tracewheel/tracer.h. */
#ifndef TW_SESSION_TRACER_MODULE_H
#define TW_SESSION_TRACER_MODULE_H

#include "pipeline/hit/module.h"
#include "session/session.h"

struct tw_session_module {
	struct tw_hit_module hit;
	struct tw_arena arena;		   /* of the state */
	uint64_t counts[TW_MODULE_COUNTS]; /* once the session has given up its slot */
	char name[256];
};

/*
 * Looks the callbacks up, copies the state and keeps the objects of the callbacks loaded for ever. Calls the loader.
 * Errors: TW_EBADARG, TW_ENOENT, TW_ENOMEM.
 */
int tw_tracer_module_start(const struct tw_tracer *tracer, struct tw_session *session);
/* The same for a session over foreign rings that has its slot and has set nothing yet: the rings count lost events. */
int tw_session_use_module(struct tw_session *session, const struct tw_tracer *tracer);
/* NULL is allowed. Called when no hit can use it any more. */
void tw_tracer_module_destroy(struct tw_session_module *module);

/*
 * Asks for the status of a process or port by its number (0: of new ones), without holding a lock of this folder;
 * true if the session has no module, or the calling thread cannot be in a hit.
 */
bool tw_tracer_module_is_active(const struct tw_session *session, uint32_t number, bool is_port);
/*
 * Removes the flags of the process or port in the session, and counts that. Takes the registry's lock; also in a hit.
 */
void tw_tracer_module_remove(unsigned slot, uint64_t number);
/* The same outside of a hit, unless the session is dead by now and its slot another's. */
void tw_tracer_module_remove_from(const struct tw_session *session, uint64_t number);
/* Asks all modules that have flags of the process that this thread runs from now on. */
void tw_tracer_modules_scheduled_in(struct tw_tracee *tracee);

#endif
