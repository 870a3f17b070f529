/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread.c - threads join at their first hit and leave at their exit; thread_ring.c has their rings.
 *
 * Joining happens in the middle of the program's own code, perhaps in a signal handler, perhaps before main(): with
 * all signals blocked and errno kept, and only by system calls and memory of our own pool.
 */
#include "pipeline/hit/count.h"
#include "pipeline/hit/hit.h"
#include "pipeline/hit/longer.h"
#include "pipeline/hit/native.h"
#include "pipeline/thread/thread.h"
#include "pipeline/thread/wait.h"
#include "base/clock.h"
#include "base/filter.h"
#include "base/quiet_lock.h"
#include "breakpoints/own_stack.h"
#include "progress/read_side.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

static struct tw_quiet_lock threads_lock = TW_QUIET_LOCK_INIT;
static struct tw_thread *threads, **threads_end = &threads; /* joined; the next to be looked at is the first */
static struct tw_thread *free_threads;			    /* left; never unmapped */
static uint32_t next_scheduler_id = 1;

static pthread_key_t exit_key;
static _Atomic bool has_exit_key;
/*
 * The process whose threads may join. Other processes can run in its memory (vfork, CLONE_VM) and see its threads'
 * thread-local variables.
 */
static _Atomic int32_t own_process_id;

/* ---- leaving ---- */

/* Under the lock, as the next: the row of a session in which the thread has no ring may change meanwhile. */
static void end_ring(struct tw_thread_ring *ring, unsigned session)
{
	if (ring->producer.shared)
		tw_rs_ring_end(tw_hit_sessions[session].rs, &ring->producer);
	memset(ring, 0, sizeof *ring);
}

static void note_end(struct tw_thread *thread)
{
	for (unsigned session = 0; session < TW_SESSIONS_MAX; session++)
		if (thread->rings[session].producer.shared)
			tw_rs_ring_note_thread_end(tw_hit_sessions[session].rs, &thread->rings[session].producer,
						   thread->end_ticks);
}

static void link_thread(struct tw_thread *thread)
{
	thread->next = NULL;
	thread->link = threads_end;
	*threads_end = thread;
	threads_end = &thread->next;
}

static void unlink_thread(struct tw_thread *thread)
{
	*thread->link = thread->next;
	if (thread->next)
		thread->next->link = thread->link;
	else
		threads_end = thread->link;
}

/*
 * Under a filter the thread takes no lock, because another thread might have to wake it, and blocks no signals:
 * everything stays as it is, in memory that is never unmapped. The owner of the rings detects that the thread is
 * gone.
 */
static void leave_as_it_is(struct tw_hit_tls *t)
{
	t->state = TW_THREAD_ENDED;
	t->tracee = &tw_hit_nobody;
	t->thread = NULL;
}

/* The structure, and all that it has, goes back.  Its thread leaves, or is dead; signals are blocked. */
static void end_thread(struct tw_thread *thread)
{
	if (thread->own_tracee && tw_hit_host.exit_tracee)
		tw_hit_host.exit_tracee(thread->own_tracee);
	thread->own_tracee = NULL;
	tw_progress_leave(&thread->reader);
	tw_process_memory_fini(&thread->memory);
	tw_quiet_lock(&threads_lock);
	note_end(thread);
	for (unsigned session = 0; session < TW_SESSIONS_MAX; session++)
		end_ring(&thread->rings[session], session);
	tw_counts_leave(thread);
	unlink_thread(thread);
	thread->next = free_threads;
	free_threads = thread;
	tw_quiet_unlock(&threads_lock);
}

/* Each thread that joins, or leaves, looks at so many: there are at most a third as many dead as living ones, and a few. */
#define LOOKS 4

/* The first thread if it is dead; NULL: it is not, and comes behind the others. */
static struct tw_thread *find_dead(void)
{
	struct tw_thread *thread;

	tw_quiet_lock(&threads_lock);
	thread = threads;
	if (thread && !thread->is_dead) {
		thread->is_dead = !tw_sys_is_thread_alive(tw_sys_process_id(), thread->thread_id);
		tw_progress_see_sections_of_dead(&thread->reader);
		unlink_thread(thread);
		link_thread(thread);
		if (!thread->is_dead)
			thread = NULL;
	} else {
		thread = NULL;
	}
	tw_quiet_unlock(&threads_lock);
	return thread;
}

/*
 * Threads that are dead and have not left: they made their last calls behind the last round of destructors.  In a child that shares this
 * memory all would seem to be dead.  Signals are blocked.
 */
static void reap_dead(void)
{
	for (unsigned i = 0; i < LOOKS && tw_thread_is_own_process(); i++) {
		struct tw_thread *dead = find_dead();

		if (dead)
			end_thread(dead);
	}
}

/*
 * Behind the last destructor libc frees what the thread had, and other keys' destructors run.  In a session from outside these calls are
 * recorded as all others are: the thread keeps what it has until a later one sees that it is dead; the recorder looks for dead
 * threads, too, and ends their rings.  In sessions of the program itself a thread that has exited is no process any more.
 */
static bool may_stay(const struct tw_hit_tls *t)
{
	const struct tw_tracee *tracee = t->thread->own_tracee;

	/* RELAXED hit.wants: who is told of the exit sees no call behind it. */
	return tw_hit_host.pinned_rs && t->state == TW_THREAD_READY && tracee && t->tracee == tracee &&
	       !tw_load_relaxed(&tracee->wants[TW_WANT_PROCS]);
}

static void leave(struct tw_hit_tls *t)
{
	struct tw_thread *thread = t->thread;
	uint64_t ticks = tw_clock_ticks();

	if (!tw_thread_may_call_system()) {
		leave_as_it_is(t);
		return;
	}

	tw_quiet_begin();
	reap_dead();
	if (may_stay(t)) {
		tw_quiet_lock(&threads_lock);
		thread->end_ticks = ticks;
		note_end(thread);
		tw_quiet_unlock(&threads_lock);
		tw_quiet_end();
		return;
	}
	if (t->state == TW_THREAD_READY && thread->own_tracee && tw_hit_host.thread_ends)
		tw_hit_host.thread_ends(thread->own_tracee);
	t->state = TW_THREAD_ENDED;
	t->tracee = &tw_hit_nobody;
	tw_thread_take_signal_stack(thread);
	thread->end_ticks = ticks;
	end_thread(thread);
	t->thread = NULL;
	tw_quiet_end();
}

/*
 * The destructor of a thread's key. Destructors of other keys may still make traced calls, so it asks to be called
 * again (by a value that is not NULL) and leaves in the last round but one.
 */
static void on_thread_exit(void *value)
{
	uintptr_t round = (uintptr_t)value;

	if (tw_hit_tls.state == TW_THREAD_ENDED || tw_hit_tls.state == TW_THREAD_UNABLE || !tw_hit_tls.thread)
		return;
	if (round == 1)
		tw_native_thread_exits((uintptr_t)__builtin_frame_address(0), (uintptr_t)__builtin_return_address(0));
	if (round < PTHREAD_DESTRUCTOR_ITERATIONS - 1 && pthread_setspecific(exit_key, (void *)(round + 1)) == 0)
		return;
	leave(&tw_hit_tls);
}

void tw_thread_init(void)
{
	tw_clock_init();
	tw_sys_own_stack_init();
	tw_progress_init();
	/* RELAXED thread.process: before there are hits; a forked child has one thread. */
	tw_store_relaxed(&own_process_id, tw_sys_process_id());
	/* RELAXED thread.key: called under the permit, or before there are threads. */
	if (tw_load_relaxed(&has_exit_key))
		return;
	if (pthread_key_create(&exit_key, on_thread_exit) == 0) {
		/* PAIR thread.key: release; acquire in join(). */
		tw_store_release(&has_exit_key, true);
	}
}

uintptr_t tw_thread_forbid_clock(void)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	uintptr_t state = t->state;

	/* RELAXED hit.no_clock: a single time, nearly right. */
	tw_store_relaxed(&tw_hit_no_clock_ticks, tw_clock_ticks());
	t->state = TW_THREAD_NO_CLOCK;
	return state;
}

void tw_thread_allow_clock(uintptr_t state)
{
	tw_hit_tls.state = state;
}

/* ---- joining ---- */

/* A zeroed thread: one that was left, or new memory. */
static struct tw_thread *take_thread(void)
{
	struct tw_thread *thread = free_threads;
	struct tw_thread_counts *counts;
	struct tw_children children;
	uint32_t scheduler_id;
	uint8_t *signal_stack;

	if (!thread) {
		thread = mmap(NULL, sizeof *thread, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (thread == MAP_FAILED)
			return NULL;
		thread->scheduler_id = next_scheduler_id++;
		return thread;
	}
	free_threads = thread->next;
	scheduler_id = thread->scheduler_id;
	/* RELAXED count.thread_own: the structure has no thread, under the lock. */
	counts = tw_load_relaxed(&thread->own_counts);
	children = (struct tw_children){.words = thread->children.words, .capacity = thread->children.capacity};
	signal_stack = thread->signal_stack;
	memset(thread, 0, sizeof *thread);
	thread->scheduler_id = scheduler_id;
	thread->signal_stack = signal_stack;
	thread->children = children;
	/* RELAXED count.thread_own: as above. */
	tw_store_relaxed(&thread->own_counts, counts);
	return thread;
}

static struct tw_thread *enlist_thread(void)
{
	struct tw_thread *thread;

	tw_quiet_lock(&threads_lock);
	thread = take_thread();
	if (thread) {
		thread->thread_id = tw_sys_thread_id();
		link_thread(thread);
	}
	tw_quiet_unlock(&threads_lock);
	return thread;
}

void tw_threads_each(void (*fn)(struct tw_thread *thread, void *arg), void *arg)
{
	tw_quiet_lock(&threads_lock);
	for (struct tw_thread *thread = threads; thread; thread = thread->next)
		fn(thread, arg);
	for (struct tw_thread *thread = free_threads; thread; thread = thread->next)
		fn(thread, arg);
	tw_quiet_unlock(&threads_lock);
}

bool tw_thread_is_own_process(void)
{
	/* RELAXED thread.process: as in tw_thread_init(). */
	return tw_sys_process_id() == tw_load_relaxed(&own_process_id);
}

/*
 * In a handler whose stack is disarmed while it runs, the kernel reports none: then the stack that the thread set
 * before is kept.
 */
static void find_stacks(struct tw_thread *thread)
{
	struct tw_sys_signal_stack set;

	if (!tw_sys_own_stack(&thread->stack_low, &thread->stack_high))
		thread->stack_low = thread->stack_high = 0;
	tw_sys_signal_stack(&set);
	if (set.high)
		tw_thread_signal_stack = set;
	tw_thread_give_signal_stack(thread);
}

static bool join(struct tw_hit_tls *t)
{
	struct tw_thread *thread;

	/* PAIR thread.key: acquire; release in tw_thread_init(). Without a key the thread's exit would go unseen. */
	if (!tw_load_acquire(&has_exit_key) || pthread_setspecific(exit_key, (void *)1) != 0)
		return false;
	reap_dead();
	thread = enlist_thread();
	if (!thread)
		return false;
	if (tw_hit_host.prepare_run)
		tw_hit_host.prepare_run(thread);
	find_stacks(thread);
	tw_progress_join(&thread->reader);
	thread->start_ticks = tw_clock_ticks();
	thread->errno_at = &errno;
	t->thread = thread;
	/* RELAXED count.thread_own: this thread's, or of the one before it that had the structure. */
	t->own_counts = tw_load_relaxed(&thread->own_counts);
	t->run_stamp = 1;
	t->tracee = &tw_hit_nobody;
	if (tw_hit_host.make_tracee)
		thread->own_tracee = tw_hit_host.make_tracee(thread, thread->thread_id);
	if (thread->own_tracee)
		t->tracee = thread->own_tracee;
	tw_compiler_barrier();
	t->state = TW_THREAD_READY;
	if (t->tracee != &tw_hit_nobody && tw_hit_host.thread_began)
		tw_hit_host.thread_began(t->tracee);
	return true;
}

static void join_there(void *arg)
{
	*(bool *)arg = tw_thread_join();
}

bool tw_hit_join(void)
{
	bool result = false;

	tw_own_stack_try(join_there, &result);
	return result;
}

/*
 * libc may make traced calls for us meanwhile, and in a program that contains this library our own calls of libc can
 * be traced, the first being that for errno: they would join again, without end.
 */
static void join_quietly(struct tw_hit_tls *t, uint64_t signals)
{
	int saved_errno;

	t->state = TW_THREAD_JOINING;
	saved_errno = errno;
	tw_quiet_begin_blocked(signals);
	if (!join(t))
		t->state = TW_THREAD_UNABLE;
	errno = saved_errno;
}

bool tw_thread_join(void)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	uint64_t signals;
	bool joins;

	if (t->state != TW_THREAD_NEW)
		return t->state == TW_THREAD_READY || t->state >= TW_THREAD_BUSY;
	tw_sys_block_signals(&signals);
	/*
	 * A handler may have joined just before. A child that shares this memory stays NEW: its thread id is that of
	 * no thread of ours, and joining would change the state of the thread whose memory it uses.
	 */
	joins = t->state == TW_THREAD_NEW && tw_thread_is_own_process();
	if (joins) {
		join_quietly(t, signals);
		tw_quiet_end();
	} else {
		tw_sys_restore_signals(&signals);
	}
	return t->state == TW_THREAD_READY || t->state >= TW_THREAD_BUSY;
}

void tw_thread_named_other(pthread_t other, const char *name)
{
	/* libc keeps errno at the same distance from the descriptor of each thread, which pthread_self() is the address of. */
	uintptr_t errno_at = (uintptr_t)&errno - (uintptr_t)pthread_self() + (uintptr_t)other;

	if (!tw_thread_may_call_system())
		return;
	tw_quiet_begin();
	tw_quiet_lock(&threads_lock);
	for (struct tw_thread *thread = threads; thread; thread = thread->next)
		if ((uintptr_t)thread->errno_at == errno_at && !thread->end_ticks)
			tw_thread_name_rings(thread, name);
	tw_quiet_unlock(&threads_lock);
	tw_quiet_end();
}

static bool is_anybody_waiting(unsigned session)
{
	bool found = false;

	tw_quiet_lock(&threads_lock);
	for (struct tw_thread *thread = threads; thread; thread = thread->next) {
		/* PAIR hit.waiting: seq_cst; as in fall_asleep(). */
		found |= tw_load_seq_cst(&thread->waiting_session) == session + 1;
	}
	tw_quiet_unlock(&threads_lock);
	return found;
}

/* A filter is about to apply to all threads: those that wait for rings or space return within a slice. */
void tw_threads_await_calls(void)
{
	const uint64_t nap_ns = 1000000;
	bool found = true;

	for (unsigned naps = 0; found && naps < 200; naps++) {
		found = false;
		tw_quiet_lock(&threads_lock);
		for (struct tw_thread *thread = threads; thread; thread = thread->next) {
			/* PAIR hit.waiting: seq_cst; as in is_anybody_waiting(). */
			found |= tw_load_seq_cst(&thread->waiting_session) != 0;
		}
		tw_quiet_unlock(&threads_lock);
		if (found)
			tw_sys_sleep(nap_ns);
	}
}

void tw_threads_populate_rings(void)
{
	for (unsigned session = 0; session < TW_SESSIONS_MAX; session++)
		if (tw_hit_sessions[session].rs)
			tw_rs_populate_own(tw_hit_sessions[session].rs);
}

void tw_threads_end_rings(unsigned session)
{
	while (is_anybody_waiting(session))
		tw_sys_sleep(100000);
	tw_progress_wait();
	tw_quiet_lock(&threads_lock);
	for (struct tw_thread *thread = threads; thread; thread = thread->next)
		end_ring(&thread->rings[session], session);
	tw_quiet_unlock(&threads_lock);
}

/* ---- fork ---- */

void tw_threads_before_fork(void)
{
	tw_quiet_lock_before_fork(&threads_lock);
}

void tw_threads_after_fork_in_parent(void)
{
	tw_quiet_unlock_after_fork(&threads_lock);
}

void tw_threads_let_go_in_child(void)
{
	struct tw_hit_tls *t = &tw_hit_tls;

	tw_dispatch_set((struct tw_dispatch){0});
	tw_own_stacks_after_fork_in_child();
	tw_longer_after_fork_in_child();
	if (t->thread)
		tw_counts_after_fork_in_child(t->thread);
	for (unsigned session = 0; session < TW_SESSIONS_MAX; session++) {
		struct tw_rs *rs = tw_hit_sessions[session].rs;
		struct tw_thread_ring *ring = t->thread ? &t->thread->rings[session] : NULL;

		if (rs)
			tw_rs_after_fork_in_child(rs);
		if (!ring || !ring->producer.shared || ring->is_inherited)
			continue;
		/*
		 * The hit that the fork interrupted, in a handler, continues: its record goes to memory that nothing
		 * reads.
		 */
		if (rs && t->state >= TW_THREAD_IN_HIT) {
			tw_rs_ring_after_fork_in_child(rs, &ring->producer);
			ring->is_inherited = true;
			ring->run_stamp = 0;
		} else {
			memset(ring, 0, sizeof *ring);
		}
	}
}

/* The thread rings belong to the parent's thread: they are dropped without any change to the rings. */
void tw_threads_after_fork_in_child(void)
{
	struct tw_thread *own = tw_hit_tls.thread;

	/* RELAXED thread.process: as in tw_thread_init(). */
	tw_store_relaxed(&own_process_id, tw_sys_process_id());
	tw_threads_let_go_in_child();
	if (own)
		own->thread_id = tw_sys_thread_id();
	for (struct tw_thread *thread = threads, *next; thread; thread = next) {
		next = thread->next;
		if (thread == own)
			continue;
		memset(thread->rings, 0, sizeof thread->rings);
		tw_counts_after_fork_in_child(thread);
		unlink_thread(thread);
		thread->next = free_threads;
		free_threads = thread;
	}
	tw_quiet_unlock_after_fork(&threads_lock);
}
