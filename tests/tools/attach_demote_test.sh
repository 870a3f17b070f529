#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    `attach --rate` counts the functions that make too many events, and goes on with the others: each call is an event or is counted,
#         also of functions that several libraries call and of one that a library which is opened later has slots for; the next recording
#         begins anew; where every call is needed, the recording ends as it says. A slow disk changes nothing of it.
# Method  A program with two threads counts its own calls of each function while it is recorded from its first call to its last.
build=$1
. "$(dirname "$0")/lib.sh"
agent=$build/lib/libtracewheel-agent.so
program=
trap '[ -z "$program" ] || kill "$program" 2>/dev/null; rm -rf "$work"' EXIT

cat >far.h <<'C'
unsigned far_small(unsigned x);
C
cat >far.c <<'C'
__attribute__((noinline)) unsigned far_small(unsigned x) { __asm__ volatile("" : "+r"(x)); return x * 5 + 1; }
C
cat >near.c <<'C'
#include "far.h"
unsigned near_calls(unsigned n) { unsigned sum = 0; while (n--) sum += far_small(n); return sum; }
C
cat >app.c <<'C'
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "far.h"
static _Atomic unsigned long smalls, middles, works, fars;
__attribute__((noinline)) unsigned small(unsigned x) { __asm__ volatile("" : "+r"(x)); return x * 3 + 1; }
__attribute__((noinline)) unsigned middle(unsigned x)
{
	unsigned sum = 0;
	for (int i = 0; i < 100; i++)
		sum += small(x + i);
	smalls += 100;
	for (int i = 0; i < 20; i++)
		sum += far_small(x + i);
	fars += 20;
	return sum;
}
/* Rests, so that it and its caller stay below the limit. */
__attribute__((noinline)) unsigned work(unsigned x)
{
	unsigned sum = 0;
	for (int i = 0; i < 200; i++)
		sum += middle(x + i);
	middles += 200;
	nanosleep(&(struct timespec){0, 8000000}, NULL);
	return sum;
}
static void *run(void *rounds)
{
	for (long i = 0; i < (long)rounds; i++)
		works++, work(i);
	return NULL;
}
static void await(const char *name)
{
	while (access(name, F_OK))
		usleep(2000);
}
int main(int argc, char **argv)
{
	pthread_t thread;
	long rounds = atol(argv[1]);
	await("go");
	pthread_create(&thread, NULL, run, (void *)rounds);
	run((void *)rounds);
	void *near = dlopen("./libnear.so", RTLD_NOW);
	unsigned (*near_calls)(unsigned) = dlsym(near, "near_calls");
	near_calls(1000);
	fars += 1000;
	pthread_join(thread, NULL);
	FILE *to = fopen("counts", "w");
	fprintf(to, "%lu %lu %lu %lu\n", smalls, middles, works, fars);
	fclose(to);
	rename("counts", "counted");
	await("end");
	return 0;
}
C
gcc -O2 -g -shared -fPIC -o libfar.so far.c &&
	gcc -O2 -g -shared -fPIC -o libnear.so near.c -L. -lfar -Wl,-rpath,"$PWD" &&
	gcc -O2 -g -o app app.c -L. -lfar -Wl,-rpath,"$PWD" -lpthread || fail "the program"

start() {
	rm -f go end counted
	LD_PRELOAD=$agent ./app "$1" &
	program=$!
	wait_until dormant
}

dormant() {
	grep -qs dormant "/proc/$program/task"/*/comm
}

# attach OPTIONS: until the program has done all of its calls.
attach_all() {
	LD_PRELOAD=${disk:-} "$tw" attach --force --on-full block --may-stop-program --events none "$@" -o a.tw "$program" 2>err &
	local command=$!
	wait_until grep -q attached err
	touch go
	wait_until test -e counted
	sleep 0.1
	"$tw" detach "$program" 2>/dev/null
	wait $command || fail "the exit code of attach is $?"
	touch end
	wait "$program" || fail "the program"
	program=
}

# Recorded and counted, by function: what the program counted.
check_counts() {
	expect 0 "$tw" report --json -n 0 a.tw
	python3 -I -S - "$@" <<-'EOT' || fail "counts of a.tw"
		import json, sys
		report = json.load(open("out"))
		small, middle, work, far = map(int, open("counted").read().split())
		recorded = {f["name"]: f["calls"] for f in report["by_function"]}
		counted = {f["name"]: f["calls"] for f in report.get("counted_by_function", [])}
		both = {name.split(":")[1].split("/")[0]: recorded.get(name, 0) + counted.get(name, 0) for name in {*recorded, *counted}}
		wanted = {"small": small, "middle": middle, "work": work, "far_small": far}
		assert sum(report["lost"].values()) == 0, report["lost"]
		assert both == wanted, (both, wanted)
		names = sorted(name.split(":")[1].split("/")[0] for name in counted)
		assert names == sys.argv[1:], (names, counted)
		for name in counted:
		    assert not sys.argv[1:] or recorded[name] > 0, "nothing of it was recorded before"
	EOT
}

start "$(rounds 120 800)"
attach_all -t 'app:{small,middle,work}' -t libfar:far_small --returns --rate 200k/s
says "calls of .*app:small.* were too many to be recorded, [0-9]* % of the events of that time: they are counted from then on (--rate)"
check_counts far_small small
expect 0 "$tw" report a.tw
shows "counted from .* on"

# On a slow disk too: what is stored late was not made late.
make_slow_disk
start "$(rounds 120 800)"
disk=$PWD/slow.so attach_all -t 'app:{small,middle,work}' -t libfar:far_small --returns --rate 200k/s
check_counts far_small small

# The next recording begins anew, and nothing is demoted that is below the limit.
start 20
attach_all -t 'app:{small,middle,work}' -t libfar:far_small --rate none
check_counts

# Every call is needed: the recording ends.
start "$(rounds 120 800)"
"$tw" attach --force -t 'app:small if $1 > 0' --rate 50k/s -o b.tw "$program" 2>err &
command=$!
wait_until grep -q attached err
touch go
wait $command || fail "the exit code of attach is $?"
says "more than 50,000 events a second (--rate)"
expect 0 "$tw" info --json b.tw
is "$(json 'd["stopped"]["by"]')" rate
touch end
wait_until test -e counted
wait "$program" || fail "the program"
program=
exit 0
