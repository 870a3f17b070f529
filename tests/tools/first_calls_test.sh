#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    The first call of a thread contains no set-up of its ring, however short the set-up was: in a new ring, and in
#         one taken over from a thread that has ended.
# Method  Threads that run at once, then threads that follow each other, call a function once. The capture has, for each
#         thread, a set-up that begins at the time stamp of its first call; the report's time of that call is without it.
build=$1
. "$(dirname "$0")/lib.sh"
cat >app.c <<'C'
#include <pthread.h>
static pthread_barrier_t all;
__attribute__((noinline, noipa)) long once(long a) { return a * 3; }
static void *together(void *arg)
{
	pthread_barrier_wait(&all);
	once(1);
	pthread_barrier_wait(&all);
	return arg;
}
static void *alone(void *arg) { once(2); return arg; }
int main(void)
{
	pthread_t threads[20];
	pthread_barrier_init(&all, NULL, 20);
	for (int i = 0; i < 20; i++)
		pthread_create(&threads[i], NULL, together, NULL);
	for (int i = 0; i < 20; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 20; i++) {
		pthread_create(&threads[0], NULL, alone, NULL);
		pthread_join(threads[0], NULL);
	}
	return 0;
}
C
gcc -O2 -fpatchable-function-entry=9 -o app app.c -lpthread || fail "gcc"
expect 0 "$tw" record -q --returns -o a.tw -t 'app:once' -- ./app
expect 0 "$tw" print --format json --setups a.tw
cp out a.json
expect 0 "$tw" report --json a.tw
python3 - a.json out <<'P' || fail "first calls"
import json, sys
text = open(sys.argv[1]).read()
events = [json.loads(l) for l in text.splitlines()]
report = json.load(open(sys.argv[2]))
calls = {e["thread"]: e["ns"] for e in events if e["kind"] == "call"}
ends = {e["thread"]: e["ns"] for e in events if e["kind"] == "return_from"}
setups = [e for e in events if e["kind"] == "own_time" and e["why"] == "setup"]
assert len([e for e in events if e["kind"] == "call"]) == 40, len(calls)
at = {(e["thread"], e["ns"]): e["own_ns"] for e in setups}
missing = [t for t in calls if (t, calls[t]) not in at]
assert not missing, (len(missing), "threads without a set-up")
spans = sum(ends[t] - calls[t] for t in calls)
own = sum(at[(t, calls[t])] for t in calls)
total = round(next(r["total"] for r in report["by_function"] if "once" in str(r)) * 1e9)
assert abs(total - (spans - own)) <= 40, (total, spans, own)
P
echo PASS
