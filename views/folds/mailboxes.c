/* SPDX-License-Identifier: Apache-2.0 */
/* mailboxes.c - follows the queue and the state of each process by its events. */
#include "views/folds/mailboxes.h"
#include "views/folds/mailboxes_sends.h"
#include "views/names/missing.h"
#include "views/names/names.h"
#include "views/names/payload.h"
#include "views/output/output.h"
#include "base/map.h"
#include "base/grow.h"

#include "tracewheel/error.h"

#include <stdlib.h>

enum { PLACE_OTHER, PLACE_TAKE, PLACE_WAIT };

/* ---- places ---- */

static uint8_t mark(const void *context, uint32_t image, const struct tw_capture_place *place)
{
	const struct tw_capture_function *function = place->function;
	if (place->kind != TW_CAPTURE_DECLARED || !function || !function->module ||
	    strcmp(function->module->name, "mailbox") != 0)
		return PLACE_OTHER;
	if (function->arity == 1 && strcmp(function->name, "take") == 0)
		return PLACE_TAKE;
	return function->arity == 0 && strcmp(function->name, "wait") == 0 ? PLACE_WAIT : PLACE_OTHER;
}

bool tw_mailboxes_wants_place(const struct tw_capture_place *place)
{
	return mark(NULL, 0, place) != PLACE_OTHER;
}

static void look_at_image(struct tw_mailboxes *mailboxes, uint32_t number)
{
	struct tw_mailbox_image *image = &mailboxes->images[number];
	const struct tw_marks_image *marks = &mailboxes->places.images[number];
	image->has_takes = memchr(marks->places, PLACE_TAKE, marks->count);
	image->has_waits = memchr(marks->places, PLACE_WAIT, marks->count);
	image->is_erlang_vm = !image->has_takes && tw_names_is_erlang_vm(mailboxes->capture, number);
	mailboxes->are_erlang_vms &= image->is_erlang_vm;
	mailboxes->has_takes |= image->has_takes;
	mailboxes->has_waits |= image->has_waits;
}

uint64_t tw_mailboxes_kinds(void)
{
	uint64_t kinds = UINT64_C(1) << TW_CAPTURE_CALL;
	for (unsigned kind = TW_CAPTURE_SEND; kind <= TW_CAPTURE_EXIT; kind++)
		kinds |= UINT64_C(1) << kind;
	for (unsigned kind = TW_CAPTURE_IN; kind <= TW_CAPTURE_OUT_EXITED; kind++)
		kinds |= UINT64_C(1) << kind;
	return kinds;
}

/* ---- processes ---- */

static struct tw_mailbox_process *process_of_pid(struct tw_mailboxes *mailboxes, uint32_t image, uint32_t tracee_id,
						 uint32_t number, uint32_t serial)
{
	uint64_t key = tw_hash_word((uint64_t)serial << 32 | number, image);
	uint32_t at = tw_map_find(&mailboxes->by_pid, key, i,
				  mailboxes->processes[i]->pid_number == number &&
					  mailboxes->processes[i]->pid_serial == serial &&
					  mailboxes->processes[i]->image == image);
	if (at != TW_MAP_NONE)
		return mailboxes->processes[at];
	if (!tw_grow(mailboxes->processes, mailboxes->count, mailboxes->capacity))
		return NULL;
	struct tw_mailbox_process *process = calloc(1, sizeof *process);
	if (!process || !tw_map_add(&mailboxes->by_pid, key, mailboxes->count)) {
		free(process);
		return NULL;
	}
	process->image = image;
	process->tracee_id = tracee_id;
	process->pid_number = number;
	process->pid_serial = serial;
	process->number = mailboxes->count;
	process->losses = image < mailboxes->image_count ? mailboxes->images[image].losses : 0;
	mailboxes->processes[mailboxes->count++] = process;
	return process;
}

struct tw_mailbox_process *tw_mailboxes_process(struct tw_mailboxes *mailboxes, uint32_t image, uint32_t tracee_id)
{
	uint64_t key = (uint64_t)image << 32 | tracee_id;
	uint32_t at = tw_map_get(&mailboxes->by_tracee, key);
	if (at != TW_MAP_NONE)
		return mailboxes->processes[at];
	const struct tw_capture_tracee *tracee = tw_capture_tracee(mailboxes->capture, image, tracee_id);
	struct tw_mailbox_process *process =
		process_of_pid(mailboxes, image, tracee_id, tracee ? tracee->pid_number : tracee_id,
			       tracee ? tw_name_serial(tracee) : 0);
	if (!process || !tw_map_add(&mailboxes->by_tracee, key, process->number))
		return NULL;
	process->tracee_id = tracee_id;
	return process;
}

/* ---- queues ---- */

static struct tw_message *message_at(struct tw_mailbox_process *process, uint32_t position)
{
	return &process->messages[(process->first + position) & (process->capacity - 1)];
}

static bool push(struct tw_mailboxes *mailboxes, struct tw_mailbox_process *process, const struct tw_message *message)
{
	if (mailboxes->held >= TW_MAILBOX_MESSAGES_MAX) {
		/* The newest message is left out: when it is taken, it will match none. */
		mailboxes->left_out++;
		process->is_unsure = true;
		return true;
	}
	if (process->count == process->capacity) {
		uint32_t capacity = process->capacity ? process->capacity * 2 : 4;
		struct tw_message *grown = malloc(capacity * sizeof *grown);
		if (!grown)
			return false;
		for (uint32_t i = 0; i < process->count; i++)
			grown[i] = *message_at(process, i);
		free(process->messages);
		process->messages = grown;
		process->first = 0;
		process->capacity = capacity;
	}
	*message_at(process, process->count++) = *message;
	mailboxes->held++;
	return true;
}

/* Moves the shorter side of the ring. */
static struct tw_message pull(struct tw_mailboxes *mailboxes, struct tw_mailbox_process *process, uint32_t position)
{
	struct tw_message message = *message_at(process, position);
	if (position < process->count / 2) {
		for (uint32_t i = position; i > 0; i--)
			*message_at(process, i) = *message_at(process, i - 1);
		process->first = (process->first + 1) & (process->capacity - 1);
	} else {
		for (uint32_t i = position + 1; i < process->count; i++)
			*message_at(process, i - 1) = *message_at(process, i);
	}
	process->count--;
	mailboxes->held--;
	return message;
}

static void empty(struct tw_mailboxes *mailboxes, struct tw_mailbox_process *process, uint64_t now_ns)
{
	mailboxes->held -= process->count;
	process->count = process->first = 0;
	if (mailboxes->calls.length)
		mailboxes->calls.length(mailboxes->calls.context, process, now_ns);
}

static void take(struct tw_mailboxes *mailboxes, struct tw_mailbox_process *process, uint64_t position, uint64_t now_ns)
{
	process->taken++;
	process->run_takes++;
	mailboxes->taken++;
	if (position >= process->count) {
		mailboxes->unmatched++;
		return;
	}
	struct tw_message message = pull(mailboxes, process, (uint32_t)position);
	uint64_t wait_ns = now_ns > message.arrived_ns ? now_ns - message.arrived_ns : 0;
	process->wait_ns += wait_ns;
	process->wait_max_ns = wait_ns > process->wait_max_ns ? wait_ns : process->wait_max_ns;
	if (mailboxes->calls.length)
		mailboxes->calls.length(mailboxes->calls.context, process, now_ns);
	if (mailboxes->calls.taken)
		mailboxes->calls.taken(mailboxes->calls.context, process, &message, now_ns, !process->is_unsure);
}

/* ---- stretches ---- */

/* The tracer's own time in a run, on the thread that ran it. */
static uint64_t own_time(const struct tw_mailboxes *mailboxes, const struct tw_mailbox_process *process,
			 const struct tw_stretch *run)
{
	uint64_t until_ns = process->is_ended && run->to_ns == process->ended_ns
				    ? process->ended_own_ns
				    : tw_own_times_until(&mailboxes->own_times, process->run_stream, run->to_ns);
	uint64_t ns = until_ns - process->run_own_ns;
	return ns < run->to_ns - run->from_ns ? ns : run->to_ns - run->from_ns;
}

static void end_stretch(struct tw_mailboxes *mailboxes, struct tw_mailbox_process *process, struct tw_stretch stretch)
{
	if (!stretch.from_ns || stretch.to_ns <= stretch.from_ns)
		return;
	stretch.process = process->number;
	if (stretch.doing == TW_DOING_RUN)
		stretch.own_ns = own_time(mailboxes, process, &stretch);
	process->doing_ns[stretch.doing] += stretch.to_ns - stretch.from_ns - stretch.own_ns;
	if (mailboxes->stretches) {
		uint64_t number = ++mailboxes->stretch_count;
		uint64_t page = number / TW_MAILBOX_PAGE;
		if (number % TW_MAILBOX_PAGE == 0) {
			/* The page that is overwritten next. */
			uint64_t pages = (mailboxes->stretch_mask + 1) / TW_MAILBOX_PAGE;
			if (page >= pages && mailboxes->calls.forgets)
				mailboxes->calls.forgets(mailboxes->calls.context,
							 mailboxes->page_ns[(page + 2) % pages]);
			mailboxes->page_ns[page % pages] = mailboxes->last_ns;
		}
		stretch.before = process->last;
		mailboxes->stretches[number & mailboxes->stretch_mask] = stretch;
		process->last = number;
	}
	if (mailboxes->calls.stretch)
		mailboxes->calls.stretch(mailboxes->calls.context, process, &stretch);
}

/* The process was out until now. */
static void end_out(struct tw_mailboxes *mailboxes, struct tw_mailbox_process *process, uint64_t now_ns)
{
	struct tw_stretch stretch = {.from_ns = process->since_ns,
				     .to_ns = now_ns,
				     .by = TW_MAILBOX_NOBODY,
				     .doing = TW_DOING_READY};
	bool has_waits = mailboxes->images[process->image].has_waits;
	bool waited = !process->is_new && (has_waits ? process->waits : process->woken_ns != 0);
	if (waited && process->woken_ns) {
		uint64_t woken_ns = process->woken_ns > stretch.from_ns ? process->woken_ns : stretch.from_ns;
		end_stretch(mailboxes, process,
			    (struct tw_stretch){.from_ns = stretch.from_ns,
						.to_ns = woken_ns,
						.by = process->woken_by,
						.sent_ns = process->woken_sent_ns,
						.doing = TW_DOING_BLOCKED});
		stretch.from_ns = stretch.from_ns ? woken_ns : 0;
	} else if (waited) {
		stretch.doing = TW_DOING_BLOCKED;
	}
	end_stretch(mailboxes, process, stretch);
}

static void on_in(struct tw_mailboxes *mailboxes, struct tw_mailbox_process *process,
		  const struct tw_capture_event *event)
{
	uint64_t now_ns = event->time_ns;
	if (process->is_out)
		end_out(mailboxes, process, now_ns);
	else if (process->doing == TW_DOING_RUN)
		end_stretch(mailboxes, process, (struct tw_stretch){.from_ns = process->since_ns, .to_ns = now_ns});
	mailboxes->runs++;
	process->doing = TW_DOING_RUN;
	process->is_out = process->is_new = process->waits = false;
	process->since_ns = now_ns;
	process->run_stream = event->stream;
	process->run_own_ns = tw_own_times_until(&mailboxes->own_times, event->stream, now_ns);
	process->woken_ns = 0;
	process->run_takes = 0;
	while (!mailboxes->images[process->image].has_takes && process->count)
		take(mailboxes, process, 0, now_ns);
}

static void on_out(struct tw_mailboxes *mailboxes, struct tw_mailbox_process *process, uint64_t now_ns)
{
	/* Out twice in a row: the events in between were lost. */
	end_stretch(mailboxes, process,
		    (struct tw_stretch){.from_ns = process->since_ns,
					.to_ns = now_ns,
					.takes = process->run_takes,
					.doing = process->is_out ? TW_DOING_UNKNOWN : process->doing});
	process->doing = TW_DOING_UNKNOWN;
	process->is_out = true;
	process->since_ns = now_ns;
	if (!mailboxes->images[process->image].has_waits)
		process->woken_ns = 0;
}

static void on_end(struct tw_mailboxes *mailboxes, struct tw_mailbox_process *process, uint64_t now_ns)
{
	if (process->is_ended)
		return;
	process->is_ended = true;
	process->ended_ns = now_ns;
	process->ended_own_ns = tw_own_times_until(&mailboxes->own_times, process->run_stream, now_ns);
	/* A process that never took any message does not report takes. */
	mailboxes->dropped += process->taken || process->has_waited ? process->count : 0;
	if (process->count)
		empty(mailboxes, process, now_ns);
}

/* ---- events ---- */

/* In an Erlang VM a message wakes its receiver when it is sent. */
static bool wake_receiver(struct tw_mailboxes *mailboxes, const struct tw_mailbox_process *sender,
			  const struct tw_capture_event *event)
{
	uint32_t number, serial;
	if (!tw_print_receiver(event, &number, &serial) || serial == TW_SERIAL_OF_PORT)
		return true;
	struct tw_mailbox_process *process = process_of_pid(mailboxes, event->image, TW_CAPTURE_NONE, number, serial);
	if (process && process->is_out && !process->woken_ns) {
		process->woken_ns = process->woken_sent_ns = event->time_ns;
		process->woken_by = sender->number;
	}
	return process != NULL;
}

static bool on_receive(struct tw_mailboxes *mailboxes, struct tw_mailbox_process *process,
		       const struct tw_capture_event *event)
{
	struct tw_mailbox_send send;
	struct tw_message message = {.arrived_ns = event->time_ns, .sender = TW_MAILBOX_NOBODY};
	if (tw_mailbox_sends_match(mailboxes->sends, event, process, &send)) {
		message.sender = send.sender;
		message.sent_ns = send.sent_ns;
	} else if (tw_mailbox_is_timeout(event)) {
		struct tw_stretch *last = mailboxes->stretches && process->last
						  ? &mailboxes->stretches[process->last & mailboxes->stretch_mask]
						  : NULL;
		mailboxes->timeouts++;
		if (last && last->process == process->number && last->doing == TW_DOING_BLOCKED &&
		    last->by == TW_MAILBOX_NOBODY && last->to_ns == process->since_ns)
			last->by = TW_MAILBOX_TIMER;
		return true;
	}
	if (!process->woken_ns && (mailboxes->images[process->image].has_waits ? process->waits : process->is_out)) {
		process->woken_ns = event->time_ns;
		process->woken_by = message.sender;
		process->woken_sent_ns = message.sent_ns;
	}
	bool is_erlang_vm = mailboxes->images[process->image].is_erlang_vm;
	if (is_erlang_vm && message.sent_ns && message.sent_ns < event->time_ns)
		message.arrived_ns = message.sent_ns;
	process->received++;
	message.number = ++mailboxes->messages;
	message.length = process->count + 1;
	message.taken_before = process->taken;
	if (process->is_ended)
		return true;
	if (!push(mailboxes, process, &message))
		return false;
	if (mailboxes->calls.length)
		mailboxes->calls.length(mailboxes->calls.context, process, event->time_ns);
	if (is_erlang_vm || (!mailboxes->images[process->image].has_takes && process->doing == TW_DOING_RUN))
		take(mailboxes, process, 0, event->time_ns);
	return true;
}

/* After a gap the queues and states of an image's processes are not known. */
static void on_loss(struct tw_mailboxes *mailboxes, const struct tw_capture_event *event)
{
	struct tw_missing_loss loss;
	tw_missing_loss(mailboxes->capture, event, &loss);
	mailboxes->lost += loss.sum;
	mailboxes->overwritten += loss.overwritten;
	mailboxes->images[event->image].losses++;
}

static void see_loss(struct tw_mailboxes *mailboxes, struct tw_mailbox_process *process, uint64_t now_ns)
{
	process->losses = mailboxes->images[process->image].losses;
	process->is_unsure = true;
	mailboxes->unfollowed += process->count;
	if (process->count)
		empty(mailboxes, process, now_ns);
}

static void on_call(struct tw_mailboxes *mailboxes, struct tw_mailbox_process *process,
		    const struct tw_capture_event *event)
{
	unsigned says = tw_marks_of(&mailboxes->places, event);
	unsigned strict = (event->flags & TW_CAPTURE_STAMP_MASK) == 2;
	if (says == PLACE_TAKE && event->payload_words > strict &&
	    !(event->flags & (TW_CAPTURE_FLAG_TERMS | TW_CAPTURE_FLAG_EXTRA))) {
		process->waits = false;
		take(mailboxes, process, event->payload[strict], event->time_ns);
	} else if (says == PLACE_WAIT) {
		process->waits = process->has_waited = true;
		process->is_unsure = false;
		process->woken_ns = 0;
	}
}

bool tw_mailboxes_event(struct tw_mailboxes *mailboxes, const struct tw_capture_event *event)
{
	if (event->image >= mailboxes->image_count)
		return true;
	mailboxes->last_ns = event->time_ns > mailboxes->last_ns ? event->time_ns : mailboxes->last_ns;
	if (event->kind == TW_CAPTURE_LOSS) {
		on_loss(mailboxes, event);
		return true;
	}
	if (event->kind == TW_CAPTURE_OWN_TIME)
		tw_own_times_add(&mailboxes->own_times, event);
	if (event->kind > TW_CAPTURE_OUT_EXITED || !(tw_mailboxes_kinds() >> event->kind & 1) ||
	    (event->kind == TW_CAPTURE_CALL && !tw_marks_of(&mailboxes->places, event)))
		return true;
	struct tw_mailbox_process *process = tw_mailboxes_process(mailboxes, event->image, event->tracee_id);
	if (!process)
		return false;
	if (process->losses != mailboxes->images[event->image].losses)
		see_loss(mailboxes, process, event->time_ns);
	/* A port has no mailbox. */
	if (process->pid_serial == TW_SERIAL_OF_PORT && event->kind != TW_CAPTURE_SEND)
		return true;
	switch (event->kind) {
	case TW_CAPTURE_CALL: on_call(mailboxes, process, event); break;
	case TW_CAPTURE_SEND:
		process->sent++;
		tw_mailbox_sends_add(mailboxes->sends, event, process);
		return !mailboxes->images[event->image].is_erlang_vm || wake_receiver(mailboxes, process, event);
	case TW_CAPTURE_RECEIVE: return on_receive(mailboxes, process, event);
	case TW_CAPTURE_SPAWNED:
		/* It will be scheduled in later. */
		process->born_ns = process->since_ns = event->time_ns;
		process->is_out = process->is_new = true;
		break;
	case TW_CAPTURE_EXIT: on_end(mailboxes, process, event->time_ns); break;
	case TW_CAPTURE_IN:
	case TW_CAPTURE_IN_EXITING: on_in(mailboxes, process, event); break;
	case TW_CAPTURE_OUT:
	case TW_CAPTURE_OUT_EXITING: on_out(mailboxes, process, event->time_ns); break;
	case TW_CAPTURE_OUT_EXITED:
		on_out(mailboxes, process, event->time_ns);
		on_end(mailboxes, process, event->time_ns);
		process->since_ns = 0;
		break;
	default: break;
	}
	return true;
}

void tw_mailboxes_finish(struct tw_mailboxes *mailboxes)
{
	for (uint32_t i = 0; i < mailboxes->count; i++) {
		struct tw_mailbox_process *process = mailboxes->processes[i];
		/* The last run of a process that has exited need not be reported. */
		uint64_t end_ns = process->is_ended ? process->ended_ns : mailboxes->last_ns;
		if (process->is_out)
			end_out(mailboxes, process, end_ns);
		else
			end_stretch(mailboxes, process,
				    (struct tw_stretch){.from_ns = process->since_ns,
							.to_ns = end_ns,
							.takes = process->run_takes,
							.doing = process->doing});
		process->since_ns = 0;
		process->is_out = false;
	}
}

/* ---- life ---- */

int tw_mailboxes_init(struct tw_mailboxes *mailboxes, const struct tw_capture *capture, uint64_t history)
{
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	*mailboxes = (struct tw_mailboxes){.capture = capture,
					   .image_count = info.images,
					   .are_erlang_vms = info.images != 0};
	mailboxes->images = calloc(info.images + (size_t)1, sizeof *mailboxes->images);
	mailboxes->sends = tw_mailbox_sends_create();
	bool is_done = mailboxes->images && mailboxes->sends && tw_own_times_init(&mailboxes->own_times, capture) &&
		       tw_marks_make(&mailboxes->places, capture, mark, NULL);
	for (uint32_t i = 0; is_done && i < info.images; i++)
		look_at_image(mailboxes, i);
	if (is_done && history) {
		history = history < 2 * TW_MAILBOX_PAGE ? 2 * TW_MAILBOX_PAGE : history;
		mailboxes->stretches = calloc(history, sizeof *mailboxes->stretches);
		mailboxes->page_ns = calloc(history / TW_MAILBOX_PAGE, sizeof *mailboxes->page_ns);
		mailboxes->stretch_mask = history - 1;
		is_done = mailboxes->stretches && mailboxes->page_ns;
	}
	return is_done ? 0 : TW_ENOMEM;
}

void tw_mailboxes_free(struct tw_mailboxes *mailboxes)
{
	for (uint32_t i = 0; i < mailboxes->count; i++) {
		free(mailboxes->processes[i]->messages);
		free(mailboxes->processes[i]);
	}
	tw_marks_free(&mailboxes->places);
	tw_mailbox_sends_destroy(mailboxes->sends);
	tw_own_times_free(&mailboxes->own_times);
	free(mailboxes->images);
	free(mailboxes->processes);
	tw_map_fini(&mailboxes->by_tracee);
	tw_map_fini(&mailboxes->by_pid);
	free(mailboxes->stretches);
	free(mailboxes->page_ns);
	*mailboxes = (struct tw_mailboxes){0};
}
