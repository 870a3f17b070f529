#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    What `tracewheel cut` writes is shown as the same selection of the whole capture is: calls, times, open calls, losses,
#         messages; it is small, and reads the same without the program's files.
# Method  Captures of two threads with calls within calls, of rings that are too small, and of actors. Reports and prints of a
#         part are compared with those of the whole, with the selection; then the program's file is removed.
build=$1
. "$(dirname "$0")/lib.sh"

cat >part.c <<'C'
#include <pthread.h>
#include <stdlib.h>
#define OUT __attribute__((noipa))
OUT int leaf(int i) { __asm__ volatile(""); return i; }
OUT int inner(int n) { int sum = 0; for (int i = 0; i < n; i++) sum += leaf(i); return sum; }
OUT int outer(int n) { return inner(n) + inner(n); }
OUT int whole(int n) { int sum = 0; for (int i = 0; i < n; i++) sum += outer(20); return sum; }
OUT int begin(int n) { return whole(n) + 1; }
static void *run(void *count) { begin(*(int *)count); return NULL; }
OUT const char *open_file(const char *name, int n) { return name + n; }
int main(int argc, char **argv)
{
	int count = atoi(argv[1]);
	pthread_t thread;
	if (!count)
		return *open_file("secret-string", 7) + *open_file(argv[1], 7) == 0;
	pthread_create(&thread, NULL, run, &count);
	begin(argc > 2 ? atoi(argv[2]) : count);
	pthread_join(thread, NULL);
}
C
gcc -O1 -g -fpatchable-function-entry=9 -o part part.c -lpthread || fail "the compiler"

# The estimate of the tracer's own cost, the bytes and the threads are those of what is there.
# Those that same() has left, whole1.json, part1.json, ..., are compared by one program at the end; in said1 is what they are of.
pairs=0
compare_all() {
	python3 -I -S - "$pairs" <<'P' || fail "a report of a part"
import json, sys
def clean(value):
    if isinstance(value, dict):
        return {k: clean(v) for k, v in value.items() if k not in ("bytes", "account", "tracer_ns", "tracer_per_call")}
    return [clean(v) for v in value] if isinstance(value, list) else value
for number in range(1, int(sys.argv[1]) + 1):
    whole, part = (clean(json.load(open(f"{name}{number}.json"))) for name in ("whole", "part"))
    for side in whole, part:
        side["by_thread"] = [{k: row[k] for k in row if k != "seconds"} for row in side["by_thread"] if row["events"]]
    both = sorted({*whole, *part})
    assert whole["events"] and whole == part, (open(f"said{number}").read(),
        [(k, whole.get(k), part.get(k)) for k in both if whole.get(k) != part.get(k)])
P
}

# Views beside the report: all of them, and what the short form takes for most selections.
all_views=(print "print --format json" "flame --folded" tree)
views=("${all_views[@]}")
# short_views VIEW...: those of the next same() in the short form.
short_views() {
	[ -n "${TW_TEST_LONG:-}" ] || views=("$@")
}
# same WHOLE SELECTION...: cuts part.tw and compares its views with those of the selection.
same() {
	local whole=$1 view
	shift
	expect 0 "$tw" cut -q --force "$@" -o part.tw "$whole"
	pairs=$((pairs + 1))
	echo "$@" >said$pairs
	expect 0 "$tw" report --json -n 0 "$@" "$whole"
	mv out whole$pairs.json
	expect 0 "$tw" report --json -n 0 part.tw
	mv out part$pairs.json
	for view in "${views[@]}"; do
		if [ "$view" = tree ]; then
			same_tree "$whole" "$@"
			continue
		fi
		# shellcheck disable=SC2086
		expect 0 "$tw" $view "$@" "$whole"
		[ -s out ] || fail "nothing is compared: $view $*"
		mv out expected
		# shellcheck disable=SC2086
		expect 0 "$tw" $view part.tw
		cmp -s out expected || fail "$view $* differs: $(diff out expected | head -n 4)"
	done
	views=("${all_views[@]}")
}

# The tree has a column of threads where there are several, and no order of calls that are open at its beginning.
same_tree() {
	local whole=$1 view
	shift
	for view in "$* $whole" part.tw; do
		# shellcheck disable=SC2086
		expect 0 "$tw" print --tree $view
		grep -o '(called .*\|} = .*' out | sort >"tree.${view##*.}${#view}"
	done
	cmp -s tree.* || fail "print --tree $*: $(diff tree.* | head -n 4)"
	rm tree.*
}

# times NAME.tw: those of its events; at PERCENT: the time at which that share of them has happened.
times() {
	expect 0 "$tw" print "$1"
	awk '{ time[NR - 1] = $1 } END { for (i = 0; i <= 100; i++) print time[int((NR - 1) * i / 100)] }' out >percents
	mapfile -t times <percents
}
at() { echo "${times[$1]}"; }

expect 0 "$tw" record -q --returns --args --stack 4 -t 'part:_' -o x.tw -- ./part "$(rounds 6 50)"
times x.tw
short_views print
same x.tw --from "$(at 40)" --to "$(at 50)"
# In the short form the other stacks end in the program: each command would read the debug information of libc anew.
if [ -z "${TW_TEST_LONG:-}" ]; then
	expect 0 "$tw" record -q --force --returns --args --stack 2 -t part:leaf -t part:inner -t part:outer -t part:whole -o x.tw -- ./part 6
	times x.tw
fi
same x.tw --from "$(at 70)"
short_views tree
same x.tw --to "$(at 30)"
short_views "flame --folded"
same x.tw -t part:leaf -t part:outer --from "$(at 20)" --to "$(at 90)"
short_views print
same x.tw --thread part --from "$(at 60)"
short_views "print --format json"
same x.tw --tail 50

# A part of a part is a part of the whole; a request for more than the part gets the part.
expect 0 "$tw" cut -q --from "$(at 20)" --to "$(at 80)" -o some.tw x.tw
expect 0 "$tw" cut -q --from "$(at 40)" --to "$(at 50)" -o once.tw x.tw
expect 0 "$tw" cut -q --from "$(at 40)" --to "$(at 50)" -o twice.tw some.tw
expect 0 "$tw" print --tree once.tw
mv out expected
expect 0 "$tw" print --tree twice.tw
cmp -s out expected || fail "a part of a part"
expect 0 "$tw" print --tree --from 0 --to 1000 once.tw
cmp -s out expected || fail "more than the part"

# Times are without the time that the tracer held the program, also where the part begins while it does.
expect 0 "$tw" record -q --returns --on-full block --ring 64K -t 'part:_' -o held.tw -- ./part 50 "$(rounds 150 400)"
expect 0 "$tw" report --json held.tw
mv out held.json
expect 0 "$tw" print held.tw
middle=$(awk 'NR > 1 && $1 - last > most { most = $1 - last; middle = last + most / 2 } { last = $1 } END { printf "%.9f", middle }' out)
short_views print tree
same held.tw --from "$middle"

# It is small, whole, and refused where it would be misread.
[ "$(du -sb once.tw | cut -f1)" -lt "$(du -sb x.tw | cut -f1)" ] || fail "not smaller"
expect 0 "$tw" info once.tw
shows '^complete *yes'
expect 1 "$tw" merge -o all.tw once.tw x.tw
says 'once.tw is a part that'
expect 1 "$tw" cut -o once.tw x.tw
says "'once.tw' exists"
expect 2 "$tw" cut x.tw
says '-o names the new capture'

# Lines are inside.
expect 0 "$tw" print --from "$(at 40)" --to "$(at 50)" x.tw
shows 'part.c:[0-9]'
mv out expected
mv part elsewhere
expect 0 "$tw" print once.tw
cmp -s out expected || fail "without the program: $(diff out expected | head -n 4)"
mv elsewhere part

# Losses within the part stay counted, by cause.
expect 0 "$tw" record -q --returns --on-full drop --ring 64K -t 'part:_' -o lossy.tw -- ./part 50
times lossy.tw
for part in "0 30" "30 60" "60 99"; do
	# shellcheck disable=SC2086
	set -- $part
	expect 0 "$tw" report --json --from "$(at "$1")" --to "$(at "$2")" lossy.tw
	mv out "lossy-whole-$1.json"
	expect 0 "$tw" cut -q --force --from "$(at "$1")" --to "$(at "$2")" -o part.tw lossy.tw
	expect 0 "$tw" report --json part.tw
	mv out "lossy-part-$1.json"
done

# Messages and schedules of a run-time system.
expect 0 "$tw" record -q --on-full block --returns -o bank.tw -p send,receive,procs,running -t 'bank:_' -- \
	"$build/bin/actors" bank --actors 2 --messages 400
times bank.tw
short_views print "print --format json" tree
same bank.tw --from "$(at 30)" --to "$(at 70)"

# Nothing that the program handled is in a stripped part; times and calls are.
mkdir secret-folder
cp part secret-folder/program
expect 0 "$tw" record -q --args --returns --stack 2 -t program:_ -o secret.tw -- secret-folder/program secret-argument
expect 0 "$tw" print secret.tw
shows 'secret-string'
shows 'secret-argument'
expect 0 "$tw" cut -q --strip -o bare.tw secret.tw
for view in print info "report --callers" "print --format json"; do
	# shellcheck disable=SC2086
	expect 0 "$tw" $view bare.tw
	shows program
	! grep -q 'secret-\(string\|argument\|folder\)' out || fail "a secret in $view: $(grep secret- out | head -n 2)"
done
! grep -rqaE 'secret-(string|argument|folder)' bare.tw || fail "a secret in a file"
expect 0 "$tw" report --json secret.tw
mv out secret.json
expect 0 "$tw" report --json bare.tw
mv out bare.json
expect 0 "$tw" cut -q --strip -o actors.tw bank.tw
expect 0 "$tw" print actors.tw
shows " send '...' to <0"
! grep -q 'withdraw.*,[0-9]' out || fail "a message is shown"

compare_all
python3 -I -S - <<'P' || fail "waits, losses or times"
import json
def read(name):
    return json.load(open(name + ".json"))
assert read("held")["account"]["waits"]["count"] > 0, "the tracer never held the program"
for begin in 0, 30, 60:
    whole, part = read(f"lossy-whole-{begin}"), read(f"lossy-part-{begin}")
    causes = sum(part["account"]["missing"][c]["events"] for c in ("full", "too_big", "nested", "no_ring"))
    losses = sum(whole["lost"].values()), sum(part["lost"].values()), causes
    assert len({*losses}) == 1, ("losses from", begin, losses)
secret, bare = ([(f["function"], f["calls"], f["total"]) for f in read(name)["by_function"]] for name in ("secret", "bare"))
assert secret and secret == bare, (secret, bare)
P
