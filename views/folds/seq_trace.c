/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seq_trace.c - collects the events of one label, then
 *
 *	1 sorts them by time             2 pairs each receive with its send: hops
 *	3 finds the cause of each hop    4 says why an end is missing
 */
#include "views/folds/seq_trace.h"
#include "base/grow.h"
#include "views/names/names.h"
#include "views/names/threads.h"
#include "base/map.h"
#include "base/search.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>

/* The most losses that are told apart. */
#define LOSSES_MAX 4096

/* ---- processes ---- */

static uint64_t key_of(const struct tw_seq_process *process, const char *term)
{
	uint64_t hash = term ? tw_hash_bytes(term, strlen(term), 0) : 0;
	return tw_hash_word(tw_hash_word(hash, (uint64_t)process->serial << 32 | process->number), process->node);
}

static bool is_alike(const struct tw_seq_trace *trace, uint32_t at, const struct tw_seq_process *process)
{
	const struct tw_seq_process *known = &trace->processes[at].is;
	return known->node == process->node && known->number == process->number && known->serial == process->serial;
}

/* TW_SEQ_TRACE_NONE: no memory. */
static uint32_t find_process(struct tw_seq_trace *trace, const struct tw_seq_process *process)
{
	char text[TW_LABEL_BYTES], *term = NULL;
	if (process->node == TW_SEQ_NO_NODE) {
		tw_term_format(process->term, TW_PRINT_PRETTY | TW_PRINT_NODES, text, sizeof text);
		term = text;
	}
	uint64_t key = key_of(process, term);
	uint32_t known =
		tw_map_find(&trace->by_process, key, i,
			    is_alike(trace, i, process) && trace->processes[i].is.creation == process->creation &&
				    (!term || strcmp(trace->processes[i].term, term) == 0));
	if (known != TW_MAP_NONE)
		return known;
	if (!tw_grow(trace->processes, trace->process_count, trace->process_capacity))
		return TW_SEQ_TRACE_NONE;
	struct tw_seq_trace_process *added = &trace->processes[trace->process_count];
	*added = (struct tw_seq_trace_process){.is = *process,
					       .image = TW_CAPTURE_NONE,
					       .term = term ? strdup(term) : NULL};
	added->is.term = (struct tw_term){0};
	if ((term && !added->term) || !tw_map_add(&trace->by_process, key, trace->process_count)) {
		free(added->term);
		return TW_SEQ_TRACE_NONE;
	}
	return trace->process_count++;
}

/* Takes a tracee for a process that is like it; false: to see the others. */
static bool take_tracee(struct tw_seq_trace *trace, uint32_t at, const struct tw_seq_process *is, uint32_t image,
			uint32_t tracee_id)
{
	if (is_alike(trace, at, is)) {
		trace->processes[at].image = image;
		trace->processes[at].tracee_id = tracee_id;
	}
	return false;
}

/* Finds the tracees of all processes in one pass over the definitions. */
static void find_tracees(struct tw_seq_trace *trace)
{
	for (uint32_t image = 0; image < trace->nodes.image_count; image++) {
		const struct tw_capture_tracee *tracee;
		uint32_t at = 0;
		while ((tracee = tw_capture_tracee_next(trace->capture, image, &at))) {
			struct tw_seq_process is = {.node = trace->nodes.of_image[image],
						    .number = tracee->pid_number,
						    .serial = tracee->pid_serial};
			if (!tracee->is_port)
				tw_map_find(&trace->by_process, key_of(&is, NULL), i,
					    take_tracee(trace, i, &is, image, tracee->tracee_id));
		}
	}
}

/* ---- collecting ---- */

/* Keeps the bytes of a message; false: there are too many. */
static bool keep_bytes(struct tw_seq_trace *trace, const void *bytes, size_t count)
{
	if (trace->byte_count + count > trace->byte_capacity) {
		uint64_t capacity = trace->byte_capacity ? trace->byte_capacity * 2 : 4096;
		while (capacity < trace->byte_count + count)
			capacity *= 2;
		char *grown = capacity <= TW_SEQ_TRACE_BYTES_MAX ? realloc(trace->bytes, capacity) : NULL;
		if (!grown)
			return false;
		trace->bytes = grown;
		trace->byte_capacity = capacity;
	}
	memcpy(trace->bytes + trace->byte_count, bytes, count);
	trace->byte_count += count;
	return true;
}

static bool is_label(struct tw_seq_trace *trace, struct tw_term label)
{
	char text[TW_LABEL_BYTES];
	tw_term_format(label, TW_PRINT_WRITE, text, sizeof text);
	if (strcmp(text, trace->label) != 0)
		return false;
	if (!trace->shown && !tw_seq_trace_id(label, (struct tw_term){0}, trace->trace_id))
		trace->shown = tw_seq_label_shown(label);
	return trace->shown != NULL;
}

static bool on_event(void *context, const struct tw_seq_event *event)
{
	struct tw_seq_trace *trace = context;
	if (!is_label(trace, event->label))
		return true;
	if (trace->event_count == TW_SEQ_TRACE_EVENTS_MAX) {
		trace->left_out++;
		return true;
	}
	if (!tw_grow(trace->events, trace->event_count, trace->event_capacity))
		return false;
	struct tw_seq_trace_event *added = &trace->events[trace->event_count];
	*added = (struct tw_seq_trace_event){.time_ns = event->time_ns,
					     .unique = event->unique,
					     .previous = event->previous,
					     .current = event->current,
					     .message = trace->byte_count,
					     .image = event->image,
					     .stream = event->stream,
					     .kind = event->kind,
					     .flags = event->flags,
					     .hop = TW_SEQ_TRACE_NONE,
					     .to = TW_SEQ_TRACE_NONE};
	if (keep_bytes(trace, event->message, event->message_bytes))
		added->message_bytes = (uint32_t)event->message_bytes;
	added->from = find_process(trace, &event->from);
	if (event->kind != TW_CAPTURE_SEQ_PRINT)
		added->to = find_process(trace, &event->to);
	if (added->from == TW_SEQ_TRACE_NONE || (event->kind != TW_CAPTURE_SEQ_PRINT && added->to == TW_SEQ_TRACE_NONE))
		return false;
	trace->event_count++;
	trace->has_sends |= event->kind == TW_CAPTURE_SEQ_SEND;
	trace->has_receives |= event->kind == TW_CAPTURE_SEQ_RECEIVE;
	return true;
}

static bool on_loss(void *context, const struct tw_seq_loss *loss)
{
	struct tw_seq_trace *trace = context;
	/* Further losses widen one that is known. */
	for (uint32_t i = 0; i < trace->loss_count && trace->loss_count == LOSSES_MAX; i++) {
		struct tw_seq_loss *known = &trace->losses[i];
		if (known->image != loss->image && i + 1 < trace->loss_count)
			continue;
		known->from_ns = loss->from_ns < known->from_ns ? loss->from_ns : known->from_ns;
		known->to_ns = loss->to_ns > known->to_ns ? loss->to_ns : known->to_ns;
		known->count += loss->count;
		known->overwritten += loss->overwritten;
		return true;
	}
	if (!tw_grow(trace->losses, trace->loss_count, trace->loss_capacity))
		return false;
	trace->losses[trace->loss_count++] = *loss;
	return true;
}

/* Losses of threads that got no ring are in no stream. */
static bool note_losses_without_ring(struct tw_seq_trace *trace)
{
	for (uint32_t image = 0; image < trace->nodes.image_count; image++) {
		struct tw_seq_loss loss = {.from_ns = trace->start_ns, .to_ns = trace->end_ns, .image = image};
		loss.count = tw_capture_no_ring_lost(trace->capture, image, trace->start_ns, trace->end_ns + 1);
		if (loss.count && !on_loss(trace, &loss))
			return false;
	}
	return true;
}

/* ---- 1: order ---- */

static int by_time(const void *a, const void *b)
{
	const struct tw_seq_trace_event *left = a, *right = b;
	return TW_ORDER(left->time_ns, right->time_ns)
		       ?: TW_ORDER(left->current, right->current)
		       ?: TW_ORDER(left->kind, right->kind);
}

/* ---- 2: pairs ---- */

/* For the comparisons of qsort(); one trace at a time is made. */
static const struct tw_seq_trace *sorted;

static int compare_keys(const struct tw_seq_trace_event *left, const struct tw_seq_trace_event *right)
{
	return TW_ORDER(left->from, right->from)
		       ?: TW_ORDER(left->current, right->current)
		       ?: TW_ORDER(left->previous, right->previous);
}

static int by_key(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	return compare_keys(&sorted->events[left], &sorted->events[right]) ?: TW_ORDER(left, right);
}

/*
 * The send of a receive: the last one with its key that is not later, unless that has a receive. A key comes again only
 * when serials begin anew, and a message from before that is never received.
 */
static uint32_t take_send(const struct tw_seq_trace *trace, const uint32_t *sends, uint32_t count,
			  const struct tw_seq_trace_event *receive, uint64_t slack_ns)
{
	const struct tw_seq_trace_event *events = trace->events;
	size_t end = tw_search(i, count,
			       (compare_keys(&events[sends[i]], receive)
					?: TW_ORDER(events[sends[i]].time_ns, receive->time_ns + slack_ns)) <= 0);
	if (!end || compare_keys(&events[sends[end - 1]], receive) != 0 ||
	    events[sends[end - 1]].hop != TW_SEQ_TRACE_NONE)
		return TW_SEQ_TRACE_NONE;
	return sends[end - 1];
}

static void add_hop(struct tw_seq_trace *trace, uint32_t send, uint32_t receive)
{
	const struct tw_seq_trace_event *event = &trace->events[send != TW_SEQ_TRACE_NONE ? send : receive];
	trace->hops[trace->hop_count++] = (struct tw_hop){.send = send,
							  .receive = receive,
							  .from = event->from,
							  .to = event->to,
							  .parent = TW_SEQ_TRACE_NONE,
							  .first_child = TW_SEQ_TRACE_NONE,
							  .last_child = TW_SEQ_TRACE_NONE,
							  .next = TW_SEQ_TRACE_NONE,
							  .is_print = event->kind == TW_CAPTURE_SEQ_PRINT};
}

static void make_hops(struct tw_seq_trace *trace, uint32_t *sends)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < trace->event_count; i++) {
		if (trace->events[i].kind == TW_CAPTURE_SEQ_SEND)
			sends[count++] = i;
	}
	sorted = trace;
	if (count)
		qsort(sends, count, sizeof *sends, by_key);
	/* A pair is noted in its events, since hops come in the order of their first event. */
	for (uint32_t i = 0; i < trace->event_count; i++) {
		struct tw_seq_trace_event *event = &trace->events[i];
		uint32_t send;
		if (event->kind != TW_CAPTURE_SEQ_RECEIVE)
			continue;
		send = take_send(trace, sends, count, event, 0);
		if (send == TW_SEQ_TRACE_NONE)
			send = take_send(trace, sends, count, event, TW_SEQ_TRACE_SLACK_NS);
		if (send == TW_SEQ_TRACE_NONE)
			continue;
		event->hop = send;
		trace->events[send].hop = i;
	}
	for (uint32_t i = 0; i < trace->event_count; i++) {
		struct tw_seq_trace_event *event = &trace->events[i];
		bool is_receive = event->kind == TW_CAPTURE_SEQ_RECEIVE;
		if (is_receive && event->hop != TW_SEQ_TRACE_NONE)
			continue;
		uint32_t receive = is_receive ? i : event->hop;
		add_hop(trace, is_receive ? TW_SEQ_TRACE_NONE : i, receive);
		if (receive != TW_SEQ_TRACE_NONE)
			trace->hops[trace->hop_count - 1].to = trace->events[receive].to;
	}
	for (uint32_t i = 0; i < trace->hop_count; i++) {
		const struct tw_hop *hop = &trace->hops[i];
		if (hop->send != TW_SEQ_TRACE_NONE)
			trace->events[hop->send].hop = i;
		if (hop->receive != TW_SEQ_TRACE_NONE)
			trace->events[hop->receive].hop = i;
		trace->processes[hop->from].takes_part = true;
		if (!hop->is_print)
			trace->processes[hop->to].takes_part = true;
		trace->prints += hop->is_print;
		trace->messages += !hop->is_print;
		trace->sends_alone += !hop->is_print && hop->receive == TW_SEQ_TRACE_NONE;
		trace->receives_alone += hop->send == TW_SEQ_TRACE_NONE;
	}
}

static void count_processes(struct tw_seq_trace *trace)
{
	for (uint32_t i = 0; i < trace->process_count; i++)
		trace->taking_part += trace->processes[i].takes_part;
}

/* ---- 3: causes ---- */

/* A message that reached a process: it may be the cause of what the process does afterwards. */
struct arrival {
	uint64_t time_ns;
	int64_t current;
	uint32_t process;
	uint32_t hop;
	bool is_guess; /* it was sent there; its receive is missing */
};

static int compare_arrivals(const struct arrival *left, const struct arrival *right)
{
	if (left->process != right->process)
		return left->process < right->process ? -1 : 1;
	if (left->current != right->current)
		return left->current < right->current ? -1 : 1;
	if (left->is_guess != right->is_guess)
		return left->is_guess ? -1 : 1;
	return TW_ORDER(left->time_ns, right->time_ns);
}

static int by_arrival(const void *a, const void *b)
{
	return compare_arrivals(a, b);
}

/* The last arrival up to this key; NULL: there is none of its process and serial. */
static const struct arrival *last_arrival(const struct arrival *arrivals, uint32_t count, const struct arrival *key)
{
	size_t end = tw_search(i, count, compare_arrivals(&arrivals[i], key) <= 0);
	if (!end || arrivals[end - 1].process != key->process || arrivals[end - 1].current != key->current ||
	    arrivals[end - 1].is_guess != key->is_guess)
		return NULL;
	return &arrivals[end - 1];
}

static void find_cause(struct tw_seq_trace *trace, uint32_t number, const struct arrival *arrivals, uint32_t count)
{
	struct tw_hop *hop = &trace->hops[number];
	const struct tw_seq_trace_event *event =
		&trace->events[hop->send != TW_SEQ_TRACE_NONE ? hop->send : hop->receive];
	struct arrival key = {.time_ns = event->time_ns, .current = event->previous, .process = hop->from};
	const struct arrival *found = last_arrival(arrivals, count, &key);
	if (!found) {
		key.is_guess = true;
		found = last_arrival(arrivals, count, &key);
	}
	/* Hops are in order of time: a cause has a lower number, so there are no circles. */
	if (found && found->hop < number)
		hop->parent = found->hop;
}

static void add_child(struct tw_seq_trace *trace, uint32_t number)
{
	struct tw_hop *hop = &trace->hops[number], *parent;
	uint32_t *first = &trace->first_root;
	if (hop->parent == TW_SEQ_TRACE_NONE) {
		trace->root_count++;
		/* Roots are linked by the caller. */
		return;
	}
	parent = &trace->hops[hop->parent];
	first = &parent->first_child;
	if (*first == TW_SEQ_TRACE_NONE)
		*first = number;
	else
		trace->hops[parent->last_child].next = number;
	parent->last_child = number;
	hop->depth = parent->depth + 1;
	trace->depth = hop->depth > trace->depth ? hop->depth : trace->depth;
}

static void find_causes(struct tw_seq_trace *trace, struct arrival *arrivals)
{
	uint32_t count = 0, last_root = TW_SEQ_TRACE_NONE;
	for (uint32_t i = 0; i < trace->hop_count; i++) {
		const struct tw_hop *hop = &trace->hops[i];
		bool is_received = hop->receive != TW_SEQ_TRACE_NONE;
		const struct tw_seq_trace_event *event;
		if (hop->is_print)
			continue;
		event = &trace->events[is_received ? hop->receive : hop->send];
		arrivals[count++] = (struct arrival){event->time_ns, event->current, hop->to, i, !is_received};
	}
	if (count)
		qsort(arrivals, count, sizeof *arrivals, by_arrival);
	trace->first_root = TW_SEQ_TRACE_NONE;
	for (uint32_t i = 0; i < trace->hop_count; i++) {
		find_cause(trace, i, arrivals, count);
		add_child(trace, i);
		if (trace->hops[i].parent != TW_SEQ_TRACE_NONE)
			continue;
		if (last_root == TW_SEQ_TRACE_NONE)
			trace->first_root = i;
		else
			trace->hops[last_root].next = i;
		last_root = i;
	}
}

/* ---- 4: what is missing ---- */

/* Were events of a node lost in this time? */
static bool is_lossy(const struct tw_seq_trace *trace, uint32_t node, uint64_t from_ns, uint64_t to_ns)
{
	for (uint32_t i = 0; i < trace->loss_count; i++) {
		const struct tw_seq_loss *loss = &trace->losses[i];
		if (trace->nodes.of_image[loss->image] == node && loss->to_ns >= from_ns && loss->from_ns <= to_ns)
			return true;
	}
	return false;
}

static enum tw_seq_trace_gap gap_of(const struct tw_seq_trace *trace, const struct tw_hop *hop)
{
	bool misses_send = hop->send == TW_SEQ_TRACE_NONE;
	const struct tw_seq_trace_process *process = &trace->processes[misses_send ? hop->from : hop->to];
	uint64_t at_ns = tw_hop_start(trace, hop);
	if (process->is.node != TW_SEQ_NO_NODE && trace->nodes.nodes[process->is.node].image == TW_CAPTURE_NONE)
		return TW_SEQ_TRACE_ABSENT;
	if (misses_send ? !trace->has_sends : !trace->has_receives)
		return TW_SEQ_TRACE_UNSEEN;
	if (process->is.node != TW_SEQ_NO_NODE &&
	    is_lossy(trace, process->is.node, misses_send ? 0 : at_ns, misses_send ? at_ns : UINT64_MAX))
		return TW_SEQ_TRACE_LOST;
	return TW_SEQ_TRACE_OPEN;
}

static int by_sender(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	const struct tw_seq_trace_event *x = &sorted->events[left], *y = &sorted->events[right];
	return TW_ORDER(x->from, y->from) ?: TW_ORDER(left, right);
}

/* Serials of one process grow, unless they overflowed or were set back. */
static void check_serials(struct tw_seq_trace *trace, uint32_t *sends)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < trace->event_count; i++) {
		if (trace->events[i].kind != TW_CAPTURE_SEQ_RECEIVE)
			sends[count++] = i;
	}
	if (count)
		qsort(sends, count, sizeof *sends, by_sender);
	for (uint32_t i = 1; i < count; i++) {
		const struct tw_seq_trace_event *before = &trace->events[sends[i - 1]],
						*event = &trace->events[sends[i]];
		trace->went_back += before->from == event->from && before->current >= event->current;
	}
}

static void find_gaps(struct tw_seq_trace *trace)
{
	for (uint32_t i = 0; i < trace->hop_count; i++) {
		struct tw_hop *hop = &trace->hops[i];
		if (!hop->is_print && (hop->send == TW_SEQ_TRACE_NONE || hop->receive == TW_SEQ_TRACE_NONE))
			hop->gap = (uint8_t)gap_of(trace, hop);
	}
	for (uint32_t i = 0; i < trace->loss_count; i++) {
		const struct tw_seq_loss *loss = &trace->losses[i];
		if (loss->to_ns >= trace->start_ns && loss->from_ns <= trace->end_ns) {
			trace->lost += loss->count;
			trace->overwritten += loss->overwritten;
		}
	}
}

static int finish(struct tw_seq_trace *trace)
{
	size_t count = trace->event_count + (size_t)1;
	uint32_t *sends = malloc(count * sizeof *sends);
	struct arrival *arrivals = malloc(count * sizeof *arrivals);
	int error = TW_ENOMEM;
	trace->hops = malloc(count * sizeof *trace->hops);
	if (sends && arrivals && trace->hops) {
		error = 0;
		if (trace->event_count) {
			qsort(trace->events, trace->event_count, sizeof *trace->events, by_time);
			trace->start_ns = trace->events[0].time_ns;
			trace->end_ns = trace->events[trace->event_count - 1].time_ns;
		}
		find_tracees(trace);
		if (!note_losses_without_ring(trace))
			error = TW_ENOMEM;
		make_hops(trace, sends);
		count_processes(trace);
		find_causes(trace, arrivals);
		check_serials(trace, sends);
		find_gaps(trace);
	}
	free(sends);
	free(arrivals);
	return error;
}

int tw_seq_trace_make(struct tw_seq_trace *trace, struct tw_capture *capture, const char *label, uint64_t from_ns,
		      uint64_t to_ns)
{
	struct tw_seq_reader reader = {.nodes = &trace->nodes,
				       .from_ns = from_ns,
				       .to_ns = to_ns,
				       .event = on_event,
				       .loss = on_loss,
				       .context = trace};
	*trace = (struct tw_seq_trace){.capture = capture, .label = label, .first_root = TW_SEQ_TRACE_NONE};
	int error = tw_seq_nodes_make(&trace->nodes, capture);
	if (error == 0)
		error = tw_seq_read(&reader, capture);
	trace->damaged = reader.damaged;
	return error ? error : finish(trace);
}

void tw_seq_trace_free(struct tw_seq_trace *trace)
{
	for (uint32_t i = 0; i < trace->process_count; i++)
		free(trace->processes[i].term);
	free(trace->processes);
	tw_map_fini(&trace->by_process);
	free(trace->events);
	free(trace->hops);
	free(trace->bytes);
	free(trace->losses);
	free(trace->shown);
	tw_seq_nodes_free(&trace->nodes);
}
