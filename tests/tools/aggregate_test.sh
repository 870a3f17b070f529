#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    What `record --by`, --sum, --histogram and --quantiles sum up in the program equals what the program itself counts, and what `report`
#         makes of a capture with all events: by caller, argument, result and duration; on threads that come and go, in a forked child, behind
#         exec, in handlers. With more keys than room the others are one exact row. kill -9 of the program, and of the recorder, loses no row.
#         What cannot be asked is one sentence.
# Method  A program whose calls follow from formulas is recorded each way; JSON is compared with the formulas and with the JSON of the events.
build=$1
. "$(dirname "$0")/lib.sh"
cat >work.c <<'C'
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
static _Atomic unsigned long *own;
#define BODY __asm__ volatile("nop;nop;nop;nop;nop;nop;nop;nop")
__attribute__((noinline, noclone)) int take(long key, long size) { BODY; return size % 7 ? (int)(size % 7) : -(int)(key % 3); }
__attribute__((noinline, noclone)) void first(long i) { take(i % 5, i * i); BODY; }
__attribute__((noinline, noclone)) void second(long i) { take(i % 5, -i); BODY; }
__attribute__((noinline, noclone)) void handled(long n) { BODY; }
static void on_alarm(int s) { own[1]++; handled(7); }
static void *run(void *n)
{
	for (long i = 0; i < (long)n; i++) {
		first(i);
		if (i % 4 == 0)
			second(i);
	}
	return 0;
}
static void *run_forever(void *unused)
{
	for (long i = 0;; i++) {
		own[0]++;
		take(i % 5, i);
	}
}
static void threads(void *(*f)(void *), long n, int wait)
{
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], 0, f, (void *)n);
	for (int i = 0; wait && i < 4; i++)
		pthread_join(t[i], 0);
}
int main(int c, char **v)
{
	struct itimerval every = {{0, 200}, {0, 200}}, off = {0};
	int fd = open("numbers", O_RDWR | O_CREAT, 0600), status;
	if (ftruncate(fd, 64))
		return 1;
	own = mmap(0, 64, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!strcmp(v[1], "kill")) {
		threads(run_forever, 0, 0);
		own[4] = getpid();
		usleep(1 + strtoul(v[2], 0, 10));
		kill(getpid(), SIGKILL);
	} else if (!strcmp(v[1], "many")) {
		for (long i = 0; i < 20000; i++)
			take(i, i % 100);
	} else if (!strcmp(v[1], "signals")) {
		signal(SIGALRM, on_alarm);
		setitimer(ITIMER_REAL, &every, 0);
		for (int i = 0; i < 20; i++)
			threads(run, 2000, 1);
		setitimer(ITIMER_REAL, &off, 0);
	} else {
		for (int round = 0; round < 3; round++)
			threads(run, 500, 1);
		run((void *)300);
		pid_t child = fork();
		if (!child) {
			run((void *)400);
			if (!strcmp(v[1], "all"))
				execl("./work", "work", "once", (char *)0);
			_exit(0);
		}
		waitpid(child, &status, 0);
	}
	return 0;
}
C
gcc -w -O1 -pthread -o work work.c || fail "no program"
cat >model.py <<'P'
import collections, json, sys
def body(n):
    for i in range(n):
        yield "first", i % 5, i * i
        if i % 4 == 0:
            yield "second", i % 5, -i
def calls():
    for run in ([500] * 12 + [300, 400]) * 2:
        yield from body(run)
def result(key, size):
    rest = abs(size) % 7 * (-1 if size < 0 else 1)
    return rest if rest else -(key % 3)
def power(n):
    return 1 << n.bit_length() - 1 if n > 0 else n
def step(n, width):
    return n // width * width
def part(n):
    width = 1 if n < 128 else 1 << n.bit_length() - 7
    return n if n < 128 else n // width * width
C = collections.Counter
all_calls = [(caller, key, size, result(key, size)) for caller, key, size in calls()]
def load(name):
    return json.load(open(name))
def rows(name, *members):
    assert load(name)["without_value"] == 0, "calls without a value"
    found = C()
    for r in load(name)["by_value"]:
        found[tuple(r.get(m) for m in members)] += r["calls"]
    return found
def same(a, b, what):
    if a != b:
        sys.exit(f"{what}: {(a - b).most_common(5)} only here, {(b - a).most_common(5)} only there")
P
check() { # EXPRESSION...: Python over the model
	python3 -c "from model import *
$1" || fail "$1"
}
aggregate() { # NAME OPTION...
	local name=$1
	shift
	expect 0 "$tw" record -q --force -o "$name.tw" --follow-fork -t work:take "$@" -- ./work all
}
show() { # NAME VIEW...: the JSON in NAME.json
	local name=$1
	shift
	expect 0 "$tw" report --json -n 0 "$@" "$name.tw"
	cp out "$name.json"
}

# All events of the same calls, from one more recording.
expect 0 "$tw" record -q -o events.tw --follow-fork --returns --args=raw -t work:take -t work:first -t work:second -- ./work all

aggregate c --by caller
show c --by caller
cp c.json counted.json
show events -t work:take --by caller
check "same(rows('counted.json', 'value'), C(('work:' + c[0],) for c in all_calls), 'by caller')
same(rows('counted.json', 'value'), rows('events.json', 'value'), 'by caller, of events')"
expect 0 "$tw" report c.tw
shows "work:take from work:first"
expect 0 "$tw" report --json -n 0 c.tw
is "$(json "[f['calls'] for f in d['counted_by_function']]")" "[$(python3 -c 'from model import *; print(len(all_calls))')]" "all calls"
is "$(json "len([t for t in d['counted_by_thread'] if t['calls']])")" 27 "threads are told apart: that of the child also runs what it executes"

aggregate a --by arg:1 --histogram '$2'
show a --by '$1'
cp a.json counted.json
show events -t work:take --by arg:1
show a --histogram arg:2
check "same(rows('counted.json', 'value'), C((str(c[1]),) for c in all_calls), 'by argument')
same(rows('counted.json', 'value'), rows('events.json', 'value'), 'by argument, of events')
same(rows('a.json', 'by', 'low'), C((str(c[1]), power(c[2])) for c in all_calls), 'histogram by argument')"

aggregate r --histogram result --args='int take(long, long)'
show r --histogram result
check "same(rows('r.json', 'low'), C((power(c[3]),) for c in all_calls), 'histogram of results')
assert sum(r['sum'] for r in load('r.json')['by_value']) == sum(c[3] for c in all_calls), 'sum of results'"

aggregate s --histogram 'arg:2/100' --by caller
show s --histogram '$2/200'
check "same(rows('s.json', 'by', 'low'), C(('work:' + c[0], step(c[2], 200)) for c in all_calls), 'steps')"

aggregate q --quantiles '$2' --by caller
show q --quantiles '$2'
cat >quantiles.py <<'P'
from model import *
for row in load("q.json")["by_function"]:
    sizes = sorted(c[2] for c in all_calls if "work:" + c[0] == row["by"])
    assert row["calls"] == len(sizes) and row["sum"] == sum(sizes), row
    for name, share in ("median", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1):
        true = sizes[max(0, -int(-share * len(sizes) // 1) - 1)]
        assert abs(row[name] - true) <= 0.008 * abs(true), (name, row[name], true)
P
python3 quantiles.py || fail "percentiles"

# A duration is never 0 calls, nor less than nothing.
aggregate d --histogram duration
show d --histogram duration
check "assert sum(r['calls'] for r in load('d.json')['by_value']) == len(all_calls) and all(r['low'] >= 0 for r in load('d.json')['by_value'])"

# Calls of a handler that interrupts a hit are in no row, and are said to be.
rm -f numbers
expect 0 "$tw" record -q -o h.tw -t work:handled -t work:take --by arg:1 -- ./work signals
expect 0 "$tw" report --json -n 0 -t work:handled --by arg:1 h.tw
python3 -c "
import json, struct
d, own = json.load(open('out')), struct.unpack_from('4Q', open('numbers', 'rb').read())
assert own[1] == sum(r['calls'] for r in d['by_value']) + d['without_value'], (own, d)" || fail "calls in handlers"

# More keys than room: one row of all others, exactly.
expect 0 "$tw" record -q -o m.tw -t work:take --by arg:1 --sum '$2' -- ./work many
expect 0 "$tw" report --json -n 0 --sum '$2' m.tw
is "$(json "(sum(r['calls'] for r in d['by_function']), sum(r['sum'] for r in d['by_function']), d['without_value'])")" "(20000, 990000, 0)" "all keys"
is "$(json "[(r['calls'], r['sum']) for r in d['by_function'] if r['by'] == '(others)']")" "[(7712, $(python3 -c 'print(sum(i % 100 for i in range(12288, 20000)))'))]" "the others"

# Killed: each of four threads may have written down one call that it had not made, and a row may be one ahead of its count.
own() {
	python3 -c "import struct; print(struct.unpack_from('Q', open('numbers', 'rb').read(), 8 * $1)[0])"
}
near() { # CAPTURE
	expect 0 "$tw" report --json -n 0 --by arg:1 "$1"
	python3 -c "
import json, struct
own, rows = struct.unpack_from('Q', open('numbers', 'rb').read())[0], sum(r['calls'] for r in json.load(open('out'))['by_value'])
assert 0 <= own - rows <= 4, (own, rows)" || fail "killed: calls and rows"
}
for round in 1 2 3; do
	rm -f numbers
	expect 137 "$tw" record -q --force -o k.tw -t work:take --by arg:1 -- ./work kill $((round * 3731))
	near k.tw
done
rm -f numbers
"$tw" record -q --force -o l.tw -t work:take --by arg:1 -- ./work kill 100000000 >out 2>err &
kill_both $!
expect 0 "$tw" recover l.tw
near l.tw

# Others are recorded as before; views that know nothing of rows count all calls.
expect 0 "$tw" record -q -o o.tw --follow-fork --count work:take --by caller -t work:first -- ./work all
expect 0 "$tw" report o.tw
shows "counted, not recorded"
shows "work:first"
expect 0 "$tw" report --json -n 0 --by caller -t work:take o.tw
cp out o.json
check "same(rows('o.json', 'value'), C(('work:' + c[0],) for c in all_calls), 'beside recorded calls')"
expect 0 "$tw" merge -o both.tw c.tw s.tw
expect 0 "$tw" report --json -n 0 both.tw
is "$(json "d['counted_calls']")" "$(python3 -c 'from model import *; print(2 * len(all_calls))')" "merged"

for bad in "--by thread" "--by arg:7" "--by caller --by result" "--histogram caller" "--sum result/5" "--quantiles arg:size" \
	"--sum result --histogram result" "--by caller --when \$1>5"; do
	# shellcheck disable=SC2086
	expect 2 "$tw" record -o bad.tw -t work:take $bad -- ./work many
	is "$(wc -l <err)" 3 "one sentence about $bad, and the usage"
done
echo "aggregated"
