/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count.h - counters without events: call_count by thread, call_time and call_memory by process.
 *
 * call_count	a slot of one array; each thread adds in a copy of its own, and readers sum them up.
 * call_time	of a process, to whom its time goes is an *account*: the traced function that it entered last, or that
 * call_memory	was returned to.  One account a process, session and kind: four in place, any more in blocks of the
 *		process (process_memory.h), as are what frames go back to of those.
 *		Rows {account, process} -> {calls, ticks or words} lie in a table of each thread, written by it alone.
 *
 * Nothing is ever given back to the system: threads that left keep their counts, and are taken again.  Memory: for a
 * thread that counts, 512 KiB and 2 MiB of addresses, of which only what is touched is used.  A table that is full
 * refuses rows, and a process without memory accounts; tw_counts_refused() of tracewheel/session.h tells how many calls
 * that were.
 *
 * Threads  hits on any; what is said to be control: under the permit, beside hits.
 */
#ifndef TW_PIPELINE_COUNT_H
#define TW_PIPELINE_COUNT_H

#include "breakpoints/breakpoints.h"

struct tw_hit_tls;
struct tw_thread;
struct tw_tracee;
struct tw_frame_wants;

/* ---- call_count ---- */

/* Control.  A counter at 0; NULL: too many (65,536), or no memory. */
struct tw_counter *tw_counter_create(void);
/* After a wait for thread progress: no hit counts in it any more.  NULL is allowed. */
void tw_counter_destroy(struct tw_counter *counter);
/* Control.  Calls that are under way are in or not. */
uint64_t tw_counter_value(const struct tw_counter *counter);
/* Control.  The value, and begins at 0. */
uint64_t tw_counter_take(struct tw_counter *counter);
/* Control.  Gives back what was taken. */
void tw_counter_add(struct tw_counter *counter, uint64_t value);

/* In a hit. */
void tw_counter_count(struct tw_hit_tls *t, struct tw_counter *counter);

/* ---- call_time, call_memory ---- */

/* Control.  What is counted by process, of one place and session; NULL: too many (65,535), or no memory. */
struct tw_counts *tw_counts_create(void);
/* NULL is allowed.  Frames that would come back to it find nothing. */
void tw_counts_destroy(struct tw_counts *counts);
/*
 * Calls fn for each process that was counted: how often, and nanoseconds or words.  Does not change what it reads; what a
 * process that is running has spent since it last entered or left something is not in yet.
 */
typedef void (*tw_counts_fn)(void *arg, uint64_t pid, uint64_t count, uint64_t value);
void tw_counts_each(const struct tw_counts *counts, bool is_time, tw_counts_fn fn, void *arg);

/* In a hit: the process enters a function.  @frame: keeps whose account goes on when it ends; NULL: nobody tells. */
void tw_counts_enter(struct tw_hit_tls *t, const struct tw_bp_part *part, struct tw_frame_wants *frame);
/* In a hit: a frame ends that has TW_COUNTS_RESUMES in `more`. */
void tw_counts_resume(struct tw_hit_tls *t, const struct tw_frame_wants *frame);
#define TW_COUNTS_SHIFT	      8
#define TW_COUNTS_BLOCK_SHIFT 32
/* In `more`: accounts that have their place in the frame, and the reference of a block with those that do not. */
#define TW_COUNTS_RESUMES (UINT64_C(0xf00) | UINT64_C(0xffffffff) << TW_COUNTS_BLOCK_SHIFT)
/*
 * In a hit: a tail call hands a frame over.  Takes the accounts from both and keeps those to go back to, for
 * tw_counts_keep() of what the frame holds then.
 */
void tw_counts_hand_over(struct tw_frame_wants *frame, struct tw_frame_wants *callee, struct tw_frame_wants *kept);
void tw_counts_keep(struct tw_frame_wants *frame, const struct tw_frame_wants *kept);

/* The process stops, or goes on, to run on the calling thread. */
void tw_counts_out(struct tw_thread *thread, struct tw_tracee *tracee);
void tw_counts_in(struct tw_tracee *tracee);

/* The running process has allocated so many bytes: native programs' allocators.  Any thread; keeps errno. */
void tw_hit_allocated(uint64_t bytes);

/* thread.c: calls fn for each thread that there is or was. */
void tw_threads_each(void (*fn)(struct tw_thread *thread, void *arg), void *arg);

#endif
