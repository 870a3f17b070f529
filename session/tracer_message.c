/* SPDX-License-Identifier: Apache-2.0 */
/* tracer_message.c - the trace message of an event for a tracer module. */
#include "base/clock.h"
#include "base/export.h"
#include "base/limits.h"
#include "base/sys.h"
#include "pipeline/format/event.h"
#include "pipeline/hit/hit.h"
#include "term/term.h"
#include "tracewheel/message.h"
#include "tracewheel/tracer.h"

static const char *const names[] = {[TW_TRACER_TAG_STATUS] = "trace_status",
				    [TW_TRACER_TAG_SEQ_TRACE] = "seq_trace",
#define TAG(NAME, number, word, group, first, second) [number] = word,
				    TW_TRACE_KINDS(TAG)
#undef TAG
};

TW_API const char *tw_tracer_tag_name(enum tw_tracer_tag tag)
{
	return (unsigned)tag < TW_COUNT_OF(names) ? names[tag] : NULL;
}

/* The message of one call of a callback. */
struct told {
	struct tw_message_form form; /* first: converted back */
	struct tw_term tracee, term;
	const struct tw_tracer_options *options;
	bool is_seq;
};

static bool put_part(struct tw_message_form *form, struct tw_message_part *part)
{
	const struct told *told = (const struct told *)form;

	if (part->what == TW_MESSAGE_TRACEE) {
		part->elements[0] = told->tracee;
	} else if (told->is_seq) {
		part->elements[0] = told->tracee;
		part->elements[1] = told->term;
	} else {
		part->elements[0] = told->term;
		part->elements[1] = told->options->extra;
		part->elements[2] = told->options->match_spec_result;
	}
	return true;
}

TW_API struct tw_term tw_tracer_message(struct tw_arena *arena, enum tw_tracer_tag tag, struct tw_term tracee,
					struct tw_term term, const struct tw_tracer_options *options)
{
	static const uint8_t stamps[] = {
		[TW_TRACER_STAMP_MONOTONIC] = TW_STAMP_MONOTONIC,
		[TW_TRACER_STAMP_STRICT_MONOTONIC] = TW_STAMP_STRICT_MONOTONIC,
		[TW_TRACER_STAMP_TIMESTAMP] = TW_STAMP_TIMESTAMP,
		[TW_TRACER_STAMP_CPU_TIMESTAMP] = TW_STAMP_TIMESTAMP,
	};
	bool is_seq = tag == TW_TRACER_TAG_SEQ_TRACE,
	     is_strict = options->timestamp == TW_TRACER_STAMP_STRICT_MONOTONIC;
	struct told told = {.form = {.part = put_part, .stamp = -1},
			    .tracee = tracee,
			    .term = term,
			    .options = options,
			    .is_seq = is_seq};
	uint64_t unique_integer = is_strict ? tw_hit_unique_integer() : 0;
	struct tw_capture_event event = {.kind = is_seq ? TW_EVENT_SEQ_SEND : (uint8_t)tag,
					 .flags = stamps[options->timestamp],
					 .payload = &unique_integer,
					 .payload_words = is_strict,
					 .has_cpu_time = options->timestamp == TW_TRACER_STAMP_CPU_TIMESTAMP};
	struct tw_message_event from = {.event = &event, .scheduler_id = options->scheduler_id};
	struct tw_term message = {0};
	struct tw_clock_snapshot now;
	int64_t cpu_ns = event.has_cpu_time ? tw_sys_process_cpu_ns() : 0;

	if (options->timestamp) {
		tw_clock_snapshot(&now);
		event.time_ns = tw_clock_monotonic_ns();
		event.cpu_ns = cpu_ns < 0 ? 0 : (uint64_t)cpu_ns;
		from.wall_ns = now.realtime_ns;
	}
	if (options->scheduler_id)
		event.flags |= TW_EVENT_FLAG_SCHEDULER_ID;
	tw_message_build_as(&from, &told.form, arena, &message);
	return message;
}
