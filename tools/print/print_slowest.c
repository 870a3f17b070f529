/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_slowest.c - `tracewheel print --slowest N`: the slowest calls, each with what it did.
 *
 *	 1  12.3 ms  srv:handle(0x3) = 0
 *	             from 1.234567890 on 17512 worker-1, in main > run
 *	             ran 200 us, preempted 0 ns, off 12.1 ms
 *	    11.9 ms         | libc:pthread_mutex_lock
 *	     210 us  x 900  | app:step
 *	    11.8 ms         waited for mutex srv:table_lock, from 1.234577890
 *			      held by srv:flush, from 1.230000000 on 17513 worker-2
 */
#include "tools/print/print.h"
#include "views/folds/lock_calls.h"
#include "views/folds/slowest.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>

/* Calls of less than this part of the found one are not listed. */
#define LEAST_PART 100
#define DEPTH_MAX  100
/* Of a call's time: clocks differ by some nanoseconds. */
#define UNKNOWN_PART  1000
#define COUNT_COLUMNS 10
/* Levels; deeper calls show theirs as a number. */
#define INDENT_MAX 12

/* The event of a found call, and that of its end, as text. */
struct texts {
	char *arguments, *result;
};

struct view {
	struct tw_printer *printer;
	struct tw_slowest slowest;
	uint64_t zero_ns;
	uint64_t left_out; /* of the call that is printed */
	bool shows_locks;  /* some calls that are shown take locks */
};

static bool keep_text(void *context, struct tw_slow_call *call, const struct tw_capture_event *event)
{
	static struct tw_out scratch;
	const struct view *view = context;
	struct tw_out *out = view->printer->out;
	struct texts *texts = call->user;
	if (!texts)
		texts = call->user = calloc(1, sizeof *texts);
	if (!texts)
		return false;
	if (!tw_print_has_place(event->kind))
		return true;
	tw_out_init(&scratch, -1);
	view->printer->out = &scratch;
	tw_print_text_payload(view->printer, event);
	view->printer->out = out;
	char **to = event->kind == TW_CAPTURE_CALL ? &texts->arguments : &texts->result;
	free(*to);
	*to = strndup(scratch.data, scratch.used);
	return *to != NULL;
}

/* "app:step" without "/1". */
static void put_name(struct view *view, uint32_t function)
{
	const struct tw_capture_place place = {.function = view->slowest.places.functions[function]};
	view->shows_locks |= tw_lock_place_does(&place) != TW_LOCK_DOES_NOTHING;
	const struct tw_name *name = &view->slowest.places.names[function];
	const char *slash = name->lacks_arity ? NULL : memrchr(name->text, '/', name->bytes);
	tw_out_bytes(view->printer->out, name->text, slash ? (size_t)(slash - name->text) : name->bytes);
}

static const char *end_of(const struct tw_slow_call *call)
{
	return call->how == TW_FRAME_OPEN ? "  (still open)" : call->how == TW_FRAME_LOST ? "  (ended in a loss)" : "";
}

/* ---- text ---- */

static void put_inside(struct view *view, const struct tw_slow_call *call, uint32_t parent, unsigned depth)
{
	struct tw_out *out = view->printer->out;
	char figure[TW_FIGURE_BYTES], count[TW_FIGURE_BYTES + 2];
	for (uint32_t at = view->slowest.nodes[parent].first; at; at = view->slowest.nodes[at].next) {
		const struct tw_slow_node *node = &view->slowest.nodes[at];
		if (node->total_ns < call->total_ns / LEAST_PART || depth > DEPTH_MAX) {
			view->left_out += node->calls;
			continue;
		}
		count[0] = '\0';
		if (node->calls > 1)
			snprintf(count, sizeof count, "x %s", tw_figure_count(figure, node->calls));
		tw_out_format(out, "    %8s  %-*s", tw_figure_duration(figure, node->total_ns), COUNT_COLUMNS, count);
		tw_out_format(out, "| %*s", (int)(depth < INDENT_MAX ? depth : INDENT_MAX) * 2, "");
		if (depth > INDENT_MAX)
			tw_out_format(out, "[%u] ", depth);
		put_name(view, node->function);
		if (node->states.ns[TW_STATE_OFF] && node->states.ns[TW_STATE_OFF] >= call->total_ns / LEAST_PART)
			tw_out_format(out, "  off %s", tw_figure_duration(figure, node->states.ns[TW_STATE_OFF]));
		if (node->call)
			tw_out_format(out, "  (%u)", node->call);
		tw_out_text(out, "\n");
		/* The events of a found call stand there. */
		if (!node->call)
			put_inside(view, call, at, depth + 1);
	}
}

/* "srv:table_lock", or its address and where it was made. */
static void put_lock(struct view *view, const struct tw_lock_row *lock)
{
	struct tw_out *out = view->printer->out;
	char text[TW_LOCK_NAME_BYTES];
	tw_out_text(out, tw_lock_kind_name(lock->kind));
	if (tw_lock_symbol(&view->slowest.waits.locks, lock, text)) {
		tw_out_format(out, " %s", text);
		return;
	}
	tw_out_format(out, " 0x%llx", (unsigned long long)lock->address);
	if (tw_lock_site(&view->slowest.waits.locks, lock, text))
		tw_out_format(out, " %s %s", lock->is_made_there ? "made in" : "first used in", text);
}

static const char *since_zero(const struct view *view, char *text, uint64_t ns)
{
	return tw_figure_moment(text, ns > view->zero_ns ? ns - view->zero_ns : 0);
}

/* The other thread of a wait, on a line of its own: its call is the one to look at next. */
static void put_holder(struct view *view, const struct tw_slow_wait *wait, bool is_condition)
{
	struct tw_out *out = view->printer->out;
	char name[TW_THREAD_TEXT_BYTES] = "?", at[TW_FIGURE_BYTES];
	const struct tw_capture_stream *stream = tw_lock_thread(&view->slowest.waits.locks, wait->by.thread);
	tw_out_format(out, "    %8s  %-*s", "", COUNT_COLUMNS, "");
	if (!stream) {
		tw_out_text(out, is_condition ? "  no signal was seen\n" : "  its holder is not known\n");
		return;
	}
	tw_thread_text(view->printer->capture, stream, name);
	tw_out_text(out, is_condition ? "  signalled by " : "  held by ");
	if (wait->by.function != TW_PLACES_UNKNOWN) {
		put_name(view, wait->by.function);
		tw_out_format(out, ", from %s", since_zero(view, at, wait->by.call_ns));
	} else {
		tw_out_text(out, "an unknown call");
	}
	tw_out_text(out, " on ");
	tw_out_name(out, name);
	tw_out_text(out, "\n");
}

static void put_waits(struct view *view, const struct tw_slow_call *call)
{
	struct tw_out *out = view->printer->out;
	char figure[TW_FIGURE_BYTES], other[TW_FIGURE_BYTES];
	uint64_t shown = 0, ns = 0;
	for (; shown < call->wait_count && shown < TW_SLOW_WAITS_MAX; shown++) {
		const struct tw_slow_wait *wait = &call->waits[shown];
		const struct tw_lock_row *lock = &view->slowest.waits.locks.locks[wait->lock];
		if (wait->ns < call->total_ns / LEAST_PART)
			break;
		ns += wait->ns;
		tw_out_format(out, "    %8s  %-*swaited for ", tw_figure_duration(figure, wait->ns), COUNT_COLUMNS, "");
		put_lock(view, lock);
		tw_out_format(out, ", from %s\n", since_zero(view, other, wait->begin_ns));
		put_holder(view, wait, lock->kind == TW_LOCK_CONDITION);
	}
	if (shown < call->wait_count)
		tw_out_format(out, "    %8s  %-*s%s for locks\n", tw_figure_duration(figure, call->wait_ns - ns),
			      COUNT_COLUMNS, "",
			      tw_figure_of(other, call->wait_count - shown, shown ? "wait more" : "wait",
					   shown ? "waits more" : "waits"));
}

/* "ran 12 ms, preempted 3 ms, off 102 ms": nothing if that is not known. */
static void put_states(const struct view *view, const struct tw_slow_call *call)
{
	const struct tw_state_sums *states = &view->slowest.nodes[call->node].states;
	uint64_t known_ns = tw_state_sums_all(states);
	char ran[TW_FIGURE_BYTES], preempted[TW_FIGURE_BYTES], off[TW_FIGURE_BYTES], unknown[TW_FIGURE_BYTES];
	if (!known_ns)
		return;
	tw_out_format(view->printer->out, "              ran %s, preempted %s, off %s",
		      tw_figure_duration(ran, states->ns[TW_STATE_RAN]),
		      tw_figure_duration(preempted, states->ns[TW_STATE_PREEMPTED]),
		      tw_figure_duration(off, states->ns[TW_STATE_OFF]));
	if (call->total_ns > known_ns + call->total_ns / UNKNOWN_PART)
		tw_out_format(view->printer->out, ", not known %s",
			      tw_figure_duration(unknown, call->total_ns - known_ns));
	tw_out_text(view->printer->out, "\n");
}

static void put_call(struct view *view, const struct tw_slow_call *call, uint32_t number)
{
	struct tw_out *out = view->printer->out;
	const struct texts *texts = call->user;
	char figure[TW_FIGURE_BYTES], from[TW_FIGURE_BYTES];
	tw_out_format(out, "\n%2u %c%8s  ", number,
		      call->is_lossy	? '?'
		      : call->before_ns ? '>'
					: ' ',
		      tw_figure_duration(figure, call->total_ns));
	put_name(view, call->function);
	const char *arguments = texts && texts->arguments ? texts->arguments : "";
	tw_out_text(out, arguments + (*arguments == ' '));
	const char *result = texts && texts->result ? texts->result : end_of(call);
	bool has_arrow = strncmp(result, " -> ", 4) == 0;
	tw_out_text(out, has_arrow ? " = " : "");
	tw_out_text(out, result + (has_arrow ? 4 : 0));
	tw_out_format(out, "\n              %s its own; from %s on ", tw_figure_duration(figure, call->self_ns),
		      since_zero(view, from, call->start_ns));
	uint64_t tracer_ns = tw_slowest_tracer_ns(&view->slowest, call);
	tw_out_name(out, call->process ? call->process : "?");
	if (call->callers && *call->callers) {
		tw_out_text(out, ", in ");
		tw_out_text(out, call->callers);
	}
	tw_out_text(out, "\n");
	put_states(view, call);
	if (tw_tracer_cost_matters(tracer_ns, call->total_ns))
		tw_out_format(out, "    %8s  %-*sat most of the whole are the tracer's own cost\n",
			      tw_figure_duration(figure, tracer_ns), COUNT_COLUMNS, "");
	view->left_out = 0;
	put_inside(view, call, call->node, 0);
	if (view->left_out)
		tw_out_format(out, "    %8s  %-*s| %s\n", "", COUNT_COLUMNS, "",
			      tw_figure_of(figure, view->left_out, "call more", "calls more"));
	put_waits(view, call);
}

static void put_text(struct view *view)
{
	const struct tw_slowest *slowest = &view->slowest;
	struct tw_out *out = view->printer->out;
	char count[TW_FIGURE_BYTES], all[TW_FIGURE_BYTES];
	tw_out_format(out, "The %s of %s, by %s.\n",
		      slowest->count == 1 ? "slowest" : tw_figure_of(count, slowest->count, "slowest", "slowest"),
		      tw_figure_of(all, slowest->compared, "call", "calls"),
		      slowest->wanted ? "their whole time"
		      : slowest->hides_waits
			      ? "their own time, without functions that wait (--show-waits has them, too)"
			      : "their own time; those of -t by their whole time");
	for (uint32_t i = 0; i < slowest->count; i++)
		put_call(view, &slowest->calls[i], i + 1);
}

static void put_json(const struct view *view)
{
	for (uint32_t i = 0; i < view->slowest.count; i++) {
		struct tw_json json = {.out = view->printer->out};
		tw_slowest_json(&json, &view->slowest, i, view->zero_ns, 0);
	}
}

int tw_print_slowest(struct tw_printer *printer, const struct tw_capture_filter *filter,
		     const struct tw_print_slowest *request)
{
	struct view view = {.printer = printer,
			    .slowest = {.most = request->count,
					.when = printer->when,
					.hides_waits = request->hides_waits,
					.on_event = keep_text,
					.context = &view}};
	struct tw_capture_info info;
	tw_capture_info(printer->capture, &info);
	view.zero_ns = info.zero_ns;
	int error = tw_slowest_make(&view.slowest, (struct tw_capture *)printer->capture, filter);
	if (error == 0 && request->is_json)
		put_json(&view);
	else if (error == 0 && view.slowest.count)
		put_text(&view);
	else if (error == 0 && view.slowest.compared && request->hides_waits)
		tw_say("all calls that have a duration are of functions that wait: --show-waits shows them.");
	if (error == 0 && view.slowest.is_full)
		tw_say("what the calls did is cut: they are of more than %u paths.", TW_SLOWEST_NODES_MAX);
	if (error == 0 && view.shows_locks && view.slowest.waits.locks.wordless)
		tw_say("waits for locks are not known: calls to take them lack arguments or values; record with --locks.");
	printer->shown = view.slowest.count;
	for (uint32_t i = 0; i < view.slowest.count; i++) {
		struct texts *texts = view.slowest.calls[i].user;
		free(texts ? texts->arguments : NULL);
		free(texts ? texts->result : NULL);
		free(texts);
	}
	tw_lock_names_forget();
	tw_slowest_free(&view.slowest);
	return error;
}
