/* SPDX-License-Identifier: Apache-2.0 */
/* condition.h - conditions on calls as hits read them (condition.c), and calls that ask for a snapshot (trigger.c). */
#ifndef TW_AGENT_CONDITION_H
#define TW_AGENT_CONDITION_H

#include "agent/config.h"
#include "breakpoints/breakpoints.h"
#include "session/session.h"
#include "symbols/symbols.h"

struct tw_plan_condition;

/* ---- condition.c ---- */

/*
 * The condition in the form that hits read; the same one for the same text.  NULL: there is no memory, or it does not compile.  Never
 * freed.  Under a permit.
 *
 * @text	over registers and, if @is_of_end, the words of pipeline/hit/condition.h; "": every call.
 */
const struct tw_call_condition *tw_agent_call_condition(const char *text, bool is_of_end);
/*
 * Which calls of a place are recorded when they end, as tw_session_stage_longer() takes it.  Never freed; NULL: as above.
 *
 * @condition	those that take so long; 0: those of which its text is true, which is shown to people; NULL: all, or with @has_children
 *		none but in calls of other places.
 */
const struct tw_session_longer *tw_agent_longer(const struct tw_plan_condition *condition, bool has_children);
/* Says that a function's end is not seen, and what follows for its calls: "no snapshot is written for calls". */
void tw_agent_tell_unended(const struct tw_place *place, const char *what);

/* ---- trigger.c ---- */

/* A line about triggers.  False: it is none. */
bool tw_agent_trigger_take(struct tw_agent_config *config, const char *key, char *value, int *error);
void tw_agent_triggers_fini(struct tw_agent_config *config);
/* For which calls of the function at this value a snapshot is written; NULL: for none.  Never freed.  Under a permit. */
const struct tw_call_condition *tw_agent_trigger_of(const struct tw_agent_config *config,
						    const struct tw_sym_object *definer, const char *function,
						    uint64_t value);

/* Before the place is staged.  Says so if the end of its calls is not seen, which the condition needs. */
void tw_agent_trigger_set(struct tw_place *place, const struct tw_call_condition *trigger);

#endif
