/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach.c - `tracewheel attach`: records a program that runs, by the agent that sleeps in it.
 *
 *	1 is there an agent, and may we wake it?	2 look up in the program's files what is asked for
 *	3 make the capture and the ring set		4 wake the agent, and answer its questions until it is attached
 *	5 drain until a limit, a signal, or the end of the program
 *	6 wake the agent: it ends the recording inside; then take back what was written, and close the capture
 *
 * From 4 on the agent watches this command: if it gives no sign of life, the agent does its part of 6 by itself.
 */
#include "tools/attach/dormant.h"
#include "tools/attach/dry_run.h"
#include "tools/attach/fit.h"
#include "tools/attach/inject.h"
#include "tools/attach/list.h"
#include "tools/attach/options.h"
#include "tools/attach/system_log.h"
#include "tools/common/proc.h"
#include "tools/record/account.h"
#include "tools/record/late_code.h"
#include "tools/record/leave.h"
#include "tools/record/progress.h"
#include "tools/record/request.h"
#include "tools/record/sched.h"
#include "tools/record/watch.h"
#include "views/names/names.h"

#include "tracewheel/error.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define POLL_NS UINT64_C(100000000)
/* While the agent works it is looked at often in the beginning: it is mostly done after some milliseconds. */
#define WAKE_NS_MIN UINT64_C(200000)
#define WAKE_NS	    UINT64_C(2000000)
#define WAKE_PART   8
/* How long the agent may take to begin, with plans of large libraries to make, and to end. */
#define BEGIN_NS UINT64_C(30000000000)
#define END_NS	 UINT64_C(5000000000)

struct attach {
	struct tw_request request;
	const char *name;
	bool may_stop;
	bool is_dry_run;
	bool has_limit; /* of events was asked for */
	struct tw_dormant dormant;
	struct tw_recorder *recorder;
	struct tw_late_code *late;
	char why[TW_DOORBELL_WHY_BYTES]; /* why it ended, as a clause */
	bool is_gone;			 /* the process, or its program */
};

/* ---- 1, 2 ---- */

static bool take_option(void *arg, int key, const char *value)
{
	struct attach *attach = arg;
	switch (key) {
	case KEY_NAME: attach->name = value; return true;
	case KEY_MAY_STOP: attach->may_stop = true; return true;
	case KEY_DRY_RUN: attach->is_dry_run = true; return true;
	case KEY_EVENTS:
	case KEY_RATE: attach->has_limit = true; break;
	case KEY_SNAPSHOT_ON:
		if (strcmp(value, "crash") != 0)
			break;
		tw_usage(
			attach->request.command,
			"--snapshot-on crash is for `record`: the system tells only the parent of a program how it has ended. "
			"--snapshot-on exit writes what it did last.");
		return false;
	default: break;
	}
	return tw_request_take(&attach->request, key, value);
}

static bool may_block(const struct attach *attach)
{
	if (attach->request.recorder.policy != TW_RECORDER_BLOCK || attach->may_stop)
		return true;
	tw_usage(attach->request.command,
		 "--on-full block makes a program wait that others may wait for: it needs --may-stop-program as well.");
	return false;
}

static bool is_same_file(const char *a, const char *b)
{
	struct stat one, other;
	return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/* Has the process the same numbers, programs and shared memory before it as this command? @program: its file. */
static bool shares_files(const struct attach *attach, const char *program)
{
	char pids[64], exe[64], memory[64], way[TW_FIT_WAY_BYTES], inner[64];
	int process = attach->dormant.process;
	snprintf(pids, sizeof pids, "/proc/%d/ns/pid", process);
	snprintf(exe, sizeof exe, "/proc/%d/exe", process);
	snprintf(memory, sizeof memory, "/proc/%d/root/dev/shm", process);
	if (is_same_file(pids, "/proc/self/ns/pid") && is_same_file(exe, program) &&
	    (is_same_file(memory, "/dev/shm") || access("/dev/shm", F_OK) != 0))
		return true;
	snprintf(inner, sizeof inner, " tracewheel attach %d", tw_fit_way(process, way));
	tw_say("process %d lives in a container or behind a chroot, with other files or process numbers before it: run this command inside of "
	       "it%s%s%s (docs/attach.md#containers).",
	       process, way[0] ? ": " : "", way, way[0] ? inner : "");
	return false;
}

static void say_filtered(int process)
{
	tw_say("process %d has set a seccomp filter, which may kill it for a system call of the tracer: it is left alone. In a unit of "
	       "systemd several lines set one (docs/attach.md).",
	       process);
}

/* Returns 0 or an exit code. */
static int check_process(struct tw_dormant *dormant)
{
	int process = dormant->process, owner = dormant->seen.owner;
	if (!tw_dormant_is_of_user(dormant)) {
		tw_say("%s", dormant->reason);
		return TW_EXIT_NOT_STARTED;
	}
	/* Not even a question is asked there: the answer might be a system call for which the program is killed. */
	if (tw_proc_has_filter(process) || tw_proc_has_filter(dormant->thread)) {
		say_filtered(process);
		return TW_EXIT_NOT_STARTED;
	}
	/* A command that is gone is not waited for. */
	if (dormant->seen.state == TW_DOORBELL_ATTACHED && tw_proc_state(owner) && tw_proc_state(owner) != 'Z') {
		tw_say("process %d is being recorded already, by process %d; `tracewheel detach %d` ends that.",
		       process, owner, process);
		return TW_EXIT_NOT_STARTED;
	}
	return 0;
}

/* The process, found by number or name. Returns 0 or an exit code. */
static int find_process(struct attach *attach, int argc, char **argv, int index)
{
	struct tw_dormant *dormant = &attach->dormant;
	int pid = 0;
	if (attach->name && index == argc) {
		pid = tw_list_find(attach->name);
		if (!pid)
			return TW_EXIT_NOT_FOUND;
	} else if (!attach->name && index + 1 == argc) {
		pid = tw_proc_number(argv[index]);
	}
	if (!pid)
		return tw_usage(attach->request.command, "which process? Give its number, or --name NAME.");
	int code = tw_dormant_find(dormant, pid);
	return code && !dormant->is_without_agent ? code : check_process(dormant);
}

/* A program that was started without the agent gets it now, and for ever.  Returns 0 or an exit code. */
static int bring_agent(struct tw_dormant *dormant)
{
	char agent[PATH_MAX], reason[TW_LAUNCH_REASON_BYTES];
	int process = dormant->process, code = 0;
	if (!dormant->is_without_agent)
		return 0;
	if (tw_proc_state(process) == 'T') {
		tw_say("process %d is stopped: continue it first (kill -CONT %d).", process, process);
		return TW_EXIT_NOT_STARTED;
	}
	if (!tw_launch_agent(agent, reason)) {
		tw_say("%s", reason);
		return TW_EXIT_NOT_STARTED;
	}
	code = tw_inject(dormant, agent);
	if (code)
		tw_say("%s", dormant->reason);
	return code ? code : tw_dormant_find(dormant, process);
}

static int find_program(const struct attach *attach, struct tw_launch *launch)
{
	char program[PATH_MAX];
	int error = tw_proc_program(attach->dormant.process, program);
	size_t bytes = strlen(program), mark = strlen(" (deleted)");
	if (error) {
		tw_say("the program of process %d cannot be found: %s.", attach->dormant.process, strerror(-error));
		return TW_EXIT_NOT_FOUND;
	}
	if (bytes > mark && strcmp(program + bytes - mark, " (deleted)") == 0) {
		tw_say("the file of process %d, %.*s, was removed or replaced since it was started, so its functions are not "
		       "known: restart the program.",
		       attach->dormant.process, (int)(bytes - mark), program);
		return TW_EXIT_NOT_FOUND;
	}
	if (!shares_files(attach, program))
		return TW_EXIT_NOT_STARTED;
	/* Its functions and the capture have the name that the user knows the program by. */
	char started[PATH_MAX];
	if (tw_proc_started_as(attach->dormant.process, started) && strchr(started, '/') &&
	    is_same_file(started, program))
		strcpy(program, started);
	int code = tw_launch_find(launch, program);
	launch->process_id = attach->dormant.process;
	if (code)
		tw_say("%s", launch->reason);
	return code;
}

/* Functions that make too many events are counted, unless each of their calls is wanted. */
static void choose_demotion(struct tw_request *request)
{
	request->limits.demotes = request->limits.rate && !request->longer_ns && !request->conditions.are_of_end &&
				  !request->needs_each_call;
}

/* How long the program goes on recording without a sign of life of this command, which tests set; may it be asked to count functions? */
static bool add_lines(struct tw_request *request)
{
	const char *lease = getenv("TRACEWHEEL_LEASE_MS");
	return (!lease || !*lease || tw_config_add(&request->config, "lease", lease)) &&
	       (!request->limits.demotes || tw_config_add(&request->config, "demotes", "1"));
}

/* ---- 4 ---- */

static void poll(const struct attach *attach, uint64_t ns)
{
	tw_recorder_poll(attach->recorder, ns);
	tw_late_code_poll(attach->late);
}

/* Has it answered this request, or a later one of another command? */
static bool is_answered(const struct attach *attach, uint32_t number)
{
	return (int32_t)(attach->dormant.seen.answered - number) >= 0;
}

/* Until the agent has answered. False: it has not, in time, or the process is stopped: then its agent answers when it goes on. */
static bool await_answer(struct attach *attach, uint32_t number, uint64_t limit_ns)
{
	uint64_t begun_ns = tw_now_ns(), passed_ns = 0;
	bool is_there = true;
	while ((is_there = tw_dormant_read(&attach->dormant)) && !is_answered(attach, number) &&
	       tw_proc_state(attach->dormant.process) != 'T' && (passed_ns = tw_now_ns() - begun_ns) < limit_ns) {
		uint64_t rest_ns = passed_ns / WAKE_PART;
		poll(attach, rest_ns < WAKE_NS_MIN ? WAKE_NS_MIN : rest_ns > WAKE_NS ? WAKE_NS : rest_ns);
	}
	return is_there && is_answered(attach, number);
}

static void say_not_attached(const struct attach *attach, bool has_answered)
{
	const struct tw_doorbell *seen = &attach->dormant.seen;
	int process = attach->dormant.process;
	if (!has_answered)
		tw_say("process %d did not answer: it has ended, is stopped, or its agent waits for a lock of the program.",
		       process);
	else if (seen->outcome == TW_DOORBELL_BUSY)
		tw_say("process %d is being recorded already, or was until a moment ago; try again.", process);
	else if (seen->outcome == TW_DOORBELL_FILTERED)
		say_filtered(process);
	else if (seen->outcome == TW_DOORBELL_REFUSED)
		tw_say("no functions of Python can be recorded in process %d, and it is left alone: %.*s.", process,
		       (int)sizeof seen->why, seen->why);
	else if (seen->error == TW_EPERM)
		tw_say("process %d may not open the rings in %s: name another folder in TRACEWHEEL_SHM that its user can reach, as /dev/shm.",
		       process, tw_recorder_ring_set_path(attach->recorder));
	else
		tw_say("process %d cannot use the memory for events: %s", process, tw_strerror(seen->error));
}

enum begun { NOT_WOKEN, NOT_ANSWERED, ATTACHED };

static enum begun begin(struct attach *attach)
{
	uint32_t number = tw_dormant_ring(&attach->dormant, TW_DOORBELL_ATTACH,
					  tw_recorder_ring_set_path(attach->recorder), NULL);
	if (!number) {
		tw_say("%s", attach->dormant.reason);
		return NOT_WOKEN;
	}
	bool has_answered = await_answer(attach, number, BEGIN_NS);
	/* If another command has asked for something since, it is found out what became of this one. */
	if (has_answered &&
	    (attach->dormant.seen.answered != number || attach->dormant.seen.outcome == TW_DOORBELL_DONE))
		return ATTACHED;
	say_not_attached(attach, has_answered);
	return has_answered ? NOT_WOKEN : NOT_ANSWERED;
}

static void say_attached(const struct attach *attach)
{
	char name[64], limits[192];
	if (attach->request.is_quiet)
		return;
	tw_proc_read(attach->dormant.process, "comm", name, sizeof name);
	tw_limits_text(&attach->request.limits, limits, sizeof limits);
	tw_say("attached to process %d (%s). Ctrl-C detaches, or `tracewheel detach %d`%s%s.", attach->dormant.process,
	       name, attach->dormant.process, *limits ? ", or a limit: " : "; there is no limit", limits);
}

/* ---- 5, 6 ---- */

static void watch_with(struct attach *attach, struct tw_progress *progress)
{
	struct tw_recorder_stats stats = {0};
	tw_limits_begin(&attach->request.limits);
	for (;;) {
		poll(attach, POLL_NS);
		tw_progress_poll(progress);
		tw_flight_poll(&attach->request.flight);
		tw_recorder_stats(attach->recorder, &stats);
		if (tw_watch_is_asked_to_stop()) {
			attach->request.limits.why = TW_STOP_ASKED;
			return;
		}
		if (!tw_dormant_read(&attach->dormant)) {
			attach->is_gone = true;
			return;
		}
		if (attach->request.recorder.is_stream && stats.last_error) {
			snprintf(attach->why, sizeof attach->why, "because the reader of the stream had gone");
			return;
		}
		const struct tw_doorbell *seen = &attach->dormant.seen;
		if (seen->state != TW_DOORBELL_ATTACHED ||
		    strcmp(seen->own, tw_recorder_ring_set_path(attach->recorder)) != 0) {
			snprintf(attach->why, sizeof attach->why, "%s",
				 seen->end == TW_DOORBELL_LEASE
					 ? "by itself, because this command had given no sign of life"
					 : "because another command asked it to");
			return;
		}
		if (tw_limits_are_reached(&attach->request.limits, attach->recorder, &stats))
			return;
	}
}

static void watch(struct attach *attach)
{
	const struct tw_request *request = &attach->request;
	struct tw_progress progress = {.recorder = attach->recorder,
				       .is_shown = request->shows_progress ||
						   (!request->is_quiet && tw_progress_has_terminal(false))};
	watch_with(attach, &progress);
	tw_progress_clear(&progress);
}

/* The agent ends the recording inside, if it can: else it does so when it finds the ring set closed. */
static void end_inside(struct attach *attach)
{
	const char *own = tw_recorder_ring_set_path(attach->recorder);
	if (attach->is_gone || !tw_dormant_read(&attach->dormant) || strcmp(attach->dormant.seen.own, own) != 0)
		return;
	uint32_t number = tw_dormant_ring(&attach->dormant, TW_DOORBELL_DETACH, own, NULL);
	uint64_t deadline_ns = tw_now_ns() + END_NS;
	if (!number || !await_answer(attach, number, END_NS))
		return;
	while (tw_dormant_read(&attach->dormant) && attach->dormant.seen.state == TW_DOORBELL_LEAVING &&
	       tw_now_ns() < deadline_ns)
		poll(attach, WAKE_NS);
}

/* It need not notice by itself. */
static void let_forget(struct attach *attach, const char *own)
{
	if (attach->is_gone || !tw_dormant_read(&attach->dormant) || strcmp(attach->dormant.seen.own, own) != 0)
		return;
	tw_dormant_ring(&attach->dormant, TW_DOORBELL_FORGET, own, NULL);
	for (int i = 0; i < 1000 && tw_dormant_read(&attach->dormant) && strcmp(attach->dormant.seen.own, own) == 0;
	     i++)
		nanosleep(&(struct timespec){0, 1000000}, NULL);
}

static void say_end(const struct attach *attach, bool lives)
{
	if (attach->request.is_quiet)
		return;
	if (!attach->is_gone)
		tw_say("the recording ended %s.", attach->why);
	else if (lives)
		tw_say("process %d has executed another program, which is not recorded.", attach->dormant.process);
	else
		tw_say("process %d has ended.", attach->dormant.process);
}

static int finish(struct attach *attach)
{
	struct tw_recorder_stats stats = {0};
	const struct tw_limits *limits = &attach->request.limits;
	if (limits->why) {
		tw_name_stop(limits->why, limits->reached, attach->why);
		tw_recorder_stopped(attach->recorder, limits->why, limits->reached);
	} else if (!attach->why[0]) {
		snprintf(attach->why, sizeof attach->why, "before it had begun");
	}
	end_inside(attach);
	tw_recorder_close(attach->recorder);
	tw_late_code_end(attach->late, attach->request.is_quiet);
	tw_flight_end(&attach->request.flight, attach->is_gone, TW_FLIGHT_STATUS_UNKNOWN);
	tw_watch_recorder(NULL);
	char own[TW_DOORBELL_PATH_BYTES];
	snprintf(own, sizeof own, "%s", tw_recorder_ring_set_path(attach->recorder));
	int error = tw_recorder_finish(attach->recorder, &stats);
	let_forget(attach, own);
	bool is_left = attach->request.recorder.is_stream && error == TW_EPIPE;
	error = is_left ? 0 : error;
	bool lives = kill(attach->dormant.process, 0) == 0 || errno == EPERM;
	if (!attach->is_gone)
		tw_system_log("detached from", attach->dormant.process, attach->why);
	say_end(attach, lives);
	tw_request_account(&attach->request, &stats, error, is_left,
			   lives && !attach->is_gone ? attach->dormant.process : 0);
	tw_leave_memory(stats.memory_left);
	return error ? TW_EXIT_FAILURE : TW_EXIT_OK;
}

/* ---- the command ---- */

/* Each thread takes an open file for each processor. */
static void follow_threads(const struct attach *attach, bool is_wanted)
{
	struct rlimit files;
	if (!is_wanted)
		return;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	if (tw_recorder_follow_threads(attach->recorder, attach->dormant.process))
		tw_sched_say_refused(attach->recorder);
}

static int record(struct attach *attach)
{
	struct tw_request *request = &attach->request;
	tw_request_set_memory(request);
	bool has_states = request->recorder.has_thread_states;
	request->recorder.ends_inside = request->recorder.holds_soon = true;
	request->recorder.has_thread_states = false;
	tw_launch_ignore_signals();
	tw_watch_signals();
	int error = tw_recorder_create(&request->recorder, &attach->recorder);
	if (error) {
		tw_account_not_created(error, request->path, request->recorder.force || request->recorder.keep_old,
				       &request->recorder);
		return TW_EXIT_NOT_STARTED;
	}
	follow_threads(attach, has_states);
	tw_check_write_plans(request->check, tw_recorder_ring_set_path(attach->recorder));
	tw_watch_recorder(attach->recorder);
	attach->late = tw_request_late_code(request, attach->recorder);
	enum begun begun = begin(attach);
	if (begun == NOT_WOKEN) {
		tw_watch_recorder(NULL);
		tw_late_code_end(attach->late, true);
		tw_recorder_abort(attach->recorder);
		return TW_EXIT_NOT_STARTED;
	}
	if (begun == ATTACHED) {
		tw_system_log("attached to", attach->dormant.process, NULL);
		say_attached(attach);
		tw_flight_begin(&request->flight, attach->recorder, attach->dormant.process, request->is_quiet);
		watch(attach);
	}
	/* An agent that answers too late finds the set closed; what it may have written meanwhile is taken back. */
	int code = finish(attach);
	return begun == ATTACHED ? code : TW_EXIT_NOT_STARTED;
}

int tw_tool_attach(int argc, char **argv)
{
	static struct attach attach;
	static struct tw_launch launch;
	const struct tw_command *command = tw_attach_command();
	struct tw_options options = {.command = command, .argc = argc, .argv = argv};
	int code;
	attach.request = (struct tw_request){.command = command,
					     .recorder.policy = TW_RECORDER_DROP,
					     .flight = {.most = 5, .every_ns = UINT64_C(10000000000)}};
	attach.request.limits =
		(struct tw_limits){.time_ns = UINT64_C(60000000000), .events = 10000000, .rate = 1000000};
	if (tw_options_read(&options, take_option, &attach, &code)) {
		/* A flight recorder writes no event before something happens. */
		if (attach.request.flight.is_wanted && !attach.has_limit)
			attach.request.limits.events = attach.request.limits.rate = 0;
		code = tw_request_check(&attach.request);
		choose_demotion(&attach.request);
		if (!code && !may_block(&attach))
			code = TW_EXIT_USAGE;
		if (!code)
			code = find_process(&attach, argc, argv, options.index);
		if (!code)
			code = find_program(&attach, &launch);
		if (!code)
			code = tw_request_prepare(&attach.request, &launch, launch.path);
		if (!code && attach.is_dry_run)
			code = tw_dry_run(&attach.request, &attach.request.limits, attach.dormant.process);
		else if (!code && !add_lines(&attach.request))
			code = TW_EXIT_NOT_STARTED;
		else if (!code)
			code = bring_agent(&attach.dormant);
		if (!code && !attach.is_dry_run)
			code = record(&attach);
	}
	tw_request_free(&attach.request);
	return code;
}
