/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refusals.h - places that could not be armed, counted by cause while a plan is armed, and said in notes of the capture.
 *
 * Threads  under the permit.
 */
#ifndef TW_AGENT_REFUSALS_H
#define TW_AGENT_REFUSALS_H

#include "breakpoints/breakpoints.h"
#include "symbols/symbols.h"

#include <stdbool.h>

struct tw_agent_refusals {
	bool is_local; /* entries and sleds only: --local */
	unsigned slots, sleds, late_sleds;
	unsigned entries, shadow_entries, late_entries, other_entries, put_off_entries;
	const struct tw_sym_object *late; /* the object of the last of late_sleds */
	bool lacks_memory, lacks_entry_memory, lacks_slots;
};

/* @error	of arming a place of this kind; 0 counts nothing. */
void tw_agent_refusal_count(struct tw_agent_refusals *refusals, int error, enum tw_bp_kind kind);

/* The consequence for so many functions whose entries are not planted; 0: for some. */
const char *tw_agent_without_entry(const struct tw_agent_refusals *refusals, unsigned count);

/* For gcc's sleds, one-byte NOPs, that lie on two pages, in a library opened while other threads were running. */
void tw_agent_refusals_tell_late(const struct tw_agent_refusals *refusals);
/* The entries of one object. */
void tw_agent_refusals_tell_entries(const struct tw_agent_refusals *refusals, const struct tw_sym_object *object);
/* All others. */
void tw_agent_refusals_tell(const struct tw_agent_refusals *refusals);

#endif
