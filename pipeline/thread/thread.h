/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread.h - threads of the program: joining, leaving, the rings they write, and the runs of tracees on them.
 *
 * For hits and the rest of the library; wait.h and chain.h are for this folder and hit/ only.
 */
#ifndef TW_PIPELINE_THREAD_H
#define TW_PIPELINE_THREAD_H

#include "pipeline/hit/hit.h"

#include <pthread.h>

/* The last time that a thread without the clock lost an event: the time of the losses of all such threads. */
extern _Atomic uint64_t tw_hit_no_clock_ticks;

/* Joins the calling thread unless it has joined; false if it cannot (it has ended). */
bool tw_thread_join(void);
/*
 * The calling thread joins, and gets a ring of the session, unless that is being destroyed: before it makes a child that runs in its
 * memory and can have none. Changes nothing in that child.
 */
void tw_thread_prepare(unsigned session);
/* As tw_thread_join(), in the middle of a hit: keeps vector registers. */
bool tw_hit_join(void);
/* The calling thread has a new name: writes it to its rings. Keeps errno; makes no system call. */
void tw_thread_named(const char *name);
/* Writes the name to the rings of a thread that does not end meanwhile. */
void tw_thread_name_rings(struct tw_thread *thread, const char *name);
/* As tw_thread_named(), of another thread of this process.  One that has not joined reads its name when it does. */
void tw_thread_named_other(pthread_t other, const char *name);

/*
 * tw_thread_forbid_clock - the thread is about to make reading the processor's clock a fault (strict seccomp,
 * PR_TSC_SIGSEGV).
 *
 * From here on its calls are only counted, as lost for want of a ring, without a time of their own. Returns the value
 * for tw_thread_allow_clock(), which is called if the kernel refused the request.
 */
uintptr_t tw_thread_forbid_clock(void);
void tw_thread_allow_clock(uintptr_t state);
/* Enables leaving at thread exit. Called once, early, before any thread hits. */
void tw_thread_init(void);
/*
 * Both may leave the read section to wait for space. Afterwards *todo holds only the other sessions that still want
 * the record. False: the record is counted as lost, or is no longer wanted.
 *
 * tw_thread_ring_catch_up - takes a ring and writes a switch record, where they are due before a record.
 * tw_thread_ring_wait - waits for space for `bytes`.
 */
bool tw_thread_ring_catch_up(struct tw_hit_tls *t, const struct tw_recheck *recheck, unsigned session, uint64_t ticks,
			     uint64_t *todo);
bool tw_thread_ring_wait(struct tw_hit_tls *t, const struct tw_recheck *recheck, unsigned session, uint32_t bytes,
			 uint64_t ticks, uint64_t *todo);
/* After records of earlier times than now (tw_one_hit.stamp): records the tracer's own time that they took.  In a hit. */
void tw_thread_ring_tell_behind(struct tw_hit_tls *t);
/* Claims space for a record: catches up first where that is due, and waits and claims again where there is none. */
static inline bool tw_thread_ring_reserve(struct tw_hit_tls *t, const struct tw_recheck *recheck, unsigned session,
					  uint32_t bytes, uint64_t ticks, uint64_t *todo, struct tw_rb_record **record)
{
	struct tw_thread_ring *ring = &t->thread->rings[session];
	enum tw_rb_outcome outcome;

	if (tw_unlikely(ring->run_stamp != t->run_stamp) && !tw_thread_ring_catch_up(t, recheck, session, ticks, todo))
		return false;
	outcome = tw_rb_reserve(&ring->producer, bytes, ticks, (void **)record);
	if (tw_unlikely(outcome == TW_RB_WAIT) && tw_thread_ring_wait(t, recheck, session, bytes, ticks, todo))
		outcome = tw_rb_reserve(&ring->producer, bytes, ticks, (void **)record);
	return outcome == TW_RB_OK;
}
/* Takes the rings of a session from all threads, when no hit can use them any more. */
void tw_threads_end_rings(unsigned session);
/* Switches this thread to another tracee; NULL: none. */
void tw_thread_run(struct tw_tracee *tracee);
/*
 * Called before a record of a session in others_make: other threads make events of the tracee that this thread runs.
 * If another thread has made one since this thread's last record, begins a new run.
 */
void tw_thread_open_run(struct tw_hit_tls *t);
/* A run gets its number at its first record: it follows all runs that others have made, and precedes all later ones. */
#define TW_RUN_DUE UINT64_MAX
static inline void tw_thread_number_run(struct tw_hit_tls *t)
{
	if (t->run_seq == TW_RUN_DUE) {
		/*
		 * PAIR tracee.run_seq: acquire and release; release in tw_thread_number_run() of the thread of the run before,
		 * acquire in tw_thread_number_run() of the next. Events of earlier runs come before this one, and this
		 * thread's events of the tracee come before its next run.
		 */
		t->run_seq = tw_fetch_add_acq_rel(&t->tracee->run_seq, 1) + 1;
	}
}
/* A switch record says which tracee the next records belong to. Numbers the run; the caller commits. */
#define TW_SWITCH_BYTES ((uint32_t)sizeof(struct tw_rb_record) + 16)
static inline void tw_thread_fill_switch(struct tw_hit_tls *t, struct tw_rb_record *record, uint64_t ticks)
{
	tw_thread_number_run(t);
	record->ticks = ticks;
	record->head = TW_RB_HEAD(TW_EVENT_SWITCH, TW_EVENT_FLAG_HALF, TW_SWITCH_BYTES, t->tracee->tracee_id);
	*(uint64_t *)(record + 1) = t->run_seq;
}
static inline void tw_thread_follow_runs(struct tw_hit_tls *t)
{
	struct tw_tracee *tracee = t->tracee;

	/* RELAXED hit.others_make: a change is seen by this record or by the next. */
	if (tw_likely(!tw_load_relaxed(&tracee->others_make)))
		return;
	/* RELAXED tracee.follow: if this thread can know of another's event, it sees its number. */
	if (!t->run_seq || tw_load_relaxed(&tracee->run_seq) != t->run_seq)
		tw_thread_open_run(t);
}
/*
 * In a forked child only this thread is left, with thread rings that are not its own. tw_threads_let_go_in_child()
 * suffices for safety (from there on nothing of the parent is written), may be called in a signal handler, and is
 * part of the first.
 */
void tw_threads_after_fork_in_child(void);
void tw_threads_let_go_in_child(void);
void tw_threads_before_fork(void);
void tw_threads_after_fork_in_parent(void);

/*
 * The stack for the calling thread's signal handlers, as far as it is known: the thread has set it (SS_ONSTACK) or
 * had it when it joined. Zeros: none. Set before the kernel knows, so that no handler runs on an unknown stack.
 */
extern __thread struct tw_sys_signal_stack tw_thread_signal_stack;
/*
 * True if each thread that sets a signal stack reports it there. Otherwise the kernel is asked when a hit may have
 * been left by a jump.
 */
extern bool tw_thread_hears_signal_stacks;

/* ---- signal_stack.c: stacks for handlers, of threads that have none ---- */

/* Threads that join get one.  Set before any does. */
extern bool tw_thread_gives_signal_stacks;
/* The thread joins, and leaves: the calling one's.  Signals are blocked. */
void tw_thread_give_signal_stack(struct tw_thread *thread);
void tw_thread_take_signal_stack(struct tw_thread *thread);
/* Is this what the calling thread was given?  It is not told of it. */
bool tw_thread_is_given_stack(const void *low);

/* Was the current hit certainly left by a jump? Called by a later hit, with its frame. */
bool tw_hit_was_abandoned(const struct tw_hit_tls *t, const void *frame);
/*
 * The same for a thread that does our own work. JOINING: the call is our own; NEW: a signal handler made it, or the
 * work was left by a jump. For a handler's call the thread is ready until tw_hit_go_back().
 */
enum tw_thread_state tw_thread_classify_call(struct tw_hit_tls *t, const void *frame);
/*
 * Is a call that was made while the hit is under way our own, as of libc functions that a hit uses, and not one of a
 * signal handler?  Makes no system call.
 */
bool tw_hit_is_own_call(const struct tw_hit_tls *t, const void *frame);
/* Ends the abandoned hit: its read section, its wait. Changes only our own state. */
void tw_hit_leave_abandoned(struct tw_hit_tls *t);
/* False in a child that shares this process' memory (vfork). */
bool tw_thread_is_own_process(void);
/* Waits, for a limited time, until no thread waits for a ring or for space. */
void tw_threads_await_calls(void);
/* Allocates memory for all that the rings of this process may hold, while system calls are still possible. */
void tw_threads_populate_rings(void);
/*
 * Between these the calling thread's calls are ours and no events, though they pass traced slots; those of its signal
 * handlers are the program's. @frame: of the function that works, or of one of its callers. False: the thread is
 * inside a hit, or has not joined, and there is nothing to end. Makes a system call.
 */
bool tw_thread_begin_own_work(const void *frame);
void tw_thread_end_own_work(bool has_begun);
/* The calling thread is about to jump and set %rsp to this. Ends the hit that it leaves. */
void tw_thread_jumps(uintptr_t to);
/* Restores the tracee that the thread ran before it made an event of another: runtime_event.c. */
void tw_hit_give_back(struct tw_hit_tls *t);

#endif
