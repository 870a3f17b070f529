/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inherit.c - inheritance of flags by spawned and linked processes.
 *
 *			the other gets				then both lose
 *	set_on_spawn	all flags of the parent			nothing
 *	..first_spawn	the same				set_on_first_spawn, set_on_spawn
 *	set_on_link	all flags of the linking process			nothing
 *	..first_link	the same				set_on_first_link, set_on_link
 *
 * Applies in each session separately.  A process that has flags already gets the union.  The direction matters: a
 * process that links *to* one with the flag inherits nothing.  Under the registry's lock.
 */
#include "session/session.h"
#include "session/tracee.h"

static void inherit(struct tw_tracee *from, struct tw_tracee *to, uint32_t always, uint32_t first)
{
	for (struct tw_session *session = tw_sessions(); session; session = session->next) {
		/* RELAXED tracee.flags: under the registry's lock. */
		uint32_t flags = tw_load_relaxed(&from->flags[session->slot]);
		/* RELAXED tracee.flags: as above. */
		uint32_t united = flags | tw_load_relaxed(&to->flags[session->slot]);

		if (!(flags & (always | first)) || !tw_session_takes_flags(session))
			continue;
		if (flags & first) {
			united &= ~(always | first);
			tw_flags_change(from, session->slot, false, always | first);
		}
		tw_flags_apply(to, session->slot, united);
	}
}

void tw_inherit_by_link(struct tw_tracee *process, struct tw_tracee *other)
{
	inherit(process, other, TW_FLAG_SET_ON_LINK, TW_FLAG_SET_ON_FIRST_LINK);
}

void tw_inherit_by_spawn(struct tw_tracee *parent, struct tw_tracee *child, bool is_linked)
{
	inherit(parent, child, TW_FLAG_SET_ON_SPAWN, TW_FLAG_SET_ON_FIRST_SPAWN);
	if (is_linked)
		tw_inherit_by_link(parent, child);
}
