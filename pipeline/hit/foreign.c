/* SPDX-License-Identifier: Apache-2.0 */
/* foreign.c - what can be done in a hit without thread-local variables. */
#include "pipeline/hit/foreign.h"

#include "breakpoints/returns.h"
#include "pipeline/hit/counted.h"
#include "pipeline/hit/frame.h"
#include "pipeline/hit/hit.h"
#include "pipeline/hit/longer.h"
#include "pipeline/hit/trigger.h"

const char *tw_foreign_hit(struct tw_place *place)
{
	/* PAIR bp.active: acquire; as in hit_inside(). */
	uint32_t active = tw_load_acquire(&tw_bp_gate.active);

	if (active)
		tw_hit_count_pinned(tw_hit_losing(&place->gen[active - 1]), TW_THREAD_UNABLE);
	return NULL;
}

uintptr_t tw_foreign_return(uint64_t *slot)
{
	struct tw_return_entry *entry = tw_returns_find(slot);

	if (!entry)
		return tw_returns_lost_address(slot);
	for (unsigned number = tw_returns_count(entry); number-- > 0;) {
		const struct tw_frame_wants *wants = (const struct tw_frame_wants *)tw_returns_frame(entry, number);

		if (wants->place && !(wants->more & (TW_COUNTED_FRAME | TW_LONGER_FRAME | TW_TRIGGER_FRAME)))
			tw_hit_count_pinned(wants->returns, TW_THREAD_UNABLE);
	}
	tw_returns_close(entry);
	return entry->return_address;
}
