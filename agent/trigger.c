/* SPDX-License-Identifier: Apache-2.0 */
/* trigger.c - the calls for which a flight recorder writes a snapshot: the command's lines, and what hits read of them. */
#include "agent/agent.h"

#include "base/clock.h"
#include "base/grow.h"
#include "base/limits.h"
#include "pipeline/hit/trigger.h"
#include "tracewheel/error.h"
#include "tracewheel/match.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Those made so far, which hits may use at any time: conditions are few, also where many functions have the same one. */
static struct made {
	struct tw_trigger trigger;
	struct made *next;
	char text[];
} * made;

/* ---- lines ---- */

static int take_pattern(struct tw_agent_config *config, const char *value)
{
	struct tw_agent_trigger *grown;
	struct tw_pattern *pattern;
	int error = tw_pattern_parse(value, &pattern, NULL);

	if (error)
		return error == TW_EBADARG ? 0 : error;
	grown = realloc(config->triggers, (config->trigger_count + 1) * sizeof *grown);
	if (!grown) {
		tw_pattern_destroy(pattern);
		return TW_ENOMEM;
	}
	config->triggers = grown;
	grown[config->trigger_count++] = (struct tw_agent_trigger){.pattern = pattern};
	return 0;
}

/* N END EXPR, of the last trigger. */
static int take_if(struct tw_agent_config *config, char *value)
{
	struct tw_agent_trigger *last = config->triggers + config->trigger_count - 1;
	uint32_t number = (uint32_t)strtoul(value, &value, 10);

	if (!config->trigger_count || *value++ != ' ')
		return 0;
	last->is_of_end = strtoul(value, &value, 10) != 0;
	if (*value++ != ' ')
		return 0;
	if (!strcmp(value, "-")) {
		last->number = number;
		return 0;
	}
	free(last->text);
	last->text = strdup(value);
	return last->text ? 0 : TW_ENOMEM;
}

bool tw_agent_trigger_take(struct tw_agent_config *config, const char *key, char *value, int *error)
{
	if (!strcmp(key, "trigger"))
		*error = take_pattern(config, value);
	else if (!strcmp(key, "trigger_if"))
		*error = take_if(config, value);
	else
		return false;
	return true;
}

void tw_agent_triggers_fini(struct tw_agent_config *config)
{
	for (size_t i = 0; i < config->trigger_count; i++) {
		tw_pattern_destroy(config->triggers[i].pattern);
		free(config->triggers[i].text);
	}
	free(config->triggers);
}

/* ---- for hits ---- */

/* The argument registers that a condition names, $1 to $6; the command has refused those with too many. */
static void keep_registers(struct tw_trigger *trigger, const char *text)
{
	uint32_t seen = 0;

	for (const char *at = text; (at = strchr(at, '$')); at++) {
		unsigned long number = strtoul(at + 1, NULL, 10);

		if (number < 1 || number > TW_ARGS_MAX || seen & 1u << number ||
		    trigger->kept_count == TW_TRIGGER_KEPT_MAX)
			continue;
		seen |= 1u << number;
		trigger->kept[trigger->kept_count++] = (uint8_t)(number - 1);
	}
}

static const struct tw_trigger *make(const char *text, bool is_of_end)
{
	struct made *new = made;

	while (new && (strcmp(new->text, text) || new->trigger.is_of_end != is_of_end))
		new = new->next;
	if (new)
		return &new->trigger;
	new = calloc(1, sizeof *new + strlen(text) + 1);
	if (!new)
		return NULL;
	strcpy(new->text, text);
	if (*text &&
	    tw_match_compile_when(text, strlen(text), NULL, (struct tw_match_program **)&new->trigger.program, NULL)) {
		free(new);
		return NULL;
	}
	new->trigger.is_of_end = is_of_end;
	new->trigger.since_ticks = tw_clock_ticks();
	new->trigger.ns_scale = (UINT64_C(1000000000) << 32) / tw_clock_ticks_per_second();
	if (is_of_end)
		keep_registers(&new->trigger, text);
	new->next = made;
	made = new;
	return &new->trigger;
}

const struct tw_trigger *tw_agent_trigger_of(const struct tw_agent_config *config, const struct tw_sym_object *definer,
					     const char *function, uint64_t value)
{
	for (size_t i = 0; i < config->trigger_count; i++) {
		const struct tw_agent_trigger *trigger = &config->triggers[i];
		const char *text = trigger->text;

		if (!tw_plan_matches(config, trigger->pattern, definer, function))
			continue;
		if (trigger->number)
			text = tw_agent_layouts_guard_text(config->layouts, definer, value, trigger->number);
		if (text || !trigger->number)
			return make(text ? text : "", trigger->is_of_end);
	}
	return NULL;
}

void tw_agent_trigger_set(struct tw_place *place, const struct tw_trigger *trigger)
{
	char text[400];

	tw_bp_place_set_trigger(place, trigger);
	if (!trigger || !trigger->is_of_end || !place->is_unwatched)
		return;
	snprintf(
		text, sizeof text,
		"no snapshot is written for calls of %s:%s: it returns twice or never, or reads its return address, so its end is not seen",
		place->function->module->name, place->function->name);
	tw_agent_tell_unarmed(1, text);
}
