/* SPDX-License-Identifier: Apache-2.0 */
/* process_begin.c - the run-time's interface: declared schedulers and processes; each may be the first call of a program. */
#include "pipeline/thread/thread.h"
#include "session/seq/seq.h"
#include "session/session.h"
#include "session/tracee.h"
#include "tracewheel/runtime.h"

TW_API int tw_scheduler_declare(void)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	bool has_joined;

	tw_session_init();
	if (tw_hit_is_under_way())
		return TW_EDEADLK;
	tw_thread_becomes_scheduler = true;
	has_joined = tw_thread_join();
	tw_thread_becomes_scheduler = false;
	if (!has_joined)
		return TW_ENOMEM;
	if (t->thread->is_scheduler)
		return 0;
	t->thread->is_scheduler = true;
	/* The thread was a process until now. */
	if (t->thread->own_tracee)
		tw_process_thread_ends(t->thread->own_tracee);
	tw_thread_run(NULL);
	if (t->thread->own_tracee)
		tw_tracee_exit(t->thread->own_tracee);
	t->thread->own_tracee = NULL;
	return 0;
}

/* Makes {M,F,Args}; none without memory. */
static struct tw_term entry_of(struct tw_arena *arena, const struct tw_spawn *options)
{
	const struct tw_declared_function *function = options->function;
	struct tw_term parts[3] = {tw_term_atom_z(function->module), tw_term_atom_z(function->name),
				   tw_term_list(arena, options->arguments, options->argument_count, tw_term_nil())};

	return tw_term_tuple(arena, parts, 3);
}

static void tell_spawn(struct tw_tracee *parent, struct tw_tracee *child, const struct tw_spawn *options)
{
	char capacity[TW_PID_BYTES];
	struct tw_arena arena;
	struct tw_term entry;

	if (!tw_runtime_wants(TW_WANTS_PROCS))
		return;
	tw_arena_init_buffer(&arena, capacity, sizeof capacity, SIZE_MAX);
	entry = options->entry;
	if (tw_term_is_none(entry) && options->function)
		entry = entry_of(&arena, options);
	entry = tw_process_entry(&arena, entry);
	tw_process_tell_pid(parent, TW_EVENT_SPAWN, child->pid_number, entry);
	if (options->is_linked)
		tw_process_tell_pid(parent, TW_EVENT_LINK, child->pid_number, (struct tw_term){0});
	tw_process_tell_pid(child, TW_EVENT_SPAWNED, parent->pid_number, entry);
	if (options->is_linked)
		tw_process_tell_pid(child, TW_EVENT_GETTING_LINKED, parent->pid_number, (struct tw_term){0});
	tw_arena_fini(&arena);
}

static void spawn_with_token(struct tw_tracee *parent, struct tw_tracee *child, const struct tw_spawn *options)
{
	char capacity[TW_PID_BYTES];
	struct tw_arena arena;
	struct tw_term entry = options->entry;

	tw_arena_init_buffer(&arena, capacity, sizeof capacity, SIZE_MAX);
	if (tw_term_is_none(entry) && options->function)
		entry = entry_of(&arena, options);
	tw_seq_spawn(parent, child, entry, options->is_linked);
	tw_arena_fini(&arena);
}

TW_API int tw_process_spawn(const struct tw_spawn *options, struct tw_process **out)
{
	struct tw_tracee *parent, *child;

	tw_session_init();
	if (tw_hit_is_under_way())
		return TW_EDEADLK;
	if (!tw_term_is_none(options->entry) && tw_term_tuple_count(options->entry) != 3)
		return TW_EBADARG;
	parent = tw_tracee_of(options->parent);
	tw_registry_lock();
	child = tw_tracee_make(0, options->name);
	if (child && parent)
		tw_inherit_by_spawn(parent, child, options->is_linked);
	tw_registry_unlock();
	if (!child)
		return TW_ENOMEM;
	if (parent)
		tell_spawn(parent, child, options);
	if (parent && tw_seq_is_active())
		spawn_with_token(parent, child, options);
	*out = (struct tw_process *)child;
	return 0;
}

TW_API int tw_process_create(const char *name, struct tw_process **out)
{
	struct tw_spawn options = {.name = name};

	return tw_process_spawn(&options, out);
}

TW_API struct tw_process *tw_process_current(void)
{
	tw_session_init();
	if (!tw_thread_join() || tw_hit_tls.tracee == &tw_hit_nobody)
		return NULL;
	return (struct tw_process *)tw_hit_tls.tracee;
}

TW_API tw_pid tw_process_self(void)
{
	tw_session_init();
	return tw_thread_join() && tw_hit_tls.tracee ? tw_hit_tls.tracee->pid_number : 0;
}
