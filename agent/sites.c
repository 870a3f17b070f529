/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sites.c - probes that programs bring themselves become places, which are staged for the session.  Under the permit.
 *
 * A probe is a call without an end.  Its arguments are always recorded, by a layout that is made of the note.  A program that tests a semaphore
 * before it comes to the probe finds the semaphore raised as long as the recording goes on (written.c).
 */
#include "agent/agent.h"
#include "agent/condition.h"

#include "base/figure.h"
#include "breakpoints/breakpoints.h"
#include "breakpoints/entry.h"
#include "breakpoints/patch.h"
#include "pipeline/hit/arguments.h"
#include "session/native.h"
#include "session/places.h"
#include "session/session.h"
#include "session/setting.h"
#include "symbols/entry_plan.h"
#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "arg12:p8@0- " */
#define ARGUMENT_BYTES 16u
#define LAYOUT_BYTES   (8u + 12u * ARGUMENT_BYTES)

/* Values without a register are not recorded: operands that are not understood, and those behind the last word. */
static void write_layout(const struct tw_bp_entry *entry, char out[LAYOUT_BYTES])
{
	const struct tw_entry_plan_site *site = tw_entry_plan_site_of(entry->row);
	size_t used = (size_t)snprintf(out, LAYOUT_BYTES, ":v@--");

	for (unsigned i = 0; i < site->argument_count && used + ARGUMENT_BYTES < LAYOUT_BYTES; i++) {
		const struct tw_entry_plan_operand *operand =
			i < site->operand_count ? &entry->plan->operands[site->first_operand + i] : NULL;
		/* Unsigned numbers of eight bytes are mostly addresses. */
		char letter = !operand || !operand->kind		 ? '_'
			      : operand->flags & TW_ENTRY_OPERAND_SIGNED ? 'i'
			      : operand->bytes == 8			 ? 'p'
									 : 'u';
		char word = letter == '_' ? '-' : (char)('0' + i);

		used += (size_t)snprintf(out + used, LAYOUT_BYTES - used, " arg%u:%c8@%c-", i + 1, letter, word);
	}
}

static int stage(const struct tw_agent_config *config, struct tw_permit *permit, const struct tw_sym_object *probes,
		 struct tw_place *place, uint64_t value)
{
	struct tw_bp_part part = {.actions = TW_ACTION_CALL,
				  .slot_words = place->function->arguments ? TW_SLOT_WORDS_TYPED : 0};
	const char *name = place->function->name;
	struct tw_plan_condition condition;

	/* The names of a function's arguments are not those of a probe's. */
	if (!tw_plan_chooses(config, probes, name, place->arity, value, &condition))
		return TW_EBADARG;
	tw_agent_trigger_set(place, tw_agent_trigger_of(config, probes, name, value));
	if (condition.program && !config->has_ends)
		tw_session_use_program(&part, place, condition.program);
	tw_agent_written_expect(place);
	if (tw_plan_counts(config, probes, name, place->arity) || tw_agent_is_demoted(place->function)) {
		tw_agent_aggregate(config, place);
		return tw_session_stage_counted(tw_agent_session, permit, place);
	}
	return tw_session_stage(tw_agent_session, permit, place, &part);
}

static int arm_site(const struct tw_agent_config *config, struct tw_permit *permit, const struct tw_plan *plan,
		    const struct tw_plan_entry *planned)
{
	const struct tw_sym_object *object = &plan->set->objects[planned->object], probes = tw_agent_probes_of(object);
	const struct tw_bp_entry entry = {planned->plan, planned->row, object->elf.base};
	const struct tw_place_options options = {.kind = TW_BP_ENTRY,
						 .where = (void *)(object->elf.base + planned->row->value),
						 .entry = &entry,
						 .is_unwatched = true};
	const char *given = NULL; /* by a prototype */
	struct tw_function *function;
	struct tw_module *module;
	struct tw_place *place;
	char own[LAYOUT_BYTES];
	int error = tw_native_module(permit, &probes, &module);

	if (!error)
		error = tw_bp_function_add(permit, module, planned->name,
					   tw_entry_plan_site_of(planned->row)->argument_count,
					   (uintptr_t)options.where, &function);
	if (error)
		return error;
	if (config->string_bytes)
		given = tw_agent_layouts_find(config->layouts, object, planned->row->value);
	write_layout(&entry, own);
	/* Of several places of a probe, the first says how its arguments are shown. */
	tw_agent_set_layout(function, given ? given : own, config->string_bytes);
	error = tw_bp_place_add(permit, function, &options, &place);
	/* A function's entry, which was planted by a plan that knew no probe there. */
	if (!error && (!place->entry || place->entry->row != planned->row))
		error = TW_EFORMAT;
	return error ? error : stage(config, permit, &probes, place, planned->row->value);
}

static void tell(const struct tw_sym_object *object, unsigned count, const char *why)
{
	char text[512], figure[TW_COUNT_TEXT_BYTES];

	if (!count)
		return;
	snprintf(text, sizeof text, "%s place%s of probes of %s %s not traced: %s", tw_count_text(figure, count),
		 count == 1 ? "" : "s", object->name, count == 1 ? "is" : "are", why);
	tw_agent_tell_unarmed(count, text);
}

/* Counts of failures in one object, by cause. */
struct failures {
	unsigned late, shared, other, refused, put_off, unchosen, unplanted, unraised;
};

static void count_failure(struct failures *failures, int error, bool shares)
{
	failures->shared += error == TW_EFORMAT && shares;
	failures->late += error == TW_ENOTSUP;
	failures->other += error == TW_EFORMAT && !shares;
	failures->put_off += error == TW_EINTR;
	failures->unchosen += error == TW_EBADARG;
	failures->refused +=
		error && error != TW_ENOTSUP && error != TW_EFORMAT && error != TW_EINTR && error != TW_EBADARG;
}

static void tell_failures(const struct failures *failures, const struct tw_sym_object *object)
{
	tell(object, failures->late,
	     "the first instructions lie on two pages, and no jump is written there while several threads run");
	tell(object, failures->shared,
	     "the first instructions of their functions, which are traced, are the same ones");
	tell(object, failures->other,
	     "the first instructions in memory are not those of the file; a debugger or another tracer may have changed them");
	tell(object, failures->refused,
	     "there is no memory near the code, or the system refuses to make it writable or executable");
	tell(object, failures->unchosen,
	     "the condition names arguments, and those of probes are $1, $2 ...; give them a condition of their own");
	tell(object, failures->unplanted,
	     "threads stood in the first instructions each time that all were stopped, or could not be stopped");
	tell(object, failures->unraised,
	     "the system refuses to write the semaphores that the program tests before them");
}

/* The jump is there: now the program is to come to it. */
static void finish_site(struct tw_permit *permit, const struct tw_plan *plan, const struct tw_plan_entry *planned,
			struct failures *failures)
{
	uintptr_t base = plan->set->objects[planned->object].elf.base;
	uint64_t semaphore = tw_entry_plan_site_of(planned->row)->semaphore;
	const struct tw_place *place = tw_bp_place_at(permit, (void *)(base + planned->row->value));

	if (!place || place->kind != TW_BP_ENTRY || place->entry->row != planned->row || !place->stub)
		return;
	if (!place->is_planted)
		failures->unplanted++;
	else if (semaphore && !tw_agent_written_raise(base + semaphore))
		failures->unraised++;
}

/* The sites of one object, from the first of them on; returns their end. */
static size_t arm_object(const struct tw_agent_config *config, struct tw_permit *permit, const struct tw_plan *plan,
			 size_t first)
{
	size_t object = plan->sites[first].object, end = first;
	struct failures failures = {0};

	tw_patch_begin(permit);
	for (; end < plan->site_count && plan->sites[end].object == object; end++)
		count_failure(&failures, arm_site(config, permit, plan, &plan->sites[end]),
			      plan->sites[end].row->flags & TW_ENTRY_SHARES);
	tw_patch_end(permit);
	failures.refused += tw_patch_take_unplanted(permit);
	for (size_t i = first; i < end; i++)
		finish_site(permit, plan, &plan->sites[i], &failures);
	plan->is_put_off[object] |= failures.put_off != 0;
	tell_failures(&failures, &plan->set->objects[object]);
	return end;
}

void tw_agent_arm_sites(const struct tw_agent_config *config, struct tw_permit *permit, const struct tw_plan *plan)
{
	size_t at = 0;

	while (at < plan->site_count)
		at = arm_object(config, permit, plan, at);
	if (at && tw_agent_bind_beside)
		tw_agent_bind_beside(permit);
}
