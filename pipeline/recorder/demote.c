/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demote.c - see demote.h.
 *
 * Events are looked at in windows of a second.  When there are more in one than the limit allows, the places that have most of them are
 * asked for, until those of the others fit; then the next window begins.  Events of a place that was asked for may be on their way for a
 * while: they lie in the rings.  When they still come LATE_NS after the program has answered, it goes on recording them.
 */
#include "pipeline/recorder/demote.h"

#include "base/clock.h"
#include "base/export.h"
#include "base/limits.h"
#include "base/search.h"
#include "pipeline/codec/codec.h"
#include "pipeline/format/event.h"
#include "pipeline/recorder/recorder.h"
#include "ringbuf/ringset.h"

#include <stdlib.h>
#include <string.h>

#define SECOND_NS UINT64_C(1000000000)
/* The program answers each request within this time, or it never will. */
#define ANSWER_NS (2 * SECOND_NS)
#define LATE_NS	  (3 * SECOND_NS)
/*
 * A recorder that had no processor for a while finds the events of that time at once: in a shorter window than this their rate is not known, and
 * functions would be asked for that need not be.  If too few are asked for, the next window shows it.
 */
#define BURST_NS (SECOND_NS / 10)
/* The places of fewer events say nothing, unless the limit is lower. */
#define SAMPLES_MIN 200
/* Of large blocks, which come many a second, one in so many is looked at: all would be a sixth of the recorder's work. */
#define LARGE_BYTES  (64u << 10)
#define SAMPLED_PART 8
/* The rest is below the limit by a fifth: it is no constant stream. */
#define KEEP_PERCENT 80

struct tw_demote {
	uint32_t *counts; /* by place: events of this window */
	uint8_t *asked;	  /* by place: 1 if it was asked for */
	uint32_t *seen;	  /* the places that have events */
	uint32_t seen_count;
	uint64_t lease;		/* of the image */
	uint64_t samples, late; /* all of these events; those of places that were asked for before */
	uint64_t begun_ns, begun_events, asked_ns, done_ns;
	uint32_t large_blocks;
	bool is_pending;
	bool is_limited; /* windows are those of tw_demote_look() */
};

/* Pages that are not used take no memory. */
struct tw_demote *tw_demote_create(void)
{
	struct tw_demote *demote = calloc(1, sizeof *demote);

	if (!demote)
		return NULL;
	demote->counts = calloc(TW_COUNTERS_MAX, sizeof *demote->counts);
	demote->asked = calloc(TW_COUNTERS_MAX, sizeof *demote->asked);
	demote->seen = calloc(TW_COUNTERS_MAX, sizeof *demote->seen);
	if (demote->counts && demote->asked && demote->seen)
		return demote;
	tw_demote_destroy(demote);
	return NULL;
}

void tw_demote_destroy(struct tw_demote *demote)
{
	if (!demote)
		return;
	free(demote->counts);
	free(demote->asked);
	free(demote->seen);
	free(demote);
}

static void begin_window(struct tw_demote *demote, uint64_t events, uint64_t now_ns)
{
	for (uint32_t i = 0; i < demote->seen_count; i++)
		demote->counts[demote->seen[i]] = 0;
	demote->seen_count = 0;
	demote->samples = demote->late = 0;
	demote->begun_events = events;
	demote->begun_ns = now_ns;
}

/* The process executes another program: what was asked for is of the one before. */
static void begin_image(struct tw_demote *demote, uint64_t lease)
{
	if (demote->asked_ns)
		memset(demote->asked, 0, TW_COUNTERS_MAX * sizeof *demote->asked);
	begin_window(demote, demote->begun_events, demote->begun_ns);
	demote->lease = lease;
}

void tw_demote_see(struct tw_demote *demote, uint64_t lease, const uint8_t *raw, uint32_t bytes)
{
	uint32_t weight = bytes < LARGE_BYTES ? 1 : SAMPLED_PART;
	uint64_t head;

	if (bytes >= LARGE_BYTES && ++demote->large_blocks % SAMPLED_PART)
		return;
	if (lease != demote->lease)
		begin_image(demote, lease);
	for (uint32_t at = 0; (head = tw_record_next(raw, bytes, &at));) {
		uint32_t id = TW_RB_HEAD_ID(head);

		if (!tw_event_names_place(head) || id >= TW_COUNTERS_MAX)
			continue;
		if (!demote->counts[id])
			demote->seen[demote->seen_count++] = id;
		demote->counts[id] += weight;
		demote->samples += weight;
		demote->late += demote->asked[id] * weight;
	}
}

bool tw_demote_loudest(struct tw_demote *demote, uint64_t lease, uint32_t *place, uint32_t *percent)
{
	uint32_t most = 0;
	bool is_there = demote->seen_count && demote->lease == lease;

	for (uint32_t i = 0; i < demote->seen_count; i++) {
		uint32_t id = demote->seen[i];

		if (demote->counts[id] <= most)
			continue;
		most = demote->counts[id];
		*place = id;
	}
	if (is_there)
		*percent = (uint32_t)(100 * (uint64_t)most / demote->samples);
	if (!demote->is_limited)
		begin_window(demote, 0, 0);
	return is_there;
}

static const uint32_t *compared;

static int by_count(const void *one, const void *other)
{
	uint32_t a = compared[*(const uint32_t *)one], b = compared[*(const uint32_t *)other];

	return TW_ORDER(b, a);
}

/* Asks for the loudest places, of which @surplus events of this window are; false: there are none. */
static bool ask(struct tw_demote *demote, struct tw_rs *rs, uint64_t surplus)
{
	uint32_t places[TW_RS_DEMOTED_MAX], count = 0;
	uint64_t taken = 0;

	compared = demote->counts;
	qsort(demote->seen, demote->seen_count, sizeof *demote->seen, by_count);
	for (uint32_t i = 0; i < demote->seen_count && taken < surplus && count < TW_RS_DEMOTED_MAX; i++) {
		uint32_t place = demote->seen[i];

		if (demote->asked[place])
			continue;
		demote->asked[place] = 1;
		places[count++] = place;
		taken += demote->counts[place];
	}
	if (count)
		tw_rs_demotion_ask(rs, places, count, (uint32_t)(100 * taken / demote->samples));
	return count != 0;
}

/* The last request is not answered yet. */
static enum tw_recorder_demotion await(struct tw_demote *demote, const struct tw_rs *rs, uint64_t events,
				       uint64_t now_ns)
{
	bool has_changed = false;

	if (tw_rs_demotion_is_pending(rs, &has_changed))
		return now_ns - demote->asked_ns > ANSWER_NS ? TW_DEMOTION_IMPOSSIBLE : TW_DEMOTION_NONE;
	demote->is_pending = false;
	demote->done_ns = now_ns;
	begin_window(demote, events, now_ns);
	return has_changed ? TW_DEMOTION_NONE : TW_DEMOTION_IMPOSSIBLE;
}

enum tw_recorder_demotion tw_demote_look(struct tw_demote *demote, struct tw_rs *rs, uint64_t rate, uint64_t events,
					 uint64_t now_ns)
{
	uint64_t time_ns = now_ns - demote->begun_ns, there = events - demote->begun_events;
	double kept, others, share;

	demote->is_limited = true;
	if (demote->is_pending)
		return await(demote, rs, events, now_ns);
	if (!demote->begun_ns || (there <= rate && time_ns >= SECOND_NS))
		begin_window(demote, events, now_ns);
	if (!demote->begun_ns || there <= rate || demote->samples < (rate < SAMPLES_MIN ? rate : SAMPLES_MIN))
		return there > rate && time_ns >= SECOND_NS ? TW_DEMOTION_IMPOSSIBLE : TW_DEMOTION_NONE;
	others = (double)(demote->samples - demote->late);
	share = (double)there / (double)demote->samples;
	if (others * share <= (double)rate) {
		begin_window(demote, events, now_ns);
		return now_ns - demote->done_ns > LATE_NS ? TW_DEMOTION_IMPOSSIBLE : TW_DEMOTION_NONE;
	}
	/* In samples: what may stay of those that are not asked for yet. */
	time_ns = time_ns < BURST_NS ? BURST_NS : time_ns < SECOND_NS ? time_ns : SECOND_NS;
	kept = (double)rate * KEEP_PERCENT / 100 * (double)time_ns / (double)SECOND_NS / share;
	if (!ask(demote, rs, (uint64_t)(others - kept)))
		return TW_DEMOTION_IMPOSSIBLE;
	demote->is_pending = true;
	demote->asked_ns = now_ns;
	return TW_DEMOTION_ASKED;
}

TW_API enum tw_recorder_demotion tw_recorder_demote(struct tw_recorder *recorder, uint64_t events_per_second)
{
	const struct tw_recorder_stats *stats = &recorder->writer.store.stats;
	uint64_t events = stats->events_taken;

	if (!recorder->writer.demote)
		recorder->writer.demote = tw_demote_create();
	if (!recorder->writer.demote)
		return TW_DEMOTION_IMPOSSIBLE;
	for (int i = 0; i < TW_LOST_CAUSES; i++)
		events += stats->lost[i];
	return tw_demote_look(recorder->writer.demote, &recorder->writer.rs, events_per_second, events,
			      tw_clock_monotonic_ns());
}
