/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - thread progress, as far as a program can see it: how long changes have waited for it.
 *
 * A change is over when every thread has moved on: none is inside a hit that began before it.  A thread that is held up
 * in the middle of a hit (by the scheduler, a signal handler, a debugger) holds up whoever changes something; a thread
 * that sleeps anywhere else, or has never come to a hit, holds up nobody.
 *
 * Threads  any, outside of hits.
 * Source   OTP: thread progress; read-copy-update: grace periods.
 */
#ifndef TRACEWHEEL_PROGRESS_H
#define TRACEWHEEL_PROGRESS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Four to each power of two: bucket i holds waits of tw_progress_bucket_ns(i) and more. */
#define TW_PROGRESS_BUCKETS 160u

/* Of the whole program since it began. */
struct tw_progress_waits {
	uint64_t count;	     /* grace periods that were waited for */
	uint64_t code_count; /* of these: with a barrier for what processors fetch as instructions */
	uint64_t total_ns;
	uint64_t longest_ns;
	uint64_t by_duration[TW_PROGRESS_BUCKETS];
};

/*
 * tw_progress_waits - how many waits there were, and how long they took.
 *
 * @out		set.
 *
 * May wait for the one that is under way.  Errors: TW_EDEADLK in a hit.
 */
int tw_progress_waits(struct tw_progress_waits *out);

/* The shortest wait of a bucket. */
static inline uint64_t tw_progress_bucket_ns(unsigned bucket)
{
	return bucket < 8 ? bucket / 4 * 2 : (uint64_t)(4 + bucket % 4) << (bucket / 4 - 2);
}

#ifdef __cplusplus
}
#endif

#endif
