/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_tree.c - `tracewheel print --tree`: calls indented by their depth, with durations.
 *
 *	0.000000000             |  app:main() {
 *	0.000000310    1.20 us  |    app:step(0x1) = 5
 *	0.000001620             |    app:step(0x2) {
 *	0.000001850     300 ns  |      app:bind() ! throw 'std::runtime_error'
 *	0.000002300     900 ns  |      app:leaf() = 0  x 9
 *	0.000001620    2.10 us  |    } = 7  app:step
 *
 * The first column is the time at which the call began; of other lines that of the event. Calls that are open at the
 * beginning of a selection come first: `app:main {  (called 9.10 ms before)`. Their durations count from there, and are
 * marked with >: the calls took longer.
 *
 * A call is printed when the next event of its process is known: if that is its return, both share a line. Each
 * process has a depth of its own; if there are several, lines name the process' pid or its thread's number, and
 * its name.
 */
#include "views/names/missing.h"
#include "views/folds/pass.h"
#include "views/folds/stacks.h"
#include "views/folds/tracer_cost.h"
#include "tools/print/print.h"
#include "tools/print/print_tree_lines.h"
#include "views/names/typed.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So much of a call's duration may be in no state, and the rest is shown. */
#define UNKNOWN_NS 1000

/* Marks of frames. */
enum { IS_OPEN, IS_PENDING };

struct tree {
	struct tw_printer *printer;
	struct tw_stacks stacks;
	struct tw_tracer_cost cost;
	struct tw_places places;
	struct tw_tree_lines lines;
	struct tw_tree_line line; /* the one in progress, if it is no call's */
	uint64_t limit;		  /* the events that may still be shown */
	bool has_begun;		  /* the selection */
	bool is_limited;	  /* calls still open at --limit continued after it */
};

/* A buffer for the payload of one event. */
static struct tw_out scratch;

/* ---- parts of lines ---- */

static void add(struct tree *tree, enum tw_tree_part kind, const char *text)
{
	tw_tree_line_add(&tree->lines, &tree->line, kind, text, strlen(text));
}

/* Writes the line in progress. */
static void put(struct tree *tree, struct tw_stack *stack, struct tw_tree_head head)
{
	tw_tree_lines_put(&tree->lines, stack, &head, &tree->line);
	tw_tree_line_clear(&tree->line);
}

/* The head of an event's line that is no call. */
static struct tw_tree_head head_at(uint64_t at_ns, uint32_t depth)
{
	return (struct tw_tree_head){.at_ns = at_ns, .ns = TW_TREE_NO_TIME, .depth = depth};
}

/* That of a call, even if it began before the selection. */
static struct tw_tree_head head_of(const struct tw_stack_frame *frame, uint32_t depth)
{
	return head_at(frame->start_ns - frame->before_ns, depth);
}

/* How the duration of a call divides. */
static void divide(struct tw_tree_head *head, const struct tw_frame_time *time)
{
	const struct tw_state_sums *sums = time->states ? &time->states->total : NULL;
	if (!sums)
		return;
	/* Clocks differ by some nanoseconds. */
	uint64_t known_ns = tw_state_sums_all(sums), least_ns = time->total_ns - time->total_ns / 1000;
	head->is_divided = known_ns + UNKNOWN_NS >= least_ns;
	head->off_ns = sums->ns[TW_STATE_OFF];
	head->preempted_ns = sums->ns[TW_STATE_PREEMPTED];
}

/* The part of "f(int, g(*)())" before the types; the whole name if it does not end in types. */
static size_t without_types(const char *name, size_t bytes)
{
	unsigned depth = 0;
	for (size_t at = bytes; bytes && name[bytes - 1] == ')' && at-- > 1;) {
		depth += name[at] == ')';
		depth -= name[at] == '(';
		if (!depth)
			return at;
	}
	return bytes;
}

/* Adds a function's name without its arity; on a terminal without its types if `drops_types`. Has it types? */
static bool add_name(struct tree *tree, struct tw_tree_line *line, uint32_t function, bool drops_types)
{
	const struct tw_name *name = &tree->places.names[function];
	const char *slash = name->lacks_arity ? NULL : memrchr(name->text, '/', name->bytes);
	size_t bytes = slash ? (size_t)(slash - name->text) : name->bytes;
	if (tree->lines.columns && drops_types)
		bytes = without_types(name->text, bytes);
	tw_tree_line_add(&tree->lines, line, TW_TREE_NAME, name->text, bytes);
	return bytes && name->text[bytes - 1] == ')';
}

/* The text of an event's payload, in the buffer. */
static void make_payload(struct tree *tree, const struct tw_capture_event *event)
{
	struct tw_out *out = tree->printer->out;
	scratch.used = 0;
	tree->printer->out = &scratch;
	tw_print_text_payload(tree->printer, event);
	tree->printer->out = out;
}

/*
 * "app:step(1, 2)  {extra}": a name that ends in its types gets no second pair of brackets.
 */
static void make_call(struct tree *tree, struct tw_tree_line *line, const struct tw_capture_event *event,
		      uint32_t function)
{
	bool is_call = event->kind == TW_CAPTURE_CALL;
	tw_tree_line_clear(line);
	bool has_brackets = add_name(tree, line, function, is_call && event->payload_words);
	scratch.used = 0;
	if (is_call)
		make_payload(tree, event);
	bool has_arguments = scratch.used > 1 && scratch.data[1] == '(';
	size_t from = has_arguments && !has_brackets;
	if (!has_arguments && !has_brackets)
		tw_tree_line_add(&tree->lines, line, TW_TREE_FIXED, "()", 2);
	tw_tree_line_add(&tree->lines, line, has_arguments ? TW_TREE_ARGUMENTS : TW_TREE_VALUE, scratch.data + from,
			 scratch.used - from);
}

/* Prints the call at depth - 1 if it is not printed yet: an event follows inside it. */
static void open_call(struct tree *tree, struct tw_stack *stack, uint32_t depth)
{
	struct tw_stack_frame *frame = depth ? &stack->frames[depth - 1] : NULL;
	if (!frame || frame->mark != IS_PENDING)
		return;
	struct tw_tree_line *pending = tw_tree_lines_pending(&tree->lines, stack);
	const struct tw_tree_head head = head_of(frame, depth - 1);
	frame->mark = IS_OPEN;
	if (!pending)
		return;
	tw_tree_line_add(&tree->lines, pending, TW_TREE_FIXED, " {", 2);
	tw_tree_lines_put(&tree->lines, stack, &head, pending);
}

/* A frame ends without a return. */
static void on_end(void *context, struct tw_stack *stack, enum tw_frame_end how, const struct tw_frame_time *time)
{
	struct tree *tree = context;
	const struct tw_stack_frame *frame = &stack->frames[stack->depth - 1];
	struct tw_tree_line *line = &tree->line;
	if (how == TW_FRAME_RETURNED || how == TW_FRAME_EXCEPTION)
		return;
	bool is_limited = how == TW_FRAME_OPEN && tree->is_limited;
	struct tw_tree_head head = head_of(frame, stack->depth - 1);
	head.mark = '?';
	if (how != TW_FRAME_CUT && !is_limited) {
		head.ns = time->total_ns;
		divide(&head, time);
	}
	if (frame->mark == IS_PENDING) {
		line = tw_tree_lines_pending(&tree->lines, stack);
	} else {
		add(tree, TW_TREE_FIXED, "}  ");
		add_name(tree, line, frame->function, true);
	}
	const char *end = is_limited		 ? "  (continued after --limit)"
			  : how == TW_FRAME_OPEN ? "  (still open)"
			  : how == TW_FRAME_LOST ? "  (ended in the loss, or at an unknown time)"
						 : "  (no return seen)";
	if (!line)
		return;
	tw_tree_line_add(&tree->lines, line, TW_TREE_VALUE, end, strlen(end));
	tw_tree_lines_put(&tree->lines, stack, &head, line);
	tw_tree_line_clear(line);
}

/* Adds " = 5" or " ! throw x": the outcome of a call. */
static void add_value(struct tree *tree, struct tw_tree_line *line, const struct tw_capture_event *event)
{
	bool is_exception = event->kind == TW_CAPTURE_EXCEPTION_FROM;
	enum tw_tree_part kind = is_exception ? TW_TREE_RED : TW_TREE_VALUE;
	scratch.used = 0;
	/* If the type is not known, a small number is shown as one. */
	if (!is_exception && tw_print_is_plain(event) && event->payload_words == 1 &&
	    !tw_typed_layout(tree->printer->capture, event)) {
		uint64_t value = event->payload[0];
		if (value < 1000000 || tw_print_is_vm(tree->printer, event->image))
			tw_out_format(&scratch, " = %llu", (unsigned long long)value);
		else if ((int64_t)value < 0 && (int64_t)value > -1000000)
			tw_out_format(&scratch, " = %lld", (long long)value);
		else if (value >> 32 == 0 && (int32_t)value < 0 && (int32_t)value > -4096)
			tw_out_format(&scratch, " = %d", (int32_t)value);
		else
			tw_out_format(&scratch, " = 0x%llx", (unsigned long long)value);
		tw_tree_line_add(&tree->lines, line, kind, scratch.data, scratch.used);
		return;
	}
	make_payload(tree, event);
	bool has_arrow = scratch.used > 4 && memcmp(scratch.data, " -> ", 4) == 0;
	if (has_arrow)
		memcpy(scratch.data + 1, is_exception ? " ! " : " = ", 3);
	else if (is_exception)
		tw_tree_line_add(&tree->lines, line, kind, " ! ", 3);
	if (!scratch.used && is_exception)
		tw_out_text(&scratch, "exception");
	tw_tree_line_add(&tree->lines, line, kind, scratch.data + has_arrow, scratch.used - has_arrow);
}

static void put_return(struct tree *tree, const struct tw_capture_event *event, const struct tw_step *step)
{
	struct tw_tree_line *pending = tw_tree_lines_pending(&tree->lines, step->stack);
	bool is_leaf = step->frame->mark == IS_PENDING;
	struct tw_tree_head head = head_of(step->frame, step->depth);
	head.ns = step->time.total_ns;
	head.mark = step->time.is_exact ? ' ' : step->time.is_lossy ? '?' : '>';
	divide(&head, &step->time);
	if (!pending)
		return;
	if (!is_leaf)
		add(tree, TW_TREE_FIXED, "}");
	if (tw_print_has_place(event->kind))
		add_value(tree, is_leaf ? pending : &tree->line, event);
	if (is_leaf) {
		tw_tree_lines_put_leaf(&tree->lines, step->stack, &head, pending);
		return;
	}
	add(tree, TW_TREE_FIXED, "  ");
	add_name(tree, &tree->line, step->function, true);
	put(tree, step->stack, head);
}

static void put_unmatched(struct tree *tree, const struct tw_capture_event *event, const struct tw_step *step)
{
	open_call(tree, step->stack, step->stack->depth);
	add(tree, TW_TREE_FIXED, "}");
	if (tw_print_has_place(event->kind))
		add_value(tree, &tree->line, event);
	add(tree, TW_TREE_FIXED, "  ");
	add_name(tree, &tree->line, step->function, true);
	add(tree, TW_TREE_VALUE, step->is_of_parent ? "  (called by the parent)" : "  (no call seen)");
	put(tree, step->stack, head_at(event->time_ns, step->depth));
}

static void put_loss(struct tree *tree, const struct tw_capture_event *event, const struct tw_step *step)
{
	struct tw_missing_loss loss;
	char figure[TW_FIGURE_BYTES], text[TW_MISSING_TEXT_BYTES];
	tw_missing_loss(tree->printer->capture, event, &loss);
	add(tree, TW_TREE_VALUE, tw_missing_replaced(loss.overwritten, text));
	if (loss.sum) {
		add(tree, TW_TREE_VALUE, loss.overwritten ? "; " : "");
		add(tree, TW_TREE_RED, "!! LOST ");
		add(tree, TW_TREE_RED, tw_figure_of(figure, loss.sum, "event", "events"));
	}
	put(tree, step->stack, head_at(event->time_ns, step->depth));
}

static void put_own_time(struct tree *tree, const struct tw_capture_event *event, const struct tw_step *step)
{
	struct tw_tree_head head = head_at(event->time_ns, step->depth);
	head.ns = tw_capture_own_ns(tree->printer->capture, event);
	head.mark = ' ';
	add(tree, TW_TREE_FIXED, "(tracer: ");
	add(tree, TW_TREE_FIXED, tw_capture_own_name(event->id));
	add(tree, TW_TREE_FIXED, ")");
	put(tree, step->stack, head);
}

/* A call whose return is not recorded. */
static void put_moment(struct tree *tree, const struct tw_capture_event *event, const struct tw_step *step)
{
	const struct tw_tree_head head = head_at(event->time_ns, step->depth);
	make_call(tree, &tree->line, event, step->function);
	tw_tree_lines_put_leaf(&tree->lines, step->stack, &head, &tree->line);
	tw_tree_line_clear(&tree->line);
}

/* Prints messages, spawns, schedules: inside the open call. */
static void put_other(struct tree *tree, const struct tw_capture_event *event, const struct tw_step *step)
{
	const struct tw_print_kind *kind = tw_print_kind(event->kind);
	char number[TW_FIGURE_BYTES];
	snprintf(number, sizeof number, "event %u", event->kind);
	add(tree, TW_TREE_FIXED, kind ? kind->word : number);
	make_payload(tree, event);
	tw_tree_line_add(&tree->lines, &tree->line, TW_TREE_VALUE, scratch.data, scratch.used);
	put(tree, step->stack, head_at(event->time_ns, step->stack->depth));
}

/* ---- open calls at the beginning of the selection ---- */

static bool put_open_calls(struct tree *tree, uint64_t from_ns)
{
	tw_stacks_begin(&tree->stacks, from_ns);
	char figure[TW_FIGURE_BYTES], text[TW_FIGURE_BYTES + 32];
	size_t count;
	struct tw_stack **stacks = tw_tree_lines_stacks(&tree->stacks, &count);
	if (!stacks)
		return false;
	for (size_t i = 0; i < count; i++) {
		for (uint32_t depth = 0; depth < stacks[i]->depth; depth++) {
			const struct tw_stack_frame *frame = &stacks[i]->frames[depth];
			snprintf(text, sizeof text, "  (called %s before)",
				 tw_figure_duration(figure, frame->before_ns));
			add_name(tree, &tree->line, frame->function, true);
			add(tree, TW_TREE_FIXED, " {");
			add(tree, TW_TREE_VALUE, text);
			put(tree, stacks[i], head_of(frame, depth));
			tree->printer->shown++;
		}
	}
	free(stacks);
	return true;
}

static void put_event(struct tree *tree, const struct tw_capture_event *event, const struct tw_step *step)
{
	struct tw_stack *stack = step->stack;
	if (step->kind == TW_STEP_RETURN) {
		put_return(tree, event, step);
		return;
	}
	if (step->kind == TW_STEP_UNMATCHED) {
		put_unmatched(tree, event, step);
		return;
	}
	if (step->kind == TW_STEP_CALL) {
		open_call(tree, stack, step->depth);
		struct tw_tree_line *pending = tw_tree_lines_pending(&tree->lines, stack);
		if (pending && stack->depth > step->depth) {
			make_call(tree, pending, event, step->function);
			stack->frames[stack->depth - 1].mark = IS_PENDING;
		}
		return;
	}
	/* As in print.c: subtracted from times, without a line. */
	if (step->kind == TW_STEP_OWN_TIME && event->id == TW_CAPTURE_OWN_SETUP)
		return;
	open_call(tree, stack, stack->depth);
	if (step->kind == TW_STEP_OWN_TIME) {
		put_own_time(tree, event, step);
	} else if (step->kind == TW_STEP_LOSS) {
		put_loss(tree, event, step);
	} else if (step->kind == TW_STEP_MOMENT) {
		put_moment(tree, event, step);
	} else {
		put_other(tree, event, step);
	}
}

static int begin(void *self, uint64_t from_ns)
{
	struct tree *tree = self;
	tree->has_begun = true;
	if (from_ns && !put_open_calls(tree, from_ns))
		return TW_ENOMEM;
	tree->stacks.calls = (struct tw_stacks_calls){.end = on_end, .context = tree};
	return 0;
}

static int see(void *self, const struct tw_capture_event *event)
{
	struct tree *tree = self;
	struct tw_step step;
	tree->is_limited = !tree->limit;
	if (tree->is_limited || tree->printer->out->error)
		return TW_FOLD_DONE;
	if (!tw_stacks_event(&tree->stacks, event, &step) || !tw_tracer_cost_event(&tree->cost, event, &step))
		return TW_ENOMEM;
	if (!tree->has_begun || step.kind == TW_STEP_HIDDEN || event->kind == TW_CAPTURE_THREAD_STATE)
		return 0;
	put_event(tree, event, &step);
	if (event->kind != TW_CAPTURE_LOSS && event->kind != TW_CAPTURE_OWN_TIME) {
		tree->limit--;
		tree->printer->shown++;
	}
	return tree->lines.has_no_memory ? TW_ENOMEM : 0;
}

static int put_events(struct tree *tree, const struct tw_capture_filter *filter)
{
	/*
	 * Calls from before the selection may be open in it: all events from the beginning are followed, and printed
	 * from there on.
	 */
	struct tw_fold fold = {.self = tree, .filter = *filter, .wants_before = true, .begin = begin, .see = see};
	fold.filter.wants_thread_states = true;
	struct tw_capture_filter all = fold.filter;
	all.from_ns = 0;
	int error = tw_stacks_foresee(&tree->stacks, &all);
	if (error == 0)
		error = tw_pass_one((struct tw_capture *)tree->printer->capture, &fold, NULL);
	tw_tree_lines_flush(&tree->lines);
	if (error == 0)
		tw_stacks_finish(&tree->stacks, filter->to_ns);
	tree->printer->hidden = tree->stacks.hidden;
	return error;
}

int tw_print_tree(struct tw_printer *printer, const struct tw_capture_filter *filter, uint64_t limit)
{
	struct tree tree = {.printer = printer, .limit = limit};
	struct tw_capture *capture = (struct tw_capture *)printer->capture;
	tw_out_init(&scratch, -1);
	int error = tw_places_make(&tree.places, capture, filter);
	if (error == 0)
		error = tw_stacks_init(&tree.stacks, capture, &tree.places);
	if (error == 0 && !tw_tracer_cost_init(&tree.cost, tree.stacks.stream_count, tree.places.function_count))
		error = TW_ENOMEM;
	tree.stacks.when = printer->when;
	if (error == 0) {
		if (!tw_places_have_returns(&tree.places))
			tw_say("no returns were recorded: nothing is known of durations and of calls within "
			       "calls.");
		tw_tree_lines_init(&tree.lines, printer->out, &tree.stacks, printer->has_pids);
		error = put_events(&tree, filter);
		tw_tracer_cost_finish(&tree.cost);
		memcpy(printer->cost_ns, tree.cost.ns, sizeof tree.cost.ns);
	}
	tw_tracer_cost_free(&tree.cost);
	tw_tree_lines_free(&tree.lines);
	free(tree.line.text);
	tw_stacks_free(&tree.stacks);
	tw_places_free(&tree.places);
	return error;
}
