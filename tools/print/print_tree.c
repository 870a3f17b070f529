/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_tree.c - `tracewheel print --tree`: calls indented by their depth, with durations.
 *
 *	           |  app:main() {
 *	  1.20 us  |    app:step(0x1) = 5
 *	           |    app:step(0x2) {
 *	   300 ns  |      app:bind() ! throw 'std::runtime_error'
 *	  2.10 us  |    } = 7  app:step
 *
 * Calls that are open at the beginning of a selection come first: `app:main {  (called 9.10 ms before)`. Their durations count
 * from there, and are marked with >: the calls took longer.
 *
 * A call is printed when the next event of its process is known: if that is its return, both share a line. Each
 * process has a depth of its own; if there are several, lines begin with the process' pid or its thread's number, and
 * its name.
 */
#include "views/names/missing.h"
#include "views/folds/pass.h"
#include "views/folds/stacks.h"
#include "views/output/shorten.h"
#include "tools/print/print.h"
#include "views/names/threads.h"
#include "views/names/typed.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Longer names shift their lines to the right. */
#define NAME_COLUMNS_MIN 10
#define NAME_COLUMNS_MAX 24
/* The columns before calls: the duration and the bar; and the least width of names after them. */
#define HEAD_COLUMNS	 14
#define NAME_WIDTH_LEAST 24

/* Marks of frames. */
enum { IS_OPEN, IS_PENDING };

/* The text of a call that is not printed yet; a stack's user data. */
struct pending {
	char *text;
	size_t bytes, capacity;
};

struct tree {
	struct tw_printer *printer;
	struct tw_out *out;
	struct tw_stacks stacks;
	struct tw_places places;
	bool has_pids;
	int name_columns;
	bool is_coloured;
	bool has_no_memory;
	uint64_t limit;	     /* the events that may still be shown */
	bool has_begun;	     /* the selection */
	bool is_limited;     /* calls still open at --limit continued after it */
	size_t name_width;   /* of names on a terminal, at depth 0; 0: names are not cut */
	uint32_t indent_max; /* levels; deeper calls show their depth as a number */
};

/* A buffer for the payload of one event. */
static struct tw_out scratch;

/* ---- lines ---- */

/* Prints a duration after its mark, or blanks: ns is UINT64_MAX. */
static void put_marked_head(struct tree *tree, struct tw_stack *stack, uint32_t depth, uint64_t ns, char mark)
{
	char figure[TW_FIGURE_BYTES];
	tw_out_format(tree->out, "%c%8s", ns == UINT64_MAX ? ' ' : mark,
		      ns == UINT64_MAX ? "" : tw_figure_duration(figure, ns));
	if (tree->has_pids)
		tw_out_format(tree->out, "  %-*s", tree->name_columns, tw_stacks_name(&tree->stacks, stack));
	if (depth > tree->indent_max)
		tw_out_format(tree->out, "  |%*s[%u] ", (int)tree->indent_max * 2, "", depth);
	else
		tw_out_format(tree->out, "  |  %*s", (int)depth * 2, "");
}

static void put_head(struct tree *tree, struct tw_stack *stack, uint32_t depth, uint64_t ns)
{
	put_marked_head(tree, stack, depth, ns, ' ');
}

static void put_red(struct tree *tree, bool is_on)
{
	if (tree->is_coloured)
		tw_out_text(tree->out, is_on ? "\033[1;31m" : "\033[0m");
}

/* The width for a name at a depth, on a terminal. */
static size_t name_width(const struct tree *tree, uint32_t depth)
{
	if (!tree->name_width)
		return SIZE_MAX;
	size_t indent = 2 * (size_t)(depth < tree->indent_max ? depth : tree->indent_max);
	return tree->name_width > indent + NAME_WIDTH_LEAST ? tree->name_width - indent : NAME_WIDTH_LEAST;
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

/* A function's name without its arity; on a terminal cut to one line, and without its types if `drops_types`. */
static const char *name_of(const struct tree *tree, uint32_t function, uint32_t depth, bool drops_types, size_t *bytes)
{
	static char text[TW_NAME_SHORT_BYTES];
	const struct tw_name *name = &tree->places.names[function];
	const char *slash = name->lacks_arity ? NULL : memrchr(name->text, '/', name->bytes);
	*bytes = slash ? (size_t)(slash - name->text) : name->bytes;
	if (tree->name_width && drops_types)
		*bytes = without_types(name->text, *bytes);
	if (*bytes <= name_width(tree, depth))
		return name->text;
	char whole[TW_NAME_TEXT_BYTES + 1];
	snprintf(whole, sizeof whole, "%.*s", (int)*bytes, name->text);
	tw_name_shorten(whole, name_width(tree, depth), text, sizeof text);
	*bytes = strlen(text);
	return text;
}

static void put_name(struct tree *tree, uint32_t function, uint32_t depth)
{
	size_t bytes;
	const char *name = name_of(tree, function, depth, true, &bytes);
	tw_out_bytes(tree->out, name, bytes);
}

/*
 * "app:step(1, 2)  {extra}": a name that ends in its types gets no second pair of brackets.
 */
static void make_call(struct tree *tree, const struct tw_capture_event *event, uint32_t function, uint32_t depth)
{
	struct tw_out *out = tree->printer->out;
	size_t bytes;
	const char *name =
		name_of(tree, function, depth, event->kind == TW_CAPTURE_CALL && event->payload_words, &bytes);
	scratch.used = 0;
	tw_out_bytes(&scratch, name, bytes);
	bool has_brackets = bytes && name[bytes - 1] == ')';
	size_t before = scratch.used;
	tree->printer->out = &scratch;
	if (event->kind == TW_CAPTURE_CALL)
		tw_print_text_payload(tree->printer, event);
	tree->printer->out = out;
	bool has_arguments = scratch.used > before + 1 && scratch.data[before + 1] == '(';
	if (has_arguments && !has_brackets) {
		memmove(scratch.data + before, scratch.data + before + 1, scratch.used - before - 1);
		scratch.used--;
	} else if (!has_arguments && !has_brackets) {
		memmove(scratch.data + before + 2, scratch.data + before, scratch.used - before);
		memcpy(scratch.data + before, "()", 2);
		scratch.used += 2;
	}
}

static void keep_call(struct tree *tree, struct tw_stack *stack)
{
	struct pending *pending = stack->user;
	if (!pending)
		pending = stack->user = calloc(1, sizeof *pending);
	if (pending && pending->capacity < scratch.used) {
		char *grown = realloc(pending->text, scratch.used * 2);
		if (grown) {
			pending->text = grown;
			pending->capacity = scratch.used * 2;
		}
	}
	if (!pending || pending->capacity < scratch.used) {
		tree->has_no_memory = true;
		return;
	}
	memcpy(pending->text, scratch.data, scratch.used);
	pending->bytes = scratch.used;
}

/* Prints the call at depth - 1 if it is not printed yet: an event follows inside it. */
static void open_call(struct tree *tree, struct tw_stack *stack, uint32_t depth)
{
	const struct pending *pending = stack->user;
	if (!depth || !pending || stack->frames[depth - 1].mark != IS_PENDING)
		return;
	stack->frames[depth - 1].mark = IS_OPEN;
	put_head(tree, stack, depth - 1, UINT64_MAX);
	tw_out_bytes(tree->out, pending->text, pending->bytes);
	tw_out_text(tree->out, " {\n");
}

/* A frame ends without a return. */
static void on_end(void *context, struct tw_stack *stack, enum tw_frame_end how, const struct tw_frame_time *time)
{
	struct tree *tree = context;
	const struct tw_stack_frame *frame = &stack->frames[stack->depth - 1];
	const struct pending *pending = stack->user;
	if (how == TW_FRAME_RETURNED || how == TW_FRAME_EXCEPTION)
		return;
	bool is_limited = how == TW_FRAME_OPEN && tree->is_limited;
	put_marked_head(tree, stack, stack->depth - 1, how == TW_FRAME_CUT || is_limited ? UINT64_MAX : time->total_ns,
			'?');
	if (frame->mark == IS_PENDING && pending) {
		tw_out_bytes(tree->out, pending->text, pending->bytes);
	} else {
		tw_out_text(tree->out, "}  ");
		put_name(tree, frame->function, stack->depth - 1);
	}
	tw_out_text(tree->out, is_limited	      ? "  (continued after --limit)\n"
			       : how == TW_FRAME_OPEN ? "  (still open)\n"
			       : how == TW_FRAME_LOST ? "  (ended in the loss, or at an unknown time)\n"
						      : "  (no return seen)\n");
}

/* Prints " = 5" or " ! throw x": the outcome of a call. */
static void put_value(struct tree *tree, const struct tw_capture_event *event)
{
	bool is_exception = event->kind == TW_CAPTURE_EXCEPTION_FROM;
	struct tw_out *out = tree->out;
	/* If the type is not known, a small number is shown as one. */
	if (!is_exception && tw_print_is_plain(event) && event->payload_words == 1 &&
	    !tw_typed_layout(tree->printer->capture, event)) {
		uint64_t value = event->payload[0];
		if (value < 1000000 || tw_print_is_vm(tree->printer, event->image))
			tw_out_format(out, " = %llu", (unsigned long long)value);
		else if ((int64_t)value < 0 && (int64_t)value > -1000000)
			tw_out_format(out, " = %lld", (long long)value);
		else if (value >> 32 == 0 && (int32_t)value < 0 && (int32_t)value > -4096)
			tw_out_format(out, " = %d", (int32_t)value);
		else
			tw_out_format(out, " = 0x%llx", (unsigned long long)value);
		return;
	}
	scratch.used = 0;
	tree->printer->out = &scratch;
	tw_print_text_payload(tree->printer, event);
	tree->printer->out = out;
	bool has_arrow = scratch.used > 4 && memcmp(scratch.data, " -> ", 4) == 0;
	put_red(tree, is_exception);
	tw_out_text(out, is_exception ? " ! " : has_arrow ? " = " : "");
	if (has_arrow)
		tw_out_bytes(out, scratch.data + 4, scratch.used - 4);
	else if (scratch.used)
		tw_out_bytes(out, scratch.data, scratch.used);
	else if (is_exception)
		tw_out_text(out, "exception");
	if (is_exception)
		put_red(tree, false);
}

static void put_return(struct tree *tree, const struct tw_capture_event *event, const struct tw_step *step)
{
	const struct pending *pending = step->stack->user;
	bool is_one_line = step->frame->mark == IS_PENDING && pending;
	char mark = step->time.is_exact ? ' ' : step->time.is_lossy ? '?' : '>';
	put_marked_head(tree, step->stack, step->depth, step->time.total_ns, mark);
	if (is_one_line)
		tw_out_bytes(tree->out, pending->text, pending->bytes);
	else
		tw_out_text(tree->out, "}");
	if (tw_print_has_place(event->kind))
		put_value(tree, event);
	if (!is_one_line) {
		tw_out_text(tree->out, "  ");
		put_name(tree, step->function, step->depth);
	}
	tw_out_text(tree->out, "\n");
}

static void put_unmatched(struct tree *tree, const struct tw_capture_event *event, const struct tw_step *step)
{
	open_call(tree, step->stack, step->stack->depth);
	put_head(tree, step->stack, step->depth, UINT64_MAX);
	tw_out_text(tree->out, "}");
	if (tw_print_has_place(event->kind))
		put_value(tree, event);
	tw_out_text(tree->out, "  ");
	put_name(tree, step->function, step->depth);
	tw_out_text(tree->out, step->is_of_parent ? "  (called by the parent)\n" : "  (no call seen)\n");
}

static void put_loss(struct tree *tree, const struct tw_capture_event *event, const struct tw_step *step)
{
	struct tw_missing_loss loss;
	char figure[TW_FIGURE_BYTES], text[TW_MISSING_TEXT_BYTES];
	tw_missing_loss(tree->printer->capture, event, &loss);
	put_head(tree, step->stack, step->depth, UINT64_MAX);
	tw_out_text(tree->out, tw_missing_replaced(loss.overwritten, text));
	if (loss.sum) {
		put_red(tree, true);
		tw_out_format(tree->out, "%s!! LOST %s", loss.overwritten ? "; " : "",
			      tw_figure_of(figure, loss.sum, "event", "events"));
		put_red(tree, false);
	}
	tw_out_text(tree->out, "\n");
}

static void put_own_time(struct tree *tree, const struct tw_capture_event *event, const struct tw_step *step)
{
	put_head(tree, step->stack, step->depth, tw_capture_own_ns(tree->printer->capture, event));
	tw_out_format(tree->out, "(tracer: %s)\n", tw_capture_own_name(event->id));
}

/* Prints messages, spawns, schedules: inside the open call. */
static void put_other(struct tree *tree, const struct tw_capture_event *event, const struct tw_step *step)
{
	const struct tw_print_kind *kind = tw_print_kind(event->kind);
	put_head(tree, step->stack, step->stack->depth, UINT64_MAX);
	if (kind)
		tw_out_text(tree->out, kind->word);
	else
		tw_out_format(tree->out, "event %u", event->kind);
	tw_print_text_payload(tree->printer, event);
	tw_out_text(tree->out, "\n");
}

/* ---- open calls at the beginning of the selection ---- */

static int by_number(const void *a, const void *b)
{
	const struct tw_stack *x = *(struct tw_stack *const *)a, *y = *(struct tw_stack *const *)b;
	return (x->number > y->number) - (x->number < y->number);
}

static bool put_open_calls(struct tree *tree, uint64_t from_ns)
{
	tw_stacks_begin(&tree->stacks, from_ns);
	struct tw_stack **stacks = malloc((tree->stacks.count + (size_t)1) * sizeof *stacks);
	char figure[TW_FIGURE_BYTES];
	size_t count = 0;
	if (!stacks)
		return false;
	for (uint32_t i = 0; i <= tree->stacks.mask; i++)
		for (struct tw_stack *stack = tree->stacks.slots[i]; stack; stack = stack->next)
			if (stack->depth)
				stacks[count++] = stack;
	qsort(stacks, count, sizeof *stacks, by_number);
	for (size_t i = 0; i < count; i++) {
		for (uint32_t depth = 0; depth < stacks[i]->depth; depth++) {
			put_head(tree, stacks[i], depth, UINT64_MAX);
			put_name(tree, stacks[i]->frames[depth].function, depth);
			tw_out_format(tree->out, " {  (called %s before)\n",
				      tw_figure_duration(figure, stacks[i]->frames[depth].before_ns));
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
		if (stack->depth > step->depth) {
			make_call(tree, event, step->function, step->depth);
			keep_call(tree, stack);
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
		make_call(tree, event, step->function, step->depth);
		put_head(tree, stack, step->depth, UINT64_MAX);
		tw_out_bytes(tree->out, scratch.data, scratch.used);
		tw_out_text(tree->out, "\n");
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
	if (tree->is_limited || tree->out->error)
		return TW_FOLD_DONE;
	if (!tw_stacks_event(&tree->stacks, event, &step))
		return TW_ENOMEM;
	if (!tree->has_begun || step.kind == TW_STEP_HIDDEN)
		return 0;
	put_event(tree, event, &step);
	if (event->kind != TW_CAPTURE_LOSS && event->kind != TW_CAPTURE_OWN_TIME) {
		tree->limit--;
		tree->printer->shown++;
	}
	return tree->has_no_memory ? TW_ENOMEM : 0;
}

static int put_events(struct tree *tree, const struct tw_capture_filter *filter)
{
	/*
	 * Calls from before the selection may be open in it: all events from the beginning are followed, and printed
	 * from there on.
	 */
	struct tw_fold fold = {.self = tree, .filter = *filter, .wants_before = true, .begin = begin, .see = see};
	struct tw_capture_filter all = *filter;
	all.from_ns = 0;
	int error = tw_stacks_foresee(&tree->stacks, &all);
	if (error == 0)
		error = tw_pass_one((struct tw_capture *)tree->printer->capture, &fold, NULL);
	if (error == 0)
		tw_stacks_finish(&tree->stacks, filter->to_ns);
	tree->printer->hidden = tree->stacks.hidden;
	return error;
}

static void free_pending(struct tw_stacks *stacks)
{
	for (uint32_t i = 0; stacks->slots && i <= stacks->mask; i++) {
		for (struct tw_stack *stack = stacks->slots[i]; stack; stack = stack->next) {
			struct pending *pending = stack->user;
			free(pending ? pending->text : NULL);
			free(pending);
		}
	}
}

/* The width of the longest name of a process or a thread. */
static int name_columns(const struct tw_capture *capture)
{
	char text[TW_THREAD_TEXT_BYTES];
	const struct tw_capture_stream *stream;
	size_t widest = NAME_COLUMNS_MIN;
	for (uint32_t i = 0; (stream = tw_capture_stream(capture, i)); i++) {
		size_t bytes = tw_thread_text(capture, stream, text);
		widest = bytes > widest ? bytes : widest;
	}
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	for (uint32_t i = 0; i < info.images; i++) {
		const struct tw_capture_tracee *tracee;
		uint32_t at = 0;
		while ((tracee = tw_capture_tracee_next(capture, i, &at))) {
			size_t bytes = tw_process_text(capture, i, tracee->tracee_id, text);
			widest = bytes > widest ? bytes : widest;
		}
	}
	return widest < NAME_COLUMNS_MAX ? (int)widest : NAME_COLUMNS_MAX;
}

int tw_print_tree(struct tw_printer *printer, const struct tw_capture_filter *filter, uint64_t limit)
{
	struct tree tree = {.printer = printer,
			    .out = printer->out,
			    .limit = limit,
			    .is_coloured = tw_colour_is_wanted(STDOUT_FILENO)};
	struct tw_capture *capture = (struct tw_capture *)printer->capture;
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	tree.has_pids = printer->has_pids || info.threads > 1;
	tree.name_columns = tree.has_pids ? name_columns(capture) : 0;
	int columns = tw_terminal_columns(STDOUT_FILENO) - (tree.has_pids ? 50 + tree.name_columns : 48);
	tree.indent_max = columns > 20 ? (uint32_t)columns / 2 : 10;
	if (isatty(STDOUT_FILENO))
		tree.name_width = (size_t)tw_terminal_columns(STDOUT_FILENO) - HEAD_COLUMNS -
				  (tree.has_pids ? (size_t)tree.name_columns + 2 : 0);
	tw_out_init(&scratch, -1);
	int error = tw_places_make(&tree.places, capture, filter);
	if (error == 0)
		error = tw_stacks_init(&tree.stacks, capture, &tree.places);
	tree.stacks.least_ns = printer->longer_ns;
	if (error == 0) {
		if (!tw_places_have_returns(&tree.places))
			tw_say("no returns were recorded: nothing is known of durations and of calls within "
			       "calls.");
		error = put_events(&tree, filter);
	}
	free_pending(&tree.stacks);
	tw_stacks_free(&tree.stacks);
	tw_places_free(&tree.places);
	return error;
}
