#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    With --local, libraries that are opened while the program runs, and programs that are executed by the first, are traced at
#         their entries like those of the start; closing and opening again, thousands of times, costs neither calls nor
#         memory; a command that is stopped or killed delays a process once, and what was not traced then is counted.
# Method  Stripped programs and libraries, not compiled for tracing, whose numbers of calls are known by construction. The time to
#         wait for a plan is 10 s here, so that a loaded machine is no cause of failure; where the time itself is tested, what
#         would happen without its limit takes many times longer. The bytes behind planted jumps are int3.
build=$1
. "$(dirname "$0")/lib.sh"
plant_with_traps
export TRACEWHEEL_PLAN_WAIT_MS=10000

cat >lib.c <<'C'
int late_leaf(int a) { __asm__ volatile("" : "+r"(a)); return a * 7 % 5 + MORE; }
__attribute__((noinline)) static int inner(int a) { return late_leaf(a) * 3 + 1; }
int late_outer(int a) { return inner(a) + inner(a + 1); }
C
cat >open.c <<'C'
/* open ROUNDS LIBRARY...: opens one after the other, calls it, closes it. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "memory.h"
static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
int main(int argc, char **argv)
{
	const char *answer = getenv("ANSWER"), *number = getenv("SIGNAL");
	int rounds = atoi(argv[1]);
	long before = 0, sum = 0;
	double first = 0, begun;
	clock_t start = clock(), half = 0;
	if (number) {
		kill(getppid(), atoi(number));
		usleep(100000);
	}
	begun = now();
	for (int i = 0; i < rounds; i++) {
		void *handle = dlopen(argv[2 + i % (argc - 2)], RTLD_NOW);
		if (!i)
			first = now() - begun;
		sum += ((int (*)(int))dlsym(handle, "late_outer"))(3);
		dlclose(handle);
		if (i == rounds / 10)
			before = memory();
		if (i == rounds / 2)
			half = clock();
	}
	if (number && atoi(number) == SIGSTOP)
		kill(getppid(), SIGCONT);
	printf("%ld\n", sum);
	fprintf(stderr, "memory %ld halves %ld %ld first %.0f all %.0f\n", memory() - before, (long)(half - start), (long)(clock() - half), first * 1e3,
		(now() - begun) * 1e3);
	if (answer) {
		FILE *file = fopen(answer, "w");
		fprintf(file, "%ld\n", sum);
		fclose(file);
	}
	return 3;
}
C
for more in 0 1; do
	gcc -O2 -shared -fPIC -s -DMORE=$more -Wl,--build-id -o liblate$more.so lib.c || fail "gcc"
done
gcc -O2 -s -Wl,--build-id -I "$common" -o open open.c || fail "gcc"

late() {
	expect 0 "$tw" info --json "$1"
	sed -n '/^ *"missing": {/,/^    }/ { /^ *"plans": {/,/}/ s/^ *"places": \([0-9]*\).*/\1/p }' out
}

# ---- opened later: planned at once, and from the cache; closed and opened again ----
for run in made cached; do
	answer=$(./open 4 ./liblate0.so ./liblate1.so 2>/dev/null)
	expect 3 "$tw" record --force --local --returns --on-full block -t 'liblate?:_' -o a.tw -- ./open 4 ./liblate0.so ./liblate1.so
	is "$(cat out)" "$answer" $run
	is "$(calls a.tw liblate0:late_outer liblate1:late_leaf)" "2 4" $run
	expect 0 "$tw" report --json -n 0 a.tw
	is "$(json "d['events'] - 2 * d['calls'], sum(f['calls'] for f in d['by_function'] if f['function'].startswith('sub_'))")" "0 8" $run
	is "$(late a.tw)" 0 $run
done
is "$(ls cache/tracewheel/plans | wc -l)" 2
expect 0 "$tw" info a.tw
! grep -q "not traced" out || fail "a note that is not true: $(cat out)"

# By a name that only its soname has.
gcc -O2 -shared -fPIC -s -DMORE=0 -Wl,--build-id=sha1 -Wl,-soname,libother.so.7 -o liblast.so lib.c || fail "gcc"
for pattern in 'libother.so.7:_' 'lib{other,some}*.so.7:_'; do
	expect 3 "$tw" record -q --force --local --on-full block -t "$pattern" -o o.tw -- ./open 1 ./liblast.so
	expect 0 "$tw" report --json o.tw
	is "$(json "d['calls']")" 5 "$pattern"
	rm -rf cache
done

# ---- a forked child opens ----
cat >fork.c <<'C'
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int status;
	if (fork() == 0) {
		void *handle = dlopen(argv[1], RTLD_NOW);
		_exit(((int (*)(int))dlsym(handle, "late_outer"))(3) & 63);
	}
	wait(&status);
	return WEXITSTATUS(status);
}
C
gcc -O2 -s -Wl,--build-id -o fork fork.c || fail "gcc"
./fork ./liblate0.so
expect $? "$tw" record -q --force --local --follow-fork --on-full block -t 'liblate0:_' -o f.tw -- ./fork ./liblate0.so
is "$(calls f.tw liblate0:late_leaf)" 2

# ---- thousands of times: the same calls, no more memory, and no more time for the last than for the first ----
again() {
	local rounds=$1
	shift
	answer=$(./open "$rounds" "$@" 2>/dev/null)
	expect 3 "$tw" record -q --force --local --on-full block -t 'liblate?:_' -o m.tw -- ./open "$rounds" "$@"
	is "$(cat out)" "$answer"
	grown=$(sed -n 's/.*memory \([-0-9]*\) .*/\1/p' err)
	[ "$grown" -lt "$(rounds 20 200)" ] || fail "$*: it has grown by $grown kB"
	# Processor time of its own, of the two halves.
	awk '$3 == "halves" && $5 > 3 * $4 + '"$(rounds 10000 50000)"' { exit 1 }' err || fail "later rounds cost more: $(cat err)"
}
# In the short form a tenth of the rounds, which may grow by a tenth.
many=$(rounds 300 3000) fewer=$(rounds 100 1000)
again "$many" ./liblate0.so
is "$(calls m.tw liblate0:late_outer liblate0:late_leaf)" "$many $((2 * many))"
again "$fewer" ./liblate0.so ./liblate1.so
is "$(calls m.tw liblate0:late_outer liblate1:late_outer)" "$((fewer / 2)) $((fewer / 2))"

# ---- another file with the same build-id: the plan in the cache is not its own ----
rm -rf cache
for more in 3 4; do
	gcc -O2 -shared -fPIC -s -DMORE=$more -Wl,--build-id=0x123456789a0102030405060708090a0b0c0d0e0f -o libtwin$more.so lib.c || fail "gcc"
	# No plan is kept of a file that has just changed.
	sleep 0.1
	answer=$(./open 1 ./libtwin$more.so 2>/dev/null)
	stamp=$(stat -c %Y.%i cache/tracewheel/plans/*.plan 2>/dev/null)
	expect 3 "$tw" record -q --force --local --on-full block -t 'libtwin?:_' -o u.tw -- ./open 1 ./libtwin$more.so
	is "$(cat out)" "$answer"
	is "$(calls u.tw libtwin$more:late_leaf)" 2
	[ "$stamp" != "$(stat -c %Y.%i cache/tracewheel/plans/*.plan)" ] || fail "the plan of another file was used"
done

# ---- a program in place of the first, and children of a shell ----
cat >app.c <<'C'
#include <stdio.h>
__attribute__((noipa)) static int work(int a) { __asm__ volatile("" : "+r"(a)); return a * 7 % 5; }
int main(int argc, char **argv)
{
	for (int i = 0; i < 10 * argc; i++)
		work(i);
	return 3;
}
C
gcc -O2 -s -Wl,--build-id -o app app.c || fail "gcc"
expect 3 "$tw" record --force --local --on-full block -t 'app:_' -o x.tw -- sh -c 'exec ./app'
expect 0 "$tw" report --json -n 0 x.tw
is "$(json "max(f['calls'] for f in d['by_function']), sum(f['function'] == 'main' for f in d['by_function'])")" "10 0" "it has no names"
is "$(late x.tw)" 0
expect 3 "$tw" record --force --local --on-full block --follow-fork -t 'app:_' -o y.tw -- \
	sh -c './app; ./app 1; sh -c "exec ./app 1 2"; ./app'
expect 0 "$tw" report --json -n 0 y.tw
is "$(json "max(f['calls'] for f in d['by_function'])")" 70
is "$(late y.tw)" 0
# Without -t: the programs' own functions.
expect 3 "$tw" record --force --local --on-full block -o z.tw -- sh -c 'exec ./app 1'
expect 0 "$tw" report --json -n 0 z.tw
is "$(json "max(f['calls'] for f in d['by_function'] if f['module'] == 'app')")" 20

# ---- a file that any user may write is not planned: its build-id may be another file's ----
gcc -O2 -shared -fPIC -s -DMORE=7 -Wl,--build-id -o libloose.so lib.c && chmod 666 libloose.so || fail "gcc"
for run in "" cached; do
	expect 3 "$tw" record --force --local -t 'libloose:_' -o w.tw -- ./open 10 ./libloose.so
	says 'libloose.so: another user than root and you may write its file; its functions without sleds were not traced'
	expect 0 "$tw" info --json w.tw
	is "$(json "d['events']")" 0 $run
done

# ---- a stopped command: one dlopen waits, all are counted; then a killed one ----
stopped() {
	rm -rf cache
	SIGNAL=19 TRACEWHEEL_PLAN_WAIT_MS=$1 expect 3 "$tw" record --force --local -t 'liblate?:_' -o s.tw -- ./open 40 ./liblate0.so
	says '40 objects were not traced at their entries: .* Plans are kept: record again\.'
	! grep -q 'matched nothing' err || fail "the library was opened: $(cat err)"
	first=$(sed -n 's/.*first \([0-9]*\) .*/\1/p' err) all=$(sed -n 's/.* all //p' err)
	is "$(late s.tw)" 40
	[ "$first" -ge $(($1 * 9 / 10)) ] || fail "dlopen did not wait: $first of $1 ms"
	[ "$all" -lt $(($1 * 20)) ] || fail "every dlopen waited: $all ms"
	expect 0 "$tw" info s.tw
	shows '40 objects were not traced at their entries: no plan was ready in time'
	is "$(grep -c 'every function without a sled of liblate0 is not traced: its plan was not ready in time' out)" 1
	expect 0 "$tw" report s.tw
	shows '40 objects were not traced at their entries'
}
stopped 1000
(ANSWER=$PWD/answer SIGNAL=9 TRACEWHEEL_PLAN_WAIT_MS=1000 exec setsid "$tw" record -q --force --local -t 'liblate?:_' -o k.tw -- \
	./open 40 ./liblate0.so) >/dev/null 2>&1
wait_until test -s answer
is "$(cat answer)" "$(./open 40 ./liblate0.so 2>/dev/null)"
expect 0 "$tw" recover -q k.tw
is "$(late k.tw)" 40
rm -rf cache
# The default: 50 ms, if the machine lets it wake.
unset TRACEWHEEL_PLAN_WAIT_MS
SIGNAL=19 expect 3 "$tw" record -q --force --local -t 'liblate?:_' -o d.tw -- ./open 2 ./liblate0.so
[ "$(sed -n 's/.*first \([0-9]*\) .*/\1/p' err)" -ge 45 ] || fail "dlopen did not wait: $(cat err)"
is "$(late d.tw)" 2
# A plan that the command keeps needs no answer.
TRACEWHEEL_PLAN_WAIT_MS=10000 expect 3 "$tw" record -q --force --local -t 'liblate?:_' -o e.tw -- ./open 1 ./liblate0.so
SIGNAL=19 expect 3 "$tw" record -q --force --local --on-full block -t 'liblate?:_' -o e.tw -- ./open 40 ./liblate0.so
is "$(calls e.tw liblate0:late_outer) $(late e.tw)" "40 0"
export TRACEWHEEL_PLAN_WAIT_MS=10000

# ---- an interpreter that opens Debian's library ----
command -v python3 >/dev/null && python3 -c 'import sqlite3' 2>/dev/null || exit 0
cat >q.py <<'P'
import sqlite3
db = sqlite3.connect(":memory:")
db.execute("create table t(a)")
db.executemany("insert into t values (?)", ((i,) for i in range(200)))
print(db.execute("select count(*), sum(a) from t").fetchall())
P
expect 0 "$tw" record --force --local --returns --on-full block -t 'libsqlite3:_' -o p.tw -- python3 q.py
is "$(cat out)" "[(200, 19900)]"
is "$(late p.tw)" 0
is "$(calls p.tw libsqlite3:sqlite3_bind_int64)" 200
expect 0 "$tw" report --json -n 0 p.tw
is "$(json "d['calls'] > 10000 and len(d['by_function']) > 300")" True
