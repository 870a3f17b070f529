#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Programs compiled with entry sleds, with any compiler and flags, answer as untraced, and every call of every
#         function is recorded once.
build=$1
. "$(dirname "$0")/lib.sh"

cat >lib.c <<'C'
__attribute__((noinline)) int lib_add(int a, int b) { __asm__ volatile("" : "+r"(a)); return a + b; }
int lib_twice(int a) { return lib_add(a, a); }
C
cat >app.c <<'C'
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
int lib_add(int a, int b);
int lib_twice(int a);
static volatile int traps;
static void on_trap(int number) { traps += number == SIGTRAP; }
__attribute__((noinline)) static int local(int a)
{
	__asm__ volatile("jmp 1f\n.fill 48, 1, 0x5a\n1:" : "+r"(a));
	return a * 2 + 1;
}
/* Shorter than any sled. */
__attribute__((noinline)) void tiny(void) { __asm__ volatile(""); }
/* By hand, without a sled. */
__attribute__((visibility("hidden"))) int by_hand(int a);
__asm__(".text\n.type by_hand, @function\nby_hand: leal 1(%rdi), %eax\nret\n.size by_hand, . - by_hand\n");
/* Reads the code of a function that is traced. */
static unsigned sum_of(const unsigned char *at, int from, int to)
{
	unsigned sum = 0;
	for (int i = from; i < to; i++)
		sum = sum * 31 + at[i];
	return sum;
}
static void *work(void *arg)
{
	long sum = 0;
	for (int i = 0; i < 500; i++)
		sum += local(i) + lib_add(i, 2) + lib_twice(i) + by_hand(i);
	return (void *)sum;
}
int main(void)
{
	pthread_t threads[2];
	void *a, *b;
	signal(SIGTRAP, on_trap);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < 3; i++) {
		tiny();
		__asm__ volatile("int3");
	}
	pthread_join(threads[0], &a);
	pthread_join(threads[1], &b);
	printf("%ld %ld %d %u\n", (long)a, (long)b, traps, sum_of((const unsigned char *)local, 32, 48));
	return 3;
}
C
# counts: of the report in the file out, $lost events and the calls of each function in $called
declare -A called
counts() {
	local name count
	# As printed by this report, a line a member; Python takes ten times the time.
	awk -F '"' '
		/^  "/ { part = $2 }
		part == "lost" && /^    "/ { lost += substr($3, 3) }
		part == "by_function" && $2 == "name" { sub(/\/[^\/]*$/, "", $4); name = $4 }
		part == "by_function" && $2 == "calls" { print name, substr($3, 3) + 0 }
		part == "lost" && /^  }/ { print "lost", lost; is_report = 1 }
		END { exit !is_report || part == "lost" }' <out >counted || fail "not the JSON expected"
	called=()
	while read -r name count; do
		called[$name]=$((${called[$name]:-0} + count))
	done <counted
	lost=${called[lost]}
}

# called FUNCTION N [WHAT]: it was called N times, by the last report that was counted
called() {
	is "${called[$1]:-0}" "$2" "$1${3:+: $3}"
}

# record OPTIONS...: repeated until nothing was lost: on a busy machine a thread may end before it gets a ring
record() {
	for _ in 1 2 3 4 5; do
		expect 3 "$tw" record --force -o app.tw "$@" -- ./app
		mv out got
		expect 0 "$tw" report --json --top 0 app.tw
		counts
		[ "$lost" != 0 ] || return 0
	done
	fail "$lost events are lost each time"
}

# compare FLAGS...: records everything of app and its library, and compares
compare() {
	./app >expected
	# Stripped, the program has no names.
	record --allow-nothing -t 'app:_' -t 'liblib:_'
	cmp -s expected got || fail "another answer: $cc $*"
	called liblib:lib_add 2000 "$cc $*"
	called liblib:lib_twice 1000 "$cc $*"
	[ "$1" != stripped ] || return 0
	called app:local 1000 "$cc $*"
	called app:tiny 3 "$cc $*"
	called app:main 1 "$cc $*"
	called app:work 2 "$cc $*"
	called app:by_hand 0 "$cc $*"
}

# check FLAGS...: compiles both with $cc, and compares. Clang links by a second process of itself, so GCC links instead.
check() {
	# shellcheck disable=SC2086 # pie is several words
	"$cc" -w -fPIC "$@" -c lib.c && "$cc" -w "$@" $pie -c app.c && gcc -shared -o liblib.so lib.o &&
		gcc $pie -o app app.o -L. -llib -pthread "-Wl,-rpath,$PWD" || fail "$cc $*"
	compare "$@"
}

# Each number of NOPs and where they lie, levels of optimization, functions that are not aligned (-Os), with endbr64 and without;
# the other combinations are in the long form.
cc=gcc
pie=
check -O0 -fpatchable-function-entry=9 -fcf-protection=none
pie="-no-pie -fno-pie"
check -O3 -fpatchable-function-entry=16
[ -z "${TW_TEST_LONG:-}" ] || check -O1 -fpatchable-function-entry=9
pie=
check -Os -fpatchable-function-entry=16,11 -fcf-protection=full
check -Os -fpatchable-function-entry=5 -fcf-protection=full
if [ -n "${TW_TEST_LONG:-}" ]; then
	check -O3 -fpatchable-function-entry=16
	check -Os -fpatchable-function-entry=9 -fcf-protection=full
	check -O2 -fpatchable-function-entry=5 -fcf-protection=none
	check -O2 -fpatchable-function-entry=9 -fcf-protection=full
	check -O2 -fpatchable-function-entry=16,11
fi
if command -v clang >/dev/null; then
	cc=clang
	check -Os -fpatchable-function-entry=9 -fcf-protection=full
	if [ -n "${TW_TEST_LONG:-}" ]; then
		check -O2 -fpatchable-function-entry=9 -fcf-protection=full
		check -O0 -fpatchable-function-entry=16,11
		check -Os -fpatchable-function-entry=5 -fcf-protection=full
	fi
fi

# One event per call, whichever way was requested.
cc=gcc
check -O2 -fpatchable-function-entry=9
mv app whole
strip --strip-all -o app whole
compare stripped
mv whole app
record --global --callers main -t 'liblib:_'
called liblib:lib_add 1000 "through slots: only calls from the program"
expect 0 "$tw" print --limit 1 app.tw
shows ' from app'
record --local -t 'liblib:_'
called liblib:lib_add 2000 "through sleds"
expect 0 "$tw" print --limit 1 app.tw
! grep -q ' from ' out || fail "a sled knows no caller"
record
called app:local 1000 "without patterns: the program's own"
called liblib:lib_add 1000 "and its calls of libraries"
expect 2 "$tw" record --local --global -- ./app
says "exclude each other"

# Refusals are reported.
gcc -w -fPIC -shared -O2 -fpatchable-function-entry=3 -o liblib.so lib.c || fail "gcc"
expect 0 "$tw" functions --refused -t 'liblib:_' ./app
shows 'sled   liblib:lib_add.*too short'
record -t 'liblib:lib_add'
called liblib:lib_add 2000 "its slots are traced instead"
expect 0 "$tw" info app.tw
shows 'lib_add of liblib is not traced: .*too short'

# A library that is opened later, also while threads run.
cat >plugin.c <<'C'
__attribute__((noinline)) int plugin_inner(int a) { __asm__ volatile("" : "+r"(a)); return a + 1; }
int plugin_run(int n) { int s = 0; for (int i = 0; i < n; i++) s += plugin_inner(i); return s; }
C
cat >app.c <<'C'
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static volatile int must_end;
static void *spin(void *arg) { while (!must_end) ; return arg; }
static void *idle(void *arg) { while (!must_end) usleep(1000); return arg; }
int main(int argc, char **argv)
{
	int count = getenv("THREADS") ? atoi(getenv("THREADS")) : 2;
	pthread_t threads[128];
	pthread_create(&threads[0], NULL, spin, NULL);
	for (int i = 1; i < count; i++)
		pthread_create(&threads[i], NULL, idle, NULL);
	for (int i = 0; i < 3; i++) {
		void *handle = dlopen("./plugin.so", RTLD_NOW);
		int (*run)(int) = (int (*)(int))dlsym(handle, "plugin_run");
		printf("%d\n", run(100));
		dlclose(handle);
	}
	must_end = 1;
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	return 3;
}
C
gcc -w -O2 -o app app.c -pthread || fail "gcc"
for flags in "-O2" "-Os -fcf-protection=full"; do
	gcc $flags -fPIC -shared -fpatchable-function-entry=9 -o plugin.so plugin.c || fail "gcc"
	./app >expected
	expect 0 "$tw" functions -t 'plugin:_' ./plugin.so
	shows '2 sleds .*several instructions.*tracewheel compact'
	record --local -t 'plugin:_'
	cmp -s expected got || fail "another answer with a plugin"
	called plugin:plugin_inner 300 "sleds of several instructions, beside other threads"
	called plugin:plugin_run 3
	if [ "$flags" = -O2 ] || [ -n "${TW_TEST_LONG:-}" ]; then
		THREADS=70 record --local -t 'plugin:_'
		cmp -s expected got || fail "another answer with a plugin"
		expect 0 "$tw" info app.tw
		! grep -q 'not traced' out || fail "beside 71 threads: $(grep 'not traced' out)"
		called plugin:plugin_inner 300 "beside 71 threads"
	fi
	"$tw" compact --quiet plugin.so || fail "compact"
	expect 0 "$tw" functions -t 'plugin:_' ./plugin.so
	! grep -q 'several instructions' out || fail "a compact library: $(cat out)"
	record --local -t 'plugin:_'
	cmp -s expected got || fail "another answer with a plugin"
	called plugin:plugin_inner 300
	called plugin:plugin_run 3
done

# A debugger's breakpoint in a sled, at its beginning or within: that function is not traced and named, all others are
# traced.
cat >trap.c <<'C'
__attribute__((noinline)) int held(int n) { __asm__ volatile("" : "+r"(n)); return n + 1; }
__attribute__((noinline)) int traced(int n) { __asm__ volatile("" : "+r"(n)); return n + 2; }
int main(int argc, char **argv) { return argc > 1 ? held(argc) : traced(argc) - 3; }
C
gcc -O2 -fpatchable-function-entry=9 -o trap trap.c || fail gcc
nm trap >names || fail nm
python3 -I -S - <<'P' || fail "no sled to write to"
import os, re, struct
at = int(re.search(r'^(\w+) T held$', open('names').read(), re.M)[1], 16)
data = bytearray(open('trap', 'rb').read())
start, size, count = struct.unpack_from('<Q', data, 32)[0], *struct.unpack_from('<HH', data, 54)
for i in range(count):
    kind, _, offset, address, _, bytes = struct.unpack_from('<IIQQQQ', data, start + i * size)
    if kind == 1 and address <= at < address + bytes:
        at += offset - address
        break
at += 4 if data[at:at + 4] == b'\xf3\x0f\x1e\xfa' else 0
assert data[at:at + 9] == b'\x90' * 9
for distance in 0, 4:
    os.mkdir(str(distance), 0o755)
    with open('%d/trapped' % distance, 'wb') as file:
        file.write(data[:at + distance] + b'\xcc' + data[at + distance + 1:])
    os.chmod(file.name, 0o755)
P
for distance in 0 4; do
	expect 0 "$tw" record -q --force -t 'trapped:_' -o trap.tw -- ./$distance/trapped
	expect 0 "$tw" info trap.tw
	shows 'note *held of trapped is not traced: its entry sled does not hold NOPs: .*breakpoint'
	is "$(grep -c 'is not traced' out)" 1 "notes, with the breakpoint at $distance"
	expect 0 "$tw" report trap.tw
	shows '^Note: .*held of trapped is not traced: .*breakpoint'
	expect 0 "$tw" print trap.tw
	shows 'call trapped:traced$'
done
