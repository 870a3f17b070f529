/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_sites.c - which probes of an object are recorded: those that a pattern with the module `sdt` selects.
 *
 * A pattern for functions, even `_:_`, selects no probe: what a program does for a probe that somebody looks at may cost much.
 */
#include "agent/agent.h"

#include "base/figure.h"
#include "base/grow.h"
#include "symbols/entry_plan.h"
#include "tracewheel/error.h"

#include <stdlib.h>

const char tw_agent_probes[] = TW_PATTERN_PROBES;

bool tw_agent_wants_probes(const struct tw_agent_config *config)
{
	for (size_t i = 0; i < config->pattern_count; i++)
		if (tw_pattern_is_of_probes(config->patterns[i]))
			return !config->is_global;
	return false;
}

/* No file has this module, but all its places are in that object. */
struct tw_sym_object tw_agent_probes_of(const struct tw_sym_object *object)
{
	struct tw_sym_object probes = *object;

	probes.name = (char *)(uintptr_t)tw_agent_probes;
	/* Code at these addresses belongs to the object's own module. */
	probes.elf.image.high = probes.elf.base;
	return probes;
}

static int add_site(struct tw_plan *plan, const struct tw_plan_entry *entry)
{
	if (!tw_grow(plan->sites, plan->site_count, plan->site_capacity))
		return TW_ENOMEM;
	plan->sites[plan->site_count++] = *entry;
	return 0;
}

static void tell_refused(struct tw_plan *plan, const struct tw_sym_object *object, unsigned count)
{
	char figure[TW_COUNT_TEXT_BYTES];

	if (count)
		tw_plan_put_note(
			plan, NULL,
			"%s place%s of probes of %s that %s not traced: `tracewheel functions --probes --refused` says why",
			tw_count_text(figure, count), count == 1 ? "" : "s", object->name,
			count == 1 ? "matches is" : "match are");
}

int tw_plan_add_sites(struct tw_plan *plan, const struct tw_agent_config *config, size_t index)
{
	const struct tw_sym_object *object = &plan->set->objects[index], probes = tw_agent_probes_of(object);
	struct tw_plan_entry entry = {.object = index, .plan = tw_agent_entry_plan(object)};
	unsigned refused = 0;
	bool is_late = false;
	int error = 0;

	if (!entry.plan) {
		const char *why = tw_agent_entries_why_none(object, &tw_agent_ring_set, &is_late);

		if (is_late)
			tw_plan_put_note(plan, NULL, "probes of %s are not traced: %s", object->name, why);
		return 0;
	}
	for (uint32_t i = 0; !error && i < entry.plan->header->site_count; i++) {
		const struct tw_entry_plan_site *site = &entry.plan->sites[i];

		entry.row = &site->row;
		entry.name = tw_entry_plan_name(entry.plan, entry.row, 0);
		if (!tw_plan_wants(config, &probes, entry.name, site->argument_count))
			continue;
		if (entry.row->refusal)
			refused++;
		else
			error = add_site(plan, &entry);
	}
	tell_refused(plan, object, refused);
	return error;
}
