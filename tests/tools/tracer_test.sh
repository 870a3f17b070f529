#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal: `record --tracer` loads a tracer module into an unmodified program and calls it for each event; a file that is none is refused by one
# sentence before the program starts; what the module does badly stays its own, and what it was not told is counted.
# Method: a program that calls a library of its own, with integers and doubles, and the modules of tests/modules.
build=$1
include=$(realpath "$(dirname "$0")/../../include")
. "$(dirname "$0")/lib.sh"
cat >lib.c <<'EOT2'
double scale(long count, double factor) { return count * factor; }
long plus(long a, long b) { return a + b; }
EOT2
cat >main.c <<'EOT2'
#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
double scale(long count, double factor);
long plus(long a, long b);
int main(int argc, char **argv)
{
	errno = EBADF;
	double d = scale(3, 1.5);
	int error = errno;
	long sum = plus(20, 22);
	printf("%g %ld %d\n", d, sum, error == EBADF);
	fflush(stdout);
	if (argc > 1 && fork() == 0) {
		plus(1, 2);
		_exit(0);
	}
	while (wait(NULL) > 0)
		;
	return 0;
}
EOT2
gcc -O1 -shared -fPIC lib.c -o libfew.so && gcc -O1 main.c -o main ./libfew.so || fail "no compiler"
log=$build/tests/log_tracer.so

# Calls, their words, their ends; vector registers and errno are the program's.
expect 0 "$tw" record --tracer "$log:{a,1}" --args=raw --returns -t 'libfew:_' -- ./main
is "$(cat out)" "4.5 42 1"
is "$(grep -c '^log: ' err)" 4
says '^log: call {a,1} {libfew,scale,\[3,'
says '^log: call {a,1} {libfew,plus,\[20,22,'
says "^log: return_from {a,1} {libfew,plus,'_'} 42\$"
says 'the events went to the tracer module .*/log_tracer.so'
expect 0 "$tw" info main.tw
shows '^events *0'
shows '^complete *yes'

# Without words the arity; a match specification selects what the module receives.
expect 0 "$tw" record --tracer "$log" -t 'libfew:_' --when '$1 == 20' -- ./main
is "$(grep '^log: ' err)" "log: call [] {libfew,plus,'_'} "

# Children, if they are followed.
expect 0 "$tw" record --tracer "$log" -t 'libfew:plus' -- ./main fork
is "$(grep -c '^log: ' err)" 1
expect 0 "$tw" record --tracer "$log" --follow-fork -t 'libfew:plus' -- ./main fork
is "$(grep -c '^log: ' err)" 2

# It is its own caller's: what it calls itself is not traced, even where that is asked for.
expect 0 "$tw" record --tracer "$log" --allow-nothing -t 'libfew:_' -t libc:write -- ./main
is "$(grep -c '^log: call \[\] {libfew' err)" 2
! grep -q 'NOT reported' err || fail "its own calls were counted"
# Nor at the entries of libc, which see the calls from everywhere: the program writes once.
expect 0 "$tw" record --local --tracer "$log" -t 'libfew:_' -t libc:write -- ./main
is "$(grep -c '^log: call \[\] {libfew' err) $(grep -c '^log: call \[\] {libc,write' err)" "2 1"
! grep -q 'NOT reported' err || fail "its own calls were counted"

# No answer is no event; a crash is the program's own.
expect 0 "$tw" record --tracer "$log:no_answer" -t 'libfew:_' -- ./main
! grep -q '^log: ' err || fail "told without having answered"
is "$(cat out)" "4.5 42 1"
expect 134 "$tw" record --tracer "$log:crash" -t 'libfew:_' -- ./main

# Refused before the program starts.
for bad in ./nowhere.so ./main.c ./libfew.so "$log:foo(" ; do
	expect 2 "$tw" record --tracer "$bad" -- ./main
	is "$(cat out)" "" "$bad"
	is "$(grep -c '^tracewheel' err)" 1 "$bad"
done
for other in --stack=3 --args --locks -o-; do
	expect 2 "$tw" record --tracer "$log" "$other" -- ./main
	says 'exclude each other'
done

# Faults of a module that only the loader finds: the program runs untraced, and the capture says why.
cat >bad.c <<'EOT2'
#include <tracewheel/tracer.h>
static void trace(enum tw_tracer_tag tag, struct tw_term state, struct tw_term tracee, struct tw_term term,
		  const struct tw_tracer_options *options) { }
const struct tw_tracer_module tracewheel_tracer = {.bytes = sizeof tracewheel_tracer, .name = "bad", .trace = trace};
EOT2
gcc -shared -fPIC -w -I"$include" bad.c -o bad.so || fail "no module"
expect 0 "$tw" record --tracer ./bad.so -t 'libfew:_' -- ./main
is "$(cat out)" "4.5 42 1"
says '1 process was not traced'
expect 0 "$tw" info main.tw
shows 'lacks one of its mandatory callbacks'

# A module that crashes takes the program with it; a capture of another session keeps the calls made before.
cat >beside.c <<'EOT2'
#include <tracewheel/tracewheel.h>
#include <stdlib.h>
TW_DEFINE_FUNCTION(step, "beside", "step", 1);
static int left = 1000;
static enum tw_tracer_answer enabled(enum tw_tracer_tag tag, struct tw_term state, struct tw_term tracee)
{
	return TW_TRACER_TRACE;
}
static void trace(enum tw_tracer_tag tag, struct tw_term state, struct tw_term tracee, struct tw_term term,
		  const struct tw_tracer_options *options)
{
	if (--left == 0)
		abort();
}
static const struct tw_tracer_module module = {.bytes = sizeof module, .name = "m", .enabled = enabled, .trace = trace};
static int begin(struct tw_tracer *tracer)
{
	struct tw_session *session;
	return tw_session_create("beside", tracer, &session) ||
	       tw_trace_process(session, TW_PID_ALL, true, TW_FLAG_CALL) < 1 ||
	       tw_trace_function(session, "beside", "step", 1, TW_MATCH_TRUE, TW_FUNCTION_LOCAL) != 1;
}
int main(void)
{
	struct tw_tracer capture = {.kind = TW_TRACER_CAPTURE, .capture_path = "beside.tw"};
	struct tw_tracer calls = {.kind = TW_TRACER_MODULE, .module = &module};
	if (begin(&capture) || begin(&calls))
		return 1;
	for (unsigned i = 0;; i++)
		tw_call1(&step, i);
}
EOT2
gcc -O1 -w -I"$include" beside.c -o beside -L"$build/lib" -Wl,-rpath,"$build/lib" -ltracewheel -Wl,--no-as-needed -ltracewheel-capture ||
	fail "the program beside a crash does not compile"
expect 134 ./beside
expect 0 "$tw" recover beside.tw
expect 0 "$tw" report --json beside.tw
# The fatal call itself may be missing: the module was told of it first.
is "$(python3 -c 'import json; print(json.load(open("out"))["calls"] in (999, 1000))')" True
