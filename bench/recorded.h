/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded.h - how many events the calling thread has put into its ring of a session, and the sum of results of a leaf.
 *
 * Threads  the benchmark's own.
 */
#ifndef TW_BENCH_RECORDED_H
#define TW_BENCH_RECORDED_H

#include "bench/bench.h"
#include "pipeline/hit/hit.h"
#include "session/session.h"

/* Events only: no switches between processes, no pads, nothing that was refused. */
static inline uint64_t events_of(const struct tw_session *session)
{
	const struct tw_thread *thread = tw_hit_tls.thread;

	return thread ? thread->rings[session->slot].producer.records : 0;
}

/* Refused events of the ring that is in use; what an overwriting ring overwrites is not refused. */
static inline uint64_t refused_of(const struct tw_session *session)
{
	const struct tw_thread *thread = tw_hit_tls.thread;
	const struct tw_rb_shared *ring = thread ? thread->rings[session->slot].producer.shared : NULL;
	uint64_t refused = 0;

	for (int cause = 0; ring && cause < TW_RB_CAUSES; cause++) {
		bool is_refusal = cause != TW_RB_LOST_FULL || ring->policy != TW_RB_OVERWRITE;

		/* RELAXED bench.lost: this thread's own. */
		refused += is_refusal ? tw_load_relaxed(&ring->lost[cause]) : 0;
	}
	return refused;
}

/* How many events fill a ring, which gets its memory while it fills for the first time; 0: times are not wanted. */
static inline uint64_t fill(const struct tw_bench *bench)
{
	return bench->is_timed ? TW_RB_BYTES_DEFAULT / sizeof(struct tw_rb_record) : 0;
}

/* The sum of a + b over n calls with a = i & 511 and b = i; n * n fits 64 bits. */
static inline uint64_t sum_of_calls(uint64_t n)
{
	uint64_t rest = n % 512;

	return n / 512 * (512 * 511 / 2) + (rest * rest - rest) / 2 + (n * n - n) / 2;
}

#endif
