/* SPDX-License-Identifier: Apache-2.0 */
/* session_bed.h - sessions over rings of the test itself: the rings hold what was recorded. */
#ifndef TW_TESTS_SESSION_BED_H
#define TW_TESTS_SESSION_BED_H

#include "base/clock.h"
#include "base/error.h"
#include "ringbuf/ringset.h"
#include "session/session.h"
#include "tracewheel/runtime.h"
#include "tracewheel/tracewheel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

/* A session and the rings behind it. */
struct bed {
	struct tw_rs rs;
	struct tw_session *session;
	uint64_t pos[TW_RS_RINGS_MAX];
	uint32_t tracees[TW_RS_RINGS_MAX]; /* at those positions */
};

static inline void open_bed_with(struct bed *bed, const char *name, const struct tw_rs_options *options)
{
	uint32_t image;

	memset(bed, 0, sizeof *bed);
	assert_int_equal(tw_rs_create(&bed->rs, options), 0);
	assert_int_equal(tw_rs_image_claim(&bed->rs, &image), 0);
	assert_int_equal(tw_session_make(name, &bed->rs, &bed->session), 0);
}

static inline void open_bed(struct bed *bed, const char *name)
{
	struct tw_rs_options options = {.ring_bytes = 1 << 16, .cap_bytes = 1 << 22, .has_fixed_rings = true};

	open_bed_with(bed, name, &options);
}

static inline void close_bed(struct bed *bed)
{
	tw_session_destroy(bed->session);
	tw_session_put(bed->session);
	tw_rs_destroy(&bed->rs);
}

static inline void trace_in(struct bed *bed, const struct tw_process *process, uint32_t flags)
{
	assert_int_equal(tw_trace_process(bed->session, tw_process_pid(process), true, flags), 1);
}

typedef void record_fn(struct tw_rb_record *record, void *context);

/* The next records of all rings, one ring after another. */
static inline void for_each_record(struct bed *bed, record_fn *visit, void *context)
{
	for (uint32_t i = 0; i < tw_rs_scan(&bed->rs); i++) {
		const uint8_t *at;
		uint64_t end;
		int64_t bytes;

		while ((bytes = tw_rb_peek(tw_rs_ring(&bed->rs, i), bed->pos[i], TW_BLOCK_RAW_BYTES_MAX, &at, &end)) >
		       0) {
			for (int64_t b = 0; b < bytes;) {
				struct tw_rb_record *record = (struct tw_rb_record *)(at + b);

				b += TW_RB_HEAD_BYTES(record->head);
				visit(record, context);
			}
			bed->pos[i] = end;
		}
	}
}

struct taken {
	struct tw_rb_record **out;
	unsigned count, max;
};

/* With or without the record of the thread's set-up time. */
static inline void take_one(struct tw_rb_record *record, void *context)
{
	struct taken *taken = context;

	if (taken->count < taken->max && TW_RB_HEAD_KIND(record->head) != TW_EVENT_OWN_TIME)
		taken->out[taken->count++] = record;
}

/* Copies pointers to the next records to out; returns how many. */
static inline unsigned take(struct bed *bed, struct tw_rb_record **out, unsigned max)
{
	struct taken taken = {out, 0, max};

	for_each_record(bed, take_one, &taken);
	return taken.count;
}

/* Drains all rings; returns the number of events, without loss records. */
static inline unsigned count_events(struct bed *bed)
{
	unsigned count = 0;

	for (uint32_t i = 0; i < tw_rs_scan(&bed->rs); i++) {
		struct tw_rb_shared *ring = tw_rs_ring(&bed->rs, i);
		const uint8_t *at;
		uint64_t end = bed->pos[i];

		do {
			int64_t bytes = tw_rb_peek(ring, bed->pos[i], TW_BLOCK_RAW_BYTES_MAX, &at, &end);

			assert_true(bytes >= 0);
			for (int64_t b = 0; b < bytes;) {
				uint64_t head = ((struct tw_rb_record *)(at + b))->head;

				count += TW_RB_HEAD_KIND(head) != TW_EVENT_LOSS &&
					 TW_RB_HEAD_KIND(head) != TW_EVENT_OWN_TIME;
				b += TW_RB_HEAD_BYTES(head);
			}
			if (end == bed->pos[i])
				break;
			bed->pos[i] = end;
			tw_rb_consume(ring, end);
		} while (true);
	}
	return count;
}

static inline uint64_t count_lost(struct bed *bed)
{
	uint64_t lost = 0;

	for (uint32_t i = 0; i < tw_rs_scan(&bed->rs); i++)
		for (int cause = 0; cause < TW_RB_CAUSES; cause++)
			lost += tw_rs_ring(&bed->rs, i)->lost[cause];
	return lost;
}

#endif
