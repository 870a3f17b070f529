/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spans.h - the events of a capture in order, as the records that they are made of.
 *
 * Most records need no event: a reader that wants a few numbers of each takes them from the record, and asks for the event of any other.
 *
 * Threads  as capture.h.
 */
#ifndef TRACEWHEEL_SPANS_H
#define TRACEWHEEL_SPANS_H

#include "tracewheel/capture.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Records of one stream and tracee that follow each other in the order of events. */
struct tw_capture_span {
	const struct tw_capture_record *first;
	const struct tw_capture_record *end;
	uint64_t
		first_sequence; /* of the first record; tw_capture_record_sequences() of each leads to the next one's */
	uint32_t stream;
	uint32_t image;
	uint32_t tracee_id;
};

/* By how much the sequence number grows from this record to the next of its stream. */
static inline uint64_t tw_capture_record_sequences(const struct tw_capture_record *record)
{
	uint64_t lost = 0;

	if ((record->head & 0xff) != TW_CAPTURE_LOSS)
		return 1;
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
		lost += record->payload[1 + cause];
	return lost;
}

/*
 * tw_capture_spans_next - the next events, as the records that they are made of: several times as fast.
 *
 * A reader of events gives either these or tw_capture_events_next(), and in the same order.  Records are those of the streams and blocks that
 * the filter selects: others lie among them.
 *
 * @spans	lends: until the next call.
 *
 * Returns their number (1 ..), 0 at the end, or an error: TW_ENOMEM, TW_ENOTSUP of a live stream, TW_EBADARG after tw_capture_events_next(),
 * which returns the same after this.  Damage is skipped and named.
 */
int64_t tw_capture_spans_next(struct tw_capture_events *events, const struct tw_capture_span **spans);

/*
 * tw_capture_span_event - the event of a record.
 *
 * @sequence	the record's.
 * @event	is written; its payload is lent as long as the span.
 *
 * Returns false if the filter does not select it; *event is undefined then.
 * Threads: that of tw_capture_spans_next().
 */
bool tw_capture_span_event(struct tw_capture_events *events, const struct tw_capture_span *span,
			   const struct tw_capture_record *record, uint64_t sequence, struct tw_capture_event *event);

/*
 * The kinds that records of the program have, known without reading them: bit k % 32 for kind k, without its bit for CPU time.  0: not
 * known, as of live streams.  A block that turns out to be damaged counts.
 */
uint32_t tw_capture_kinds(const struct tw_capture *capture);

/* A piece of the capture's clock: a straight line. */
struct tw_capture_clock {
	uint64_t first_ticks, end_ticks; /* it holds from the first on, and before the end */
	uint64_t first_ns, end_ns;	 /* no time is after end_ns */
	uint64_t rate;			 /* nanoseconds a tick, in 2^-32 */
};

/* The piece that these ticks lie in: tw_capture_clock_ns() is then what tw_capture_ns() is. */
void tw_capture_clock_at(const struct tw_capture *capture, uint64_t ticks, struct tw_capture_clock *clock);
static inline bool tw_capture_clock_has(const struct tw_capture_clock *clock, uint64_t ticks)
{
	return ticks >= clock->first_ticks && ticks < clock->end_ticks;
}
static inline uint64_t tw_capture_clock_ns(const struct tw_capture_clock *clock, uint64_t ticks)
{
	__extension__ typedef unsigned __int128 wide;
	uint64_t ns = clock->first_ns + (uint64_t)((wide)(ticks - clock->first_ticks) * clock->rate >> 32);

	return ns < clock->end_ns ? ns : clock->end_ns;
}

#ifdef __cplusplus
}
#endif

#endif
