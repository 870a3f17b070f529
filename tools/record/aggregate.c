/* SPDX-License-Identifier: Apache-2.0 */
/* aggregate.c - reads the options that sum calls up in the program. */
#include "tools/record/aggregate.h"
#include "views/folds/groups.h"

#include <stdio.h>
#include <string.h>

/* Arguments are registers. */
#define REGISTERS 6

static bool take_value(const struct tw_grouping *key, uint8_t *value, uint8_t *number)
{
	static const uint8_t values[] = {[TW_BY_ARGUMENT] = TW_AGGREGATE_ARGUMENT,
					 [TW_BY_RESULT] = TW_AGGREGATE_RESULT,
					 [TW_BY_DURATION] = TW_AGGREGATE_DURATION,
					 [TW_BY_CALLER] = TW_AGGREGATE_CALLER,
					 [TW_BY_MODULE] = TW_AGGREGATE_NOTHING};
	*value = values[key->key];
	*number = (uint8_t)key->number;
	return *value && (*value != TW_AGGREGATE_ARGUMENT || (key->number >= 1 && key->number <= REGISTERS));
}

static bool set_by(struct tw_aggregate_request *request, const struct tw_command *command, const char *text)
{
	struct tw_grouping key;
	if (request->what.by)
		tw_usage(command, "--by is given once.");
	else if (!tw_grouping_parse(text, &key) || !take_value(&key, &request->what.by, &request->what.by_number))
		tw_usage(command, "--by is caller, result, or a register: arg:N or $N, N from 1 to 6; not '%s'.", text);
	else
		return request->is_wanted = true;
	return false;
}

bool tw_aggregate_set(struct tw_aggregate_request *request, const struct tw_command *command, const char *option,
		      const char *value)
{
	struct tw_aggregation *what = &request->what;
	struct tw_grouping key;
	bool is_histogram = strcmp(option, "histogram") == 0;
	if (strcmp(option, "by") == 0)
		return set_by(request, command, value);
	if (request->of_option)
		tw_usage(command, "--sum, --histogram and --quantiles: one of them, once.");
	else if (!tw_grouping_parse_histogram(value, &key) || !take_value(&key, &what->of, &what->of_number) ||
		 (key.step && !is_histogram))
		tw_usage(command, "--%s is result, duration, or a register: arg:N or $N, N from 1 to 6%s; not '%s'.",
			 option, is_histogram ? ", and perhaps /STEP" : "", value);
	else {
		what->form = !is_histogram ? strcmp(option, "sum") == 0 ? TW_AGGREGATE_SUM : TW_AGGREGATE_PARTS
			     : key.step	   ? TW_AGGREGATE_STEPS
					   : TW_AGGREGATE_POWERS;
		what->step = key.step;
		request->of_option = option;
		return request->is_wanted = true;
	}
	return false;
}

bool tw_aggregate_needs_returns(const struct tw_aggregate_request *request)
{
	const struct tw_aggregation *what = &request->what;
	return what->by == TW_AGGREGATE_RESULT || what->of == TW_AGGREGATE_RESULT || what->of == TW_AGGREGATE_DURATION;
}

bool tw_aggregate_needs_types(const struct tw_aggregate_request *request)
{
	const struct tw_aggregation *what = &request->what;
	return what->by == TW_AGGREGATE_RESULT || what->of == TW_AGGREGATE_RESULT ||
	       what->by == TW_AGGREGATE_ARGUMENT || what->of == TW_AGGREGATE_ARGUMENT;
}

bool tw_aggregate_config(const struct tw_aggregate_request *request, bool has_counted, struct tw_config *config)
{
	const struct tw_aggregation *what = &request->what;
	char line[128];
	snprintf(line, sizeof line, "%u %u %u %u %u %llu", what->by, what->by_number, what->of, what->of_number,
		 what->form, (unsigned long long)what->step);
	return tw_config_add(config, "aggregate", line) && (has_counted || tw_config_add(config, "count", "_:_")) &&
	       (!tw_aggregate_needs_returns(request) || tw_config_add(config, "returns", "1"));
}
