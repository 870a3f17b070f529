/* SPDX-License-Identifier: Apache-2.0 */
/* trigger.c - calls of programs, and crashes, for which a snapshot is to be written: consumer.h, ringbuf/trigger.h, crash.h. */
#include "base/clock.h"
#include "base/export.h"
#include "pipeline/recorder/recorder.h"
#include "tracewheel/consumer.h"

#include <string.h>

_Static_assert(sizeof((struct tw_recorder_trigger *)0)->function == TW_RS_TRIGGER_NAME_BYTES, "the same text");

static uint64_t ns_of(uint64_t ticks)
{
	return (uint64_t)((double)ticks * 1e9 / (double)tw_clock_ticks_per_second());
}

TW_API bool tw_recorder_watch_triggers(struct tw_recorder *recorder, bool is_wanted)
{
	return tw_rs_trigger_open(&recorder->writer.rs, is_wanted);
}

TW_API bool tw_recorder_trigger(struct tw_recorder *recorder, struct tw_recorder_trigger *out)
{
	struct tw_clock_snapshot now;
	struct tw_rs_trigger_call call;
	uint64_t ago, took;

	if (!tw_rs_trigger_take(&recorder->writer.rs, &call))
		return false;
	tw_clock_snapshot(&now);
	took = call.begin_ticks && call.begin_ticks < call.ticks ? call.ticks - call.begin_ticks : 0;
	ago = call.ticks < now.ticks ? ns_of(now.ticks - call.ticks) : 0;
	*out = (struct tw_recorder_trigger){.ns = ago < now.monotonic_ns ? now.monotonic_ns - ago : 1,
					    .has_ended = call.begin_ticks != 0,
					    .call_ns = ns_of(took > call.own_ticks ? took - call.own_ticks : 0),
					    .ticks = call.ticks,
					    .call_ticks = took,
					    .process_id = call.process_id,
					    .thread_id = call.thread_id};
	memcpy(out->function, call.function, sizeof out->function);
	return true;
}

TW_API uint64_t tw_recorder_triggers_missed(const struct tw_recorder *recorder)
{
	return tw_rs_trigger_missed(&recorder->writer.rs);
}

TW_API bool tw_recorder_crash(struct tw_recorder *recorder, int32_t process_id, struct tw_recorder_crash *out)
{
	struct tw_rs_crash_report report;
	uint32_t image;

	if (!tw_rs_crash_read(&recorder->writer.rs, process_id, &image, &report))
		return false;
	*out = (struct tw_recorder_crash){report.ticks, report.thread_id, report.signal};
	return true;
}
