/* SPDX-License-Identifier: Apache-2.0 */
/* tracer_message.c - the trace message of an event for a tracer module. */
#include "base/clock.h"
#include "base/export.h"
#include "base/limits.h"
#include "base/sys.h"
#include "pipeline/hit/hit.h"
#include "term/term.h"
#include "tracewheel/tracer.h"

/* trace, pid, tag, term, extra, X, scheduler, time. */
#define ELEMENTS_MAX 8

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

static struct tw_term day_time(struct tw_arena *arena, uint64_t us)
{
	struct tw_term parts[3] = {tw_term_unsigned(arena, us / 1000000000000),
				   tw_term_unsigned(arena, us / 1000000 % 1000000),
				   tw_term_unsigned(arena, us % 1000000)};

	return tw_term_tuple(arena, parts, 3);
}

static struct tw_term stamp_now(struct tw_arena *arena, enum tw_tracer_stamp stamp)
{
	struct tw_clock_snapshot now;
	struct tw_term pair[2];
	int64_t cpu_ns;

	switch (stamp) {
	case TW_TRACER_STAMP_MONOTONIC: return tw_term_unsigned(arena, tw_clock_monotonic_ns());
	case TW_TRACER_STAMP_STRICT_MONOTONIC:
		pair[0] = tw_term_unsigned(arena, tw_clock_monotonic_ns());
		pair[1] = tw_term_unsigned(arena, tw_hit_unique_integer());
		return tw_term_tuple(arena, pair, 2);
	case TW_TRACER_STAMP_CPU_TIMESTAMP:
		cpu_ns = tw_sys_process_cpu_ns();
		return day_time(arena, cpu_ns < 0 ? 0 : (uint64_t)cpu_ns / 1000);
	default: tw_clock_snapshot(&now); return day_time(arena, now.realtime_ns / 1000);
	}
}

TW_API struct tw_term tw_tracer_message(struct tw_arena *arena, enum tw_tracer_tag tag, struct tw_term tracee,
					struct tw_term term, const struct tw_tracer_options *options)
{
	const char *name = tw_tracer_tag_name(tag);
	bool is_seq = tag == TW_TRACER_TAG_SEQ_TRACE;
	struct tw_term elements[ELEMENTS_MAX];
	size_t count = 0;

	if (!is_seq)
		elements[count++] = tw_atom(options->timestamp ? TW_ATOM_TRACE_TS : TW_ATOM_TRACE);
	else
		elements[count++] = tw_atom(TW_ATOM_SEQ_TRACE);
	elements[count++] = tracee;
	if (!is_seq)
		elements[count++] = name ? tw_term_atom_z(name) : (struct tw_term){0};
	elements[count++] = term;
	if (!tw_term_is_none(options->extra))
		elements[count++] = options->extra;
	if (!tw_term_is_none(options->match_spec_result))
		elements[count++] = options->match_spec_result;
	if (options->scheduler_id)
		elements[count++] = tw_term_unsigned(arena, options->scheduler_id);
	if (options->timestamp)
		elements[count++] = stamp_now(arena, options->timestamp);
	return tw_term_tuple(arena, elements, count);
}
