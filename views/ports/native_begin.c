/* SPDX-License-Identifier: Apache-2.0 */
/* native_begin.c - what a process has when it begins: its parent's descriptors, and what the agent found open. */
#include "views/ports/native_replay.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The agent describes what is open when a program starts; a forked child goes on with its parent's. */
static bool is_program_start(const struct tw_native_replay *r, uint32_t image)
{
	uint32_t at = 0, count;
	return tw_capture_descriptor_next(r->capture, image, &at, &count) != NULL;
}

/*
 * The snapshot of this child; else the newest whose child is not known yet: of a fork() that has not returned in the parent, or of
 * a program that vfork() or posix_spawn() started.  NULL: none.
 */
static const struct tw_native_snapshot *find_snapshot(struct tw_native_process *process, int32_t process_id,
						      bool is_program)
{
	struct tw_native_snapshot *newest = NULL;
	for (unsigned i = process->snapshot_count; i && process->snapshot_count - i < SNAPSHOTS_MAX; i--) {
		struct tw_native_snapshot *snapshot = &process->snapshots[(i - 1) % SNAPSHOTS_MAX];
		if (snapshot->process_id == process_id)
			return snapshot;
		if (!snapshot->process_id && !newest && snapshot->is_for_program <= is_program)
			newest = snapshot;
	}
	if (newest)
		newest->process_id = process_id;
	return newest;
}

/* Its own program before exec, or its parent's last one.  NULL: neither is in the capture. */
static const struct tw_capture_image *find_predecessor(const struct tw_native_replay *r, uint32_t number)
{
	const struct tw_capture_image *image = tw_capture_image(r->capture, number), *own = NULL, *parent = NULL;
	bool is_program = is_program_start(r, number);
	for (uint32_t i = 0; image && i < r->process_count; i++) {
		const struct tw_capture_image *other = tw_capture_image(r->capture, i);
		if (!other || i == number || other->start_ns >= image->start_ns)
			continue;
		/* A forked child has the number of an earlier process only by chance. */
		if (is_program && other->process_id == image->process_id && (!own || other->start_ns >= own->start_ns))
			own = other;
		if (other->process_id == image->parent_process_id && (!parent || other->start_ns >= parent->start_ns))
			parent = other;
	}
	return own ? own : parent;
}

static void inherit(struct tw_native_replay *r, struct tw_native_process *process, const struct tw_capture_image *image,
		    const struct tw_capture_image *from, bool is_same)
{
	struct tw_native_process *parent = &r->processes[from->image];
	const struct tw_native_snapshot *snapshot =
		is_same ? NULL : find_snapshot(parent, image->process_id, is_program_start(r, image->image));
	if (is_same) {
		/* It takes them along: nothing runs in the old program any more. */
		process->table = parent->table;
		parent->table = (struct tw_native_table){0};
	} else {
		tw_native_copy_table(r, &process->table, snapshot ? &snapshot->table : &parent->table);
	}
	/* How it was forked was not seen, so perhaps before the parent closed some of them. */
	for (size_t fd = 0; !is_same && !snapshot && fd < process->table.entry_count; fd++) {
		struct tw_native_instance *instance = parent->table.entries[fd].instance;
		if (instance && !process->table.entries[fd].instance)
			process->table.entries[fd] = (struct tw_native_entry){.instance = tw_native_hold(instance),
									      .is_open = true,
									      .is_inherited = true};
	}
	/* Streams live on in a child, not in a new program. */
	if (!is_same && parent->stream_count) {
		process->streams = malloc(parent->stream_count * sizeof *process->streams);
		if (process->streams) {
			memcpy(process->streams, parent->streams, parent->stream_count * sizeof *process->streams);
			process->stream_count = parent->stream_count;
		}
	}
}

/* Anonymous inodes (epoll, eventfd) are one for all of them. */
static bool is_same_port(const struct tw_native_entry *entry, const struct tw_layout_description *what, bool is_same_fd)
{
	const struct tw_native_instance *instance = entry->instance;
	if (!instance || !entry->is_open)
		return false;
	return instance->mode == what->mode && instance->inode == what->inode && (what->mode || is_same_fd);
}

/* The port that a descriptor of the new program leads to, by its number or by what it is.  NULL: none that is known. */
static struct tw_native_entry *find_port(const struct tw_native_table *table, const struct tw_layout_description *what)
{
	struct tw_native_entry *found = NULL;
	if (what->fd >= 0 && (size_t)what->fd < table->entry_count &&
	    is_same_port(&table->entries[what->fd], what, true))
		return &table->entries[what->fd];
	for (size_t fd = 0; fd < table->entry_count; fd++) {
		struct tw_native_entry *entry = &table->entries[fd];
		/* Both ends of a pipe have its inode. */
		if (is_same_port(entry, what, false) &&
		    (!found || entry->instance->is_read_end == (what->fd == STDIN_FILENO)))
			found = entry;
	}
	return found;
}

static void take_descriptor(struct tw_native_replay *r, struct tw_native_table *old, struct tw_native_table *started,
			    const struct tw_layout_description *what, bool is_same)
{
	struct tw_native_entry *entry = tw_native_entry_at(r, started, what->fd), *known = find_port(old, what);
	if (!entry)
		return;
	if (!known)
		known = find_port(started, what);
	struct tw_native_instance *instance = known ? known->instance : tw_native_instance_describe(r, what, false);
	if (instance)
		tw_native_set_entry(r, entry, instance, !known || !is_same || known->is_inherited);
}

/* exec has closed some, and what was done to others between fork and exec inside libc was not seen. */
static void take_started(struct tw_native_replay *r, struct tw_native_table *table, uint32_t image, bool is_same)
{
	struct tw_native_table started = {0};
	struct tw_layout_description what;
	const uint64_t *words;
	uint32_t at = 0, count;
	bool is_known = false;
	while ((words = tw_capture_descriptor_next(r->capture, image, &at, &count))) {
		uint32_t word = 0;
		is_known = true;
		while (tw_layout_next_description(words, count, &word, &what))
			take_descriptor(r, table, &started, &what, is_same);
	}
	if (!is_known)
		return;
	for (size_t fd = 0; fd < table->entry_count; fd++)
		tw_native_close_fd(table, (int)fd);
	tw_native_free_table(r, table);
	*table = started;
}

void tw_native_begin_process(struct tw_native_replay *r, uint32_t number)
{
	const struct tw_capture_image *image = tw_capture_image(r->capture, number),
				      *from = find_predecessor(r, number);
	struct tw_native_process *process = &r->processes[number];
	bool is_same = from && from->process_id == image->process_id;
	process->has_begun = true;
	/* One that had no event begins now: what it inherited is inherited from it. */
	if (from && !r->processes[from->image].has_begun)
		tw_native_begin_process(r, from->image);
	if (from)
		inherit(r, process, image, from, is_same);
	take_started(r, &process->table, number, is_same);
}

bool tw_native_has_pointers(struct tw_native_replay *r, const char *module, bool is_stream)
{
	bool has_any = false;
	for (uint32_t image = 0; module && image < r->process_count && !has_any; image++) {
		const struct tw_capture_pointer *pointer;
		for (uint32_t at = 0; (pointer = tw_capture_pointer_next(r->capture, image, &at)) && !has_any;)
			has_any = pointer->is_stream == is_stream && !strcmp(pointer->module, module);
	}
	if (!has_any)
		return false;
	for (unsigned i = 0; i < r->ports->indirect_count; i++)
		if (!strcmp(r->ports->indirect[i], module))
			return true;
	if (r->ports->indirect_count < TW_NATIVE_INDIRECT_MAX)
		r->ports->indirect[r->ports->indirect_count++] = module;
	return true;
}
