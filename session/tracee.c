/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracee.c - processes and their flags.
 *
 * The list of tracees and the flags of new ones are under the registry's lock; the words that hits
 * read are changed by read-modify-write only, because match programs change them too.
 */
#include "base/filter.h"
#include "session/session.h"
#include "session/queue.h"
#include "session/tracee.h"
#include "base/sys.h"
#include "progress/progress.h"
#include "tracewheel/process.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static struct tw_tracee *tracees;
static struct tw_tracee *free_tracees;
static uint32_t next_tracee_id = 1;
static uint64_t id_rounds; /* how often ids have begun anew */

/* ---- memory: pages of our own, because joining may happen where malloc may not be called ---- */

static void refill_pool(void)
{
	const size_t count = 64;
	struct tw_tracee *more = mmap(NULL, count * sizeof *more, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (more == MAP_FAILED)
		return;
	for (size_t i = 0; i < count; i++) {
		more[i].next = free_tracees;
		free_tracees = &more[i];
	}
}

/*
 * Ids are given once each, until 2^32 are spent: then those begin anew that no living process has.  The runs of the second
 * process of an id follow those of the first, so that readers order both as one.
 */
#define RUNS_A_ROUND (UINT64_C(1) << 40)

static uint32_t take_id(void)
{
	uint32_t id;

	do {
		id = next_tracee_id++;
		id_rounds += !next_tracee_id;
	} while (!id || (id_rounds && tw_tracee_find(id)));
	return id;
}

void tw_tracee_ids_go_on_at(uint32_t id)
{
	tw_registry_lock();
	next_tracee_id = id;
	tw_registry_unlock();
}

static struct tw_tracee *take(void)
{
	struct tw_tracee *tracee;

	if (!free_tracees)
		refill_pool();
	tracee = free_tracees;
	if (!tracee)
		return NULL;
	free_tracees = tracee->next;
	memset(tracee, 0, sizeof *tracee);
	tracee->tracee_id = take_id();
	tracee->pid_number = tracee->tracee_id;
	/* RELAXED tracee.run_seq: nobody runs it yet. */
	tw_store_relaxed(&tracee->run_seq, id_rounds * RUNS_A_ROUND);
	tracee->next = tracees;
	tracee->link = &tracees;
	if (tracees)
		tracees->link = &tracee->next;
	tracees = tracee;
	return tracee;
}

/* ---- coming and going ---- */

struct tw_tracee *tw_tracee_make(int thread_id, const char *name)
{
	struct tw_tracee *tracee = take();

	if (tracee) {
		tracee->thread_id = thread_id;
		if (name)
			strncpy(tracee->name, name, sizeof tracee->name - 1);
		tw_flags_apply_new(tracee);
	}
	return tracee;
}

/* ---- threads that inherit ---- */

typedef void *(*thread_fn)(void *);

/* Whom this thread will be, from its start until it joins. */
static __thread struct tw_tracee *born;

static struct tw_tracee *take_born(int thread_id, const char name[16])
{
	struct tw_tracee *tracee = born;

	born = NULL;
	tracee->thread_id = thread_id;
	memcpy(tracee->name, name, 16);
	return tracee;
}

/* The thread's first function.  Its last act is a jump: nothing of it is left on the stack. */
static void *begin_thread(void *arg)
{
	struct tw_tracee *tracee = arg;
	/* What it was to call is in a block of the process. */
	struct tw_block *block = tracee->memory.used;
	thread_fn function = (thread_fn)(uintptr_t)block->words[0];
	void *argument = (void *)(uintptr_t)block->words[1];

	tw_block_give(&tracee->memory, block);
	born = tracee;
	tw_thread_join();
	/* It could not: nobody will be that process. */
	if (born && tw_thread_may_call_system())
		tw_tracee_exit(born);
	born = NULL;
	return function(argument);
}

/* Where pthread_create fails the process stays in the list, without a thread, until the program ends. */
void tw_tracee_makes_thread(uint64_t *words)
{
	struct tw_tracee *child;
	struct tw_block *block;

	tw_registry_lock();
	child = tw_tracee_make(0, NULL);
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

/* Of new processes a session may want the same anyway: then there is nothing to pass on. */
static bool passes_on(const struct tw_tracee *tracee)
{
	const uint32_t on_spawn = TW_FLAG_SET_ON_SPAWN | TW_FLAG_SET_ON_FIRST_SPAWN;

	for (struct tw_session *session = tw_sessions(); session; session = session->next) {
		/* RELAXED tracee.flags: under the registry's lock. */
		uint32_t flags = tw_load_relaxed(&tracee->flags[session->slot]);

		if ((flags & on_spawn) && (flags & ~session->new_flags))
			return true;
	}
	return false;
}

bool tw_tracees_pass_on(void)
{
	for (const struct tw_tracee *tracee = tracees; tracee; tracee = tracee->next)
		if (tracee->thread_id && passes_on(tracee))
			return true;
	return false;
}

/* ---- threads ---- */

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
 * Nothing runs it any more, and control finds tracees under the lock only: the memory can be used
 * again at once; its id is not, see take_id().
 */
void tw_tracee_exit(struct tw_tracee *tracee)
{
	if (tracee == &tw_hit_nobody)
		return;
	tw_registry_lock();
	tw_tracer_exit_locked(tracee->pid_number);
	tw_flags_forget(tracee);
	tw_process_memory_fini(&tracee->memory);
	*tracee->link = tracee->next;
	if (tracee->next)
		tracee->next->link = tracee->link;
	tracee->next = free_tracees;
	free_tracees = tracee;
	tw_registry_unlock();
}

void tw_tracee_describe(struct tw_tracee *tracee, unsigned slot)
{
	uint64_t bit = UINT64_C(1) << slot;
	struct tw_session *session;

	/* RELAXED tracee.described: a tracee runs on one thread at a time, which describes it. */
	if ((tw_load_relaxed(&tracee->described) & bit) || !tw_thread_may_call_system())
		return;
	tw_registry_lock();
	session = tw_session_at(slot);
	if (session && session->rs && tw_define_tracee(session, tracee) == 0) {
		/* RELAXED tracee.described: as above. */
		tw_fetch_or_relaxed(&tracee->described, bit);
	}
	tw_registry_unlock();
}

void tw_tracees_clear_flags(unsigned slot)
{
	for (struct tw_tracee *tracee = tracees; tracee; tracee = tracee->next) {
		/* RELAXED tracee.flags: under the registry's lock. */
		if (tw_load_relaxed(&tracee->flags[slot]))
			tw_flags_apply(tracee, slot, 0);
	}
}

void tw_tracees_begin(const struct tw_session *session)
{
	for (struct tw_tracee *tracee = tracees; tracee; tracee = tracee->next)
		tw_flags_begin(tracee, session);
}

void tw_tracees_forget(unsigned slot)
{
	uint64_t bit = UINT64_C(1) << slot;

	tw_registry_lock();
	if (tw_session_at(slot))
		tw_session_at(slot)->new_flags = 0;
	tw_flags_new_changed();
	tw_tracees_clear_flags(slot);
	tw_flags_stamp_cpu_time(tracees, slot, false);
	for (struct tw_tracee *tracee = tracees; tracee; tracee = tracee->next) {
		/* RELAXED tracee.described: no hit has the session any more when the bit is used again. */
		tw_fetch_and_relaxed(&tracee->described, ~bit);
	}
	tw_registry_unlock();
}

void tw_tracees_after_fork_in_child(void)
{
	struct tw_hit_tls *t = &tw_hit_tls;

	tw_registry_lock();
	while (tracees) {
		struct tw_tracee *tracee = tracees;

		tw_flags_forget(tracee);
		tw_process_memory_fini(&tracee->memory);
		tracees = tracee->next;
		tracee->next = free_tracees;
		free_tracees = tracee;
	}
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

/* ---- the API ---- */

struct tw_tracee *tw_tracee_find(tw_pid pid)
{
	for (struct tw_tracee *tracee = tracees; tracee; tracee = tracee->next)
		if (tracee->pid_number == pid)
			return tracee;
	return NULL;
}

struct tw_tracee *tw_tracee_named(struct tw_term name)
{
	for (struct tw_tracee *tracee = tracees; tracee; tracee = tracee->next)
		if (tracee->registered_name.word == name.word)
			return tracee;
	return NULL;
}

bool tw_tracee_has_been(uint64_t pid)
{
	bool has_been;

	tw_registry_lock();
	has_been = pid && (pid < next_tracee_id || (id_rounds && pid <= UINT32_MAX));
	tw_registry_unlock();
	return has_been;
}

bool tw_tracee_is_there(uint64_t pid)
{
	bool is_there;

	tw_registry_lock();
	is_there = tw_tracee_find(pid) != NULL;
	tw_registry_unlock();
	return is_there;
}

int tw_tracee_change(uint64_t pid, unsigned slot, uint32_t removed, uint32_t added)
{
	struct tw_tracee *tracee;
	int changed = -1;

	tw_registry_lock();
	tracee = tw_tracee_find(pid);
	if (tracee) {
		/* RELAXED tracee.flags: under the registry's lock. */
		uint32_t old = tw_load_relaxed(&tracee->flags[slot]);
		uint32_t now = (old & ~removed) | added;

		changed = now != old;
		/* A session that is being cleared takes all flags away, and gets none back. */
		if (changed && tw_session_at(slot) && tw_session_takes_flags(tw_session_at(slot)))
			tw_flags_apply(tracee, slot, now);
	}
	tw_registry_unlock();
	return changed;
}

/* Under the registry's lock, of a session that is alive. */
static int change_flags(struct tw_session *session, tw_pid pid, bool how, uint32_t flags)
{
	bool is_of_processes = flags & TW_FLAG_ALL;
	struct tw_tracee *one = NULL;
	int count = 0;

	if (flags & TW_FLAG_CPU_TIMESTAMP)
		tw_flags_stamp_cpu_time(tracees, session->slot, how);
	flags &= TW_FLAG_ALL;
	/* Where the tracer is gone flags do not stick: counted as ever. */
	if (!tw_session_takes_flags(session))
		flags = 0;
	if (pid < TW_PID_NEW) {
		one = tw_tracee_find(pid);
		if (!one)
			return TW_EBADARG;
		tw_flags_change(one, session->slot, how, flags);
		return 1;
	}
	if (pid != TW_PID_EXISTING)
		session->new_flags = how ? session->new_flags | flags : session->new_flags & ~flags;
	tw_flags_new_changed();
	/* OTP counts the processes that it looks at. */
	if (pid == TW_PID_NEW || !is_of_processes)
		return 0;
	for (struct tw_tracee *tracee = tracees; tracee; tracee = tracee->next) {
		tw_flags_change(tracee, session->slot, how, flags);
		count++;
	}
	return count;
}

TW_API int tw_trace_process(struct tw_session *session, tw_pid pid, bool how, uint32_t flags)
{
	/* CPU time is the whole program's: of all processes or of none. */
	uint32_t allowed = pid == TW_PID_ALL ? TW_FLAG_ALL | TW_FLAG_CPU_TIMESTAMP : TW_FLAG_ALL;
	int result;

	if (!session || (flags & ~allowed))
		return TW_EBADARG;
	if ((flags & TW_FLAG_CPU_TIMESTAMP) && tw_sys_process_cpu_ns() < 0)
		return TW_EBADARG;
	if (tw_progress_is_reading())
		return TW_EDEADLK;
	tw_sessions_clear_dropped();
	/* The caller is a process as well. */
	tw_thread_join();
	tw_registry_lock();
	result = tw_session_seat_locked(session);
	if (!result)
		result = change_flags(session, pid, how, flags);
	tw_registry_unlock();
	/* No event because of a flag that was taken away, once this has returned. */
	if (result >= 0 && pid != TW_PID_NEW && !how && flags)
		tw_progress_wait();
	if (result >= 0 && (flags & (TW_FLAG_SET_ON_SPAWN | TW_FLAG_SET_ON_FIRST_SPAWN))) {
		tw_watched_look_again();
		tw_watched_follow();
	}
	return result;
}

TW_API int tw_trace_process_flags(struct tw_session *session, tw_pid pid, uint32_t *flags)
{
	struct tw_tracee *tracee;
	int error = 0;

	if (!session || !flags || pid == TW_PID_ALL || pid == TW_PID_EXISTING)
		return TW_EBADARG;
	tw_registry_lock();
	tracee = pid == TW_PID_NEW ? NULL : tw_tracee_find(pid);
	if (!tw_session_is_alive(session))
		error = TW_EDEAD;
	else if (pid == TW_PID_NEW)
		*flags = session->new_flags;
	else if (!tracee)
		error = TW_EBADARG;
	else {
		/* RELAXED tracee.flags: under the registry's lock. */
		*flags = session->slot == TW_SESSION_UNSEATED ? 0 : tw_load_relaxed(&tracee->flags[session->slot]);
	}
	tw_registry_unlock();
	return error;
}
