#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    `record --python` records each call of a function of Python once, with its end, inside of the C functions and around those that it calls,
#         and changes nothing else of the program.
# Method  One script with generators, exceptions, recursion, properties, classes, comprehensions, coroutines and threads runs under cProfile and under
#         `record`: the number of calls of each function must be the same. An embedding program has threads that are older than its interpreter, and says
#         itself how often it called. Structures are compared with CPython's headers. Controls: a script that makes one call more; obj[key], which
#         CPython would inline.
build=$1
. "$(dirname "$0")/lib.sh"
python=/usr/bin/python3.11
[ -x "$python" ] || { echo "no CPython 3.11"; exit 77; }
source=$(realpath "$common/../..")


cat >bank.py <<'P'
import asyncio, json, os, threading

def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

class Table:
    def __init__(self, n):
        self.n = n
    def __getitem__(self, i):
        return i * 2
    @property
    def size(self):
        return self.n
    def __eq__(self, other):
        return self.n == other.n
    def __enter__(self):
        return self
    def __exit__(self, *what):
        return True

class Late:
    pass

def item_of_late(self, i):
    return i

def look(table, i):
    return table[i]

def made():
    class Made:
        def __getitem__(self, i):
            return i
    return Made()

def peek(table):
    return table[0]

def numbers(n):
    for i in range(n):
        yield i

def outer(n):
    got = yield from numbers(n)
    return got

def careful():
    try:
        yield 1
        yield 2
    finally:
        fib(1)

def fails(i):
    if i % 3 == 0:
        raise KeyError(i)
    return i

def endless(n):
    return endless(n + 1)

async def nap(n):
    await asyncio.sleep(0)
    return n

async def ticks():
    for i in range(3):
        yield i

async def together():
    total = 0
    async for i in ticks():
        total += i
    return total + sum(await asyncio.gather(*[nap(i) for i in range(3)]))

def handle(i):
    try:
        fails(i)
    except KeyError:
        pass
    with Table(i) as t:
        fails(0)
    t = Table(10)
    a, b = careful(), careful()
    next(a)
    a.close()
    next(b)
    try:
        b.throw(ValueError)
    except ValueError:
        pass
    return (sum(t[k] for k in range(t.size)) + sum(numbers(5)) + sum(outer(4)) + len(json.dumps({"a": [i]}, indent=1)) +
            len({k: v for k, v in enumerate([x * 2 for x in range(3)])}) + len(sorted(range(4), key=lambda x: -x)) + (t == Table(10)))

def work():
    # A place that knows dictionaries first, then a method that was an attribute before.
    for i in range(60):
        look({i: i}, i)
    Late.__getitem__ = item_of_late
    for i in range(200):
        look(Late(), i)
    # A place that is about to be specialised when a method is called for the first time.
    for i in range(300):
        peek("abc")
        peek(made())
    table = Table(1)
    for i in range(100):
        table[i]
    for i in range(20):
        handle(i)
    try:
        endless(0)
    except RecursionError:
        pass
    fib(12)
    os.getppid()
P
# run.py: all of it, on four threads, and coroutines. run.py OUT counts the calls by cProfile; run.py MORE MORE makes one call more.
cat >run.py <<'P'
import asyncio, sys, threading, bank
profiles = []
def measured(work):
    if len(sys.argv) != 2:
        return work()
    import cProfile
    profile = cProfile.Profile()
    profile.enable()
    try:
        work()
    finally:
        profile.disable()
    profiles.append(profile)
measured(bank.work)
threads = [threading.Thread(target=measured, args=(bank.work,)) for i in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
measured(lambda: asyncio.run(bank.together()))
if len(sys.argv) == 3:
    bank.fib(0)
if len(sys.argv) == 2:
    import json
    counts = {}
    for entry in [e for p in profiles for e in p.getstats() if not isinstance(e.code, str)]:
        name = entry.code.co_qualname
        if name.endswith(">"):
            name += ":%d" % entry.code.co_firstlineno
        for file, module in ("/bank.py", "bank:"), ("/json/encoder.py", "json.encoder:"):
            if entry.code.co_filename.endswith(file):
                counts[module + name] = counts.get(module + name, 0) + entry.callcount
    json.dump(counts, open(sys.argv[1], "w"))
print("done")
P
# Bodies of modules and classes ran before, and json has made its first encoder.
cat >compare.py <<'P'
import csv, json, sys
truth, seen = json.load(open("truth.json")), {}
for row in csv.reader(open("out")):
    if row and row[0].startswith(("bank:", "json.encoder:")) and row[1].isdigit():
        seen[row[0]] = int(row[1])
for name in "bank:<module>", "bank:Table", "bank:Late", "json.encoder:<module>", "json.encoder:JSONEncoder":
    seen.pop(name, None)
seen["json.encoder:JSONEncoder.__init__"] -= 1
wrong = [f"{k}: {truth.get(k, 0)} by cProfile, {seen.get(k, 0)} recorded" for k in sorted({*truth, *seen}) if truth.get(k) != seen.get(k)]
print("\n".join(wrong) or f"{len(truth)} functions, {sum(truth.values())} calls")
sys.exit(bool(wrong) or len(truth) < 25)
P
same_as_cprofile() {
	expect 0 "$tw" report --csv -n 0 "$1"
	python3 -I -S compare.py >differences
}
expect 0 "$python" run.py truth.json
for options in "" --returns; do
	# shellcheck disable=SC2086
	expect 0 "$tw" record -q --force --python $options -o run.tw -- "$python" run.py
	is "$(cat out)" "done"
	same_as_cprofile run.tw || { cat differences && fail "not as often as cProfile says ($options)"; }
done
cat differences
# All of Python's functions, and no others.
expect 0 "$tw" report --csv -n 0 run.tw
grep -q '^"libc:\|^"python3' out && fail "a function of C, which nobody asked for"
grep -q '^"threading:Thread.run"' out || fail "no function of the library"
# Each call has its end, those of the frames that are open at the end of the program too.
expect 0 "$tw" print --format json run.tw
python3 -I -S - <<'P' || fail "a call without its end, or an end without its call"
import json, collections
open_of, ends = collections.defaultdict(list), collections.Counter()
for line in open("out"):
    event = json.loads(line)
    name = (event.get("module"), event.get("function"))
    stack = open_of[event.get("thread")]
    if event["kind"] == "call":
        stack.append(name)
    elif event["kind"] in ("return_from", "exception_from"):
        assert stack and stack.pop() == name, event
        ends[event["kind"]] += 1
assert not any(open_of.values()) and ends["exception_from"] > 4000, (open_of, ends)
P
# ---- control: one call more ----
expect 0 "$tw" record -q --force --python -o more.tw -- "$python" run.py 1 2
same_as_cprofile more.tw && fail "a call more was not noticed"
is "$(cat differences)" "bank:fib: $(python3 -I -S -c 'import json; n = json.load(open("truth.json"))["bank:fib"]; print(n, "by cProfile,", n + 1, "recorded")')"

# ---- selection: Python and C in one tree ----
expect 0 "$tw" record -q --python --returns -t 'bank:{work,fib}' -t 'bank:Table.*' -N 'bank:*.size' -t 'libc:getppid' -o both.tw -- "$python" run.py
expect 0 "$tw" report --csv -n 0 both.tw
is "$(sed -n 's/^"\([^"]*\)",[0-9].*/\1/p' out | sort | tr '\n' ' ')" "bank:Table.__enter__ bank:Table.__eq__ bank:Table.__exit__ bank:Table.__getitem__ bank:Table.__init__ bank:fib bank:work libc:getppid "
expect 0 "$tw" print --tree both.tw
is "$(grep -c '|  bank:work() {$' out) $(grep -c '|    libc:getppid() = [0-9]*$' out)" "4 4" "getppid() is called by work()"
# `py` is any module of Python, in views too.
expect 0 "$tw" record -q --python -t 'py:fib' -t libc:getppid -o py.tw -- "$python" run.py
expect 0 "$tw" report --csv -n 0 -t py:_ py.tw
shows '^"bank:fib"'
grep -q getppid out && fail "a function of C is none of Python"
# Without the option, nothing of Python is recorded.
expect 0 "$tw" record -q -t libc:getppid -o c.tw -- "$python" run.py
is "$(calls c.tw bank:fib libc:getppid)" "0 4"


# ---- what the program does stays what it was ----
cat >edges.py <<'P'
import multiprocessing, os, sys, threading
def deep(n):
    return 0 if n == 0 else 1 + deep(n - 1)
def limit():
    try:
        deep(10**6)
    except RecursionError as error:
        print(error)
    sys.setrecursionlimit(200000)
    print(deep(100000))
def small():
    threading.stack_size(64 * 1024)
    done = []
    threads = [threading.Thread(target=lambda: done.append(deep(900))) for _ in range(4)]
    [t.start() for t in threads], [t.join() for t in threads]
    print(done)
def fork():
    for method in "fork", "spawn":
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(pool.map(deep, [5, 6, 7]))
def profile():
    seen = []
    sys.setprofile(lambda frame, event, arg: seen.append((frame.f_code.co_name, event)))
    deep(2)
    sys.setprofile(None)
    sys.settrace(lambda frame, event, arg: seen.append((frame.f_code.co_name, event, frame.f_back.f_code.co_name)))
    deep(2)
    sys.settrace(None)
    print(seen)
def made():
    for i in range(3000):
        names = {}
        exec("def made(x): return x + 1", names)
        names["made"](i)
    print(deep(3))
def leave():
    threading.Thread(target=deep, args=(3,), daemon=True).start()
    sys.exit(5)
def again():
    def twice(n):
        yield n
    print(sum(twice(1)))
    def twice(n):
        return n
    print([twice(i) for i in range(7)])
def filtered():
    import ctypes, struct
    libc, allow = ctypes.CDLL(None), ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7fff0000))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 1, ctypes.addressof(allow)))
    print(libc.prctl(38, 1, 0, 0, 0), libc.prctl(22, 2, ctypes.c_void_p(ctypes.addressof(program)), 0, 0), deep(3))
    names = {}
    exec("def later(x): return x + 1", names)
    print(names["later"](1), deep(3))
def run():
    os.execv(sys.executable, [sys.executable, "-c", "def f(): return 1\nprint([f() for i in range(3)])"])
if __name__ == "__main__":
    globals()[sys.argv[1]]()
P
for edge in limit small fork profile made leave run again filtered; do
	"$python" edges.py $edge >wanted 2>&1 </dev/null
	code=$?
	expect $code "$tw" record -q --force --follow-fork --python --returns -t '{py,edges.py}:_' -o $edge.tw -- "$python" edges.py $edge
	cmp -s out wanted || { diff out wanted && fail "$edge: not the program's output"; }
done
expect 0 "$tw" info limit.tw
shows 'functions of Python are not recorded, on all threads, while a recursion uses more than half'
# 2 x (5 + 6 + 7 + 3) calls in children.
is "$(calls fork.tw deep)" 42
is "$(calls profile.tw deep)" 6
# Code that is made again is the same function.
is "$(calls made.tw '<string>:made')" 3000
is "$(calls leave.tw deep)" 4
# What is first called under a filter is missing, and counted: the function, and the code that defines it.
is "$(calls filtered.tw deep)" 8
expect 0 "$tw" info filtered.tw
shows '^functions  *2 functions are traced only where other objects call them, or not at all'
shows '^complete  *no'
# A generator, resumed twice, and a function that has its name.
is "$(calls again.tw 'edges.py:again.<locals>.twice')" 9
# An interpreter that ends before it has begun, and one whose memory is checked.
for options in --version "-X dev -c 1" "-c raise(SystemExit(3))" nowhere.py "-c import(os);os.kill(os.getpid(),9)"; do
	# shellcheck disable=SC2086
	PYTHONMALLOC=debug "$python" $options >wanted 2>&1 </dev/null
	code=$?
	# shellcheck disable=SC2086
	PYTHONMALLOC=debug expect $code "$tw" record -q --force --python -o ends.tw -- "$python" $options
	sed -i '/^tracewheel: /d' err
	cat out err | cmp -s - wanted || { cat out err | diff - wanted; fail "$options: not the program's output"; }
done
is "$(calls run.tw '<string>:f')" 3

# ---- threads that are older than the interpreter ----
cat >embeds.c <<'C'
#define Py_BUILD_CORE
#include <Python.h>
#include <internal/pycore_runtime.h>
#include <pthread.h>
#include <stdio.h>
static pthread_barrier_t barrier;
static PyObject *step;
static void *run(void *arg)
{
	if (arg)
		pthread_barrier_wait(&barrier);
	PyGILState_STATE state = PyGILState_Ensure();
	for (int i = 0; i < 100; i++)
		Py_XDECREF(PyObject_CallFunction(step, "i", i));
	PyGILState_Release(state);
	return NULL;
}
int main(void)
{
	pthread_t early[2], late[2];
	pthread_barrier_init(&barrier, NULL, 3);
	for (int i = 0; i < 2; i++)
		pthread_create(&early[i], NULL, run, &barrier);
	Py_Initialize();
	PyRun_SimpleString("def inner(i): return i\ndef step(i): return inner(i)\n");
	step = PyObject_GetAttrString(PyImport_AddModule("__main__"), "step");
	PyThreadState *saved = PyEval_SaveThread();
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 2; i++)
		pthread_create(&late[i], NULL, run, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(early[i], NULL), pthread_join(late[i], NULL);
	PyEval_RestoreThread(saved);
	/* Nobody listens to audits any more. */
	return _PyRuntime.audit_hook_head ? 9 : Py_FinalizeEx();
}
C
config=$(command -v /usr/bin/python3.11-config)
# shellcheck disable=SC2046
if [ -n "$config" ] && gcc -O1 -o embeds embeds.c $("$config" --includes) $("$config" --embed --ldflags) 2>err; then
	expect 0 "$tw" record -q --python --returns -t 'py:{step,inner}' -o embeds.tw -- ./embeds
	is "$(calls embeds.tw step inner)" "400 400"
	# An interpreter that runs nothing, and frees its list of audit hooks with another allocator.
	cat >nothing.c <<-'C'
		#include <Python.h>
		int main(void)
		{
			Py_NoSiteFlag = Py_IsolatedFlag = 1;
			Py_Initialize();
			return Py_FinalizeEx();
		}
	C
	# shellcheck disable=SC2046
	gcc -O1 -w -o nothing nothing.c $("$config" --includes) $("$config" --embed --ldflags) || fail "gcc"
	PYTHONMALLOC=debug expect 0 "$tw" record -q --python -o nothing.tw -- ./nothing
	# The offsets of structures are those of CPython's headers.
	cat >same.c <<-'C'
		#define Py_BUILD_CORE
		#include <Python.h>
		#include <internal/pycore_frame.h>
		#include <internal/pycore_runtime.h>
		#include "agent/python.h"
		#define SAME(ours, our, theirs, their) _Static_assert(offsetof(ours, our) == offsetof(theirs, their), #ours "." #our)
		SAME(struct tw_py_object, type, PyObject, ob_type);
		SAME(struct tw_py_code, constants, PyCodeObject, co_consts);
		SAME(struct tw_py_code, flags, PyCodeObject, co_flags);
		SAME(struct tw_py_code, extra, PyCodeObject, co_extra);
		SAME(struct tw_py_function, version, PyFunctionObject, func_version);
		SAME(struct tw_py_frame, function, _PyInterpreterFrame, f_func);
		SAME(struct tw_py_frame, globals, _PyInterpreterFrame, f_globals);
		SAME(struct tw_py_frame, locals, _PyInterpreterFrame, f_locals);
		SAME(struct tw_py_frame, code, _PyInterpreterFrame, f_code);
		SAME(struct tw_py_frame, owner, _PyInterpreterFrame, owner);
		SAME(struct tw_py_thread, interpreter, PyThreadState, interp);
		SAME(struct tw_py_thread, recursion_remaining, PyThreadState, recursion_remaining);
		SAME(struct tw_py_audit_entry, hook, _Py_AuditHookEntry, hookCFunction);
		SAME(struct tw_py_audit_entry, data, _Py_AuditHookEntry, userData);
		_Static_assert(offsetof(_PyRuntimeState, audit_hook_head) == TW_PY_AUDIT_HOOKS_AT, "audit hooks");
		_Static_assert(FRAME_OWNED_BY_THREAD == 0 && TW_PY_OPTIMIZED == CO_OPTIMIZED && TW_PY_NEW_LOCALS == CO_NEWLOCALS &&
			       TW_PY_RESUMES == (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR), "flags");
	C
	# shellcheck disable=SC2046
	gcc -fsyntax-only -I"$source" -I"$source/include" $("$config" --includes) same.c 2>err || fail "not the structures of CPython"
else
	echo "no python3-dev: an embedding program and the structures were not tried"
fi

# ---- programs without it ----
says_why() {
	expect 0 "$tw" record --force --python -t 'py:_' -o why.tw -- "$@"
	says "no functions of Python are recorded: $why"
}
why='this program is no Python, or an interpreter that exports none of its functions'
says_why /bin/true
cat >other.c <<'C'
const char *Py_GetVersion(void) { return VERSION; }
int main(void) { return 0; }
C
# It has all names that the agent looks for, and must not be called.
sed -n 's/^\tNAME([a-z_]*, "\(.*\)"),$/int \1(void) { return 0; }/p' "$source/agent/python.c" | grep -v Py_GetVersion >names.c
[ "$(wc -l <names.c)" -gt 20 ] || fail "no names"
gcc -rdynamic -DVERSION='"3.12.1 (main)"' -o other other.c names.c && why='this is Python 3.12.1, and --python knows CPython 3.11 only' && says_why ./other
gcc -rdynamic -DVERSION='"3.11.9 (main)"' -o other other.c && why='this interpreter does not export ' && says_why ./other
expect 0 "$tw" record --flight --python --snapshot-on 'bank:fib if duration > 1s' --snapshot-on exit -o flight.tw -- "$python" run.py
expect 0 "$tw" info flight.tw
shows 'ask for no snapshot: --snapshot-on is for native calls'
# Patterns without a function.
expect 0 "$tw" record --force --python -t bank:wrok -t bank:fib/1 -o why.tw -- "$python" run.py
says "-t 'bank:wrok' matched nothing: no code of Python that ran defines it, and the program and its libraries have no module 'bank'"
says "functions of Python have no number of parameters here: leave out that of -t 'bank:fib/1'"
expect 2 "$tw" record --python --count 'py:_' -- "$python" -c ''
says '--python goes without --count'
expect 2 "$tw" record --python --longer 1ms -- "$python" -c ''
says '--longer and --python exclude each other'
