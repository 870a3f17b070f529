#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    `record --stack N` records the callers, by frame pointers, on every thread and beside watched returns; report
#         and flame make a tree of them if no returns tell more; whatever is in %rbp, the program runs as untraced and
#         the direct caller is right.
build=$1
. "$(dirname "$0")/lib.sh"

cat >app.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#define KEEP(x) __asm__ volatile("" : "+r"(x))
#define FUNCTION __attribute__((noinline))
FUNCTION int five(int n) { KEEP(n); return n + 5; }
FUNCTION int four(int n) { n = five(n); KEEP(n); return n + 4; }
FUNCTION int three(int n) { n = four(n); KEEP(n); return n + 3; }
FUNCTION int two(int n) { n = three(n); KEEP(n); return n + 2; }
FUNCTION int one(int n) { n = two(n); KEEP(n); return n + 1; }
FUNCTION int ends(int n) { KEEP(n); return five(n); }
FUNCTION int deep(int n) { if (n) n = deep(n - 1); else n = five(n); KEEP(n); return n; }
static void *work(void *sum)
{
	for (int i = 0; i < 100; i++)
		*(int *)sum += one(i);
	return NULL;
}
int main(int argc, char **argv)
{
	pthread_t threads[4];
	pthread_attr_t small;
	int sums[5] = {0}, sum = 0;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	for (int t = 0; t < 4; t++)
		pthread_create(&threads[t], &small, work, &sums[t]);
	work(&sums[4]);
	for (int t = 0; t < 4; t++)
		pthread_join(threads[t], NULL);
	for (int t = 0; t < 5; t++)
		sum += sums[t];
	sum += ends(1) + deep(20000);
	printf("%d\n", sum);
	return 0;
}
C
right=32261

make() {
	how=$*
	gcc -w -g -O2 -fpatchable-function-entry=9 -pthread -o app app.c "$@" || fail "gcc $*"
}

record() {
	expect 0 "$tw" record -q --force --on-full block --local "$@" -o app.tw -- ./app
	is "$(cat out)" "$right" "$how: the program's answer"
	expect 0 "$tw" print app.tw
	# One thread after another: each call, and then its stack.
	sort -s -k2,2 out >text
}

# stacks COUNT FUNCTION TEXT: expects that many stacks of it that begin so.
stacks() {
	is "$(grep -c "stack app:$2: $3" text)" "$1" "$how: stacks of $2: $3"
}

make -fno-omit-frame-pointer
record --stack 4 -t app:five
stacks 500 five 'app:four at app.c:7 <- app:three at app.c:8 <- app:two at app.c:9 <- app:one at app.c:10$'
stacks 1 five 'app:main at '
stacks 1 five 'app:deep at app.c:12 <- app:deep at app.c:12 <- app:deep at app.c:12 <- app:deep at app.c:12$'
[ "$(awk '$3 == "call" { calls++; kept = $4 } $3 == "stack" && $4 != kept ":" { exit 1 } $3 == "stack" { stacks++; kept = "" }
	END { print calls, stacks }' text)" = '502 502' ] || fail "a stack is not behind its call"
expect 0 "$tw" print --format erlang --bare-pids app.tw
is "$(grep -c "stack,{app,five,'_'},\[{app,four,'_'},{app,three,'_'},{app,two,'_'},{app,one,'_'}\]" out)" 500 "$how: Erlang"
"$tw" print --format json app.tw >lines || fail "print --format json"
is "$(python3 -I -S -c "
import json
stacks = [e['stack'] for e in map(json.loads, open('lines')) if e['kind'] == 'stack']
print(sum([f.get('function') for f in s] == ['four', 'three', 'two', 'one'] and s[0]['line'] == 7 for s in stacks))
")" 500 "$how: JSON"
expect 0 "$tw" print --tree app.tw
shows 'stack: app:four at app.c:7 <- app:three'
expect 0 "$tw" report app.tw

how='the stacks as a tree'
expect 0 "$tw" flame --folded app.tw
shows '^app:one;app:two;app:three;app:four;app:five 500$'
shows '^app:deep;app:deep;app:deep;app:deep;app:five 1$'
shows 'app:main;app:five 1$'
is "$(awk '{ sum += $NF } END { print NR, sum }' out)" '3 502' "$how: weights"
expect 0 "$tw" flame --folded --by-process app.tw
is "$(grep -c ';app:one;app:two;app:three;app:four;app:five 100$' out)" 5 "$how: by thread"
expect 0 "$tw" flame app.tw
shows '"title":"./app (by number of events)","hasTimes":false,"hasStacks":true'
expect 0 "$tw" report --tree --top 0 app.tw
shows '^ *events *calls  call stacks$'
shows '^       500         0  app:one$'
shows '^       500       500          app:five$'
# For a function that called itself, each event counts once.
shows '^         1         0  app:deep$'
expect 0 "$tw" report --callers app.tw
shows '^       502       502  app:five$'
shows '^       500       500    from app:four$'
expect 0 "$tw" report --json app.tw
is "$(json '[(c["name"], c["calls"]) for c in d["by_function"][0]["callers"]][0], len(d["by_function"])')" "('app:four/_', 500) 1" "$how: JSON"
is "$(json '"total" in d["by_function"][0] or "unmatched" in d')" False "$how: no times"
"$tw" record -q --on-full block --local --stack 4 -t app:five -o - -- ./app 2>/dev/null | "$tw" flame --folded - >out || fail "$how: a stream"
shows '^app:one;app:two;app:three;app:four;app:five 500$'
# A function with its arguments is the same function when it calls.
record --stack 4 --args -t app:five -t app:four
expect 0 "$tw" flame --folded app.tw
shows ';app:four/1;app:five/1 500$'
shows ';app:three;app:four/1 500$'

how='beside returns'
record --stack 5 --returns -t 'app:_'
# Every return address above is one of our stubs at that time.
stacks 500 five 'app:four at app.c:7 <- app:three at app.c:8 <- app:two at app.c:9 <- app:one at app.c:10 <- app:work at'
stacks 500 two 'app:one at app.c:10 <- app:work at'
stacks 1 five 'app:main at '
is "$(grep -c 'return_from app:' text)" "$(($(grep -c ' call app:' text) - 0))" "$how: calls and returns"
# Returns tell more than stacks do.
expect 0 "$tw" report --tree app.tw
shows '^ *total *self *calls  call tree'
expect 0 "$tw" flame app.tw
shows '"hasTimes":true,"hasStacks":false'

# The callers of the outermost call are known only from its stack.
record --stack 5 --returns -t app:five -t app:four
expect 0 "$tw" report --callers app.tw
shows '^.* 500    from app:four$'
shows '^.* 500    from app:three$'
shows '^Callers with 0 calls are known only from call stacks'
expect 0 "$tw" report --json app.tw
is "$(json 'len(d["by_function"]), sum(f["calls"] for f in d["by_function"])')" '2 1002' "$how: callers have no calls"
expect 0 "$tw" flame --folded app.tw
shows 'app:three;app:four;app:five '

how='with a guard, and arguments'
record --stack 2 --args --when '$1 == 7' -t app:five
is "$(grep -c 'stack app:five/1: app:four at app.c:7 <- app:three at app.c:8$' text)" 5 "$how"
is "$(grep -c 'call app:five/1 (n = 7)$' text)" 5 "$how"

how='one'
record --stack 1 -t app:five
stacks 500 five 'app:four at app.c:7$'

# The direct caller is right; further frames may be anything.
make -fomit-frame-pointer
record --stack 64 -t app:five
stacks 500 five 'app:four at app.c:7'
is "$(grep -c ' call app:five' text)" 502 "$how"

# Through the GOT of an unprepared program.
how='slots'
cat >plain.c <<'C'
#include <stdlib.h>
__attribute__((noinline)) int inner(const char *text) { int n = (int)strtol(text, NULL, 10); __asm__ volatile("" : "+r"(n)); return n; }
__attribute__((noinline)) int outer(const char *text) { int n = inner(text); __asm__ volatile("" : "+r"(n)); return n; }
int main(void) { return outer("7") - 7; }
C
gcc -g -O2 -fno-omit-frame-pointer -fno-builtin -o plain plain.c || fail gcc
expect 0 "$tw" record -q --force --global --stack 3 -t libc:strtol -o plain.tw -- ./plain
expect 0 "$tw" print plain.tw
shows 'stack libc:strtol.*: plain:inner at plain.c:2 <- plain:outer at plain.c:3 <- plain:main at plain.c:4$'

# Any value in %rbp: null, misaligned, below, itself, in a circle, just below and at the end of the stack, on other
# stacks.
how='bad frame pointers'
cat >odd.c <<'C'
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
static int count;
__attribute__((noinline)) void leaf(void) { __sync_fetch_and_add(&count, 1); }
__attribute__((noinline)) void call_with(uintptr_t frame)
{
	__asm__ volatile("push %%rbp\n\tmov %0, %%rbp\n\tcall leaf\n\tpop %%rbp" ::"r"(frame)
			 : "memory", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11");
}
static void all(void)
{
	static uintptr_t outside[4];
	uintptr_t circle[4], up[8] = {0}, here = (uintptr_t)circle, end;
	void *gone = mmap(NULL, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	circle[0] = (uintptr_t)&circle[2], circle[1] = (uintptr_t)all;
	circle[2] = (uintptr_t)&circle[0], circle[3] = (uintptr_t)all;
	munmap(gone, 65536);
	call_with(0), call_with(1), call_with(8), call_with(~(uintptr_t)0), call_with(~(uintptr_t)7);
	call_with((uintptr_t)1 << 63), call_with((uintptr_t)outside), call_with((uintptr_t)gone);
	call_with(here), call_with(here + 1), call_with(here - 4096), call_with(here - (1 << 20));
	/* All of the stack above, or what is in use of it: every word of it as a frame; and far beyond its end. */
	for (end = here; end < here + BYTES; end += 8)
		call_with(end);
	for (end = here; end < here + (64 << 20); end += 65536 - 8)
		call_with(end);
	end = (uintptr_t)__builtin_thread_pointer();
	call_with(end), call_with(end - 8), call_with(end - 16), call_with(end + 8), call_with(end + 4096);
	up[0] = ~(uintptr_t)7, up[1] = (uintptr_t)all;
	call_with((uintptr_t)up);
	up[0] = (uintptr_t)gone;
	call_with((uintptr_t)up);
}
static void handler(int number) { all(); }
static void *thread(void *unused)
{
	stack_t signals = {.ss_sp = malloc(65536), .ss_size = 65536};
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
	all();
	sigaltstack(&signals, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	return NULL;
}
static ucontext_t back, other;
int main(void)
{
	pthread_t id;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&id, NULL, thread, NULL), pthread_join(id, NULL);
	all();
	getcontext(&other);
	other.uc_stack.ss_sp = malloc(65536), other.uc_stack.ss_size = 65536, other.uc_link = &back;
	makecontext(&other, all, 0);
	swapcontext(&back, &other);
	printf("%d\n", count);
	return 0;
}
C
gcc -w -g -O2 -no-pie -fpatchable-function-entry=9 -pthread -rdynamic -DTHREADS="$(rounds 1 4)" -DBYTES="$(rounds 16384 65536)" -o odd odd.c || fail gcc
objdump -d --no-show-raw-insn odd >code || fail objdump
expect 0 ./odd
cp out untraced
for more in '' --returns; do
	# shellcheck disable=SC2086
	expect 0 "$tw" record -q --force --on-full block --local --stack 64 $more -t odd:leaf -o odd.tw -- ./odd
	cmp out untraced || fail "$how: another answer"
	expect 0 "$tw" print odd.tw
	is "$(grep -c 'stack odd:leaf: odd:call_with at' out)" "$(cat untraced)" "$how: the direct caller"
	# Every word shown is a return address; at any other word, the stack shows that it ends.
	grep -q ' <- ?$' out || fail "$how: no stack ends by a chance word"
	"$tw" print --format json odd.tw >lines || fail "print --format json"
	python3 -I -S - <<'P' || fail "$how: a word that no call returns to"
import json, re
behind, was_call = set(), False
for line in open('code'):
    m = re.match(r'\s*([0-9a-f]+):\s+(\S+)(.*)', line)
    if not m:
        continue
    if was_call:
        behind.add(int(m[1], 16))
    was_call = m[2].startswith('call') or m[2] == 'notrack' and 'call' in m[3]
events = [json.loads(line) for line in open('lines') if '"stack"' in line]
events = [e for e in events if e['kind'] == 'stack']
words = [w for e in events for w in e['stack'] if w.get('module') == 'odd']
assert len(words) > 5000, len(words)
assert all(w['address'] in behind for w in words), [w for w in words if w['address'] not in behind][:3]
assert all(w.get('module') for e in events for w in e['stack'])
cut = sum(e.get('stack_is_cut', False) for e in events)
assert cut > 4, cut
P
done

for wrong in 0 65 x -1; do
	expect 2 "$tw" record --stack=$wrong -- true
	says 'from 1 to 64'
done
echo "all as it should be"
