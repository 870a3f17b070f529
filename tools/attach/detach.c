/* SPDX-License-Identifier: Apache-2.0 */
/*
 * detach.c - `tracewheel detach`: ends what `attach` has begun, from another terminal.
 *
 *	the command lives	it gets SIGTERM, which a shell lets no command ignore, and completes its capture
 *	it is stopped, or dead	the agent is woken; then what was written over functions' first instructions is taken back by a recording of
 *				nothing, as a recorder does at its end
 */
#include "tools/attach/dormant.h"
#include "tools/attach/list.h"
#include "tools/attach/system_log.h"
#include "tools/common/proc.h"
#include "tools/record/launch.h"
#include "tools/tool.h"

#include "tracewheel/consumer.h"
#include "tracewheel/error.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* A command that lives has this long, with a ring set to drain; an agent has as long. */
#define TRIES  10000
#define NAP_NS 1000000

static const struct tw_option options_table[] = {{'q', "quiet", NULL, "only errors are reported"}, {0}};

static const struct tw_command command = {
	.name = "detach",
	.arguments = "[OPTION]... PID",
	.summary =
		"Ends the recording that `tracewheel attach` makes of a process, which goes on; the capture is complete. If the\n"
		"command that attached is stopped or was killed, the program is made as it was before all the same, and\n"
		"`tracewheel recover` completes the capture.",
	.options = options_table,
	.examples = "  tracewheel detach 4711\n"};

static void nap(void)
{
	nanosleep(&(struct timespec){0, NAP_NS}, NULL);
}

/* Dormant, or left: nothing is recorded any more. */
static bool is_over(const struct tw_dormant *dormant, bool is_left_enough)
{
	return dormant->seen.state == TW_DOORBELL_DORMANT ||
	       (is_left_enough && dormant->seen.state == TW_DOORBELL_LEFT);
}

static bool await(struct tw_dormant *dormant, bool is_left_enough)
{
	for (int i = 0; i < TRIES && tw_dormant_read(dormant); i++) {
		if (is_over(dormant, is_left_enough))
			return true;
		nap();
	}
	return false;
}

/*
 * Does the command that attached live, and not stand still? Its number comes from the program's memory, and may since belong to another
 * process: only one that has this ring set mapped is asked to end.
 */
static bool is_alive(int owner, const char *set)
{
	char mapped[PATH_MAX];
	char state = owner > 0 ? tw_proc_state(owner) : 0;
	return state && state != 'T' && state != 't' && state != 'Z' && tw_list_set(owner, mapped) &&
	       strcmp(mapped, set) == 0;
}

/* Wakes the agent for a request, and waits for the answer. False: it was refused, which has been reported. */
static bool ask(struct tw_dormant *dormant, enum tw_doorbell_request asked, const char *path,
		struct tw_recorder *recorder)
{
	uint32_t number =
		tw_dormant_ring(dormant, asked, path, "the recording ended because another command asked it to");
	bool is_there = number != 0;
	for (int i = 0; is_there && i < TRIES; i++) {
		is_there = tw_dormant_read(dormant);
		if (is_there && dormant->seen.answered == number)
			return dormant->seen.outcome == TW_DOORBELL_DONE;
		if (recorder)
			tw_recorder_poll(recorder, NAP_NS);
		else
			nap();
	}
	tw_say("%s", number ? "the agent did not answer." : dormant->reason);
	return false;
}

/* A recording of nothing, whose end takes back what an earlier one has left in the program. */
static int take_back(struct tw_dormant *dormant)
{
	struct tw_recorder_options options = {.config = "functions 0\n",
					      .is_stream = true,
					      .ends_inside = true,
					      .stream_fd = open("/dev/null", O_WRONLY | O_CLOEXEC)};
	struct tw_recorder_stats stats = {0};
	struct tw_recorder *recorder;
	int error = tw_recorder_create(&options, &recorder);
	close(options.stream_fd);
	if (error)
		return tw_fail("what was written into the program cannot be taken back: %s", tw_strerror(error));
	bool is_done = ask(dormant, TW_DOORBELL_ATTACH, tw_recorder_ring_set_path(recorder), recorder) &&
		       ask(dormant, TW_DOORBELL_DETACH, tw_recorder_ring_set_path(recorder), recorder) &&
		       await(dormant, true);
	tw_recorder_finish(recorder, &stats);
	is_done = is_done && ask(dormant, TW_DOORBELL_FORGET, "", NULL);
	if (stats.unrestored_processes)
		return tw_fail(
			"%llu functions of process %d keep a jump into the tracer, which records nothing any more; try "
			"again.",
			(unsigned long long)stats.unrestored_places, dormant->process);
	if (!is_done)
		return tw_fail("it is not known whether process %d is as it was before; try again.", dormant->process);
	return TW_EXIT_OK;
}

static int detach(struct tw_dormant *dormant, bool is_quiet)
{
	int owner = dormant->seen.owner;
	bool is_attached = dormant->seen.state != TW_DOORBELL_DORMANT;
	if (is_attached && is_alive(owner, dormant->seen.own)) {
		tw_system_log("detaches from", dormant->process, NULL);
		kill(owner, SIGTERM);
		if (!await(dormant, false))
			return tw_fail("process %d, which records process %d, was asked to end, and has not done so.",
				       owner, dormant->process);
		if (!is_quiet)
			tw_say("detached from process %d.", dormant->process);
		return TW_EXIT_OK;
	}
	if (is_attached && (!ask(dormant, TW_DOORBELL_DETACH, "", NULL) || !await(dormant, true)))
		return tw_fail("process %d could not be detached from.", dormant->process);
	if (!tw_dormant_is_of_user(dormant))
		return tw_fail("%s", dormant->reason);
	int code = take_back(dormant);
	if (!code)
		tw_system_log("detached from", dormant->process, "the command that attached is gone or stands still");
	if (!code && !is_quiet)
		tw_say(is_attached ? "detached from process %d; the command that recorded it (process %d) %s."
				   : "process %d was not recorded any more, and is as it was before.",
		       dormant->process, owner, tw_proc_state(owner) ? "stands still" : "is gone");
	return code;
}

int tw_tool_detach(int argc, char **argv)
{
	struct tw_options options = {.command = &command, .argc = argc, .argv = argv};
	struct tw_dormant dormant;
	bool is_quiet = false;
	int key;
	while ((key = tw_options_next(&options)) > 0)
		is_quiet = true;
	if (key < 0)
		return tw_options_exit(key);
	int pid = options.index + 1 == argc ? tw_proc_number(argv[options.index]) : 0;
	if (!pid)
		return tw_usage(&command, "which process? Give its number.");
	int code = tw_dormant_find(&dormant, pid);
	if (code && dormant.is_without_agent)
		tw_say("%s", dormant.reason);
	return code ? code : detach(&dormant, is_quiet);
}
