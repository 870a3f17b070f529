#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    With --sched every view divides times of calls, also of later programs and children of the program, of streams, parts and
#         merged captures; where the kernel refuses, one sentence says so and all else is recorded; without it nothing of it is there.
# Method  Calls sleep and work for known times, in a program that a shell executes and that forks.  A seccomp filter refuses
#         perf_event_open().  tests/truth/sched.py checks the times themselves.
build=$1
. "$(dirname "$0")/lib.sh"

cat >rests.c <<'EOT'
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) void rests(void)
{
	nanosleep(&(struct timespec){0, 20000000}, NULL);
}
__attribute__((noinline)) void works(void)
{
	struct timespec now, end;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - end.tv_sec) * 1000000000L + now.tv_nsec - end.tv_nsec < 20000000);
}
int main(int argc, char **argv)
{
	int is_killer = argc > 1 && argv[1][0] == 'k', children = argc > 1 && !is_killer ? atoi(argv[1]) : 0;
	for (int i = 0; i < 80 && is_killer; i++)
		rests();
	if (is_killer)
		kill(getppid(), SIGKILL);
	rests();
	for (int i = 0; i < children; i++)
		if (fork() == 0) {
			rests();
			works();
			return 0;
		}
	works();
	while (wait(NULL) > 0)
		;
	return 0;
}
EOT
cat >filtered.c <<'EOT'
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
				     BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
				     BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
				     BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog program = {sizeof code / sizeof *code, code};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 77;
	execvp(argv[1], argv + 1);
	return 127;
}
EOT
for program in rests filtered; do
	${CC:-cc} -O1 $program.c -o $program || fail "no program"
done
record="$tw record --force --returns -t rests:{rests,works}"

# Refused: said once, and recorded.
expect 0 ./filtered $record --sched -o refused.tw -- ./rests
is "$(grep -c 'no states of threads are recorded, all else is' err)" 1
is "$(calls refused.tw rests works)" "1 1"
expect 0 "$tw" report --json refused.tw
json 'all("ran" not in row for row in d["by_function"]) or 1 // 0'

# Not asked for.
expect 0 $record -q -o plain.tw -- ./rests
expect 0 "$tw" report plain.tw
! grep -q preempted out || fail "a report without states has their columns"
expect 0 "$tw" report --csv plain.tw
! grep -q preempted out || fail "a table without states has their columns"
expect 2 $record --sched --flight -o flight.tw -- ./rests
says '--sched goes without --flight'

expect 0 $record --sched -o a.tw -- ./rests
! grep -q 'no states of threads' err || { cat err && exit 77; }
! grep -q 'context switch.* lost' err || { cat err && exit 77; }

# divided REST WORK: in the file out, how often each was called, all of it known, and where the time went.
divided() {
	python3 - "$1" "$2" <<'P' || fail "not divided as it was spent"
import json, sys
rests, works = map(int, sys.argv[1:])
rows = {row["function"]: row for row in json.load(open("out"))["by_function"]}
for row in rows.values():
    assert abs(row["ran"] + row["preempted"] + row["off"] + row["unknown"] - row["total"]) < 1e-8, row
    assert row["unknown"] < 1e-5 * row["calls"], row
row = rows["rests"]
assert row["calls"] == rests and row["off"] >= 0.02 * rests and row["ran"] < 0.01 * rests, row
row = rows["works"]
# The kernel charges the thread for its switches, which are in no state.
assert row["calls"] == works and row["ran"] >= 0.017 * works and row["off"] < 0.005 * works, row
P
}
expect 0 "$tw" report --json a.tw
divided 1 1
expect 0 "$tw" report a.tw
shows ' total .* ran  *preempted  *off '
expect 0 "$tw" report --csv --columns total,off a.tw
shows '^name,.*,ran,preempted,off,unknown$'
expect 0 "$tw" report --sort off --columns off,ran a.tw
expect 0 "$tw" print --tree a.tw
shows ' off  *[0-9.]* ms .* rests:rests()'
! grep -q 'off .*rests:works' out || fail "works was off"

expect 0 "$tw" report --by thread -t rests:rests a.tw
shows ' total .* preempted '
expect 0 "$tw" flame --off --folded a.tw
is "$(cut -d' ' -f1 out)" rests:rests "calls that were off"
[ "$(cut -d' ' -f2 out)" -ge 20000000 ] || fail "rests was not off"
expect 0 "$tw" flame --off a.tw
shows 'Widths and sums are the time in which threads were off the processor'
expect 1 "$tw" flame --off --folded plain.tw
says "'plain.tw' has no states of threads"
expect 2 "$tw" flame --off --hide-waits a.tw

# The first thread that has a state is not the first that calls: conditions on how calls end are still on the right calls.
cat >order.c <<'EOT'
#include <pthread.h>
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) void rests(int us)
{
	nanosleep(&(struct timespec){0, us * 1000L}, NULL);
}
static void *calls(void *first)
{
	for (int i = first ? 0 : 1; i < 4; i++)
		rests(i == 3 && first ? 12000 : i == 1 && !first ? 12000 : 20);
	return NULL;
}
static void *waits(void *arg)
{
	usleep(3000);
	return calls(arg);
}
int main(void)
{
	pthread_t threads[2];
	pthread_create(&threads[0], NULL, waits, NULL);
	usleep(1000);
	pthread_create(&threads[1], NULL, calls, threads);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	return 0;
}
EOT
${CC:-cc} -O1 -pthread order.c -o order || fail "no program"
expect 0 "$tw" record -q --force --sched --returns -t order:rests -o order.tw -- ./order
expect 0 "$tw" print --tree --when 'duration > 10ms' order.tw
! grep 'order:rests' out | grep -v ' [1-9][0-9][0-9.]* ms .* order:rests' || fail "calls of less than 10 ms"
expect 0 "$tw" report --json --when 'duration > 10ms' order.tw
json '(lambda row: row["calls"] >= 2 and row["min"] > 0.01 or 1 // 0)(d["by_function"][0])'

# A program that runs: its threads, and those that it starts later.
cat >live.c <<'EOT'
#include <pthread.h>
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) void rests(void)
{
	nanosleep(&(struct timespec){0, 20000000}, NULL);
}
__attribute__((noinline)) void works(void)
{
	struct timespec now, end;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - end.tv_sec) * 1000000000L + now.tv_nsec - end.tv_nsec < 20000000);
}
static void *later(void *arg)
{
	rests();
	works();
	return arg;
}
static void *always(void *arg)
{
	while (access("end", F_OK)) {
		rests();
		works();
	}
	return arg;
}
int main(void)
{
	pthread_t thread, others[20];
	pthread_create(&thread, NULL, always, NULL);
	while (access("end", F_OK)) {
		/* Several at a time, so that some begin while threads are looked for. */
		for (int i = 0; i < 2; i++)
			pthread_create(&others[i], NULL, later, NULL);
		for (int i = 0; i < 2; i++)
			pthread_join(others[i], NULL);
	}
	pthread_join(thread, NULL);
	return 0;
}
EOT
${CC:-cc} -O1 -pthread live.c -o live || fail "no program"
./live &
live=$!
# A test that fails leaves no program behind.
trap 'kill -9 $live 2>/dev/null; rm -rf "$work"' EXIT
attach="$tw attach --force --returns -t live:{rests,works} --time 700ms"
expect 0 $attach --sched -o live.tw $live
! grep -q 'no states of threads' err || fail "refused: $(cat err)"
expect 0 "$tw" print --slowest 1000 -t 'live:{rests,works}' --format json live.tw
python3 - <<'P' || fail "calls of a running program are not divided as they spent their time"
import json
calls, threads, divided = [json.loads(line) for line in open("out")], set(), []
for call in calls:
    if call["end"] != "returned" or call["lossy"]:
        continue
    threads.add(call["process"])
    assert call["total_ns"] - call["ran_ns"] - call["preempted_ns"] - call["off_ns"] < 10000, call
    # What a hypervisor takes from a thread that runs has either name.
    if "rests" in call["name"]:
        assert call["off_ns"] >= 19900000, call
        divided.append(call["ran_ns"] < 5000000)
    else:
        divided.append(call["ran_ns"] >= 17000000 and call["off_ns"] < 5000000)
assert len(threads) >= 4, threads
assert sum(divided) >= 0.9 * len(divided), [sum(divided), len(divided)]
P
expect 0 ./filtered $attach --sched -o refused.tw $live
is "$(grep -c 'no states of threads are recorded, all else is' err)" 1
expect 0 "$tw" report --json refused.tw
json 'd["by_function"] and all("ran" not in row for row in d["by_function"]) or 1 // 0'
expect 2 $attach --sched --flight -o flight.tw $live
touch end
wait $live || fail "the program did not end well"
live=

# A program that another one executes, and children.
expect 0 $record -q --sched --follow-fork -o children.tw -- sh -c 'true; exec ./rests 3'
expect 0 "$tw" report --json children.tw
divided 4 4

# The same as a stream, in a part, merged, and of closed segments that are one file.
expect 0 "$tw" record -q --sched --follow-fork --returns -t 'rests:{rests,works}' -o - -- ./rests 2
mv out stream.tws
expect 0 "$tw" report --json stream.tws
divided 3 3
cat a.tw/*.tws >segments.tws
expect 0 "$tw" report --json segments.tws
divided 1 1
expect 0 "$tw" merge -q -o merged.tw a.tw children.tw
expect 0 "$tw" report --json merged.tw
divided 5 5
expect 0 "$tw" cut -q --to 1000 -o part.tw a.tw
expect 0 "$tw" report --json part.tw
divided 1 1
# From the middle of the rest on: the thread is off when the part begins, and nothing is known behind its end.
expect 0 "$tw" cut -q --force --from 0.010 --to 0.018 -o part.tw a.tw
expect 0 "$tw" report --json part.tw
json '(lambda r: abs(r["off"] - 0.008) < 1e-6 and r["ran"] == 0 and r["unknown"] < 1e-6 or 1 // 0)(d["by_function"][0])'
expect 0 "$tw" report --json --from 0.010 --to 0.018 a.tw
json '(lambda r: abs(r["off"] - 0.008) < 1e-6 and r["ran"] == 0 and r["unknown"] < 1e-6 or 1 // 0)(d["by_function"][0])'

# Every table has them: a file for SQLite too.
if [ -x "$build/bin/tracewheel-sql" ]; then
	expect 0 "$tw" convert -q --to sqlite a.tw -o a.db
	sums='select function, duration - ran - preempted - off >= 0, ran, preempted, off from calls order by function'
	sqlite3 -csv a.db "$sums" >file
	expect 0 "$tw" sql --csv a.tw "$sums"
	tail -n +2 out | tr -d '"' | diff - <(tr -d '\r' <file) || fail "another table in the file"
	[ "$(cut -d, -f5 file | head -1)" -ge 20000000 ] || fail "rests was not off: $(cat file)"
	expect 0 "$tw" sql --csv plain.tw "select count(ran), count(off) from calls"
	is "$(tail -1 out)" 0,0 "states of a capture without them"
fi
expect 0 "$tw" print --slowest 1 -t rests:rests a.tw
shows '^ *ran .*s, preempted .*s, off [0-9.]* ms'
expect 0 "$tw" report --diff plain.tw a.tw
! grep -q preempted out || fail "a difference from a capture without states has their columns"

# Events are as they were: states are no events, and are listed only if asked for.
expect 0 "$tw" print --format json a.tw
! grep -q thread_state out || fail "states among events"
is "$(wc -l <out)" 4
expect 0 "$tw" print --format json --sched a.tw
shows '"kind":"thread_state","state":"off"'
expect 0 "$tw" print --sched a.tw
shows '(thread: off)$'
expect 0 "$tw" info a.tw
shows '^complete *yes'
# A timeline has them one behind the other, from the first event on.
expect 0 "$tw" print --format chrome a.tw
python3 - <<'P' || fail "states overlap, or are missing"
import json
spans = sorted((e["ts"], e["dur"], e["name"]) for e in json.load(open("out"))["traceEvents"] if e.get("cat") == "thread_state")
assert spans[0][0] == 0 and {"running", "off"} <= {name for *_, name in spans}, spans
assert all(a[0] + a[1] <= b[0] + 0.002 for a, b in zip(spans, spans[1:])), spans
assert 20000 <= sum(dur for _, dur, name in spans if name == "off"), spans
P

# The recorder stands still for a while: the kernel loses switches, and the time in which it did is in no sum.
cat >turns.c <<'EOT'
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static int there[2], back[2];
static long ns_of(clockid_t clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000L + time.tv_nsec;
}
static void *other(void *arg)
{
	char byte;
	while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
		;
	return arg;
}
__attribute__((noinline)) void plays(void)
{
	long end = ns_of(CLOCK_MONOTONIC) + 1300000000L;
	char byte = 0;
	while (ns_of(CLOCK_MONOTONIC) < end && write(there[1], &byte, 1) == 1 && read(back[0], &byte, 1) == 1)
		;
}
int main(void)
{
	pthread_t thread;
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof one, &one);
	if (pipe(there) || pipe(back) || pthread_create(&thread, NULL, other, NULL))
		return 1;
	long from = ns_of(CLOCK_THREAD_CPUTIME_ID);
	plays();
	printf("%ld\n", ns_of(CLOCK_THREAD_CPUTIME_ID) - from);
	return 0;
}
EOT
${CC:-cc} -O1 -D_GNU_SOURCE -pthread turns.c -o turns || fail "no program"
# Several times: by chance the switches before and behind a gap may contradict each other, which is noticed too.
for _ in 1 2 3; do
	"$tw" record --force --sched --returns -t turns:plays -o lost.tw -- ./turns >cpu 2>told &
	recorder=$!
	sleep 0.4
	kill -STOP $recorder
	sleep 0.6
	kill -CONT $recorder
	wait $recorder || fail "the recording failed"
	grep -q "context switch.* lost" told || { echo "too few switches: losses are not tested" && continue; }
	expect 0 "$tw" report --json lost.tw
	python3 - "$(cat cpu)" <<'P' || fail "what was lost is in a sum"
import json, sys
row = json.load(open("out"))["by_function"][0]
assert abs(row["ran"] + row["preempted"] + row["off"] + row["unknown"] - row["total"]) < 1e-8, row
# The rings hold some of it.
assert 0.15 < row["unknown"] < 1.3, row
assert row["ran"] <= int(sys.argv[1]) / 1e9 + 0.001, (row, sys.argv[1])
P
	expect 0 "$tw" report lost.tw
	shows 'states of threads are not known; [0-9,]* context switches were lost'
	expect 0 "$tw" info lost.tw
	shows '^switches *[0-9,]* context switches were lost'
	expect 0 "$tw" info --json lost.tw
	json 'd["account"]["switches_lost"] > 0 and d["account"]["whole"] or 1 // 0'
done

# The recorder is killed: rings hold the calls that follow, and nobody the states.  They are unknown.
$record -q --sched -o killed.tw -- ./rests kill >/dev/null 2>&1
sleep 0.5
expect 0 "$tw" recover -q killed.tw
expect 0 "$tw" report --json killed.tw
json '(lambda rows: all([rows["works"]["total"] >= 0.019, rows["works"].get("unknown", 1) >= 0.019, rows["works"].get("ran", 0) == 0,
	rows["rests"]["calls"] == 81, rows["rests"]["unknown"] >= 0.02, rows["rests"]["off"] >= 0.5]) or 1 // 0)(
	{row["function"]: row for row in d["by_function"]})'
expect 0 "$tw" report killed.tw
shows '^ran, preempted and off are without .* of total, in which the states of threads are not known'
