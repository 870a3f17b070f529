/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - the options of `tracewheel record`, as --help and docs/cli.md show them. */
#include "tools/record/options.h"
#include "tools/common/patterns.h"

static const struct tw_option options_table[] = {
	{'o', "output", "NAME.tw|-",
	 "the capture to make (COMMAND.tw); - is a stream on standard output,\n"
	 "for `tracewheel print -`, `report -`, `info -` or `flame -`: the\n"
	 "program's own output then goes to standard error"},
	{'t', "trace", "PATTERN",
	 "trace these functions: MODULE:FUNCTION/ARITY with globs, {a,b};\n"
	 "_ is anything; names printed by views are patterns; may be\n"
	 "repeated. By default: every call of the program's own functions,\n"
	 "and every call from the program itself into shared libraries; of a\n"
	 "program with more than 10,000 functions the largest are recorded,\n"
	 "and calls of the others counted (all: -t _ --callers main).\n"
	 "'PATTERN if EXPR': only calls of which EXPR is true, see --when"},
	TW_EXCLUDE_OPTION,
	{KEY_COUNT, "count", "PATTERN",
	 "count the calls of these functions, by thread, instead of recording\n"
	 "them: all calls, exactly, without times (docs/counting.md); may be\n"
	 "repeated. Others are then recorded only with -t"},
	{KEY_COUNTS_EVERY, "counts-every", "TIME", "with -o -: how often numbers of counted calls are written (1s)"},
	{KEY_BY, "by", "KEY",
	 "sum up in the program, and record no event: the calls of the functions of --count, or without it of -t, by their caller, result, "
	 "or register: arg:N, or $N. `report` shows the rows (docs/counting.md)"},
	{KEY_SUM, "sum", "NUMBER",
	 "likewise: calls, sum and mean of $N, result or duration; with --by for each value of its KEY"},
	{KEY_HISTOGRAM, "histogram", "NUMBER[/STEP]",
	 "likewise: a histogram of $N, result or duration, by powers of two, or in equal steps: '$3/512', duration/1ms"},
	{KEY_QUANTILES, "quantiles", "NUMBER",
	 "likewise: median, percentiles and mean of $N, result or duration, within 0.8 %"},
	{KEY_ALLOW_NOTHING, "allow-nothing", NULL,
	 "record even if a pattern cannot match anything; by default such\n"
	 "a pattern is refused before the program starts"},
	{'p', "flags", "FLAG[,FLAG]...",
	 "record events of the program's processes, as far as its run-time\n"
	 "reports them (docs/embedding.md): send, receive, procs, running,\n"
	 "exiting, garbage_collection; and of its ports: send, receive,\n"
	 "ports, running_ports; `all`: all but silent.\n"
	 "cpu_timestamp: Erlang's stamps (print --format erlang) are the\n"
	 "program's CPU time. Threads that are not schedulers are\n"
	 "processes. With -p, functions are traced only if -t or the flag\n"
	 "call is given"},
	{KEY_PROCESSES, "processes", "FLAG[,FLAG]...", "the former name of --flags"},
	{KEY_PORTS, "ports", NULL,
	 "record for `report --ports` how files, sockets, pipes and timers are used: libc's calls with descriptors and streams, and "
	 "what they return. Functions are then traced only with -t"},
	{KEY_SYSCALLS, "syscalls", NULL,
	 "record libc's functions that are system calls, with arguments, returns and errors; `print --format strace` shows them as strace "
	 "does. Other functions are then traced only with -t (docs/prototypes.md)"},
	{KEY_WHEN, "when", "EXPR",
	 "record only calls of which this is true: by arguments, named by\n"
	 "debug information or prototypes (docs/prototypes.md),\n"
	 "'size > 4096 and name == \"users\"', or by number, '$1 > 4096':\n"
	 "the integer registers $1 to $6, or arguments of declared functions;\n"
	 "and by how they end, 'result < 0', 'errno == ENOENT', exception,\n"
	 "'duration > 10ms': others are counted (docs/counting.md).\n"
	 "-t 'PATTERN if EXPR' has its own"},
	{KEY_MATCH, "match", "SPEC", "likewise, with a whole match specification (docs/match.md)"},
	{KEY_ARGS, "args", "[=raw|BYTES|PROTOTYPE]",
	 "record arguments: by name and type if there is debug\n"
	 "information, strings up to BYTES (64); raw, or without debug\n"
	 "information: the six integer registers (docs/arguments.md).\n"
	 "PROTOTYPE, which may be repeated, says what they are: 'f(_, str)',\n"
	 "'int f(fd fd, out buf(len=result) data, size n)' (docs/prototypes.md).\n"
	 "Those of libc, SQLite, OpenSSL and zlib are known. With --returns,\n"
	 "what a call fills is shown with its return"},
	{KEY_PROTOTYPES, "prototypes", "FILE",
	 "--args with the prototypes of that file; *.proto in\n"
	 "~/.config/tracewheel/prototypes are used without it"},
	{KEY_NO_STRINGS, "no-strings", NULL,
	 "do not read what arguments and results point to, which may be passwords, SQL, contents of files: their addresses are recorded "
	 "(docs/security.md)"},
	{KEY_REDACT, "redact", "REGEX",
	 "replace what matches in text of arguments, results, messages and the command line by '*', before it is on the disk; of an "
	 "expression with groups what they match: 'password=([^&]*)'. May be repeated (docs/security.md)"},
	{KEY_RETURNS, "returns", NULL, "record the values that calls return, and when"},
	{KEY_EXCEPTIONS, "exceptions", NULL,
	 "the same, and exceptions that leave calls: C++ classes, thread\n"
	 "exit, longjmp, Rust panics"},
	{KEY_LONGER, "longer", "TIME",
	 "short for duration >= TIME, beside other conditions: record only calls that take so long, with what they return: 10ms, 50us. "
	 "Others are counted, exactly and by thread (docs/counting.md)"},
	{KEY_CHILDREN, "children", "[=SIZE]",
	 "with --longer, or conditions on how calls end: record with such a call all calls in it of selected functions, also short ones. "
	 "Beside patterns with conditions, those without are recorded in such calls only: -t 'srv:handle if duration > 10ms' -t srv:_. "
	 "Until it is known, each thread keeps SIZE of them in memory (4M; docs/counting.md)"},
	{KEY_RETURN_TO, "return-to", NULL, "record where a recorded call returns to"},
	{KEY_STACK, "stack", "N",
	 "record N callers of each call, 1 to 64\n"
	 "(docs/unmodified.md)"},
	{KEY_LOCKS, "locks", NULL,
	 "record the calls that `report --locks` uses: all calls of pthread_mutex_*, pthread_rwlock_* and pthread_cond_*, with "
	 "arguments, returns and callers"},
	{KEY_MEMORY, "memory", NULL,
	 "record the calls that `report --memory` uses: malloc, free and their kin, mmap and munmap, with arguments, returns and callers (8; "
	 "--stack N changes that)"},
	{KEY_PYTHON, "python", NULL,
	 "record functions of Python too, in a program that is or contains CPython 3.11: app.py:handle, json.decoder:JSONDecoder.decode; "
	 "py:_ is all of them. Without -t all of them, and no others (docs/python-programs.md)"},
	{KEY_TRACER, "tracer", "FILE.so[:STATE]",
	 "call the tracer module in that shared object for each event, inside\n"
	 "the program, instead of recording the event (docs/tracer-modules.md);\n"
	 "STATE is an Erlang term"},
	{KEY_CALLERS, "callers", "main|all",
	 "record only calls made by the program itself, or also those of its\n"
	 "libraries (with -t: all)"},
	{KEY_LOCAL, "local", NULL,
	 "only functions of which every call is seen, from within an object\n"
	 "as well: at entry sleds, or at entries, by a jump over a function's\n"
	 "first instructions (docs/unmodified.md)"},
	{KEY_CAREFUL, "careful", NULL, "no entries of functions with an indirect jump that is not understood"},
	{KEY_GLOBAL, "global", NULL,
	 "only calls from one object into another; no code is changed.\n"
	 "Without either: for each function its sled, else its entry, and\n"
	 "slots where it has none that can be traced"},
	{KEY_TIME, "time", "TIME|none",
	 "end the recording after this time: 10s, 500ms (none). The program goes on, and this command waits for it"},
	{KEY_EVENTS, "events", "N|none", "the same after this many events: 250000, 2M"},
	{KEY_RATE, "rate", "N/s|none", "the same when there are more events than this in a second: 200k/s"},
	{KEY_FOLLOW, "follow-fork", NULL,
	 "trace children as well; recording ends with the last of them,\n"
	 "daemons included (Ctrl-C ends it earlier)"},
	{KEY_UNTIL_FIRST, "until-first", NULL, "with --follow-fork: recording ends with the first process"},
	{KEY_ON_FULL, "on-full", "block|drop|overwrite",
	 "when events come faster than they are written: make the program\n"
	 "wait (the default; a second at most for a recorder that stands still,\n"
	 "and waits are not in the times of calls), lose the newest, counted,\n"
	 "or keep the newest only. In each case, calls of a signal handler that\n"
	 "interrupts the recording of another call are counted as nested"},
	{KEY_FLIGHT, "flight", "[=TIME|SIZE]",
	 "a flight recorder: keep the newest events only, in memory, and write what is there as a capture when `tracewheel snapshot` "
	 "or --snapshot-on asks for it, while all goes on: NAME.tw, NAME-2.tw, ... (docs/flight.md). At most the last TIME: 10s; SIZE "
	 "is that of --ring"},
	{KEY_SNAPSHOT_ON, "snapshot-on", "WHEN",
	 "with --flight, also then: 'PATTERN if EXPR', a call of which EXPR is true, by its arguments, result, errno, duration, or "
	 "'PATTERN', any call; crash (the program is ended by a signal other than INT, TERM, HUP, QUIT: with address and "
	 "stack), exit, or a signal that is sent to this command: USR1, HUP, ... (USR2 always is); may be repeated"},
	{KEY_SNAPSHOTS, "snapshots", "N", "write at most N of them by signals and calls (5)"},
	{KEY_EVERY, "every", "TIME", "and not sooner than that after the last one (10s)"},
	{KEY_RING, "ring", "SIZE", "memory for one thread's events: 64K to 1G, a power of two (4M)"},
	{KEY_CAP, "ring-cap", "SIZE",
	 "memory for all threads together (256M); each process has its first,\n"
	 "small ring in any case"},
	{KEY_ROTATE, "rotate", "SIZE", "begin a new segment after this many bytes (256M)"},
	{KEY_SEGMENT_TIME, "segment-time", "TIME", "or after this time: 10s, 500ms"},
	{KEY_KEEP, "keep", "N", "keep the newest N closed segments only"},
	{KEY_DURABLE, "durable", "MS", "sync to the disk after at most this many milliseconds"},
	{KEY_METRICS, "metrics", "FILE",
	 "write numbers of the recording to FILE, in Prometheus' text form, once a second: events, lost ones by cause, bytes, rings "
	 "(docs/formats.md)"},
	{KEY_LONG_SCHEDULE, "long-schedule", "MS",
	 "record when a thread was ready to run, but got no processor, for MS milliseconds or more between two samples: an event "
	 "monitor long_schedule, which `report` sums up. Samples of the kernel's counts are half of MS apart (5 to 100 ms), for "
	 "threads that make events; a wait counts when it is over"},
	{KEY_SCHED, "sched", NULL,
	 "record also when each thread ran, was preempted, and was off the processor, from the kernel's context switches of the program: "
	 "`report` and `print --tree` divide the times of calls (docs/latency.md). Needs no root where perf_event_paranoid is 2 or less"},
	{KEY_PROGRAM_OUTPUT, "program-output", "FILE",
	 "the standard output and error of the program, apart from those of this command"},
	{KEY_FORCE, "force", NULL,
	 "replace an existing capture; by default an old COMMAND.tw becomes COMMAND.tw.old, and a capture that -o names "
	 "is left alone"},
	{KEY_ERLANG, "erlang", NULL,
	 "the first option: trace a running Erlang node, with options of its own: `tracewheel record --erlang --help`"},
	{KEY_PROGRESS, "progress", NULL,
	 "say each second how much is recorded: by default on a terminal, if the program's output goes elsewhere. SIGUSR1 asks for a line at any time"},
	{'q', "quiet", NULL, "no summary at the end; errors are still reported"},
	{0}};

const struct tw_command tw_record_command =
	{.name = "record",
	 .arguments = "[OPTION]... [--] COMMAND [ARGUMENT]...",
	 .summary = "Runs COMMAND and records its calls. Its exit code is passed on; 1 if it was 0 and the capture\n"
		    "could not be completed.",
	 .has_command = true,
	 .options = options_table,
	 .examples =
		 "  tracewheel record -- ls -l\n"
		 "  tracewheel record -t 'libsqlite3:_' -o app.tw -- sqlite3 app.db < work.sql\n"
		 "  tracewheel record -t 'libc:{malloc,free}' --on-full drop -- python3 app.py\n"
		 "  tracewheel record -t libc:malloc --when '$1 > 65536' --args -- python3 app.py\n"
		 "  tracewheel record -t libc:read --histogram result -- git log\n"
		 "  tracewheel record -t libc:malloc --sum '$1' --by caller -- python3 app.py\n"
		 "  tracewheel record --python -t 'app.py:_' -t libc:read -- python3 app.py\n"
		 "  tracewheel record --args -t 'sdt:python:import_*' -- python3 app.py\n"
		 "  tracewheel record -p send,receive,procs -- ./actors\n"
		 "  tracewheel record -qo - -t libc:open -- python3 app.py | tracewheel print -\n"
		 "  tracewheel record --flight=10s --snapshot-on crash --returns -- ./server\n"
		 "  tracewheel record --follow-fork --rotate 256M --keep 4 -- make\n"
		 "Ctrl-C reaches the program too; the capture is complete when it has ended. A second Ctrl-C stops\n"
		 "recording at once. SIGINT, SIGTERM, SIGHUP and SIGQUIT that are sent to this command alone are\n"
		 "passed on to the program after 0.1 s; it gets each once, also if its whole group was signalled.\n"};
