/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count.h - counters without events: call_count by thread, call_time and call_memory by process.
 *
 * call_count	one word in a block of each thread that calls the function; readers sum the words.  A call that has no
 *		such word, for want of memory or in a signal handler that interrupts a hit, adds to one of the process.
 * call_time	a process' time goes to an *account*: the traced function that it entered or returned to last. A process
 * call_memory	has one account for each session and kind: four in place, any more in blocks of the process
 *		(process_memory.h), as have frames for the accounts that they resume. Rows {account, process} ->
 *		{calls, ticks or words} lie in a table of each thread, written by that thread alone.
 *
 * Memory is never returned to the system: threads that left keep their counts, which new threads continue. A thread
 * that counts takes 2.3 MiB of address space, of which only touched pages use memory, and blocks of 64 counters where it
 * uses one. A full table refuses rows, and a process without memory refuses accounts; tw_counts_refused() of tracewheel/session.h returns the number
 * of such calls.
 *
 * Threads  hits on any; functions marked *control*: under the permit, beside hits.
 */
#ifndef TW_PIPELINE_COUNT_H
#define TW_PIPELINE_COUNT_H

#include "breakpoints/breakpoints.h"

struct tw_hit_tls;
struct tw_thread;
struct tw_tracee;
struct tw_frame_wants;

/* ---- call_count ---- */

/* Control. A counter at 0; NULL: there are TW_COUNTERS_MAX already. */
struct tw_counter *tw_counter_create(void);
/*
 * tw_counter_share - control: a counter in the shared memory of a ring set, where its owner reads it by thread, also after the
 * process has died (ringbuf/counts.h).  For the one ring set of the process that is recorded from outside; its numbers are
 * place ids.  tw_counter_value() then lacks the calls of threads that have left.
 *
 * @has_recorded	calls of it may be recorded later, and are then counted as such too: longer.h.
 *
 * Errors: TW_ELIMIT (TW_COUNTERS_MAX), TW_ENOMEM, TW_ENOSPC (no memory, or no block, for the calls of all threads), TW_ENOTSUP (no
 * image).
 */
struct tw_rs;
int tw_counter_share(struct tw_rs *rs, uint32_t number, bool has_recorded, struct tw_counter **out);
/*
 * tw_counters_unshare - the ring set is about to be unmapped: no thread knows a block of it any more.
 *
 * After the sessions that counted there were destroyed, and a wait for thread progress.  False: a counter is in use.
 */
bool tw_counters_unshare(void);
/* Called after a wait for thread progress: no hit counts in it any more. NULL is allowed. */
void tw_counter_destroy(struct tw_counter *counter);
/* Control. Calls in progress may or may not be included. */
uint64_t tw_counter_value(const struct tw_counter *counter);
/* Control. Returns the value and resets it to 0. */
uint64_t tw_counter_take(struct tw_counter *counter);
/* Gives back what was taken; or counts calls that no thread has a word for: in hits, and without read side. */
void tw_counter_add(struct tw_counter *counter, uint64_t value);

/* A thread leaves: shared counters are told whose calls they were. */
void tw_counts_leave(struct tw_thread *thread);
/* In a forked child, for each thread structure. */
void tw_counts_after_fork_in_child(struct tw_thread *thread);
/* In a forked child with an image of its own: shared counters begin at 0 there.  Errors: as tw_counter_share(). */
int tw_counters_continue_in_child(struct tw_rs *rs);

/* In a hit. */
void tw_counter_count(struct tw_hit_tls *t, struct tw_counter *counter);

/* ---- call_time, call_memory ---- */

/* Control. Counts by process of one place and session; NULL: there are TW_COUNTERS_MAX - 1. */
struct tw_counts *tw_counts_create(void);
/* NULL is allowed. Frames that would resume it find nothing. */
void tw_counts_destroy(struct tw_counts *counts);
/*
 * Calls fn for each process that was counted, with its calls and nanoseconds or words. Changes nothing. The time that
 * a running process has spent since it last entered or left a function is not included.
 */
typedef void (*tw_counts_fn)(void *arg, uint64_t pid, uint64_t count, uint64_t value);
void tw_counts_each(const struct tw_counts *counts, bool is_time, tw_counts_fn fn, void *arg);

/*
 * In a hit: the process enters a function. @frame: keeps the account to resume when it ends; NULL: its end will not
 * be reported.
 */
void tw_counts_enter(struct tw_hit_tls *t, const struct tw_bp_part *part, struct tw_frame_wants *frame);
/* In a hit: a frame with TW_COUNTS_RESUMES in `more` ends. */
void tw_counts_resume(struct tw_hit_tls *t, const struct tw_frame_wants *frame);
#define TW_COUNTS_SHIFT	      8
#define TW_COUNTS_BLOCK_SHIFT 32
/* In `more`: accounts kept in the frame, and the reference of a block with the others. */
#define TW_COUNTS_RESUMES (UINT64_C(0xf00) | UINT64_C(0xffffffff) << TW_COUNTS_BLOCK_SHIFT)
/*
 * In a hit: a tail call passes a frame to its callee. Takes the accounts from both and keeps those to resume, for
 * tw_counts_keep() of the frame's new contents.
 */
void tw_counts_hand_over(struct tw_frame_wants *frame, struct tw_frame_wants *callee, struct tw_frame_wants *kept);
void tw_counts_keep(struct tw_frame_wants *frame, const struct tw_frame_wants *kept);

/* The process stops running, or starts to run, on the calling thread. */
void tw_counts_out(struct tw_thread *thread, struct tw_tracee *tracee);
void tw_counts_in(struct tw_tracee *tracee);

/* The running process has allocated this many bytes by a native allocator. Any thread; keeps errno. */
void tw_hit_allocated(uint64_t bytes);

/* thread.c: calls fn for each thread that exists or has left. */
void tw_threads_each(void (*fn)(struct tw_thread *thread, void *arg), void *arg);

#endif
