/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracer_cost.h - the tracer's own cost of a call, derived from the calls of a capture.
 *
 *	 call f        return f        call g        return g
 *	   |-- inside ---|-- outside ----|-- inside ---|
 *
 *	 call f        call g, both without a recorded return
 *	   |--- alone ---|
 *
 * inside	between the stamps of a call that calls nothing that was recorded: in the call's own time.
 * outside	between two such calls of one caller: in the caller's own time.
 *
 * Each of these spans contains the tracer's cost once, and what the program did. Of the function whose typical span is the shortest, it
 * is therefore an upper limit of the typical cost: close to it, if some function that does little is called often. Typical is the
 * median of the means of TW_COST_SPANS spans: a mean is finer than the clock, whose steps may be as long as the cost.
 *
 * Memory  a pointer for each function, and histograms for those that have such spans.
 */
#ifndef TW_VIEWS_TRACER_COST_H
#define TW_VIEWS_TRACER_COST_H

#include "views/folds/histogram.h"
#include "views/folds/stacks.h"
#include "views/output/output.h"

#define TW_COST_SPANS	     64
#define TW_COST_CLAUSE_BYTES 160

enum tw_cost_span { TW_COST_INSIDE, TW_COST_OUTSIDE, TW_COST_ALONE, TW_COST_COUNT };

/* The last event of a stream. */
struct tw_cost_last {
	const struct tw_stack *stack; /* NULL: a span that ends next is not known */
	uint64_t ns;
	uint32_t depth;
	enum tw_step_kind kind;
};

/* The spans in one function's own time, by kind. Nearly every event adds one: what they change is small. */
struct tw_cost_spans {
	uint64_t sum_ns[TW_COST_COUNT]; /* since the last mean */
	uint32_t count[TW_COST_COUNT];
};

struct tw_tracer_cost {
	struct tw_cost_last *last;	 /* by stream */
	struct tw_cost_spans *functions; /* by function */
	struct tw_histogram **sums;	 /* by function: TW_COST_COUNT, of TW_COST_SPANS spans each; NULL: none */
	uint32_t stream_count, function_count;
	bool has_stacks;	  /* of calls, which take longer */
	double ns[TW_COST_COUNT]; /* 0: not known, as no spans are short enough to consist of the tracer's cost */
};

/* How often a function paid. */
struct tw_cost_times {
	uint64_t calls;	  /* of the function */
	uint64_t callees; /* that it called, with returns */
	uint64_t moments; /* that it called, without returns */
};

/* Returns false without memory. */
bool tw_tracer_cost_init(struct tw_tracer_cost *cost, uint32_t streams, uint32_t functions);
void tw_tracer_cost_free(struct tw_tracer_cost *cost);

/* As many spans as make a mean.  False: no memory. */
bool tw_tracer_cost_add_sum(struct tw_tracer_cost *cost, uint32_t function, enum tw_cost_span kind);

static inline bool tw_tracer_cost_add(struct tw_tracer_cost *cost, uint32_t function, enum tw_cost_span kind,
				      uint64_t ns)
{
	if (function >= cost->function_count)
		return true;
	struct tw_cost_spans *spans = &cost->functions[function];
	spans->sum_ns[kind] += ns;
	return ++spans->count[kind] < TW_COST_SPANS || tw_tracer_cost_add_sum(cost, function, kind);
}

/* The span between two events in a row of one process and depth; TW_COST_COUNT: none. */
static inline enum tw_cost_span tw_tracer_cost_between(enum tw_step_kind from, enum tw_step_kind to)
{
	if (from == TW_STEP_CALL && to == TW_STEP_RETURN)
		return TW_COST_INSIDE;
	if (from == TW_STEP_RETURN && to == TW_STEP_CALL)
		return TW_COST_OUTSIDE;
	return from == TW_STEP_MOMENT && to == TW_STEP_MOMENT ? TW_COST_ALONE : TW_COST_COUNT;
}

/* The function in whose own time the span lies; none if its caller is not in the capture. */
static inline uint32_t tw_tracer_cost_payer(enum tw_cost_span span, const struct tw_step *step)
{
	if (span == TW_COST_INSIDE)
		return step->function;
	return step->depth ? step->stack->frames[step->depth - 1].function : TW_PLACES_NONE;
}

/* Adds a call or return on a stack, and its effect.  Returns false without memory. */
static inline bool tw_tracer_cost_step(struct tw_tracer_cost *cost, struct tw_cost_last *last,
				       const struct tw_step *step, uint64_t ns)
{
	enum tw_cost_span span = TW_COST_COUNT;
	uint64_t between_ns = ns - last->ns;
	if (last->stack == step->stack && last->depth == step->depth && last->ns <= ns)
		span = tw_tracer_cost_between(last->kind, step->kind);
	last->stack = step->stack;
	last->ns = ns;
	last->depth = step->depth;
	last->kind = step->kind;
	return span == TW_COST_COUNT || tw_tracer_cost_add(cost, tw_tracer_cost_payer(span, step), span, between_ns);
}

/* Adds an event, in the order of the capture, and its effect. Returns false without memory. */
bool tw_tracer_cost_event(struct tw_tracer_cost *cost, const struct tw_capture_event *event,
			  const struct tw_step *step);

/* After the last event: derives ns. */
void tw_tracer_cost_finish(struct tw_tracer_cost *cost);

/* "up to 38 ns in a call, up to 37 ns in its caller", of what tw_tracer_cost_finish() derived; "": nothing is known. Returns @text. */
const char *tw_tracer_cost_clause(const double ns[TW_COST_COUNT], char text[TW_COST_CLAUSE_BYTES]);
/* As the member tracer_per_call. */
void tw_tracer_cost_json(struct tw_json *json, const double ns[TW_COST_COUNT]);
/* Is so much of a time the tracer's that it is told? */
bool tw_tracer_cost_matters(uint64_t tracer_ns, uint64_t ns);

/* The tracer's part of a function's own time: an upper limit. */
uint64_t tw_tracer_cost_of(const struct tw_tracer_cost *cost, const struct tw_cost_times *times, uint64_t self_ns);

#endif
