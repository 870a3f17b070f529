/* SPDX-License-Identifier: Apache-2.0 */
/* refusals.c - says which functions that were asked for are not traced, or only in part, and why. */
#include "agent/refusals.h"
#include "agent/agent.h"

#include "base/figure.h"
#include "tracewheel/error.h"

#include <stdio.h>

const char *tw_agent_without_entry(const struct tw_agent_refusals *refusals, unsigned count)
{
	if (refusals->is_local)
		return "not traced";
	return count == 1 ? "traced only where other objects call it" : "traced only where other objects call them";
}

void tw_agent_refusal_count(struct tw_agent_refusals *refusals, int error, enum tw_bp_kind kind)
{
	if ((error == TW_ENOMEM || error == TW_ENOSPC) && kind == TW_BP_ENTRY)
		refusals->lacks_entry_memory = true;
	else if (error == TW_ENOMEM || error == TW_ENOSPC)
		refusals->lacks_memory = true;
	else if (error == TW_ELIMIT && kind == TW_BP_SLOT)
		refusals->lacks_slots = true;
	else if (error == TW_ENOTSUP && kind == TW_BP_SLED)
		refusals->late_sleds++;
	else if (error == TW_ENOTSUP && kind == TW_BP_ENTRY)
		refusals->late_entries++;
	else if (error == TW_EINTR && kind == TW_BP_ENTRY)
		refusals->put_off_entries++;
	else if (error == TW_EFORMAT && kind == TW_BP_ENTRY)
		refusals->other_entries++;
	else if (error && kind == TW_BP_ENTRY)
		refusals->entries++;
	else if (error && kind != TW_BP_SLOT)
		refusals->sleds++;
	else if (error)
		refusals->slots++;
}

void tw_agent_refusals_tell_late(const struct tw_agent_refusals *refusals)
{
	char text[512], figure[TW_COUNT_TEXT_BYTES];

	snprintf(
		text, sizeof text,
		"%s function%s of %s %s not traced: other threads were running when it was opened, and no single write "
		"arms %s, which lie%s on two pages; run `tracewheel compact` on it (%s)",
		tw_count_text(figure, refusals->late_sleds), refusals->late_sleds == 1 ? "" : "s", refusals->late->name,
		refusals->late_sleds == 1 ? "is" : "are",
		refusals->late_sleds == 1 ? "its entry sled" : "their entry sleds",
		refusals->late_sleds == 1 ? "s" : "", refusals->late->path);
	tw_agent_tell_unarmed(refusals->late_sleds, text);
}

static void tell_count(const struct tw_agent_refusals *refusals, unsigned count, const struct tw_sym_object *object,
		       const char *why)
{
	char text[512], figure[TW_COUNT_TEXT_BYTES];

	snprintf(text, sizeof text, "%s function%s of %s %s %s: %s", tw_count_text(figure, count),
		 count == 1 ? "" : "s", object->name, count == 1 ? "is" : "are",
		 tw_agent_without_entry(refusals, count), why);
	tw_agent_tell_unarmed(count, text);
}

void tw_agent_refusals_tell_entries(const struct tw_agent_refusals *refusals, const struct tw_sym_object *object)
{
	char why[400];

	if (refusals->late_entries)
		tell_count(
			refusals, refusals->late_entries, object,
			"the first instructions lie on two pages, and no jump is written there while several threads run");
	if (refusals->shadow_entries)
		tell_count(
			refusals, refusals->shadow_entries, object,
			"a call among the first instructions would run elsewhere, and a shadow stack is in use, which refuses its return");
	snprintf(
		why, sizeof why,
		"the first instructions in memory are not those of the file (%s); a debugger or another tracer may have "
		"changed them",
		object->path);
	if (refusals->other_entries)
		tell_count(refusals, refusals->other_entries, object, why);
}

void tw_agent_refusals_tell(const struct tw_agent_refusals *refusals)
{
	char text[512];

	snprintf(text, sizeof text, "some functions are %s: the system refuses to make their code writable",
		 tw_agent_without_entry(refusals, 0));
	if (refusals->entries)
		tw_agent_tell_unarmed(refusals->entries, text);
	/* Their number is not known. */
	if (refusals->lacks_memory || refusals->lacks_entry_memory)
		tw_agent_tell_unarmed(1,
				      "not all functions that were asked for are traced: there was no memory for more");
	if (refusals->lacks_slots)
		tw_agent_tell(
			"some functions are not traced: more than 65,536 slots are selected, which is the limit of a process; "
			"select fewer functions with -t");
	if (refusals->slots)
		tw_agent_tell_unarmed(refusals->slots,
				      "some functions are not traced: the system refuses to make their GOT writable");
	if (refusals->sleds)
		tw_agent_tell_unarmed(refusals->sleds,
				      "some functions are not traced: the system refuses to make their code writable");
	if (refusals->late_sleds)
		tw_agent_refusals_tell_late(refusals);
}
