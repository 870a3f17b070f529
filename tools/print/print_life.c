/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_life.c - `print --process`: the life of one process, over all threads that ran it.
 *
 * Prints the events of the process, and after each what it ends: a run, a time in which the process was ready or
 * blocked, a message's time in the queue, a call. The events of all other processes are read as well, to find the
 * senders of messages.
 */
#include "views/folds/mailboxes.h"
#include "views/names/missing.h"
#include "views/folds/pass.h"
#include "tools/print/print.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NOTE_BYTES 600
#define TEXTS	   1024 /* messages whose text is kept */
#define TEXT_BYTES 80
#define CALLS_MAX  1024 /* open calls that are followed */
#define NAMED_MAX  4	/* the most processes with the pid or name that are listed first */

struct life {
	struct tw_mailboxes mailboxes;
	const char *wanted;
	const struct tw_capture_filter *filter;
	bool is_wanted_now; /* the current event belongs to it */
	char note[NOTE_BYTES];
	size_t note_bytes;
	struct {
		uint64_t number;
		char text[TEXT_BYTES];
	} texts[TEXTS];
	struct {
		uint64_t since_ns;
		uint32_t place;
	} calls[CALLS_MAX];
	unsigned call_count;
};

/* ---- selecting the process ---- */

static bool is_wanted(const struct life *life, struct tw_mailbox_process *process)
{
	if (process->user)
		return process->user == life;
	bool is = tw_mailboxes_is_called(&life->mailboxes, process, life->wanted);
	process->user = is ? (void *)(uintptr_t)life : (void *)process;
	return is;
}

/* ---- notes ---- */

static void add(struct life *life, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct life *life, const char *format, ...)
{
	va_list list;
	size_t capacity = sizeof life->note - life->note_bytes;
	va_start(list, format);
	int bytes = vsnprintf(life->note + life->note_bytes, capacity, format, list);
	va_end(list);
	life->note_bytes += bytes < 0 ? 0 : (size_t)bytes < capacity ? (size_t)bytes : capacity - 1;
}

static void on_stretch(void *context, struct tw_mailbox_process *process, const struct tw_stretch *stretch)
{
	struct life *life = context;
	char figure[TW_FIGURE_BYTES], by[TW_THREAD_TEXT_BYTES];
	static const char *const words[TW_DOINGS] = {"not known: ", "ran ", "was ready ", "was blocked "};
	if (!is_wanted(life, process))
		return;
	add(life, "%s%s%s", life->note_bytes ? ", " : "", words[stretch->doing],
	    tw_figure_duration(figure, stretch->to_ns - stretch->from_ns - stretch->own_ns));
	if (stretch->doing != TW_DOING_BLOCKED || stretch->by == TW_MAILBOX_NOBODY)
		return;
	tw_mailboxes_name(&life->mailboxes, stretch->by, by);
	add(life, " by %s", by);
}

static void on_taken(void *context, struct tw_mailbox_process *process, const struct tw_message *message,
		     uint64_t now_ns, bool is_sure)
{
	struct life *life = context;
	char figure[TW_FIGURE_BYTES], sender[TW_THREAD_TEXT_BYTES];
	if (!is_wanted(life, process))
		return;
	tw_mailboxes_name(&life->mailboxes, message->sender, sender);
	bool has_text = life->texts[message->number % TEXTS].number == message->number;
	add(life, "%s%s of %s, %s in the queue%s", life->note_bytes ? ", " : "",
	    has_text ? life->texts[message->number % TEXTS].text : "a message", sender,
	    tw_figure_duration(figure, now_ns > message->arrived_ns ? now_ns - message->arrived_ns : 0),
	    is_sure ? "" : " (?)");
}

static void keep_text(struct life *life, const struct tw_capture_event *event)
{
	uint64_t number = life->mailboxes.messages;
	struct tw_message_payload payload;
	struct tw_term term;
	tw_print_payload_take(event, &payload);
	if (!payload.has_terms || !tw_print_next_term(&payload, &term))
		return;
	life->texts[number % TEXTS].number = number;
	tw_term_format(term, TW_PRINT_PRETTY | TW_PRINT_NODES, life->texts[number % TEXTS].text, TEXT_BYTES);
}

/*
 * Finds the duration of a call: a return ends the innermost open call of its place, and calls open inside that one
 * end without a return.
 */
static void follow_calls(struct life *life, const struct tw_capture_event *event)
{
	char figure[TW_FIGURE_BYTES];
	if (event->kind == TW_CAPTURE_CALL) {
		if (life->call_count < CALLS_MAX) {
			life->calls[life->call_count].place = event->id;
			life->calls[life->call_count++].since_ns = event->time_ns;
		}
		return;
	}
	unsigned at = life->call_count;
	while (at > 0 && life->calls[at - 1].place != event->id)
		at--;
	if (!at)
		return;
	life->call_count = at - 1;
	add(life, "%stook %s", life->note_bytes ? ", " : "",
	    tw_figure_duration(figure, event->time_ns - life->calls[at - 1].since_ns));
}

/* ---- reading ---- */

static bool wants_place(void *context, uint32_t image, const struct tw_capture_place *place)
{
	const struct life *life = context;
	return !life->filter->wants_place || life->filter->wants_place(life->filter->context, image, place) ||
	       tw_mailboxes_wants_place(place);
}

static bool sums_place(void *context, uint32_t image, const struct tw_capture_place *place)
{
	(void)context;
	(void)image;
	return tw_mailboxes_wants_place(place);
}

static int sum(void *self, const struct tw_capture_event *event)
{
	return tw_mailboxes_event(self, event) ? 0 : TW_ENOMEM;
}

static void introduce(struct tw_out *out, const struct life *life, const struct tw_mailbox_process *process,
		      uint64_t zero_ns)
{
	char name[TW_THREAD_TEXT_BYTES], a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], c[TW_FIGURE_BYTES];
	char gone[TW_MISSING_TEXT_BYTES];
	tw_mailboxes_name(&life->mailboxes, process->number, name);
	tw_out_format(out, "%s:", name);
	if (process->born_ns)
		tw_out_format(out, " spawned at %.9f s,", (double)(process->born_ns - zero_ns) / 1e9);
	if (process->ended_ns)
		tw_out_format(out, " exited at %.9f s,", (double)(process->ended_ns - zero_ns) / 1e9);
	tw_out_format(out, " sent %s, received %s", tw_figure_count(a, process->sent),
		      tw_figure_count(b, process->received));
	if (life->mailboxes.has_takes && process->taken)
		tw_out_format(out, ", took %s (longest in the queue %s)", tw_figure_count(a, process->taken),
			      tw_figure_duration(b, process->wait_max_ns));
	if (life->mailboxes.runs)
		tw_out_format(out, "\n    ran %s, was ready %s, was blocked %s",
			      tw_figure_duration(a, process->doing_ns[TW_DOING_RUN]),
			      tw_figure_duration(b, process->doing_ns[TW_DOING_READY]),
			      tw_figure_duration(c, process->doing_ns[TW_DOING_BLOCKED]));
	tw_out_text(out, "\n");
	if (life->mailboxes.lost || life->mailboxes.overwritten)
		tw_out_format(out,
			      "    %s, of all processes: messages marked (?) may be others, and times cross gaps\n",
			      tw_missing_gone(life->mailboxes.lost, life->mailboxes.overwritten, gone));
}

struct printing {
	struct life *life;
	struct tw_printer *printer;
	const struct tw_print_format *format;
	const struct tw_print_life *request;
	uint64_t left;
};

static void print_event(struct printing *printing, const struct tw_capture_event *event)
{
	struct tw_out *out = printing->printer->out;
	struct life *life = printing->life;
	printing->format->event(printing->printer, event);
	printing->printer->shown++;
	printing->left--;
	if (!printing->request->has_notes || !life->note_bytes || !out->used)
		return;
	out->used--;
	tw_out_text(out, "   -- ");
	tw_out_bytes(out, life->note, life->note_bytes);
	tw_out_text(out, "\n");
}

static int print_each(void *self, const struct tw_capture_event *event)
{
	struct printing *printing = self;
	struct life *life = printing->life;
	bool is_in = event->time_ns >= printing->request->from_ns;
	life->note_bytes = 0;
	if (!printing->left || printing->printer->out->error)
		return TW_FOLD_DONE;
	if (!tw_mailboxes_event(&life->mailboxes, event))
		return TW_ENOMEM;
	if (event->kind == TW_CAPTURE_LOSS) {
		if (is_in)
			printing->format->loss(printing->printer, event);
		return 0;
	}
	struct tw_mailbox_process *process =
		event->kind == TW_CAPTURE_OWN_TIME || event->image >= life->mailboxes.image_count
			? NULL
			: tw_mailboxes_process(&life->mailboxes, event->image, event->tracee_id);
	if (!process || !is_wanted(life, process))
		return 0;
	if (event->kind == TW_CAPTURE_RECEIVE)
		keep_text(life, event);
	if (event->kind == TW_CAPTURE_CALL || event->kind == TW_CAPTURE_RETURN_FROM ||
	    event->kind == TW_CAPTURE_EXCEPTION_FROM)
		follow_calls(life, event);
	if (is_in)
		print_event(printing, event);
	return printing->left ? 0 : TW_FOLD_DONE;
}

int tw_print_life(struct tw_printer *printer, const struct tw_print_format *format,
		  const struct tw_capture_filter *selected, const struct tw_print_life *request, uint64_t limit)
{
	struct tw_capture *capture = (struct tw_capture *)printer->capture;
	struct life *life = calloc(1, sizeof *life);
	struct tw_fold sums = {.self = NULL,
			       .filter = {.kinds = tw_mailboxes_kinds(),
					  .wants_place = sums_place,
					  .to_ns = selected->to_ns,
					  .wants_own_time = true},
			       .see = sum};
	unsigned found = 0;
	if (!life)
		return TW_ENOMEM;
	life->wanted = request->process;
	life->filter = selected;
	int error = tw_mailboxes_init(&life->mailboxes, capture, 0);
	sums.self = &life->mailboxes;
	error = error ? error : tw_pass_one(capture, &sums, NULL);
	if (!error)
		tw_mailboxes_finish(&life->mailboxes);
	for (uint32_t i = 0; !error && i < life->mailboxes.count; i++) {
		if (!is_wanted(life, life->mailboxes.processes[i]) || found++ >= NAMED_MAX || !request->has_notes)
			continue;
		introduce(printer->out, life, life->mailboxes.processes[i], printer->start_ns);
	}
	tw_mailboxes_free(&life->mailboxes);
	error = error ? error : tw_mailboxes_init(&life->mailboxes, capture, 0);
	if (!error) {
		struct printing printing = {.life = life,
					    .printer = printer,
					    .format = format,
					    .request = request,
					    .left = limit};
		life->mailboxes.calls =
			(struct tw_mailbox_calls){.taken = on_taken, .stretch = on_stretch, .context = life};
		struct tw_fold fold = {.self = &printing, .filter = *selected, .see = print_each};
		fold.filter.from_ns = 0;
		fold.filter.wants_place = wants_place;
		fold.filter.context = life;
		fold.filter.wants_own_time = true;
		error = tw_pass_one(capture, &fold, NULL);
	}
	tw_mailboxes_free(&life->mailboxes);
	free(life);
	return error;
}
