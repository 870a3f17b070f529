/* SPDX-License-Identifier: Apache-2.0 */
/* trigger.c - the calls for which a flight recorder writes a snapshot: the command's lines, and what hits read of them. */
#include "agent/agent.h"
#include "agent/condition.h"

#include "base/grow.h"
#include "pipeline/hit/trigger.h"
#include "tracewheel/error.h"

#include <stdlib.h>
#include <string.h>

/* ---- lines ---- */

static int take_pattern(struct tw_agent_config *config, const char *value)
{
	struct tw_pattern *pattern;
	int error = tw_pattern_parse(value, &pattern, NULL);

	if (error)
		return error == TW_EBADARG ? 0 : error;
	if (!tw_grow_one(config->triggers, config->trigger_count)) {
		tw_pattern_destroy(pattern);
		return TW_ENOMEM;
	}
	config->triggers[config->trigger_count++] = (struct tw_agent_trigger){.pattern = pattern};
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

const struct tw_call_condition *tw_agent_trigger_of(const struct tw_agent_config *config,
						    const struct tw_sym_object *definer, const char *function,
						    uint64_t value)
{
	for (size_t i = 0; i < config->trigger_count; i++) {
		const struct tw_agent_trigger *trigger = &config->triggers[i];
		const struct tw_call_condition *condition;
		const char *text = trigger->text;

		if (!tw_plan_matches(config, trigger->pattern, definer, function))
			continue;
		if (trigger->number)
			text = tw_agent_layouts_guard_text(config->layouts, definer, value, trigger->number);
		if (!text && trigger->number)
			continue;
		condition = tw_agent_call_condition(text ? text : "", trigger->is_of_end);
		/* The command has refused those with more. */
		return condition && condition->kept_count <= TW_TRIGGER_KEPT_MAX ? condition : NULL;
	}
	return NULL;
}

void tw_agent_trigger_set(struct tw_place *place, const struct tw_call_condition *trigger)
{
	tw_bp_place_set_trigger(place, trigger);
	if (trigger && trigger->is_of_end && place->is_unwatched)
		tw_agent_tell_unended(place, "no snapshot is written for calls");
}
