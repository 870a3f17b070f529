/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c - `tracewheel record`: runs a program with the agent preloaded, and drains its rings from outside.
 *
 *	1 does the program exist, can it be traced?        2 make the capture and the ring set
 *	3 start it                                         4 drain until it ends, or a signal asks to stop
 *	5 drain the rest, close the capture                6 the account, and the program's exit code
 *
 * The traced program gets no thread and no open file of ours. Signals from the keyboard reach it as well (same
 * process group); signals that kill(1) sends to this process are passed on.
 */
#include "tools/record/account.h"
#include "tools/record/erlang.h"
#include "tools/record/late_code.h"
#include "tools/record/launch.h"
#include "tools/record/leave.h"
#include "tools/record/options.h"
#include "tools/record/progress.h"
#include "tools/record/request.h"
#include "tools/record/sched.h"
#include "tools/tool.h"
#include "tools/record/watch.h"
#include "tools/record/group_signals.h"
#include "views/names/names.h"

#include "tracewheel/consumer.h"
#include "tracewheel/error.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void say_stop(const struct tw_request *request)
{
	char text[TW_STOP_BYTES];
	if (request->limits.why && !request->is_quiet)
		tw_say("the recording ended %s.", tw_name_stop(request->limits.why, request->limits.reached, text));
}

/* Makes the capture and the ring set. Returns 0 or an exit code. */
static int create(struct tw_request *request, struct tw_launch *launch, char agent[PATH_MAX],
		  struct tw_recorder **recorder)
{
	if (!tw_launch_agent(agent, launch->reason)) {
		tw_say("%s", launch->reason);
		return TW_EXIT_NOT_STARTED;
	}
	if (!request->is_quiet)
		tw_account_dead_sets();
	tw_request_set_memory(request);
	tw_launch_ignore_signals();
	/* Before anything else: an interrupt from here on leaves a whole capture, or none. */
	tw_watch_signals();
	bool makes_old =
		request->recorder.keep_old && !request->recorder.force && access(request->recorder.path, F_OK) == 0;
	int error = tw_recorder_create(&request->recorder, recorder);
	if (error) {
		tw_account_not_created(error, request->recorder.path,
				       request->recorder.force || request->recorder.keep_old, &request->recorder);
		return TW_EXIT_NOT_STARTED;
	}
	if (makes_old && !request->is_quiet)
		tw_say("the previous capture %s is now %s.old.", request->recorder.path, request->recorder.path);
	tw_sched_say_refused(*recorder);
	tw_check_write_plans(request->check, tw_recorder_ring_set_path(*recorder));
	tw_watch_recorder(*recorder);
	return 0;
}

/* Drains until the program has ended, with this status, or a signal or a limit ends the recording first. */
static bool watch(struct tw_request *request, struct tw_recorder *recorder, struct tw_late_code *late, pid_t child,
		  int *status)
{
	const struct tw_watch watch = {.recorder = recorder,
				       .late = late,
				       .limits = &request->limits,
				       .flight = &request->flight,
				       .metrics = &request->metrics,
				       .child = child,
				       .is_stream = request->recorder.is_stream,
				       .waits_for_all = request->recorder.follow_fork && !request->is_until_first,
				       .is_quiet = request->is_quiet,
				       .shows_progress = request->shows_progress ||
							 (!request->is_quiet && tw_progress_has_terminal(true))};
	bool has_ended = tw_watch(&watch, status);
	if (!has_ended)
		tw_recorder_child_ended(recorder, -1);
	if (request->limits.why)
		tw_recorder_stopped(recorder, request->limits.why, request->limits.reached);
	return has_ended;
}

/* Runs a whole recording; returns the exit code. */
static int record(struct tw_request *request, struct tw_launch *launch, char **argv)
{
	struct tw_recorder *recorder;
	char agent[PATH_MAX];
	int code = create(request, launch, agent, &recorder), status = 0;
	if (code)
		return code;
	launch->is_output_ours = request->recorder.is_stream;
	launch->output = request->program_output;
	pid_t child;
	code = tw_launch_start(launch, argv, agent, tw_recorder_ring_set_path(recorder), &child);
	if (code) {
		tw_watch_recorder(NULL);
		tw_recorder_abort(recorder);
		tw_say("%s", launch->reason);
		return code;
	}
	struct tw_late_code *late = tw_request_late_code(request, recorder);
	tw_flight_begin(&request->flight, recorder, child, request->is_quiet);
	tw_recorder_child(recorder, child);
	bool has_ended = watch(request, recorder, late, child, &status);
	tw_recorder_close(recorder);
	tw_late_code_end(late, request->is_quiet);
	tw_flight_end(&request->flight, has_ended, status);
	struct tw_recorder_stats stats = {0};
	tw_watch_recorder(NULL);
	int error = tw_recorder_finish(recorder, &stats);
	tw_metrics_finish(&request->metrics, &stats);
	/* The reader of a stream may close it at any time. */
	bool is_left = request->recorder.is_stream && error == TW_EPIPE;
	error = is_left ? 0 : error;
	say_stop(request);
	tw_request_account(request, &stats, error, is_left, has_ended ? 0 : child);
	if (!has_ended && request->limits.why)
		has_ended = tw_watch_child(child, &status);
	tw_leave_memory(stats.memory_left);
	if (!has_ended)
		return 128 + tw_watch_signal();
	int ending = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return ending == 0 && error ? TW_EXIT_FAILURE : ending;
}

static int record_counting_signals(struct tw_request *request, struct tw_launch *launch, char **argv)
{
	size_t last = 0;
	while (argv[last + 1])
		last++;
	tw_group_signals_begin(argv[last]);
	int code = record(request, launch, argv);
	tw_group_signals_end();
	return code;
}

int tw_tool_record(int argc, char **argv)
{
	struct tw_options options = {.command = &tw_record_command, .argc = argc, .argv = argv};
	struct tw_request request = {.command = &tw_record_command,
				     .recorder.policy = TW_RECORDER_BLOCK,
				     .flight = {.most = 5, .every_ns = UINT64_C(10000000000)}};
	int code = TW_EXIT_USAGE;
	if (argc > 1 && strcmp(argv[1], "--erlang") == 0)
		return tw_record_erlang(argc, argv);
	if (!tw_options_read(&options, tw_request_take, &request, &code))
		goto free_request;
	code = tw_request_check(&request);
	if (code)
		goto free_request;
	if (options.index >= argc) {
		code = tw_usage(&tw_record_command, "which program? Its command line comes last.");
		goto free_request;
	}
	static struct tw_launch launch;
	code = tw_launch_find(&launch, argv[options.index]);
	if (code)
		tw_say("%s", launch.reason);
	else
		code = tw_request_prepare(&request, &launch, argv[options.index]);
	if (!code)
		code = record_counting_signals(&request, &launch, argv + options.index);
free_request:
	tw_request_free(&request);
	return code;
}
