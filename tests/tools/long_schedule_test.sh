#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    With --long-schedule the capture tells which threads were ready to run and got no processor, as the kernel counts it,
#         never more than it counts; every view shows it, and without the option nothing of it is there.
# Method  Three threads share one processor until the kernel has counted enough for each, or for some seconds (a kernel may count
#         less than the time they waited); at their end they print its count.  They rest before and after, if asked to, so that
#         the samples of a recorder that gets little of a busy machine hold the beginning and the end.
build=$1
. "$(dirname "$0")/lib.sh"
[ -r /proc/self/schedstat ] || { echo "the kernel does not count: not tested" && exit 77; }

cat >crowd.c <<'EOT'
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static unsigned long long delay(void)
{
	unsigned long long run, waited = 0;
	char path[64];
	snprintf(path, sizeof path, "/proc/self/task/%ld/schedstat", syscall(SYS_gettid));
	FILE *file = fopen(path, "r");
	if (file && fscanf(file, "%llu %llu", &run, &waited) != 2)
		waited = 0;
	if (file)
		fclose(file);
	return waited;
}
static unsigned rest_us;
static pthread_barrier_t all;
static void *spin(void *arg)
{
	getppid();
	usleep(rest_us);
	pthread_barrier_wait(&all);
	unsigned long long until = delay() + 300000000;
	time_t latest = time(NULL) + (rest_us ? 3 : 1);
	while (delay() < until && time(NULL) < latest) {
		getppid();
		for (volatile int i = 0; i < 100000; i++)
			;
	}
	pthread_barrier_wait(&all);
	usleep(rest_us);
	printf("%ld %llu\n", syscall(SYS_gettid), delay());
	return arg;
}
int main(int argc, char **argv)
{
	rest_us = argc > 1 ? (unsigned)atoi(argv[1]) * 1000 : 0;
	pthread_t threads[3];
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof one, &one);
	pthread_barrier_init(&all, NULL, 3);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, spin, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
EOT
${CC:-cc} -O1 -pthread crowd.c -o crowd || fail "no program"
expect 0 "$tw" record -q -t libc:getppid --long-schedule 1 -o a.tw -- ./crowd 700
cp out counted
expect 0 "$tw" print --format json a.tw
cp out events
python3 - <<'EOT' || { [ $? -eq 77 ] && exit 77 || fail "not what the kernel counted"; }
import collections, json, sys
counted = {int(a): int(b) for a, b in (line.split() for line in open("counted"))}
told, calls = collections.Counter(), 0
for line in open("events"):
    event = json.loads(line)
    calls += event["kind"] == "call"
    if event["kind"] != "monitor":
        continue
    info = event["info"]
    assert event["event"] == "long_schedule", event
    assert info["run_delay"] >= 1000000 and info["timeout"] == info["run_delay"] // 1000000, event
    assert info["waits"] >= 1 and info["sampled"] > 0, event
    told[event["thread"]] += info["run_delay"]
assert calls > 0 and len(counted) == 3
assert set(told) <= set(counted), (told, counted)
if max(counted.values()) < 30000000:
    print("the kernel counted too little: nothing to compare")
    sys.exit(77)
assert any(told[thread] >= counted[thread] / 3 for thread in told), (told, counted)
# What a thread waits for between its last look at the count and its end is in no number that it can print.
for thread in told:
    assert told[thread] <= counted[thread] + 20000000, (told, counted)
EOT
expect 0 "$tw" print --format erlang a.tw
grep -q "^{monitor,'<0\.[0-9]*\.0>',long_schedule,\[{timeout,[0-9]*},{run_delay,[0-9]*},{waits,[0-9]*},{sampled,[0-9]*}\]}\.$" out ||
	fail "no Erlang term"
expect 0 "$tw" print a.tw
shows 'monitor <0\.[0-9]*\.0> long_schedule \[{timeout,'
expect 0 "$tw" print --format chrome a.tw
shows '"name":"monitor","args":{"what":"long_schedule '
expect 0 "$tw" report a.tw
shows '^ready without a processor: [0-9,]* times (long_schedule)$'
expect 0 "$tw" report --json a.tw
json 'all(row["times"] > 0 and 0 < row["longest"] <= row["waited"] for row in d["run_delays"]) and d["run_delays"] or 1 // 0'

# Not asked for, or never as long as that: nothing.
expect 0 "$tw" record -q -t libc:getppid -o none.tw -- ./crowd
expect 0 "$tw" record -q -t libc:getppid --long-schedule 3600000 -o long.tw -- ./crowd
for name in none long; do
	expect 0 "$tw" print $name.tw
	! grep -q monitor out || fail "$name.tw has system events"
	expect 0 "$tw" report --json $name.tw
	json '"run_delays" not in d or 1 // 0'
done

for bad in 0 -1 x 99999999999999999999; do
	expect 2 "$tw" record --long-schedule $bad -o bad.tw -- ./crowd
	says "long-schedule is a number of milliseconds, from 1 on"
done
expect 2 "$tw" record --long-schedule 10 --on-full overwrite -o bad.tw -- ./crowd
says 'long-schedule is not for --on-full overwrite'
[ ! -e bad.tw ] || fail "a capture of a wrong command line"
