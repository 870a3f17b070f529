/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leave.c - the end of a recording from inside, in a program that goes on and may be recorded again.
 *
 *  1 close the ring set: nothing is armed any more, and no thread waits for space
 *  2 destroy the session, in which all its places are switched off by one commit; meanwhile no object can be unloaded
 *  3 wait until no thread is inside of dlclose(): what it unloads is forgotten before slots that were due are written
 *  4 let no thread enter, and wait until none is inside
 *  5 the owner takes back what was written (written.c), in a process that has its ring set mapped
 *  6 unmap what belongs to the ring set; all objects are examined again next time
 *
 * The waits of 3 to 5 are the caller's, who comes again.
 */
#include "agent/agent.h"
#include "agent/leave.h"

#include "base/assert.h"
#include "base/filter.h"
#include "breakpoints/breakpoints.h"
#include "breakpoints/patch.h"
#include "pipeline/hit/count.h"
#include "session/session.h"

static bool is_ended; /* step 2 is done */

static void end_session(void)
{
	tw_agent_written_leave();
	tw_agent_returns_end();
	tw_session_destroy(tw_agent_session);
	tw_agent_written_left();
}

bool tw_agent_end(void)
{
	tw_rs_close(&tw_agent_ring_set);
	if (!is_ended && !tw_agent_disarm(end_session))
		return false;
	is_ended = true;
	if (tw_patch_suspension_count())
		return false;
	tw_agent_set_active(false);
	return !tw_agent_is_used();
}

bool tw_agent_forget(void)
{
	struct tw_session *session = tw_agent_session;
	struct tw_permit *permit;
	int error;

	if (session)
		tw_session_put(session);
	error = tw_permit_seize(&permit);
	TW_ASSERT(!error);
	/* The list of what was written asks for the session, with the permit. */
	tw_agent_session = NULL;
	if (!tw_counters_unshare()) {
		tw_permit_drop(permit);
		return false;
	}
	tw_filter_watch(NULL);
	tw_rs_detach(&tw_agent_ring_set);
	tw_permit_drop(permit);
	tw_agent_arm_fini();
	is_ended = false;
	return true;
}
