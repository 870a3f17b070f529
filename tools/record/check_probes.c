/* SPDX-License-Identifier: Apache-2.0 */
/* check_probes.c - patterns for probes that programs bring themselves (sdt:PROVIDER:NAME), matched against those of the files. */
#include "tools/record/check_state.h"
#include "tools/common/near.h"

#include <stdio.h>
#include <stdlib.h>

static bool is_probe_pattern(const struct asked *asked)
{
	return tw_pattern_is_of_probes(asked->pattern);
}

bool tw_check_asks_for_probes(const struct tw_check *check)
{
	for (size_t i = 0; i < check->count; i++)
		if (is_probe_pattern(&check->asked[i]) && !check->asked[i].is_excluding)
			return true;
	return false;
}

bool tw_check_has_probes(const struct tw_check *check, size_t index)
{
	return check->entries && (!index || !check->options.is_main_only) && !check->options.is_global &&
	       tw_check_asks_for_probes(check) && tw_entries_has_probes(check->symbols, index);
}

static struct tw_patterns_subject subject_of(const struct tw_entries_probe *probe)
{
	return (struct tw_patterns_subject){.module = TW_PATTERN_PROBES,
					    .function = probe->name,
					    .arity = probe->argument_count};
}

static int see_probe(const struct tw_entries_probe *probe, void *arg)
{
	struct tw_check *check = arg;
	const struct tw_patterns_subject subject = subject_of(probe);
	const struct tw_symbols_place place = {.function = probe->name,
					       .module = probe->module,
					       .caller = probe->module,
					       .refusal = probe->refusal};
	for (size_t i = 0; i < check->count; i++) {
		struct asked *asked = &check->asked[i];
		if (!is_probe_pattern(asked) || !tw_pattern_is(asked->pattern, &subject, NULL))
			continue;
		if (probe->refusal)
			tw_check_add_refused(asked, &place);
		else if (!asked->is_excluding && !tw_patterns_match(&check->patterns, &subject))
			asked->excluded_count++;
		else
			asked->place_count++;
	}
	return 0;
}

int tw_check_see_probes(struct tw_check *check)
{
	int error = 0;
	for (size_t i = 0; i < tw_symbols_object_count(check->symbols) && !error; i++)
		if (tw_check_has_probes(check, i))
			error = tw_entries_each_probe(check->entries, i, see_probe, check);
	return error;
}

static int see_name(const struct tw_entries_probe *probe, void *arg)
{
	tw_near_see(arg, probe->name);
	return 0;
}

static void explain_unknown(struct tw_check *check, struct asked *asked)
{
	struct tw_near near = {.wanted = asked->function ? asked->function : ""};
	bool has_any = false;
	for (size_t i = 0; i < tw_symbols_object_count(check->symbols); i++) {
		if (!tw_check_has_probes(check, i))
			continue;
		has_any = true;
		tw_entries_each_probe(check->entries, i, see_name, &near);
	}
	int used = snprintf(asked->reason, sizeof asked->reason, "the program and its libraries have no %s%s%.300s%s",
			    has_any ? "such probe" : "probes", has_any && asked->function ? " '" : "",
			    has_any && asked->function ? asked->function : "", has_any && asked->function ? "'" : "");
	if (has_any && *near.best)
		snprintf(asked->reason + used, sizeof asked->reason - (size_t)used, " (did you mean 'sdt:%s'?)",
			 near.best);
	else if (has_any)
		snprintf(asked->reason + used, sizeof asked->reason - (size_t)used,
			 "; `tracewheel functions --probes` lists those that they have");
	asked->may_come =
		check->options.may_become_another || check->can_open || check->can_become || check->has_preloads;
}

bool tw_check_explain_probes(struct tw_check *check, struct asked *asked)
{
	if (!is_probe_pattern(asked))
		return false;
	if (asked->place_count)
		return true;
	if (check->options.is_global)
		snprintf(asked->reason, sizeof asked->reason,
			 "probes are in the middle of code, which --global leaves as it is");
	else if (asked->refused_count)
		snprintf(asked->reason, sizeof asked->reason, "the probe %.200s of %.200s cannot be traced: %s",
			 asked->refused[0].function, asked->refused[0].caller, asked->refused[0].reason);
	else if (asked->excluded_count && !asked->is_excluding)
		snprintf(asked->reason, sizeof asked->reason, "its probes are excluded by -N");
	else
		explain_unknown(check, asked);
	return true;
}
