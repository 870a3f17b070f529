/* SPDX-License-Identifier: Apache-2.0 */
/* native_tables.c - which descriptor of which process leads to which port. */
#include "views/names/descriptors.h"
#include "views/ports/native_replay.h"
#include "base/grow.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tw_native_entry *tw_native_entry_at(struct tw_native_replay *r, struct tw_native_table *table, int fd)
{
	if (fd < 0 || fd >= FD_MAX)
		return NULL;
	if (!tw_grow_to(table->entries, table->entry_count, (size_t)fd)) {
		r->error = TW_ENOMEM;
		return NULL;
	}
	return &table->entries[fd];
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

static void name_instance(const struct tw_native_replay *r, const struct tw_layout_description *what, bool is_accepted,
			  char text[TW_DESCRIPTOR_TEXT_BYTES])
{
	tw_descriptor_text(what, r->ports->is_each ? TW_DESCRIPTOR_WHOLE : TW_DESCRIPTOR_SORT, is_accepted, text);
}

struct tw_native_instance *tw_native_instance_describe(struct tw_native_replay *r,
						       const struct tw_layout_description *what, bool is_accepted)
{
	char text[TW_DESCRIPTOR_TEXT_BYTES];
	name_instance(r, what, is_accepted, text);
	struct tw_native_instance *instance = tw_native_instance_create(r, tw_descriptor_kind(what), text);
	if (!instance)
		return NULL;
	instance->is_accepted = is_accepted;
	instance->inode = what->inode;
	instance->mode = what->mode;
	return instance;
}

void tw_native_instance_rename(struct tw_native_replay *r, struct tw_native_instance *instance,
			       const struct tw_layout_description *what)
{
	char text[TW_DESCRIPTOR_TEXT_BYTES];
	name_instance(r, what, instance->is_accepted, text);
	char *copy = strdup(text);
	if (!copy) {
		r->error = TW_ENOMEM;
		return;
	}
	free(instance->sums.what);
	instance->sums.what = copy;
	instance->sums.kind = tw_descriptor_kind(what);
	instance->inode = what->inode;
	instance->mode = what->mode;
}

/* The descriptor does not lead there any more; the instance stays. */
static void close_entry(struct tw_native_entry *entry)
{
	if (entry->instance && entry->is_open && !entry->is_inherited)
		entry->instance->open_count--;
	entry->is_open = entry->is_inherited = false;
}

void tw_native_set_entry(struct tw_native_replay *r, struct tw_native_entry *entry, struct tw_native_instance *instance,
			 bool is_inherited)
{
	struct tw_native_instance *old = entry->instance;
	tw_native_hold(instance);
	close_entry(entry);
	*entry = (struct tw_native_entry){.instance = instance, .is_open = true, .is_inherited = is_inherited};
	instance->open_count += !is_inherited;
	tw_native_release(r, old);
}

struct tw_native_instance *tw_native_instance_of(struct tw_native_replay *r, struct tw_native_table *table, int fd)
{
	static const char *const standard[] = {"standard input", "standard output", "standard error"};
	struct tw_native_entry *entry = tw_native_entry_at(r, table, fd);
	char text[64];
	if (!entry)
		return NULL;
	if (entry->instance && entry->is_open)
		return entry->instance;
	if (fd > 2)
		snprintf(text, sizeof text, "descriptor %d, opened unseen", fd);
	else
		snprintf(text, sizeof text, "%s, inherited", standard[fd]);
	struct tw_native_instance *instance = tw_native_instance_create(r, "inherited", text);
	if (!instance)
		return NULL;
	instance->is_unseen = fd > 2;
	tw_native_set_entry(r, entry, instance, false);
	return instance;
}

void tw_native_close_fd(struct tw_native_table *table, int fd)
{
	if (fd >= 0 && (size_t)fd < table->entry_count)
		close_entry(&table->entries[fd]);
}

void tw_native_free_table(struct tw_native_replay *r, struct tw_native_table *table)
{
	for (size_t fd = 0; fd < table->entry_count; fd++)
		tw_native_release(r, table->entries[fd].instance);
	free(table->entries);
	*table = (struct tw_native_table){0};
}

/* The copy inherits: its descriptors are closed by another process than the one that opened them. */
void tw_native_copy_table(struct tw_native_replay *r, struct tw_native_table *to, const struct tw_native_table *from)
{
	*to = (struct tw_native_table){.entries = calloc(from->entry_count + 1, sizeof *to->entries)};
	if (!to->entries) {
		r->error = TW_ENOMEM;
		return;
	}
	to->entry_count = from->entry_count;
	for (size_t fd = 0; fd < from->entry_count; fd++)
		if (from->entries[fd].instance && from->entries[fd].is_open)
			to->entries[fd] =
				(struct tw_native_entry){.instance = tw_native_hold(from->entries[fd].instance),
							 .is_open = true,
							 .is_inherited = true};
}

unsigned tw_native_take_snapshot(struct tw_native_replay *r, struct tw_native_process *process,
				 const struct tw_native_table *table, bool is_for_program)
{
	struct tw_native_snapshot *snapshot = &process->snapshots[process->snapshot_count % SNAPSHOTS_MAX];
	tw_native_free_table(r, &snapshot->table);
	snapshot->process_id = 0;
	snapshot->is_for_program = is_for_program;
	tw_native_copy_table(r, &snapshot->table, table);
	return r->error ? 0 : ++process->snapshot_count;
}

struct tw_native_snapshot *tw_native_snapshot_at(struct tw_native_process *process, unsigned number)
{
	bool is_there = number && process->snapshot_count - number < SNAPSHOTS_MAX;
	return is_there ? &process->snapshots[(number - 1) % SNAPSHOTS_MAX] : NULL;
}

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
		if (!tw_grow_one(process->streams, process->stream_count)) {
			r->error = TW_ENOMEM;
			return;
		}
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
