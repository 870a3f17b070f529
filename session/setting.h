/* SPDX-License-Identifier: Apache-2.0 */
/* setting.h - what a call of tw_trace_function() and its like asks for, staged on one place.  Under the permit. */
#ifndef TW_SESSION_SETTING_H
#define TW_SESSION_SETTING_H

#include "session/session.h"

struct tw_setting {
	enum tw_match match;
	uint32_t actions; /* TW_ACTION_GLOBAL is CALL and GLOBAL; what is to be set, removed, paused, restarted */
	const struct tw_match_program *program; /* of calls, meta or not; NULL: all */
};

/* Slots pass calls that name the module, and sleds do not know which those are. */
bool tw_setting_suits(const struct tw_place *place, uint32_t actions);
/* Sets the actions, whatever `match` says. */
int tw_setting_set(struct tw_session *session, struct tw_permit *permit, struct tw_place *place,
		   const struct tw_setting *setting);
/*
 * Does what `match` says; @arg is the setting.  Places in code of others that the system does not let us write are left
 * alone.
 */
int tw_setting_apply(struct tw_session *session, struct tw_permit *permit, struct tw_place *place, const void *arg);

#endif
