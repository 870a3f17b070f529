/* SPDX-License-Identifier: Apache-2.0 */
/* timeline.c - finds what timelines show: timeline.h. */
#include "tools/print/timeline.h"
#include "base/grow.h"
#include "views/folds/pass.h"
#include "views/names/missing.h"
#include "views/names/threads.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct tw_out scratch;

uint32_t tw_timeline_process(const struct tw_timeline *timeline, uint32_t image)
{
	const struct tw_capture_image *at = tw_capture_image(timeline->printer->capture, image);
	return !at ? 0 : *at->node ? image + 1 : (uint32_t)at->process_id;
}

size_t tw_timeline_program(const struct tw_timeline *timeline, uint32_t image, char text[TW_TIMELINE_PROGRAM_BYTES])
{
	const struct tw_capture_image *at = tw_capture_image(timeline->printer->capture, image);
	char node[TW_NODE_TEXT_BYTES];
	size_t bytes = tw_node_text(timeline->printer->capture, image, node);
	memcpy(text, node, bytes);
	if (at)
		bytes +=
			tw_clean(at->program, strlen(at->program), text + bytes, TW_TIMELINE_PROGRAM_BYTES - 1 - bytes);
	text[bytes] = 0;
	return bytes;
}

/* The kernel's number of the thread of a stack; 0: it is no thread's. */
static uint32_t thread_of(const struct tw_timeline *timeline, const struct tw_stack *stack)
{
	const struct tw_capture *capture = timeline->printer->capture;
	const struct tw_capture_stream *stream;
	if (stack->has_tracee)
		return tw_process_thread(capture, stack->image, stack->tracee_id);
	stream = tw_capture_stream(capture, stack->tracee_id);
	return stream ? (uint32_t)stream->thread_id : 0;
}

static void name_track(struct tw_timeline *timeline, struct tw_stack *stack, struct tw_timeline_track *track)
{
	/* Viewers show the number of the track beside its name. */
	char last[TW_THREAD_NAME_BYTES] = "";
	const char *name = tw_stacks_name(&timeline->stacks, stack);
	track->is_named = true;
	if (track->number < TW_TIMELINE_OTHERS && stack->has_tracee && !timeline->printer->has_pids)
		tw_process_name(timeline->printer->capture, stack->image, stack->tracee_id, last);
	name = *last ? last : name;
	timeline->format->name_track(timeline, stack->image, track->number, name, strlen(name));
}

/* The track of a stack.  NULL: no memory. */
static struct tw_timeline_track *track_of(struct tw_timeline *timeline, struct tw_stack *stack)
{
	struct tw_timeline_track *track = stack->user;
	if (!track) {
		uint32_t thread = thread_of(timeline, stack);
		track = stack->user = calloc(1, sizeof *track);
		if (!track) {
			timeline->has_no_memory = true;
			return NULL;
		}
		uint64_t key = (uint64_t)tw_timeline_process(timeline, stack->image) << 32 | thread;
		bool is_free = thread && tw_map_get(&timeline->used_numbers, key) == TW_MAP_NONE &&
			       tw_map_add(&timeline->used_numbers, key, 0);
		track->image = stack->image;
		track->number = is_free ? thread : TW_TIMELINE_OTHERS + stack->number;
	}
	if (!track->is_named && timeline->has_begun)
		name_track(timeline, stack, track);
	return track;
}

/* ---- slices ---- */

static bool has_layout(const struct tw_timeline *timeline, const struct tw_capture_event *event)
{
	return event == &timeline->plain ? tw_marks_of(&timeline->typed, event)
					 : tw_typed_layout(timeline->printer->capture, event) != NULL;
}

static void on_end(void *context, struct tw_stack *stack, enum tw_frame_end how, const struct tw_frame_time *time)
{
	struct tw_timeline *timeline = context;
	const struct tw_stack_frame *frame = &stack->frames[stack->depth - 1];
	const char *const ends[] = {[TW_FRAME_EXCEPTION] = "exception",
				    [TW_FRAME_CUT] = "no return seen",
				    [TW_FRAME_OPEN] = timeline->is_limited ? "after --limit" : "still open",
				    [TW_FRAME_LOST] = "lost"};
	struct tw_timeline_track *track = track_of(timeline, stack);
	if (!track)
		return;
	/*
	 * Slices nest as the calls did: the tracer's own time is a slice of its own inside them, and a call without a
	 * return lasts to the last event before it was known to have ended, behind all calls within it.
	 */
	struct tw_timeline_end end = {.track = track,
				      .stack = stack,
				      .ns = frame->start_ns + time->gross_ns,
				      .end = ends[how],
				      .own_ns = time->gross_ns - time->total_ns,
				      .is_lossy = time->is_lossy};
	if (how == TW_FRAME_CUT && end.ns < stack->last_ns)
		end.ns = stack->last_ns;
	bool has_result = (how == TW_FRAME_RETURNED || how == TW_FRAME_EXCEPTION) && timeline->event->payload_words;
	struct tw_print_word word;
	scratch.used = 0;
	if (has_result && timeline->format->takes_words && !has_layout(timeline, timeline->event) &&
	    tw_print_result_word(timeline->event, &word)) {
		end.word = &word;
	} else if (has_result && tw_print_result_member(timeline->printer, timeline->event, &scratch)) {
		end.result = scratch.data;
		end.result_bytes = scratch.used;
	}
	timeline->format->end(timeline, &end);
}

/* The command that a port executed last: the term of its event out. */
static void put_command(struct tw_timeline_span *span, const struct tw_capture_event *event)
{
	struct tw_message_payload payload;
	struct tw_term command;
	tw_print_payload(event, &payload);
	if (!payload.has_terms || !tw_print_next_term(&payload, &command))
		return;
	scratch.used = 0;
	tw_out_text(&scratch, "\"command\":");
	tw_print_put_json(&scratch, command);
	span->arguments = scratch.data;
	span->arguments_bytes = scratch.used;
}

/* A run, on a scheduler's track. */
static void put_run(struct tw_timeline *timeline, struct tw_stack *stack, const struct tw_timeline_track *track,
		    const struct tw_capture_event *out)
{
	const struct tw_capture_tracee *tracee =
		stack->has_tracee ? tw_capture_tracee(timeline->printer->capture, stack->image, stack->tracee_id)
				  : NULL;
	char name[200];
	struct tw_timeline_span span = {.image = stack->image,
					.number = TW_TIMELINE_SCHEDULERS + track->scheduler_id,
					.from_ns = track->since_ns,
					.to_ns = out->time_ns,
					.name = tw_stacks_name(&timeline->stacks, stack),
					.process = stack->number};
	/* No thread has such a number. */
	uint64_t key = (uint64_t)stack->image << 32 | span.number;
	if (tw_map_get(&timeline->used_numbers, key) == TW_MAP_NONE) {
		timeline->has_no_memory |= !tw_map_add(&timeline->used_numbers, key, 0);
		timeline->format->name_track(timeline, stack->image, span.number, name,
					     (size_t)snprintf(name, sizeof name, "scheduler %u", track->scheduler_id));
	}
	if (tracee && tracee->is_port)
		put_command(&span, out);
	timeline->format->span(timeline, &span);
}

static void put_own_time(struct tw_timeline *timeline, const struct tw_capture_event *event, struct tw_stack *stack)
{
	struct tw_timeline_track *track = track_of(timeline, stack);
	char name[100];
	if (!track)
		return;
	/* It has the time of the event that it delayed: a call begins before it. Stretches that overlap are one behind the other. */
	uint64_t end_ns = event->time_ns + tw_capture_own_ns(timeline->printer->capture, event);
	uint64_t from_ns = event->time_ns > track->own_to_ns ? event->time_ns : track->own_to_ns;
	if (end_ns <= from_ns + 1)
		return;
	track->own_to_ns = end_ns;
	snprintf(name, sizeof name, "(tracer: %s)", tw_capture_own_name(event->id));
	timeline->format->span(timeline, &(struct tw_timeline_span){.image = stack->image,
								    .number = track->number,
								    .from_ns = from_ns + 1,
								    .to_ns = end_ns,
								    .name = name,
								    .category = "own_time"});
}

/* The state that ends now, on a track beside the thread's. */
static void put_state(struct tw_timeline *timeline, struct tw_stack *stack, struct tw_timeline_track *track,
		      uint64_t ns)
{
	char name[TW_THREAD_TEXT_BYTES + 16];
	struct tw_timeline_span span = {.image = stack->image,
					.number = TW_TIMELINE_STATES + stack->number,
					.from_ns = track->state_since_ns,
					.to_ns = ns,
					.name = tw_capture_state_name(track->state),
					.category = "thread_state"};
	/* Threads had states before the first event. */
	if (span.from_ns < timeline->printer->start_ns)
		span.from_ns = timeline->printer->start_ns;
	if (track->state == TW_CAPTURE_STATE_UNKNOWN || !timeline->has_begun || ns <= span.from_ns)
		return;
	if (!track->has_states)
		timeline->format->name_track(timeline, stack->image, span.number, name,
					     (size_t)snprintf(name, sizeof name, "%s: states",
							      tw_stacks_name(&timeline->stacks, stack)));
	track->has_states = true;
	timeline->format->span(timeline, &span);
}

static void on_state(struct tw_timeline *timeline, const struct tw_capture_event *event, struct tw_stack *stack)
{
	struct tw_timeline_track *track = track_of(timeline, stack);
	if (!track)
		return;
	put_state(timeline, stack, track, event->time_ns);
	track->state = event->id;
	track->state_since_ns = event->time_ns;
}

/* ---- moments ---- */

/* The message that an event sends or receives. */
static void find_flow(struct tw_timeline *timeline, const struct tw_capture_event *event,
		      struct tw_timeline_moment *moment)
{
	bool is_send = event->kind == TW_CAPTURE_SEND || event->kind == TW_CAPTURE_SEQ_SEND;
	struct tw_seq_event seq;
	if (event->kind == TW_CAPTURE_SEQ_SEND || event->kind == TW_CAPTURE_SEQ_RECEIVE) {
		/* Both of its ends tell by themselves that they belong together. */
		if (tw_seq_take(&timeline->nodes, event, &seq) <= 0)
			return;
		moment->is_seq = true;
		moment->flow_id = tw_seq_key(&seq);
	} else if (is_send || event->kind == TW_CAPTURE_RECEIVE) {
		moment->flow_id = (is_send ? tw_flows_send : tw_flows_receive)(timeline->flows, event);
		if (!moment->flow_id)
			return;
	} else {
		return;
	}
	moment->flow = is_send ? TW_TIMELINE_FLOW_BEGINS : TW_TIMELINE_FLOW_ENDS;
}

static void put_loss(struct tw_timeline *timeline, const struct tw_capture_event *event,
		     struct tw_timeline_moment *moment)
{
	struct tw_missing_loss loss;
	char text[TW_MISSING_TEXT_BYTES];
	tw_missing_loss(timeline->printer->capture, event, &loss);
	if (loss.sum)
		tw_out_format(&scratch, "%llu event%s%s", (unsigned long long)loss.sum, loss.sum == 1 ? "" : "s",
			      loss.overwritten ? "; " : "");
	tw_out_text(&scratch, tw_missing_replaced(loss.overwritten, text));
	timeline->lost += loss.sum;
	moment->lost = timeline->lost;
}

static void put_moment(struct tw_timeline *timeline, const struct tw_capture_event *event, const struct tw_step *step,
		       const struct tw_timeline_track *track)
{
	const struct tw_print_kind *kind = tw_print_kind(event->kind);
	bool has_function = step->kind == TW_STEP_MOMENT || step->kind == TW_STEP_UNMATCHED;
	struct tw_timeline_moment moment = {.track = track,
					    .ns = event->time_ns,
					    .word = has_function		 ? NULL
						    : step->kind == TW_STEP_LOSS ? "LOST"
						    : kind			 ? kind->word
										 : "event",
					    .function = step->function};
	scratch.used = 0;
	if (step->kind == TW_STEP_MOMENT) {
		if (event->payload_words && tw_print_arguments_member(timeline->printer, event, &scratch)) {
			moment.arguments = scratch.data;
			moment.arguments_bytes = scratch.used;
		}
	} else {
		if (step->kind == TW_STEP_LOSS) {
			put_loss(timeline, event, &moment);
		} else {
			struct tw_out *out = timeline->printer->out;
			timeline->printer->out = &scratch;
			tw_print_text_payload(timeline->printer, event);
			timeline->printer->out = out;
			/* Else it looks like a call. */
			if (step->kind == TW_STEP_UNMATCHED && !scratch.used)
				tw_out_text(&scratch, "no call seen");
		}
		size_t blanks = scratch.used && *scratch.data == ' ';
		if (scratch.used > blanks) {
			moment.what = scratch.data + blanks;
			moment.what_bytes = scratch.used - blanks;
		}
	}
	find_flow(timeline, event, &moment);
	timeline->format->moment(timeline, &moment);
}

/* ---- events ---- */

static void put_call(struct tw_timeline *timeline, const struct tw_capture_event *event, const struct tw_step *step)
{
	struct tw_timeline_track *track;
	if (step->stack->depth <= step->depth)
		return;
	track = track_of(timeline, step->stack);
	if (track)
		timeline->format->begin(timeline, track, step->stack, step->depth, event);
}

/* False: it is left out, as a short call. */
static bool put_event(struct tw_timeline *timeline, const struct tw_capture_event *event)
{
	struct tw_step step;
	timeline->event = event;
	if (!tw_stacks_event(&timeline->stacks, event, &step) || !tw_tracer_cost_event(&timeline->cost, event, &step)) {
		timeline->has_no_memory = true;
		return false;
	}
	if (step.kind == TW_STEP_HIDDEN)
		return false;
	if (step.kind == TW_STEP_CALL)
		put_call(timeline, event, &step);
	if (step.kind == TW_STEP_CALL || step.kind == TW_STEP_RETURN)
		return true;
	if (step.kind == TW_STEP_OWN_TIME) {
		if (timeline->has_begun)
			put_own_time(timeline, event, step.stack);
		return true;
	}
	if (event->kind == TW_CAPTURE_THREAD_STATE) {
		on_state(timeline, event, step.stack);
		return true;
	}
	struct tw_timeline_track *track = track_of(timeline, step.stack);
	if (!track)
		return true;
	if (event->kind == TW_CAPTURE_IN || event->kind == TW_CAPTURE_IN_EXITING) {
		const struct tw_capture_stream *stream = tw_capture_stream(timeline->printer->capture, event->stream);
		track->since_ns = event->time_ns;
		track->scheduler_id = stream ? stream->scheduler_id : 0;
	} else if (event->kind >= TW_CAPTURE_OUT && event->kind <= TW_CAPTURE_OUT_EXITED) {
		if (track->since_ns && timeline->has_begun)
			put_run(timeline, step.stack, track, event);
		track->since_ns = 0;
	} else if (timeline->has_begun) {
		put_moment(timeline, event, &step, track);
	}
	return true;
}

/* Begins the selection: slices of open calls, and of runs, begin here. */
static int begin(void *self, uint64_t from_ns)
{
	struct tw_timeline *timeline = self;
	timeline->has_begun = true;
	timeline->stacks.calls = (struct tw_stacks_calls){.end = on_end, .context = timeline};
	if (!from_ns)
		return 0;
	tw_stacks_begin(&timeline->stacks, from_ns);
	for (struct tw_stack *stack = NULL; (stack = tw_stacks_next(&timeline->stacks, stack));) {
		struct tw_timeline_track *track = stack->user;
		if (track && track->since_ns && track->since_ns < from_ns)
			track->since_ns = from_ns;
		if (track && track->state_since_ns < from_ns)
			track->state_since_ns = from_ns;
		for (uint32_t depth = 0; track && depth < stack->depth; depth++)
			timeline->format->begin(timeline, track_of(timeline, stack), stack, depth, NULL);
	}
	return 0;
}

static int see(void *self, const struct tw_capture_event *event)
{
	struct tw_timeline *timeline = self;
	timeline->is_limited = !timeline->limit;
	if (timeline->is_limited || timeline->out->error)
		return TW_FOLD_DONE;
	bool is_shown = put_event(timeline, event);
	if (!tw_timeline_count(timeline, event))
		return TW_ENOMEM;
	timeline->reached_ns = event->time_ns;
	if (timeline->has_begun && is_shown && event->kind != TW_CAPTURE_LOSS && event->kind != TW_CAPTURE_OWN_TIME &&
	    event->kind != TW_CAPTURE_THREAD_STATE) {
		timeline->limit--;
		timeline->printer->shown++;
	}
	return timeline->has_no_memory ? TW_ENOMEM : 0;
}

/* ---- records ---- */

/* The event of a plain call or return: those members that formats look at. */
static const struct tw_capture_event *plain_event(struct tw_timeline *timeline)
{
	const struct tw_capture_record *record = timeline->spans.record;
	struct tw_capture_event *event = &timeline->plain;
	event->kind = (uint8_t)tw_capture_record_kind(record);
	event->flags = (uint8_t)tw_capture_record_flags(record);
	event->id = tw_capture_record_id(record);
	event->payload = record->payload;
	event->payload_words = tw_capture_record_words(record);
	return event;
}

static inline __attribute__((always_inline)) void begin_plain(void *fold, struct tw_stack *stack)
{
	struct tw_timeline *timeline = fold;
	struct tw_timeline_track *track = track_of(timeline, stack);
	if (track)
		timeline->format->begin(timeline, track, stack, stack->depth - 1, plain_event(timeline));
}

static inline __attribute__((always_inline)) void end_plain(void *fold, struct tw_stack *stack, enum tw_frame_end how,
							    const struct tw_frame_time *time)
{
	struct tw_timeline *timeline = fold;
	timeline->event = plain_event(timeline);
	on_end(timeline, stack, how, time);
}

static uint8_t mark_typed(const void *context, uint32_t image, const struct tw_capture_place *place)
{
	return place->function && tw_capture_layout(context, image, place->function->function_id);
}

static int see_span(void *self, struct tw_fold_span *span)
{
	static const struct tw_plain_calls calls = {.begin = begin_plain, .end = end_plain, .takes_records = true};
	struct tw_timeline *timeline = self;
	uint64_t before = timeline->spans.plain;
	if (timeline->out->error)
		return TW_FOLD_DONE;
	timeline->plain = (struct tw_capture_event){.stream = span->records.stream,
						    .image = span->records.image,
						    .tracee_id = span->records.tracee_id};
	int error = tw_stacks_span(&timeline->spans, timeline, &calls, true, span);
	timeline->printer->shown += timeline->spans.plain - before;
	return error ? error : timeline->has_no_memory ? TW_ENOMEM : 0;
}

static int put_events(struct tw_timeline *timeline, const struct tw_capture_filter *filter)
{
	struct tw_fold folds[2] = {
		{.self = timeline, .filter = *filter, .wants_before = true, .begin = begin, .see = see}};
	size_t count = 1;
	folds[0].filter.wants_thread_states = true;
	struct tw_capture_filter all = folds[0].filter;
	/* Calls and runs from before it may reach into it. */
	all.from_ns = 0;
	int error = tw_stacks_foresee(&timeline->stacks, &all);
	if (error == 0)
		error = tw_timeline_begin_counters(timeline, filter, folds, &count);
	timeline->spans = (struct tw_stacks_spans){.stacks = &timeline->stacks, .cost = &timeline->cost};
	/* Neither a limit nor mailboxes are to be kept event by event. */
	if (timeline->limit == UINT64_MAX && !timeline->counters.has_mailboxes) {
		folds[0].see_span = see_span;
		if (error == 0 && !tw_marks_make(&timeline->typed, timeline->printer->capture, mark_typed,
						 timeline->printer->capture))
			error = TW_ENOMEM;
	}
	if (error == 0)
		error = tw_pass((struct tw_capture *)timeline->printer->capture, folds, count, NULL);
	if (error)
		return error;
	timeline->printer->shown += timeline->stacks.before;
	timeline->printer->hidden = timeline->stacks.hidden;
	tw_stacks_finish(&timeline->stacks, timeline->is_limited ? timeline->reached_ns : filter->to_ns);
	tw_timeline_end_counters(timeline);
	tw_tracer_cost_finish(&timeline->cost);
	memcpy(timeline->printer->cost_ns, timeline->cost.ns, sizeof timeline->cost.ns);
	return timeline->has_no_memory ? TW_ENOMEM : 0;
}

static void free_timeline(struct tw_timeline *timeline)
{
	for (struct tw_stack *stack = NULL; (stack = tw_stacks_next(&timeline->stacks, stack));) {
		struct tw_timeline_track *track = stack->user;
		for (uint32_t depth = 0; track && depth < track->arguments_count; depth++)
			free(track->arguments[depth].text);
		free(track ? track->arguments : NULL);
		free(track);
	}
	tw_timeline_free_counters(timeline);
	tw_marks_free(&timeline->typed);
	tw_flows_destroy(timeline->flows);
	tw_seq_nodes_free(&timeline->nodes);
	tw_map_fini(&timeline->used_numbers);
	tw_tracer_cost_free(&timeline->cost);
	tw_stacks_free(&timeline->stacks);
	tw_places_free(&timeline->places);
	free(timeline);
}

int tw_timeline_write(struct tw_printer *printer, const struct tw_timeline_format *format, void *user,
		      const struct tw_capture_filter *filter, uint64_t limit)
{
	struct tw_timeline *timeline = calloc(1, sizeof *timeline);
	struct tw_capture *capture = (struct tw_capture *)printer->capture;
	if (!timeline)
		return TW_ENOMEM;
	timeline->printer = printer;
	timeline->out = printer->out;
	timeline->format = format;
	timeline->user = user;
	timeline->limit = limit;
	tw_out_init(&scratch, -1);
	int error = tw_places_make(&timeline->places, capture, filter);
	if (error == 0)
		error = tw_stacks_init(&timeline->stacks, capture, &timeline->places);
	if (error == 0 &&
	    !tw_tracer_cost_init(&timeline->cost, timeline->stacks.stream_count, timeline->places.function_count))
		error = TW_ENOMEM;
	timeline->stacks.when = printer->when;
	timeline->flows = tw_flows_create(capture);
	if (error == 0)
		error = tw_seq_nodes_make(&timeline->nodes, capture);
	if (error == 0 && (!timeline->flows || !format->open(timeline)))
		error = TW_ENOMEM;
	if (error == 0) {
		error = put_events(timeline, filter);
		format->close(timeline);
	}
	free_timeline(timeline);
	return error;
}

const struct tw_print_timeline *tw_print_timeline(const char *name)
{
	static const struct tw_print_timeline timelines[] = {{"perfetto", tw_print_perfetto, false},
							     {"speedscope", tw_print_speedscope, true},
							     {"chrome", tw_print_chrome, true}};
	for (size_t i = 0; i < sizeof timelines / sizeof *timelines; i++)
		if (strcmp(timelines[i].name, name) == 0)
			return &timelines[i];
	return NULL;
}

bool tw_tool_has_timeline(const char *name)
{
	return tw_print_timeline(name) != NULL;
}

int tw_tool_write_timeline(const char *name, struct tw_capture *capture, struct tw_out *out, uint64_t *events)
{
	const struct tw_capture_filter all = {.wants_own_time = true};
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	struct tw_printer printer = {.out = out,
				     .capture = capture,
				     .start_ns = info.zero_ns,
				     .pid_tracee = UINT32_MAX,
				     .process_tracee = UINT32_MAX,
				     .stamp = -1,
				     .has_pids = tw_processes_are_declared(capture)};
	int error = tw_print_timeline(name)->print(&printer, &all, UINT64_MAX);
	*events = printer.shown;
	return error;
}
