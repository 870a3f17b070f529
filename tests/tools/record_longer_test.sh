#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    With `record --longer` each call is an event or is counted, never both and never neither: also one that calls itself, tail
#         calls, is left by longjmp, is under way at fork, exec, exit or kill -9, or is made by a signal handler. Each call that was
#         long is recorded, with its time, inside those around it; none is that was short; every view says what is left out.
#         With --children all calls in a long one are recorded with it, and no others; those that found no space until then are counted,
#         and their number stands where they were.
# Method  A program counts its own calls in a file that it maps, and is recorded; for each function events and counts add up to its
#         numbers. The events of each thread are read as a stack, in order of time. Limits are far from the lengths of the calls.
build=$1
. "$(dirname "$0")/lib.sh"

cat >work.c <<'C'
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#define BODY __asm__ volatile("nop;nop;nop;nop;nop;nop;nop;nop")
#define FN __attribute__((noinline)) void
enum { QUICK, NAP, AROUND, DEEP, TAIL, JUMPS, HANDLED, FORKS, ENDS, PID };
static _Atomic unsigned long *own;
static jmp_buf back;
FN quick(void) { BODY; }
FN nap(int ms)
{
	struct timespec left = {ms / 1000, ms % 1000 * 1000000L};
	while (nanosleep(&left, &left))
		;
	BODY;
}
FN around(int ms)
{
	own[QUICK] += 2, own[NAP]++;
	quick();
	nap(ms);
	quick();
}
FN deep(int n, int ms)
{
	if (n)
		own[DEEP]++, deep(n - 1, ms);
	else
		own[NAP]++, nap(ms);
	BODY;
}
FN tail(int ms) { nap(ms); }
FN jumps(int ms)
{
	own[NAP]++;
	nap(ms);
	longjmp(back, 1);
}
FN handled(void) { BODY; }
static void on_alarm(int s) { own[HANDLED]++, handled(); }
FN forks(void)
{
	int status;
	pid_t child = fork();
	nap(40);
	if (!child)
		return;
	waitpid(child, &status, 0);
	BODY;
}
FN ends(const char *how)
{
	usleep(40000);
	if (!strcmp(how, "exit"))
		exit(0);
	if (!strcmp(how, "exec"))
		execl("/bin/true", "true", (char *)0);
	own[PID] = (unsigned long)getpid();
	if (!strcmp(how, "kill"))
		own[QUICK]++, quick(), kill(getpid(), SIGKILL);
	BODY;
}
static void *run(void *arg)
{
	for (int i = 0; i < 20000; i++)
		own[QUICK]++, quick();
	own[AROUND] += 2;
	around(0);
	around(40);
	return 0;
}
int main(int c, char **v)
{
	struct itimerval every = {{0, 500}, {0, 500}}, off = {0};
	int fd = open(v[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
	pthread_t t[3];
	if (ftruncate(fd, 128))
		return 1;
	own = mmap(0, 128, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &every, 0);
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], 0, run, 0);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], 0);
	setitimer(ITIMER_REAL, &off, 0);
	own[DEEP] += 2;
	deep(300, 40);
	deep(300, 0);
	own[TAIL]++, own[NAP]++;
	tail(40);
	for (int i = 0; i < 3; i++) {
		own[JUMPS]++;
		if (!setjmp(back))
			jumps(i ? 40 : 0);
		own[AROUND]++;
		around(40);
	}
	own[FORKS]++, own[NAP] += 2;
	forks();
	own[QUICK]++;
	quick();
	own[ENDS]++;
	ends(v[2]);
	return 0;
}
C
gcc -O2 -fno-inline -fno-ipa-icf -fno-ipa-ra -o work work.c -lpthread || fail "no compiler"

cat >judge.py <<'P'
import collections, json, struct, sys
own, events, report, how, has_exceptions = sys.argv[1:5] + [sys.argv[5] == "1"]
numbers = struct.unpack("10Q", open(own, "rb").read(80))
made = dict(zip("quick nap around deep tail jumps handled forks ends".split(), numbers))
limit = 20000000
stacks, calls, ends, last, long_ones, thrown = collections.defaultdict(list), collections.Counter(), collections.Counter(), {}, collections.Counter(), 0
for line in open(events):
    e = json.loads(line)
    if e["kind"] not in ("call", "return_from", "exception_from"):
        continue
    thread, name = (e["process"], e["thread"]), e["function"]
    assert e["ns"] >= last.get(thread, 0), ("out of order", last.get(thread), line)
    last[thread] = e["ns"]
    stack = stacks[thread]
    if e["kind"] == "call":
        calls[name] += 1
        stack.append((name, e["ns"]))
        continue
    thrown += e["kind"] == "exception_from"
    # What a jump left has no end.
    while not has_exceptions and stack and stack[-1][0] == "jumps" and name != "jumps":
        stack.pop()
    assert stack and stack[-1][0] == name, ("not nested", line, stack)
    took = e["ns"] - stack.pop()[1]
    # Times of the capture are without what the tracer itself took; clocks differ by less than this.
    assert took >= limit * 0.999, ("short", name, took)
    ends[name] += 1
    long_ones[name] += 1
doc = json.load(open(report))
counted = collections.Counter()
for row in doc["counted_by_function"]:
    counted[row["function"]] += row["calls"]
for name, number in made.items():
    assert calls[name] + counted[name] == number, (name, calls[name], counted[name], number)
# Long by far, with all that was around.
assert calls["around"] >= 6 and ends["around"] >= 6, calls
assert calls["deep"] >= 301 and ends["deep"] >= 301, calls
assert calls["tail"] == ends["tail"] == 1, calls
assert calls["forks"] >= 1, calls
assert calls["nap"] >= 3 + 1 + 1 + 2 + 3 + 2, calls
assert calls["quick"] < 100 and calls["handled"] < 100, calls
# Under way at the end, for so long already.
assert calls["ends"] == 2 and ends["ends"] == 0, (how, calls)
assert thrown >= 2 if has_exceptions else thrown == 0, thrown
print("judged", dict(calls), dict(counted))
P

functions='work:{quick,nap,around,deep,tail,jumps,handled,forks,ends}'
judge() { # HOW [OPTION]: both processes end in a call that is long already.
	"$tw" record --longer 20ms ${2+"$2"} --follow-fork -t "$functions" --force -o out.tw -- ./work own "$1" >out 2>err
	"$tw" print --format json out.tw >events 2>err || fail "print: $*"
	says 'only calls of 20.0 ms or longer are recorded, and self times contain shorter ones: .* others of 9 functions are counted'
	"$tw" report --json out.tw >out 2>err || fail "report: $*"
	python3 judge.py own events out "$1" "${2+1}" >judged 2>&1 || fail "$* $(cat judged)"
	cat judged
}
judge exit
judge exec
judge kill
judge exit --exceptions
expect 0 "$tw" report out.tw
shows '^only calls of 20.0 ms or longer are recorded, and self times contain shorter ones: .* in a table of their own'
expect 0 "$tw" info out.tw
shows '^counted  *only calls of 20.0 ms or longer'
expect 0 "$tw" info --json out.tw
is "$(json "d['counted']['longer_ns']")" 20000000
expect 0 "$tw" print --slowest 9 --show-waits out.tw
shows 'work:nap'

# ---- with the calls in them: threads, jumps, a forked child, a signal handler, a kill -9, and too little memory for all of them
cat >full.c <<'C'
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#define FN __attribute__((noinline, noipa)) void
enum { LEAF, BIG, JUMPS, HANDLED, ENDS };
static _Atomic unsigned long *own;
static __thread jmp_buf back;
FN leaf(int n) { own[LEAF]++; }
static void nap(int ms)
{
	struct timespec left = {0, ms * 1000000L};
	while (nanosleep(&left, &left))
		;
}
FN big(int leaves, int ms)
{
	own[BIG]++;
	for (int i = 0; i < leaves; i++)
		leaf(i);
	nap(ms);
	leaf(-1);
}
FN jumps(int leaves)
{
	own[JUMPS]++;
	for (int i = 0; i < leaves; i++)
		leaf(i);
	longjmp(back, 1);
}
FN handled(void) { own[HANDLED]++; leaf(0); }
static void on_alarm(int s) { handled(); }
FN ends(void)
{
	own[ENDS]++;
	leaf(1);
	nap(40);
	leaf(2);
	kill(getpid(), SIGKILL);
}
static void *run(void *arg)
{
	big(10, 0);
	big(3000, 40);
	for (int i = 0; i < 3; i++) {
		if (!setjmp(back))
			jumps(5);
		leaf(7);
		big(10 + i, i == 1 ? 0 : 40);
		leaf(8);
	}
	return arg;
}
int main(int c, char **v)
{
	struct itimerval every = {{0, 700}, {0, 700}}, off = {0};
	int fd = open(v[1], O_RDWR | O_CREAT | O_TRUNC, 0600), status;
	pthread_t t[3];
	if (ftruncate(fd, 128))
		return 1;
	own = mmap(0, 128, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], 0, run, 0);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], 0);
	if (!fork()) {
		run(0);
		_exit(0);
	}
	wait(&status);
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &every, 0);
	for (int i = 0; i < 200; i++)
		big(300, 0);
	big(300, 40);
	setitimer(ITIMER_REAL, &off, 0);
	ends();
	return 0;
}
C
gcc -g -O2 -o full full.c -lpthread || fail "no compiler"
cat >judge_children.py <<'P'
import collections, json, struct, sys
own, events, report, kept = open(sys.argv[1], "rb").read(), sys.argv[2], json.load(open(sys.argv[3])), int(sys.argv[4])
made = dict(zip("leaf big jumps handled ends".split(), struct.unpack("5Q", own[:40])))
calls, stacks, whole, lost, last = collections.Counter(), collections.defaultdict(list), collections.defaultdict(list), collections.Counter(), {}
for line in open(events):
    e = json.loads(line)
    thread = (e["process"], e["thread"])
    assert e["ns"] >= last.get(thread, 0), ("out of order", last.get(thread), line)
    last[thread] = e["ns"]
    if e["kind"] == "lost":
        lost[thread] += e["nested"]
        stacks[thread][-1][2] += e["nested"]
    elif e["kind"] == "call":
        calls[e["function"]] += 1
        stacks[thread].append([e["function"], [], 0, e["ns"]])
    elif e["kind"] == "return_from":
        name, inside, left_out, ns = stacks[thread].pop()
        assert name == e["function"], ("not nested", line)
        if stacks[thread]:
            stacks[thread][-1][1].append(name)
        else:
            assert e["ns"] - ns >= 20000000 * 0.999, ("short", line)
            whole[thread].append((name, inside.count("leaf"), left_out, inside.count("handled")))
# The second leaf in ends() begins behind the time: it is recorded before the kill, with what came before it.
assert [(s[0][0], s[0][1].count("leaf")) for s in stacks.values() if s] == [("ends", 2)], stacks
# Others may have had no processor for so long, also before those that are long in any case.
large = {thread: [w for w in calls_of if w[1] + w[2] == 3001] for thread, calls_of in whole.items()}
runs, main = [whole[t] for t in large if large[t]], [whole[t] for t in large if not large[t]]
assert len(runs) == 4 and len(main) == 1, whole
for run in runs:
    (big,) = (w for w in run if w[1] + w[2] == 3001)
    short = [w for w in run if w[1] < 100]
    assert {11, 13} <= {leaves for name, leaves, *_ in short}, run
    assert (big[2] == 0) == (kept > 3001), run
    assert big[1] <= kept + 1, run
assert main[0][-1][1] == 301 and main[0][-1][2] == 0, main
counted = collections.Counter()
for row in report["counted_by_function"]:
    counted[row["function"]] += row["calls"]
for name, number in made.items():
    assert calls[name] + counted[name] == number, (name, calls[name], counted[name], number)
assert calls["jumps"] == 0 and counted["handled"] and counted["leaf"] > 60000, (calls, counted)
assert report["account"]["missing"]["left_out"]["events"] == sum(lost.values()) and report["account"]["missing"]["nested"]["events"] == 0, lost
print("judged", dict(calls), dict(counted), dict(lost))
P
children() { # KEPT OPTION...
	"$tw" record --longer 20ms --follow-fork -t 'full:{leaf,big,jumps,handled,ends}' --force -o out.tw "${@:2}" -- ./full own >out 2>err
	"$tw" print --format json out.tw >events 2>err || fail "print: $*"
	says 'only calls of 20.0 ms or longer, and the calls in them, are recorded'
	expect 0 "$tw" report --json -n 0 out.tw
	mv out report.json
	python3 judge_children.py own events report.json "$1" >judged 2>&1
}
children 9999 --children || fail "$(cat judged)"
cat judged
# Six words for a call and its return: the newest 682 are kept.
children 683 --children=32K || fail "$(cat judged)"
cat judged
expect 0 "$tw" info out.tw
shows '^lost  *left_out 9,2'
expect 0 "$tw" print --tree out.tw
shows 'LOST 2,31'
! python3 judge_children.py own events report.json 9999 2>judged || fail "all calls were kept, says the judge"

# A function whose returns cannot be seen is counted; so is one of --count.
expect 0 "$tw" record --longer 20ms --count work:nap -t 'work:{around,nap}' --force -o out.tw -- ./work own return
expect 0 "$tw" info out.tw
shows 'of 1 function only calls of 20.0 ms or longer are recorded, and self times contain shorter ones: .* calls of 2 functions'
expect 0 "$tw" report --json out.tw
is "$(json "[f['function'] for f in d['by_function']]")" "['around']"

expect 2 "$tw" record --longer 20ms --stack 2 -- ./work own exit
says -- '--longer and --stack exclude each other: which calls are long is known when they end'
expect 2 "$tw" record --longer soon -- ./work own exit
says -- "--longer is a duration, such as 10ms or 50us, not 'soon'"
exit 0
