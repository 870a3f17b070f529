#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Functions of libc and libgcc_s are recorded at their entries: each call once, from any object, by pointer and from
#         inside libc; none of Tracewheel's own calls; and programs run as untraced, whatever libc is doing when a call is
#         recorded: starting and ending threads, forking, unwinding, switching stacks.
# Method  Numbers of calls by construction, and callgrind's. A thread whose first recorded call is one that fork() makes between
#         its handlers, where locks of ours are held. Everything planted, with returns, in programs that use what is special.
build=$1
. "$(dirname "$0")/lib.sh"
plant_with_traps

# lost NAME.tw [CAUSE]: how many were lost.
lost() {
	expect 0 "$tw" info --json "$1"
	json "d['lost'].get('${2:-}', 0) if '${2:-}' else sum(d['lost'].values())"
}

# ---- counts by construction ----
cat >counts.c <<'C'
#include "mallocs.h"
#include <sys/mman.h>
static void map(void)
{
	mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
int main(void)
{
	for (int i = 0; i < 7; i++)
		map();
	malloc_2400_times(map);
	return 0;
}
C
gcc -O1 -fno-builtin -s -I "$common" -o counts counts.c -lpthread || fail "the program does not compile"
expect 0 "$tw" record --local --on-full block -t libc:malloc -t libc:strdup -o a.tw -- ./counts
is "$(calls a.tw malloc)" $((1000 + 500 + 300 + 3 * 200))
is "$(calls a.tw strdup)" 300
is "$(lost a.tw)" 0
expect 0 "$tw" record --local --returns --on-full block -t libc:malloc -o b.tw -- ./counts
is "$(calls b.tw malloc)" 2400
expect 0 "$tw" report --json -n 0 b.tw
is "$(json "d['events'] - 2 * d['calls']")" 0
expect 0 "$tw" record --local --on-full block --args=raw --stack 1 --when '$1 == 20' -t libc:malloc -o c.tw -- ./counts
is "$(calls c.tw malloc)" 600

# ---- calls of Tracewheel's own are no events ----
# Each thread that joins maps memory and sets a key; rings grow. libc gives back the stacks of the three threads that end.
expect 0 "$tw" record --local --returns --ring 64K --on-full block -t libc:mmap -t libc:pthread_setspecific -t libc:madvise \
	-t libc:pthread_setcancelstate -t libc:__errno_location -t libc:malloc -o d.tw -- ./counts
is "$(calls d.tw pthread_setspecific) $(calls d.tw pthread_setcancelstate) $(calls d.tw __errno_location) $(calls d.tw madvise)" "0 0 0 3"
# libc maps three stacks, and memory for the threads' malloc.
expect 0 "$tw" record --local --on-full block -t libc:mmap --args=raw --when '$2 == 4096' -o e.tw -- ./counts
is "$(calls e.tw mmap)" 10
# Inside hits too, of functions that such a function calls in turn: the condition is computed by libgmp.
gcc -I "$common" -O1 -fno-builtin -s -o numbers counts.c -lpthread -Wl,--no-as-needed -lgmp || fail "the program does not compile"
expect 0 "$tw" record --local --on-full block --when '$1 rem 1000000000000000000000007 * 340282366920938463463374607431768211456 rem 987654321987654321987654321 > 5' \
	-t libc:malloc -t 'libgmp:_' -o f.tw -- ./numbers
is "$(calls f.tw malloc)" 2400
is "$(lost f.tw) $(json "d['events']")" "0 2400"

# ---- the first recorded call of a thread lies between the handlers of fork() ----
cat >fork.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static void *idle(void *arg) { pause(); return arg; }
int main(void)
{
	pthread_t thread;
	int ended = 0;
	pthread_create(&thread, NULL, idle, NULL);
	for (int i = 0; i < 5; i++) {
		int status = 0;
		pid_t child = fork();
		if (!child)
			_exit(7);
		waitpid(child, &status, 0);
		ended += WEXITSTATUS(status) == 7;
	}
	printf("%d\n", ended);
	return 0;
}
C
gcc -O1 -o fork fork.c -lpthread || fail "the program does not compile"
for options in "" "--returns --follow-fork"; do
	# shellcheck disable=SC2086 # words
	expect 0 "$tw" record --local $options --on-full block --force -t libc:_IO_list_lock -o g.tw -- ./fork
	is "$(cat out)" 5
	is "$(calls g.tw _IO_list_lock)" 5
	is "$(lost g.tw)" 0
done

# ---- programs that use what is special, with everything planted and watched ----
cat >special.cc <<'C'
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <spawn.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include "deep_throw.h"
extern char **environ;
static ucontext_t first, second;
static volatile int ticks, switches;
static sigjmp_buf jump;
static void *throws(void *)
{
	int count = 0;
	for (int i = 0; i < THROWS; i++)
		try {
			deep(8, &count);
		} catch (const std::exception &) {
			count++;
		}
	return (void *)(long)count;
}
/* Nothing that takes a lock: fork() and malloc() may be interrupted, which hold some. */
static void on_tick(int) { ticks = ticks + (getppid() > 0 && strnlen("tick", 50) == 4); }
static void on_fault(int) { siglongjmp(jump, 1); }
static void coroutine() { for (;;) { switches = switches + 1; free(malloc(10)); swapcontext(&second, &first); } }
static void *is_cancelled(void *) { for (;;) sleep(100); return nullptr; }
static void *exits(void *) { pthread_exit((void *)5); }
static void leave(void *arg) { ++*(long *)arg; }
static void *cleans(void *arg) { pthread_cleanup_push(leave, arg); pause(); pthread_cleanup_pop(0); return nullptr; }
int main()
{
	static char stack[65536];
	pthread_t threads[4];
	long sum = 0, cleaned = 0;
	int status;
	void *one;
	signal(SIGALRM, on_tick);
	itimerval every = {{0, 2000}, {0, 2000}};
	setitimer(ITIMER_REAL, &every, nullptr);
	for (auto &thread : threads)
		pthread_create(&thread, nullptr, throws, nullptr);
	for (auto &thread : threads) {
		pthread_join(thread, &one);
		sum += (long)one;
	}
	printf("thrown %ld\n", sum);
	getcontext(&second);
	second.uc_stack.ss_sp = stack;
	second.uc_stack.ss_size = sizeof stack;
	makecontext(&second, coroutine, 0);
	for (int i = 0; i < 50; i++)
		swapcontext(&first, &second);
	printf("switched %d\n", switches);
	signal(SIGSEGV, on_fault);
	int faults = 0;
	for (volatile int i = 0; i < 20; i = i + 1)
		if (!sigsetjmp(jump, 1))
			strlen((const char *)(long)i), faults += 1000;
		else
			faults++;
	printf("faults %d\n", faults);
	pthread_create(&threads[0], nullptr, is_cancelled, nullptr);
	pthread_create(&threads[1], nullptr, exits, nullptr);
	pthread_create(&threads[2], nullptr, cleans, &cleaned);
	usleep(20000);
	pthread_cancel(threads[0]);
	pthread_cancel(threads[2]);
	pthread_join(threads[0], &one);
	printf("cancelled %d\n", one == PTHREAD_CANCELED);
	pthread_join(threads[1], &one);
	pthread_join(threads[2], nullptr);
	printf("exited %ld, cleaned %ld\n", (long)one, cleaned);
	for (int i = 0; i < 3; i++) {
		char *words[] = {(char *)"sh", (char *)"-c", (char *)"exit 4", nullptr};
		pid_t child = fork();
		if (!child) {
			free(malloc(3000));
			_exit(3);
		}
		while (waitpid(child, &status, 0) < 0)
			;
		printf("%d ", WEXITSTATUS(status));
		if (!(child = vfork()))
			_exit(6);
		while (waitpid(child, &status, 0) < 0)
			;
		printf("%d ", WEXITSTATUS(status));
		if (posix_spawnp(&child, "sh", nullptr, nullptr, words, environ) == 0)
			while (waitpid(child, &status, 0) < 0)
				;
		printf("%d %d\n", WEXITSTATUS(status), WEXITSTATUS(system("exit 9")));
	}
	fflush(stdout);
	setitimer(ITIMER_REAL, nullptr, nullptr);
	while (ticks < 3)
		raise(SIGALRM);
	return 11;
}
C
g++ -O2 -w -fno-builtin -DTHROWS="$(rounds 20 100)" -I "$common" -o special special.cc -lpthread || fail "the program does not compile"
./special >expected
is $? 11
runs=("" "--exceptions --return-to --on-full block --ring 64K --follow-fork")
[ -z "${TW_TEST_LONG:-}" ] || runs+=("--returns" "--exceptions --return-to" "--returns --on-full block --ring 64K --follow-fork")
for options in "${runs[@]}"; do
	# shellcheck disable=SC2086 # words
	expect 11 "$tw" record --local $options --force -t '_:_' -o h.tw -- ./special
	cmp -s expected out || fail "$options: $(diff expected out)"
done

# ---- callgrind's count of each function of libc that a program calls ----
command -v valgrind >/dev/null || exit 0
cat >one.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
__attribute__((noinline)) static int work(void)
{
	int numbers[200], sum = 0;
	char *line = NULL, text[200];
	size_t room = 0;
	FILE *file = tmpfile();
	for (int i = 0; i < 200; i++) {
		numbers[i] = i * 7919 % 211;
		fprintf(file, "%d %s %g\n", numbers[i], "text", i / 3.0);
	}
	rewind(file);
	while (getline(&line, &room, file) > 0) {
		char *copy = strdup(line), *word = strtok(copy, " ");
		sum += (int)strtol(word, NULL, 10);
		snprintf(text, sizeof text, "%s-%d", word, sum);
		free(copy);
	}
	fclose(file);
	free(line);
	qsort(numbers, 200, sizeof *numbers, compare);
	for (int i = 0; i < 30; i++) {
		time_t when = i * 86400;
		struct tm parts;
		free(realloc(calloc(3, 5), 300));
		strftime(text, sizeof text, "%Y", gmtime_r(&when, &parts));
		getenv("NOTHING");
		getpid();
	}
	return sum + numbers[3];
}
int main(void) { return work() == 0; }
C
gcc -O1 -fno-builtin -o one one.c || fail "the program does not compile"
library=$(ldd ./one | sed -n 's/.*libc\.so\.6 => \(.*\) (.*/\1/p')
expect 0 valgrind -q --tool=callgrind --callgrind-out-file=executed --dump-instr=yes --skip-plt=no --toggle-collect=work ./one
expect 0 "$tw" record --local --on-full block -t 'libc:_' -o i.tw -- ./one
expect 0 "$tw" report --json -n 0 i.tw
cp out report.json
nm -D --defined-only "$library" >names
cat >compare.py <<'P'
import json
from callgrind import read_executions
executed = next(counts for path, counts in read_executions("executed").items() if "libc.so.6" in path)
values = {w[2].split("@")[0]: int(w[0], 16) for w in map(str.split, open("names")) if w[1] in "TW"}
counts = {}
for row in json.load(open("report.json"))["by_function"]:
    if row["function"] in values:
        counts[values[row["function"]]] = row["calls"]
# What libc calls before and after, callgrind was told not to count. The agent's first malloc has set up the heap.
heap = {values[name] for name in ("brk", "sbrk", "__default_morecore", "getrandom") if name in values}
different = {hex(v): (counts.get(v), executed[v]) for v in set(values.values()) - heap
             if executed.get(v) and counts.get(v) != executed[v]}
assert not different, different
assert len([v for v in counts if executed.get(v)]) > 40, counts
P
PYTHONPATH=$common expect 0 python3 -B compare.py
