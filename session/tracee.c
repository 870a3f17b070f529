/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracee.c - processes and their flags.
 *
 * The list of tracees and the flags of new ones are under the registry's lock; the words that hits
 * read are changed by read-modify-write only, because match programs change them too.
 */
#include "session/session.h"
#include "session/tracee.h"
#include "progress/progress.h"
#include "tracewheel/process.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define STAMP_FLAGS (TW_FLAG_TIMESTAMP | TW_FLAG_STRICT_MONOTONIC_TIMESTAMP | TW_FLAG_MONOTONIC_TIMESTAMP)
#define KNOWN_FLAGS (TW_FLAG_CALL | TW_FLAG_ARITY | TW_FLAG_SILENT | STAMP_FLAGS)

static struct tw_tracee *tracees;
static struct tw_tracee *free_tracees;
static uint32_t next_tracee_id = 1;

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
	tracee->tracee_id = next_tracee_id++;
	tracee->pid_number = tracee->tracee_id;
	tracee->next = tracees;
	tracee->link = &tracees;
	if (tracees)
		tracees->link = &tracee->next;
	tracees = tracee;
	return tracee;
}

/* ---- flags ---- */

static enum tw_stamp stamp_of(uint32_t flags)
{
	if (flags & TW_FLAG_TIMESTAMP)
		return TW_STAMP_TIMESTAMP;
	if (flags & TW_FLAG_STRICT_MONOTONIC_TIMESTAMP)
		return TW_STAMP_STRICT_MONOTONIC;
	return flags & TW_FLAG_MONOTONIC_TIMESTAMP ? TW_STAMP_MONOTONIC : TW_STAMP_NONE;
}

static void set_bit(_Atomic uint64_t *word, uint64_t bit, bool is_on)
{
	/* PROGRESS hit.wants: who takes a bit away waits for thread progress before it says so. */
	if (is_on)
		tw_fetch_or_seq_cst(word, bit);
	else
		tw_fetch_and_seq_cst(word, ~bit);
}

/* Derives from the flags what hits read.  Under the registry's lock. */
static void apply(struct tw_tracee *tracee, unsigned slot, uint32_t flags)
{
	uint64_t bit = UINT64_C(1) << slot;
	uint32_t all = 0;

	/* RELAXED tracee.flags: hits read the words below; this is what is told and inherited. */
	tw_store_relaxed(&tracee->flags[slot], flags);
	for (unsigned s = 0; s < TW_SESSIONS_MAX; s++) {
		/* RELAXED tracee.flags: as above. */
		all |= tw_load_relaxed(&tracee->flags[s]);
	}
	/* RELAXED tracee.flags: as above. */
	tw_store_relaxed(&tracee->all_flags, all);
	/* RELAXED hit.record_flags: one byte; calls under way show the stamp before or after. */
	tw_store_relaxed(&tracee->record_flags[slot],
			 (uint8_t)(stamp_of(flags) | (flags & TW_FLAG_ARITY ? TW_EVENT_FLAG_ARITY : 0)));
	set_bit(&tracee->silent, bit, flags & TW_FLAG_SILENT);
	set_bit(&tracee->special, bit,
		stamp_of(flags) == TW_STAMP_STRICT_MONOTONIC || (flags & TW_FLAG_SILENT));
	/* A session without tracer has no rings: its events go nowhere, and are not made. */
	set_bit(&tracee->wants_call, bit, (flags & TW_FLAG_CALL) && tw_hit_sessions[slot].rs);
}

static void change(struct tw_tracee *tracee, unsigned slot, bool how, uint32_t flags)
{
	/* RELAXED tracee.flags: written under the registry's lock only. */
	uint32_t old = tw_load_relaxed(&tracee->flags[slot]);

	apply(tracee, slot, how ? old | flags : old & ~flags);
}

static void apply_new_flags(struct tw_tracee *tracee)
{
	for (struct tw_session *session = tw_sessions(); session; session = session->next)
		if (session->new_flags && tw_session_is_alive(session))
			apply(tracee, session->slot, session->new_flags);
}

/* ---- coming and going ---- */

static struct tw_tracee *make(int thread_id, const char *name)
{
	struct tw_tracee *tracee;

	tw_registry_lock();
	tracee = take();
	if (tracee) {
		tracee->thread_id = thread_id;
		if (name)
			strncpy(tracee->name, name, sizeof tracee->name - 1);
		apply_new_flags(tracee);
	}
	tw_registry_unlock();
	return tracee;
}

struct tw_tracee *tw_tracee_of_thread(struct tw_thread *thread, int thread_id)
{
	char name[16];
	struct tw_tracee *tracee;

	if (thread->is_scheduler)
		return NULL;
	tw_sys_thread_name(name);
	tracee = make(thread_id, name);
	return tracee ? tracee : &tw_hit_nobody;
}

/*
 * Nothing runs it any more, and control finds tracees under the lock only: the memory can be used
 * again at once.  Ids are never reused.
 */
void tw_tracee_exit(struct tw_tracee *tracee)
{
	if (tracee == &tw_hit_nobody)
		return;
	tw_registry_lock();
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
	if (tw_load_relaxed(&tracee->described) & bit)
		return;
	tw_registry_lock();
	session = tw_session_at(slot);
	if (session && session->rs && tw_define_tracee(session, tracee) == 0) {
		/* RELAXED tracee.described: as above. */
		tw_fetch_or_relaxed(&tracee->described, bit);
	}
	tw_registry_unlock();
}

void tw_tracees_forget(unsigned slot)
{
	uint64_t bit = UINT64_C(1) << slot;

	tw_registry_lock();
	if (tw_session_at(slot))
		tw_session_at(slot)->new_flags = 0;
	for (struct tw_tracee *tracee = tracees; tracee; tracee = tracee->next) {
		/* RELAXED tracee.flags: under the registry's lock. */
		if (tw_load_relaxed(&tracee->flags[slot]))
			apply(tracee, slot, 0);
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

static struct tw_tracee *find(tw_pid pid)
{
	for (struct tw_tracee *tracee = tracees; tracee; tracee = tracee->next)
		if (tracee->pid_number == pid)
			return tracee;
	return NULL;
}

int tw_tracee_change(uint64_t pid, unsigned slot, uint32_t removed, uint32_t added)
{
	struct tw_tracee *tracee;
	int changed = -1;

	tw_registry_lock();
	tracee = find(pid);
	if (tracee) {
		/* RELAXED tracee.flags: under the registry's lock. */
		uint32_t old = tw_load_relaxed(&tracee->flags[slot]);
		uint32_t now = (old & ~removed) | added;

		changed = now != old;
		/* A session that is being cleared takes all flags away, and gets none back. */
		if (changed && tw_session_at(slot) && tw_session_is_alive(tw_session_at(slot)))
			apply(tracee, slot, now);
	}
	tw_registry_unlock();
	return changed;
}

/* Under the registry's lock, of a session that is alive. */
static int change_flags(struct tw_session *session, tw_pid pid, bool how, uint32_t flags)
{
	struct tw_tracee *one = NULL;
	int count = 0;

	if (pid < TW_PID_NEW) {
		one = find(pid);
		if (!one)
			return TW_EBADARG;
		change(one, session->slot, how, flags);
		return 1;
	}
	if (pid != TW_PID_EXISTING)
		session->new_flags = how ? session->new_flags | flags : session->new_flags & ~flags;
	if (pid == TW_PID_NEW)
		return 0;
	for (struct tw_tracee *tracee = tracees; tracee; tracee = tracee->next) {
		change(tracee, session->slot, how, flags);
		count++;
	}
	return count;
}

TW_API int tw_trace_process(struct tw_session *session, tw_pid pid, bool how, uint32_t flags)
{
	int result;

	if (!session || (flags & ~(uint32_t)KNOWN_FLAGS))
		return TW_EBADARG;
	if (tw_progress_is_reading())
		return TW_EDEADLK;
	tw_sessions_clear_dropped();
	/* The caller is a process as well. */
	tw_thread_join();
	tw_registry_lock();
	result = tw_session_is_alive(session) ? change_flags(session, pid, how, flags) : TW_EDEAD;
	tw_registry_unlock();
	/* No event because of a flag that was taken away, once this has returned. */
	if (result > 0 && !how && flags)
		tw_progress_wait();
	return result;
}

TW_API int tw_trace_process_flags(struct tw_session *session, tw_pid pid, uint32_t *flags)
{
	struct tw_tracee *tracee;
	int error = 0;

	if (!session || !flags || pid == TW_PID_ALL || pid == TW_PID_EXISTING)
		return TW_EBADARG;
	tw_registry_lock();
	tracee = pid == TW_PID_NEW ? NULL : find(pid);
	if (!tw_session_is_alive(session))
		error = TW_EDEAD;
	else if (pid == TW_PID_NEW)
		*flags = session->new_flags;
	else if (!tracee)
		error = TW_EBADARG;
	else {
		/* RELAXED tracee.flags: under the registry's lock. */
		*flags = tw_load_relaxed(&tracee->flags[session->slot]);
	}
	tw_registry_unlock();
	return error;
}

/* ---- processes that a run-time declares ---- */

TW_API int tw_scheduler_declare(void)
{
	struct tw_hit_tls *t = &tw_hit_tls;

	tw_session_init();
	if (tw_hit_is_under_way())
		return TW_EDEADLK;
	if (!tw_thread_join())
		return TW_ENOMEM;
	if (t->thread->is_scheduler)
		return 0;
	t->thread->is_scheduler = true;
	tw_thread_run(NULL);
	if (t->thread->own_tracee)
		tw_tracee_exit(t->thread->own_tracee);
	t->thread->own_tracee = NULL;
	return 0;
}

TW_API int tw_process_create(const char *name, struct tw_process **out)
{
	struct tw_tracee *tracee;

	tw_session_init();
	if (tw_hit_is_under_way())
		return TW_EDEADLK;
	tracee = make(0, name);
	if (!tracee)
		return TW_ENOMEM;
	*out = (struct tw_process *)tracee;
	return 0;
}

TW_API void tw_process_exit(struct tw_process *process)
{
	struct tw_tracee *tracee = (struct tw_tracee *)process;

	if (!tracee)
		return;
	if (tw_hit_tls.tracee == tracee)
		tw_process_out();
	tw_tracee_exit(tracee);
}

TW_API void tw_process_in(struct tw_process *process)
{
	tw_thread_run((struct tw_tracee *)process);
}

TW_API void tw_process_out(void)
{
	struct tw_hit_tls *t = &tw_hit_tls;

	if (tw_thread_join())
		tw_thread_run(t->thread->own_tracee);
}

TW_API tw_pid tw_process_pid(const struct tw_process *process)
{
	return ((const struct tw_tracee *)process)->pid_number;
}

TW_API tw_pid tw_process_self(void)
{
	tw_session_init();
	return tw_thread_join() && tw_hit_tls.tracee ? tw_hit_tls.tracee->pid_number : 0;
}
