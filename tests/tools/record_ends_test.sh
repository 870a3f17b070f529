#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    `record` with conditions on how calls end: the calls that fulfil theirs are recorded, with their arguments, and those around them, with
#         --children also those in them; all others are counted, each once. Results, errno, durations, exceptions, arguments by name and number; conditions of their own for patterns, beside
#         patterns without any; 4 threads, tail calls, longjmp, C++ exceptions, a forked child, an end without exit(); attach.
# Method  A program writes down each of its calls: thread, argument, call around it, how it ended. A model says which are to be recorded; events, in
#         order and nested, with arguments and results, and counts are compared with it. Control: another condition's model refuses the capture.
build=$1
. "$(dirname "$0")/lib.sh"

cat >app.cc <<'C'
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#define FN extern "C" __attribute__((noinline, noipa))
enum { LEAF, FAILS, OUTER, NAPS, THROWS, TAIL, JUMPS, NAMED, FORKS };
enum { OPEN, RETURNED, THROWN, JUMPED, IN_CHILD };
struct call { int pid, tid, function, n, parent, how, result, error; long ns; };
static struct history { int count; struct call calls[200000]; } *history;
static __thread int around = -1;
static __thread jmp_buf back;
static long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}
static int begin(int function, int n)
{
	int i = __atomic_fetch_add(&history->count, 1, __ATOMIC_RELAXED), saved = errno;
	history->calls[i] = {getpid(), (int)syscall(SYS_gettid), function, n, around, OPEN, 0, 0, now()};
	errno = saved;
	return around = i;
}
static int end(int i, int how, int result)
{
	struct call *call = &history->calls[i];
	int saved = errno;
	call->ns = now() - call->ns;
	call->error = saved;
	call->result = result;
	call->how = how;
	around = call->parent;
	errno = saved;
	return result;
}
FN int leaf(int n) { return end(begin(LEAF, n), RETURNED, n % 7 - 3); }
FN int fails(int n)
{
	int i = begin(FAILS, n);
	if (n % 5 == 0)
		errno = n % 2 ? ENOENT : EACCES;
	return end(i, RETURNED, n % 5 ? n : -1);
}
FN int outer(int n)
{
	int i = begin(OUTER, n), sum = leaf(n) + leaf(n + 1) + fails(n);
	if (n % 3 == 0)
		sum += outer(n + 1);
	return end(i, RETURNED, sum % 4 - 1);
}
FN int naps(int n)
{
	int i = begin(NAPS, n);
	struct timespec left = {0, n % 20 == 7 ? 60000000 : 0};
	while (nanosleep(&left, &left))
		;
	leaf(n);
	return end(i, RETURNED, 0);
}
FN int throws(int n)
{
	int i = begin(THROWS, n);
	leaf(n);
	if (n % 6 == 0) {
		end(i, THROWN, 0);
		throw n;
	}
	return end(i, RETURNED, n % 6 - 2);
}
FN int tail(int n)
{
	/* Its end is that of the call that it becomes, and has its result. */
	int i = begin(TAIL, n);
	end(i, RETURNED, (n + 1) % 5 ? n + 1 : -1);
	history->calls[i].error = (n + 1) % 2 ? ENOENT : EACCES;
	return fails(n + 1);
}
FN int jumps(int n)
{
	int i = begin(JUMPS, n);
	fails(n);
	if (n % 4 == 0) {
		end(i, JUMPED, 0);
		longjmp(back, 1);
	}
	return end(i, RETURNED, n);
}
FN long named(const char *name, int n) { return end(begin(NAMED, n), RETURNED, (int)strlen(name) - 4); }
FN int forks(int n)
{
	int i = begin(FORKS, n), status = 0, whole = around;
	pid_t child = fork();
	if (!child) {
		/* The call returns here too, and is the parent's. */
		around = -1;
		for (int k = 0; k < 20; k++)
			outer(k);
		_exit(0);
	}
	around = whole;
	waitpid(child, &status, 0);
	return end(i, RETURNED, -1);
}
static void *run(void *arg)
{
	int base = (int)(long)arg * 1000;
	for (int k = 0; k < 60; k++) {
		int n = base + k;
		outer(n);
		naps(n);
		try {
			throws(n);
		} catch (int) {
		}
		tail(n);
		if (!setjmp(back))
			jumps(n);
		named(n % 3 ? "even" : "odd", n);
	}
	return 0;
}
/* Nothing of the program or of libc hears of it. */
FN int leaves(int n) { return (int)syscall(SYS_exit_group, n); }
int main(int argc, char **argv)
{
	int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
	pthread_t threads[4];
	if (fd < 0 || ftruncate(fd, sizeof *history))
		return 1;
	history = (struct history *)mmap(0, sizeof *history, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (argc > 2)
		while (access(argv[2], F_OK))
			usleep(10000);
	for (long i = 0; i < 4; i++)
		pthread_create(&threads[i], 0, run, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], 0);
	forks(1);
	return leaves(0);
}
C
g++ -g -O2 -o app app.cc -lpthread || fail "no compiler"

cat >judge.py <<'P'
import collections, json, struct, sys
history, events, report, wanted, is_child_seen = *sys.argv[1:5], sys.argv[5] == "1"
with_children, wanted = wanted.startswith("children "), wanted.removeprefix("children ")
names = "leaf fails outer naps throws tail jumps named forks".split()
data = open(history, "rb").read()
count = struct.unpack_from("i", data)[0]
LIMIT, has_exceptions, is_timed = 20000000, "exception" in wanted, "duration" in wanted
Call = collections.namedtuple("Call", "pid tid function n parent how result error ns")
made = [Call(*struct.unpack_from("8iq", data, 8 + 40 * i)) for i in range(count)]
made = [c._replace(function=names[c.function]) for c in made]
assert all(c.how != 0 for c in made)
program = made[0].pid
returned = lambda c: c.how == 1
thrown = lambda c: has_exceptions and c.how in (2, 3)
# What the conditions say: in the program's words.
rules = {
    "result < 0": lambda c: returned(c) and c.result < 0,
    "not (result < 0)": lambda c: returned(c) and c.result >= 0,
    "errno == ENOENT": lambda c: returned(c) and c.result == -1 and c.error == 2,
    "exception": thrown,
    "result == 0, with exceptions": lambda c: returned(c) and c.result == 0,
    "result == -1": lambda c: returned(c) and c.result == -1,
    "result == -1 or exception": lambda c: thrown(c) or (returned(c) and c.result == -1),
    "n > 2040 and (result == 0 or exception)": lambda c: c.n > 2040 and (thrown(c) or (returned(c) and c.result == 0)),
    "duration > 20ms": lambda c: returned(c) and c.ns >= LIMIT,
    "result == 0 and duration > 20ms": lambda c: returned(c) and c.result == 0 and c.ns >= LIMIT,
    "$1 > 3050 and result > 0": lambda c: c.n > 3050 and returned(c) and c.result > 0,
    'name == "odd" and result < 0': lambda c: c.n % 3 == 0 and returned(c),
    "always": lambda c: True,
    "child": lambda c: False,
    "never": lambda c: False,
}
if wanted[0] == "{":
    of = {name: rules[rule] for name, rule in json.loads(wanted).items()}
else:
    of = {name: rules[wanted] for name in names}
selected = set(of)
# The selected calls around, in the same process.
def outer(c):
    while c.parent >= 0:
        p = made[c.parent]
        if p.pid != c.pid:
            return None
        if p.function in selected:
            return c.parent
        c = p
# A tail call lies in the call that became it, until both end.
chain, previous = {}, {}
for i, c in enumerate(made):
    last = previous.get((c.pid, c.tid))
    if c.function == "fails" and last is not None and made[last].function == "tail" and c.n == made[last].n + 1 and "tail" in selected:
        chain[i] = last
    previous[c.pid, c.tid] = i
recorded = [c.function in selected and of[c.function](c) for c in made]
# With children: what is kept in the outermost call that decides is recorded when one in it is.
def record_children():
    deciding = {name for name in selected if of[name] is not rules["child"]}
    threads, is_true = collections.defaultdict(list), list(recorded)
    recorded[:] = [False] * count
    for i, c in enumerate(made):
        if c.function in selected:
            threads[c.pid, c.tid].append(i)
    for calls in threads.values():
        stack, root, kept = [], None, []
        def flush():
            for k in kept:
                recorded[k] = True
            kept.clear()
        def end(i):
            nonlocal root
            seen = has_exceptions or made[i].how == 1
            if seen and root is not None and ((is_true[i] and made[i].function in deciding) or (recorded[i] and i != root)):
                flush()
            if i == root:
                root = None
                kept.clear()
        for i in calls:
            around = chain.get(i, outer(made[i]))
            while stack and stack[-1] != around:
                end(stack.pop())
            if root is None and made[i].function in deciding:
                root = i
            if root is not None:
                kept.append(i)
            stack.append(i)
        while stack:
            end(stack.pop())
if with_children:
    record_children()
for i in range(count - 1, -1, -1) if not with_children else ():
    if recorded[i]:
        p = chain.get(i, outer(made[i]))
        if p is not None:
            recorded[p] = True
# ---- what was recorded
stacks, calls, last = collections.defaultdict(list), collections.defaultdict(list), {}
for line in open(events):
    e = json.loads(line)
    if e["kind"] not in ("call", "return_from", "exception_from"):
        continue
    thread, name = (e["process"], e["thread"]), e["function"]
    assert e["ns"] >= last.get(thread, 0), ("out of order", line)
    last[thread] = e["ns"]
    stack = stacks[thread]
    if e["kind"] == "call":
        n = e["args"][-1] if "args" in e else None
        stack.append([name, n, None, e["ns"], None, stack[-1] if stack else None])
        calls[thread].append(stack[-1])
        continue
    # Jumps are seen with exceptions only.
    while not has_exceptions and stack and stack[-1][0] != name:
        assert stack.pop()[0] in ("jumps", "throws"), (line, stack)
    assert stack and stack[-1][0] == name, ("not nested", line, stack)
    call = stack.pop()
    call[2] = (e["value"] if "value" in e else (e["values"][0] + 2**31) % 2**32 - 2**31) if e["kind"] == "return_from" else "thrown"
    call[4] = e["ns"] - call[3]
expected = collections.defaultdict(list)
seen = lambda c: is_child_seen or c.pid == program
for i, c in enumerate(made):
    if recorded[i] and seen(c):
        expected[c.pid, c.tid].append([c.function, c.n])
if not is_timed:
    for thread in set(expected) | set(calls):
        # Without arguments they are told apart by their order.
        for call, of_model in zip(calls[thread], expected[thread]):
            call[1] = of_model[1] if call[1] is None else call[1]
        got = [c[:2] for c in calls[thread]]
        assert got == expected[thread], (thread, len(got), len(expected[thread]), next(((i, a, b) for i, (a, b) in enumerate(zip(got, expected[thread])) if a != b), None))
else:
    # A short call may have had no processor: then it took as long.
    for thread, list_of in calls.items():
        left = list(expected[thread])
        for call in list_of:
            if call[:2] in left:
                left.remove(call[:2])
            else:
                around = call
                while with_children and around[5] and (around[4] is None or around[4] < LIMIT * 0.999):
                    around = around[5]
                assert around[4] is not None and around[4] >= LIMIT * 0.999, ("short", thread, call)
        assert not left, (thread, left[:5])
    assert sum(map(len, expected.values())) >= 12
results = {(c.pid, c.tid, c.function, c.n): c for c in made}
for (pid, tid), list_of in calls.items():
    for name, n, result, *_ in list_of:
        c = results[pid, tid, name, n]
        if returned(c):
            assert int(result) == c.result, (name, n, result, c)
        elif has_exceptions:
            assert result == "thrown", (name, n, result, c)
# ---- and counted
doc, counted = json.load(open(report)), collections.Counter()
for row in doc.get("counted_by_function", []):
    counted[row["function"]] += row["calls"]
of_function = collections.Counter(c[0] for list_of in calls.values() for c in list_of)
for name in selected:
    total = sum(c.function == name and seen(c) for c in made)
    assert of_function[name] + counted[name] == total, (name, of_function[name], counted[name], total)
assert not set(counted) - selected - {"leaves"}, counted
print("judged", wanted, "recorded", sum(of_function.values()), "counted", sum(counted.values()), "made", count)
P

echo 'errno int fails,tail(int n)' >app.proto
all='app:{leaf,fails,outer,naps,throws,tail,jumps,named,forks}'
judge() { # MODEL [IS_CHILD_SEEN]
	python3 -I -S judge.py own events report.json "$1" "${2-1}" >judged 2>&1
}
# play MODEL OPTION...: records, and compares with the model.
play() {
	local model=$1
	shift
	expect 0 "$tw" record --follow-fork --force -o out.tw "$@" -- ./app own
	look "$model" 1
}
look() { # MODEL IS_CHILD_SEEN
	expect 0 "$tw" report --json -n 0 out.tw
	mv out report.json
	expect 0 "$tw" print --format json out.tw
	mv out events
	judge "$@" || fail "$1: $(cat judged)"
	cat judged
}
play 'result < 0' --args -t "$all" --when 'result < 0'
says "only calls of which 'result < 0' is true, and those around them, are recorded, and self times contain the rest: .* others of 9 functions are counted"
# The judge is no friend: another condition's calls are refused.
! judge 'not (result < 0)' || fail "the control agrees"
! judge 'never' || fail "the control agrees"
expect 0 "$tw" info --json out.tw
is "$(json "d['counted']['condition']")" 'result < 0'
expect 0 "$tw" report out.tw
shows "^only calls of which 'result < 0' is true, and those around them, are recorded"
play 'result < 0' -t "$all" --when 'result < 0'
play '{"fails": "errno == ENOENT", "tail": "errno == ENOENT", "leaf": "never"}' --prototypes app.proto -t 'app:{fails,tail} if errno == ENOENT' -t 'app:leaf if duration > 1000s'
play 'not (result < 0)' --args -t "$all if not (result < 0)"
play 'result == 0, with exceptions' --args --exceptions -t "$all" --when 'result == 0'
play 'exception' --args -t "$all" --when exception
play 'result == -1 or exception' --args -t "$all" --when 'result == -1 or exception'
play 'n > 2040 and (result == 0 or exception)' --args -t "$all" --when 'n > 2040 and (result == 0 or exception)'
play 'duration > 20ms' --args --longer 20ms -t "$all"
says 'only calls of 20.0 ms or longer are recorded'
play 'result == 0 and duration > 20ms' --args -t "$all" --when 'result == 0 and duration > 20ms'
play 'result == 0 and duration > 20ms' --args -t "$all if result == 0" --longer 20ms
says "only calls of which '(result == 0) and duration >= 20000000ns' is true"
play '{"leaf": "$1 > 3050 and result > 0", "outer": "$1 > 3050 and result > 0"}' --args -t 'app:{leaf,outer} if $1 > 3050 and result > 0'
play '{"fails": "errno == ENOENT", "tail": "errno == ENOENT"}' --args --args='errno int fails,tail(int n)' -t 'app:{fails,tail} if errno == ENOENT'
play '{"named": "name == \"odd\" and result < 0"}' --args -t 'app:named if name == "odd" and result < 0'
# Patterns with conditions of their own, and without any: those are recorded as they begin, with the calls around.
play '{"leaf": "result < 0", "outer": "always", "naps": "duration > 20ms"}' --args -t 'app:leaf if result < 0' -t 'app:naps if duration > 20ms' -t app:outer
says 'only calls that fulfil their conditions, and those around them, are recorded'
play '{"leaf": "always", "jumps": "never", "outer": "never"}' --args -t 'app:{jumps,outer} if result == 12345' -t app:leaf

# With the calls in them: of functions that decide, and of others, which are recorded in such calls only.
play 'children result < 0' --args -t "$all" --when 'result < 0' --children
says "only calls of which 'result < 0' is true, those around them, and the calls in these, are recorded: .* others of 9 functions are counted"
! judge 'result < 0' || fail "the control agrees"
! judge 'children not (result < 0)' || fail "the control agrees"
expect 0 "$tw" info --json out.tw
is "$(json "d['counted']['children']")" True
play 'children result == -1 or exception' --args --exceptions -t "$all" --when 'result == -1 or exception' --children
play 'children duration > 20ms' --args --longer 20ms -t "$all" --children
says 'only calls of 20.0 ms or longer, and the calls in them, are recorded'
play 'children {"outer": "result < 0", "naps": "duration > 20ms", "leaf": "child", "fails": "child", "tail": "child"}' --args --children \
	-t 'app:outer if result < 0' -t 'app:naps if duration > 20ms' -t 'app:{leaf,fails,tail}'
play 'children {"outer": "n > 2040 and (result == 0 or exception)", "throws": "exception", "leaf": "child", "fails": "child"}' --args --exceptions \
	--children -t 'app:outer if n > 2040 and (result == 0 or exception)' -t 'app:throws if exception' -t 'app:{leaf,fails}'

# A call that never returns: recorded if it is as it begins, else nothing is known.
for how in '' ' if result < 0' ' if duration > 0'; do
	expect 0 "$tw" record -q --force -o out.tw -t 'app:leaf if result == 12345' -t "app:leaves$how" -- ./app own
	expect 0 "$tw" print --format json out.tw
	is "$(grep -c '"kind":"call".*"leaves"' out) $(wc -l <out)" "$([ "$how" ] && echo 0 0 || echo 1 1)" "leaves$how"
	expect 0 "$tw" report --json -n 0 out.tw
	is "$(json "sum(f['calls'] for f in d['counted_by_function'] if f['function'] == 'leaves')")" "$([ "$how" ] && echo 1 || echo 0)"
done

# ---- a program that runs, and its own threads only
LD_PRELOAD=$build/lib/libtracewheel-agent.so ./app own go &
pid=$!
# Until the agent of it sleeps.
until "$tw" list | grep -q "^ *$pid .*dormant" || ! kill -0 $pid; do
	sleep 0.05
done
"$tw" attach --args --force -o out.tw -t "$all" --when 'result == -1' --time 60s $pid 2>err &
command=$!
until grep -q attached err || ! kill -0 $command; do
	sleep 0.05
done
touch go
wait $pid
wait $command || fail "attach"
look 'result == -1' 0

# ---- refused
refused() {
	expect 2 "$tw" record -q --force -o x.tw "${@:2}" -- ./app own
	says "$1"
	[ ! -e x.tw ] || fail "a capture was made"
}
refused "'length': its parameters are" -t 'app:named if length > 4 and result < 0'
refused 'vector registers are not kept until the call ends' -t 'app:_ if vector_double(0) > 1 and result < 0'
refused 'a specification decides as a call begins' --longer 1ms --match "[{'_',[],[]}]"
refused 'a probe has no end' -t 'sdt:libc:setjmp' -t 'app:leaf if result < 0'
refused 'conditions on how calls end and --stack exclude each other: which calls are recorded is known when they end' -t 'app:_ if result < 0' --stack 3
refused '--children goes with --longer, or with a condition on how calls end' --children -t 'app:_ if $1 > 3'
refused "--children is a size from 32K to 1G, of each thread, not '1K'" --children=1K --longer 1ms
refused 'does not report errno' -t 'app:leaf if errno == 2'
echo PASS
