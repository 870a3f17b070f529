/* SPDX-License-Identifier: Apache-2.0 */
/* native_ports.c - calls of libc replayed into tables of descriptors. */
#include "tools/common/descriptors.h"
#include "tools/report/native_replay.h"

#include "tracewheel/error.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
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
	void *grown = tw_native_grow(process->functions, &process->function_count, (size_t)event->id + 1,
				     sizeof *process->functions);
	if (grown)
		process->functions = grown;
	if (!grown || !function) {
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
		else if (!strcmp(name, "command"))
			call->command = (int)word;
	}
}

static struct tw_native_instance *hold_fd(struct tw_native_replay *r, struct tw_native_process *process, int fd)
{
	bool is_unseen;
	struct tw_native_instance *instance =
		fd >= 0 ? tw_native_hold(tw_native_instance_of(r, process, fd, &is_unseen)) : NULL;
	r->ports->unknown += instance && is_unseen;
	return instance;
}

static bool is_counted(const struct tw_native_replay *r, uint64_t time_ns)
{
	return time_ns >= r->filter->from_ns && (!r->filter->to_ns || time_ns < r->filter->to_ns);
}

static void begin_call(struct tw_native_replay *r, const struct tw_capture_event *event,
		       const struct tw_native_function *function)
{
	struct tw_native_process *process = &r->processes[event->image];
	struct tw_native_thread *thread = &r->threads[event->stream];
	if (thread->depth == DEPTH_MAX)
		return;
	struct tw_native_call *call = &thread->calls[thread->depth++];
	*call = (struct tw_native_call){.function = function,
					.time_ns = event->time_ns,
					.fd = -1,
					.in_fd = -1,
					.out_fd = -1,
					.last = UINT32_MAX,
					.command = -1};
	read_arguments(event, function, call);
	if (call->stream)
		call->fd = tw_native_stream_fd(process, function, call->stream);
	else if (function->standard)
		call->fd = function->standard - 1;
	/* The return of vfork() is not watched. */
	if (!strcmp(function->name, "vfork"))
		tw_native_add_child(r, process, function, 0, is_counted(r, event->time_ns));
	if (function->op == TW_NATIVE_OP_FORK)
		call->snapshot = tw_native_take_snapshot(r, process);
	if (function->op == TW_NATIVE_OP_BOTH) {
		call->in = hold_fd(r, process, call->in_fd);
		call->out = hold_fd(r, process, call->out_fd);
		return;
	}
	/* fcntl(fd, F_GETFL) and the like do not use the port. */
	if (function->op == TW_NATIVE_OP_OPEN && call->fd < 0)
		return;
	if (function->op != TW_NATIVE_OP_DUP && function->op != TW_NATIVE_OP_CLOSE_RANGE)
		*(function->op == TW_NATIVE_OP_OUT ? &call->out : &call->in) = hold_fd(r, process, call->fd);
	/* Another thread may get the number before this call returns. */
	if (function->op == TW_NATIVE_OP_CLOSE) {
		tw_native_close_fd(process, call->fd);
		tw_native_forget_stream(process, call->stream);
	}
	/* With CLOSE_RANGE_CLOEXEC they stay until exec; then a use of one finds nothing, and says so. */
	if (function->op == TW_NATIVE_OP_CLOSE_RANGE)
		for (uint64_t fd = call->first; fd <= call->last && fd < process->entry_count; fd++)
			tw_native_close_fd(process, (int)fd);
}

static void count_side(struct tw_native_replay *r, struct tw_native_instance *instance,
		       const struct tw_native_call *call, uint64_t time_ns, int64_t result, uint64_t bytes, bool is_in)
{
	if (!instance || !is_counted(r, time_ns))
		return;
	struct tw_native_port *sums = &instance->sums;
	bool is_io = call->function->op == TW_NATIVE_OP_IN || call->function->op == TW_NATIVE_OP_OUT ||
		     call->function->op == TW_NATIVE_OP_BOTH;
	sums->calls++;
	sums->call_ns += time_ns > call->time_ns ? time_ns - call->time_ns : 0;
	sums->failed += result < 0;
	if (!is_io)
		return;
	sums->is_partial |= call->function->size == TW_NATIVE_SIZE_UNKNOWN;
	*(is_in ? &sums->in_bytes : &sums->out_bytes) += bytes;
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

/* A descriptor that the call has made, or whose address it has set. */
static void describe(struct tw_native_replay *r, struct tw_native_process *process, const struct tw_native_call *call,
		     uint64_t time_ns, const struct tw_layout_description *what)
{
	struct tw_native_entry *entry = tw_native_entry_at(r, process, what->fd);
	bool is_new = call->fd != what->fd || call->function->op != TW_NATIVE_OP_OPEN;
	/* A closed port that had the number says nothing of this one. */
	bool is_accepted = call->function->op == TW_NATIVE_OP_ACCEPT ||
			   (!is_new && entry && entry->instance && entry->is_open && entry->instance->is_accepted);
	char text[TW_DESCRIPTOR_TEXT_BYTES];
	if (!entry)
		return;
	tw_descriptor_text(what, r->ports->is_each ? TW_DESCRIPTOR_WHOLE : TW_DESCRIPTOR_SORT, is_accepted, text);
	/* connect(), bind(), fdopen(): the port is there, and is known better now. */
	if (!is_new && entry->instance && entry->is_open && entry->instance->sums.opener) {
		char *copy = strdup(text);
		if (copy) {
			free(entry->instance->sums.what);
			entry->instance->sums.what = copy;
			entry->instance->sums.kind = tw_descriptor_kind(what);
		}
		return;
	}
	struct tw_native_instance *instance = tw_native_instance_create(r, tw_descriptor_kind(what), text);
	if (!instance)
		return;
	instance->is_accepted = is_accepted;
	instance->sums.opener = call->function->name;
	instance->sums.caller = call->function->caller;
	instance->sums.opened = is_counted(r, time_ns);
	tw_native_set_entry(r, entry, instance);
}

/* A child was made, or waited for. */
static void end_of_child(struct tw_native_replay *r, struct tw_native_process *process,
			 const struct tw_native_call *call, uint64_t time_ns, int64_t result)
{
	bool is_spawned = strstr(call->function->name, "spawn") != NULL;
	if (call->function->op == TW_NATIVE_OP_FORK) {
		if (is_spawned ? result == 0 : result > 0)
			tw_native_add_child(r, process, call->function, is_spawned ? 0 : (int32_t)result,
					    is_counted(r, time_ns));
		return;
	}
	struct tw_native_instance *child = result > 0 ? tw_native_take_child(process, (int32_t)result) : NULL;
	if (!child)
		return;
	count_side(r, child, call, time_ns, result, 0, true);
	child->is_closed = true;
	tw_native_release(r, child);
}

static void end_call(struct tw_native_replay *r, const struct tw_capture_event *event, struct tw_native_call *call,
		     bool has_returned)
{
	struct tw_native_process *process = &r->processes[event->image];
	int64_t result = event->payload_words ? (int64_t)event->payload[0] : 0;
	if (call->function->layout->result.bytes == 4 || call->function->layout->result.type == 'd')
		result = (int32_t)result;
	if (call->function->layout->result.type == 'd' &&
	    call->function->layout->result.bytes == TW_LAYOUT_DESCRIPTOR_STREAM)
		result = event->payload_words && event->payload[0] ? 0 : -1;
	if (!has_returned)
		result = -1;
	uint64_t bytes = bytes_of(call, result);
	count_side(r, call->in, call, event->time_ns, result, bytes, true);
	count_side(r, call->out, call, event->time_ns, result, bytes, false);
	/* In the child it returns 0, and there it was not called. */
	if (call->snapshot && result > 0 && process->snapshot_count - call->snapshot < SNAPSHOTS_MAX)
		process->snapshots[(call->snapshot - 1) % SNAPSHOTS_MAX].process_id = (int32_t)result;
	if (call->function->op == TW_NATIVE_OP_FORK || call->function->op == TW_NATIVE_OP_WAIT)
		end_of_child(r, process, call, event->time_ns, result);
	struct tw_layout_description what;
	uint32_t at = 1;
	if (call->function->layout->result.type != 'd' || !has_returned)
		return;
	/* A duplicate leads to the same port. */
	struct tw_native_entry *old =
		call->function->op == TW_NATIVE_OP_DUP ? tw_native_entry_at(r, process, call->fd) : NULL;
	while (tw_layout_next_description(event->payload, event->payload_words, &at, &what)) {
		if (old && old->instance && old->is_open && what.fd != call->fd) {
			struct tw_native_instance *shared = old->instance;
			struct tw_native_entry *entry = tw_native_entry_at(r, process, what.fd);
			if (entry)
				tw_native_set_entry(r, entry, shared);
		} else if (!old || what.fd != call->fd) {
			describe(r, process, call, event->time_ns, &what);
		}
		if (call->function->layout->result.bytes == TW_LAYOUT_DESCRIPTOR_STREAM)
			tw_native_set_stream(r, process, event->payload[0], what.fd);
	}
}

static void take_event(struct tw_native_replay *r, const struct tw_capture_event *event)
{
	bool is_call = event->kind == TW_CAPTURE_CALL, has_returned = event->kind == TW_CAPTURE_RETURN_FROM;
	if (event->image >= r->process_count || event->stream >= r->thread_count ||
	    (!is_call && !has_returned && event->kind != TW_CAPTURE_EXCEPTION_FROM))
		return;
	const struct tw_native_function *function = function_of(r, event);
	if (!function || (is_call && !(event->flags & TW_CAPTURE_FLAG_ARGS) && function->layout->count))
		return;
	if (!r->processes[event->image].has_begun)
		tw_native_begin_process(r, event->image);
	r->ports->is_recorded = true;
	if (is_call) {
		begin_call(r, event, function);
		return;
	}
	struct tw_native_thread *thread = &r->threads[event->stream];
	unsigned depth = thread->depth;
	while (depth && thread->calls[depth - 1].function->name != function->name)
		depth--;
	/* Of a call before the capture, or of one that was lost. */
	if (!depth)
		return;
	for (unsigned i = thread->depth; i-- > depth - 1;) {
		if (i == depth - 1)
			end_call(r, event, &thread->calls[i], has_returned);
		tw_native_release(r, thread->calls[i].in);
		tw_native_release(r, thread->calls[i].out);
	}
	thread->depth = depth - 1;
}

/* ---- the whole ---- */

static int by_bytes(const void *a, const void *b)
{
	const struct tw_native_port *x = a, *y = b;
	uint64_t x_bytes = x->in_bytes + x->out_bytes, y_bytes = y->in_bytes + y->out_bytes;
	if (x_bytes != y_bytes)
		return x_bytes < y_bytes ? 1 : -1;
	if (x->calls != y->calls)
		return x->calls < y->calls ? 1 : -1;
	return strcmp(x->what, y->what);
}

static void end_all(struct tw_native_replay *r)
{
	for (uint32_t i = 0; i < r->thread_count; i++) {
		for (unsigned j = 0; j < r->threads[i].depth; j++) {
			tw_native_release(r, r->threads[i].calls[j].in);
			tw_native_release(r, r->threads[i].calls[j].out);
		}
	}
	for (uint32_t i = 0; i < r->process_count; i++) {
		for (size_t fd = 0; fd < r->processes[i].entry_count; fd++)
			tw_native_release(r, r->processes[i].entries[fd].instance);
		for (unsigned j = 0; j < SNAPSHOTS_MAX; j++)
			tw_native_free_snapshot(r, &r->processes[i].snapshots[j]);
		for (size_t j = 0; j < r->processes[i].child_count; j++)
			tw_native_release(r, r->processes[i].children[j].instance);
		free(r->processes[i].children);
		free(r->processes[i].entries);
		free(r->processes[i].streams);
		for (size_t j = 0; j < r->processes[i].function_count; j++)
			free(r->processes[i].functions[j]);
		free(r->processes[i].functions);
	}
	free(r->processes);
	free(r->threads);
	free(r->slots);
}

static int replay_events(struct tw_native_replay *r)
{
	struct tw_capture_filter filter = {.to_ns = r->filter->to_ns};
	const struct tw_capture_event *batch;
	struct tw_capture_events *events;
	int64_t count = 0;
	int error = tw_capture_events_create(r->capture, &filter, &events);
	if (error)
		return error;
	while (!r->error && (count = tw_capture_events_next(events, &batch)) > 0)
		for (int64_t i = 0; i < count; i++)
			take_event(r, &batch[i]);
	tw_capture_events_destroy(events);
	return r->error ? r->error : (int)count;
}

int tw_native_ports_make(struct tw_native_ports *ports, struct tw_capture *capture,
			 const struct tw_capture_filter *filter, bool is_each, const char *glob)
{
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	*ports = (struct tw_native_ports){.is_each = is_each};
	struct tw_native_replay r = {.ports = ports,
				     .capture = capture,
				     .filter = filter,
				     .process_count = info.images,
				     .thread_count = info.streams,
				     .processes = calloc((size_t)info.images + 1, sizeof *r.processes),
				     .threads = calloc((size_t)info.streams + 1, sizeof *r.threads)};
	int error = r.processes && r.threads ? replay_events(&r) : TW_ENOMEM;
	if (!r.processes || !r.threads)
		r.process_count = r.thread_count = 0;
	end_all(&r);
	if (!error)
		error = r.error;
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
	for (size_t i = 0; i < ports->count; i++)
		free(ports->rows[i].what);
	free(ports->rows);
	*ports = (struct tw_native_ports){0};
}
