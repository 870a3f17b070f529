/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.c - compares the capture with the witness.
 *
 *	each stream	numbers increase by one, or by one more than the losses reported in between
 *	each thread	the last number, plus later losses, is `committed` or `attempted`
 *	all of it	returned + lost is between the sums of both: at most one call per thread was under way
 */
#include "tests/crash/harness.h"
#include "tracewheel/capture.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#define STREAMS_MAX 512

struct stream {
	uint64_t last;	 /* number of the last event; 0: none yet */
	uint64_t behind; /* lost since */
	uint64_t returned, lost;
	uint32_t thread;
};

struct reading {
	const struct witness *witness;
	struct tw_capture *capture;
	struct stream streams[STREAMS_MAX];
	uint64_t returned, lost;
};

static char sentence[512];

static __attribute__((format(printf, 1, 2))) const char *say(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(sentence, sizeof sentence, format, arguments);
	va_end(arguments);
	return sentence;
}

static uint64_t sum(const uint64_t lost[TW_LOST_CAUSES])
{
	uint64_t all = 0;

	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
		all += lost[cause];
	return all;
}

static const char *check_words(const struct reading *reading, const struct tw_capture_event *event)
{
	const struct tw_capture_place *place = tw_capture_place(reading->capture, event->image, event->id);
	const char *name = place && place->function ? place->function->name : "";
	const uint64_t *words = event->payload;
	bool is_four = strcmp(name, "four") == 0;

	if (!is_four && strcmp(name, reading->witness->is_slots ? "crash_step" : "two") != 0)
		return say("place %u is '%s'", event->id, name);
	if (event->payload_words < (is_four ? 4u : 2u))
		return say("an event of %s has %u words", name, event->payload_words);
	if (words[1] != witness_mix(words[0]))
		return say("a word was changed: %llx", (unsigned long long)words[0]);
	if (is_four && (words[2] != ~words[0] || words[3] != ~words[1]))
		return say("a third or fourth word was changed");
	return NULL;
}

static const char *take_call(struct reading *reading, const struct tw_capture_event *event)
{
	struct stream *stream = &reading->streams[event->stream % STREAMS_MAX];
	uint32_t thread = (uint32_t)(event->payload[0] >> WITNESS_NUMBER_BITS);
	uint64_t number = event->payload[0] & ((UINT64_C(1) << WITNESS_NUMBER_BITS) - 1);
	const char *wrong = check_words(reading, event);

	if (wrong)
		return wrong;
	if (thread >= reading->witness->threads || (stream->last && thread != stream->thread))
		return say("an event of thread %u in the stream of thread %u", thread, stream->thread);
	if (stream->last && number <= stream->last)
		return say("thread %u: %llu after %llu: twice, or out of order", thread, (unsigned long long)number,
			   (unsigned long long)stream->last);
	if (stream->last && number != stream->last + stream->behind + 1)
		return say("thread %u: %llu lost, but from %llu to %llu", thread, (unsigned long long)stream->behind,
			   (unsigned long long)stream->last, (unsigned long long)number);
	/* Before its first event a thread may have had no ring. */
	if (number < stream->behind + 1)
		return say("thread %u: %llu lost before number %llu", thread, (unsigned long long)stream->behind,
			   (unsigned long long)number);
	if (number > atomic_load_explicit(&reading->witness->thread[thread].attempted, memory_order_acquire))
		return say("thread %u: %llu was never called", thread, (unsigned long long)number);
	stream->thread = thread;
	stream->last = number;
	stream->behind = 0;
	stream->returned++;
	reading->returned++;
	return NULL;
}

static const char *take_event(struct reading *reading, const struct tw_capture_event *event)
{
	if (event->kind == TW_CAPTURE_CALL)
		return take_call(reading, event);
	if (event->kind != TW_CAPTURE_LOSS)
		return say("an event of kind %u", event->kind);
	if (event->stream != TW_CAPTURE_NONE) {
		struct stream *stream = &reading->streams[event->stream % STREAMS_MAX];
		uint64_t lost = sum(tw_capture_event_loss(event)->lost);

		stream->behind += lost;
		stream->lost += lost;
		reading->lost += lost;
	}
	return NULL;
}

static const char *read_events(struct reading *reading)
{
	const struct tw_capture_event *batch;
	struct tw_capture_events *events;
	const char *wrong = NULL;
	int64_t count = 0;

	if (tw_capture_events_create(reading->capture, NULL, &events) != 0)
		return say("events cannot be read");
	while (!wrong && (count = tw_capture_events_next(events, &batch)) > 0) {
		for (int64_t i = 0; i < count && !wrong; i++)
			wrong = take_event(reading, &batch[i]);
	}
	tw_capture_events_destroy(events);
	return wrong || count == 0 ? wrong : say("reading failed: %lld", (long long)count);
}

static const char *check_ends(const struct reading *reading, uint32_t streams)
{
	for (uint32_t i = 0; i < streams && i < STREAMS_MAX; i++) {
		const struct stream *stream = &reading->streams[i];
		const struct witness_thread *thread = &reading->witness->thread[stream->thread];
		uint64_t committed = atomic_load(&thread->committed), end = stream->last + stream->behind;

		if (stream->last && end != committed && end != atomic_load(&thread->attempted))
			return say("thread %u committed %llu, and the capture ends with %llu + %llu lost",
				   stream->thread, (unsigned long long)committed, (unsigned long long)stream->last,
				   (unsigned long long)stream->behind);
	}
	return NULL;
}

static const char *check_sums(const struct reading *reading, const struct tw_capture_info *info, bool recorder_finished,
			      struct totals *totals)
{
	const struct witness *witness = reading->witness;
	uint64_t committed = 0, attempted = 0, lost = reading->lost + info->lost[TW_LOST_NO_RING];

	struct tw_capture_account account;

	tw_capture_account(reading->capture, &account);
	uint64_t told = sum(info->lost) + account.missing[TW_MISSING_OVERWRITTEN].events;
	for (uint32_t i = 0; i < witness->threads; i++) {
		committed += atomic_load(&witness->thread[i].committed);
		attempted += atomic_load(&witness->thread[i].attempted);
	}
	if (reading->returned + lost < committed || reading->returned + lost > attempted)
		return say("%llu returned and %llu lost of %llu committed, %llu attempted",
			   (unsigned long long)reading->returned, (unsigned long long)lost,
			   (unsigned long long)committed, (unsigned long long)attempted);
	if (info->events != reading->returned || told != lost)
		return say("the summary says %llu events and %llu lost, not %llu and %llu",
			   (unsigned long long)info->events, (unsigned long long)told,
			   (unsigned long long)reading->returned, (unsigned long long)lost);
	if (recorder_finished && (witness->finish_error || witness->unstored || witness->events != reading->returned ||
				  witness->lost != lost))
		return say("the recorder stored %llu and lost %llu (%d), the capture says %llu and %llu",
			   (unsigned long long)witness->events, (unsigned long long)witness->lost,
			   witness->finish_error, (unsigned long long)reading->returned, (unsigned long long)lost);
	totals->committed += committed;
	totals->returned += reading->returned;
	totals->lost += lost;
	totals->in_flight += attempted - committed;
	totals->duplicate_blocks += info->duplicate_blocks;
	return NULL;
}

static const char *check_whole(const struct reading *reading, const struct tw_capture_info *info,
			       bool recorder_finished, struct totals *totals)
{
	const struct tw_capture_damage *damage = tw_capture_damage(reading->capture, 0);
	const char *wrong = NULL;

	if (damage)
		wrong = say("damage in %s at %llu: %s", damage->file, (unsigned long long)damage->offset,
			    damage->reason);
	else if (!info->is_complete || info->is_live || info->damaged_records)
		wrong = say("not complete");
	if (!wrong)
		wrong = check_ends(reading, info->streams);
	return wrong ? wrong : check_sums(reading, info, recorder_finished, totals);
}

static struct reading reading;

static const char *begin_reading(const char *path, const struct witness *witness)
{
	const struct tw_capture_options options = {.no_workers = true};
	int error;

	memset(&reading, 0, sizeof reading);
	reading.witness = witness;
	error = tw_capture_open(path, &options, &reading.capture);
	return error ? say("the capture cannot be opened: %d", error) : NULL;
}

const char *verify_capture(const char *path, const struct witness *witness, bool recorder_finished,
			   struct totals *totals)
{
	struct tw_capture_info info;
	const char *wrong = begin_reading(path, witness);

	if (wrong)
		return wrong;
	wrong = read_events(&reading);
	tw_capture_info(reading.capture, &info);
	if (!wrong)
		wrong = check_whole(&reading, &info, recorder_finished, totals);
	tw_capture_close(reading.capture);
	return wrong;
}

const char *verify_before_recovery(const char *path, const struct witness *witness, struct totals *totals)
{
	const char *wrong = begin_reading(path, witness);

	/* The header of its segment may be missing. */
	if (wrong)
		return NULL;
	wrong = read_events(&reading);
	totals->damaged_before_recovery += tw_capture_damage(reading.capture, 0) != NULL;
	tw_capture_close(reading.capture);
	return wrong;
}
