#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Each snapshot of a flight recorder holds, of every thread, its newest calls without a gap and none that it did not make, and says how
#         many are older; whole captures or none appear, whoever is killed meanwhile; program and recording go on.
# Method  Four threads number their calls and write down which they have begun and ended. In a snapshot the numbers of a thread follow
#         each other, begin with the number of overwritten calls, and end between what was ended before and what was begun after it. Rings
#         are small, so that they turn around while they are copied. Then processes are killed at random moments of a snapshot.
build=$1
. "$(dirname "$0")/lib.sh"

recorder='' program=''
trap 'kill -9 $program $recorder 2>/dev/null; rm -rf "$work"' EXIT

cat >work.c <<'C'
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
enum { THREADS = 4 };
/* Of each thread: the calls that it was about to make, and that it has made. */
static volatile unsigned long *own;
__attribute__((noinline)) void mark(long thread, unsigned long number)
{
	__asm__ volatile("nop;nop;nop;nop;nop;nop;nop;nop" : : "r"(thread), "r"(number));
}
static void *run(void *arg)
{
	long mine = (long)arg;
	const struct timespec nap = {0, NAP};
	for (unsigned long i = 0;; i++) {
		own[2 * mine] = i + 1;
		mark(mine, i);
		own[2 * mine + 1] = i + 1;
		if (i % BURST == 0)
			nanosleep(&nap, 0);
	}
	return arg;
}
int main(int c, char **v)
{
	int fd = open(v[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
	pthread_t t;
	if (ftruncate(fd, 64))
		return 1;
	own = mmap(0, 64, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&t, 0, run, (void *)i);
	if (c > 2) {
		usleep(atoi(v[2]));
		abort();
	}
	pause();
}
C
# In the short form, the threads sleep longer between bursts at full speed, each of which turns a ring around.
gcc -O2 -DBURST="$(rounds 4096 256)" -DNAP="$(rounds 1000000 20000)" -fno-inline -fno-ipa-ra -o work work.c -lpthread || fail "no compiler"

cat >compare.py <<'P'
import json, sys
# compare.py NAME.tw.json BEFORE AFTER: numbers as read before and after the snapshot.
before, after = ([int(n) for n in words.split()] for words in sys.argv[2:4])
first, last, count, older, thread_of = {}, {}, {}, {}, {}
for line in open(sys.argv[1]):
    e = json.loads(line)
    if e["kind"] == "lost":
        assert not any(e[k] for k in ("full", "too_big", "nested", "no_ring")), e
        assert e["thread"] not in first, "a loss behind an event"
        older[e["thread"]] = older.get(e["thread"], 0) + e["overwritten"]
    elif e["kind"] == "call":
        mine, number = e["args"][:2]
        t = e["thread"]
        assert thread_of.setdefault(t, mine) == mine, "a call of another thread"
        assert t not in last or number == last[t] + 1, f"thread {mine}: {last[t]} is followed by {number}"
        first.setdefault(t, number)
        last[t] = number
        count[t] = count.get(t, 0) + 1
assert sorted(thread_of.values()) == [0, 1, 2, 3], thread_of
for t, mine in thread_of.items():
    assert first[t] == older.get(t, 0), f"thread {mine} begins with {first[t]}, and {older.get(t, 0)} are overwritten"
    made = last[t] + 1
    assert before[2 * mine + 1] <= made <= after[2 * mine], f"thread {mine}: {made} calls, not {before} to {after}"
print(min(count.values()), max(count.values()))
P

numbers() {
	od -A n -t u8 -w64 numbers
}

# whole NAME.tw...: each can be read, and lacks nothing.
whole() {
	for capture in "$@"; do
		expect 0 "$tw" info --json "$capture"
		json "1 if d['complete'] else 1 / 0" >/dev/null
	done
}

begin() {
	rm -rf run*
	: >numbers
	"$tw" record --flight --ring 64K -t 'work:mark' --args=raw --every 0s --snapshots 1000 -o run.tw "$@" 2>record.err &
	recorder=$!
	for ((i = 0; i < 200; i++)); do
		# All threads make calls.
		[ ! -s numbers ] || [[ " $(numbers)" == *" 0"* ]] || break
		sleep 0.1
	done
	program=$(pgrep -P "$recorder" -x work)
}

begin -- ./work numbers
n=$(rounds 4 200)
for ((round = 1; round <= n; round++)); do
	before=$(numbers)
	# In turn by the program's number and the recorder's, and by a signal.
	if ((round % 4 == 0)); then
		seen=$(grep -c 'asked for it' record.err)
		kill -USR2 "$recorder"
		for ((i = 0; i < 300 && $(grep -c 'asked for it' record.err) == seen; i++)); do sleep 0.1; done
		name=$(sed -n 's/^tracewheel: \(.*\.tw\): .*asked for it\.$/\1/p' record.err | tail -n 1)
	else
		expect 0 "$tw" snapshot -q $((round % 2 ? program : recorder))
		name=$(cat out)
	fi
	after=$(numbers)
	[ -d "$name" ] || fail "no snapshot in round $round"
	"$tw" print --format json "$name" >events.json || fail "print"
	python3 -S compare.py events.json "$before" "$after" >out 2>err || fail "round $round"
done
whole "$name"
is "$(basename "$name")" "run-$n.tw"
# One thread encodes, several do, or there are none: the same events of each thread, in the same blocks.
all=$(taskset -pc $$ | sed 's/.*: //')
ways=("taskset -c ${all%%[,-]*}" "taskset -c $all")
! command -v strace >strace.path || ways+=("strace -o strace.out -e trace=clone3,clone -e inject=clone3,clone:error=EAGAIN")
kill -STOP "$program"
for way in "${ways[@]}"; do
	expect 0 $way "$tw" snapshot -q "$program"
	name=$(cat out)
	# Each capture has its own table of clocks: times differ by some ns, and with them the order of threads.
	"$tw" print --format json "$name" | sed 's/^{"ns":[0-9]*,//' | LC_ALL=C sort -s -t , -k 2,2 >events.json || fail "print"
	"$tw" info --json "$name" >info.json || fail "info"
	[ ! -e first.json ] || cmp events.json first.json >out 2>&1 || fail "other events with more threads"
	python3 -S -c 'import json; d = json.load(open("info.json")); print(d["events"], d["blocks"])' >counts
	[ ! -e first.counts ] || cmp counts first.counts >out 2>&1 || fail "other blocks with more threads"
	mv events.json first.json
	mv counts first.counts
done
# A full disk: nothing appears, whatever was encoded by then.
if [ -s strace.path ]; then
	before=$(ls -d run*)
	expect 1 strace -f -o strace.out -e trace=pwritev -e inject=pwritev:error=ENOSPC:when=4+ "$tw" snapshot -q "$program"
	says 'no space left on the device'
	is "$(ls -d run*)" "$before" "files after a full disk"
fi
kill -CONT "$program"
kill "$program"
wait "$recorder"
is $? 143
[ ! -e run.tw.flight ] || fail "the folder of the recorder is left"
rm -rf run*

# Killed at a random moment of a snapshot: the command that writes it, the recorder, the program.
n=$(rounds 3 60)
for ((round = 0; round < n; round++)); do
	begin -- ./work numbers
	case $((round % 3)) in
	0) victim=self ;;
	1) victim=$recorder ;;
	2) victim=$program ;;
	esac
	"$tw" snapshot -q "$program" >name 2>err &
	writer=$!
	[ "$victim" != self ] || victim=$writer
	sleep "0.0$((RANDOM % 4))$((RANDOM % 10))"
	kill -9 "$victim" 2>/dev/null
	wait "$writer" 2>/dev/null
	kill -9 "$program" 2>/dev/null
	wait "$recorder" 2>/dev/null
	for capture in run*.tw; do
		[ ! -e "$capture" ] || whole "$capture"
	done
	# Of a recorder that was killed the rings are there, with the last seconds.
	if [ -e run.tw.flight ]; then
		expect 0 "$tw" recover run.tw.flight
		whole run.tw.flight
	fi
done

# A crash: the capture has the signal, and all that the rings held; the exit code is passed on.
begin --snapshot-on crash -- ./work numbers 300000
wait "$recorder"
is $? 134
whole run.tw
expect 0 "$tw" info run.tw
shows 'SIGABRT'
"$tw" print --format json run.tw >events.json
python3 -S compare.py events.json "$(numbers)" "$(numbers)" >out 2>err || fail "the crash"

# Without a reason nothing is left; what has none is refused.
begin -- ./work numbers
kill -9 "$program"
wait "$recorder"
[ -z "$(ls -d run* 2>/dev/null)" ] || fail "something was written"
expect 1 "$tw" snapshot $$
says 'not recorded'
expect 2 "$tw" record --snapshot-on crash -- true
says 'is for --flight'
expect 2 "$tw" record --flight --snapshot-on lunch -- true
says 'is crash, exit, a signal'
expect 2 "$tw" record --flight -o - -- true
says 'exclude each other'
exit 0
