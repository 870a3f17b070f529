/* SPDX-License-Identifier: Apache-2.0 */
/* native_ports.c - calls of libc replayed into tables of descriptors. */
#include "views/names/descriptors.h"
#include "views/ports/native_replay.h"
#include "base/map.h"
#include "base/grow.h"
#include "base/search.h"

#include "tracewheel/error.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <linux/close_range.h>
#include <string.h>

static const struct tw_native_function *function_of(struct tw_native_replay *r, const struct tw_capture_event *event)
{
	struct tw_native_process *process = &r->processes[event->image];
	if (event->id < process->function_count && process->functions[event->id])
		return process->functions[event->id]->op ? process->functions[event->id] : NULL;
	const struct tw_capture_place *place = tw_capture_place(r->capture, event->image, event->id);
	/* A damaged capture does not define it; a stream may define it behind its first events. */
	if (!place || !place->function || !place->function->module)
		return NULL;
	struct tw_native_function *function = malloc(sizeof *function);
	if (!function || !tw_grow_to(process->functions, process->function_count, event->id)) {
		free(function);
		r->error = TW_ENOMEM;
		return NULL;
	}
	tw_native_function_make(r->capture, event->image, place, function);
	process->functions[event->id] = function;
	return function->op ? function : NULL;
}

static void read_arguments(const struct tw_capture_event *event, const struct tw_native_function *function,
			   struct tw_native_call *call)
{
	struct tw_layout_reader reader = {.layout = function->layout,
					  .words = event->payload,
					  .word_count = event->payload_words};
	struct tw_layout_item item;
	while (tw_layout_next(&reader, &item)) {
		const char *name = item.value->name;
		uint64_t word = item.word_count ? item.words[0] : 0;
		if (!strcmp(name, "fd"))
			call->fd = (int)word;
		else if (!strcmp(name, "in_fd"))
			call->in_fd = (int)word;
		else if (!strcmp(name, "out_fd"))
			call->out_fd = (int)word;
		else if (!strcmp(name, "stream"))
			call->stream = word;
		else if (!strcmp(name, "size"))
			call->size = word;
		else if (!strcmp(name, "first"))
			call->first = (uint32_t)word;
		else if (!strcmp(name, "last"))
			call->last = (uint32_t)word;
		else if (!strcmp(name, "flags"))
			call->flags = word;
	}
}

static bool is_counted(const struct tw_native_replay *r, uint64_t time_ns)
{
	return time_ns >= r->filter->from_ns && (!r->filter->to_ns || time_ns < r->filter->to_ns);
}

/* The descriptors that a call uses: those of a child of vfork(), while that runs on the thread. */
static struct tw_native_table *table_of(struct tw_native_process *process, struct tw_native_thread *thread)
{
	return thread->is_in_child ? &thread->child_table : &process->table;
}

static struct tw_native_instance *hold_fd(struct tw_native_replay *r, struct tw_native_table *table, int fd,
					  struct tw_native_call *call)
{
	call->is_untracked |= fd >= FD_MAX;
	return fd >= 0 ? tw_native_hold(tw_native_instance_of(r, table, fd)) : NULL;
}

/* All streams that were not seen to be opened are one port. */
static struct tw_native_instance *hold_unseen_stream(struct tw_native_replay *r, struct tw_native_process *process)
{
	if (!process->unseen_streams) {
		process->unseen_streams =
			tw_native_hold(tw_native_instance_create(r, "inherited", "streams, opened unseen"));
		if (process->unseen_streams)
			process->unseen_streams->is_unseen = true;
	}
	return tw_native_hold(process->unseen_streams);
}

static bool is_transfer(const struct tw_native_function *function)
{
	return function->op == TW_NATIVE_OP_IN || function->op == TW_NATIVE_OP_OUT || function->op == TW_NATIVE_OP_BOTH;
}

/* Ends a call whose return was not seen, and will not be: what it has transferred is not known. */
static void abandon_call(struct tw_native_replay *r, struct tw_native_call *call)
{
	if (is_transfer(call->function) && is_counted(r, call->time_ns)) {
		if (call->in)
			call->in->sums.is_in_partial = true;
		if (call->out)
			call->out->sums.is_out_partial = true;
	}
	tw_native_release(r, call->in);
	tw_native_release(r, call->out);
}

static void count_unfollowed(struct tw_native_replay *r, uint64_t time_ns)
{
	r->ports->unfollowed += is_counted(r, time_ns);
}

/* Room for one more call; the oldest makes it: calls that longjmp() has left never return. */
static struct tw_native_call *push_call(struct tw_native_replay *r, struct tw_native_thread *thread)
{
	if (thread->depth == DEPTH_MAX) {
		count_unfollowed(r, thread->calls[0].time_ns);
		abandon_call(r, &thread->calls[0]);
		memmove(thread->calls, thread->calls + 1, (DEPTH_MAX - 1) * sizeof *thread->calls);
		thread->depth--;
	}
	return &thread->calls[thread->depth++];
}

/* Calls that do not return to where they were called.  Returns false for all others. */
static bool begin_last(struct tw_native_replay *r, const struct tw_capture_event *event,
		       const struct tw_native_function *function)
{
	struct tw_native_process *process = &r->processes[event->image];
	struct tw_native_thread *thread = &r->threads[event->stream];
	switch (function->op) {
	case TW_NATIVE_OP_VFORK:
		tw_native_add_child(r, process, function, 0, is_counted(r, event->time_ns));
		tw_native_enter_child(r, process, thread);
		return true;
	/* If that fails, the next is another one, or the end. */
	case TW_NATIVE_OP_EXECUTE: tw_native_leave_child(r, process, thread, true); return true;
	case TW_NATIVE_OP_EXIT: tw_native_leave_child(r, process, thread, false); return true;
	/* A child of vfork() does not wait: its end was not seen. */
	case TW_NATIVE_OP_WAIT: tw_native_leave_child(r, process, thread, false); return false;
	default: return false;
	}
}

static void begin_call(struct tw_native_replay *r, const struct tw_capture_event *event,
		       const struct tw_native_function *function)
{
	struct tw_native_process *process = &r->processes[event->image];
	struct tw_native_thread *thread = &r->threads[event->stream];
	if (begin_last(r, event, function))
		return;
	struct tw_native_table *table = table_of(process, thread);
	struct tw_native_call *call = push_call(r, thread);
	*call = (struct tw_native_call){.function = function,
					.time_ns = event->time_ns,
					.fd = -1,
					.in_fd = -1,
					.out_fd = -1,
					.last = UINT32_MAX};
	read_arguments(event, function, call);
	if (call->stream)
		call->fd = tw_native_stream_fd(process, function, call->stream);
	else if (function->standard)
		call->fd = function->standard - 1;
	if (function->op == TW_NATIVE_OP_FORK || function->op == TW_NATIVE_OP_SPAWN)
		call->snapshot = tw_native_take_snapshot(r, process, table, function->op == TW_NATIVE_OP_SPAWN);
	if (function->op == TW_NATIVE_OP_BOTH) {
		call->in = hold_fd(r, table, call->in_fd, call);
		call->out = hold_fd(r, table, call->out_fd, call);
		return;
	}
	/* fcntl(fd, F_GETFL) and the like do not use the port. */
	if (function->op == TW_NATIVE_OP_DUP)
		return;
	/* With CLOSE_RANGE_CLOEXEC they stay open until exec. */
	if (function->op == TW_NATIVE_OP_CLOSE_RANGE) {
		for (uint64_t fd = call->first;
		     !(call->flags & CLOSE_RANGE_CLOEXEC) && fd <= call->last && fd < table->entry_count; fd++)
			tw_native_close_fd(table, (int)fd);
		return;
	}
	bool is_unseen_stream = call->stream && call->fd == -1 && function->op != TW_NATIVE_OP_CLOSE_DIRECTORY;
	struct tw_native_instance *used =
		is_unseen_stream ? hold_unseen_stream(r, process) : hold_fd(r, table, call->fd, call);
	/* A pipe's read end has no other direction. */
	bool is_out = function->op == TW_NATIVE_OP_OUT && !(used && used->is_read_end);
	*(is_out ? &call->out : &call->in) = used;
	/* Another thread may get the number before this call returns. */
	if (function->op == TW_NATIVE_OP_CLOSE || function->op == TW_NATIVE_OP_CLOSE_DIRECTORY ||
	    function->op == TW_NATIVE_OP_REOPEN) {
		tw_native_close_fd(table, call->fd);
		tw_native_forget_stream(process, call->stream);
	}
}

static void count_side(struct tw_native_replay *r, struct tw_native_instance *instance,
		       const struct tw_native_call *call, uint64_t time_ns, int64_t result, uint64_t bytes, bool is_in)
{
	if (!instance || !is_counted(r, time_ns))
		return;
	struct tw_native_port *sums = &instance->sums;
	sums->calls++;
	sums->call_ns += time_ns > call->time_ns ? time_ns - call->time_ns : 0;
	sums->failed += result < 0;
	if (!is_transfer(call->function))
		return;
	*(is_in ? &sums->is_in_partial : &sums->is_out_partial) |= call->function->size == TW_NATIVE_SIZE_UNKNOWN;
	if (!is_in)
		sums->out_bytes += bytes;
	else if (!call->function->keeps_input)
		sums->in_bytes += bytes;
}

static uint64_t bytes_of(const struct tw_native_call *call, int64_t result)
{
	if (result < 0)
		return 0;
	switch (call->function->size) {
	case TW_NATIVE_SIZE_ITEMS: return (uint64_t)result * call->size;
	case TW_NATIVE_SIZE_ONE: return 1;
	case TW_NATIVE_SIZE_EIGHT: return 8;
	case TW_NATIVE_SIZE_RESULT: return (uint64_t)result;
	default: return 0;
	}
}

static void count_call(struct tw_native_replay *r, const struct tw_native_call *call, uint64_t time_ns, int64_t result)
{
	uint64_t bytes = bytes_of(call, result);
	bool is_unseen = (call->in && call->in->is_unseen) || (call->out && call->out->is_unseen);
	/* Programs close all numbers that could be open; these were not. */
	if (is_unseen && call->function->op == TW_NATIVE_OP_CLOSE && result < 0)
		return;
	count_side(r, call->in, call, time_ns, result, bytes, true);
	count_side(r, call->out, call, time_ns, result, bytes, false);
	r->ports->unknown += (is_unseen || call->is_untracked) && is_counted(r, time_ns);
}

/* A descriptor that the call has made, or whose address it has set.  @order: 0 is the first of a pair. */
static void describe(struct tw_native_replay *r, struct tw_native_table *table, const struct tw_native_call *call,
		     uint64_t time_ns, const struct tw_layout_description *what, unsigned order)
{
	struct tw_native_entry *entry = tw_native_entry_at(r, table, what->fd);
	unsigned how = call->function->layout->result.bytes;
	if (!entry)
		return;
	/* connect(), bind(), fdopen(): the port is there, and is known better now. */
	if (call->fd == what->fd && call->function->op == TW_NATIVE_OP_OPEN && entry->instance && entry->is_open) {
		tw_native_instance_rename(r, entry->instance, what);
		return;
	}
	struct tw_native_instance *instance =
		tw_native_instance_describe(r, what, call->function->op == TW_NATIVE_OP_ACCEPT);
	if (!instance)
		return;
	instance->is_read_end = how == TW_LAYOUT_DESCRIPTOR_PAIR_FIRST && order == 0;
	instance->sums.opener = call->function->name;
	instance->sums.caller = call->function->caller;
	instance->sums.opened = is_counted(r, time_ns);
	instance->sums.is_in_partial = instance->sums.is_out_partial =
		tw_native_has_pointers(r, call->function->caller, how == TW_LAYOUT_DESCRIPTOR_STREAM);
	tw_native_set_entry(r, entry, instance, false);
}

/* The new descriptor leads to the port of the old one, which is described with it. */
static void duplicate(struct tw_native_replay *r, struct tw_native_table *table, const struct tw_native_call *call,
		      const struct tw_layout_description *what)
{
	struct tw_native_instance *shared = tw_native_instance_of(r, table, call->fd);
	if (!shared || what->fd == call->fd)
		return;
	if (!shared->sums.opener)
		tw_native_instance_rename(r, shared, what);
	bool is_inherited = table->entries[call->fd].is_inherited;
	struct tw_native_entry *entry = tw_native_entry_at(r, table, what->fd);
	if (entry)
		tw_native_set_entry(r, entry, shared, is_inherited);
}

/* A child was made, or waited for. */
static void end_of_child(struct tw_native_replay *r, struct tw_native_process *process,
			 const struct tw_native_call *call, uint64_t time_ns, int64_t result)
{
	bool is_spawned = call->function->op == TW_NATIVE_OP_SPAWN;
	/* In the child fork() returns 0, and there it was not called. */
	int32_t made = is_spawned || result < 0 ? 0 : (int32_t)result;
	if (call->function->op != TW_NATIVE_OP_WAIT) {
		struct tw_native_snapshot *snapshot = tw_native_snapshot_at(process, call->snapshot);
		if (snapshot && (made || result < 0))
			snapshot->process_id = made ? made : -1;
		if (is_spawned ? result == 0 : result > 0)
			tw_native_add_child(r, process, call->function, made, is_counted(r, time_ns));
		return;
	}
	struct tw_native_instance *child = result > 0 ? tw_native_take_child(process, (int32_t)result) : NULL;
	if (!child)
		return;
	count_side(r, child, call, time_ns, result, 0, true);
	child->open_count = 0;
	tw_native_release(r, child);
}

static void end_of_opening(struct tw_native_replay *r, const struct tw_capture_event *event,
			   const struct tw_native_call *call)
{
	struct tw_native_process *process = &r->processes[event->image];
	struct tw_native_table *table = table_of(process, &r->threads[event->stream]);
	bool is_stream = call->function->layout->result.bytes == TW_LAYOUT_DESCRIPTOR_STREAM;
	struct tw_layout_description what;
	uint32_t at = 1;
	process->is_marked = false;
	for (unsigned order = 0; tw_layout_next_description(event->payload, event->payload_words, &at, &what);
	     order++) {
		if (call->function->op == TW_NATIVE_OP_DUP)
			duplicate(r, table, call, &what);
		else
			describe(r, table, call, event->time_ns, &what, order);
		if (is_stream)
			tw_native_set_stream(r, process, event->payload[0], what.fd);
	}
}

static void end_call(struct tw_native_replay *r, const struct tw_capture_event *event, struct tw_native_call *call,
		     bool has_returned)
{
	struct tw_native_process *process = &r->processes[event->image];
	const struct tw_layout_value *type = &call->function->layout->result;
	int64_t result = event->payload_words ? (int64_t)event->payload[0] : 0;
	uint64_t address = event->payload_words ? event->payload[0] : 0;
	if (type->bytes == 4 || type->type == 'd')
		result = (int32_t)result;
	if (type->type == 'd' && type->bytes == TW_LAYOUT_DESCRIPTOR_STREAM)
		result = address ? 0 : -1;
	if (type->type == 'v')
		result = 0;
	if (!has_returned)
		result = -1;
	count_call(r, call, event->time_ns, result);
	if (!has_returned)
		return;
	switch (call->function->op) {
	case TW_NATIVE_OP_FORK:
	case TW_NATIVE_OP_SPAWN:
	case TW_NATIVE_OP_WAIT: end_of_child(r, process, call, event->time_ns, result); break;
	case TW_NATIVE_OP_MEMORY:
		if (address)
			tw_native_set_stream(r, process, address, FD_OF_MEMORY);
		break;
	case TW_NATIVE_OP_DIRECTORY:
		if (address)
			tw_native_set_stream(r, process, address, call->fd);
		break;
	default:
		if (type->type == 'd')
			end_of_opening(r, event, call);
	}
}

/* A return belongs to the innermost call of its function; the calls inside that have been left. */
static void take_return(struct tw_native_replay *r, const struct tw_capture_event *event,
			const struct tw_native_function *function)
{
	struct tw_native_thread *thread = &r->threads[event->stream];
	bool has_returned = event->kind == TW_CAPTURE_RETURN_FROM;
	unsigned depth = thread->depth;
	while (depth && thread->calls[depth - 1].function->name != function->name)
		depth--;
	/* The call was made before the capture began, or was lost. */
	if (!depth) {
		bool is_in_child =
			function->op == TW_NATIVE_OP_FORK && event->payload_words && !(int32_t)event->payload[0];
		if (!is_in_child)
			count_unfollowed(r, event->time_ns);
		return;
	}
	while (thread->depth > depth) {
		struct tw_native_call *left = &thread->calls[--thread->depth];
		count_unfollowed(r, left->time_ns);
		abandon_call(r, left);
	}
	struct tw_native_call *call = &thread->calls[--thread->depth];
	end_call(r, event, call, has_returned);
	tw_native_release(r, call->in);
	tw_native_release(r, call->out);
}

/*
 * A return after the gap may be that of a call inside it; it has no match and is counted.  Open descriptors may have been
 * used, or closed and opened again.
 */
static void take_loss(struct tw_native_replay *r, const struct tw_capture_event *event)
{
	struct tw_native_process *process = &r->processes[event->image];
	struct tw_native_thread *thread = &r->threads[event->stream];
	r->ports->gaps++;
	while (thread->depth)
		abandon_call(r, &thread->calls[--thread->depth]);
	if (!process->has_begun)
		tw_native_begin_process(r, event->image);
	for (size_t fd = 0; !process->is_marked && fd < process->table.entry_count; fd++) {
		struct tw_native_entry *entry = &process->table.entries[fd];
		if (entry->instance && entry->is_open)
			entry->instance->sums.is_in_partial = entry->instance->sums.is_out_partial = true;
	}
	process->is_marked = true;
}

static void take_event(struct tw_native_replay *r, const struct tw_capture_event *event)
{
	bool is_call = event->kind == TW_CAPTURE_CALL;
	if (event->image >= r->process_count || event->stream >= r->thread_count)
		return;
	if (event->kind == TW_CAPTURE_LOSS)
		take_loss(r, event);
	if (!is_call && event->kind != TW_CAPTURE_RETURN_FROM && event->kind != TW_CAPTURE_EXCEPTION_FROM)
		return;
	const struct tw_native_function *function = function_of(r, event);
	if (!function || (is_call && !(event->flags & TW_CAPTURE_FLAG_ARGS) && function->layout->count))
		return;
	if (!r->processes[event->image].has_begun)
		tw_native_begin_process(r, event->image);
	r->ports->is_recorded = true;
	if (is_call)
		begin_call(r, event, function);
	else
		take_return(r, event, function);
}

/* ---- the whole ---- */

static int by_bytes(const void *a, const void *b)
{
	const struct tw_native_port *x = a, *y = b;
	uint64_t x_bytes = x->in_bytes + x->out_bytes, y_bytes = y->in_bytes + y->out_bytes;
	return TW_ORDER(y_bytes, x_bytes) ?: TW_ORDER(y->calls, x->calls) ?: strcmp(x->what, y->what);
}

static void end_all(struct tw_native_replay *r)
{
	for (uint32_t i = 0; i < r->thread_count; i++) {
		struct tw_native_thread *thread = &r->threads[i];
		/* The innermost may still be running. */
		for (unsigned j = 0; j < thread->depth; j++) {
			if (j + 1 < thread->depth) {
				count_unfollowed(r, thread->calls[j].time_ns);
				abandon_call(r, &thread->calls[j]);
				continue;
			}
			tw_native_release(r, thread->calls[j].in);
			tw_native_release(r, thread->calls[j].out);
		}
		tw_native_free_table(r, &thread->child_table);
	}
	for (uint32_t i = 0; i < r->process_count; i++) {
		tw_native_free_table(r, &r->processes[i].table);
		tw_native_release(r, r->processes[i].unseen_streams);
		for (unsigned j = 0; j < SNAPSHOTS_MAX; j++)
			tw_native_free_table(r, &r->processes[i].snapshots[j].table);
		for (size_t j = 0; j < r->processes[i].child_count; j++)
			tw_native_release(r, r->processes[i].children[j].instance);
		free(r->processes[i].children);
		free(r->processes[i].streams);
		for (size_t j = 0; j < r->processes[i].function_count; j++)
			free(r->processes[i].functions[j]);
		free(r->processes[i].functions);
	}
	free(r->processes);
	free(r->threads);
	tw_map_fini(&r->by_port);
}

static int see(void *self, const struct tw_capture_event *event)
{
	struct tw_native_replay *r = self;
	take_event(r, event);
	return r->error;
}

int tw_native_ports_begin(struct tw_native_ports *ports, struct tw_capture *capture,
			  const struct tw_capture_filter *filter, bool is_each, struct tw_fold *fold)
{
	struct tw_capture_info info;
	struct tw_native_replay *r = calloc(1, sizeof *r);
	tw_capture_info(capture, &info);
	*ports = (struct tw_native_ports){.is_each = is_each, .replay = r};
	*fold = (struct tw_fold){.self = r, .filter = {.to_ns = filter->to_ns}, .see = see};
	if (!r)
		return TW_ENOMEM;
	*r = (struct tw_native_replay){.ports = ports,
				       .capture = capture,
				       .filter = filter,
				       .processes = calloc((size_t)info.images + 1, sizeof *r->processes),
				       .threads = calloc((size_t)info.streams + 1, sizeof *r->threads)};
	if (!r->processes || !r->threads)
		return TW_ENOMEM;
	r->process_count = info.images;
	r->thread_count = info.streams;
	return 0;
}

static int end_replay(struct tw_native_ports *ports)
{
	int error = 0;
	if (ports->replay) {
		end_all(ports->replay);
		error = ports->replay->error;
	}
	free(ports->replay);
	ports->replay = NULL;
	return error;
}

int tw_native_ports_end(struct tw_native_ports *ports, const char *glob)
{
	int error = end_replay(ports);
	size_t kept = 0;
	for (size_t i = 0; i < ports->count; i++) {
		if (glob && fnmatch(glob, ports->rows[i].what, 0) != 0)
			free(ports->rows[i].what);
		else
			ports->rows[kept++] = ports->rows[i];
	}
	ports->count = kept;
	for (size_t i = 0; i < ports->count; i++) {
		ports->in_bytes += ports->rows[i].in_bytes;
		ports->out_bytes += ports->rows[i].out_bytes;
		ports->calls += ports->rows[i].calls;
		ports->call_ns += ports->rows[i].call_ns;
	}
	if (ports->count)
		qsort(ports->rows, ports->count, sizeof *ports->rows, by_bytes);
	return error;
}

void tw_native_ports_free(struct tw_native_ports *ports)
{
	end_replay(ports);
	for (size_t i = 0; i < ports->count; i++)
		free(ports->rows[i].what);
	free(ports->rows);
	*ports = (struct tw_native_ports){0};
}
