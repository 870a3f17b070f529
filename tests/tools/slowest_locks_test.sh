#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    print --slowest shows the waits for locks within each call, and the call in which the other thread held the lock or signalled:
#         its function, its thread, and the time at which it began, which --from takes. report, its tree, sql and report --diff have the
#         part of each function's time in these waits, and have none of it where calls do not tell which lock they took.
# Method  A program in which one call waits for a mutex while flush() holds it, one for a condition that wake() signals, one for a lock for
#         reading while a writer has it, and one for nothing; all events give the times. Contention is certain: a call begins when the lock is taken.
build=$1
. "$(dirname "$0")/lib.sh"
cat >app.c <<'C'
#include <pthread.h>
#include <time.h>
#define KEPT __attribute__((noinline))
pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER, ready_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t tree_lock = PTHREAD_RWLOCK_INITIALIZER;
pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
int is_ready, step, part = 1;
static void reach(int n) { __atomic_store_n(&step, n, __ATOMIC_SEQ_CST); }
static void await_step(int n) { struct timespec t = {0, 100000}; while (__atomic_load_n(&step, __ATOMIC_SEQ_CST) < n) nanosleep(&t, 0); }
static void nap(long ms) { struct timespec t = {0, ms * 1000000 / part}; nanosleep(&t, 0); }
KEPT int flush(void) { pthread_mutex_lock(&table_lock); reach(1); nap(60); pthread_mutex_unlock(&table_lock); return 1; }
KEPT int wake(void) { await_step(2); nap(30); pthread_mutex_lock(&ready_lock); is_ready = 1; pthread_cond_signal(&ready); pthread_mutex_unlock(&ready_lock); return 1; }
KEPT int grow(void) { pthread_rwlock_wrlock(&tree_lock); reach(3); nap(60); pthread_rwlock_unlock(&tree_lock); return 1; }
KEPT int handle(void) { pthread_mutex_lock(&table_lock); pthread_mutex_unlock(&table_lock); return 2; }
KEPT int wait_ready(void) { pthread_mutex_lock(&ready_lock); reach(2); while (!is_ready) pthread_cond_wait(&ready, &ready_lock); pthread_mutex_unlock(&ready_lock); return 3; }
KEPT int look(void) { pthread_rwlock_rdlock(&tree_lock); pthread_rwlock_unlock(&tree_lock); return 4; }
KEPT int idle(void) { pthread_mutex_lock(&table_lock); nap(1); pthread_mutex_unlock(&table_lock); return 5; }
KEPT int idle_only(void) { nap(1); return 6; }
static void *other(void *unused) { flush(); wake(); grow(); return unused; }
int main(int count, char **words)
{
	pthread_t thread;
	(void)words;
	part = count;
	pthread_create(&thread, 0, other, 0);
	await_step(1);
	handle();
	wait_ready();
	await_step(3);
	look();
	pthread_join(thread, 0);
	return idle() + idle_only() != 11;
}
C
gcc -g -w -O1 -fno-optimize-sibling-calls -fpatchable-function-entry=9 -pthread -o app app.c || fail gcc
expect 0 "$tw" record -q --force --returns --locks --on-full block -t app:_ -o a.tw -- ./app
expect 0 "$tw" print --format json a.tw
cp out events.json
cat >model.py <<'P'
import json, sys
function, lock, kind, taker, other, field = sys.argv[1:]
events = [json.loads(line) for line in open("events.json")]
row = json.loads(open("out").read())
def calls(name):
    return [e for e in events if e["kind"] == "call" and e["function"] == name]
# The call of libc within the function, by its thread.
begin = calls(function)[0]
wait = next(e for e in calls(taker) if e["thread"] == begin["thread"] and e["ns"] > begin["ns"])
end = next(e for e in events if e["kind"] == "return_from" and e["function"] == taker and e["thread"] == begin["thread"] and e["ns"] > wait["ns"])
assert row["wait_count"] >= 1, row
most = row["waits"][0]
assert (most["kind"], most["symbol"], most["ns"]) == (kind, "app:" + lock, wait["ns"]), (most, wait)
assert end["ns"] - wait["ns"] - 1000000 < most["wait_ns"] <= end["ns"] - wait["ns"], (most, wait, end)
assert row["wait_ns"] >= most["wait_ns"]
by, theirs = most["by"], calls(other)[0]
assert by["thread"] == theirs["thread"] != begin["thread"] and by["name"].split("/")[0] == "app:" + other and by["ns"] == theirs["ns"], (by, theirs)
# When it took the lock, or signalled.
took = next(e for e in events if e["thread"] == by["thread"] and e["function"] == field and e["ns"] > theirs["ns"] and
            e["kind"] == ("call" if kind == "condition" else "return_from"))
assert by["took_ns"] == took["ns"], (by, took)
P
while read -r function lock kind taker other field; do
	expect 0 "$tw" print --slowest 1 -t "app:$function" --format json a.tw
	python3 model.py "$function" "$lock" "$kind" "$taker" "$other" "$field" || fail "the waits of $function"
	cp out whole
	# The holder is another thread than that of --thread, and has begun before a part.
	expect 0 "$tw" print --slowest 1 -t "app:$function" --format json \
		--from "$(python3 -c 'import json; print(json.load(open("whole"))["ns"])')ns" a.tw
	is "$(json 'd["waits"][0]["by"]')" "$(python3 -c 'import json; print(json.load(open("whole"))["waits"][0]["by"])')" "in a part"
	expect 0 "$tw" print --slowest 1 -t "app:$function" --thread "$(python3 -c 'import json; print(json.load(open("whole"))["process"].split()[0])')" --format json a.tw
	is "$(json 'd["waits"][0]["by"]["thread"]')" "$(python3 -c 'import json; print(json.load(open("whole"))["waits"][0]["by"]["thread"])')" "of one thread"
done <<'L'
handle table_lock mutex pthread_mutex_lock flush pthread_mutex_lock
wait_ready ready condition pthread_cond_wait wake pthread_cond_signal
look tree_lock rwlock pthread_rwlock_rdlock grow pthread_rwlock_wrlock
L
expect 0 "$tw" print --slowest 1 -t app:idle --format json a.tw
is "$(json 'd["wait_count"], d["waits"]')" "0 []" "waits of a call that waits for no lock"

expect 0 "$tw" print --slowest 1 -t app:handle a.tw
shows '^ *[0-9.]* ms  *waited for mutex app:table_lock, from [0-9.]*$'
shows '^ *held by app:flush, from [0-9]*\.[0-9]\{9\} on [0-9]* app$'
from=$(sed -n 's/.*held by app:flush, from \([0-9.]*\) .*/\1/p' out)
expect 0 "$tw" print --from "$from" --limit 1 a.tw
shows ' call *app:flush'
expect 0 "$tw" print --slowest 1 -t app:wait_ready a.tw
shows '^ *signalled by app:wake, from '
# A wait that was found itself has it too.
expect 0 "$tw" print --slowest 1 -t 'libc:pthread_cond_wait' a.tw
shows 'signalled by app:wake'

# The same waits as a part of the times of functions: in tables, in the tree, in SQL, and between two runs.
cat >sums.py <<'P'
import json, sys
events = [json.loads(line) for line in open("events.json")]
def wait(function, taker):
    call = next(e for e in events if e["kind"] == "call" and e["function"] == function)
    begin = next(e for e in events if e["kind"] == "call" and e["function"] == taker and e["thread"] == call["thread"] and e["ns"] > call["ns"])
    return next(e for e in events if e["kind"] == "return_from" and e["function"] == taker and e["thread"] == begin["thread"] and e["ns"] > begin["ns"])["ns"] - begin["ns"]
handle, look = wait("handle", "pthread_mutex_lock"), wait("look", "pthread_rwlock_rdlock")
rows = {row["name"].split("/")[0]: row for row in json.loads(open("out").read())["by_function"]}
def about(name, ns):
    assert ns - 2000000 < rows[name]["in_locks"] * 1e9 <= ns + 1000, (name, rows[name]["in_locks"], ns)
about("app:handle", handle)
about("app:look", look)
about("libc:pthread_rwlock_rdlock", look)
# The time of a wait for a condition is none; its mutex may be waited for.
assert rows["app:wait_ready"]["in_locks"] * 1e9 < 20000000, rows["app:wait_ready"]
assert rows["app:main"]["in_locks"] * 1e9 >= handle + look - 2000000, rows["app:main"]
assert rows["app:idle"]["in_locks"] == rows["app:grow"]["in_locks"] == 0
assert all(row["in_locks"] <= row["total"] for row in rows.values())
P
expect 0 "$tw" report --json a.tw
python3 sums.py || fail "waits in the times of functions"
expect 0 env COLUMNS=200 "$tw" report a.tw
shows '  total .* in locks '
shows '^in locks: .* are waits for locks that other threads held, .* for the [mr][uw][a-z]* app:t[a-z]*_lock, [0-9.]* ms of these mainly for [0-9]* app (report --locks)'
expect 0 env COLUMNS=200 "$tw" report -t app:look a.tw
shows '^in locks: \([0-9.]* ms\) of total .*, \1 for the rwlock app:tree_lock, \1 of these '
expect 0 env COLUMNS=100 "$tw" report --tree a.tw
shows '^ *total *self *in locks *calls '
shows ' ms  *1  *app:handle$'
shows ' 0 ns  *1  *app:flush$'
expect 0 "$tw" sql --csv a.tw "select function, in_locks > 50000000, lock, lock_holder <> thread from calls where function in ('handle', 'look', 'idle') order by function"
is "$(tail -n +2 out | tr -d '\r"' | paste -sd ' ')" "handle,1,app:table_lock,1 idle,0,, look,1,app:tree_lock,1"
expect 0 "$tw" sql --csv a.tw "select function from functions where in_locks > 50000000 and module = 'app' order by function"
is "$(tail -n +2 out | tr -d '\r"' | paste -sd ' ')" "handle look main"
# Half the naps: each wait is that much shorter.
expect 0 "$tw" record -q --force --returns --locks --on-full block -t app:_ -o b.tw -- ./app half
expect 0 "$tw" report --json a.tw
cp out a.json
expect 0 "$tw" report --json b.tw
cp out b.json
expect 0 "$tw" report --diff a.tw b.tw
shows '^Waits for locks in them: .*, now .* ms: -'
expect 0 "$tw" report --json --diff a.tw b.tw
cat >change.py <<'P'
import json
def rows(name):
    return {row["name"].split("/")[0].split(":", 1)[-1]: row for row in json.load(open(name))["by_function"]}
old, new, change = rows("a.json"), rows("b.json"), rows("out")
for name in "handle", "look", "idle", "main":
    difference = new[name]["in_locks"] - old[name]["in_locks"]
    assert abs(change[name]["in_locks_change"] - difference) < 1e-6, (name, difference, change[name])
    assert (difference < -0.01) == (name != "idle"), (name, difference)
P
python3 change.py || fail "the change of waits"

# Calls without arguments do not tell which lock it was.
expect 0 "$tw" record -q --force --returns -t app:_ -t 'libc:pthread_mutex_*' -o n.tw -- ./app
expect 0 "$tw" print --slowest 1 -t app:handle n.tw
says "record with --locks"
! grep -q 'waited for' out || fail "a wait without its lock"
expect 0 "$tw" report --json n.tw
json 'all("in_locks" not in row for row in d["by_function"]) or 1 // 0'
expect 0 "$tw" sql --csv n.tw "select distinct in_locks from calls"
is "$(tail -n +2 out | tr -d '\r')" ""
# Calls that take no locks do not need them.
expect 0 "$tw" print --slowest 1 -t app:idle_only n.tw
[ ! -s err ] || fail "a note that does not matter: $(cat err)"
expect 0 "$tw" record -q --force --returns -t app:_ -o n.tw -- ./app
expect 0 "$tw" print --slowest 1 -t app:handle n.tw
[ ! -s err ] || fail "a note without reason"
echo PASS
