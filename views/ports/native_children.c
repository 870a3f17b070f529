/* SPDX-License-Identifier: Apache-2.0 */
/* native_children.c - children as ports, and those of vfork(), whose calls come on their parent's thread. */
#include "views/ports/native_replay.h"
#include "base/grow.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>

void tw_native_add_child(struct tw_native_replay *r, struct tw_native_process *process,
			 const struct tw_native_function *function, int32_t process_id, bool is_counted)
{
	char text[32];
	snprintf(text, sizeof text, r->ports->is_each && process_id ? "process %d" : "process", process_id);
	bool has_space = tw_grow(process->children, process->child_count, process->child_space);
	struct tw_native_instance *instance = tw_native_instance_create(r, "process", text);
	if (!has_space)
		r->error = TW_ENOMEM;
	if (!instance)
		return;
	instance->sums.opener = function->name;
	instance->sums.caller = function->caller;
	instance->sums.opened = is_counted;
	instance->open_count = 1;
	tw_native_hold(instance);
	if (has_space)
		process->children[process->child_count++] = (struct tw_native_child){process_id, instance};
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

void tw_native_enter_child(struct tw_native_replay *r, struct tw_native_process *process,
			   struct tw_native_thread *thread)
{
	/* The end of an earlier one was not seen: it was killed, or made bare system calls. */
	tw_native_leave_child(r, process, thread, false);
	thread->child_snapshot = tw_native_take_snapshot(r, process, &process->table, true);
	tw_native_copy_table(r, &thread->child_table, &process->table);
	thread->is_in_child = true;
}

void tw_native_leave_child(struct tw_native_replay *r, struct tw_native_process *process,
			   struct tw_native_thread *thread, bool has_executed)
{
	struct tw_native_snapshot *snapshot = tw_native_snapshot_at(process, thread->child_snapshot);
	if (!thread->is_in_child)
		return;
	if (snapshot && !has_executed)
		snapshot->process_id = -1;
	if (has_executed && snapshot) {
		tw_native_free_table(r, &snapshot->table);
		snapshot->table = thread->child_table;
		thread->child_table = (struct tw_native_table){0};
	}
	tw_native_free_table(r, &thread->child_table);
	thread->is_in_child = false;
}
