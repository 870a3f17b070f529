#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    The callers that `record --stack 64` finds in Debian's stripped programs, which keep no frame pointers, are those of gdb's
#         backtrace, to the outermost one.
# Method  gdb, with Python, runs the recorded program and stops it at random hits, where it compares the addresses that the agent has found
#         with its own frames, in the same moment. Long form: 1,000 hits of each program, node too.
build=$1
. "$(dirname "$0")/lib.sh"
export XDG_CACHE_HOME=$work/cache
mkdir cache
# A loaded machine makes plans late.
export TRACEWHEEL_PLAN_WAIT_MS=60000
command -v gdb >/dev/null || { echo "gdb is not here: not tested" && exit 77; }

cat >compare.gdb <<'G'
set pagination off
set confirm off
set debuginfod enabled off
set backtrace past-main on
set backtrace past-entry on
set breakpoint pending on
python
import os, random, struct
wanted, apart = int(os.environ["HITS"]), int(os.environ["APART"])
random.seed(int(os.environ["SEED"]))

def objects(process):
    """The addresses of code that files have."""
    found = []
    for line in open(f"/proc/{process}/maps"):
        words = line.split()
        if "x" in words[1] and words[-1].startswith("/"):
            found.append(tuple(int(w, 16) for w in words[0].split("-")))
    return found

def callers():
    """The addresses in the frames of gdb, from the caller of the traced function on."""
    frame, addresses = gdb.newest_frame(), []
    while frame and frame.name() != "tw_bp_whole_sled":
        frame = frame.older()
    frame = frame and frame.older()  # the traced function itself
    while frame:
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            addresses.append(frame.pc())
        frame = frame.older()
    return addresses[1:]

def compare(known):
    inferior = gdb.selected_inferior()
    out, capacity = int(gdb.parse_and_eval("$rcx")), int(gdb.parse_and_eval("(unsigned)$r8"))
    gdb.execute("finish", to_string=True)
    count = int(gdb.parse_and_eval("(unsigned)$rax"))
    ours = list(struct.unpack(f"{count}Q", inferior.read_memory(out, 8 * count).tobytes()))
    cut = ours[-1] == 0
    ours, theirs = ours[:-1] if cut else ours, callers()[:capacity]
    # Behind code that was made at run time both only guess.
    for n, address in enumerate(theirs):
        if not any(low <= address < high for low, high in known):
            return "same" if ours[:n] == theirs[:n] else "other", n, ours, theirs, True
    return ("same" if ours == theirs else "cut" if cut else "other"), len(theirs), ours, theirs, False

point = gdb.Breakpoint("tw_walk_callers")
sums, frames, made, deepest = {}, 0, 0, 0
for n in range(wanted):
    try:
        point.ignore_count = random.randrange(2 * apart)
        gdb.execute("continue" if n else "run >answer", to_string=True)
        if not point.is_valid() or gdb.selected_inferior().pid == 0:
            break
        result, depth, ours, theirs, is_made = compare(objects(gdb.selected_inferior().pid))
    except gdb.error as error:
        print("ended:", error)
        break
    sums[result] = sums.get(result, 0) + 1
    frames, made, deepest = frames + depth, made + is_made, max(deepest, depth)
    if result != "same":
        print(result, [hex(a) for a in ours], [hex(a) for a in theirs])
print("COMPARED", sum(sums.values()), "same", sums.get("same", 0), "cut", sums.get("cut", 0), "other", sums.get("other", 0),
      "frames", frames, "deepest", deepest, "made", made)
if gdb.selected_inferior().pid:
    gdb.execute("kill")
G
cat >plain.c <<'C'
int main(void) { return 0; }
C
gcc -o plain plain.c || fail gcc
if ! gdb -q -nx -batch -ex 'python print("it has Python")' -ex 'break main' -ex run ./plain 2>/dev/null | grep -q 'Breakpoint 1, '; then
	echo "gdb cannot stop a program here: not tested" && exit 77
fi

# compare HITS APART PATTERN PROGRAM...: stops at so many hits, so far apart, and expects that none differs.
compare() {
	local hits=$1 apart=$2 pattern=$3
	shift 3
	# A plan that is there is found at once.
	expect 0 "$tw" record -q --force --local --stack 2 -t "$pattern" -o g.tw -- "$@"
	export HITS=$hits APART=$apart SEED=$RANDOM
	expect 0 "$tw" record -q --force --local --follow-fork --allow-nothing --on-full drop --stack 64 -t "$pattern" -o g.tw -- \
		gdb -q -nx -batch -x compare.gdb --args "$@"
	grep COMPARED out || fail "$1: nothing was compared"
	is "$(awk '/^COMPARED/ { print ($2 > '"$((hits / 2))"') + 0, $2 - $4 }' out)" '1 0' "$1 (seed $SEED)"
}

sql='create table t(a, b); with recursive n(i) as (select 1 union all select i + 1 from n where i < 300) insert into t select i, i * 7 % 101 from n;
	create index x on t(b); select sum(a), b from t group by b order by 1 limit 3;'
compare "$(rounds 16 1000)" 40 'libsqlite3:_' sqlite3 :memory: "$sql"
echo 'import json, re; print(len(json.dumps([{str(i): i} for i in range(300)])), re.findall("a+", "baab" * 50)[:2])' >app.py
[ ! -x /usr/bin/python3.11 ] || compare "$(rounds 12 1000)" 40 'python3.11:PyObject_*' /usr/bin/python3.11 app.py
if [ -n "${TW_TEST_LONG:-}" ] && [ -x /usr/bin/node ]; then
	echo 'let s = 0; for (let i = 0; i < 2000; i++) s += JSON.stringify({ a: i, b: [i, "x" + i] }).length; console.log(s)' >app.js
	compare 1000 20 'node:_ZN2v88internal*{Heap,Factory,Json}*' /usr/bin/node app.js
fi
