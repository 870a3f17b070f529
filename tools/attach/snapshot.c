/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot.c - `tracewheel snapshot`: writes what a flight recorder's rings hold as a capture.
 *
 * This command reads the rings itself: the recorder is not asked, and may be busy, stopped or dead.
 */
#include "tools/attach/as_user.h"
#include "tools/attach/list.h"
#include "tools/common/proc.h"
#include "tools/record/flight.h"
#include "tools/tool.h"

#include "tracewheel/error.h"
#include "tracewheel/flight.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

static const struct tw_option options_table[] =
	{{'o', "output", "NAME.tw", "the capture to make, or NAME-2.tw, ... if there is one (that of the recording)"},
	 {'q', "quiet", NULL, "only errors are reported; the name of the capture is printed in any case"},
	 {0}};

static const struct tw_command command = {
	.name = "snapshot",
	.arguments = "[OPTION]... PID",
	.summary =
		"Writes what a program has done, as far as a flight recorder holds it (`tracewheel record --flight`), as a\n"
		"capture of its own, and prints the name of that. The program and the recorder go on. PID is that of the\n"
		"program, or of the command that records it.",
	.options = options_table,
	.examples = "  tracewheel snapshot 4711\n"
		    "  tracewheel report $(tracewheel snapshot -o now.tw $(pgrep redis-server))\n"};

static bool take_option(void *arg, int key, const char *value)
{
	struct tw_flight_options *options = arg;
	if (key == 'o')
		options->path = value;
	else
		options->process_id = -1; /* quiet; the process follows */
	return true;
}

static int write_snapshot(struct tw_flight_options *options, int pid, bool is_quiet)
{
	static struct tw_flight_result result;
	char set[PATH_MAX];
	tw_as_user_of(pid);
	if (!tw_list_set(pid, set)) {
		if (kill(pid, 0) < 0 && errno == ESRCH)
			return tw_fail("there is no process %d.", pid);
		return tw_fail(
			"process %d is not recorded, or this user may not know; `tracewheel list` shows those that are.",
			pid);
	}
	options->ring_set_path = set;
	options->reason = "`tracewheel snapshot` asked for it";
	options->process_id = pid;
	int error = tw_flight_write(options, &result);
	if (error == TW_EBADARG)
		return tw_fail(
			"process %d is recorded, but not by a flight recorder (`tracewheel record --flight`), or the name of "
			"the capture is too long.",
			pid);
	int code = tw_flight_say(error, &result, options, is_quiet);
	if (!code)
		printf("%s\n", result.path);
	return code ? code : tw_flush_stdout() ? TW_EXIT_OK : TW_EXIT_FAILURE;
}

int tw_tool_snapshot(int argc, char **argv)
{
	struct tw_options options = {.command = &command, .argc = argc, .argv = argv};
	struct tw_flight_options wanted = {0};
	int code;
	if (!tw_options_read(&options, take_option, &wanted, &code))
		return code;
	int pid = options.index + 1 == argc ? tw_proc_number(argv[options.index]) : 0;
	if (!pid)
		return tw_usage(&command, "which process? Give its number.");
	return write_snapshot(&wanted, pid, wanted.process_id < 0);
}
