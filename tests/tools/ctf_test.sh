#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A capture converted to the Common Trace Format has every event with its time, thread, process, function and values, and
#         each lost event as a discarded one, between the two events where it was lost.
# Method  babeltrace2 reads the folder; its text is compared with `print --format json`, event by event, thread by thread.
build=$1
. "$(dirname "$0")/lib.sh"
command -v babeltrace2 >/dev/null || { echo "no babeltrace2 here: not tested" && exit 77; }
"$build/tests/tools_report_test" captures "$work" || fail "no captures"
cat >types.c <<'C'
#include <pthread.h>
#include <time.h>
enum mode { OFF, SLOW, FAST };
__attribute__((noinline)) long find(const char *name, unsigned size, enum mode mode, void *at)
{
	__asm__ volatile("");
	return name[0] - (long)size - (mode == SLOW) - (at == 0);
}
static void *call(void *count)
{
	for (long i = 0; i < (long)count; i++)
		find("a \"b\" \\ <c>", 130, FAST, &i);
	return 0;
}
int main(int argc, char **argv)
{
	const struct timespec gap = {4, 500000000};
	pthread_t threads[3];
	call((void *)3);
	/* More than the half of a time tells. */
	if (argc > 1)
		nanosleep(&gap, 0);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], 0, call, (void *)(argc > 1 ? 3000L : 20000L));
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], 0);
	return 0;
}
C
${CC:-cc} -O2 -g -fpatchable-function-entry=9 -pthread types.c -o types || fail "no program"
needs_strings
"$tw" record -q --returns --args -t 'types:find' -o types.tw -- ./types wait </dev/null &
types=$!
expect 0 "$tw" record -q --returns --on-full drop --ring 64K -t 'types:{find,main}' -o many.tw -- ./types
expect 0 "$tw" record -q -p send,receive,running,procs,call -t 'chat:_' --returns --on-full block -o chat.tw -- "$build/bin/actors" chat -m 300

cat >compare.py <<'P'
import collections, json, re, subprocess, sys
name = sys.argv[1]
run = subprocess.run(["babeltrace2", "--no-delta", "--clock-seconds", name + ".ctf"], capture_output=True, text=True, check=True)
line_of = re.compile(r'^\[(-?\d+)\.(\d{9})\] (?:\S+ )?(\w+): \{ program = "(.*?)", procname = "(.*?)" \}, \{ vpid = (-?\d+), vtid = (-?\d+)(?:, pid = "(.*?)")? \}, '
                     r'\{ (?:function = \( (.*) : container = \d+ \), )?(\w+) = "(.*)" \}$')
ours, theirs, texts = collections.defaultdict(list), collections.defaultdict(list), collections.Counter()
for line in run.stdout.splitlines():
    m = line_of.match(line)
    assert m, line
    ns = int(m[1]) * 10 ** 9 + int(m[2])
    function = m[9] and re.sub(r"\\(.)", r"\1", m[9].strip('"'))
    if m[3] == "return_to":
        function = None
    ours[m[6], m[7]].append((ns, m[3], function, m[8]))
    texts[m[10], m[11]] += 1
lost = 0
for line in open("out"):
    e = json.loads(line)
    if e["kind"] == "lost":
        lost += e["full"] + e["too_big"] + e["nested"] + e["no_ring"]
        continue
    if e["kind"] in ("own_time", "exec"):
        continue
    function = None
    if e["kind"] != "return_to" and "function" in e:
        function = e["module"] + ":" + e["function"] + ("/%d" % e["arity"] if "arity" in e else "")
    theirs[str(e["process"]), str(e["thread"])].append((e["ns"], e["kind"], function, e["pid"]))
assert ours.keys() == theirs.keys(), (ours.keys() ^ theirs.keys())
events = sum(map(len, ours.values()))
pids = {e[3] for v in ours.values() for e in v} - {None}
zero = min(v[0][0] for v in ours.values()) - min(v[0][0] for v in theirs.values())
for key in ours:
    assert len(ours[key]) == len(theirs[key]) > 0, (key, len(ours[key]), len(theirs[key]))
    for a, b in zip(sorted(ours[key], key=repr), sorted(((ns + zero, *rest) for ns, *rest in theirs[key]), key=repr)):
        # A thread needs no pid: the kernel's number is there.
        assert a[:3] == b[:3] and a[3] in (None, b[3]), (key, a, b)
discarded = sum(map(int, re.findall(r"Tracer discarded (\d+) event", run.stderr)))
assert discarded == lost, (discarded, lost)
if name == "types":
    sample, = {re.sub("0x[0-9a-f]+", "0x", t) for k, t in texts if k == "arguments"}
    assert sample == r'(name = \"a \\\"b\\\" \\\\ <c>\", size = 130, mode = FAST, at = 0x)', sample
    assert {(k, t) for k, t in texts if k == "result"} == {("result", "-33")}, texts
print(name, events, len(ours), len(pids), lost)
P
for name in random actors calls many chat types; do
	[ $name != types ] || wait $types || fail "the recording with a gap"
	expect 0 "$tw" convert -q --to ctf $name.tw -o $name.ctf
	expect 0 "$tw" print --format json $name.tw
	python3 compare.py $name >>numbers || fail "$name: not the same as JSON"
done
[ "$(awk '$4 > 20' numbers | wc -l)" = 1 ] || fail "no processes of a run-time: $(cat numbers)"
[ "$(awk '$5 > 0' numbers | wc -l)" -ge 2 ] || fail "no losses: $(cat numbers)"
# The comparison notices: another function, a time, an event less.
cp out whole
for change in '9s/"find"/"seek"/' '9s/"ns":/"ns":1/' 9d; do
	sed "$change" whole >out
	! python3 compare.py types >/dev/null 2>&1 || fail "not noticed: $change"
done

# Two traces of one machine are read in one order: their clocks count from the same time.
babeltrace2 --no-delta --clock-seconds types.ctf many.ctf >out 2>err || fail "two traces"
is "$(wc -l <out)" "$(awk '$1 == "types" || $1 == "many" { sum += $2 } END { print sum }' numbers)" "events of two traces"
sort -s -k 1,1 -t ']' -c out || fail "not in order"
grep -q 'absolute = true' types.ctf/metadata || fail "the clock does not count from 1970"

# ---- wrong requests ----
expect 1 "$tw" convert --to ctf calls.tw -o calls.ctf
says "'calls.ctf' exists; --force replaces it"
expect 0 "$tw" convert --force --to ctf calls.tw -o types.ctf
says 'types.ctf: 58 events.'
says 'LOST 7 events'
is "$(ls types.ctf)" "$(ls calls.ctf)" "files of the trace before"
touch types.ctf/mine
expect 1 "$tw" convert --force --to ctf calls.tw -o types.ctf
says 'replaces a trace of CTF, and nothing else'
[ -e types.ctf/mine ] && [ -e types.ctf/metadata ] || fail "a folder with other files was emptied"
mkdir other && ln -s other link && touch other/stream_0
for name in other link; do
	expect 1 "$tw" convert --force --to ctf calls.tw -o $name
done
[ -e other/stream_0 ] || fail "a folder that is no trace was emptied"
expect 1 "$tw" convert --to ctf calls.tw -o -
says 'cannot be written to standard output'
expect 1 "$tw" convert --to ctf calls.tw -o no/folder
says "'no/folder' cannot be made: No such file"
expect 2 "$tw" convert --to ctf --timestamps wall calls.tw -o x.ctf
# Where there is no space, the beginning of a trace is none.
(trap '' XFSZ && ulimit -f 100 && exec "$tw" convert --to ctf types.tw -o cut.ctf) >out 2>err && fail "100 KiB were enough"
says "cut.ctf' was not written to its end, and is removed: File too large"
[ ! -e cut.ctf ] || fail "the beginning of a trace was left"
