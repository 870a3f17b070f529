/* SPDX-License-Identifier: Apache-2.0 */
/* request_account.c - what is said at the end of a recording: request.h. */
#include "tools/record/request.h"
#include "tools/common/redact.h"
#include "tools/record/account.h"
#include "tools/record/sched.h"
#include "tools/tool.h"

/* Explains an empty capture, and patterns without events. */
static void say_what_is_missing(const struct tw_request *request, const struct tw_recorder_stats *stats)
{
	const char *path = request->recorder.is_stream || request->flight.is_wanted ? NULL : request->path;
	/* The events of a flight recorder's threads are in its snapshots, if any. */
	if (request->flight.is_wanted && stats->streams)
		return;
	if (!stats->images || request->tracer.path[0] ||
	    (tw_request_has_entries(request) && path && tw_account_entries(path)))
		return;
	tw_check_end(request->check, path, stats->events + stats->counted_calls,
		     tw_conditions_are_there(&request->conditions));
	if (stats->events || (request->check && request->has_patterns && path))
		return;
	if (request->flags && !request->has_patterns)
		tw_say("nothing in the program reports its processes: a run-time does so by libtracewheel, see docs/embedding.md.");
	else
		tw_say("no selected function was called where calls can be seen; `tracewheel functions` shows what can be "
		       "traced in a program.");
}

void tw_request_account(const struct tw_request *request, const struct tw_recorder_stats *stats, int error,
			bool is_left, pid_t left_pid)
{
	char figure[TW_FIGURE_BYTES];
	if (is_left && !request->is_quiet)
		tw_say("the reader of the stream has gone; the program continued untraced.");
	if (!is_left)
		tw_account_troubles(stats, request->path, error);
	if (!request->is_quiet) {
		if (request->tracer.path[0])
			tw_account_tracer(stats, request->tracer.path, request->path);
		else if (!request->flight.is_wanted)
			tw_account_events(stats, request->path, request->recorder.segments_kept);
		if (request->has_redact && !request->tracer.path[0] && !request->flight.is_wanted)
			tw_redact_say(stats->redacted, request->recorder.is_stream ? "the stream" : request->path);
		tw_account_children(stats);
		tw_sched_say_lost(stats);
		if (!left_pid && stats->images_alive && request->recorder.follow_fork)
			tw_say("%s, and %s no longer traced.",
			       tw_figure_of(figure, stats->images_alive, "of its processes still runs",
					    "of its processes still run"),
			       stats->images_alive == 1 ? "is" : "are");
		if (left_pid)
			tw_say("the program (process %d) continues, and is no longer traced.", (int)left_pid);
		say_what_is_missing(request, stats);
	}
	if (!is_left && !request->tracer.path[0])
		tw_account_losses(stats, request->recorder.is_stream ? NULL : request->path, &request->recorder);
}
