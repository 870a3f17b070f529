/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - statistics of thread progress: how long changes have waited for it.
 *
 * A change is complete when no thread is inside a hit that began before it.  A thread that is stopped in the middle of
 * a hit (by the scheduler, a signal handler, a debugger) delays all changes; a thread that sleeps elsewhere, or has
 * never made a hit, delays none.
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

/* Four buckets for each power of two: bucket i holds waits of tw_progress_bucket_ns(i) and more. */
#define TW_PROGRESS_BUCKETS 160u

/* Totals of the whole program since its start. */
struct tw_progress_waits {
	uint64_t count;	     /* grace periods waited for */
	uint64_t code_count; /* of these: with a barrier for instruction fetch */
	uint64_t total_ns;
	uint64_t longest_ns;
	uint64_t by_duration[TW_PROGRESS_BUCKETS];
};

/*
 * tw_progress_waits - number and durations of the waits.
 *
 * @out		set.
 *
 * May wait for the wait in progress.  Errors: TW_EDEADLK in a hit.
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
