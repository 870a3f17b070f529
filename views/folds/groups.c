/* SPDX-License-Identifier: Apache-2.0 */
/* groups.c - calls by a value. */
#include "views/folds/groups.h"
#include "views/names/lines.h"
#include "views/names/names.h"
#include "views/names/payload.h"
#include "views/names/typed.h"
#include "base/grow.h"

#include "tracewheel/error.h"
#include "tracewheel/layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More words than that are told by their texts: looking for a word that is not known costs as much. */
#define WORDS_MAX (UINT32_C(1) << 15)

static bool is_known_late(const struct tw_groups *groups)
{
	return groups->by.key >= TW_BY_RESULT && groups->by.key <= TW_BY_ERRNO;
}

/* ---- values as text ---- */

void tw_groups_put_word(struct tw_out *out, uint64_t word)
{
	bool is_small = word <= 1000000 || (int64_t)word >= -4096;
	tw_out_format(out, is_small || (int64_t)word < 0 ? "%" PRId64 : "0x%" PRIx64, word);
}

static bool put_term(struct tw_out *out, struct tw_term term)
{
	char text[256];
	tw_term_format(term, TW_PRINT_PRETTY, text, sizeof text);
	tw_out_text(out, text);
	return true;
}

/* The typed argument or result of the event that is being read. */
static bool find_item(const struct tw_groups *groups, const struct tw_layout *layout,
		      const struct tw_message_payload *payload, struct tw_layout_item *out)
{
	const struct tw_grouping *by = &groups->by;
	return by->key == TW_BY_ARGUMENT ? tw_typed_find_argument(layout, payload->words, payload->count, by->number,
								  by->name, strcspn(by->name, "/"), out)
					 : tw_layout_result(layout, payload->words, payload->count, out);
}

/* The same without a type. */
static bool find_word(const struct tw_groups *groups, const struct tw_message_payload *payload, uint64_t *out)
{
	uint32_t number = groups->by.key == TW_BY_ARGUMENT ? groups->by.number : 1;
	/* Typed words mean nothing without their layout. */
	if (!number || number > payload->count || payload->has_terms || (groups->event->flags & TW_CAPTURE_FLAG_ARGS))
		return false;
	*out = payload->words[number - 1];
	return true;
}

/* The word on which alone the text of a value depends. False: it depends on more. */
static bool find_plain(const struct tw_groups *groups, uint64_t *out)
{
	const struct tw_layout *layout;
	struct tw_message_payload payload;
	struct tw_layout_item item;
	if (groups->by.key != TW_BY_ARGUMENT && groups->by.key != TW_BY_RESULT)
		return false;
	layout = tw_typed_layout(groups->capture, groups->event);
	tw_print_payload_take(groups->event, &payload);
	if (!layout)
		return find_word(groups, &payload, out);
	if (!find_item(groups, layout, &payload, &item) || item.word_count != 1 ||
	    !strchr("iubenpgox", item.value->type))
		return false;
	*out = item.words[0];
	return true;
}

static bool put_term_of(const struct tw_groups *groups, struct tw_message_payload *payload, struct tw_out *out)
{
	uint32_t number = groups->by.key == TW_BY_SERVER ? 1 : groups->by.number, left = number;
	struct tw_term term;
	if (!payload->has_terms || !tw_print_next_term(payload, &term))
		return false;
	if (is_known_late(groups))
		return put_term(out, term);
	while (left && tw_term_type(term) == TW_TYPE_CONS && --left)
		term = tw_term_tail(term);
	return number && tw_term_type(term) == TW_TYPE_CONS && put_term(out, tw_term_head(term));
}

static bool put_errno(const struct tw_layout *layout, const struct tw_message_payload *payload, struct tw_out *out)
{
	int error = layout ? tw_layout_error(layout, payload->words, payload->count) : 0;
	const char *name = error ? strerrorname_np(error) : "no error";
	if (!layout || !layout->has_errno)
		return false;
	if (name)
		tw_out_text(out, name);
	else
		tw_out_format(out, "%d", error);
	return true;
}

/* The argument of the call that is being read, or the result or errno of the return. False: it is not in the capture. */
static bool put_value(const struct tw_groups *groups, struct tw_out *out)
{
	const struct tw_layout *layout = tw_typed_layout(groups->capture, groups->event);
	struct tw_message_payload payload;
	struct tw_layout_item item;
	uint64_t word;
	tw_print_payload_take(groups->event, &payload);
	if (groups->by.key == TW_BY_ERRNO)
		return put_errno(layout, &payload, out);
	if (layout && find_item(groups, layout, &payload, &item)) {
		tw_typed_value(out, &item);
		return true;
	}
	if (layout || !find_word(groups, &payload, &word))
		return !layout && put_term_of(groups, &payload, out);
	tw_groups_put_word(out, word);
	return true;
}

/* False: the call has no first argument, or only words. */
static bool put_server(struct tw_groups *groups, struct tw_out *out)
{
	static struct tw_out term;
	struct tw_message_payload payload;
	tw_print_payload_take(groups->event, &payload);
	tw_out_init(&term, -1);
	if (!put_term_of(groups, &payload, &term))
		return false;
	groups->has_no_memory |=
		!tw_groups_put_server(&groups->processes, out, groups->capture, groups->event->image, &term);
	return true;
}

static void put_program(const struct tw_groups *groups, struct tw_out *out, uint32_t number, bool has_process)
{
	const struct tw_capture_image *image = tw_capture_image(groups->capture, number);
	const char *slash = image ? strrchr(image->program, '/') : NULL;
	if (image && has_process)
		tw_out_format(out, "%d ", (int)image->process_id);
	tw_out_name(out, !image ? "?" : slash ? slash + 1 : image->program);
}

/* ---- groups ---- */

static uint32_t add_group(struct tw_groups *groups, uint64_t hash, const struct tw_group *group, const char *text,
			  size_t bytes)
{
	if (!tw_grow(groups->groups, groups->count, groups->capacity) ||
	    !tw_map_add(&groups->by_value, hash, groups->count)) {
		groups->has_no_memory = true;
		return 0;
	}
	groups->groups[groups->count] = *group;
	groups->groups[groups->count].value = strndup(text, bytes);
	groups->has_no_memory |= !groups->groups[groups->count].value;
	return groups->count++;
}

uint32_t tw_groups_find(struct tw_groups *groups, uint32_t function, uint64_t word)
{
	return tw_map_find(&groups->by_value, tw_hash_word(word, function), i,
			   groups->groups[i].function == function && groups->groups[i].word == word);
}

uint32_t tw_groups_like(struct tw_groups *groups, const struct tw_group *group, const struct tw_out *text)
{
	uint32_t number = tw_groups_find(groups, group->function, group->word);
	if (number != TW_MAP_NONE)
		return number;
	if (groups->count >= TW_GROUPS_MAX) {
		groups->is_full = true;
		return TW_GROUPS_BEYOND;
	}
	return add_group(groups, tw_hash_word(group->word, group->function), group, text->data, text->used);
}

static const char *module_of(const struct tw_groups *groups, uint32_t function, size_t *bytes)
{
	const struct tw_name *name = &groups->places.names[function];
	const char *colon = memchr(name->text, ':', name->bytes);
	*bytes = colon ? (size_t)(colon - name->text) : name->bytes;
	return name->text;
}

/* Is the text of a value a whole number? */
static bool is_number_text(struct tw_out *text, int64_t *out)
{
	char number[24], *end;
	if (!text->used || text->used >= sizeof number)
		return false;
	memcpy(number, text->data, text->used);
	number[text->used] = 0;
	*out = number[0] == '-' ? strtoll(number, &end, 0) : (int64_t)strtoull(number, &end, 0);
	return !*end;
}

/* The values that are told apart by a number. False: the value is a text. */
static bool number_of(const struct tw_groups *groups, const struct tw_stack *stack, uint32_t caller, uint64_t *out)
{
	*out = groups->by.key <= TW_BY_LINE ? caller : groups->by.key == TW_BY_THREAD ? stack->number : stack->image;
	return groups->by.key >= TW_BY_CALLER && groups->by.key <= TW_BY_PROCESS;
}

static enum tw_process_kind kind_of(enum tw_group_key key)
{
	return key == TW_BY_NAME ? TW_KIND_NAME
				 : (enum tw_process_kind)(key - TW_BY_INITIAL_CALL + TW_KIND_INITIAL_CALL);
}

/* False: the capture does not have the value. */
static bool put_text(struct tw_groups *groups, struct tw_stack *stack, uint32_t function, uint32_t caller,
		     struct tw_out *out)
{
	const char *text;
	size_t bytes;
	switch (groups->by.key) {
	case TW_BY_DURATION: break;
	case TW_BY_CALLER:
		tw_out_text(out, caller == TW_PLACES_NONE ? "no recorded caller" : groups->places.names[caller].text);
		break;
	case TW_BY_LINE:
		if (caller == TW_PLACES_NONE)
			return false;
		tw_out_text(out, groups->places.names[caller].text);
		break;
	case TW_BY_THREAD: tw_out_name(out, tw_stacks_name(&groups->stacks, stack)); break;
	case TW_BY_PROCESS: put_program(groups, out, stack->image, true); break;
	case TW_BY_PROGRAM: put_program(groups, out, stack->image, false); break;
	case TW_BY_NAME:
	case TW_BY_INITIAL_CALL:
	case TW_BY_BEHAVIOUR:
	case TW_BY_APPLICATION:
	case TW_BY_LABEL:
		return tw_groups_put_kind(out, groups->capture, groups->event->image, groups->event->tracee_id,
					  kind_of(groups->by.key));
	case TW_BY_SERVER: return put_server(groups, out);
	case TW_BY_MODULE:
		text = module_of(groups, function, &bytes);
		tw_out_bytes(out, text, bytes);
		break;
	default: return put_value(groups, out);
	}
	return true;
}

static uint32_t make_group(struct tw_groups *groups, struct tw_stack *stack, uint32_t function, uint32_t caller)
{
	static struct tw_out scratch;
	uint32_t owner = groups->by.key <= TW_BY_LINE ? function : TW_PLACES_NONE, number;
	uint64_t word = 0;
	bool is_number = number_of(groups, stack, caller, &word);
	int64_t value = (int64_t)groups->duration_ns;
	groups->number = 0;
	if (is_number && (number = tw_groups_find(groups, owner, word)) != TW_MAP_NONE)
		return number;
	struct tw_group group = {.function = owner, .word = word};
	tw_out_init(&scratch, -1);
	if (!put_text(groups, stack, function, caller, &scratch))
		return TW_GROUPS_VALUELESS;
	if (groups->by.is_histogram && (groups->by.key == TW_BY_DURATION || is_number_text(&scratch, &value)))
		return tw_groups_range(groups, owner, groups->number = value, &scratch);
	if (!is_number)
		group.word = tw_hash_bytes(scratch.data, scratch.used, 1);
	return tw_groups_like(groups, &group, &scratch);
}

/* The group of a call that begins, or that ends with the event that is being read. @caller: TW_PLACES_NONE: none is known. */
static uint32_t group_of(struct tw_groups *groups, struct tw_stack *stack, uint32_t function, uint32_t caller)
{
	uint64_t word;
	if (groups->word_count == WORDS_MAX || !find_plain(groups, &word))
		return make_group(groups, stack, function, caller);
	uint64_t key = tw_hash_word(word, function);
	uint32_t known = tw_map_find(&groups->by_word, key, i,
				     groups->words[i].word == word && groups->words[i].function == function);
	groups->number = known != TW_MAP_NONE ? groups->words[known].number : 0;
	if (known != TW_MAP_NONE)
		return groups->words[known].group;
	uint32_t group = make_group(groups, stack, function, caller);
	if (!tw_grow(groups->words, groups->word_count, groups->word_capacity) ||
	    !tw_map_add(&groups->by_word, key, groups->word_count))
		groups->has_no_memory = true;
	else
		groups->words[groups->word_count++] = (struct tw_group_word){word, function, group, groups->number};
	return group;
}

/* ---- calls ---- */

static void count_call(struct tw_groups *groups, uint32_t group)
{
	groups->groups[group].sums.calls++;
	groups->groups[group].sum += group == TW_GROUPS_VALUELESS ? 0 : (uint64_t)groups->number;
}

static bool is_wanted(const struct tw_groups *groups, uint32_t function, bool is_chosen)
{
	return is_chosen && (!groups->wanted || groups->wanted[function]);
}

static bool is_left_out(const struct tw_groups *groups, uint32_t function, bool is_chosen)
{
	return groups->is_in_part && !is_chosen && is_wanted(groups, function, true);
}

/* The function of the recorded call around one, if that is its caller; lines are known of stacks only. */
static uint32_t caller_at(const struct tw_groups *groups, const struct tw_stack *stack, uint32_t depth)
{
	return depth && groups->by.key != TW_BY_LINE ? stack->frames[depth - 1].function : TW_PLACES_NONE;
}

/* The call around pays for one that begins. Of a call whose group is known at its end, the frame counts it until then. */
static void pay_around(struct tw_groups *groups, struct tw_stack *stack, uint32_t depth, bool is_moment)
{
	struct tw_stack_frame *around = depth ? &stack->frames[depth - 1] : NULL;
	if (!around || !groups->is_in_part || !is_wanted(groups, around->function, around->is_chosen))
		return;
	if (is_known_late(groups))
		around->node += !is_moment;
	else if (is_moment)
		groups->groups[around->node].sums.paid.moments++;
	else
		groups->groups[around->node].sums.paid.callees++;
}

/* Of a call whose group is known before its end. */
static void set_group(struct tw_groups *groups, struct tw_stack_frame *frame, uint32_t group)
{
	groups->groups[frame->node].open--;
	groups->groups[group].open++;
	frame->node = group;
}

static void on_begin(void *context, struct tw_stack *stack)
{
	struct tw_groups *groups = context;
	struct tw_stack_frame *frame = &stack->frames[stack->depth - 1];
	uint32_t caller = caller_at(groups, stack, stack->depth - 1);
	frame->node = TW_GROUPS_VALUELESS;
	groups->groups[TW_GROUPS_VALUELESS].open++;
	pay_around(groups, stack, stack->depth - 1, false);
	groups->left_out += is_left_out(groups, frame->function, frame->is_chosen);
	if (!is_wanted(groups, frame->function, frame->is_chosen) || is_known_late(groups))
		return;
	set_group(groups, frame, group_of(groups, stack, frame->function, caller));
	if (groups->is_in_part)
		count_call(groups, frame->node);
}

/* Is a call of the same group around it? */
static bool is_recursive(const struct tw_groups *groups, const struct tw_stack *stack)
{
	const struct tw_stack_frame *frame = &stack->frames[stack->depth - 1];
	bool is_late = is_known_late(groups);
	if (!is_late && !groups->groups[frame->node].open)
		return false;
	for (uint32_t i = stack->depth - 1; i-- > 0;) {
		const struct tw_stack_frame *around = &stack->frames[i];
		if (is_late ? around->function == frame->function : around->node == frame->node)
			return true;
	}
	return false;
}

static void on_end(void *context, struct tw_stack *stack, enum tw_frame_end how, const struct tw_frame_time *time)
{
	struct tw_groups *groups = context;
	const struct tw_stack_frame *frame = &stack->frames[stack->depth - 1];
	uint32_t group = frame->node;
	if (!is_known_late(groups))
		groups->groups[group].open--;
	if (!groups->is_in_part || !is_wanted(groups, frame->function, frame->is_chosen))
		return;
	if (is_known_late(groups)) {
		/* A duration is known of exceptions too, but not of calls that are open, cut or lossy. */
		bool is_known = groups->by.key == TW_BY_DURATION ? time->is_exact : how == TW_FRAME_RETURNED;
		groups->duration_ns = time->total_ns;
		group = is_known ? group_of(groups, stack, frame->function, 0) : TW_GROUPS_VALUELESS;
		count_call(groups, group);
		groups->groups[group].sums.paid.callees += frame->node;
	}
	groups->groups[group].sums.paid.calls++;
	if (!tw_call_function_end(&groups->groups[group].sums, how, time, is_recursive(groups, stack)))
		groups->has_no_memory = true;
}

static void on_moment(void *context, struct tw_stack *stack, uint32_t function)
{
	struct tw_groups *groups = context;
	uint32_t caller = caller_at(groups, stack, stack->depth);
	groups->left_out += is_left_out(groups, function, stack->is_call_chosen);
	pay_around(groups, stack, stack->depth, true);
	if (!groups->is_in_part || !is_wanted(groups, function, stack->is_call_chosen))
		return;
	uint32_t group = is_known_late(groups) ? TW_GROUPS_VALUELESS : group_of(groups, stack, function, caller);
	count_call(groups, group);
	groups->groups[group].sums.no_end++;
}

/*
 * Moves a call to the group of the caller, or line, that its stack names. Within a call that was recorded, the caller is that one, as
 * in a call tree.
 */
static void on_stack(struct tw_groups *groups, const struct tw_call_pending *call, const struct tw_capture_event *event)
{
	struct tw_stack *stack = call->stack;
	struct tw_stack_frame *top = stack->depth ? &stack->frames[stack->depth - 1] : NULL;
	bool is_open = top && top->function == call->function;
	if ((groups->by.key == TW_BY_CALLER && stack->depth > is_open) ||
	    !tw_line_stack_count(groups->capture, event->image, event->payload, event->payload_words))
		return;
	uint32_t caller = tw_frames_function(&groups->frames, event->image, event->payload[0]);
	uint32_t old = group_of(groups, stack, call->function, TW_PLACES_NONE);
	if (caller == TW_PLACES_NONE) {
		groups->has_no_memory = true;
		return;
	}
	uint32_t group = group_of(groups, stack, call->function, caller);
	groups->groups[old].sums.calls--;
	groups->groups[group].sums.calls++;
	groups->groups[old].sums.no_end -= !is_open;
	groups->groups[group].sums.no_end += !is_open;
	if (is_open)
		set_group(groups, top, group);
}

/* ---- the fold ---- */

static int begin(void *self, uint64_t from_ns)
{
	struct tw_groups *groups = self;
	struct tw_stacks *stacks = &groups->stacks;
	groups->is_in_part = true;
	if (!from_ns || !groups->has_durations)
		return 0;
	tw_stacks_begin(stacks, from_ns);
	for (struct tw_stack *stack = NULL; (stack = tw_stacks_next(stacks, stack));) {
		for (uint32_t depth = 0; depth < stack->depth; depth++)
			if (is_wanted(groups, stack->frames[depth].function, stack->frames[depth].is_chosen) &&
			    !is_known_late(groups))
				groups->groups[stack->frames[depth].node].sums.before++;
	}
	return 0;
}

static int see(void *self, const struct tw_capture_event *event)
{
	struct tw_groups *groups = self;
	struct tw_step step;
	groups->event = event;
	if (!tw_stacks_event(&groups->stacks, event, &step) || !tw_tracer_cost_event(&groups->cost, event, &step))
		return TW_ENOMEM;
	if (groups->call_stacks.pending && groups->is_in_part) {
		bool is_call = (step.kind == TW_STEP_CALL || step.kind == TW_STEP_MOMENT) &&
			       is_wanted(groups, step.function, step.stack->is_call_chosen);
		struct tw_call_pending call;
		if (tw_call_stacks_event(&groups->call_stacks, event, &step, is_call, &call) == TW_CALL_STACK_HERE)
			on_stack(groups, &call, event);
	}
	return groups->has_no_memory ? TW_ENOMEM : 0;
}

static const struct tw_plain_calls plain = {.begin = on_begin, .end = on_end};

/* Does a group depend on more of its calls than their functions, threads and times? */
static bool needs_events(const struct tw_groups *groups)
{
	enum tw_group_key key = groups->by.key;
	return groups->call_stacks.pending || key == TW_BY_ARGUMENT || key == TW_BY_RESULT || key == TW_BY_ERRNO ||
	       key >= TW_BY_NAME;
}

static int see_span(void *self, struct tw_fold_span *span)
{
	struct tw_groups *groups = self;
	int error = tw_stacks_span(&groups->spans, groups, &plain, !needs_events(groups), span);
	return error ? error : groups->has_no_memory ? TW_ENOMEM : 0;
}

static bool init_groups(struct tw_groups *groups, const struct tw_capture_filter *filter)
{
	const struct tw_group none = {.function = TW_PLACES_NONE, .word = UINT64_MAX};
	add_group(groups, 0, &none, "", 0);
	add_group(groups, 0, &none, "(others)", 8);
	if (filter->wants_place)
		groups->wanted = tw_places_wanted(&groups->places, groups->capture, filter);
	groups->frames = (struct tw_frames){.capture = groups->capture,
					    .places = &groups->places,
					    .by_line = groups->by.key == TW_BY_LINE};
	if (groups->by.key >= TW_BY_CALLER && groups->by.key <= TW_BY_LINE && groups->places.kinds[TW_CAPTURE_STACK])
		groups->has_no_memory |= !tw_call_stacks_init(&groups->call_stacks, groups->capture);
	return !groups->has_no_memory && (groups->wanted || !filter->wants_place);
}

static int read_events(struct tw_groups *groups, const struct tw_capture_filter *all, struct tw_fold *fold)
{
	bool is_made = tw_tracer_cost_init(&groups->cost, groups->stacks.stream_count, groups->places.function_count);
	int error = is_made ? tw_stacks_foresee(&groups->stacks, all) : TW_ENOMEM;
	return error ? error : tw_pass_one(groups->capture, fold, "reading");
}

int tw_groups_make(struct tw_groups *groups, struct tw_capture *capture, const struct tw_capture_filter *filter)
{
	struct tw_capture_filter all = *filter;
	struct tw_fold fold = {.self = groups, .begin = begin, .see = see, .see_span = see_span};
	all.wants_place = NULL;
	groups->capture = capture;
	int error = tw_places_make(&groups->places, capture, &all);
	if (error)
		return error;
	groups->has_durations = tw_places_have_durations(&groups->places);
	if (!filter->from_ns && !filter->to_ns && !filter->wants_stream)
		tw_groups_find_counted(groups);
	if ((!groups->has_durations && is_known_late(groups) && !groups->has_counted) ||
	    (groups->by.key == TW_BY_LINE && !groups->places.kinds[TW_CAPTURE_STACK]))
		return TW_ENOTSUP;
	all.wants_thread_states = true;
	fold.filter = all;
	fold.wants_before = groups->has_durations;
	all.from_ns = groups->has_durations ? 0 : all.from_ns;
	error = init_groups(groups, filter) ? tw_stacks_init(&groups->stacks, capture, &groups->places) : TW_ENOMEM;
	groups->stacks.calls =
		(struct tw_stacks_calls){.begin = on_begin, .end = on_end, .moment = on_moment, .context = groups};
	groups->spans = (struct tw_stacks_spans){.stacks = &groups->stacks, .cost = &groups->cost};
	groups->stacks.when = groups->when;
	groups->stacks.chooses = true;
	if (!error && !(is_known_late(groups) && !groups->has_durations))
		error = read_events(groups, &all, &fold);
	if (!error)
		tw_stacks_finish(&groups->stacks, filter->to_ns);
	tw_tracer_cost_finish(&groups->cost);
	groups->event = NULL;
	if (!error && groups->has_counted)
		error = tw_groups_add_counted(groups);
	groups->losses = groups->stacks.losses;
	groups->replaced = groups->stacks.replaced;
	groups->left_out += groups->stacks.hidden;
	groups->valueless = groups->count ? groups->groups[TW_GROUPS_VALUELESS].sums.calls : 0;
	return error ? error : groups->has_no_memory ? TW_ENOMEM : 0;
}

void tw_groups_free(struct tw_groups *groups)
{
	for (uint32_t i = 0; i < groups->count; i++) {
		free(groups->groups[i].value);
		tw_histogram_free(&groups->groups[i].sums.took);
	}
	for (uint32_t i = 0; i < groups->owner_count; i++)
		free(groups->owners[i].value);
	free(groups->owners);
	tw_map_fini(&groups->by_owner);
	tw_frames_free(&groups->frames);
	free(groups->groups);
	free(groups->wanted);
	free(groups->words);
	tw_map_fini(&groups->by_value);
	tw_map_fini(&groups->by_word);
	tw_groups_processes_free(&groups->processes);
	tw_call_stacks_free(&groups->call_stacks);
	tw_tracer_cost_free(&groups->cost);
	tw_stacks_free(&groups->stacks);
	tw_places_free(&groups->places);
}
