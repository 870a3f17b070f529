/* SPDX-License-Identifier: Apache-2.0 */
/* trigger.c - see trigger.h. */
#include "ringbuf/trigger.h"
#include "base/sys.h"
#include "ringbuf/inside.h"

#include <string.h>

void tw_rs_trigger_pass_over(struct tw_rs *rs, uint64_t count)
{
	/* RELAXED trigger.missed: a number that is shown. */
	if (count)
		tw_fetch_add_relaxed(&rs->control->trigger.missed, count);
}

bool tw_rs_trigger_tell(struct tw_rs *rs, const struct tw_rs_trigger_call *call, bool may_wake)
{
	struct tw_rs_trigger *shared = &rs->control->trigger;
	uint64_t state = TW_RS_TRIGGER_FREE;

	/* PAIR rs.trigger: acquire; what the owner read of the last one is read. */
	if (!tw_cas_acq_rel(&shared->state, &state, TW_RS_TRIGGER_TAKEN | (uint64_t)(uint32_t)call->process_id << 32)) {
		tw_rs_trigger_pass_over(rs, 1);
		return false;
	}
	shared->call = *call;
	/* PAIR rs.trigger: release; acquire in tw_rs_trigger_take(). */
	tw_store_release(&shared->state, TW_RS_TRIGGER_READY);
	if (may_wake)
		tw_rs_wake(rs);
	return true;
}

bool tw_rs_trigger_open(struct tw_rs *rs, bool is_wanted)
{
	struct tw_rs_trigger *shared = &rs->control->trigger;
	/* PAIR rs.trigger: acquire; release in tw_rs_trigger_tell(). */
	uint64_t state = tw_load_acquire(&shared->state);

	if ((uint32_t)state == TW_RS_TRIGGER_TAKEN && tw_sys_is_process_there((int32_t)(state >> 32)))
		return false;
	/* PAIR rs.trigger: release; acquire in tw_rs_trigger_tell(). */
	if (!tw_cas_acq_rel(&shared->state, &state, is_wanted ? TW_RS_TRIGGER_FREE : TW_RS_TRIGGER_CLOSED))
		return false;
	tw_rs_trigger_pass_over(rs, state == TW_RS_TRIGGER_READY);
	return true;
}

bool tw_rs_trigger_take(struct tw_rs *rs, struct tw_rs_trigger_call *out)
{
	struct tw_rs_trigger *shared = &rs->control->trigger;
	/* PAIR rs.trigger: acquire; release in tw_rs_trigger_tell(). */
	uint64_t state = tw_load_acquire(&shared->state);

	if ((uint32_t)state == TW_RS_TRIGGER_TAKEN && !tw_sys_is_process_there((int32_t)(state >> 32)))
		tw_rs_trigger_open(rs, true);
	if (state != TW_RS_TRIGGER_READY)
		return false;
	*out = shared->call;
	/* PAIR rs.trigger: release; acquire in tw_rs_trigger_tell(). */
	tw_store_release(&shared->state, TW_RS_TRIGGER_CLOSED);
	out->function[sizeof out->function - 1] = '\0';
	for (char *c = out->function; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	return true;
}

uint64_t tw_rs_trigger_missed(const struct tw_rs *rs)
{
	/* RELAXED trigger.missed: a number that is shown. */
	return tw_load_relaxed(&rs->control->trigger.missed);
}
