/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stacks_spans.h - the loop over the records of a span for folds that follow stacks.
 *
 * Nearly all records are calls and returns of which nothing special is to be known (stacks_plain.h): they are taken in one loop, which makes
 * no events of them.  Any other goes the way of all events.  The loop is inline, with what a fold does of calls: its functions are
 * constants of its file.
 */
#ifndef TW_VIEWS_STACKS_SPANS_H
#define TW_VIEWS_STACKS_SPANS_H

#include "views/folds/pass.h"
#include "views/folds/stacks_plain.h"
#include "views/folds/tracer_cost.h"

#include "tracewheel/error.h"

/* The functions of a fold for plain calls: as those for all calls in tw_stacks.calls. */
struct tw_plain_calls {
	void (*begin)(void *fold, struct tw_stack *stack);
	void (*end)(void *fold, struct tw_stack *stack, enum tw_frame_end how, const struct tw_frame_time *time);
	/* Is the event wanted of the call that would begin now on this stack, or of the return of its innermost call?  NULL: of none. */
	bool (*wants_call)(const void *fold, const struct tw_stack *stack);
	bool (*wants_return)(const void *fold, const struct tw_stack *stack);
	bool takes_records; /* tw_stacks_spans.record is set for begin() and end() */
};

/* Zeroed at first, but what it borrows. */
struct tw_stacks_spans {
	struct tw_stacks *stacks;
	struct tw_tracer_cost *cost;		/* gets a step for each call and return; NULL: none */
	const uint64_t *special_ns;		/* the events from this time on are wanted; NULL: of no time */
	struct tw_capture_clock clock;		/* the piece of it that the last record lay in */
	uint64_t plain;				/* records of which no event was made */
	const struct tw_capture_record *record; /* the one that is taken now, where a fold takes records */
	bool has_no_memory;
};

/* The plain records of a span have these in common. */
struct tw_plain_span {
	struct tw_stack *stack; /* NULL: every event is a special one */
	struct tw_cost_last *last;
	const struct tw_places_image *image;
	const struct tw_marks_image *wanted_elsewhere; /* NULL: none is */
};

static inline struct tw_plain_span tw_plain_span(const struct tw_stacks_spans *spans, const struct tw_fold_span *at)
{
	const struct tw_capture_span *span = &at->records;
	const struct tw_stacks *stacks = spans->stacks;
	struct tw_stack *stack = span->stream < stacks->stream_count ? stacks->streams[span->stream] : NULL;
	uint32_t id = span->tracee_id ? span->tracee_id : span->stream;
	if (!stack || stack->tracee_id != id || stack->has_tracee != (span->tracee_id != 0) ||
	    !tw_stack_is_plain(stacks, stack) || (spans->cost && span->stream >= spans->cost->stream_count) ||
	    span->image >= stacks->places->image_count)
		return (struct tw_plain_span){NULL, NULL, NULL, NULL};
	stack->is_call_chosen = true;
	return (struct tw_plain_span){stack, spans->cost ? &spans->cost->last[span->stream] : NULL,
				      &stacks->places->images[span->image], at->wanted_elsewhere};
}

/* Is the place none that is known, or another fold's as well? */
static inline bool tw_plain_is_special(const struct tw_plain_span *plain, uint32_t place)
{
	const struct tw_marks_image *elsewhere = plain->wanted_elsewhere;
	return place >= plain->image->count || (elsewhere && place < elsewhere->count && elsewhere->places[place]);
}

static inline __attribute__((always_inline)) void tw_plain_step(struct tw_stacks_spans *spans,
								const struct tw_plain_span *plain,
								const struct tw_step *step, uint64_t ns)
{
	if (plain->last && !tw_tracer_cost_step(spans->cost, plain->last, step, ns))
		spans->has_no_memory = true;
}

/* False: the call is a special one. */
static inline __attribute__((always_inline)) bool tw_plain_call(struct tw_stacks_spans *spans, void *fold,
								const struct tw_plain_calls *calls,
								const struct tw_plain_span *plain, uint32_t place,
								uint64_t ns)
{
	struct tw_stack *stack = plain->stack;
	if (tw_plain_is_special(plain, place) || plain->image->is_moment[place] || !tw_stack_has_space(stack) ||
	    (calls->wants_call && calls->wants_call(fold, stack)))
		return false;
	const struct tw_step step = {.kind = TW_STEP_CALL, .stack = stack, .depth = stack->depth};
	tw_stack_push(stack, plain->image->function[place], ns);
	if (calls->begin)
		calls->begin(fold, stack);
	tw_plain_step(spans, plain, &step, ns);
	return true;
}

static inline __attribute__((always_inline)) bool tw_plain_return(struct tw_stacks_spans *spans, void *fold,
								  const struct tw_plain_calls *calls,
								  const struct tw_plain_span *plain, uint32_t place,
								  uint64_t ns)
{
	struct tw_stack *stack = plain->stack;
	if (tw_plain_is_special(plain, place) || !tw_stack_returns(stack, plain->image->function[place]) ||
	    (calls->wants_return && calls->wants_return(fold, stack)))
		return false;
	struct tw_stack_frame *frame = &stack->frames[stack->depth - 1];
	struct tw_frame_time time = tw_stack_frame_time(stack, frame, ns);
	time.is_exact = !frame->before_ns;
	calls->end(fold, stack, TW_FRAME_RETURNED, &time);
	stack->depth--;
	if (stack->depth)
		frame[-1].inner_ns += time.total_ns;
	const struct tw_step step = {.kind = TW_STEP_RETURN,
				     .stack = stack,
				     .depth = stack->depth,
				     .function = frame->function};
	tw_plain_step(spans, plain, &step, ns);
	return true;
}

/* Returns the first record that is a special one, or the end. */
static inline __attribute__((always_inline)) const struct tw_capture_record *tw_plain_records(
	struct tw_stacks_spans *spans, void *fold, const struct tw_plain_calls *calls,
	const struct tw_plain_span *plain, const struct tw_capture_record *record, const struct tw_capture_record *end,
	uint64_t *records)
{
	static const uint64_t never = UINT64_MAX;
	const uint64_t *special_ns = spans->special_ns ? spans->special_ns : &never;
	struct tw_capture_clock clock = spans->clock;
	uint64_t last_ns = plain->stack->last_ns, count = 0;
	for (; record < end; record = tw_capture_record_next(record), count++) {
		if (__builtin_expect(!tw_capture_clock_has(&clock, record->ticks), 0)) {
			tw_capture_clock_at(spans->stacks->capture, record->ticks, &spans->clock);
			clock = spans->clock;
		}
		/* The kind, with the bit of a record that has processor time before its payload. */
		unsigned kind = (unsigned)(record->head & 0xff);
		uint32_t place = tw_capture_record_id(record);
		uint64_t ns = tw_capture_clock_ns(&clock, record->ticks);
		if (calls->takes_records)
			spans->record = record;
		if (ns >= *special_ns ||
		    !(kind == TW_CAPTURE_CALL	       ? tw_plain_call(spans, fold, calls, plain, place, ns)
		      : kind == TW_CAPTURE_RETURN_FROM ? tw_plain_return(spans, fold, calls, plain, place, ns)
						       : false))
			break;
		last_ns = ns > last_ns ? ns : last_ns;
	}
	plain->stack->last_ns = last_ns;
	spans->plain += count;
	*records += count;
	return record;
}

/*
 * tw_stacks_span - what tw_fold.see_span is to do.
 *
 * @takes_plain	false: each event is wanted.
 *
 * Returns what see_span() does.
 */
static inline __attribute__((always_inline)) int tw_stacks_span(struct tw_stacks_spans *spans, void *fold,
								const struct tw_plain_calls *calls, bool takes_plain,
								struct tw_fold_span *span)
{
	const struct tw_capture_record *record = span->records.first, *end = span->records.end;
	uint64_t sequence = span->records.first_sequence;
	int error = 0;
	while (record < end && !error) {
		struct tw_plain_span plain = {NULL, NULL, NULL, NULL};
		if (takes_plain)
			plain = tw_plain_span(spans, span);
		if (plain.stack) {
			uint64_t before = span->seen;
			record = tw_plain_records(spans, fold, calls, &plain, record, end, &span->seen);
			sequence += span->seen - before;
		}
		if (record < end) {
			error = tw_pass_event(span, record, sequence);
			sequence += tw_capture_record_sequences(record);
			record = tw_capture_record_next(record);
			span->seen++;
		}
	}
	return error ? error : spans->has_no_memory ? TW_ENOMEM : 0;
}

#endif
