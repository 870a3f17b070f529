/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - registered names. */
#include "run.h"

#include "trace.h"

#include <stdlib.h>

/* Under the lock. */
static struct name *find(struct runtime *runtime, struct value name)
{
	for (size_t i = 0; i < runtime->name_count; i++) {
		if (is_same(runtime->names[i].name, name))
			return &runtime->names[i];
	}
	return NULL;
}

static bool add(struct runtime *runtime, struct value name, struct value pid)
{
	if (runtime->name_count == runtime->name_capacity) {
		size_t capacity = runtime->name_capacity ? runtime->name_capacity * 2 : 16;
		struct name *names = realloc(runtime->names, capacity * sizeof *names);
		if (!names)
			return false;
		runtime->names = names;
		runtime->name_capacity = capacity;
	}
	runtime->names[runtime->name_count++] = (struct name){name, pid};
	return true;
}

struct value name_find(struct runtime *runtime, struct value name)
{
	pthread_mutex_lock(&runtime->names_lock);
	struct name *entry = find(runtime, name);
	struct value pid = entry ? entry->pid : NONE;
	pthread_mutex_unlock(&runtime->names_lock);
	return pid;
}

struct value whereis(struct actor *self, struct value name)
{
	return name_find(self->runtime, name);
}

/*
 * Under the names' lock and then the mailbox's: an ending actor closes the mailbox first and removes its names after.
 */
void register_name(struct actor *self, struct value name, struct value pid)
{
	struct runtime *runtime = self->runtime;
	struct actor *actor = slot_of(runtime, pid);
	bool is_registered = false;
	if (actor && tag_of(name) == TAG_ATOM) {
		pthread_mutex_lock(&runtime->names_lock);
		lock_take(&actor->mailbox.lock);
		/* RELAXED actors.closed: under the lock. */
		bool is_free =
			!load_relaxed(&actor->mailbox.is_closed) && is_same(pid_of(actor), pid) && is_none(actor->name);
		if (is_free && !find(runtime, name) && add(runtime, name, pid)) {
			actor->name = name;
			trace_register(actor, name);
			is_registered = true;
		}
		lock_give(&actor->mailbox.lock);
		pthread_mutex_unlock(&runtime->names_lock);
	}
	if (!is_registered)
		raise_error(self, ATOM(BADARG));
}

void unregister_name(struct actor *self, struct value name)
{
	struct runtime *runtime = self->runtime;
	pthread_mutex_lock(&runtime->names_lock);
	struct name *entry = find(runtime, name);
	bool is_known = entry != NULL;
	if (entry) {
		struct actor *actor = slot_of(runtime, entry->pid);
		lock_take(&actor->mailbox.lock);
		actor->name = NONE;
		/* RELAXED actors.closed: under the lock. */
		if (!load_relaxed(&actor->mailbox.is_closed))
			trace_unregister(actor);
		lock_give(&actor->mailbox.lock);
		*entry = runtime->names[--runtime->name_count];
	}
	pthread_mutex_unlock(&runtime->names_lock);
	if (!is_known)
		raise_error(self, ATOM(BADARG));
}

/* Without an event: tracing reports it with the exit. */
void names_forget(struct actor *self)
{
	struct runtime *runtime = self->runtime;
	pthread_mutex_lock(&runtime->names_lock);
	for (size_t i = runtime->name_count; i-- > 0;) {
		if (is_same(runtime->names[i].pid, pid_of(self)))
			runtime->names[i] = runtime->names[--runtime->name_count];
	}
	self->name = NONE;
	pthread_mutex_unlock(&runtime->names_lock);
}
