/* SPDX-License-Identifier: Apache-2.0 */
/* setting.h - the settings that tw_trace_function() and similar calls make, staged on one place.  Under the permit. */
#ifndef TW_SESSION_SETTING_H
#define TW_SESSION_SETTING_H

#include "session/session.h"

/* Puts a match program into a part for this place, as a range test if it is one; NULL: none. */
void tw_session_use_program(struct tw_bp_part *part, const struct tw_place *place,
			    const struct tw_match_program *program);

struct tw_setting {
	enum tw_match match;
	uint32_t actions; /* actions to be set, removed, paused or restarted; TW_ACTION_GLOBAL is CALL and GLOBAL */
	const struct tw_match_program *program; /* for calls, meta or not; NULL: all calls */
};

/* Only calls that name the module pass slots; sleds cannot tell which calls do. */
bool tw_setting_suits(const struct tw_place *place, uint32_t actions);
/* Sets the actions, independent of `match`. */
int tw_setting_set(struct tw_session *session, struct tw_permit *permit, struct tw_place *place,
		   const struct tw_setting *setting);
/*
 * Performs the operation `match`; @arg is the setting.  Places in loaded objects that the system does not let us write
 * are left alone.
 */
int tw_setting_apply(struct tw_session *session, struct tw_permit *permit, struct tw_place *place, const void *arg);

#endif
