/* SPDX-License-Identifier: Apache-2.0 */
/* activity.c - sums up messages and schedules, event by event. */
#include "views/folds/activity.h"
#include "views/folds/mailboxes_sends.h"
#include "views/names/threads.h"
#include "views/output/output.h"
#include "views/names/payload.h"
#include "views/names/names.h"
#include "base/map.h"
#include "base/grow.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- processes ---- */

/* The process of a pid; NULL: no memory. */
static struct tw_activity_process *find_process(struct tw_activity *activity, uint32_t image, uint32_t number,
						uint32_t serial)
{
	uint64_t key = tw_hash_word((uint64_t)serial << 32 | number, image);
	uint32_t at = tw_map_find(&activity->by_pid, key, i,
				  activity->processes[i]->pid_number == number &&
					  activity->processes[i]->pid_serial == serial &&
					  activity->processes[i]->image == image);
	if (at != TW_MAP_NONE)
		return activity->processes[at];
	if (!tw_grow(activity->processes, activity->process_count, activity->process_capacity))
		return NULL;
	struct tw_activity_process *process = calloc(1, sizeof *process);
	if (!process || !tw_map_add(&activity->by_pid, key, activity->process_count)) {
		free(process);
		return NULL;
	}
	process->image = image;
	process->pid_number = number;
	process->pid_serial = serial;
	process->number = activity->process_count;
	process->last_sender = TW_PLACES_NONE;
	activity->processes[activity->process_count++] = process;
	return process;
}

/* The process of an event; its stack keeps it. */
static struct tw_activity_process *process_of(struct tw_activity *activity, struct tw_stack *stack)
{
	if (stack->user)
		return stack->user;
	const struct tw_capture_tracee *tracee =
		stack->has_tracee ? tw_capture_tracee(activity->capture, stack->image, stack->tracee_id) : NULL;
	struct tw_activity_process *process =
		find_process(activity, stack->image, tracee ? tracee->pid_number : stack->tracee_id,
			     tracee ? tw_name_serial(tracee) : 0);
	char name[TW_THREAD_NAME_BYTES];
	if (process && !process->name && *tw_process_name(activity->capture, stack->image, stack->tracee_id, name))
		process->name = strdup(name);
	stack->user = process;
	return process;
}

/* ---- pairs ---- */

/* NULL: there are too many, or no memory. */
static struct tw_activity_pair *find_pair(struct tw_activity *activity, uint32_t sender, uint32_t receiver)
{
	uint64_t key = (uint64_t)sender << 32 | receiver;
	uint32_t at = tw_map_get(&activity->by_pair, key);
	if (at != TW_MAP_NONE)
		return &activity->pairs[at];
	if (activity->pair_count >= TW_ACTIVITY_PAIRS_MAX ||
	    !tw_grow(activity->pairs, activity->pair_count, activity->pair_capacity) ||
	    !tw_map_add(&activity->by_pair, key, activity->pair_count)) {
		activity->are_pairs_full = true;
		return NULL;
	}
	struct tw_activity_pair *pair = &activity->pairs[activity->pair_count++];
	*pair = (struct tw_activity_pair){.sender = sender, .receiver = receiver};
	return pair;
}

/* ---- events ---- */

static bool on_send(struct tw_activity *activity, const struct tw_capture_event *event,
		    struct tw_activity_process *sender)
{
	uint32_t number, serial;
	sender->sent++;
	activity->sent++;
	if (!tw_print_receiver(event, &number, &serial))
		return true;
	struct tw_activity_process *receiver = find_process(activity, event->image, number, serial);
	if (!receiver)
		return false;
	receiver->last_sender = sender->number;
	/* It is received when the process looks for messages: then it has run already. */
	if (!receiver->is_running && !receiver->waiting_ns && tw_names_is_erlang_vm(activity->capture, event->image))
		receiver->waiting_ns = event->time_ns;
	struct tw_activity_pair *pair = find_pair(activity, sender->number, receiver->number);
	if (pair)
		pair->messages++;
	return true;
}

static void remember_longest(struct tw_activity *activity, const struct tw_activity_wait *wait)
{
	uint32_t at = activity->longest_count;
	if (at == TW_ACTIVITY_LONGEST && activity->longest[at - 1].ns >= wait->ns)
		return;
	if (at < TW_ACTIVITY_LONGEST)
		activity->longest_count++;
	else
		at--;
	for (; at > 0 && activity->longest[at - 1].ns < wait->ns; at--)
		activity->longest[at] = activity->longest[at - 1];
	activity->longest[at] = *wait;
}

static bool on_in(struct tw_activity *activity, struct tw_activity_process *process,
		  const struct tw_capture_event *event)
{
	uint64_t now_ns = event->time_ns;
	process->is_running = true;
	process->since_ns = now_ns;
	process->stream = event->stream;
	process->own_ns = tw_own_times_until(&activity->own_times, event->stream, now_ns);
	if (!process->waiting_ns)
		return true;
	struct tw_activity_wait wait = {now_ns > process->waiting_ns ? now_ns - process->waiting_ns : 0,
					process->waiting_ns, process->last_sender, process->number};
	process->waiting_ns = 0;
	process->waits++;
	process->wait_ns += wait.ns;
	if (wait.ns > process->wait_max_ns)
		process->wait_max_ns = wait.ns;
	remember_longest(activity, &wait);
	struct tw_activity_pair *pair = find_pair(activity, wait.sender, wait.receiver);
	if (pair) {
		pair->waits++;
		pair->wait_ns += wait.ns;
		if (wait.ns > pair->wait_max_ns)
			pair->wait_max_ns = wait.ns;
	}
	return tw_histogram_add(&activity->waits, wait.ns);
}

/* A run whose beginning was not seen does not count. */
static bool on_out(struct tw_activity *activity, struct tw_activity_process *process,
		   const struct tw_capture_event *event)
{
	bool was_running = process->is_running;
	process->is_running = false;
	if (!was_running)
		return true;
	uint64_t ns = event->time_ns > process->since_ns ? event->time_ns - process->since_ns : 0;
	uint64_t own_ns = tw_own_times_until(&activity->own_times, process->stream, event->time_ns) - process->own_ns;
	/* The tracer's own time is not counted as the process'. */
	ns -= own_ns < ns ? own_ns : ns;
	process->runs++;
	process->run_ns += ns;
	if (ns > process->run_max_ns)
		process->run_max_ns = ns;
	/* A port runs inside the turn of a process, or of none. */
	if (process->pid_serial == TW_SERIAL_OF_PORT)
		return true;
	if (event->stream < activity->stream_count) {
		struct tw_activity_scheduler *scheduler =
			&activity->schedulers[activity->stream_schedulers[event->stream]];
		scheduler->runs++;
		scheduler->run_ns += ns;
	}
	return tw_histogram_add(&activity->runs, ns);
}

/* ---- system events ---- */

/* A number of the information, which may be another term than a list. */
static uint64_t number_in(struct tw_term list, const char *name)
{
	struct tw_term wanted = tw_term_atom_z(name);
	uint64_t number = 0;
	for (; tw_term_type(list) == TW_TYPE_CONS; list = tw_term_tail(list)) {
		struct tw_term key = tw_term_element(tw_term_head(list), 0);
		if (!tw_term_is_none(key) && key.word == wanted.word)
			tw_term_get_uint64(tw_term_element(tw_term_head(list), 1), &number);
	}
	return number;
}

static bool add_system(struct tw_activity *activity, uint32_t process, struct tw_term name, uint64_t ms)
{
	size_t bytes = 0;
	const char *text = tw_term_type(name) == TW_TYPE_ATOM ? tw_term_atom_name(name, &bytes) : "";
	struct tw_activity_system row = {.process = process};
	tw_clean(text, bytes, row.name, sizeof row.name);
	uint64_t key = tw_hash_bytes(row.name, strlen(row.name), process);
	uint32_t at = tw_map_find(&activity->by_system, key, i,
				  activity->systems[i].process == process &&
					  strcmp(activity->systems[i].name, row.name) == 0);
	if (at == TW_MAP_NONE) {
		if (!tw_grow(activity->systems, activity->system_count, activity->system_capacity) ||
		    !tw_map_add(&activity->by_system, key, activity->system_count))
			return false;
		at = activity->system_count++;
		activity->systems[at] = row;
	}
	activity->system_events++;
	activity->systems[at].times++;
	if (ms > activity->systems[at].longest_ms)
		activity->systems[at].longest_ms = ms;
	return true;
}

/* long_schedule of a thread has [...,{run_delay,Ns},...]. */
static bool on_monitor(struct tw_activity *activity, const struct tw_capture_event *event,
		       struct tw_activity_process *process)
{
	struct tw_message_payload payload;
	struct tw_term name, info;
	tw_print_payload_take(event, &payload);
	if (payload.term_count < 2 || !tw_print_next_term(&payload, &name) || !tw_print_next_term(&payload, &info))
		return true;
	uint64_t ns = number_in(info, "run_delay");
	if (!ns)
		return add_system(activity, process->number, name, number_in(info, "timeout"));
	activity->delays++;
	process->delays++;
	process->delay_ns += ns;
	if (ns > process->delay_max_ns)
		process->delay_max_ns = ns;
	return true;
}

bool tw_activity_event(struct tw_activity *activity, const struct tw_capture_event *event, const struct tw_step *step)
{
	if (event->kind == TW_CAPTURE_OWN_TIME)
		tw_own_times_add(&activity->own_times, event);
	if ((event->kind < TW_CAPTURE_SEND || event->kind > TW_CAPTURE_OUT_EXITED) && event->kind != TW_CAPTURE_MONITOR)
		return true;
	struct tw_activity_process *process = process_of(activity, step->stack);
	if (!process)
		return false;
	switch (event->kind) {
	case TW_CAPTURE_SEND: return on_send(activity, event, process);
	case TW_CAPTURE_SEND_TO_NON_EXISTING_PROCESS:
		process->sent++;
		activity->to_nobody++;
		return true;
	case TW_CAPTURE_RECEIVE:
		if (tw_mailbox_is_timeout(event)) {
			activity->timeouts++;
			return true;
		}
		process->received++;
		activity->received++;
		if (!process->is_running && !process->waiting_ns)
			process->waiting_ns = event->time_ns;
		return true;
	case TW_CAPTURE_MONITOR: return on_monitor(activity, event, process);
	case TW_CAPTURE_SPAWN: activity->spawned++; return true;
	case TW_CAPTURE_EXIT: activity->exited++; return true;
	case TW_CAPTURE_IN:
	case TW_CAPTURE_IN_EXITING: return on_in(activity, process, event);
	case TW_CAPTURE_OUT:
	case TW_CAPTURE_OUT_EXITING:
	case TW_CAPTURE_OUT_EXITED: return on_out(activity, process, event);
	default: return true;
	}
}

/* ---- life ---- */

static bool init_schedulers(struct tw_activity *activity)
{
	activity->stream_schedulers = calloc(activity->stream_count + (size_t)1, sizeof(uint32_t));
	activity->schedulers = calloc(activity->stream_count + (size_t)1, sizeof *activity->schedulers);
	if (!activity->stream_schedulers || !activity->schedulers)
		return false;
	for (uint32_t i = 0; i < activity->stream_count; i++) {
		const struct tw_capture_stream *stream = tw_capture_stream(activity->capture, i);
		uint32_t at = 0;
		while (at < activity->scheduler_count &&
		       (activity->schedulers[at].image != stream->image ||
			activity->schedulers[at].scheduler_id != stream->scheduler_id))
			at++;
		if (at == activity->scheduler_count)
			activity->schedulers[activity->scheduler_count++] =
				(struct tw_activity_scheduler){.image = stream->image,
							       .scheduler_id = stream->scheduler_id};
		activity->stream_schedulers[i] = at;
	}
	return true;
}

bool tw_activity_init(struct tw_activity *activity, const struct tw_capture *capture)
{
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	*activity = (struct tw_activity){.capture = capture, .stream_count = info.streams};
	return init_schedulers(activity) && tw_own_times_init(&activity->own_times, capture);
}

void tw_activity_free(struct tw_activity *activity)
{
	for (uint32_t i = 0; i < activity->process_count; i++) {
		free(activity->processes[i]->name);
		free(activity->processes[i]);
	}
	free(activity->processes);
	tw_map_fini(&activity->by_pid);
	free(activity->pairs);
	tw_map_fini(&activity->by_pair);
	free(activity->systems);
	tw_map_fini(&activity->by_system);
	free(activity->schedulers);
	free(activity->stream_schedulers);
	tw_own_times_free(&activity->own_times);
	tw_histogram_free(&activity->waits);
	tw_histogram_free(&activity->runs);
	*activity = (struct tw_activity){0};
}

size_t tw_activity_name(const struct tw_activity *activity, uint32_t process, char *text, size_t capacity)
{
	int bytes;
	if (process >= activity->process_count) {
		bytes = snprintf(text, capacity, "(no known sender)");
	} else {
		const struct tw_activity_process *at = activity->processes[process];
		char numbers[TW_NAME_NUMBERS_BYTES];
		bytes = snprintf(text, capacity, "%s%s%s", tw_name_numbers(at->pid_number, at->pid_serial, numbers),
				 at->name ? " " : "", at->name ? at->name : "");
	}
	return bytes < 0 ? 0 : (size_t)bytes < capacity ? (size_t)bytes : capacity - 1;
}
