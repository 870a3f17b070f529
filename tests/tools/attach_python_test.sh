#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    `attach --python` records each call of a function of Python in a script that runs, on threads from before and after, and leaves the script as it
#         was: its evaluation of frames is the interpreter's own again, its answers are right, also if the interpreter's lock is not free. Who cannot
#         be recorded is told why.
# Method  A script counts its own calls, while it is attached to: of functions that were specialised before, generators, exceptions, obj[key], lambdas. By ctypes it asks
#         the interpreter which function evaluates frames. Controls: a call that the script does not count; the evaluation while it is recorded.
#         --long: 50 recordings under load, and ends of scripts at any moment of an attach.
build=$1
. "$(dirname "$0")/lib.sh"
python=/usr/bin/python3.11
[ -x "$python" ] || { echo "no CPython 3.11"; exit 77; }
agent=$build/lib/libtracewheel-agent.so
program=
trap '[ -z "$program" ] || kill -KILL "$program" 2>/dev/null; rm -rf "$work"' EXIT

cat >app.py <<'P'
import ctypes, json, os, sys, threading, time

api = ctypes.PyDLL(None)
api.PyInterpreterState_Get.restype = api._PyInterpreterState_GetEvalFrameFunc.restype = ctypes.c_void_p
api._PyInterpreterState_GetEvalFrameFunc.argtypes = [ctypes.c_void_p]
usual = ctypes.cast(api._PyEval_EvalFrameDefault, ctypes.c_void_p).value

def is_usual():
    return api._PyInterpreterState_GetEvalFrameFunc(api.PyInterpreterState_Get()) == usual

local = threading.local()

def is_inlined():
    """May the interpreter inline obj[key]? It looks at 16 bits of the function's version."""
    return ctypes.c_uint32.from_address(id(Table.__getitem__) + 128).value < 1 << 16

class Table:
    def __getitem__(self, i):
        local.counts[2] += 1
        return i * 2

def inner(i):
    local.counts[1] += 1
    if i % 3 == 0:
        raise KeyError(i)
    return i

def numbers(n):
    local.counts[3] += 1
    for i in range(n):
        yield i
        local.counts[3] += 1

def deep(n):
    local.counts[4] += 1
    return n and 1 + deep(n - 1)

def step(table, i):
    local.counts[0] += 1
    try:
        inner(i)
    except KeyError:
        pass
    return table[i] + sum(numbers(3)) + sorted(range(2), key=lambda x: -x)[0]

def work(n):
    local.counts = [0] * 5
    table = Table()
    total = sum(step(table, i) for i in range(n)) + deep(300)
    assert total == n * (n - 1) + n * 4 + 300, total
    return local.counts

def exists(name):
    return os.path.exists(name)

def worker(sums):
    while not exists("go"):
        time.sleep(0.002)
    for i in range(int(sys.argv[1])):
        sums.append(work(100))

work(300)
before, after = [[], [], []], [[], []]
threads = [threading.Thread(target=worker, args=(s,)) for s in before]
[t.start() for t in threads]
# The main thread waits in a lock, and runs nothing.
lock = threading.Lock()
lock.acquire()
def release():
    while not exists("go"):
        time.sleep(0.002)
    lock.release()
threading.Thread(target=release).start()
open("ready", "w")
lock.acquire()
more = [threading.Thread(target=worker, args=(s,)) for s in after]
[t.start() for t in more]
[t.join() for t in threads + more]
names = "step", "inner", "Table.__getitem__", "numbers", "deep"
truth = dict(zip(names, (sum(c) for c in zip(*(c for s in before + after for c in s)))))
was = [is_usual(), is_inlined()]
if len(sys.argv) > 2:
    deep(0)
json.dump(truth, open("truth.json", "w"))
open("done", "w")
while not exists("end"):
    time.sleep(0.002)
work(50)
print(*was, is_usual(), is_inlined(), flush=True)
P
await() {
	for _ in $(seq 3000); do
		[ ! -e "$1" ] || return 0
		sleep 0.01
	done
	fail "no file $1"
}
await_words() {
	for _ in $(seq 3000); do
		! grep -qs -- "$1" "$2" || return 0
		sleep 0.01
	done
	fail "no '$1' in $2: $(cat "$2")"
}
# start COMMAND...: with its output in the file said.
start() {
	rm -f ready go done end
	"$@" >said 2>&1 </dev/null &
	program=$!
	await ready
}
# attach NAME.tw OPTION...: until it has begun; its words are in the file told.
attach() {
	local name=$1
	shift
	rm -f told
	"$tw" attach --python --force --time 60s -o "$name" "$@" "$program" >told 2>&1 </dev/null &
	recorder=$!
	await_words 'attached to process\|cannot\|can be' told
}
detach() {
	"$tw" detach "$program" >detached 2>&1 || fail "detach: $(cat detached told)"
	wait "$recorder" || fail "attach: $(cat told)"
}
end() {
	touch end
	wait "$program" || fail "the program: $(cat said)"
	program=
}
cat >compare.py <<'P'
import csv, json, sys
truth, seen = json.load(open("truth.json")), {}
for row in csv.reader(open("out")):
    if row and row[0].startswith("app.py:"):
        seen[row[0][7:]] = int(row[1])
wrong = [f"{k}: {truth[k]} by the program, {seen.get(k, 0)} recorded" for k in sorted(truth) if truth[k] != seen.get(k, 0)]
print("\n".join(wrong) or f"{sum(truth.values())} calls")
sys.exit(bool(wrong))
P
as_counted() {
	expect 0 "$tw" report --csv -n 0 "$1"
	python3 -I -S compare.py >differences
}

# ---- counts, ends, and what is left; without the agent, and with it asleep ----
for how in without with; do
	[ $how = without ] && start "$python" app.py 4 || start env LD_PRELOAD="$agent" "$python" app.py 4
	attach run.tw --returns -t 'app.py:_'
	touch go
	await done
	detach
	end
	# The evaluation is ours, and obj[key] not inlined; and afterwards.
	is "$(cat said)" "False False True True" "$how the agent"
	as_counted run.tw || fail "$how the agent: $(cat differences)"
done
cat differences
expect 0 "$tw" info run.tw
shows '^complete  *yes'
expect 0 "$tw" print --format json run.tw
python3 -I -S - <<'P' || fail "an end without its call, or a call without its end"
import collections, json
open_of, failed = collections.defaultdict(list), collections.Counter()
for line in open("out"):
    event = json.loads(line)
    name, stack = event.get("function"), open_of[event.get("thread")]
    if event["kind"] == "call":
        stack.append(name)
    elif event["kind"] in ("return_from", "exception_from"):
        assert stack and stack.pop() == name, event
        if event["kind"] == "exception_from":
            failed[name] += 1
left = sorted(name for stack in open_of.values() for name in stack)
assert left in ([], ["exists"]) and failed["inner"] == 5 * 4 * 34, (left, failed)
P
# Control: one call that the program does not count.
start "$python" app.py 1 more
attach more.tw -t 'app.py:_'
touch go
await done
detach
end
as_counted more.tw && fail "a call more was not noticed"
is "$(cat differences)" "deep: 1505 by the program, 1506 recorded"
# Too many events: each call is recorded or counted, and there are two of the lambda for each of step().
start "$python" app.py 40
attach loud.tw -t 'app.py:{step,inner,numbers,deep,Table.*,*lambda*}' --rate 10k/s
touch go
await done
detach
end
expect 0 "$tw" report --json loud.tw
json 'd["counted_calls"] > 0 and d["calls"] + d["counted_calls"] - sum(json.load(open("truth.json")).values()) - 2 * json.load(open("truth.json"))["step"]' >left
is "$(cat left)" 0 "calls that are neither recorded nor counted"

# ---- another selection, later, in the same process; calls of C inside of them ----
cat >busy.py <<'P'
import os, threading, time
def leaf(i):
    return i + 1
def item():
    return leaf(os.getppid() and 1)
def forever():
    total = n = 0
    while not os.path.exists("end"):
        for i in range(100):
            total += item()
            n += 2
        time.sleep(0.002)
    assert total == n
threads = [threading.Thread(target=forever) for _ in range(2)]
[t.start() for t in threads]
open("ready", "w")
[t.join() for t in threads]
print("right", flush=True)
P
start "$python" busy.py
for pattern in busy.py:leaf busy.py:item busy.py:leaf; do
	attach some.tw --returns -t $pattern -t libc:getppid --events 3k
	wait "$recorder"
	expect 0 "$tw" report --csv -n 0 some.tw
	is "$(sed -n 's/^"\([^"]*\)",[0-9].*/\1/p' out | sort | tr '\n' ' ')" "$pattern libc:getppid "
done
attach tree.tw --returns -t busy.py:item -t libc:getppid --events 3k
wait "$recorder"
expect 0 "$tw" print --tree tree.tw
shows '|  busy.py:item() {$'
shows '|    libc:getppid() = '
end
is "$(cat said)" right
# ---- a child is not recorded, and evaluates its frames by itself ----
sed '/^local/,$d; s/, sys, threading, time$/, time/' app.py >forks.py
cat >>forks.py <<'P'
open("ready", "w")
while is_usual() and not os.path.exists("end"):
    time.sleep(0.002)
process = os.fork()
if not process:
    os._exit(10 + is_usual())
print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
P
start "$python" forks.py
attach forks.tw -t forks.py:_
end
wait "$recorder"
is "$(cat said)" 11 "a child's evaluation"

# ---- the lock is not free ----
cat >held.py <<'P'
import ctypes, os, time
def is_usual():
    return api._PyInterpreterState_GetEvalFrameFunc(api.PyInterpreterState_Get()) == usual
def seen():
    return 1
api = ctypes.PyDLL(None)
api.PyInterpreterState_Get.restype = api._PyInterpreterState_GetEvalFrameFunc.restype = ctypes.c_void_p
api._PyInterpreterState_GetEvalFrameFunc.argtypes = [ctypes.c_void_p]
usual = ctypes.cast(api._PyEval_EvalFrameDefault, ctypes.c_void_p).value
open("ready", "w")
api.usleep(1300000)
while not os.path.exists("go"):
    seen()
    time.sleep(0.01)
open("done", "w")
api.usleep(1500000)
time.sleep(0.1)
open("free", "w")
while not os.path.exists("end"):
    time.sleep(0.01)
print(is_usual(), flush=True)
P
start "$python" held.py
attach held.tw --returns -t held.py:seen
sleep 0.6
touch go
await done
sleep 0.1
detach
[ ! -e free ] || fail "the end waited for the lock"
await free
end
is "$(cat said)" True "the evaluation is taken away later"
expect 0 "$tw" info held.tw
shows 'functions of Python are recorded later than others: the interpreter.s lock (GIL) was not free for 1 s'
shows 'the function that evaluates Python.s frames is still set, and records nothing'
[ "$(calls held.tw seen)" -gt 5 ] || fail "not recorded when the lock was free"

# ---- who is not recorded ----
refused() {
	rm -f ready end
	"$@" >said 2>&1 </dev/null &
	program=$!
	await ready
	expect 125 "$tw" attach --python --force -o why.tw "$program"
	says "no functions of Python can be recorded in process $program, and it is left alone: $why"
	kill -KILL "$program"
	wait "$program" 2>/dev/null
}
why='this program is no Python, or an interpreter that exports none of its functions'
refused sh -c 'echo >ready; exec sleep 60'
cat >other.c <<'C'
#include <fcntl.h>
#include <unistd.h>
const char *Py_GetVersion(void) { return "3.12.1 (main)"; }
int main(void) { return close(open("ready", O_CREAT | O_WRONLY, 0600)) || sleep(60); }
C
gcc -rdynamic -o other other.c && why='this is Python 3.12.1, and --python knows CPython 3.11 only' && refused ./other
cat >evaluates.c <<'C'
void *_PyEval_EvalFrameDefault(void *, void *, int);
void *evaluates(void *thread, void *frame, int throws) { return _PyEval_EvalFrameDefault(thread, frame, throws); }
C
gcc -shared -fPIC -o evaluates.so evaluates.c
cat >evaluates.py <<'P'
import ctypes, time
api = ctypes.PyDLL(None)
api.PyInterpreterState_Get.restype = ctypes.c_void_p
api._PyInterpreterState_SetEvalFrameFunc.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
api._PyInterpreterState_SetEvalFrameFunc(api.PyInterpreterState_Get(), ctypes.cast(ctypes.CDLL("./evaluates.so").evaluates, ctypes.c_void_p))
open("ready", "w")
time.sleep(60)
P
why='another function evaluates the frames of this interpreter' && refused "$python" evaluates.py
cat >sub.py <<'P'
import _xxsubinterpreters, os, time
sub = _xxsubinterpreters.create()
def seen():
    time.sleep(0.005)
open("ready", "w")
while not os.path.exists("end"):
    seen()
P
start "$python" sub.py
attach sub.tw -t sub.py:_ --events 5
wait "$recorder"
expect 0 "$tw" info sub.tw
shows 'functions of Python are not recorded in sub-interpreters'
end
expect 2 "$tw" attach --python --count py:_ 1
says '--python goes without --count'

[ -n "${TW_TEST_LONG:-}" ] || exit 0
# ---- 50 recordings under load, of a script that checks itself ----
start "$python" -X dev -W ignore::ResourceWarning app.py 1000000
touch go
for i in $(seq 50); do
	attach many.tw --returns --rate none --on-full drop -t 'app.py:_'
	sleep "0.0$((i % 9))"
	detach
	[ "$(calls many.tw step)" -gt 0 ] || fail "recording $i has nothing"
	kill -0 "$program" || fail "the program has ended: $(cat said)"
done
{ kill -KILL "$program" && wait "$program"; } 2>/dev/null
[ ! -s said ] || fail "the program: $(cat said)"
# ---- scripts that end while they are attached to, or detached from ----
cat >ends.py <<'P'
import sys, threading, time
def f(n): return n and f(n - 1)
def forever():
    while True: f(20)
threading.Thread(target=forever, daemon=True).start()
open("ready", "w")
time.sleep(float(sys.argv[1]))
print("bye", flush=True)
sys.exit(7)
P
for i in $(seq 60); do
	start "$python" ends.py "0.$((i * 7 % 40 + 100))"
	"$tw" attach -q --python --force --returns --time "$((i * 3 % 70 + 1))ms" -o ends.tw "$program" >told 2>&1 </dev/null &
	recorder=$!
	wait "$program"
	is "$? $(cat said)" "7 bye" "a script that ended"
	wait "$recorder"
done
program=
