/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracee_thread.c - threads that are processes: from pthread_create, where flags may be inherited, to their exit.
 */
#include "pipeline/thread/thread.h"
#include "session/seq/seq.h"
#include "session/session.h"
#include "session/tracee.h"
#include "session/tracer_gone.h"
#include "base/filter.h"
#include "base/sys.h"

#include <string.h>

__thread bool tw_thread_becomes_scheduler;

typedef void *(*thread_fn)(void *);

/* The process that this thread will be, from its start until it joins. */
static __thread struct tw_tracee *born;

static struct tw_tracee *take_born(int thread_id, const char name[16])
{
	struct tw_tracee *tracee = born;

	born = NULL;
	tracee->thread_id = thread_id;
	memcpy(tracee->name, name, 16);
	return tracee;
}

/* The thread's first function.  It ends with a jump and leaves no frame on the stack. */
static void *begin_thread(void *arg)
{
	struct tw_tracee *tracee = arg;
	/* The original start function is in a block of the process. */
	struct tw_block *block = tracee->memory.used;
	thread_fn function = (thread_fn)(uintptr_t)block->words[0];
	void *argument = (void *)(uintptr_t)block->words[1];

	tw_block_give(&tracee->memory, block);
	born = tracee;
	tw_thread_join();
	/* Joining failed: no thread will be that process. */
	if (born && tw_thread_may_call_system())
		tw_tracee_exit(born);
	born = NULL;
	return function(argument);
}

/* If pthread_create fails, the process stays in the list, without a thread, until the program ends. */
void tw_tracee_makes_thread(uint64_t *words)
{
	struct tw_tracee *child;
	struct tw_block *block;

	tw_registry_lock();
	/* As the kernel does: until it gets a name of its own. */
	child = tw_tracee_make(0, tw_hit_tls.tracee->name);
	if (child)
		tw_inherit_by_spawn(tw_hit_tls.tracee, child, false);
	tw_registry_unlock();
	block = child ? tw_block_take(&child->memory, 0) : NULL;
	if (!block) {
		if (child)
			tw_tracee_exit(child);
		return;
	}
	block->words[0] = words[2];
	block->words[1] = words[3];
	words[2] = (uint64_t)(uintptr_t)begin_thread;
	words[3] = (uint64_t)(uintptr_t)child;
}

void tw_tracee_passes_token(const uint64_t *words)
{
	/* No memory for the thread's process: it will be one without token. */
	if (words[2] == (uint64_t)(uintptr_t)begin_thread)
		tw_seq_spawn(tw_hit_tls.tracee, (struct tw_tracee *)(uintptr_t)words[3], (struct tw_term){0}, false);
}

struct tw_tracee *tw_tracee_of_thread(struct tw_thread *thread, int thread_id)
{
	char name[16];
	struct tw_tracee *tracee;

	thread->is_scheduler |= tw_thread_becomes_scheduler;
	if (thread->is_scheduler)
		return NULL;
	tw_sys_thread_name(name);
	tw_registry_lock();
	tracee = born ? take_born(thread_id, name) : tw_tracee_make(thread_id, name);
	tw_registry_unlock();
	return tracee ? tracee : &tw_hit_nobody;
}

/*
 * No thread runs the process any more, and control finds tracees under the lock only, so the memory is reused at
 * once; its id is not, see take_id().
 */
void tw_tracee_exit(struct tw_tracee *tracee)
{
	if (tracee == &tw_hit_nobody)
		return;
	tw_registry_lock();
	tw_tracer_exit_locked(tracee->pid_number);
	tw_tracee_forget(tracee);
	tw_registry_unlock();
}

void tw_tracees_after_fork_in_child(void)
{
	struct tw_hit_tls *t = &tw_hit_tls;

	tw_registry_lock();
	tw_tracees_forget_all();
	tw_registry_unlock();
	if (!t->thread)
		return;
	t->thread->own_tracee = NULL;
	t->tracee = &tw_hit_nobody;
	if (!t->thread->is_scheduler)
		t->tracee = t->thread->own_tracee = tw_tracee_of_thread(t->thread, tw_sys_thread_id());
	t->run_seq = 0;
	t->run_stamp++;
}
