#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    `record --stack N` finds the callers in code that keeps no frame pointers, whatever its frames look like: dynamic allocas, aligned
#         stacks, tail calls, calls that never return at the end of a function, lazy binding, signal handlers, C++ exceptions while they
#         unwind, threads, libraries that are opened, closed and opened elsewhere; also below watched returns, and through slots. Objects
#         without call frame information end a stack, and it says so.
# Method  a program without frame pointers, whose function writes what libgcc's backtrace() finds; the same addresses must be in the record
#         of each call. The control: with -fno-asynchronous-unwind-tables the stacks end.
build=$1
. "$(dirname "$0")/lib.sh"
export XDG_CACHE_HOME=$work/cache
mkdir cache
# A loaded machine makes tables late.
export TRACEWHEEL_PLAN_WAIT_MS=60000

cat >shapes.cc <<'C'
#include <alloca.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#define KEEP(x) __asm__ volatile("" : "+r"(x)::"memory")
#define FUNCTION extern "C" __attribute__((noipa))
static FILE *notes;
/* The callers by libgcc, from the caller of leaf on. */
FUNCTION long leaf(long n);
FUNCTION void note(void)
{
	void *found[160];
	int count = backtrace(found, 160);
	bool is_behind = false;
	for (int i = 0; i < count; i++) {
		Dl_info info;
		/* The stub of a watched return is a frame of the agent's. */
		if (dladdr(found[i], &info) && strstr(info.dli_fname, "libtracewheel"))
			continue;
		if (is_behind)
			fprintf(notes, "%p ", found[i]);
		is_behind |= (char *)found[i] - (char *)leaf < 64 && (char *)found[i] > (char *)leaf;
	}
	fprintf(notes, "\n");
	fflush(notes);
}
FUNCTION long leaf(long n) { KEEP(n); note(); return n + 1; }
FUNCTION long plain(long n) { n = leaf(n); KEEP(n); return n; }
FUNCTION long dynamic(long n) { char *bytes = (char *)alloca((size_t)n * 16 + 8); KEEP(bytes); memset(bytes, 1, n); n = plain(n + bytes[0]); KEEP(bytes); return n; }
FUNCTION long aligned(long n) { __attribute__((aligned(64))) char bytes[64]; memset(bytes, (int)n, 64); char *at = bytes; KEEP(at); n = dynamic(n + *at); KEEP(at); return n; }
FUNCTION long both(long n) { __attribute__((aligned(128))) char bytes[128]; char *more = (char *)alloca((size_t)n * 8), *at = bytes; KEEP(at); KEEP(more); n = aligned(n); KEEP(at); return n; }
FUNCTION long many(long a, long b, long c, long d, long e, long f, long g, long h) { long n = both(a + g) + h; KEEP(n); return n; }
FUNCTION long tail(long n) { KEEP(n); return plain(n); }
FUNCTION __attribute__((noreturn)) void ends(long n) { leaf(n); throw n; }
FUNCTION void never(long n) { if (n > 2) ends(n); KEEP(n); }
FUNCTION void after_never(long n) { KEEP(n); }
struct guard { long n; ~guard() { n = plain(n); KEEP(n); } };
FUNCTION long throws(long n) { guard own{n}; never(n); return own.n; }
FUNCTION long catches(long n) { try { n = throws(n); } catch (long) { n = many(1, 2, 3, 4, 5, 6, 7, 8); } KEEP(n); return n; }
static void handler(int) { long n = plain(5); KEEP(n); }
FUNCTION long interrupted(long n) { raise(SIGUSR1); syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1); KEEP(n); return n; }
static int order(const void *a, const void *b) { long n = plain(*(const int *)a); KEEP(n); return *(const int *)a - *(const int *)b; }
static void *thread(void *) { long n = both(2); KEEP(n); return NULL; }
static void in_library(int times)
{
	for (int i = 0; i < times; i++) {
		void *library = dlopen("./libpart.so", RTLD_LAZY);
		long (*part)(long (*)(long), long) = (long (*)(long (*)(long), long))dlsym(library, "part");
		long n = part(plain, i);
		KEEP(n);
		dlclose(library);
	}
}
FUNCTION long deep(long n) { n = n ? deep(n - 1) : plain(n); KEEP(n); return n; }
int main(int argc, char **argv)
{
	pthread_t id;
	int values[] = {3, 1, 2};
	void *first[4];
	backtrace(first, 4);
	notes = fopen(argv[1], "w");
	signal(SIGUSR1, handler);
	many(1, 2, 3, 4, 5, 6, 7, 8);
	tail(1);
	catches(3);
	interrupted(1);
	qsort(values, 3, sizeof *values, order);
	pthread_create(&id, NULL, thread, NULL), pthread_join(id, NULL);
	in_library(3);
	deep(100);
	return 0;
}
C
cat >part.c <<'C'
#include <alloca.h>
long part(long (*call)(long), long n) { char *bytes = alloca(n * 8 + 8); __asm__ volatile("" : "+r"(bytes)::"memory"); n = call(n); __asm__ volatile("" : "+r"(n)::"memory"); return n; }
C
g++ -w -O2 -fomit-frame-pointer -mno-omit-leaf-frame-pointer -Wl,--build-id -Wl,-z,lazy -no-pie -pthread -o shapes shapes.cc || fail g++
gcc -O2 -fomit-frame-pointer -shared -fPIC -Wl,--build-id -o libpart.so part.c || fail gcc

# compare LIMIT [watched]: each recorded stack of leaf has what backtrace() has found, to so many callers.
compare() {
	"$tw" print --format json s.tw >lines || fail "print --format json"
	python3 - "$@" <<'P' || fail "$how: callers differ"
import json, sys
limit = int(sys.argv[1])
theirs = [[int(w, 16) for w in line.split()][:limit] for line in open("notes")]
events = [e for e in map(json.loads, open("lines")) if e["kind"] == "stack" and e["function"] == "leaf"]
ours = [[w["address"] for w in e["stack"]] for e in events]
assert len(theirs) == 15 and sum(len(t) for t in theirs) > 60, theirs
for n, (a, b) in enumerate(zip(ours, theirs)):
    # Of a watched call libgcc is shown the last byte of the call.
    same = len(a) == len(b) and all(x - y in ((0, 1) if sys.argv[2:] else (0,)) for x, y in zip(a, b))
    assert same, f"call {n}:\n{[hex(w) for w in a]}\n{[hex(w) for w in b]}\n{events[n]}"
assert len(ours) == len(theirs), (len(ours), len(theirs))
assert not any(e.get("stack_is_cut") for e in events), [e for e in events if e.get("stack_is_cut")][:1]
P
}

record() {
	rm -f notes
	expect 0 "$tw" record -q --force --on-full block "$@" -o s.tw -- ./shapes notes
}

for how in '' --returns --follow-fork; do
	record --local --stack 64 $how -t 'shapes:leaf'
	# shellcheck disable=SC2046
	compare 64 $([ "$how" != --returns ] || echo watched)
done
how='beside watched callers'
record --local --stack 64 --returns -t 'shapes:{leaf,plain,dynamic,aligned,both,many,tail,deep}'
compare 64 watched
[ "$("$tw" print s.tw | grep -c ' return_from ')" -gt 100 ] || fail "$how: few returns"
how='to a depth'
record --local --stack 5 -t shapes:leaf
compare 5

how='through slots'
record --global --stack 20 -t 'libc:qsort'
expect 0 "$tw" print s.tw
shows 'stack libc:qsort.*: shapes:main.* <- libc:__libc_start_call_main.* <- libc:__libc_start_main.* <- shapes:_start$'

how='without call frame information'
cat >bare.c <<'C'
__attribute__((noipa)) long leaf(long n) { __asm__ volatile("" : "+r"(n)); return n * 12345 + 7; }
long bare(long);
int main(void) { return (int)bare(0); }
C
echo '__attribute__((noipa)) long bare(long n) { extern long leaf(long); char b[40]; __asm__ volatile("" ::"r"(b) : "memory"); n = leaf(n); __asm__ volatile("" : "+r"(n)); return n; }' >bare2.c
gcc -O2 -fomit-frame-pointer -fno-asynchronous-unwind-tables -c bare2.c && gcc -O2 -Wl,--build-id -o bare bare.c bare2.o || fail gcc
expect 7 "$tw" record -q --force --local --stack 8 -t bare:leaf -o b.tw -- ./bare
expect 0 "$tw" print b.tw
shows 'stack bare:leaf: bare:bare <- ?$'
