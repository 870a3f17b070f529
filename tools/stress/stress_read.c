/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stress_read.c - checks the capture of the rounds.
 *
 * A round of a thread is the part of its stream between two marks. The mark has the phase at the round's beginning
 * and end, so it is known which calls must be there and which must not:
 *
 *	no switch fell into it	all calls of the half that was active then, and no others
 *	one did			in the order of calls, up to some point those of one half, from there on those of the other
 *	several			nothing is known
 *
 * If calls were to be watched to their ends, each is followed by its return with the value of this round. No event of
 * a thread has an earlier time than the one before it.
 */
#include "tools/stress/stress_inside.h"
#include "base/grow.h"

#include <tracewheel/capture.h>

#include <stdlib.h>
#include <string.h>

#define CALLS	      (2 * TW_STRESS_PLACES) /* of a round: place + TW_STRESS_PLACES * half, in this order */
#define MARK	      CALLS
#define CLOCK_STEP_NS 1000u
#define NOBODY	      255
#define ALL	      ((1u << CALLS) - 1)
#define HALF(h)	      (((1u << TW_STRESS_PLACES) - 1) << ((h) ? TW_STRESS_PLACES : 0))

/* The state of a stream. */
struct stream {
	uint64_t last;	      /* the round of the last mark */
	uint64_t lost;	      /* events since */
	uint64_t last_ns;     /* time of the event before */
	uint32_t calls, ends; /* bits */
	uint64_t values[CALLS];
	bool is_malformed; /* a call twice, or an end without a call */
};

struct reading {
	struct tw_stress *stress;
	uint64_t lost_nowhere; /* events of threads without a ring */
	uint64_t missing;      /* rounds that their own stream does not report as lost */
	struct tw_capture *capture;
	struct stream *streams;
	uint32_t stream_count;
	bool has_ringless; /* threads lost events before there was a ring for them */
	uint8_t *roles;	   /* by place id: 1 + the call's index in a round; 0: not known yet */
	uint32_t place_count;
};

static uint8_t find_role(struct reading *r, const struct tw_capture_event *event)
{
	const struct tw_capture_place *place = tw_capture_place(r->capture, event->image, event->id);
	const char *name = place && place->function ? place->function->name : "";

	for (int half = 0; half < 2; half++) {
		const char *names[TW_STRESS_PLACES] = {tw_stress_numbered_declared[half].name,
						       r->stress->form->numbered[half], tw_stress_numbered_slots[half]};

		for (uint8_t i = 0; i < TW_STRESS_PLACES; i++)
			if (!strcmp(name, names[i]))
				return (uint8_t)(i + (half ? TW_STRESS_PLACES : 0));
	}
	return strcmp(name, tw_stress_marker.name) ? NOBODY : MARK;
}

static uint8_t role_of(struct reading *r, const struct tw_capture_event *event)
{
	if (!tw_grow_to(r->roles, r->place_count, event->id))
		return NOBODY;
	if (!r->roles[event->id])
		r->roles[event->id] = (uint8_t)(find_role(r, event) + 1);
	return (uint8_t)(r->roles[event->id] - 1);
}

/* Could a switch to the other half, at any point, have left these calls of a round that began with this half? */
static bool is_one_moment(uint32_t calls, uint32_t made, int half)
{
	for (unsigned at = 0; at <= CALLS; at++) {
		uint32_t before = (1u << at) - 1;

		if (calls == (made & ((HALF(half) & before) | (HALF(1 - half) & ~before))))
			return true;
	}
	return false;
}

/* The calls whose ends must be there, after a switch of this number. */
static uint32_t ends_wanted(const struct tw_stress *s, uint32_t calls, uint32_t number)
{
	return number && tw_stress_is_returning(s, number) ? calls & HALF(number & 1) : 0;
}

static void check_ends(struct tw_stress *s, const struct stream *stream, uint64_t n, uint32_t first, uint32_t last)
{
	uint32_t wanted = ends_wanted(s, stream->calls, first);

	if (last != first)
		wanted |= ends_wanted(s, stream->calls, last);
	s->result->ends += (unsigned)__builtin_popcount(stream->ends);
	if (stream->ends != wanted) {
		s->result->bad_ends++;
		tw_stress_tell(s, "round %llu has the ends of calls 0x%x instead of 0x%x", (unsigned long long)n,
			       stream->ends, wanted);
	}
	for (unsigned i = 0; i < CALLS; i++) {
		uint64_t value = tw_stress_numbered_answer((enum tw_stress_place)(i % TW_STRESS_PLACES),
							   i >= TW_STRESS_PLACES, n);

		if (!(stream->ends >> i & 1) || stream->values[i] == value)
			continue;
		s->result->bad_ends++;
		tw_stress_tell(s, "a call returned 0x%llx in the capture and not 0x%llx, in round %llu",
			       (unsigned long long)stream->values[i], (unsigned long long)value, (unsigned long long)n);
	}
}

/* Checks the round that this mark ends. */
static void check_round(struct reading *r, struct stream *stream, uint64_t n, uint32_t before, uint32_t after)
{
	struct tw_stress *s = r->stress;
	struct tw_stress_result *result = s->result;
	uint32_t first = before / 2, last = (after + 1) / 2, made = 0;

	for (unsigned i = 0; i < CALLS; i++)
		if (tw_stress_does(s, 1u << i % TW_STRESS_PLACES))
			made |= 1u << i;
	result->stored++;
	if (n <= stream->last) {
		result->disordered++;
		tw_stress_tell(s, "round %llu comes after round %llu of the same thread", (unsigned long long)n,
			       (unsigned long long)stream->last);
	} else if (n - stream->last - 1 > stream->lost) {
		r->missing += n - stream->last - 1 - stream->lost;
	}
	result->within += first != last;
	if (stream->lost || last - first > 1 || (!stream->last && r->has_ringless)) {
		result->excused++;
		return;
	}
	if (stream->is_malformed || (first == last ? stream->calls != (made & HALF(first & 1))
						   : !is_one_moment(stream->calls, made, first & 1))) {
		result->torn++;
		tw_stress_tell(s, "round %llu has calls 0x%x, with %u switches before it and %u after it%s",
			       (unsigned long long)n, stream->calls, first, last,
			       stream->is_malformed ? ", or a call twice" : "");
		return;
	}
	check_ends(s, stream, n, first, last);
}

static void take_event(struct reading *r, const struct tw_capture_event *event)
{
	struct stream *stream = event->stream < r->stream_count ? &r->streams[event->stream] : NULL;
	uint8_t role;

	if (event->kind == TW_CAPTURE_LOSS) {
		uint64_t lost = 0;

		for (int cause = 0; cause < TW_LOST_CAUSES; cause++)
			lost += tw_capture_event_loss(event)->lost[cause];
		*(stream ? &stream->lost : &r->lost_nowhere) += lost;
		r->stress->result->lost += lost;
		return;
	}
	if (!stream || (event->kind != TW_CAPTURE_CALL && event->kind != TW_CAPTURE_RETURN_FROM))
		return;
	/* If the processors' counters differ, a thread that migrates may go back by that difference. */
	if (event->time_ns + CLOCK_STEP_NS < stream->last_ns) {
		r->stress->result->disordered++;
		tw_stress_tell(r->stress,
			       "an event has a time %llu ns before that of the previous event, after round %llu",
			       (unsigned long long)(stream->last_ns - event->time_ns),
			       (unsigned long long)stream->last);
	}
	stream->last_ns = event->time_ns;
	role = role_of(r, event);
	if (role == MARK && event->payload_words == 2) {
		uint64_t n = event->payload[0];

		check_round(r, stream, n, (uint32_t)(event->payload[1] >> 32), (uint32_t)event->payload[1]);
		*stream = (struct stream){.last = n > stream->last ? n : stream->last, .last_ns = event->time_ns};
	} else if (role >= CALLS) {
		stream->is_malformed = true;
	} else if (event->kind == TW_CAPTURE_CALL) {
		stream->is_malformed |= stream->calls >> role;
		stream->calls |= 1u << role;
	} else {
		/* No call begins before the previous one has returned. */
		stream->is_malformed |= stream->calls >> role != 1 || stream->ends >> role || !event->payload_words;
		stream->ends |= 1u << role;
		stream->values[role] = event->payload_words ? event->payload[0] : 0;
	}
}

/*
 * Handles rounds after the last mark of their stream, or of threads without one. Losses for want of a ring are in no
 * stream: they account for any missing rounds.
 */
static void check_the_rest(struct reading *r)
{
	struct tw_stress_result *result = r->stress->result;
	uint64_t marked = 0, lost = 0;

	for (uint32_t i = 0; i < r->stream_count; i++) {
		marked += r->streams[i].last;
		lost += r->streams[i].lost;
	}
	if (marked + lost < result->numbered)
		r->missing += result->numbered - marked - lost;
	if (r->missing <= r->lost_nowhere)
		return;
	result->unaccounted = r->missing - r->lost_nowhere;
	tw_stress_tell(r->stress, "%llu rounds are neither in the capture nor reported as lost",
		       (unsigned long long)result->unaccounted);
}

int tw_stress_read(struct tw_stress *s)
{
	struct reading r = {.stress = s};
	struct tw_capture_events *events = NULL;
	struct tw_capture_info info;
	const struct tw_capture_event *batch;
	int64_t count = 0;
	int error = tw_capture_open(s->capture_path, NULL, &r.capture);

	if (error)
		return error;
	tw_capture_info(r.capture, &info);
	for (uint32_t i = 0; i < info.images; i++)
		r.has_ringless |= tw_capture_image(r.capture, i)->no_ring_lost != 0;
	r.stream_count = info.streams;
	r.streams = calloc(info.streams + 1, sizeof *r.streams);
	error = r.streams ? tw_capture_events_create(r.capture, NULL, &events) : TW_ENOMEM;
	while (!error && (count = tw_capture_events_next(events, &batch)) > 0)
		for (int64_t i = 0; i < count; i++)
			take_event(&r, &batch[i]);
	if (!error && count < 0)
		error = (int)count;
	if (!error)
		check_the_rest(&r);
	if (info.damages)
		tw_stress_tell(s, "%u pieces of the capture are damaged", info.damages);
	if (events)
		tw_capture_events_destroy(events);
	free(r.streams);
	free(r.roles);
	tw_capture_close(r.capture);
	return error;
}
