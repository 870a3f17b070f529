/* SPDX-License-Identifier: Apache-2.0 */
/* tracer_cost.c - typical short spans between calls and returns. */
#include "views/folds/tracer_cost.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * Longer spans are not taken for the tracer's cost, of captures without and with stacks of calls; nor are those of functions that have fewer
 * than this many means.
 */
enum { COST_NS_MAX = 100, STACK_COST_NS_MAX = 400, MEANS_MIN = 16 };
/* Less of a time is not told: a tenth. */
enum { COST_PART = 10 };

bool tw_tracer_cost_init(struct tw_tracer_cost *cost, uint32_t streams, uint32_t functions)
{
	cost->last = calloc(streams + (size_t)1, sizeof *cost->last);
	cost->functions = calloc(functions + (size_t)1, sizeof *cost->functions);
	cost->sums = calloc(functions + (size_t)1, sizeof *cost->sums);
	cost->stream_count = streams;
	cost->function_count = functions;
	return cost->last && cost->functions && cost->sums;
}

void tw_tracer_cost_free(struct tw_tracer_cost *cost)
{
	for (uint32_t i = 0; cost->sums && i < cost->function_count; i++) {
		for (unsigned span = 0; cost->sums[i] && span < TW_COST_COUNT; span++)
			tw_histogram_free(&cost->sums[i][span]);
		free(cost->sums[i]);
	}
	free(cost->sums);
	free(cost->functions);
	free(cost->last);
	*cost = (struct tw_tracer_cost){0};
}

/* As many spans as make a mean. */
bool tw_tracer_cost_add_sum(struct tw_tracer_cost *cost, uint32_t function, enum tw_cost_span kind)
{
	struct tw_cost_spans *spans = &cost->functions[function];
	uint64_t sum_ns = spans->sum_ns[kind];
	if (!cost->sums[function])
		cost->sums[function] = calloc(TW_COST_COUNT, sizeof *cost->sums[function]);
	if (!cost->sums[function])
		return false;
	spans->sum_ns[kind] = 0;
	spans->count[kind] = 0;
	return tw_histogram_add(&cost->sums[function][kind], sum_ns);
}

bool tw_tracer_cost_event(struct tw_tracer_cost *cost, const struct tw_capture_event *event, const struct tw_step *step)
{
	/* The stack of a call belongs to the call: its cost is a part of the call's. */
	cost->has_stacks |= event->kind == TW_CAPTURE_STACK;
	if (event->stream >= cost->stream_count || event->kind == TW_CAPTURE_STACK)
		return true;
	struct tw_cost_last *last = &cost->last[event->stream];
	bool is_of_call = event->kind >= TW_CAPTURE_CALL && event->kind <= TW_CAPTURE_EXCEPTION_FROM;
	if (is_of_call && step->stack)
		return tw_tracer_cost_step(cost, last, step, event->time_ns);
	last->stack = NULL;
	return true;
}

void tw_tracer_cost_finish(struct tw_tracer_cost *cost)
{
	double most_ns = cost->has_stacks ? STACK_COST_NS_MAX : COST_NS_MAX;
	for (uint32_t i = 0; i < cost->function_count; i++) {
		for (unsigned span = 0; cost->sums[i] && span < TW_COST_COUNT; span++) {
			const struct tw_histogram *sums = &cost->sums[i][span];
			double ns = (double)tw_histogram_quantile(sums, 0.5) / TW_COST_SPANS;
			if (sums->count >= MEANS_MIN && ns <= most_ns && (cost->ns[span] == 0 || ns < cost->ns[span]))
				cost->ns[span] = ns;
		}
	}
}

const char *tw_tracer_cost_clause(const double ns[TW_COST_COUNT], char text[TW_COST_CLAUSE_BYTES])
{
	static const char *const where[TW_COST_COUNT] = {"in a call", "in its caller",
							 "in the caller of one without a return"};
	char figure[TW_FIGURE_BYTES];
	size_t used = 0;
	*text = 0;
	for (unsigned span = 0; span < TW_COST_COUNT; span++)
		if (ns[span] > 0)
			used += (size_t)snprintf(text + used, TW_COST_CLAUSE_BYTES - used, "%sup to %s %s",
						 used ? ", " : "",
						 tw_figure_duration(figure, (uint64_t)(ns[span] + 0.5)), where[span]);
	return text;
}

void tw_tracer_cost_json(struct tw_json *json, const double ns[TW_COST_COUNT])
{
	tw_json_open(json, "tracer_per_call", '{');
	tw_json_double(json, "inside_ns", ns[TW_COST_INSIDE]);
	tw_json_double(json, "outside_ns", ns[TW_COST_OUTSIDE]);
	tw_json_double(json, "alone_ns", ns[TW_COST_ALONE]);
	tw_json_close(json, '}');
}

bool tw_tracer_cost_matters(uint64_t tracer_ns, uint64_t ns)
{
	return tracer_ns && tracer_ns >= ns / COST_PART;
}

uint64_t tw_tracer_cost_of(const struct tw_tracer_cost *cost, const struct tw_cost_times *times, uint64_t self_ns)
{
	double ns = (double)times->calls * cost->ns[TW_COST_INSIDE] +
		    (double)times->callees * cost->ns[TW_COST_OUTSIDE] +
		    (double)times->moments * cost->ns[TW_COST_ALONE];
	return ns < (double)self_ns ? (uint64_t)ns : self_ns;
}
