/* SPDX-License-Identifier: Apache-2.0 */
/* held.c - jumps over functions' entries, which the recorder writes while it has stopped all threads of this process. */
#include "agent/agent.h"

#include "base/figure.h"
#include "breakpoints/breakpoints.h"
#include "breakpoints/entry.h"
#include "breakpoints/patch.h"
#include "ringbuf/held.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(TW_ENTRY_CHANGE_BYTES_MAX <= TW_RS_HELD_BYTES_MAX, "a piece holds a change");

/* The result of the last request. */
static enum tw_rs_held_outcome outcome;
static uint32_t number;

static void fill(struct tw_rs_held_piece *piece, const struct tw_place *place)
{
	struct tw_entry_change change;

	tw_patch_change_of(place, &change);
	piece->at = change.at;
	piece->count = change.count;
	memcpy(piece->before, change.before, change.count);
	memcpy(piece->after, change.after, change.count);
}

static void write_held(struct tw_place *const *places, size_t count)
{
	size_t most = count < TW_RS_HELD_PIECES_MAX ? count : TW_RS_HELD_PIECES_MAX;
	struct tw_rs_held_table *table = calloc(1, sizeof *table + most * sizeof *table->pieces);

	outcome = table ? TW_RS_HELD_WRITTEN : TW_RS_HELD_UNANSWERED;
	for (size_t done = 0; done < count && outcome == TW_RS_HELD_WRITTEN; done += table->count) {
		table->count = count - done < most ? count - done : most;
		for (size_t i = 0; i < table->count; i++)
			fill(&table->pieces[i], places[done + i]);
		outcome = tw_rs_held_write(&tw_agent_ring_set, table, &number);
	}
	free(table);
}

void tw_agent_held_init(void)
{
	tw_entry_write_held = write_held;
}

void tw_agent_held_tell(unsigned count, const char *module, const char *lack)
{
	static const char *const reasons[TW_RS_HELD_OUTCOMES] = {
		[TW_RS_HELD_WRITTEN] = "each time that all threads were stopped, one stood in their first instructions",
		[TW_RS_HELD_DENIED] =
			"several threads were running, and the system does not let the recorder stop them (ptrace_scope, seccomp)",
		[TW_RS_HELD_TRACED] = "several threads were running, and a debugger or another tracer has them",
		[TW_RS_HELD_STUCK] = "several threads were running, and one of them could not be stopped",
		[TW_RS_HELD_UNANSWERED] = "several threads were running, and the recorder did not stop them in time",
		[TW_RS_HELD_ENDED] =
			"several threads were running, and the process that stops them for the recorder was itself stopped or killed",
	};
	char text[512], too_many[128], figure[TW_COUNT_TEXT_BYTES];
	const char *reason = reasons[outcome];

	if (outcome == TW_RS_HELD_TOO_MANY) {
		snprintf(too_many, sizeof too_many, "%u threads were running, and no more than %u are stopped", number,
			 TW_RS_HELD_THREADS_MAX);
		reason = too_many;
	}
	snprintf(text, sizeof text, "%s function%s of %.100s %s %s: %s when a jump was to be written over %s",
		 tw_count_text(figure, count), count == 1 ? "" : "s", module, count == 1 ? "is" : "are", lack, reason,
		 count == 1 ? "it" : "them");
	tw_agent_tell_unarmed(count, text);
}
