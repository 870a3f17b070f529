/* SPDX-License-Identifier: Apache-2.0 */
/* demotion.c - see demotion.h. */
#include "ringbuf/demotion.h"
#include "ringbuf/inside.h"

#include <string.h>

bool tw_rs_demotion_take(const struct tw_rs *rs, struct tw_rs_demoted *out)
{
	const struct tw_rs_demotion *shared = &rs->control->demotion;
	/* PAIR rs.demotion_asked: acquire; release in tw_rs_demotion_ask(). */
	uint32_t number = tw_load_acquire(&shared->asked);

	/* RELAXED demotion.done: written by this side. */
	if (number == tw_load_relaxed(&shared->done))
		return false;
	*out = (struct tw_rs_demoted){.number = number,
				      .share = shared->share,
				      .count = shared->count < TW_RS_DEMOTED_MAX ? shared->count : TW_RS_DEMOTED_MAX,
				      .places = shared->places};
	return true;
}

void tw_rs_demotion_done(struct tw_rs *rs, const struct tw_rs_demoted *demoted, uint32_t changed)
{
	rs->control->demotion.changed = changed;
	/* PAIR rs.demotion_done: release; acquire in tw_rs_demotion_is_pending(): the places have been read. */
	tw_store_release(&rs->control->demotion.done, demoted->number);
}

bool tw_rs_demotion_is_pending(const struct tw_rs *rs, bool *changed)
{
	const struct tw_rs_demotion *shared = &rs->control->demotion;

	/* RELAXED demotion.asked: written by this side. */
	uint32_t asked = tw_load_relaxed(&shared->asked);

	/* PAIR rs.demotion_done: acquire; release in tw_rs_demotion_done(). */
	if (asked != tw_load_acquire(&shared->done))
		return true;
	*changed = shared->changed != 0;
	return false;
}

void tw_rs_demotion_ask(struct tw_rs *rs, const uint32_t *places, uint32_t count, uint32_t share)
{
	struct tw_rs_demotion *shared = &rs->control->demotion;
	uint32_t number;

	shared->count = count < TW_RS_DEMOTED_MAX ? count : TW_RS_DEMOTED_MAX;
	shared->share = share;
	memcpy(shared->places, places, shared->count * sizeof *places);
	/* RELAXED demotion.asked: written by this side. */
	number = tw_load_relaxed(&shared->asked) + 1;
	/* PAIR rs.demotion_asked: release; acquire in tw_rs_demotion_take(). */
	tw_store_release(&shared->asked, number);
}
