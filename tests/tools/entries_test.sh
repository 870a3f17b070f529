#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Every function of unmodified, stripped programs is recorded by --local: each call and return once, same answers,
#         exceptions and stacks as untraced, children too; what cannot be traced is named with its reason.
# Method  Programs whose numbers of calls are known by construction, and Debian's sqlite3. Nothing is compiled for tracing. The
#         bytes behind planted jumps are int3 (TRACEWHEEL_ENTRY_TRAPS), so that a jump into them would end the program.
build=$1
. "$(dirname "$0")/lib.sh"
plant_with_traps

cat >lib.c <<'C'
int lib_leaf(int a) { __asm__ volatile("" : "+r"(a)); return a * 7 % 5; }
/* Calls, so that its caller aligns the stack: calls without space between their return addresses have no returns. */
__attribute__((noinline)) static int inner(int a) { return lib_leaf(a) * 3 + 1; }
int lib_outer(int a) { return inner(a) + inner(a + 1); }
/* The loop leads back to the first instruction. */
__asm__(".globl lib_loop\n.type lib_loop, @function\nlib_loop: .cfi_startproc\nleal 1(%rdi), %edi\ncmp $9, %edi\n"
	"jb lib_loop\nmov %edi, %eax\nret\n.cfi_endproc\n.size lib_loop, .-lib_loop\n");
C
cat >app.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int lib_outer(int), lib_leaf(int), lib_loop(int);
static void *work(void *arg)
{
	long sum = 0;
	for (int i = 0; i < 1000; i++)
		sum += lib_outer(i) + lib_leaf(i) + lib_loop(i % 9);
	return (void *)sum;
}
int main(int argc, char **argv)
{
	pthread_t threads[3];
	long sum = 0;
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < 3; i++) {
		void *one;
		pthread_join(threads[i], &one);
		sum += (long)one;
	}
	if (argc > 1) {
		int status;
		pid_t child = fork();
		if (!child)
			_exit((int)(long)work(NULL) & 63);
		waitpid(child, &status, 0);
		sum += WEXITSTATUS(status);
	}
	printf("%ld\n", sum);
	return 3;
}
C
gcc -O2 -shared -fPIC -s -o libplain.so lib.c -Wl,--build-id && gcc -O2 -s -o app app.c -L. -lplain -lpthread -Wl,-rpath,"$work" ||
	fail "the programs do not compile"

# ---- what can be traced, and why not ----
expect 0 "$tw" functions --local -t 'libplain:_' ./app
shows 'entry  libplain:lib_outer'
shows 'libplain: [0-9]* of [0-9]* functions can be traced at their entries'
expect 0 "$tw" functions --local --refused -t 'libplain:lib_loop' ./app
shows 'lib_loop.*a loop begins at its first instruction'
expect 0 "$tw" functions --local --json -t 'libplain:lib_leaf' ./app
is "$(json "d['functions'][0]['way']")" entry
expect 0 "$tw" functions --local -t 'ld-linux-x86-64:_' ./app
shows "ld-linux-x86-64: its entries are left alone: it is the dynamic loader"
expect 0 "$tw" functions --global -t 'libplain:_' ./app
! grep -q '^entry' out || fail "entries with --global"
expect 2 "$tw" record --local -t 'libplain:lib_loop' -o no.tw -- ./app
says 'lib_loop of libplain cannot be traced: a loop begins at its first instruction'

# ---- counts by construction ----
answer=$(./app)
expect 3 "$tw" record --local --returns --on-full block -t 'libplain:_' -o a.tw -- ./app
says '1 function of libplain that matches is not traced at its entry: `tracewheel functions --local --refused` says why.'
is "$(cat out)" "$answer"
expect 0 "$tw" info --json a.tw
is "$(calls a.tw lib_outer)" 3000
is "$(calls a.tw lib_leaf)" 9000
# The nameless function is called twice by lib_outer.
expect 0 "$tw" report --json -n 0 a.tw
is "$(json "sum(f['calls'] for f in d['by_function'] if f['function'].startswith('sub_'))")" 6000
is "$(json "d['events'] - 2 * d['calls']")" 0
is "$(json "sum(d['lost'].values())")" 0
# Without -t: the program's own functions.
expect 3 "$tw" record --local --on-full block -o b.tw -- ./app
is "$(cat out)" "$answer"
expect 0 "$tw" report --json -n 0 b.tw
is "$(json "{f['module'] for f in d['by_function']} == {'app'} and d['calls'] >= 4")" True
# Conditions, arguments, callers, counts.
expect 3 "$tw" record --local --on-full block --args=raw --stack 2 --when '$1 < 10' -t 'libplain:lib_leaf' -o c.tw -- ./app
# 0 to 9, from lib_outer's first call, its second one (from 1), and directly.
is "$(calls c.tw lib_leaf)" $((3 * (10 + 9 + 10)))
# What was left out, once and in sum.
expect 0 "$tw" report a.tw
is "$(grep '^Note: ' out)" 'Note: 1 function of libplain that matches is not traced at its entry: `tracewheel functions --local --refused` says why.'
expect 3 "$tw" record --local --force -t '{libplain,libc}:_' -o all.tw -- ./app
says '[0-9]* functions of 2 objects that match are not traced at their entries: '
expect 0 "$tw" report all.tw
is "$(grep -c '^Note: .*of 2 objects' out) $(grep -c '^Note: ' out)" '1 1'
# `functions` counts the same: functions, not their names.
refused=$(sed -n 's/^Note: \([0-9]*\) functions of 2 objects .*/\1/p' out)
expect 0 "$tw" functions --local -t '{libplain,libc}:_' ./app
shows "^$refused places cannot be traced"

# ---- a child, and no file is left behind ----
answer=$(./app fork)
"$tw" record --local --follow-fork --on-full block -t 'libplain:lib_*' -o d.tw -- ./app fork >out 2>err &
pid=$!
wait $pid
is "$(head -1 out)" "$answer"
is "$(calls d.tw lib_leaf)" 12000
! compgen -G "/dev/shm/tracewheel-*/$pid-*/plan-*" >/dev/null || fail "the ring set is still there"

# ---- what has no plan is named ----
cat >open.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	int (*leaf)(int) = dlsym(dlopen(argv[1], RTLD_NOW), "lib_leaf");
	printf("%d\n", leaf(3));
	return 0;
}
C
gcc -O2 -s -o open open.c && gcc -O2 -shared -fPIC -s -o libnoid.so lib.c -Wl,--build-id=none || fail "the program does not compile"
expect 0 "$tw" record --local -t 'libnoid:_' -o o.tw -- ./open ./libnoid.so
is "$(cat out)" 1
expect 0 "$tw" info o.tw
shows 'every function without a sled of libnoid is not traced: it has no build-id'

# ---- exceptions, and stacks taken in the middle of everything ----
cat >throw.cc <<'C'
#include <csignal>
#include <cstdio>
#include <execinfo.h>
#include <sys/time.h>
#include "deep_throw.h"
static volatile int samples, cut;
int main(int, char **);
static void on_time(int)
{
	void *frames[64];
	int count = backtrace(frames, 64);
	bool found = false;
	for (int i = 0; i < count; i++)
		found |= (char *)frames[i] >= (char *)main && (char *)frames[i] < (char *)main + 2048;
	samples = samples + 1;
	cut = cut + !found;
}
__attribute__((noinline)) static int leaf(int a) { __asm__ volatile("" : "+r"(a)); return a + 1; }
int main(int argc, char **)
{
	void *frames[4];
	itimerval every = {{0, 500}, {0, 500}};
	int count = 0, caught = 0;
	unsigned sum = 0;
	backtrace(frames, 4);
	signal(SIGPROF, on_time);
	if (argc > 1)
		setitimer(ITIMER_PROF, &every, NULL);
	for (int i = 0; i < 300; i++) {
		try {
			deep(10, &count);
		} catch (const std::exception &) {
			caught++;
		}
	}
	for (int i = 0; argc > 1 && samples < 50; i++)
		sum += (unsigned)leaf(i);
	every = {{0, 0}, {0, 0}};
	setitimer(ITIMER_PROF, &every, NULL);
	printf("%d %d cut %d\n", count, caught, cut);
	return sum == 1;
}
C
g++ -O2 -fno-inline-functions -I "$common" -o throw throw.cc && strip throw || fail "the program does not compile"
is "$(./throw)" "3300 300 cut 0"
expect 0 "$tw" record --local --exceptions --on-full block -t 'throw:_' -o e.tw -- ./throw
is "$(cat out)" "3300 300 cut 0"
# A full ring loses events here, and nothing else.
expect 0 "$tw" record --local --exceptions --on-full drop -t 'throw:_' -o t.tw -- ./throw time
is "$(cat out)" "3300 300 cut 0"
expect 0 "$tw" print e.tw --format json
# One exception leaves each of the eleven frames (or their parts), 300 times.
is "$(grep -c exception_from out)" "$((300 * 11))"

# ---- Debian's own binaries ----
command -v sqlite3 >/dev/null || exit 0
cat >work.sql <<'S'
create table t(a integer primary key, b text, c);
with recursive n(i) as (select 1 union all select i+1 from n where i<500) insert into t select i, 'row '||i, i*7%13 from n;
create index x on t(c,b);
select c, count(*), sum(length(b)) from t group by c order by 2 desc, 1 limit 3;
delete from t where a%3=0; select count(*) from t; pragma integrity_check;
S
answer=$(sqlite3 :memory: ".read work.sql")
expect 0 "$tw" record --local --returns --on-full block -t 'libsqlite3:_' -t 'sqlite3:_' -o f.tw -- sqlite3 :memory: ".read work.sql"
is "$(cat out)" "$answer"
expect 0 "$tw" report --json -n 1 f.tw
is "$(json "d['calls'] > 20000 and d['events'] - 2 * d['calls'] < 200 and sum(d['lost'].values()) == 0")" True

# ---- callgrind's count of each function, by its address in the file ----
command -v valgrind >/dev/null || exit 0
library=$(ldd "$(command -v sqlite3)" | sed -n 's/.*libsqlite3.* => \(.*\) (.*/\1/p')
[ -n "$library" ] || exit 0
sed 's/i<500/i<50/' work.sql >few.sql
expect 0 valgrind -q --tool=callgrind --callgrind-out-file=calls --dump-instr=yes --skip-plt=no sqlite3 :memory: ".read few.sql"
expect 0 "$tw" record --local --on-full block -t 'libsqlite3:_' -o g.tw -- sqlite3 :memory: ".read few.sql"
expect 0 "$tw" report --json -n 0 g.tw
cp out report.json
nm -D --defined-only "$library" >names
cat >compare.py <<'P'
import json
from callgrind import read_executions
executed = next(counts for path, counts in read_executions("calls").items() if "libsqlite3" in path)
values = {line.split()[2].split("@")[0]: int(line.split()[0], 16) for line in open("names")}
rows = json.load(open("report.json"))["by_function"]
for row in rows:
    name = row["function"]
    value = int(name[4:], 16) if name.startswith("sub_") else values[name]
    assert executed.get(value, 0) == row["calls"], (name, row["calls"], executed.get(value))
assert len(rows) > 300, len(rows)
P
PYTHONPATH=$common expect 0 python3 -B compare.py
