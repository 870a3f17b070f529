/* SPDX-License-Identifier: Apache-2.0 */
/* trigger.c - see trigger.h. */
#include "tools/record/trigger.h"
#include "tools/record/condition.h"
#include "tools/record/when.h"
#include "tools/tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Their conditions have numbers above those of -t, which are few. */
#define FIRST_NUMBER 2048

bool tw_trigger_is_pattern(const char *value)
{
	return strchr(value, ':') != NULL;
}

bool tw_triggers_take(struct tw_patterns *triggers, const struct tw_command *command, const char *value,
		      struct tw_config *config)
{
	if (!tw_patterns_take(triggers, command, false, value))
		return false;
	size_t last = triggers->wanted_count - 1;
	const char *text = triggers->conditions[last];
	if (text && tw_when_names(text, "exception"))
		return tw_refuse(
			command,
			"--snapshot-on '%s': a call that an exception leaves writes no snapshot; name the function that throws.",
			value);
	if (text && strstr(text, "vector_") && tw_condition_is_of_end(text))
		return tw_refuse(command,
				 "--snapshot-on '%s': arguments in vector registers are not kept until the call ends.",
				 value);
	/* Durations and results need returns. */
	return tw_config_add(config, "pattern", tw_pattern_text(triggers->wanted[last])) &&
	       (!text || !tw_condition_is_of_end(text) || tw_config_add(config, "returns", "1"));
}

/* N END EXPR. */
static bool add_condition(struct tw_config *config, const struct tw_guard *guard, const char *text)
{
	char line[TW_WHEN_TEXT_BYTES + 32];
	snprintf(line, sizeof line, "%u %d %s", guard->number, guard->is_of_end, text);
	for (char *c = line; (c = strchr(c, '\n')) != NULL;)
		*c = ' ';
	return tw_config_add(config, "trigger_if", line);
}

/* The configuration in which layouts are searched: these patterns, each with its condition, and the program's other name. */
static bool begin_own(struct tw_config *own, const char *config)
{
	const char *line = strncmp(config, "alias ", 6) == 0 ? config : strstr(config, "\nalias ");
	if (!line)
		return true;
	line += *line == '\n';
	char *value = strndup(line + 6, strcspn(line + 6, "\n"));
	bool is_right = value && tw_config_add(own, "alias", value);
	free(value);
	return is_right;
}

struct typed {
	struct tw_guard *guards;
	size_t count;
	struct tw_config own;
};

static bool config_one(struct typed *typed, const struct tw_command *command, const char *pattern,
		       struct tw_guard guard, struct tw_config *config)
{
	char plain[TW_WHEN_TEXT_BYTES], reason[512], number[16];
	if (!tw_config_add(config, "trigger", pattern))
		return false;
	if (!guard.text)
		return true;
	if (tw_when_needs_types(&guard)) {
		snprintf(number, sizeof number, "%u", guard.number);
		typed->guards[typed->count++] = guard;
		return tw_config_add(&typed->own, "pattern", pattern) && tw_config_add(&typed->own, "if", number) &&
		       add_condition(config, &guard, "-");
	}
	if (tw_when_plain(&guard, true, plain, reason))
		return add_condition(config, &guard, plain);
	return tw_refuse(command, "--snapshot-on '... if %s' is refused: %s.", guard.text, reason);
}

bool tw_triggers_config(const struct tw_patterns *triggers, const struct tw_triggers_target *target)
{
	struct typed typed = {.guards = calloc(triggers->wanted_count + 1, sizeof *typed.guards)};
	bool is_right = typed.guards && begin_own(&typed.own, target->config->text ? target->config->text : "");
	for (size_t i = 0; i < triggers->wanted_count && is_right; i++) {
		const char *text = triggers->conditions[i];
		is_right = config_one(&typed, target->command, tw_pattern_text(triggers->wanted[i]),
				      (struct tw_guard){.text = text,
							.number = FIRST_NUMBER + (uint32_t)i,
							.is_of_end = text && tw_condition_is_of_end(text),
							.kept_max = TW_WHEN_KEPT_OF_SNAPSHOTS},
				      target->config);
	}
	if (is_right && typed.count)
		is_right = tw_arguments_find_triggers(target->arguments,
						      &(struct tw_triggers_search){.guards = typed.guards,
										   .count = typed.count,
										   .command = target->command,
										   .program = target->program,
										   .config = typed.own.text,
										   .is_quiet = target->is_quiet});
	free(typed.guards);
	free(typed.own.text);
	return is_right;
}
