/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demote.c - functions that make too many events are counted from now on: the recorder asks for them (ringbuf/demotion.h).
 *
 * The recorder names places; all places of their functions are changed, by one commit: each call is an event or is counted.
 */
#include "agent/agent.h"

#include "base/limits.h"
#include "ringbuf/demotion.h"
#include "session/change.h"
#include "session/places.h"
#include "session/session.h"

#include <stdio.h>

/* Names in a note. */
#define NAMED_MAX 3

/* The changes of one request. */
struct change {
	struct tw_permit *permit;
	uint32_t functions; /* that are counted now, and were recorded */
	uint32_t named;
	char names[400]; /* of the first of them */
	size_t used;
};

static uint32_t recording; /* functions that are counted in this one have its number; 0 is none's */

void tw_agent_demote_init(void)
{
	recording++;
}

bool tw_agent_is_demoted(const struct tw_function *function)
{
	return function->demoted_in == recording;
}

/* Names that only readers can make readable are left to them: the list of counted functions has all. */
static void name(struct change *change, const struct tw_function *function)
{
	bool is_plain = function->name[0] != '_' || (function->name[1] != 'Z' && function->name[1] != 'R');
	int bytes = 0;

	change->functions++;
	if (is_plain && change->named < NAMED_MAX)
		bytes = snprintf(change->names + change->used, sizeof change->names - change->used, "%s%s:%s",
				 change->used ? ", " : "", function->module->name, function->name);
	if (bytes > 0 && (size_t)bytes < sizeof change->names - change->used) {
		change->used += (size_t)bytes;
		change->named++;
	}
	change->names[change->used] = '\0';
}

/* A place with a condition is not: the number of calls that fulfil it is not that of all. */
static bool is_changed(struct change *change, struct tw_place *place)
{
	struct tw_bp_part part;

	return tw_bp_staged_part(change->permit, place, tw_agent_session->slot, &part) &&
	       part.actions & TW_ACTION_CALL && !(part.actions & (TW_ACTION_COUNT | TW_ACTION_LONGER)) &&
	       !part.program && place->place_id < TW_COUNTERS_MAX &&
	       !tw_session_stage_counted(tw_agent_session, change->permit, place);
}

static void demote(struct change *change, struct tw_function *function)
{
	bool is_any = false;

	if (tw_agent_is_demoted(function))
		return;
	for (struct tw_place *place = function->places; place; place = place->next_of_function)
		is_any |= is_changed(change, place);
	if (!is_any)
		return;
	function->demoted_in = recording;
	name(change, function);
}

static void tell(const struct change *change, uint32_t share)
{
	uint32_t more = change->functions - change->named;
	char text[700], others[64] = "";

	if (!change->functions)
		return;
	if (more)
		snprintf(others, sizeof others, "%s%u %sfunction%s", change->named ? " and " : "", more,
			 change->named ? "more " : "", more == 1 ? "" : "s");
	snprintf(
		text, sizeof text,
		"calls of %s%s were too many to be recorded, %u %% of the events of that time: they are counted from then on (--rate)",
		change->names, others, share);
	tw_agent_tell(text);
}

void tw_agent_demote(void)
{
	struct tw_rs_demoted demoted;
	struct change change = {0};

	if (!tw_rs_demotion_take(&tw_agent_ring_set, &demoted) || tw_change_begin(&change.permit))
		return;
	for (uint32_t i = 0; i < demoted.count; i++) {
		const struct tw_session_place *set = tw_session_place_at(tw_agent_session, demoted.places[i]);

		if (set)
			demote(&change, set->place->function);
	}
	tw_change_end(change.permit, 0);
	tell(&change, demoted.share);
	tw_rs_demotion_done(&tw_agent_ring_set, &demoted, change.functions);
}
