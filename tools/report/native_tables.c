/* SPDX-License-Identifier: Apache-2.0 */
/* native_tables.c - which descriptor of which process leads to which port. */
#include "tools/report/native_replay.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tw_native_entry *tw_native_entry_at(struct tw_native_replay *r, struct tw_native_process *process, int fd)
{
	if (fd < 0 || fd >= FD_MAX)
		return NULL;
	void *grown = tw_native_grow(process->entries, &process->entry_count, (size_t)fd + 1, sizeof *process->entries);
	if (!grown) {
		r->error = TW_ENOMEM;
		return NULL;
	}
	process->entries = grown;
	return &process->entries[fd];
}

struct tw_native_instance *tw_native_instance_create(struct tw_native_replay *r, const char *kind, const char *what)
{
	struct tw_native_instance *instance = calloc(1, sizeof *instance);
	if (instance)
		instance->sums.what = strdup(what);
	if (!instance || !instance->sums.what) {
		free(instance);
		r->error = TW_ENOMEM;
		return NULL;
	}
	instance->sums.kind = kind;
	return instance;
}

void tw_native_set_entry(struct tw_native_replay *r, struct tw_native_entry *entry, struct tw_native_instance *instance)
{
	tw_native_hold(instance);
	tw_native_release(r, entry->instance);
	*entry = (struct tw_native_entry){.instance = instance, .is_open = true};
}

/* The port that a descriptor leads to; one that nobody was seen to open gets a name all the same. */
struct tw_native_instance *tw_native_instance_of(struct tw_native_replay *r, struct tw_native_process *process, int fd,
						 bool *is_unseen)
{
	static const char *const standard[] = {"standard input", "standard output", "standard error"};
	struct tw_native_entry *entry = tw_native_entry_at(r, process, fd);
	char text[64];
	*is_unseen = false;
	if (!entry)
		return NULL;
	if (entry->instance && (entry->is_open || entry->is_inherited))
		return entry->instance;
	*is_unseen = fd > 2;
	if (fd > 2)
		snprintf(text, sizeof text, "descriptor %d, opened unseen", fd);
	else
		snprintf(text, sizeof text, "%s, inherited", standard[fd]);
	struct tw_native_instance *instance = tw_native_instance_create(r, "inherited", text);
	if (instance)
		tw_native_set_entry(r, entry, instance);
	return instance;
}

void tw_native_close_fd(struct tw_native_process *process, int fd)
{
	if (fd < 0 || (size_t)fd >= process->entry_count)
		return;
	struct tw_native_entry *entry = &process->entries[fd];
	if (entry->instance && entry->is_open && !entry->is_inherited)
		entry->instance->is_closed = true;
	entry->is_open = entry->is_inherited = false;
}

void tw_native_free_snapshot(struct tw_native_replay *r, struct tw_native_snapshot *snapshot)
{
	for (size_t fd = 0; fd < snapshot->entry_count; fd++)
		tw_native_release(r, snapshot->entries[fd].instance);
	free(snapshot->entries);
	*snapshot = (struct tw_native_snapshot){0};
}

/* Returns 1 + its number. */
unsigned tw_native_take_snapshot(struct tw_native_replay *r, struct tw_native_process *process)
{
	struct tw_native_snapshot *snapshot = &process->snapshots[process->snapshot_count % SNAPSHOTS_MAX];
	tw_native_free_snapshot(r, snapshot);
	snapshot->entries = malloc((process->entry_count + 1) * sizeof *snapshot->entries);
	if (!snapshot->entries) {
		r->error = TW_ENOMEM;
		return 0;
	}
	snapshot->entry_count = process->entry_count;
	for (size_t fd = 0; fd < process->entry_count; fd++) {
		snapshot->entries[fd] = process->entries[fd];
		tw_native_hold(snapshot->entries[fd].instance);
	}
	return ++process->snapshot_count;
}

/* That of this child; of one whose number is not known, like a vfork()'s, the newest. NULL: none. */
static const struct tw_native_snapshot *find_snapshot(const struct tw_native_process *process, int32_t process_id)
{
	const struct tw_native_snapshot *newest = NULL;
	for (unsigned i = process->snapshot_count; i && process->snapshot_count - i < SNAPSHOTS_MAX; i--) {
		const struct tw_native_snapshot *snapshot = &process->snapshots[(i - 1) % SNAPSHOTS_MAX];
		if (snapshot->process_id == process_id)
			return snapshot;
		if (!snapshot->process_id && !newest)
			newest = snapshot;
	}
	return newest;
}

/* A child has what its parent has, also what that has closed since: it may have been forked before. */
void tw_native_begin_process(struct tw_native_replay *r, uint32_t number)
{
	const struct tw_capture_image *image = tw_capture_image(r->capture, number), *from = NULL;
	struct tw_native_process *process = &r->processes[number];
	process->has_begun = true;
	for (uint32_t i = 0; image && i < r->process_count; i++) {
		const struct tw_capture_image *other = tw_capture_image(r->capture, i);
		bool is_before =
			other && i != number && other->start_ns <= image->start_ns && r->processes[i].has_begun;
		/* Its own program before exec, or its parent's last one. */
		if (is_before &&
		    (other->process_id == image->process_id || other->process_id == image->parent_process_id) &&
		    (!from || other->start_ns >= from->start_ns))
			from = other;
	}
	if (!from)
		return;
	const struct tw_native_process *parent = &r->processes[from->image];
	const struct tw_native_snapshot *snapshot =
		from->process_id == image->process_id ? NULL : find_snapshot(parent, image->process_id);
	const struct tw_native_entry *entries = snapshot ? snapshot->entries : parent->entries;
	size_t entry_count = snapshot ? snapshot->entry_count : parent->entry_count;
	for (size_t fd = 0; fd < entry_count && !r->error; fd++) {
		struct tw_native_entry *entry = entries[fd].instance ? tw_native_entry_at(r, process, (int)fd) : NULL;
		if (!entry)
			continue;
		tw_native_set_entry(r, entry, entries[fd].instance);
		entry->is_inherited = true;
	}
	/* Streams live on in a child, not in a new program. */
	if (from->process_id != image->process_id && parent->stream_count) {
		process->streams = malloc(parent->stream_count * sizeof *process->streams);
		if (process->streams) {
			memcpy(process->streams, parent->streams, parent->stream_count * sizeof *process->streams);
			process->stream_count = parent->stream_count;
		}
	}
}

/* -1: nobody was seen to open it. */
int tw_native_stream_fd(const struct tw_native_process *process, const struct tw_native_function *function,
			uint64_t stream)
{
	for (size_t i = 0; i < process->stream_count; i++)
		if (process->streams[i].address == stream)
			return process->streams[i].fd;
	for (uint32_t i = 0; i < function->layout->count; i++) {
		const struct tw_layout_value *value = &function->layout->values[i];
		for (uint32_t j = 0; j < value->enumerator_count; j++)
			if ((uint64_t)value->enumerators[j].value == stream)
				return (int)j;
	}
	return -1;
}

void tw_native_set_stream(struct tw_native_replay *r, struct tw_native_process *process, uint64_t address, int fd)
{
	size_t i = 0;
	while (i < process->stream_count && process->streams[i].address != address)
		i++;
	if (i == process->stream_count) {
		struct tw_native_stream *grown = realloc(process->streams, (i + 1) * sizeof *grown);
		if (!grown) {
			r->error = TW_ENOMEM;
			return;
		}
		process->streams = grown;
		process->stream_count++;
	}
	process->streams[i] = (struct tw_native_stream){address, fd};
}

void tw_native_forget_stream(struct tw_native_process *process, uint64_t address)
{
	for (size_t i = 0; i < process->stream_count; i++)
		if (process->streams[i].address == address)
			process->streams[i] = process->streams[--process->stream_count];
}

void tw_native_add_child(struct tw_native_replay *r, struct tw_native_process *process,
			 const struct tw_native_function *function, int32_t process_id, bool is_counted)
{
	char text[32];
	snprintf(text, sizeof text, r->ports->is_each && process_id ? "process %d" : "process", process_id);
	struct tw_native_child *grown =
		tw_native_grow(process->children, &process->child_space, process->child_count + 1, sizeof *grown);
	struct tw_native_instance *instance = tw_native_instance_create(r, "process", text);
	if (grown)
		process->children = grown;
	else
		r->error = TW_ENOMEM;
	if (!instance)
		return;
	instance->sums.opener = function->name;
	instance->sums.caller = function->caller;
	instance->sums.opened = is_counted;
	tw_native_hold(instance);
	if (grown)
		grown[process->child_count++] = (struct tw_native_child){process_id, instance};
	else
		tw_native_release(r, instance);
}

struct tw_native_instance *tw_native_take_child(struct tw_native_process *process, int32_t process_id)
{
	size_t at = process->child_count;
	for (size_t i = 0; i < process->child_count; i++) {
		bool is_this = process->children[i].process_id == process_id;
		if (is_this || (at == process->child_count && !process->children[i].process_id))
			at = i;
		if (is_this)
			break;
	}
	if (at == process->child_count)
		return NULL;
	struct tw_native_instance *instance = process->children[at].instance;
	process->children[at] = process->children[--process->child_count];
	return instance;
}
