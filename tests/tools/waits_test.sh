#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Functions that wait are marked in report, and --hide-waits leaves out them, the calls in them and their time in the calls around, and
#         nothing else: in report, its tree and callers, flame and the slowest calls. A function of the program with such a name does not wait.
# Method  A program whose threads wait for events, a condition, a time and each other, also at its end. The same views with and without the option.
build=$1
. "$(dirname "$0")/lib.sh"
cat >app.c <<'C'
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#define KEPT __attribute__((noinline))
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t never = PTHREAD_COND_INITIALIZER;
/* Not libc's. */
KEPT int sigwait(const void *set, int *number) { volatile int sum = 0; for (int i = 0; i < 200000; i++) sum += i; return sum & 1; }
KEPT int work(int n) { volatile int sum = 0; for (int i = 0; i < 100000 * n; i++) sum += i; return sigwait(0, 0) + sum; }
KEPT int turn(void) { poll(0, 0, 30); return work(1); }
KEPT void *worker(void *unused) { work(2); pthread_mutex_lock(&lock); for (;;) pthread_cond_wait(&never, &lock); return unused; }
KEPT void *short_one(void *unused) { usleep(40000); work(3); return unused; }
KEPT int serve(void) { int sum = 0; for (int i = 0; i < 4; i++) sum += turn(); return sum; }
int main(void)
{
	pthread_t thread, other;
	pthread_create(&thread, 0, worker, 0);
	pthread_create(&other, 0, short_one, 0);
	serve();
	pthread_join(other, 0);
	exit(0);
}
C
gcc -w -O1 -fno-builtin -fno-optimize-sibling-calls -fpatchable-function-entry=9 -pthread -o app app.c || fail gcc
expect 0 "$tw" record -q --force --returns --on-full block -t app:_ -t 'libc:{poll,usleep,pthread_join,pthread_cond_wait,pthread_mutex_lock,nanosleep,clock_nanosleep}' \
	-o a.tw -- ./app
expect 0 "$tw" report --json -n 0 a.tw
cp out whole.json
expect 0 "$tw" report --json -n 0 --hide-waits a.tw
cp out hidden.json
expect 0 "$tw" flame --folded a.tw
cp out whole.folded
expect 0 "$tw" flame --folded --hide-waits a.tw
cp out hidden.folded
cat >model.py <<'P'
import json
whole, hidden = (json.load(open(name + ".json")) for name in ("whole", "hidden"))
rows, left = ({f["function"]: f for f in of["by_function"]} for of in (whole, hidden))
waits = {n for n, f in rows.items() if f["waits"]}
assert {"poll", "usleep", "pthread_join", "pthread_cond_wait"} <= waits <= {"poll", "usleep", "pthread_join", "pthread_cond_wait", "nanosleep", "clock_nanosleep"}, waits
assert rows["sigwait"]["module"] == "app" and not rows["sigwait"]["waits"]
assert left.keys() == rows.keys() - waits, (left.keys(), waits)
def folded(name):
    return {tuple(p.split("/")[0].split(":")[1] for p in line.rsplit(" ", 1)[0].split(";")): int(line.rsplit(" ", 1)[1]) for line in open(name + ".folded")}
stacks, others = folded("whole"), folded("hidden")
assert others == {s: ns for s, ns in stacks.items() if not waits & set(s)}, (stacks, others)
# The times of callers: without what lies in waits, of all stacks that they are in.
for name, row in left.items():
    lost = sum(ns for s, ns in stacks.items() if name in s and waits & set(s)) / 1e9
    assert abs(rows[name]["total"] - lost - row["total"]) < 1e-6, (name, rows[name]["total"], lost, row["total"])
    assert (row["calls"], row["self"], row["max"]) == (rows[name]["calls"], rows[name]["self"], rows[name]["max"])
assert rows["main"]["total"] > 0.12 and left["main"]["total"] < rows["main"]["total"] - 0.12
assert left["turn"]["total"] > 0 and not any(c["function"] in waits for f in left.values() for c in f["callers"] if "function" in c)
in_waits = sum(ns for s, ns in stacks.items() if waits & set(s)) / 1e9
assert abs(hidden["unmatched"]["waited"] - in_waits) < 1e-6 and hidden["unmatched"]["waits"] >= 7, (hidden["unmatched"], in_waits)
assert "waits" not in whole["unmatched"]
P
python3 model.py || fail "--hide-waits is not the model's"
expect 0 "$tw" report a.tw
shows '^[*]: [0-9]* calls of functions that wait, [0-9.]* m*s; --hide-waits leaves them and their time out\.$'
shows ' [*][0-9.]* m*s .* libc:poll$'
! grep -q ' [*][0-9].*app:' out || fail "a function of the program is marked"
for view in "" --tree --callers --csv; do
	# shellcheck disable=SC2086
	expect 0 "$tw" report --hide-waits $view a.tw
	! grep -qE 'libc:(poll|usleep|pthread_join|pthread_cond_wait)' out || fail "a wait in report $view"
	grep -q 'app:turn' out || fail "no turn in report $view"
done
# The tree has the same times.
expect 0 "$tw" report --hide-waits a.tw
serve=$(awk '$NF ~ /^app:serve/ { print $1, $2 }' out)
expect 0 "$tw" report --hide-waits --tree -n 0 a.tw
is "$(awk '$NF ~ /^app:serve/ { print $1, $2 }' out)" "$serve" "the time of serve in the tree"
expect 0 "$tw" report --hide-waits a.tw
shows '^Without [0-9]* calls that wait, [0-9.]* m*s: totals of the calls around lack this time; min to max are of whole calls\.$'
expect 0 "$tw" flame --hide-waits a.tw
shows 'Without [0-9]* calls that wait, '
# The longest are waits.
expect 0 "$tw" print --slowest 1 --show-waits --format json a.tw
is "$(json 'd["name"].split(":")[0]')" libc
expect 0 "$tw" print --slowest 3 --hide-waits a.tw
cp out hidden
expect 0 "$tw" print --slowest 3 a.tw
cmp out hidden || fail "waits are not left out by default"
is "$(grep -cE '^ *[1-3] .* (app:|libc:pthread_mutex_lock)' out)" 3 "slowest calls that do not wait"
shows 'without functions that wait'

expect 2 "$tw" print --hide-waits a.tw
says "goes with --slowest"
expect 2 "$tw" print --show-waits --tree a.tw
says "goes with --slowest"
expect 2 "$tw" report --hide-waits --locks a.tw
says "it goes without --diff, --by, --histogram, --ports, --locks and --memory"
echo PASS
