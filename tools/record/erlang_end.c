/* SPDX-License-Identifier: Apache-2.0 */
/* erlang_end.c - how a trace of an Erlang node has ended, as `record --erlang` says it. */
#include "tools/common/redact.h"
#include "tools/record/erlang_end.h"
#include "tools/record/account.h"
#include "tools/tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_key(const char *word, const char *key, const char **value)
{
	size_t bytes = strlen(key);
	*value = word + bytes + 1;
	return strncmp(word, key, bytes) == 0 && word[bytes] == '=';
}

/* The end of a trace, as the node tells it. */
struct end {
	struct tw_recorder_stats stats;
	char state[32];
	bool is_complete;
	uint64_t other_tracer, set_again, passed_over;
};

static void read_end(char *text, struct end *end)
{
	static const char *const causes[TW_LOST_CAUSES] = {"lost_full", "lost_too_big", "lost_nested", "lost_no_ring"};
	struct tw_recorder_stats *stats = &end->stats;
	const char *value;
	stats->images = 1;
	for (char *word; (word = strsep(&text, " \n"));) {
		for (int i = 0; i < TW_LOST_CAUSES; i++)
			if (is_key(word, causes[i], &value))
				stats->lost[i] = strtoull(value, NULL, 10);
		if (is_key(word, "state", &value))
			snprintf(end->state, sizeof end->state, "%s", value);
		else if (is_key(word, "events", &value))
			stats->events = strtoull(value, NULL, 10);
		else if (is_key(word, "bytes", &value))
			stats->file_bytes = strtoull(value, NULL, 10);
		else if (is_key(word, "rings", &value))
			stats->streams = (uint32_t)strtoul(value, NULL, 10);
		else if (is_key(word, "unstored", &value))
			stats->unstored = strtoull(value, NULL, 10);
		else if (is_key(word, "write_errors", &value))
			stats->write_errors = strtoull(value, NULL, 10);
		else if (is_key(word, "redacted", &value))
			stats->redacted = strtoull(value, NULL, 10);
		else if (is_key(word, "definitions_refused", &value))
			stats->definitions_refused = strtoull(value, NULL, 10);
		else if (is_key(word, "seconds", &value))
			stats->events_ns = (uint64_t)(strtod(value, NULL) * 1e9);
		else if (is_key(word, "other_tracer", &value))
			end->other_tracer = strtoull(value, NULL, 10);
		else if (is_key(word, "set_again", &value))
			end->set_again = strtoull(value, NULL, 10);
		else if (is_key(word, "passed_over", &value))
			end->passed_over = strtoull(value, NULL, 10);
		else if (is_key(word, "complete", &value))
			end->is_complete = *value == '1';
	}
}

/* Events that the capture should have, and that no ring ever saw.  @path NULL: of a flight recorder. */
static void tell_gaps(const struct end *end, const char *path)
{
	if (end->other_tracer)
		tw_say("%llu process%s another tracer at the end: events of %s are not in %s.",
		       (unsigned long long)end->other_tracer,
		       end->other_tracer == 1 ? " or port has" : "es and ports have",
		       end->other_tracer == 1 ? "it" : "these", path ? path : "its snapshots");
	if (end->set_again && !path)
		tw_say("code was loaded again, or patterns removed, %llu time%s: calls before they were set again are missing.",
		       (unsigned long long)end->set_again, end->set_again == 1 ? "" : "s");
	else if (end->set_again)
		tw_say("code was loaded again, or patterns removed, %llu time%s: calls before they were set again are missing; "
		       "`tracewheel info %s` names the modules.",
		       (unsigned long long)end->set_again, end->set_again == 1 ? "" : "s", path);
	if (strcmp(end->state, "tracer") == 0)
		tw_say("the trace has ended before its time: its processes have no tracer any more, because another removed it or "
		       "tracewheel_tracer was unloaded.");
}

static void tell_limit(const char *state)
{
	if (strcmp(state, "events") == 0 || strcmp(state, "rate") == 0 || strcmp(state, "time") == 0)
		tw_say("the trace has ended at its limit of --%s.", state);
}

int tw_erlang_sum_up_flight(char *counts, uint32_t snapshots, bool is_quiet)
{
	char made[TW_FIGURE_BYTES], passed[TW_FIGURE_BYTES];
	struct end end = {0};
	read_end(counts, &end);
	if (strcmp(end.state, "recorder") == 0)
		tw_say("the recorder was ended before the trace: what was in memory is lost.");
	if (!is_quiet) {
		tw_say("the flight recorder has ended: %s.", tw_figure_of(made, snapshots, "snapshot", "snapshots"));
		tell_limit(end.state);
	}
	if (end.passed_over && !is_quiet)
		tw_say("%s without a snapshot of their own (--snapshots, --every).",
		       tw_figure_of(passed, end.passed_over, "further end by an error", "further ends by errors"));
	tell_gaps(&end, NULL);
	return strcmp(end.state, "tracer") == 0 || strcmp(end.state, "recorder") == 0 ? TW_EXIT_FAILURE : TW_EXIT_OK;
}

int tw_erlang_sum_up(char *counts, const char *path, const struct tw_recorder_options *recorder, bool is_quiet)
{
	struct end end = {0};
	const char *state = end.state;
	read_end(counts, &end);
	if (strcmp(state, "recorder") == 0 || !end.is_complete) {
		tw_say("the recorder has ended before the trace, or could not complete '%s': `tracewheel recover` completes it.",
		       path);
		return TW_EXIT_FAILURE;
	}
	tw_account_troubles(&end.stats, path, 0);
	if (!is_quiet) {
		tw_account_events(&end.stats, path, 0);
		tell_limit(state);
		if (recorder->config)
			tw_redact_say(end.stats.redacted, path);
	}
	tw_account_losses(&end.stats, path, recorder);
	tell_gaps(&end, path);
	return end.stats.write_errors || strcmp(state, "tracer") == 0 ? TW_EXIT_FAILURE : TW_EXIT_OK;
}
