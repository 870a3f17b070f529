/* SPDX-License-Identifier: Apache-2.0 */
/* config.c - parses the command's lines in the control page. */
#include "agent/agent.h"
#include "agent/condition.h"

#include "base/grow.h"
#include "base/limits.h"
#include "breakpoints/breakpoints.h"
#include "pipeline/hit/walk.h"
#include "tracewheel/error.h"
#include "tracewheel/match.h"
#include "tracewheel/session.h"

#include <stdlib.h>
#include <string.h>

/* Limit of a wait, whatever the command's line says. */
#define ASK_MS_MAX 10000

/* A number, cut at the most. */
static uint32_t read_most(const char *text, uint32_t most)
{
	unsigned long number = strtoul(text, NULL, 10);

	return number < most ? (uint32_t)number : most;
}

static int add_pattern(struct tw_agent_config *config, struct tw_pattern ***patterns, size_t *count, const char *text)
{
	struct tw_pattern *pattern;
	int error = tw_pattern_parse(text, &pattern, NULL);

	if (error)
		return error == TW_EBADARG ? 0 : error;
	if (!tw_grow_one(*patterns, *count)) {
		tw_pattern_destroy(pattern);
		return TW_ENOMEM;
	}
	(*patterns)[(*count)++] = pattern;
	config->has_arities |= tw_pattern_arity(pattern) != TW_PATTERN_ARITY_UNKNOWN;
	return 0;
}

/* BY NUMBER OF NUMBER FORM STEP, as numbers. */
static int take_aggregation(struct tw_agent_config *config, char *value)
{
	struct tw_aggregation *what = &config->aggregation;

	what->by = (uint8_t)strtoul(value, &value, 10);
	what->by_number = (uint8_t)strtoul(value, &value, 10);
	what->of = (uint8_t)strtoul(value, &value, 10);
	what->of_number = (uint8_t)strtoul(value, &value, 10);
	what->form = (uint8_t)strtoul(value, &value, 10);
	what->step = strtoull(value, NULL, 10);
	config->has_aggregation = what->form != TW_AGGREGATE_STEPS || what->step > 0;
	return 0;
}

/* NAME PATH. */
static int take_alias(struct tw_agent_config *config, char *value)
{
	char *path = strchr(value, ' ');

	if (!path || config->alias)
		return 0;
	*path++ = '\0';
	config->alias = strdup(value);
	config->alias_path = strdup(path);
	return config->alias && config->alias_path ? 0 : TW_ENOMEM;
}

static int take_text(char **out, const char *value)
{
	free(*out);
	*out = strdup(value);
	return *out ? 0 : TW_ENOMEM;
}

typedef int (*compile_fn)(const char *text, size_t bytes, const struct tw_match_options *options,
			  struct tw_match_program **out, struct tw_match_error *error);

/* The condition of that number, which may be new.  NULL: there is no memory. */
static struct tw_agent_condition *condition_at(struct tw_agent_config *config, uint32_t number)
{
	struct tw_agent_condition *grown;

	if (number < config->condition_count)
		return &config->conditions[number];
	grown = realloc(config->conditions, (number + 1) * sizeof *grown);
	if (!grown)
		return NULL;
	memset(grown + config->condition_count, 0, (number + 1 - config->condition_count) * sizeof *grown);
	config->conditions = grown;
	config->condition_count = number + 1;
	return &grown[number];
}

/* The command has already refused programs that do not compile. */
static int take_program(struct tw_agent_config *config, uint32_t number, compile_fn compile, const char *text)
{
	struct tw_agent_condition *condition = condition_at(config, number);
	struct tw_match_program *program;
	int error = condition ? compile(text, strlen(text), NULL, &program, NULL) : TW_ENOMEM;

	if (error)
		return error == TW_ENOMEM ? error : 0;
	tw_match_destroy(condition->program);
	condition->program = program;
	return take_text(&condition->text, text);
}

static int take_guards(struct tw_agent_config *config, uint32_t number)
{
	struct tw_agent_condition *condition = condition_at(config, number);

	if (!condition)
		return TW_ENOMEM;
	condition->has_guards = true;
	return 0;
}

/* Numbers are those of the command's list, which is short. */
#define CONDITIONS_MAX 4096

/* N EXPR. */
static int take_condition(struct tw_agent_config *config, char *value)
{
	uint32_t number = (uint32_t)strtoul(value, &value, 10);

	if (!number || number > CONDITIONS_MAX || *value++ != ' ')
		return 0;
	return strcmp(value, "-") ? take_program(config, number, tw_match_compile_when, value)
				  : take_guards(config, number);
}

/* N NS. */
static int take_length(struct tw_agent_config *config, char *value)
{
	uint32_t number = (uint32_t)strtoul(value, &value, 10);
	struct tw_agent_condition *condition = number <= CONDITIONS_MAX ? condition_at(config, number) : NULL;

	if (condition)
		condition->least_ns = strtoull(value, NULL, 10);
	return condition || number > CONDITIONS_MAX ? 0 : TW_ENOMEM;
}

/* BYTES: a power of 2. */
static uint64_t read_children(const char *value)
{
	uint64_t bytes = strtoull(value, NULL, 10), power = TW_CHILDREN_BYTES_MIN;

	while (power < bytes && power < TW_CHILDREN_BYTES_MAX)
		power *= 2;
	return bytes ? power : 0;
}

/* N TEXT. */
static int take_shown(struct tw_agent_config *config, char *value)
{
	uint32_t number = (uint32_t)strtoul(value, &value, 10);
	struct tw_agent_condition *condition;

	if (number > CONDITIONS_MAX || *value++ != ' ')
		return 0;
	condition = condition_at(config, number);
	return condition ? take_text(&condition->shown, value) : TW_ENOMEM;
}

/* The condition of the last pattern. */
static int take_if(struct tw_agent_config *config, const char *value)
{
	uint32_t number = read_most(value, CONDITIONS_MAX);

	if (!config->pattern_count)
		return 0;
	config->condition_of[config->pattern_count - 1] = number;
	return condition_at(config, number) ? 0 : TW_ENOMEM;
}

/* Flag names separated by commas; unknown ones belong to newer commands. */
static uint32_t read_flags(char *names)
{
	uint32_t flags = 0;

	for (char *name; (name = strsep(&names, ","));)
		flags |= tw_process_flag_named(name);
	return flags;
}

/* Milliseconds at the start of a text, which is moved behind them. */
static uint64_t read_ms(char **text)
{
	unsigned long ms = strtoul(*text, text, 10);

	return UINT64_C(1000000) * (ms < ASK_MS_MAX ? ms : ASK_MS_MAX);
}

/* A line about how long is waited.  False: it is none. */
static bool take_times(struct tw_agent_config *config, const char *key, char *value)
{
	if (!strcmp(key, "ask")) {
		config->ask_ns = read_ms(&value);
	} else if (!strcmp(key, "plans")) {
		config->plan_ns = read_ms(&value);
		config->plan_start_ns = read_ms(&value);
	} else {
		return false;
	}
	return true;
}

/* A line that only says yes or no. */
static bool *flag_named(struct tw_agent_config *config, const char *key)
{
	const struct {
		const char *key;
		bool *flag;
	} flags[] = {{"local", &config->is_local},	    {"careful", &config->is_careful},
		     {"global", &config->is_global},	    {"python", &config->has_python},
		     {"return_to", &config->has_return_to}, {"ancestors", &config->lets_trace},
		     {"crash", &config->tells_crash},	    {"ends", &config->has_ends}};

	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
		if (!strcmp(key, flags[i].key))
			return flags[i].flag;
	return NULL;
}

/* A new pattern has no condition of its own. */
static int add_condition_of(struct tw_agent_config *config)
{
	uint32_t *grown = realloc(config->condition_of, config->pattern_count * sizeof *grown);

	if (!grown)
		return TW_ENOMEM;
	config->condition_of = grown;
	grown[config->pattern_count - 1] = 0;
	return 0;
}

/* A line of patterns.  False: it is none. */
static bool take_pattern(struct tw_agent_config *config, const char *key, const char *value, int *error)
{
	const struct {
		const char *key;
		struct tw_pattern ***list;
		size_t *count;
	} lists[] = {{"pattern", &config->patterns, &config->pattern_count},
		     {"exclude", &config->excluded, &config->excluded_count},
		     {"count", &config->counted, &config->counted_count},
		     {"bare", &config->bare, &config->bare_count},
		     {"arguments1", &config->at_most[0], &config->at_most_count[0]},
		     {"arguments2", &config->at_most[1], &config->at_most_count[1]},
		     {"arguments3", &config->at_most[2], &config->at_most_count[2]}};

	size_t patterns = config->pattern_count;

	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		if (!strcmp(key, lists[i].key)) {
			*error = add_pattern(config, lists[i].list, lists[i].count, value);
			if (!*error && config->pattern_count > patterns)
				*error = add_condition_of(config);
			return true;
		}
	return false;
}

/* A line about conditions.  False: it is none. */
static bool take_condition_line(struct tw_agent_config *config, const char *key, char *value, int *error)
{
	if (!strcmp(key, "match"))
		*error = take_program(config, 0, tw_match_compile_text, value);
	else if (!strcmp(key, "when"))
		*error = take_program(config, 0, tw_match_compile_when, value);
	else if (!strcmp(key, "guards"))
		*error = strcmp(value, "0") ? take_guards(config, 0) : 0;
	else if (!strcmp(key, "condition"))
		*error = take_condition(config, value);
	else if (!strcmp(key, "length"))
		*error = take_length(config, value);
	else if (!strcmp(key, "shown"))
		*error = take_shown(config, value);
	else if (!strcmp(key, "if"))
		*error = take_if(config, value);
	else
		return false;
	return true;
}

static int take_line(struct tw_agent_config *config, char *line, bool *has_callers)
{
	char *value = strchr(line, ' ');
	int error;

	if (!value)
		return 0;
	*value++ = '\0';
	if (take_pattern(config, line, value, &error) || take_condition_line(config, line, value, &error) ||
	    tw_agent_trigger_take(config, line, value, &error))
		return error;
	if (!strcmp(line, "ports")) {
		config->has_ports = strcmp(value, "0") != 0;
		tw_agent_ports_init();
		return 0;
	}
	if (!strcmp(line, "aggregate"))
		return take_aggregation(config, value);
	if (!strcmp(line, "alias"))
		return take_alias(config, value);
	if (!strcmp(line, "tracer"))
		return take_text(&config->tracer_path, value);
	if (!strcmp(line, "plan_folder"))
		return take_text(&config->plan_folder, value);
	if (!strcmp(line, "tracer_state"))
		return take_text(&config->tracer_state, value);
	if (take_times(config, line, value))
		return 0;
	if (flag_named(config, line)) {
		*flag_named(config, line) = strcmp(value, "0") != 0;
	} else if (!strcmp(line, "callers")) {
		config->has_all_callers = !strcmp(value, "all");
		*has_callers = true;
	} else if (!strcmp(line, "record_most")) {
		config->recorded_most = (uint32_t)strtoul(value, NULL, 10);
	} else if (!strcmp(line, "processes")) {
		config->process_flags = read_flags(value);
	} else if (!strcmp(line, "functions")) {
		config->has_no_functions = !strcmp(value, "0");
	} else if (!strcmp(line, "returns")) {
		config->has_returns |= strcmp(value, "0") != 0;
	} else if (!strcmp(line, "exceptions")) {
		/* As in OTP: exception_trace implies return_trace. */
		config->has_exceptions = strcmp(value, "0") != 0;
		config->has_returns |= config->has_exceptions;
	} else if (!strcmp(line, "longer")) {
		config->longer_ns = strtoull(value, NULL, 10);
	} else if (!strcmp(line, "children")) {
		config->children_bytes = read_children(value);
	} else if (!strcmp(line, "typed")) {
		config->string_bytes = (uint32_t)strtoul(value, NULL, 10);
	} else if (!strcmp(line, "filters")) {
		config->filters = (int)strtol(value, NULL, 10);
	} else if (!strcmp(line, "vectors")) {
		config->vectors.bytes = (uint32_t)strtoul(value, &value, 10);
		config->vectors.mask = (uint32_t)strtoul(value, NULL, 10);
	} else if (!strcmp(line, "stack")) {
		config->stack_depth = read_most(value, TW_STACK_DEPTH_MAX);
	} else if (!strcmp(line, "arguments")) {
		config->argument_words = read_most(value, TW_ARGS_MAX);
	}
	return 0;
}

bool tw_agent_has_conditions(const struct tw_agent_config *config)
{
	for (uint32_t i = 0; i < config->condition_count; i++)
		if (config->conditions[i].program || config->conditions[i].has_guards)
			return true;
	return false;
}

bool tw_agent_has_guards(const struct tw_agent_config *config)
{
	for (uint32_t i = 0; i < config->condition_count; i++)
		if (config->conditions[i].has_guards)
			return true;
	for (size_t i = 0; i < config->trigger_count; i++)
		if (config->triggers[i].number)
			return true;
	return false;
}

uint32_t tw_agent_end_actions(const struct tw_agent_config *config)
{
	return (config->has_returns ? TW_ACTION_RETURN : 0) | (config->has_exceptions ? TW_ACTION_EXCEPTION : 0);
}

int tw_agent_config_parse(const char *text, size_t bytes, struct tw_agent_config *config)
{
	char *copy = strndup(text, bytes), *rest = copy, *line;
	bool has_callers = false;
	int error = copy ? 0 : TW_ENOMEM;

	*config = (struct tw_agent_config){.filters = -1};
	while (!error && (line = strsep(&rest, "\n")))
		error = take_line(config, line, &has_callers);
	free(copy);
	if (!error && !has_callers)
		config->has_all_callers = config->pattern_count > 0 || config->has_ports;
	if (error)
		tw_agent_config_fini(config);
	return error;
}

static void destroy_patterns(struct tw_pattern **list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		tw_pattern_destroy(list[i]);
	free(list);
}

void tw_agent_config_fini(struct tw_agent_config *config)
{
	destroy_patterns(config->patterns, config->pattern_count);
	destroy_patterns(config->excluded, config->excluded_count);
	destroy_patterns(config->counted, config->counted_count);
	destroy_patterns(config->bare, config->bare_count);
	for (unsigned i = 0; i < TW_AGENT_WORD_LISTS; i++)
		destroy_patterns(config->at_most[i], config->at_most_count[i]);
	free(config->alias);
	free(config->alias_path);
	free(config->plan_folder);
	free(config->tracer_path);
	free(config->tracer_state);
	for (uint32_t i = 0; i < config->condition_count; i++) {
		tw_match_destroy(config->conditions[i].program);
		free(config->conditions[i].text);
		free(config->conditions[i].shown);
	}
	free(config->conditions);
	free(config->condition_of);
	tw_agent_triggers_fini(config);
	tw_agent_layouts_destroy(config->layouts);
	*config = (struct tw_agent_config){.filters = -1};
}
