#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    report --diff says what differs between captures: calls, own and total times, percentiles by function, also where the program has
#         another name, as means where a side has several captures, and in a part of the time. A function that only one side called, counted
#         calls, captures without returns, losses. What cannot be compared is one sentence.
# Method  Two builds of a program whose calls are known. Times are computed again from `report --json` of each capture alone.
build=$1
. "$(dirname "$0")/lib.sh"
make_sides 3

cat >check.py <<'P'
import json, subprocess, sys
tw, old, new, *more = sys.argv[1:]
old, new = old.split(","), new.split(",")
def load(*words):
    return json.loads(subprocess.run([tw, "report", "--json", "--top", "0", *more, *words], stdout=subprocess.PIPE, check=True).stdout)
def plain(name):
    return name.split(":", 1)[1] if name.split(":")[0] in ("old", "app") else name
def means(paths):
    sums = {}
    for path in paths:
        for row in load(path)["by_function"]:
            known = sums.setdefault(plain(row["name"]), dict.fromkeys(("calls", "self", "total"), 0))
            for key in known:
                known[key] += row[key] / len(paths)
            known["median"], known["p99"] = row["median"], row["p99"]
    return sums
def near(a, b, least):
    return abs(a - b) <= max(least, 1e-8 * abs(b))
diff = load(*[word for path in old for word in ("--diff", path)], *new)
sides = {"old": means(old), "new": means(new)}
names = set(sides["old"]) | set(sides["new"])
assert len(diff["by_function"]) == diff["functions"] == len(names), diff
sizes = []
for row in diff["by_function"]:
    name = plain(row["name"])
    for side, sums in sides.items():
        here = sums.get(name)
        assert row[side + "_calls"] == (round(here["calls"]) if here else 0), (name, row)
        assert (side + "_self" in row) == bool(here), row
        for key in ("self", "total"):
            assert not here or near(row[f"{side}_{key}"], here[key], 2e-9), (name, key, row, here)
        for key in ("median", "p99"):
            if len(old) + len(new) == 2:
                assert not here or near(row.get(f"{side}_{key}", 0), here[key], 0), (name, key, row, here)
    for key in ("self", "total"):
        assert near(row[key + "_change"], row.get("new_" + key, 0) - row.get("old_" + key, 0), 2e-9), row
    assert row["calls_change"] == row["new_calls"] - row["old_calls"]
    if "noise" in row:
        assert row["is_noise"] == (abs(row["self_change"]) <= row["noise"] + 1e-9), row
    sizes.append(abs(row["self_change"]))
assert sizes == sorted(sizes, reverse=True), "not by what explains most"
for side, sums in sides.items():
    assert near(diff[side]["self"], sum(row["self"] for row in sums.values()), 1e-8), diff[side]
    assert len(diff[side]["captures"]) == len(old if side == "old" else new)
P
check() { python3 check.py "$tw" "$@" || fail "check $*"; }
check old1.tw app1.tw
check old1.tw app1.tw --from 300us
check old1.tw,old2.tw,old3.tw app1.tw,app2.tw,app3.tw
check old1.tw,old2.tw app1.tw

# What a person reads.
expect 0 "$tw" report --diff old1.tw app1.tw
says_out() { grep -q "$1" out || fail "no '$1' in: $(cat out)"; }
says_out 'The program was old, and is app: functions of both are compared by name.'
says_out '^Calls: 7,001, now 7,001: no change.$'
says_out '^ *+.*+1,000 .* app:parse$'
says_out '^ *[~]\?-.* - .* -1,000 .* app:only$'
[ "$(grep -n ':parse$' out | cut -d: -f1)" -lt "$(grep -n ':render$' out | cut -d: -f1)" ] || fail "parse explains it"
# Half a second is no chance, in one run and in three; a capture and itself do not differ.
for side in '--diff old1.tw app1.tw' '--diff old1.tw --diff old2.tw --diff old3.tw app1.tw app2.tw app3.tw'; do
	# shellcheck disable=SC2086 # words
	expect 0 "$tw" report --json $side
	is "$(python3 -c 'import json; print(next(r["is_noise"] for r in json.load(open("out"))["by_function"] if ":parse" in r["name"]))')" \
		False "noise, $side"
done
expect 0 "$tw" report --json --diff old1.tw old1.tw
python3 -c 'import json
d = json.load(open("out"))
assert all(r["self_change"] == r["calls_change"] == r["total_change"] == 0 for r in d["by_function"]), d' || fail "a capture and itself"
expect 0 "$tw" report --csv --diff old1.tw app1.tw
is "$(head -n 1 out | cut -d, -f1-4)" name,self_change,noise,old_self
is "$(python3 -c 'import csv; print([r["calls_change"] for r in csv.DictReader(open("out")) if r["name"] == "app:only"])')" "['-1000']" csv
expect 0 "$tw" report --diff old1.tw --sort calls_change --columns calls_change,new_p99 --top 1 app1.tw
is "$(grep -c 'app:\(parse\|only\)$' out) $(grep -c ' in [0-9]* more$' out)" "1 1" "--sort, --columns, --top"

# Without returns calls are compared; counted calls as well.
expect 0 "$tw" record -q --force -t 'app:_' -o bare.tw -- ./app
expect 0 "$tw" report --diff old1.tw bare.tw
says_out 'Times are compared where all captures have returns: record with --returns.'
says_out '^ *+1,000 .* app:parse$'
! grep -q ' [mun]s ' out || fail "times: $(cat out)"
expect 0 "$tw" record -q --force --count 'app:parse' --returns -t 'app:_' -o counted.tw -- ./app
expect 0 "$tw" report --diff old1.tw --json counted.tw
is "$(python3 -c 'import json; print([(r["new_calls"], r["old_calls"]) for r in json.load(open("out"))["by_function"] if ":parse" in r["name"]])')" "[(4000, 3000)]" counted

# Losses are said, and mark sums.
expect 0 "$tw" record -q --force --on-full drop --ring 64K --returns -t 'app:_' -o lossy.tw -- ./app
if "$tw" info --json lossy.tw | grep -q '"full": [1-9]'; then
	expect 0 "$tw" report --diff app1.tw lossy.tw
	says_out 'LOST '
fi

# What cannot be compared.
expect 1 "$tw" report --diff old1.tw none.tw
expect 1 "$tw" report --diff none.tw app1.tw
expect 0 "$tw" record -q --force --global --returns -t libc:_ -o other.tw -- true
expect 1 "$tw" report --diff old1.tw other.tw
says 'no function was called in both: these are captures of different programs'
expect 2 "$tw" report --diff old1.tw
says "which capture is compared with 'old1.tw'? Its name follows."
expect 2 "$tw" report --diff old1.tw --tree app1.tw
says '\-\-diff, \-\-by and \-\-histogram are views of their own'
expect 2 "$tw" report --diff old1.tw --sort total app1.tw
says "\-\-sort is name, self_change, .* not 'total'"
expect 2 "$tw" report old1.tw app1.tw
says "one capture at a time, not 2"
expect 1 "$tw" report --diff old1.tw --longer 1ms bare.tw
says "\-\-longer needs durations, and 'bare.tw' has no returns"
exit 0
