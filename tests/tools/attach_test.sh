#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A program that was started with the agent and without a command is recorded while it runs, any number of times, and is as it was
#         before in between: its code byte for byte, its answers, its threads, its memory for events. A recording ends by a limit, by
#         `detach`, and by itself when its command is killed or stopped; who cannot be attached to is told why and what to do.
# Method  Threads that check their answers, and children that they fork. The memory of the process is compared with its files.
build=$1
. "$(dirname "$0")/lib.sh"
agent=$build/lib/libtracewheel-agent.so
program= opener=
trap 'touch end; [ -z "$opener" ] || kill "$opener" 2>/dev/null; [ -z "$program" ] || kill -CONT "$program" 2>/dev/null; sleep 0.1; [ -z "$program" ] || kill "$program" 2>/dev/null; rm -rf "$work"' EXIT

cat >app.c <<'C'
#include <dlfcn.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) int leaf(int x) { __asm__ volatile("" : "+r"(x)); return x * 3 + 1; }
__attribute__((noinline)) int work(int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++) {
		volatile char *memory = malloc(16 + (size_t)i % 512);
		memset((char *)memory, i, 16);
		sum += leaf(i) + memory[3];
		free((char *)memory);
	}
	return sum;
}
static void *run(void *unused)
{
	int wanted = work(50), rest_us = getenv("TW_TEST_LONG") ? 4000 : 40000;
	while (access("end", F_OK)) {
		if (work(50) != wanted)
			exit(3);
		usleep(rest_us);
	}
	return unused;
}
/* A program whose first thread has ended, and one of the others has forked a child. */
static void say(void) { puts("end"); }
static void *fork_and_wait(void *unused)
{
	int status = 1;
	pid_t child = fork();
	usleep(1000);
	if (child && (waitpid(child, &status, 0) != child || status))
		_exit(3);
	return unused;
}
static void end_first(void)
{
	pthread_t thread;
	atexit(say);
	pthread_create(&thread, NULL, fork_and_wait, NULL);
	pthread_exit(NULL);
}
/* A program that has opened a library, and may have changed its user then, as workers of servers do. */
static int open_library(void)
{
	void *library = dlopen("./libopened.so", RTLD_NOW);
	int (*opened)(int) = library ? (int (*)(int))dlsym(library, "opened") : NULL;
	if (getenv("CHANGES_USER") && (setgroups(0, NULL) || setgid(65534) || setuid(65534)))
		return 9;
	while (opened && access("end", F_OK)) {
		opened(1);
		usleep(1000);
	}
	return !opened;
}
static int filter(void)
{
	struct sock_filter all = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
	struct sock_fprog program = {1, &all};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	pause();
	return 0;
}
/* Alone it works in threads, with "fork" it forks children too; "first", "filtered" and "opener" are programs of their own. */
int main(int argc, char **argv)
{
	pthread_t threads[3];
	if (argc > 1 && !strcmp(argv[1], "first"))
		end_first();
	if (argc > 1 && !strcmp(argv[1], "filtered"))
		return filter();
	if (argc > 1 && !strcmp(argv[1], "opener"))
		return open_library();
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	while (access("end", F_OK)) {
		int status = 0, wanted = work(10) & 63;
		pid_t child = argc > 1 ? fork() : 0;
		if (argc > 1 && !child)
			_exit(work(10) & 63);
		if (argc > 1 && (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != wanted))
			exit(4);
		/* A child costs some milliseconds; each recording sees one at least. */
		usleep(getenv("TW_TEST_LONG") ? 50000 : 120000);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	puts("right");
	return 0;
}
C
gcc -O1 -c app.c && gcc -o app app.o -pthread -Wl,--build-id && gcc -static -o static app.o -pthread || fail "the program does not compile"

# begin [fork]: the program runs, and its agent sleeps.
begin() {
	rm -f end
	LD_PRELOAD=$agent ./app "$@" >answer &
	program=$!
	wait_until sleeps "$program"
}

# Has the process a thread that waits for the command?
sleeps() {
	grep -qs dormant "/proc/$1/task"/*/comm
}

is_as_before() {
	is "$(python3 -I -S "$common/changed_text.py" "$program")" 0 "bytes of code that differ, $*"
	is "$(grep -c '/control\|/image-' "/proc/$program/maps")" 0 "mapped files of the ring set, $*"
	local tasks=("/proc/$program/task"/*)
	is ${#tasks[@]} 5 "threads, $*"
}

end() {
	touch end
	wait "$program" || fail "the program's exit code is $?"
	is "$(cat answer)" right
}

state() {
	"$tw" list | grep -q "^ *$program .*$1" || {
		# The command costs more than a look at a file.
		sleep 0.05
		false
	}
}

# Cycles, with other functions and options each: nothing of one is left for the next.
begin fork
is_as_before "at first"
expect 0 "$tw" list
shows "$program *app *dormant"
# record OPTION...: again, where a busy machine did not let a thread stop in time.
record() {
	for _ in 1 2 3 4 5 6 7 8; do
		expect 0 "$tw" attach --force --time 150ms -o c.tw "$@" "$program"
		says "the recording ended after 150 ms (--time)"
		is_as_before "$*"
		expect 0 "$tw" info c.tw
		grep -q 'could not be stopped\|stood in their first\|did not stop them' out || return 0
	done
	fail "never whole: $*"
}

for options in "-t app:{leaf,work} --returns" "-t libc:{malloc,free,fork}" "--count app:leaf -t app:work" "--args=raw --stack 2 --when \$1>3 -t app:leaf"; do
	# shellcheck disable=SC2086
	record $options
	shows '^events *[1-9]'
	shows "the recording ended after 150 ms (--time)"
done

# What would be done, which is not done; by the name that the program was started by, too.
expect 0 "$tw" attach --dry-run -o dry.tw -t 'app:{leaf,work}' --returns "$program"
shows "^functions  2 functions at their entries or sleds$"
shows "^memory  *16.0 MiB for events in 4 threads"
shows "^a call  *about 42 ns with its end"
shows "^the end  *after 60 s, after 10,000,000 events"
[ ! -e dry.tw ] || fail "a capture was made"
is_as_before "after a dry run"
ln -s app linked
LD_PRELOAD=$agent ./linked >linked.answer &
linked=$!
wait_until sleeps $linked
expect 0 "$tw" attach --dry-run --allow-nothing -t linked:leaf $linked
shows "^functions  1 function at"
kill $linked
wait $linked 2>/dev/null

# Libraries that the program has opened are known before: what they have, and what they do not have.
echo 'int opened(int x) { volatile int y = x * 3; return y + 1; } int other(int x) { volatile int y = x * 5; return y - 1; }' >opened.c
gcc -O1 -shared -fPIC -o libopened.so opened.c -Wl,--build-id || fail "the library does not compile"
LD_PRELOAD=$agent ./app opener >opener.answer &
opener=$!
wait_until grep -qs libopened "/proc/$opener/maps"
wait_until sleeps $opener
expect 0 "$tw" attach --dry-run -t 'libopened:_' $opener
shows "^functions  2 functions at"
expect 2 "$tw" attach -t 'libopened:opend' $opener
says "-t 'libopened:opend' can match nothing: libopened has no function 'opend' (did you mean 'opened'?)"
says 'the process is left alone'
expect 0 "$tw" attach --force --time 100ms -o o.tw -t 'libopened:_' $opener
! grep -q 'matches nothing yet' err || fail "a library that is there: $(cat err)"
expect 0 "$tw" info o.tw
shows '^events *[1-9]'
kill $opener
wait $opener 2>/dev/null

# Root's command goes on as the user of the program: with the agent from the start, and without it.
is_of_other_user() {
	grep -q '^Uid:.65534.65534' "/proc/$1/status"
}
rights=+sys_ptrace,+dac_override
# The folder that ./run test names where /dev/shm is small is root's alone.
shm=${TRACEWHEEL_SHM-}
unset TRACEWHEEL_SHM
ways=("$agent" "")
[ "$(id -u)" = 0 ] && setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps $rights --ambient-caps $rights true || ways=()
for preload in "${ways[@]}"; do
	CHANGES_USER=1 LD_PRELOAD=$preload ./app opener >opener.answer &
	opener=$!
	wait_until is_of_other_user $opener
	# Without rights it cannot look into this folder, and finds no rings in it.
	if [ -n "$preload" ]; then
		mkdir -m 700 shm
		TRACEWHEEL_SHM=$PWD/shm expect 125 "$tw" attach --force --time 50ms -o other.tw -t 'libopened:_' $opener
		says "may not open the rings in $PWD/shm/"
		rm -r shm
	fi
	expect 0 "$tw" attach --force --time 50ms -o other.tw -t 'libopened:_' $opener
	expect 0 "$tw" info other.tw
	shows '^events *0'
	shows 'note  *functions of libopened are traced only where other objects call them: the program may not look into the folder of its file'
	chmod 711 .
	expect 0 "$tw" attach --force --time 300ms -o other.tw -t 'libopened:_' $opener
	says "^tracewheel: process $opener belongs to user nobody: this command goes on as that user\.$"
	expect 0 "$tw" info other.tw
	shows '^events *[1-9]'
	"$tw" attach -q --flight --time 10s -o flight.tw -t 'libopened:_' $opener &
	command=$!
	wait_until grep -qs '/image-' "/proc/$opener/maps"
	expect 0 "$tw" snapshot -q -o now.tw $opener
	is "$(cat out)" now.tw
	expect 0 "$tw" detach -q $opener
	is "$(cat err)" ''
	wait $command
	is "$(stat -c %u other.tw now.tw | uniq)" 65534
	rm -rf now.tw
	chmod 700 .
	kill $opener
	wait $opener 2>/dev/null
done
[ -z "$shm" ] || export TRACEWHEEL_SHM=$shm

# Other limits.
expect 0 "$tw" attach --force --events 100 -t app:_ -o c.tw "$program"
says "after 100 events (--events)"
expect 0 "$tw" attach --force --rate 100/s -t 'app:_ if $1 >= 0' -o c.tw "$program"
says "more than 100 events a second (--rate)"

# From another terminal.
"$tw" attach --force -t app:_ -o d.tw "$program" 2>err &
command=$!
wait_until state "attached by process $command"
expect 2 "$tw" attach
expect 125 "$tw" attach -t app:_ -o e.tw "$program"
says "is being recorded already, by process $command; .tracewheel detach $program. ends that"
expect 0 "$tw" detach "$program"
wait $command || fail "the exit code of attach is $?"
is_as_before "after detach"
expect 0 "$tw" detach "$program"
says "was not recorded any more"

# Several at once: each records, or says why not.
for number in 1 2 3; do
	"$tw" attach --force --time 100ms -t app:_ -o t$number.tw "$program" 2>err$number &
	eval "command$number=$!"
done
codes=
for command in $command1 $command2 $command3; do
	wait "$command"
	codes="$codes $?"
done
case $codes in
*\ 0*) ;;
*) fail "none of three recordings at once was made:$codes" ;;
esac
is "$(echo "$codes" | tr ' ' '\n' | grep -cvx '0\|125\|')" 0 "exit codes beside 0 and 125:$codes"
grep -q 'is being recorded already\|has just woken\|the recording ended after' err1 || fail "$(cat err1)"
is_as_before "after three at once"

# The program is stopped while it is recorded, and the recording ends meanwhile.
# On a busy machine it may have ended before: then with more time.
for ms in 500 1000 2000 4000 8000; do
	"$tw" attach --force --time ${ms}ms -t app:_ -o d.tw "$program" 2>err &
	command=$!
	until state "attached by process $command" || ! kill -0 $command 2>/dev/null; do
		sleep 0.05
	done
	kill -STOP "$program"
	stopped=1
	state "attached by process $command" || stopped=
	wait $command || fail "the exit code of attach is $?"
	kill -CONT "$program"
	[ -z "$stopped" ] || break
	rm -rf d.tw
	wait_until state dormant
done
[ -n "$stopped" ] || fail "it was never stopped while it was recorded"
grep -q "the recording ended after \($ms ms\|$((ms / 1000)) s\)" err || fail "$(cat err)"
wait_until state dormant
# It leaves by itself, when it goes on.
has_left() {
	! grep -q '/control\|/image-' "/proc/$program/maps"
}
wait_until has_left
is_as_before "after a stop"

# The command is killed: the program ends the recording itself, and `detach`, or the next `attach`, takes back what it wrote.
export TRACEWHEEL_LEASE_MS=1000
for then in detach attach; do
	"$tw" attach -q --force -t app:_ -o k.tw "$program" 2>err &
	command=$!
	wait_until state "attached by process $command"
	kill -KILL $command
	wait $command 2>/dev/null
	wait_until state dormant
	if [ $then = detach ]; then
		expect 0 "$tw" detach "$program"
	else
		TRACEWHEEL_LEASE_MS='' expect 0 "$tw" attach --force --time 50ms -t libc:malloc -o c.tw "$program"
	fi
	is_as_before "after kill and $then"
	expect 0 "$tw" recover k.tw
done

# It is stopped for longer than its lease: then it says so.
"$tw" attach --force -t app:_ -o s.tw "$program" 2>stopped &
command=$!
wait_until state "attached by process $command"
kill -STOP $command
wait_until "$tw" detach -q "$program"
is_as_before "while the command is stopped"
kill -CONT $command
wait $command || fail "the exit code of attach is $?"
is_as_before "after the command has gone on"
unset TRACEWHEEL_LEASE_MS
end

# A child that is forked by a program with a sleeping agent has one, too; one that has ended has none.
begin
LD_PRELOAD=$agent python3 -c 'import os, time
if os.fork() and not os.fork(): os._exit(0)
time.sleep(30)' &
parent=$!
# child TEST...: one of its children for which the test is true.
child() {
	for child in $(cat "/proc/$parent/task/$parent/children"); do
		! "$@" "$child" || return 0
	done
	return 1
}
has_ended() {
	grep -q 'State:.*Z' "/proc/$1/status"
}
wait_until child sleeps
expect 0 "$tw" attach --time 50ms -t libc:_ --force -o c.tw "$child"
sleeper=$child
wait_until child has_ended
expect 127 "$tw" attach "$child"
says "has ended"
kill $parent "$sleeper"
wait $parent 2>/dev/null

# A program whose first thread has ended ends with its last one, by itself; a child that one of its threads has forked, too.
LD_PRELOAD=$agent expect 0 timeout -s KILL 60 ./app first
is "$(grep -c '^end$' out)" 2 "processes that have ended as they should"

# A program that keeps capabilities, and then changes its group: libc ends one whose threads do not agree.
if [ "$(id -u)" = 0 ] && command -v setpriv >setpriv.path; then
	expect 0 env LD_PRELOAD="$agent" setpriv --reuid 1 --regid 1 --clear-groups id -u
	is "$(cat out)" 1 "the user"
fi

# refused CODE SENTENCE PID: by both commands alike.
refused() {
	expect "$1" "$tw" attach --force -o c.tw "$3"
	says "$2"
	expect "$1" "$tw" detach "$3"
	says "$2"
}

# start TEST [VARIABLE=VALUE] COMMAND...: in the background, until the test is true of it.
start() {
	local ready=$1
	shift
	env "$@" &
	other=$!
	wait_until $ready $other
}
stop() {
	kill "$@"
	wait "$@" 2>/dev/null
}
name=nap$$
cp "$(command -v sleep)" $name
executes() {
	grep -qs "^$name\$" "/proc/$1/comm"
}

refused 127 "there is no process 999999999" 999999999
for number in 0 -1 4294967297 12x ''; do
	expect 2 "$tw" attach -- "$number"
	expect 2 "$tw" detach -- "$number"
done
start executes ./$name 30
expect 127 "$tw" detach $other
says "has no agent: nothing is recorded there"
stop $other
"$tw" record -q --force -o r.tw ./$name 30 2>record.err &
parent=$!
recorded() {
	executes "$1" && grep -qs '/control' "/proc/$1/maps"
}
wait_until child recorded
expect 127 "$tw" attach "$child"
says "has been recorded since it was started, by process $parent"
stop "$child" "$parent"
filters() {
	grep -q 'Seccomp:.*2' "/proc/$1/status"
}
start filters LD_PRELOAD="$agent" ./app filtered
expect 125 "$tw" attach "$other"
says "has set a seccomp filter"
stop "$other"
start filters ./static filtered
refused 127 "is statically linked" "$other"
stop "$other"
start sleeps LD_PRELOAD="$agent" ./$name 30
first=$other
start sleeps LD_PRELOAD="$agent" ./$name 30
expect 127 "$tw" attach --name $name
says "2 processes named '$name' have an agent"
says "^tracewheel:   $first"
# Another tracer.
traced() {
	grep -q 'TracerPid:.*[1-9]' "/proc/$1/task"/*/status
}
if command -v strace >strace.path; then
	strace -f -o strace.out -p "$first" 2>strace.err &
	tracer=$!
	wait_until traced "$first"
	expect 125 "$tw" attach "$first"
	says "is traced by process $tracer (strace)"
	stop $tracer
fi
stop "$first" "$other"
refused 127 "there is no process $first" "$first"
expect 2 "$tw" attach --on-full block "$program"
says "may-stop-program"
expect 2 "$tw" attach --time never "$program"
expect 127 "$tw" attach --name nobody
says "no process named 'nobody' has an agent"
# A name that no other test's program has.
cp app app$$
start sleeps LD_PRELOAD="$agent" ./app$$
cat >log.c <<'C'
#include <stdarg.h>
#include <stdio.h>
static void put(const char *format, va_list list)
{
	FILE *file = fopen("logged", "a");
	vfprintf(file, format, list);
	fputc('\n', file);
	fclose(file);
}
void syslog(int priority, const char *format, ...) { va_list list; va_start(list, format); put(format, list); va_end(list); }
void __syslog_chk(int priority, int flag, const char *format, ...) { va_list list; va_start(list, format); put(format, list); va_end(list); }
C
gcc -shared -fPIC -o log.so log.c
expect 0 env LD_PRELOAD="$work/log.so" "$tw" attach --name app$$ --time 50ms -t "app$$:_" --force -o c.tw
# The log of the system has who did it to what, and why it ended.
grep -q "^attached to process $other (app$$) of user $(id -u), by user [0-9]*$" logged || fail "not logged: $(cat logged)"
grep -q "^detached from process $other (app$$) of user $(id -u), by user [0-9]*: after 50.*ms" logged || fail "not logged: $(cat logged)"
stop "$other"
kill -STOP "$program"
wait_until grep -q 'State:.*T' "/proc/$program/status"
refused 125 "is stopped: continue it first" "$program"
kill -CONT "$program"
is_as_before "at the end"
end
