#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    print --slowest shows the waits for locks within each call, and the call in which the other thread held the lock or signalled:
#         its function, its thread, and the time at which it began, which --from takes.
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
int is_ready, step;
static void reach(int n) { __atomic_store_n(&step, n, __ATOMIC_SEQ_CST); }
static void await_step(int n) { struct timespec t = {0, 100000}; while (__atomic_load_n(&step, __ATOMIC_SEQ_CST) < n) nanosleep(&t, 0); }
static void nap(long ms) { struct timespec t = {0, ms * 1000000}; nanosleep(&t, 0); }
KEPT int flush(void) { pthread_mutex_lock(&table_lock); reach(1); nap(60); pthread_mutex_unlock(&table_lock); return 1; }
KEPT int wake(void) { await_step(2); nap(30); pthread_mutex_lock(&ready_lock); is_ready = 1; pthread_cond_signal(&ready); pthread_mutex_unlock(&ready_lock); return 1; }
KEPT int grow(void) { pthread_rwlock_wrlock(&tree_lock); reach(3); nap(60); pthread_rwlock_unlock(&tree_lock); return 1; }
KEPT int handle(void) { pthread_mutex_lock(&table_lock); pthread_mutex_unlock(&table_lock); return 2; }
KEPT int wait_ready(void) { pthread_mutex_lock(&ready_lock); reach(2); while (!is_ready) pthread_cond_wait(&ready, &ready_lock); pthread_mutex_unlock(&ready_lock); return 3; }
KEPT int look(void) { pthread_rwlock_rdlock(&tree_lock); pthread_rwlock_unlock(&tree_lock); return 4; }
KEPT int idle(void) { pthread_mutex_lock(&table_lock); nap(1); pthread_mutex_unlock(&table_lock); return 5; }
KEPT int idle_only(void) { nap(1); return 6; }
static void *other(void *unused) { flush(); wake(); grow(); return unused; }
int main(void)
{
	pthread_t thread;
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

# Calls without arguments do not tell which lock it was.
expect 0 "$tw" record -q --force --returns -t app:_ -t 'libc:pthread_mutex_*' -o n.tw -- ./app
expect 0 "$tw" print --slowest 1 -t app:handle n.tw
says "record with --locks"
! grep -q 'waited for' out || fail "a wait without its lock"
# Calls that take no locks do not need them.
expect 0 "$tw" print --slowest 1 -t app:idle_only n.tw
[ ! -s err ] || fail "a note that does not matter: $(cat err)"
expect 0 "$tw" record -q --force --returns -t app:_ -o n.tw -- ./app
expect 0 "$tw" print --slowest 1 -t app:handle n.tw
[ ! -s err ] || fail "a note without reason"
echo PASS
