#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Events of a capture that is being recorded are shown as they happen, each once and in order, until the recording ends; and it is
#	  said when that is not possible.
# Method  Programs with several threads and processes, small segments; programs that wait; a recorder that is killed, and segments that
#	  are removed while the reader stands still. What was followed is compared with the capture afterwards.
build=$1
. "$(dirname "$0")/lib.sh"

# Events without their times, by thread, and whether times ever go back. The clock is known better when the recording is over: how long a thread waited may
# be another nanosecond then.
by_thread() {
	awk '{ $1 = ""; sub(/ring for .*/, "ring"); print }' "$1" | sort -s -k1,1n
}
in_order() {
	awk '$1 < last { exit 1 } { last = $1 }' "$1" || fail "$1: times go back"
}

cat >many.c <<'C'
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) void step(int i) { __asm__ volatile("" : : "r"(i)); }
static void *run(void *unused)
{
	for (int i = 0; i < CALLS; i++)
		step(i);
	return unused;
}
int main(void)
{
	pthread_t threads[3];
	char byte;
	if (read(0, &byte, 1) != 1)
		return 2;
	for (int child = 0; child < 3; child++)
		if (fork() == 0) {
			run(NULL);
			exit(0);
		}
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	while (wait(NULL) > 0)
		;
	return 0;
}
C
many=$(rounds 60000 150000)
gcc -O1 -DCALLS="$many" -fpatchable-function-entry=9 -pthread -o many many.c || fail "gcc"
make_calls

# Until its first event has been stored, a reader waits; its folder is there when the recorder has been created.
await_folder() {
	for _ in $(seq 600); do
		[ -e "$1/live" ] && return
		sleep 0.05
	done
	fail "$1 was not begun"
}

# 1. Several processes and threads, many small segments: nothing is missing, nothing is twice, times never go back, though threads wait for
# space in small rings with an event whose time is past.
# The program begins when the reader has.
mkfifo begin
"$tw" record -q --follow-fork --ring 64K --rotate 64K -t _:step -o many.tw -- ./many <begin >/dev/null 2>rec.err &
recording=$!
exec 3>begin
await_folder many.tw
{ sleep 0.3 && echo >&3; } &
expect 0 "$tw" print --follow --from 0 many.tw
wait "$recording" || fail "record: $(cat rec.err)"
exec 3>&-
mv out followed
in_order followed
grep -q 'waited for space' followed || fail "no thread waited"
echo go | "$tw" record -q --follow-fork --ring 64K -t _:step -o - -- ./many 2>err | "$tw" print - >streamed || fail "a stream"
in_order streamed
expect 0 "$tw" print many.tw
[ "$(grep -c 'call many:step' out)" = $((6 * many)) ] || fail "the recording is not whole"
by_thread followed >a
by_thread out >b
cmp -s a b || fail "what was followed is not what the capture holds: $(diff a b | head -n 4)"
segments=$(find many.tw -name '*.tws' | wc -l)
[ "$segments" -gt 4 ] || fail "only $segments segments: nothing was rotated"

# 2. While the program waits, its first calls are shown; JSON as well as text.
mkfifo go
"$tw" record -q -t _:step -o live.tw -- ./calls <go >said 2>rec.err &
recording=$!
exec 7>go
await_folder live.tw
expect 0 "$tw" print --follow --from 0 --format json --limit 500 live.tw
[ "$(grep -c '"function":"step"' out)" = 500 ] || fail "not the first 500 calls"

# 3. From now on: none of these 500. The reader has begun when it has mapped the rings.
"$tw" print --follow live.tw >now 2>now.err &
reader=$!
for _ in $(seq 600); do
	grep -q /control /proc/$reader/maps && break
	sleep 0.05
done
sleep 0.5
"$tw" report --follow live.tw >reports 2>reports.err &
reporter=$!
for _ in $(seq 600); do
	grep -q '500 events' reports && break
	sleep 0.05
done
echo xx >&7
exec 7>&-
wait "$recording" || fail "record: $(cat rec.err)"
wait "$reader" || fail "print --follow: $(cat now.err)"
wait "$reporter" || fail "report --follow: $(cat reports.err)"
expect 0 "$tw" print live.tw
[ "$(grep -c 'call calls:step' out)" = 1000 ] || fail "the recording is not whole"
after=$(awk 'NR == 500 { print $1 }' out)
awk -v after="$after" '$1 <= after { exit 1 }' now || fail "calls from before are among those from now on"
[ "$(wc -l <now)" = 500 ] || fail "$(wc -l <now) calls were followed, not 500"
# The last report is that of the whole capture, and no report complains that there is no end yet.
grep -q '500 events' reports || fail "no report of the first half"
tail -n 12 reports | grep -q '1,000' || fail "the last report is not that of the whole"
[ ! -s reports.err ] || fail "report --follow: $(cat reports.err)"

# 4. A recorder that dies.
"$tw" record -q -t _:step -o dies.tw -- ./calls <go >said 2>rec.err &
recording=$!
exec 7>go
await_folder dies.tw
"$tw" print --follow --from 0 dies.tw >shown 2>err &
reader=$!
for _ in $(seq 600); do
	[ "$(wc -l <shown)" -ge 500 ] && break
	sleep 0.05
done
kill -KILL "$recording"
code=0
wait "$reader" || code=$?
exec 7>&-
is "$code" 1 "exit code after the recorder's death"
says 'recorder has died; .tracewheel recover. completes'
is "$(wc -l <shown)" 500 "events before the recorder's death"
expect 1 "$tw" print --follow dies.tw
says "no recording writes 'dies.tw'"
expect 0 "$tw" recover dies.tw

# 5. Segments that are removed while the reader stands still: it says so, and what it shows is in order.
cat >long.c <<'C'
#include <unistd.h>
__attribute__((noinline)) void step(int i) { __asm__ volatile("" : : "r"(i)); }
int main(void)
{
	char byte;
	step(0);
	if (read(0, &byte, 1) != 1)
		return 1;
	for (int i = 0; i < 2000000; i++)
		step(i);
	return read(0, &byte, 1) != 1;
}
C
gcc -O1 -fpatchable-function-entry=9 -o long long.c || fail "gcc"
mkfifo go_on # the program of the recorder that died may still read from the other
"$tw" record -q --rotate 64K --keep 2 -t _:step -o kept.tw -- ./long <go_on >said 2>rec.err &
recording=$!
exec 7>go_on
await_folder kept.tw
"$tw" print --follow --from 0 kept.tw >shown 2>err &
reader=$!
for _ in $(seq 600); do
	[ -s shown ] && break
	sleep 0.05
done
[ -s shown ] || fail "nothing was shown"
# A segment has its name when it is complete: one has, and the first two have it no more.
are_removed() {
	compgen -G 'kept.tw/segment-*.tws' >/dev/null && [ ! -e kept.tw/segment-000001.tws ] && [ ! -e kept.tw/segment-000002.tws ]
}
kill -STOP "$reader"
printf x >&7
wait_until are_removed
kill -CONT "$reader"
printf x >&7
exec 7>&-
code=0
wait "$reader" || code=$?
wait "$recording" || fail "record: $(cat rec.err)"
is "$code" 1 "exit code where segments were removed"
says 'segments were removed before they were read'
in_order shown

# 6. What cannot be followed.
expect 1 "$tw" print --follow many.tw
says "no recording writes 'many.tw' now"
expect 1 "$tw" print --follow nothing.tw
says "there is no capture 'nothing.tw'"
echo x >file
expect 1 "$tw" print --follow file
says 'the folder of a capture'
for option in --tree '--slowest 3' '--format chrome' '--tail 5'; do
	# shellcheck disable=SC2086
	expect 2 "$tw" print --follow $option many.tw
	says 'as they come'
done
expect 2 "$tw" report --follow --html many.tw
expect 0 "$tw" report --follow many.tw
shows "$((6 * many / 1000)),000"

# 7. Fewer lines than events: what is not shown is counted, where it would have been. With --from, a recording that has ended is shown.
expect 0 "$tw" print --follow --from 0 --lines 100/s many.tw
is "$(awk '/^\.\.\. / { gsub(",", ""); left += $2 } /call many:step/ { shown++ } END { print shown + left, (shown >= 100 && shown < 2000) }' out)" \
	"$((6 * many)) 1" "shown, and said to be left out"
shows '^\.\.\. [0-9,]* events.* not shown (at most 100 lines a second)'
grep 'call many:step' out >shown
expect 0 "$tw" print many.tw
# Each is a line of the whole, and none is there twice; times may differ by nanoseconds.
is "$(sort -u shown | wc -l)" "$(wc -l <shown)" "lines that are there once"
by_thread shown | sort -u | comm -23 - <(by_thread out | sort -u) >foreign
[ ! -s foreign ] || fail "lines that are not in the capture: $(head -n 3 foreign)"

# 8. A program that asks gets one packet for each request, and none without; the numbers in front are those of the lines.
python3 -I -S - "$tw" "$((6 * many))" <<'PY' || fail "--on-request"
import os, select, struct, subprocess, sys, time
print_follow = [sys.argv[1], "print", "--follow", "--from", "0", "--on-request", "--lines", "50/s", "many.tw"]
child = subprocess.Popen(print_follow, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
def is_silent(seconds):
    return not select.select([child.stdout], [], [], seconds)[0]
def exactly(count):
    data = b""
    while len(data) < count:
        more = child.stdout.read(count - len(data))
        if not more:
            return data
        data += more
    return data
assert is_silent(0.5), "a packet that was not asked for"
shown = left = packets = 0
while True:
    child.stdin.write(b"\n")
    head = exactly(4)
    if not head:
        break
    packet = exactly(struct.unpack(">I", head)[0]).decode()
    numbers, _, lines = packet.partition("\n")
    packets += 1
    for line in lines.splitlines():
        if line.startswith("..."):
            left += int(line.split()[1].replace(",", ""))
        else:
            shown += 1
    assert list(map(int, numbers.split()))[0] == shown, (numbers, shown)
    if not is_silent(0.02):
        assert child.stdout.read(1) == b"", "two packets for one request"
        break
assert child.wait() == 0
assert shown + left == int(sys.argv[2]) and shown >= 50, (shown, left, packets)
assert list(map(int, numbers.split())) == [shown, left], numbers
# The end of its input ends it, before it has shown anything.
child = subprocess.Popen(print_follow, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
child.stdin.close()
assert child.stdout.read() == b"" and child.wait(60) == 0
PY
for options in '--lines 5' '--on-request' '--follow --lines 5 --format json' '--follow --on-request --format erlang'; do
	# shellcheck disable=SC2086
	expect 2 "$tw" print $options many.tw
	says 'go with --follow'
done
expect 2 "$tw" print --follow --lines some many.tw
says "--lines is a number of lines a second"
