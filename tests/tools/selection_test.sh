#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Queries for a part of a capture work: names are whole in pipes, the sorting column is shown, an empty selection
#         gives the reason, threads are found by name, 0 means all everywhere, and a window within a long call begins
#         and ends with the open calls.
# Method  A program with a long call of a known shape and names longer than a screen.
build=$1
. "$(dirname "$0")/lib.sh"

long=a_function_whose_name_is_much_longer_than_any_column_of_a_table_could_ever_be_on_eighty_columns
cat >part.c <<C
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>
__attribute__((noipa)) void leaf(int ms) { nanosleep(&(struct timespec){0, ms * 1000000L}, NULL); }
__attribute__((noipa)) void $long(void) { __asm__ volatile(""); }
__attribute__((noipa)) void work(int n) { for (int i = 0; i < n; i++) leaf(2); }
static void *run(void *none) { pthread_setname_np(pthread_self(), "helper"); $long(); return none; }
int main(void)
{
	pthread_t thread;
	work(30);
	pthread_create(&thread, NULL, run, NULL);
	pthread_join(thread, NULL);
}
C
gcc -O1 -g -fpatchable-function-entry=9 -o part part.c -lpthread || fail "the compiler"
expect 0 "$tw" record -q --returns --args -t 'part:_' -o p.tw -- ./part

# Names in pipes are whole; on a terminal of a given width they fit.
for view in "--top 0" "--callers" "--tree --top 0"; do
	# shellcheck disable=SC2086
	expect 0 "$tw" report $view p.tw
	shows "part:$long"
	# shellcheck disable=SC2086
	COLUMNS=80 expect 0 "$tw" report $view p.tw
	! grep -q "part:$long" out || fail "a name wider than 80 columns"
	! grep -q '^.\{81\}' out || fail "a line wider than 80 columns"
done
for key in min p99; do
	COLUMNS=80 expect 0 "$tw" report --sort $key p.tw
	shows "^ *total .* $key .* function"
	! grep -q '^.\{81\}' out || fail "a line wider than 80 columns"
done

# Columns by name; CSV has all of them, the numbers of JSON.
expect 0 "$tw" report --columns calls,p99,total,returned p.tw
shows '^ *calls  *p99  *total  *returned  function'
expect 2 "$tw" report --columns calls,size p.tw
says "a column is calls, .* or unknown, not 'size'"
expect 0 "$tw" report --json --top 0 p.tw
mv out rows.json
expect 0 "$tw" report --csv --top 0 p.tw
python3 - <<'EOT' || fail "CSV is not JSON"
import csv, json
rows, members = list(csv.DictReader(open("out"))), json.load(open("rows.json"))["by_function"]
assert len(rows) == len(members) > 1
for row, member in zip(rows, members):
    assert member["name"] in (row["name"], row["name"] + "/_"), (row, member)
    for key in set(row) - {"name"}:
        assert not row[key] or abs(float(row[key]) - member[key]) < 2e-9, (key, row, member)
assert any(row["total"] and row["max"] for row in rows)
EOT
expect 2 "$tw" report --csv --tree p.tw

# An empty part: each view names the part of the request that is the reason.
expect 0 "$tw" report -t nosuch:_ p.tw
shows 'Nothing in the capture matches -t nosuch:_: functions of part'
! grep -q 'Nothing was lost' out || fail "losses of nothing"
for view in "report --json" "print" "print --tree" "print --format chrome" "print --format json" "flame --folded"; do
	# shellcheck disable=SC2086
	expect 0 "$tw" $view -t nosuch:_ p.tw
	says 'nothing in the capture matches -t nosuch:_'
done
expect 0 "$tw" report --thread 1 p.tw
shows 'No thread of the capture is --thread 1: there are .* helper'
expect 0 "$tw" print --from 1000 p.tw
says 'from 1000 is after the last event of the capture, at '
expect 0 "$tw" print -t part:work p.tw
[ ! -s err ] || fail "something is in it"
expect 2 "$tw" print --thread '' p.tw

# Threads by name, and by a pattern of names.
expect 0 "$tw" print --thread 'pa*' --format json p.tw
grep -q '"function":"leaf"' out && ! grep -q "$long" out || fail "not the thread that was named"

# 0 is all.
expect 0 "$tw" print p.tw
all=$(wc -l <out)
expect 0 "$tw" print --limit 0 p.tw
is "$(wc -l <out)" "$all" "lines of --limit 0"

# A window within main and work: they are open at its beginning and at its end.
expect 0 "$tw" print --tree --from 20ms --to 40ms p.tw
sed -n 1p out | grep -Eq '^0\.[0-9]{9} +[0-9]+ part +\|  part:main \{  \(called [0-9.]+ ms before\)$' || fail "main is not open first"
sed -n 2p out | grep -q '|    part:work {  (called .* before)$' || fail "work is not open within main"
[ "$(grep -c 'leaf(ms = 2)' out)" -ge 1 ] || fail "no calls inside the window"
tail -n 1 out | grep -q '}  part:main  (still open)$' || fail "main does not end the window"
awk '/part:(main|work)  .still open/ { last = $3 + 0; if ($4 != "ms" || last > 60) bad = 1 } END { exit bad || last < 15 }' out || fail "times of open calls"
expect 0 "$tw" print --format chrome --from 20ms --to 40ms p.tw
python3 - <<'EOT' || fail "the timeline of the window"
import json
slices = [e for e in json.load(open("out"))["traceEvents"] if e["ph"] == "X"]
for name in ("part:main/0", "part:work/1"):
    open_ones = [e for e in slices if e["name"] == name]
    assert len(open_ones) == 1 and open_ones[0]["args"]["end"] == "still open", open_ones
    assert abs(open_ones[0]["ts"] - 20000) < 1 and open_ones[0]["args"]["before_ns"] > 0, open_ones
    assert abs(open_ones[0]["ts"] + open_ones[0]["dur"] - 40000) < 1, open_ones
leaves = [e for e in slices if e["name"] == "part:leaf/1"]
assert leaves and all(e["ts"] + e["dur"] >= 20000 for e in leaves), leaves
EOT
