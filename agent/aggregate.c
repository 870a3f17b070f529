/* SPDX-License-Identifier: Apache-2.0 */
/* aggregate.c - the registers of what counted calls are summed up by. */
#include "agent/agent.h"

#include "breakpoints/breakpoints.h"
#include "tracewheel/layout.h"

#include <string.h>

/* Arguments of six registers. */
enum { REGISTERS = 6 };

/* By its type: what is behind a number of four bytes in its register is undefined. */
static struct tw_bp_source source_of(const struct tw_layout_value *value, uint8_t word)
{
	uint32_t bytes = value->bytes;
	bool is_word = value->type != 'f' && value->type != 'S' && value->type != 'v';

	return (struct tw_bp_source){.word = word,
				     .shift = bytes == 1 || bytes == 2 || bytes == 4 ? (uint8_t)(64 - 8 * bytes) : 0,
				     .is_unsigned = !strchr("inE", value->type),
				     .is_unknown = !is_word || word >= REGISTERS};
}

static struct tw_bp_source find(const struct tw_layout *layout, unsigned value, unsigned number)
{
	if (value == TW_AGGREGATE_RESULT && layout)
		return source_of(&layout->result, 0);
	if (value != TW_AGGREGATE_ARGUMENT)
		return (struct tw_bp_source){0};
	if (!layout || (number > layout->count && layout->is_variadic))
		return (struct tw_bp_source){.word = (uint8_t)(number - 1) % REGISTERS};
	if (number > layout->count)
		return (struct tw_bp_source){.is_unknown = true};
	return source_of(&layout->values[number - 1], (uint8_t)layout->values[number - 1].registers[0]);
}

void tw_agent_aggregate(const struct tw_agent_config *config, struct tw_place *place)
{
	const char *text = place->function->layout;
	const struct tw_aggregation *what = &config->aggregation;
	struct tw_layout *layout = NULL;

	if (!config->has_aggregation)
		return;
	if (text && tw_layout_parse(text, strlen(text), &layout))
		layout = NULL;
	place->by = find(layout, what->by, what->by_number);
	place->of = find(layout, what->of, what->of_number);
	tw_layout_destroy(layout);
}

bool tw_agent_aggregates_callers(const struct tw_agent_config *config)
{
	return config->has_aggregation && config->aggregation.by == TW_AGGREGATE_CALLER;
}
