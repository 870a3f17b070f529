#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A program that lives on when its recording ends has its code back: byte for byte as in its files, at entries and at
#         sleds, while its threads run these functions; so have processes that it has forked. What a session of the program
#         itself still sets goes on. Where the threads cannot be stopped, the program runs on, and `record` says how many
#         functions are left; if the recorder is killed in the middle, each jump is there or not.
# Method  A library with threads that check their answers; /proc/PID/mem is compared with the files of the process' map.
build=$1
. "$(dirname "$0")/lib.sh"
plant_with_traps
# The program outlives its recording, also if the test fails.
pid=
trap 'touch end; [ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null; sleep 0.1; rm -rf "$work"' EXIT
include=$(realpath "$common/../../include")

echo '#include "busy.h"' >busy.c
# Runs until the file `end` is there. It survives the signals that end its recording.
cat >app.c <<'C'
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int busy_end(void);
void busy_begin(int);
long busy_deep(long), busy_leaf(long, long);
static void say(const char *file, long number)
{
	char made[64];
	sprintf(made, "%s.made", file);
	FILE *out = fopen(made, "w");
	fprintf(out, "%ld\n", number);
	fclose(out);
	rename(made, file);
}
int main(int argc, char **argv)
{
	int count = atoi(argv[1]), does_fork = argc > 2;
	signal(SIGTERM, SIG_IGN);
	pid_t child = does_fork ? fork() : 1;
	busy_begin(count);
	say(child ? "pid" : "child", getpid());
	while (access("end", F_OK))
		usleep(1000);
	int wrong = busy_end(), status = 0;
	if (does_fork && child && (waitpid(child, &status, 0) != child || status))
		wrong = 1;
	if (child)
		say("answer", wrong ? -1 : busy_leaf(3, 4));
	return wrong;
}
C
mkdir entry sled long
# In the short form threads rest for most of the time: each of many is at work when it is stopped, or not.
rests=-DREST_US=1000
[ -z "${TW_TEST_LONG:-}" ] || rests=
for way in entry sled; do
	sled=
	[ $way = entry ] || sled='__attribute__((patchable_function_entry(9)))'
	# shellcheck disable=SC2086 # words
	gcc -O2 -I "$common" "-DSLED=$sled" $rests -shared -fPIC -o $way/libbusy.so busy.c -Wl,--build-id -lpthread || fail "the library does not compile"
done
cp sled/libbusy.so long
"$tw" compact -q long/libbusy.so 2>/dev/null || "$tw" compact long/libbusy.so >/dev/null || fail "compact"
gcc -O2 -s -o app app.c -Lentry -lbusy -Wl,--build-id || fail "the program does not compile"

# pause SECONDS: without a process; threads that are busy meanwhile take all that a test costs here.
mkfifo pauses && exec 8<>pauses || fail "no pipe"
pause() {
	read -r -t "$1" -u 8
}

# differing PID: of a process that stands still meanwhile.
differing() {
	kill -STOP "$1"
	python3 -I -S "$common/changed_text.py" "$1" || fail "the memory of $1 cannot be read"
	kill -CONT "$1"
}

# begin COMMAND...: waits until the program has its threads.
begin() {
	rm -rf end answer pid child r.tw
	LD_LIBRARY_PATH=$way "$tw" record --local -t "libbusy:${pattern:-busy_{leaf,deep,end\}}" -o r.tw "$@" >out 2>err </dev/null &
	recorder=$!
	wait_for pid
	pid=$(cat pid)
}

wait_for() {
	for _ in {1..1000}; do
		[ ! -e "$1" ] || return 0
		pause 0.01
	done
	fail "the program has not written $1"
}

# A second signal ends the recording; one that comes before the first was taken is none of its own.
ask_to_end() {
	kill -TERM $recorder
	pause 0.03
	while kill -TERM $recorder 2>/dev/null; do
		for _ in {1..10}; do
			pause 0.01
			kill -0 $recorder 2>/dev/null || return 0
		done
	done
}

end_recording() {
	ask_to_end
	wait $recorder
	is $? 143
}

end_program() {
	: >end
	wait_for answer
	is "$(cat answer)" 62 "the answer"
}

for way in entry sled; do
	begin -- ./app 3
	[ "$(differing "$pid")" -gt 4 ] || fail "$way: nothing was written"
	end_recording
	is "$(differing "$pid")" 0 "$way: bytes that differ"
	! grep -q 'changed functions' err || fail "$way: not restored"
	end_program
	[ "$(calls r.tw busy_leaf)" -gt 100 ] || fail "$way: few calls"
done

# ---- long NOPs of a sled are left as shorter ones, where threads may be between them: no jump is left ----
way=long
begin -- ./app 3
before=$(differing "$pid")
end_recording
[ "$(differing "$pid")" -lt "$before" ] || fail "long: nothing was restored"
end_program

# ---- a jump on two pages stays, and leads to the copy: the function is called, and nothing is recorded ----
way=entry pattern=busy_torn
begin -- ./app 3
end_recording
differ=$(differing "$pid")
[ "$differ" -gt 0 ] && [ "$differ" -lt 10 ] || fail "torn: $differ bytes differ"
! grep -q 'changed functions' err || fail "torn: not led to the copy"
end_program
[ "$(calls r.tw busy_torn)" -gt 100 ] || fail "few calls"
pattern=

# ---- children, while the recording ends with the first process ----
way=entry
begin --follow-fork -- ./app 2 fork
wait_for child
child=$(cat child)
[ "$(differing "$child")" -gt 4 ] || fail "the child has no jumps"
end_recording
is "$(differing "$pid") $(differing "$child")" "0 0" "parent and child"
end_program

# ---- many threads ----
begin -- ./app 80
end_recording
is "$(differing "$pid")" 0 "80 threads"
end_program

# ---- another tracer ----
if command -v strace >/dev/null; then
	begin -- ./app 2
	strace -f -o /dev/null -e trace=none -p "$pid" 2>strace.err &
	strace=$!
	for _ in {1..500}; do
		! grep -q attached strace.err || break
		pause 0.01
	done
	if grep -q 'attached' strace.err; then
		end_recording
		says 'still has changed functions (3), .*: a debugger or another tracer has it'
	else
		end_recording
	fi
	kill $strace 2>/dev/null
	wait $strace 2>/dev/null
	end_program
fi

# ---- a session of the program keeps what it sets, and plants again what was taken back ----
cat >counts.c <<'C'
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <tracewheel/tracewheel.h>
#include <unistd.h>
long busy_deep(long), busy_leaf(long, long);
static uint64_t count_of(struct tw_session *session, const char *function)
{
	uint64_t counted = 0;
	tw_trace_call_count(session, "libbusy", function, TW_ARITY_ANY, &counted);
	return counted;
}
int main(void)
{
	struct tw_session *session;
	long sum = 0;
	signal(SIGTERM, SIG_IGN);
	if (tw_session_create("counts", NULL, &session))
		return 1;
	tw_trace_process(session, tw_process_self(), true, TW_FLAG_CALL);
	if (tw_trace_function(session, "libbusy", "busy_leaf", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT) != 1)
		return 2;
	sum += busy_leaf(1, 2) + busy_deep(1);
	FILE *pid = fopen("pid", "w");
	fprintf(pid, "%d\n", (int)getpid());
	fclose(pid);
	while (access("end", F_OK))
		usleep(1000);
	for (int i = 0; i < 10; i++)
		sum += busy_leaf(i, 2) + busy_deep(1);
	int set = tw_trace_function(session, "libbusy", "busy_deep", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT);
	for (int i = 0; i < 5; i++)
		sum += busy_deep(1);
	printf("%" PRIu64 " %d %" PRIu64 "\n", count_of(session, "busy_leaf"), set, count_of(session, "busy_deep"));
	fflush(stdout);
	tw_session_destroy(session);
	tw_session_put(session);
	pid = fopen("answer", "w");
	fprintf(pid, "%d\n", sum ? 62 : 0);
	fclose(pid);
	return 0;
}
C
gcc -O1 -I"$include" counts.c -o counts -Lentry -lbusy -L"$build/lib" -ltracewheel "-Wl,-rpath,$build/lib" || fail "the program does not compile"
for way in entry sled; do
	begin -- ./counts
	planted=$(differing "$pid")
	end_recording
	kept=$(differing "$pid")
	[ "$kept" -gt 0 ] && [ "$kept" -lt "$planted" ] || fail "$way: $kept of $planted bytes are kept"
	end_program
	is "$(cat out)" "11 1 5" "$way: the session's counts"
done

# ---- the recorder is killed while it restores ----
way=entry
for ms in $(rounds "0 3" "0 1 2 3 4 6 8 12"); do
	begin -q -- ./app 3
	kill -TERM $recorder
	pause 0.05
	kill -TERM $recorder
	[ "$ms" = 0 ] || pause "$(printf 0.%03d "$ms")"
	kill -KILL $recorder 2>/dev/null
	wait $recorder 2>/dev/null
	pause 0.05
	end_program
	[ ! -e r.tw/live ] || "$tw" recover -q r.tw >/dev/null 2>&1 || fail "recover after $ms ms"
done
