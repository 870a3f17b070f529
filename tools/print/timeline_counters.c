/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline_counters.c - numbers over time in timelines: the length of each mailbox, and live memory.
 *
 * Both need all events: there are none of a selection. Live memory is shown where it is known, that is with calls that free and without
 * losses; at no more than LEVELS_MAX times, between which it changed by less than a part of its peak.
 */
#include "tools/print/timeline.h"
#include "base/grow.h"
#include "views/folds/pass.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>

#define LEVELS_MAX 8192
/* At first, changes of less than 1/256 of the peak so far are left out. */
#define FIRST_PART 256

static void on_length(void *context, struct tw_mailbox_process *process, uint64_t now_ns)
{
	struct tw_timeline_counters *counters = context;
	char name[TW_THREAD_TEXT_BYTES], text[TW_THREAD_TEXT_BYTES + 20];
	/* A process that has not taken a message yet may never report its mailbox. */
	if (!counters->timeline->has_begun || !(process->taken || process->has_waited))
		return;
	size_t bytes = tw_mailboxes_name(&counters->mailboxes, process->number, name);
	snprintf(text, sizeof text, "mailbox of %.*s", (int)bytes, name);
	counters->timeline->format->counter(counters->timeline,
					    &(struct tw_timeline_counter){.number = TW_TIMELINE_COUNTERS +
										    process->number,
									  .name = text,
									  .image = process->image,
									  .ns = now_ns,
									  .value = process->count});
}

/* Leaves out every other level, and from now on changes that are twice as large. */
static void thin_out(struct tw_timeline_counters *counters)
{
	size_t kept = 0;
	for (size_t i = 0; i < counters->level_count; i += 2)
		counters->levels[kept++] = counters->levels[i];
	counters->level_count = kept;
	counters->part = counters->part > 2 ? counters->part / 2 : 1;
}

static void on_live(void *context, uint64_t now_ns)
{
	struct tw_timeline_counters *counters = context;
	const struct tw_memory *memory = &counters->memory;
	struct tw_timeline_level *last = counters->level_count ? &counters->levels[counters->level_count - 1] : NULL;
	if (!counters->timeline->has_begun)
		return;
	uint64_t change = !last				     ? UINT64_MAX
			  : memory->live_bytes > last->bytes ? memory->live_bytes - last->bytes
							     : last->bytes - memory->live_bytes;
	if (last && change < memory->peak_bytes / counters->part + 1)
		return;
	if (counters->level_count == LEVELS_MAX)
		thin_out(counters);
	if (!tw_grow(counters->levels, counters->level_count, counters->level_capacity)) {
		counters->timeline->has_no_memory = true;
		return;
	}
	counters->levels[counters->level_count++] = (struct tw_timeline_level){now_ns, memory->live_bytes};
}

int tw_timeline_begin_counters(struct tw_timeline *timeline, const struct tw_capture_filter *filter,
			       struct tw_fold *folds, size_t *count)
{
	struct tw_timeline_counters *counters = &timeline->counters;
	struct tw_capture *capture = (struct tw_capture *)timeline->printer->capture;
	counters->timeline = timeline;
	counters->part = FIRST_PART;
	if (!timeline->format->counter || filter->wants_place || filter->wants_stream || timeline->printer->when ||
	    timeline->limit != UINT64_MAX)
		return 0;
	int error = tw_mailboxes_init(&counters->mailboxes, capture, 0);
	counters->mailboxes.calls = (struct tw_mailbox_calls){.length = on_length, .context = counters};
	/* A part of a capture does not know what the mailboxes held at its beginning. */
	counters->has_mailboxes = counters->mailboxes.has_takes && !filter->from_ns;
	if (!error)
		error = tw_memory_begin(&counters->memory, capture, filter, NULL, &folds[*count]);
	counters->memory.on_live = on_live;
	counters->memory.context = counters;
	counters->has_memory = !error && counters->memory.places.has_any;
	*count += counters->has_memory;
	return error;
}

bool tw_timeline_count(struct tw_timeline *timeline, const struct tw_capture_event *event)
{
	struct tw_timeline_counters *counters = &timeline->counters;
	return !counters->has_mailboxes || tw_mailboxes_event(&counters->mailboxes, event);
}

static void put_level(struct tw_timeline *timeline, uint64_t ns, uint64_t bytes)
{
	timeline->format->counter(timeline, &(struct tw_timeline_counter){.number = TW_TIMELINE_MEMORY,
									  .name = "live memory",
									  .image = TW_TIMELINE_WHOLE,
									  .ns = ns,
									  .value = bytes,
									  .is_bytes = true});
}

void tw_timeline_end_counters(struct tw_timeline *timeline)
{
	struct tw_timeline_counters *counters = &timeline->counters;
	struct tw_memory *memory = &counters->memory;
	bool is_known =
		counters->has_memory && memory->calls && !memory->wordless && !memory->lost && !memory->overwritten;
	for (unsigned i = 0; is_known && i < memory->functions->count; i++)
		is_known = !tw_memory_lacks(memory, i);
	if (!is_known)
		return;
	for (size_t i = 0; i < counters->level_count; i++)
		put_level(timeline, counters->levels[i].ns, counters->levels[i].bytes);
	/* The two that people look for. */
	put_level(timeline, memory->peak_ns, memory->peak_bytes);
	put_level(timeline, memory->to_ns, memory->live_bytes);
}

void tw_timeline_free_counters(struct tw_timeline *timeline)
{
	tw_mailboxes_free(&timeline->counters.mailboxes);
	tw_memory_free(&timeline->counters.memory);
	free(timeline->counters.levels);
}
