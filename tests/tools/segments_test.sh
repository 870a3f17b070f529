#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A closed segment is a capture of its own, and any set of them is one: sums are right either way.
# Method  A program with calls that are open for long, and losses, is recorded in many segments; they are read one by
#         one, under other names, and concatenated in a pipe.
build=$1
. "$(dirname "$0")/lib.sh"

cat >steps.c <<'EOT'
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#define OUT __attribute__((noinline))
OUT void leaf(int i) { __asm__ volatile("" ::"r"(i)); }
OUT void step(int n) { for (int i = 0; i < n; i++) leaf(i); __asm__ volatile(""); }
OUT void *shortly(void *unused) { leaf(0); __asm__ volatile(""); return unused; }
OUT void quietly(void) { const struct timespec t = {0, 10000000}; while (access("go", F_OK)) nanosleep(&t, NULL); }
int main(int argc, char **argv)
{
	for (int i = 0; i < 6; i++)
		step(atoi(argv[1]));
	for (int i = 0; i < atoi(argv[2]); i++) {
		pthread_t thread;
		pthread_create(&thread, NULL, shortly, NULL);
		pthread_join(thread, NULL);
	}
	for (int i = 0; i < atoi(argv[3]); i++)
		quietly();
	return 0;
}
EOT
${CC:-cc} -O2 -g -fpatchable-function-entry=9 steps.c -o steps -lpthread || fail "no program"

# By time, also while nothing happens: the first segment is closed long before the program's next event.
"$tw" record -q --returns -t steps:step --segment-time 200ms -o time.tw -- ./steps 10 0 1 &
recorder=$!
wait_until test -e time.tw/segment-000001.tws
kill -0 $recorder || fail "the recording is over"
touch go
wait $recorder
expect 2 "$tw" record --segment-time 1ms -- true
says 'segment-time is a time of at least 10ms'

# In many pieces, with losses.
for policy in drop block; do
	expect 0 "$tw" record -q --force --returns -t steps:_ --on-full $policy --ring 64K --rotate 64K -o all.tw -- ./steps 60000 0 0
	expect 0 "$tw" report --json --top 0 all.tw
	mv out whole
	rm -rf alone renamed.tw && mkdir alone renamed.tw
	number=0
	for segment in all.tw/*.tws; do
		number=$((number + 1))
		cp "$segment" "alone/$number.tws"
		# In another order, and by arbitrary names.
		cp "$segment" "renamed.tw/$((1000 - number))-KEY.tws"
		expect 0 "$tw" info --json "alone/$number.tws"
		[ ! -s err ] || fail "a closed segment by itself is not well: $(cat err)"
		mv out "alone/$number.info"
	done
	# On a busy machine nearly everything may be lost.
	if [ $policy = drop ] && [ "$number" -lt 2 ]; then
		echo "too much was lost here: sums of losses are not tested"
		continue
	fi
	[ "$number" -gt 1 ] || fail "too few segments to test"
	expect 0 "$tw" report "alone/2.tws"
	[ ! -s err ] || fail "a report of a closed segment complains"
	! grep -q 'not complete' out || fail "a closed segment by itself is not complete"
	code=0
	"$tw" print --limit 5 - <alone/2.tws >out 2>err || code=$?
	is "$code" 0 "a closed segment in a pipe"
	"$tw" flame - <alone/2.tws >/dev/null 2>err || fail "a flame graph of a closed segment"
	expect 0 "$tw" report --json --top 0 renamed.tw
	mv out renamed
	cat alone/?.tws alone/??.tws 2>/dev/null | "$tw" report --json --top 0 - >joined 2>err || fail "segments behind one another"
	python3 - "$number" <<'EOT' || fail "sums of segments ($policy)"
import json, sys
whole, renamed, joined = (json.load(open(name)) for name in ("whole", "renamed", "joined"))
alone = [json.load(open(f"alone/{i + 1}.info")) for i in range(int(sys.argv[1]))]
assert sum(a["events"] for a in alone) == whole["events"]
assert sum(sum(a["lost"].values()) for a in alone) == sum(whole["lost"].values())
for other in (renamed, joined):
    assert other["lost"] == whole["lost"]
    assert other["by_function"] == whole["by_function"]
    assert other["events"] == whole["events"]
EOT
	if [ $policy = block ]; then
		# Calls that are open across segments have their whole time.
		mv whole out
		is "$(json '[(f["calls"], f["returned"]) for f in d["by_function"] if ":step/" in f["name"]]')" "[(6, 6)]"
	fi
done

# Threads that had one number in turn are counted separately.
expect 0 "$tw" record -q --force --on-full block -t steps:shortly -o threads.tw -- ./steps 1 300 0
expect 0 "$tw" info --json threads.tw
is "$(json 'd["threads"], d["events"]')" "300 300"
expect 0 "$tw" report --json threads.tw
is "$(json 'len(d["by_thread"])')" 300
