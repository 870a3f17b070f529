#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    --snapshot-on PATTERN if EXPR: a snapshot for each call that fulfils the condition and for no other, with that call as the last thing that
#         its thread did; calls without a snapshot are counted exactly; bad conditions are refused.
# Method  A program writes down which calls are slow, which fail, and in which thread. Each snapshot's trigger, and the last call of its
#         thread, is one of these; snapshots and counted calls together are all of them. The recorder is stopped while a call occurs.
build=$1
. "$(dirname "$0")/lib.sh"

cat >app.c <<'C'
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
enum { THREADS = 4 };
static int rounds, pause_us;
static FILE *history;
enum { SLOW_NS = 3000000 };
static long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000 + t.tv_nsec;
}
__attribute__((noinline)) int leaf(int n) { __asm__ volatile("" : "+r"(n)); return n; }
/* Negative for a request that failed. */
__attribute__((noinline)) int handle(int n, const char *name, long size)
{
	for (int i = 0; i < 20; i++)
		leaf(i);
	if (n % 100 == 42) {
		usleep(4000);
		fprintf(history, "slow %d %ld\n", n, syscall(SYS_gettid));
	}
	if (n % 100 == 77)
		errno = EBADF;
	return n % 100 == 77 ? -n : (int)size + (int)strlen(name);
}
__attribute__((noinline)) double ratio(double a, double b) { __asm__ volatile(""); return a / b; }
static void *serve(void *arg)
{
	for (int i = 0; i < rounds * 100; i++) {
		int n = (int)(long)arg * 1000000 + i;
		long begun = now();
		handle(n, i % 100 == 13 ? "odd" : "even", i % 100 == 55 ? 1 << 20 : 10);
		/* Others may have waited for the processor; the time in which the tracer made a ring ready is not theirs. */
		if (now() - begun >= SLOW_NS)
			fprintf(history, "seemed %d %ld\n", n, syscall(SYS_gettid));
		if (i % 100 == 99)
			usleep(pause_us);
	}
	return 0;
}
int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	rounds = atoi(argv[1]);
	pause_us = atoi(argv[2]);
	history = fopen("history", "w");
	setlinebuf(history);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], 0, serve, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], 0);
	ratio(1, argc > 3 ? 8 : 2);
	return open("/there/is/none", O_RDONLY) != -1 || argc < 1;
}
C
gcc -g -O2 -fno-ipa-sra -fno-ipa-cp -o app app.c -lpthread || fail "no compiler"

# record ARGUMENTS -- PROGRAM...: in out what the command said; captures are s.tw, s-2.tw ...
record() {
	rm -rf s.tw s-*.tw
	expect 0 "$tw" record --flight -t 'app:_' --args --force -o s.tw "$@"
	# Until the last one that a process of its own writes is there.
	! ls s.part-* >/dev/null 2>&1 || fail "a folder is left"
}
written() {
	find . -maxdepth 1 -name 's*.tw' | wc -l
}
# missed: how many calls had no snapshot of their own.
missed() {
	sed -n 's/^tracewheel: \([0-9,]*\) further calls\{0,1\} answered .*/\1/p' err | tr -d , | grep . || echo 0
}

# ---- slow calls: each snapshot is for one of them, and the call is the last of its thread ----

cat >compare.py <<'P'
import json, subprocess, sys
tw, names = sys.argv[1], sys.argv[2:]
slow = {tuple(map(int, line.split()[1:])) for line in open("history") if line.startswith("seemed")}
seen = set()
for name in names:
    trigger = json.loads(subprocess.check_output([tw, "info", "--json", name]))["trigger"]
    assert trigger["reason"].startswith("app:handle returned after "), trigger
    assert 3e6 <= trigger["call_ns"] < 10e9, trigger
    last = call = None
    lines = subprocess.check_output([tw, "print", "--format", "json", "--around-trigger", "--thread", str(trigger["thread"]), name], stderr=subprocess.DEVNULL)
    for event in map(json.loads, lines.splitlines()):
        last = event if "function" in event else last
        call = event if event["kind"] == "call" and event["function"] == "handle" else call
    assert (last["kind"], last["function"]) == ("return_from", "handle"), last
    n = call["args"][0]
    assert (n, trigger["thread"]) in slow, (n, trigger["thread"])
    assert n not in seen, n
    seen.add(n)
print(len(slow), len(names))
P
record --snapshot-on 'app:handle if duration > 3ms' --every 0 --snapshots 1000 -- ./app "$(rounds 2 50)" 5000
# are_all: snapshots and counted calls together are the slow calls.
are_all() {
	local count=$(($(written) + $(missed))) least most
	least=$(grep -c slow history)
	most=$(grep -c seemed history)
	[ "$count" -ge "$least" ] && [ "$count" -le "$most" ] || fail "$count calls, and there were $least to $most"
}
are_all
[ "$(written)" -ge 1 ] || fail "no snapshot"
# compare.py reads what is here: the first call of each of four threads, which is one call, is for another folder.
(
	mkdir first && cp app first && cd first && record --snapshot-on app:serve --every 0 --snapshots 1 -- ./app 1 0
	[ "$(($(written) + $(missed)))" = 4 ]
) || fail "four calls: $(cat first/err)"
cp out seen.out
python3 -I -S compare.py "$tw" s*.tw >out 2>err || fail "a snapshot is not of a slow call"

# The tree begins with the call's thread, and has the others.
expect 0 "$tw" print --tree --around-trigger s.tw
shows '^the thread of the call:'
shows '^other threads:'
# It ends with the call; the end of the one before may be in the time as well.
sed '/^other threads:/,$d' out | grep -v 'still open' | tail -n 2 | grep -q ' ms .*}.* app:handle$' || fail "the tree does not end with the call"
expect 0 "$tw" report --around-trigger --json s.tw
json 'd["trigger"]["call_ns"] > 3000000 or 1/0'
expect 0 "$tw" print --tree --around-trigger=1ms s.tw
expect 2 "$tw" print --around-trigger --from 1 s.tw
says "time of its own"

# Calls that are not recorded ask for a snapshot too; the view says why the call is not in it.
record --when 'n == 5 and size > 0' --snapshot-on 'app:handle if duration > 3ms' --snapshots 1 -- ./app 1 0
expect 0 "$tw" print --tree --around-trigger s.tw
says 'was overwritten before it could be copied'

# --snapshots and --every hold for calls.
record --snapshot-on 'app:handle if duration > 3ms' --every 0 --snapshots 1 -- ./app 2 1000
is "$(written)" 1
are_all
record --snapshot-on 'app:handle if duration > 3ms' -- ./app 2 1000
is "$(written)" 1 "--every is 10 s"
record --snapshot-on 'app:handle if duration > 20s' -- ./app 1 0
is "$(written) $(missed)" "0 0" "no call is so slow"

# ---- other conditions: how many calls fulfil each ----

# counts CONDITION CALLS
counts() {
	record --every 0 --snapshot-on "$1" -- ./app 1 0
	is $(($(written) + $(missed))) "$2" "$1"
}
counts 'app:handle if result < 0' 4
counts 'app:handle if result < 0 and errno == 9' 4
counts 'app:handle if result < 0 and errno == 8' 0
counts 'app:handle if size == 1048576' 4
counts 'app:handle if size > 1000 and duration > 1ns' 4
counts 'app:handle if name == "odd"' 4
counts 'app:handle if $1 == 1000003 and duration > 0' 1
counts 'app:handle if $1 == 1000003' 1
counts 'app:leaf' 8000
counts 'app:ratio if result == 0.5' 1
counts 'app:ratio if result < 0.5' 0
# The last call before the end of the program; a library's, by its prototype.
record --snapshot-on 'libc:open if result < 0 and errno == 2' -- ./app 1 0
is "$(written) $(missed)" "1 0"
says 'libc:open returned after'

# A function that is counted, and one whose returns nobody asked for, without -t.
rm -rf s.tw
expect 0 "$tw" record --flight --count 'app:leaf' --snapshot-on 'app:leaf if result == 7 and $1 == 7' --snapshots 1 --force -o s.tw -- ./app 1 0
is $(($(written) + $(missed))) 400
rm -rf s.tw
expect 0 "$tw" record --flight --snapshot-on 'app:handle if duration > 3ms' --snapshots 1 --force -o s.tw -- ./app 1 0
are_all

# ---- calls that do not return ----

cat >jumps.cc <<'C'
#include <csetjmp>
#include <stdexcept>
#include <unistd.h>
static jmp_buf back;
extern "C" __attribute__((noinline)) int risky(int n)
{
	if (n % 3 == 1)
		throw std::runtime_error("no");
	if (n % 3 == 2)
		longjmp(back, 1);
	usleep(10);
	return n;
}
extern "C" __attribute__((noinline)) int chain(int n)
{
	__asm__ volatile("nop;nop;nop;nop;nop;nop;nop;nop");
	return risky(n);
}
int main()
{
	volatile int sum = 0;
	for (volatile int n = 0; n < 3000; n++)
		try {
			if (!setjmp(back))
				sum += chain(n);
		} catch (std::runtime_error &) {
		}
	return sum == 0;
}
C
g++ -g -O2 -o jumps jumps.cc || fail "no compiler"
rm -rf s.tw s-*.tw
expect 0 "$tw" record --flight --exceptions -t 'jumps:_' --snapshot-on 'jumps:risky if duration > 0' --snapshot-on 'jumps:chain if result == 2997' --every 0 --snapshots 1 --force -o s.tw -- ./jumps
is $(($(written) + $(missed))) 1001 "calls that return, and one of the chain"

# ---- a child that is followed, and one that is not ----

cat >forks.c <<'C'
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) int deal(int n) { __asm__ volatile("nop;nop;nop;nop;nop" : "+r"(n)); return n; }
int main(void)
{
	deal(1);
	if (!fork()) {
		for (int i = 0; i < 10; i++)
			deal(5);
		exit(0);
	}
	wait(0);
	return deal(0);
}
C
gcc -g -O2 -o forks forks.c || fail "no compiler"
for how in --follow-fork -q; do
	rm -rf s.tw s-*.tw
	expect 0 "$tw" record --flight $how -t 'forks:_' --snapshot-on 'forks:deal if result == 5' --every 0 --force -o s.tw -- ./forks
	is "$(($(written) > 0))" $((${#how} > 2)) "$how"
done

# ---- refusals ----

refused() {
	expect 2 "$tw" record --flight -t 'app:_' -o s.tw --snapshot-on "$1" -- ./app 1 0
	says "$2"
	is "$(grep -c . err)" "${3:-3}" "lines"
}
refused 'app:handle if weight > 3 and duration > 3' "no parameter 'weight'"
refused 'app:ratio if a > 2 and duration > 1' 'is in a vector register'
refused 'app:ratio if vector_double(0) > 2 and duration > 1' 'arguments in vector registers'
refused 'app:handle if exception' 'name the function that throws'
refused 'app:handle if $1 + $2 + $3 + $4 > duration' 'at most three'
refused 'app:handle if >' 'refused'
refused 'app:hande' 'did you mean' 2
refused 'sometimes' 'or calls'
expect 2 "$tw" record -o s.tw --snapshot-on app:handle -- ./app 1 0
says 'is for --flight'
# Without types a result has no sign; its number, and the duration, need none.
gcc -O2 -fno-ipa-sra -fno-ipa-cp -o bare app.c -lpthread || fail "no compiler"
expect 2 "$tw" record --flight -o s.tw --snapshot-on 'bare:handle if result < 0' -- ./bare 1 0
says 'it needs debug information, or a prototype'
rm -rf s.tw s-*.tw
expect 0 "$tw" record --flight --every 0 -o s.tw -t bare:handle --snapshot-on 'bare:handle if $7 == 14 and $1 == 1 and duration > 0' -- ./bare 1 0
is $(($(written) + $(missed))) 1
rm -rf s.tw s-*.tw
expect 0 "$tw" record --flight --every 0 -o s.tw -t bare:handle --args='int handle(int, str, long)' --snapshot-on 'bare:handle if result < 0' -- ./bare 1 0
is $(($(written) + $(missed))) 4 "by a prototype"
# Of several functions, those without the name are said.
rm -rf s.tw s-*.tw
expect 0 "$tw" record --flight -o s.tw -t 'app:_' --snapshot-on 'app:{handle,ratio} if n == 3 and duration > 20s' -- ./app 1 0
says "1 function that patterns name is without snapshots: for the condition 'n == 3 and duration > 20s'"
expect 0 "$tw" record -t 'app:handle' --force -o plain.tw -- ./app 1 0
expect 2 "$tw" print --around-trigger plain.tw
says 'snapshots of a flight recorder'
echo "all as it should be"
