/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - the options of `tracewheel attach`: its own, and rows of the table of `record`. */
#include "tools/attach/options.h"

#include <assert.h>

static const struct tw_option own[] = {
	{KEY_TIME, "time", "TIME|none", "detach after this time: 10s, 500ms (60s)"},
	{KEY_EVENTS, "events", "N|none", "detach after this many events: 250000, 2M (10M)"},
	{KEY_RATE, "rate", "N/s|none",
	 "when there are more events than this in a second, count the functions that make most, and record the others; detach where that does not help: 200k/s (1M/s)"},
	{KEY_NAME, "name", "NAME", "in place of PID: the one process of this name that has an agent"},
	{KEY_DRY_RUN, "dry-run", NULL,
	 "only say which functions would be recorded, with how much memory, and what a call would cost: the process is left alone"},
	{'o', "output", "NAME.tw|-", "the capture to make (PROGRAM.tw), or - for a stream on standard output"},
	{'t', "trace", "PATTERN",
	 "trace these functions: MODULE:FUNCTION/ARITY with globs, {a,b}; _ is anything; may be repeated. By default: every call of "
	 "the program's own functions, and every call from the program itself into shared libraries; of a program with more than "
	 "10,000 functions the largest are recorded, and calls of the others counted"},
	{KEY_ON_FULL, "on-full", "drop|block|overwrite",
	 "when events come faster than they are written: lose the newest, counted (the default), make the program wait (only with "
	 "--may-stop-program), or keep the newest only"},
	{KEY_SNAPSHOT_ON, "snapshot-on", "WHEN",
	 "with --flight, also then: 'PATTERN if EXPR', a call of which EXPR is true, by its arguments, result, errno, duration, or "
	 "'PATTERN', any call; exit (the program has ended), or a signal that is sent to this command: USR1, HUP, ... (USR2 always "
	 "is); may be repeated"},
	{KEY_MAY_STOP, "may-stop-program", NULL,
	 "allow --on-full block: the program waits for this command, a second at most when that stands still"},
};

/* Of `record`. */
static const int shared[] =
	{'N',	     KEY_COUNT,	   KEY_COUNTS_EVERY, KEY_ALLOW_NOTHING, KEY_SYSCALLS,	KEY_WHEN,
	 KEY_LONGER, KEY_CHILDREN, KEY_MATCH,	     KEY_ARGS,		KEY_PROTOTYPES, KEY_NO_STRINGS,
	 KEY_REDACT, KEY_RETURNS,  KEY_EXCEPTIONS,   KEY_RETURN_TO,	KEY_STACK,	KEY_LOCKS,
	 KEY_MEMORY, KEY_CALLERS,  KEY_LOCAL,	     KEY_CAREFUL,	KEY_GLOBAL,	KEY_RING,
	 KEY_CAP,    KEY_ROTATE,   KEY_SEGMENT_TIME, KEY_KEEP,		KEY_DURABLE,	KEY_LONG_SCHEDULE,
	 KEY_SCHED,  KEY_PROGRESS, KEY_FORCE,	     KEY_FLIGHT,	KEY_SNAPSHOTS,	KEY_EVERY,
	 KEY_PYTHON, 'q'};

#define COUNT_OF(a) (sizeof(a) / sizeof *(a))

static struct tw_option table[COUNT_OF(own) + COUNT_OF(shared) + 1];

static const struct tw_command command = {
	.name = "attach",
	.arguments = "[OPTION]... PID",
	.summary =
		"Records the calls of a program that runs. A program that was started with the agent has it asleep\n"
		"(LD_PRELOAD=.../libtracewheel-agent.so); any other gets it now, and keeps it (docs/attach.md). Ends\n"
		"by a limit, by Ctrl-C, or by `tracewheel detach PID`; the program goes on, as it was before. Without\n"
		"this command, as when it is killed or stopped, the program itself ends it after five seconds.",
	.options = table,
	.examples =
		"  tracewheel attach 4711\n"
		"  tracewheel attach --time 10s -t 'nginx:ngx_http_*' --returns 4711\n"
		"  tracewheel attach --name redis-server --rate none --events 50M -o busy.tw\n"
		"  tracewheel attach -t libc:open --args --time none 4711\n"
		"  tracewheel attach --python --returns -t 'app:_' -t libc:read 4711\n"
		"  tracewheel attach --flight --snapshot-on 'shop:pay if duration > 9ms' 4711\n"
		"PID may be that of a thread. Who may: those whom the system lets trace the process by ptrace, as the\n"
		"user that it runs as. `tracewheel list` shows who traces what, and where an agent sleeps.\n"};

const struct tw_command *tw_attach_command(void)
{
	size_t count = 0;
	if (table[0].name)
		return &command;
	for (size_t i = 0; i < COUNT_OF(own); i++)
		table[count++] = own[i];
	for (size_t i = 0; i < COUNT_OF(shared); i++)
		for (const struct tw_option *row = tw_record_command.options; row->name; row++)
			if (row->key == shared[i])
				table[count++] = *row;
	assert(count == COUNT_OF(own) + COUNT_OF(shared));
	return &command;
}
