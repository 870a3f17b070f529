#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Each file for other tools has the numbers of `report --json`: calls and own times by function, and losses, also where processes fork,
#         execute another program and are killed, calls are open at the end, events are lost, and threads of two machines have one number.
# Method  Programs of all these kinds are recorded; each file is read as its readers do, and summed up.
build=$1
. "$(dirname "$0")/lib.sh"
tests=$(realpath "$common/../tools")
command -v protoc >/dev/null || { echo "no protoc here: not tested" && exit 77; }
"$build/tests/tools_report_test" captures "$work" || fail "no captures"
cat >family.c <<'C'
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define OWN __attribute__((noinline))
static int fds[2];
OWN int leaf(int i) { __asm__ volatile("" : "+r"(i)); return i; }
OWN int node(int i) { return leaf(i) + leaf(i + 1); }
OWN int deep(int i) { int all = node(i); return i ? all + deep(i - 1) : all; }
OWN void again(char *self)
{
	node(1);
	execl(self, self, "again", (char *)0);
}
/* Open when another thread ends the process. */
OWN void *stay(void *arg)
{
	node(2);
	if (write(fds[1], "x", 1) == 1)
		pause();
	return arg;
}
OWN void *work(void *count)
{
	for (long i = 0; i < (long)count; i++)
		node((int)i);
	return 0;
}
OWN void leave(int code) { node(3); _exit(code); }
OWN void die(void) { node(4); kill(getpid(), SIGKILL); }
int main(int argc, char **argv)
{
	pthread_t threads[3];
	char byte;
	if (argc > 1 && !strcmp(argv[1], "again"))
		return node(7) == 0;
	if (argc > 1 && !strcmp(argv[1], "killed")) {
		deep(20);
		die();
	}
	long count = argc > 1 ? atol(argv[1]) : 300;
	deep(9);
	if (fork() == 0) {
		deep(3);
		again(argv[0]);
	}
	if (wait(0) < 0 || pipe(fds))
		return 1;
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], 0, work, (void *)count);
	pthread_create(&threads[2], 0, stay, 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], 0);
	if (read(fds[0], &byte, 1) != 1)
		return 1;
	leave(0);
}
C
${CC:-cc} -O1 -pthread -fpatchable-function-entry=9 family.c -o family || fail "no program"
expect 0 "$tw" record -q --follow-fork --returns --on-full block -t 'family:_' -o family.tw -- ./family
expect 137 "$tw" record -q --returns --on-full block -t 'family:_' -o killed.tw -- ./family killed
expect 0 "$tw" record -q --follow-fork --returns --on-full drop --ring 64K -t 'family:_' -o losing.tw -- ./family 20000
expect 0 "$tw" record -q --follow-fork --on-full block -t 'family:_' -o moments.tw -- ./family
names='family killed losing moments random actors calls'
# Two machines, as far as the numbers of processes and threads tell.
if unshare -pf true 2>/dev/null; then
	for half in one two; do
		expect 0 unshare -pf --mount-proc "$tw" record -q --returns --on-full block -t 'family:_' -o $half.tw -- ./family
	done
	expect 0 "$tw" merge -q -o merged.tw one.tw two.tw
	names+=' merged'
fi

cat >compare.py <<'P'
import collections, csv, json, os, re, sqlite3, subprocess, sys
import protoc_text, unpack_perfetto
name, tests = sys.argv[1:3]
report = json.load(open("report"))
rows = {f["name"].removesuffix("/_"): f for f in report["by_function"]}
calls = {n: f["calls"] for n, f in rows.items()}
own = {n: round(f["self"] * 1e9) for n, f in rows.items() if "self" in f}
has_times = any(own.values())
lost = sum(n for cause, n in report["lost"].items() if cause != "overwritten")
# A call without a return lasts to where it is known to have ended; in timelines it encloses what came in it. Slices of processes of a run-time
# hold the time in which these were out.
is_cut = any(f.get("cut") or f.get("lossy") for f in rows.values()) or name == "actors"

def same(what, found_calls, found_own=None):
    found_calls = {n: c for n, c in found_calls.items() if c}
    assert found_calls == calls, (name, what, "calls", found_calls, calls)
    if found_own is not None and has_times:
        found_own = {n: t for n, t in found_own.items() if t}
        # JSON has nine digits.
        wrong = {n: (found_own.get(n, 0), t) for n, t in own.items() if abs(found_own.get(n, 0) - t) > 1 + t / 10 ** 8}
        assert not wrong and found_own.keys() <= own.keys(), (name, what, "own times", wrong)

def sums(rows):
    found_calls, found_own = collections.Counter(), collections.Counter()
    for function, count, ns in rows:
        found_calls[function] += count
        found_own[function] += ns or 0
    return found_calls, found_own

# Perfetto: slices of each track, with their own times; messages of a run-time and its runs are others.
names, slices, moments, open_slices, at, marks = {}, collections.Counter(), collections.Counter(), collections.defaultdict(list), {}, []
times, tracks = collections.Counter(), {}
for packet in protoc_text.decode(name + ".plain", tests + "/perfetto.proto", "Trace")["packet"]:
    sequence = packet["sequence"][0]
    known = names.setdefault(sequence, ({}, {}))
    for snapshot in packet["clock_snapshot"]:
        at.update({sequence: clock["timestamp"][0] for clock in snapshot["clocks"] if clock["id"] == [64]})
    for defaults in packet["defaults"]:
        tracks[sequence] = defaults["event"][0]["track"][0]
    for interned in packet["interned"]:
        known[0].update((n["iid"][0], n["name"][0]) for n in interned["event_names"])
        known[1].update((n["iid"][0], n["name"][0]) for n in interned["annotation_names"])
    for event in packet["event"]:
        ns = packet["timestamp"][0]
        if sequence in tracks and not packet["clock"]:
            ns = at[sequence] = at[sequence] + ns
        function = known[0].get(event["name_iid"][0]) if event["name_iid"] else None
        words = {known[1][a["name_iid"][0]]: (a["uint"] or a["text"] or a["bool"] or a["json"] or a["int"] or a["pointer"])[0] for a in event["annotations"]}
        stack = open_slices[sequence]
        if event["type"] == [1]:
            stack.append([function, ns, 0])
        elif event["type"] == [2]:
            function, start, inner = stack.pop()
            if function:
                net = ns - start - words.get("own_ns", 0)
                slices[function] += 1
                times[function] += net - inner
                if stack:
                    stack[-1][2] += net
        elif event["type"] == [3] and function and "what" not in words:
            moments[function] += 1
        elif event["type"] == [4] and event["track"] == [0x7fffffff00000001]:
            marks.append(event["counter_value"][0])
assert not any(open_slices.values()) and (marks or [0])[-1] == lost, (name, marks[-3:], lost)
same("perfetto", slices + moments, None if is_cut else times)

# The other timeline.
events = json.load(open(name + ".chrome"))["traceEvents"]
same("chrome", collections.Counter(e["name"] for e in events if e["ph"] == "X" and not e.get("cat") and e["name"] in calls or e["ph"] == "i" and e["name"] in calls and "what" not in e.get("args", {})))

# speedscope: its times hold what is the tracer's own.
d = json.load(open(name + ".speedscope"))
frames, found, found_own = [f["name"] for f in d["shared"]["frames"]], collections.Counter(), collections.Counter()
for profile in d["profiles"]:
    stack = []
    for event in profile["events"]:
        if event["type"] == "O":
            stack.append([event["frame"], event["at"], 0])
        else:
            frame, begin, inner = stack.pop()
            assert frame == event["frame"]
            if frames[frame] in calls:
                found[frames[frame]] += 1
                found_own[frames[frame]] += event["at"] - begin - inner
            if stack:
                stack[-1][2] += event["at"] - begin
same("speedscope", found)
assert is_cut or not has_times or all(found_own[n] >= t - 1 - t / 10 ** 8 for n, t in own.items()), (name, found_own, own)

# Profiles.
text, fn, lines = open(name + ".callgrind").read(), {}, iter(open(name + ".callgrind"))
found, found_own, current = collections.Counter(), collections.Counter(), None
for line in lines:
    if match := re.match(r"(c?)fn=\((\d+)\)(?: (.*))?$", line):
        fn.setdefault(match[2], match[3])
        current = current if match[1] else fn[match[2]]
    elif line.startswith("calls="):
        next(lines)
    elif current and line.strip():
        costs = [int(n) for n in line.split()[1:]]
        found[current] += costs[-1]
        found_own[current] += costs[0] if len(costs) > 1 else 0
same("callgrind", found, found_own)
profile = protoc_text.decode(name + ".pprof", tests + "/profile.proto", "Profile")
strings = profile["string_table"]
places = {l["id"][0]: l["line"][0]["function_id"][0] for l in profile["location"]}
functions = {f["id"][0]: strings[f["name"][0]] for f in profile["function"]}
same("pprof", *sums((functions[places[s["location_id"][0]]], s["value"][0], s["value"][1] if has_times else 0) for s in profile["sample"]))
stacks = [line.rstrip("\n").rsplit(" ", 1) for line in open(name + ".folded")]
found = collections.Counter()
for stack, count in stacks:
    found[stack.split(";")[-1]] += int(count)
same("folded", calls if has_times else found, found if has_times else None)

# Tables.
if os.path.exists(name + ".csv"):
    key = lambda row: row["function"] if row["module"] == "" else row["module"] + ":" + row["function"]
    shown = {r["module"] + ":" + r["function"] if r["module"] else r["function"]: r["name"] for r in csv.DictReader(open("functions"))}
    same("csv", *sums((shown[key(row)], 1, int(row["self"] or 0)) for row in csv.DictReader(open(name + ".csv", newline=""))))
    db = sqlite3.connect(name + ".sqlite")
    same("sqlite", *sums(db.execute("select f.name, count(*), sum(c.self) from calls c join functions f on f.id = c.function_id group by 1")))
    assert (db.execute("select sum(lost) from losses").fetchone()[0] or 0) == lost, (name, "losses of sqlite")

# CTF.
if os.path.exists(name + ".ctf.text"):
    found = collections.Counter(re.sub(r"\\(.)", r"\1", n) for n in re.findall(r'\] (?:\S+ )?call: .*? \{ function = \( "(.*?)" : container', open(name + ".ctf.text").read()))
    same("ctf", {n: c for n, c in found.items()} | {n: c for n, c in calls.items() if n.startswith("(")})
    discarded = sum(map(int, re.findall(r"Tracer discarded (\d+) event", open(name + ".ctf.said").read())))
    assert discarded == lost, (name, discarded, lost)
print(name, sum(calls.values()), lost, is_cut, sum(f.get("open", 0) for f in rows.values()))
P
export PYTHONPATH=$common PYTHONDONTWRITEBYTECODE=1
tables=
[ ! -x "$build/bin/tracewheel-sql" ] || tables='csv sqlite'
command -v babeltrace2 >/dev/null && ctf=ctf || ctf=
for name in $names; do
	"$tw" report --json -n 0 $name.tw >report 2>err
	for form in perfetto chrome speedscope callgrind pprof folded $tables $ctf; do
		"$tw" convert -q --to $form $name.tw -o $name.$form >out 2>err || [ $? = 1 ] || fail "$form of $name.tw"
	done
	[ -z "$tables" ] || "$tw" sql --csv $name.tw 'select name, module, function from functions' >functions 2>err
	[ -z "$ctf" ] || babeltrace2 --no-delta $name.ctf >$name.ctf.text 2>$name.ctf.said || fail "babeltrace2 of $name"
	python3 "$common/unpack_perfetto.py" $name.perfetto >$name.plain || fail "packets of $name"
	python3 -S compare.py $name "$tests" >>numbers || fail "$name: not the numbers of the report"
done
[ "$(awk '$3 > 0' numbers | wc -l)" -ge 2 ] || fail "no losses: $(cat numbers)"
[ "$(awk '$5 > 3' numbers | wc -l)" -ge 3 ] || fail "no open calls: $(cat numbers)"
[ "$(awk '$4 == "False"' numbers | wc -l)" -ge 2 ] || fail "no times were compared: $(cat numbers)"
# The comparison notices a call more, and a time.
"$tw" report --json -n 0 family.tw >whole
for change in 's/"calls": *\([0-9]*\)\([0-8]\),/"calls": \19,/' 's/"self": *0\.0\([0-9]\)/"self": 0.1\1/'; do
	sed "$change" whole >report
	! python3 -S compare.py family "$tests" >/dev/null 2>&1 || fail "not noticed: $change"
done
