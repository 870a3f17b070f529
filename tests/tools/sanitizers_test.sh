#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Programs of all sanitizers, of gcc and of clang, run under record as alone: with the same exit code and the same
# reports.
# Method  One program with threads, allocations and a library; with --returns of everything, and without. On request it
#         commits the fault that its sanitizer detects. Calls of a function that is not the sanitizer's are counted.
build=$1
. "$(dirname "$0")/lib.sh"

cat >lib.c <<'C'
__attribute__((noinline)) int count(int n) { __asm__ volatile("" : "+r"(n)); return n + 1; }
C
cat >app.c <<'C'
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int count(int n);
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int sum, fault;
static void *work(void *arg)
{
	for (int i = 0; i < 100; i++) {
		char *text = malloc(20);
		snprintf(text, 20, "%d", i);
		if (fault == 3)
			sum += count(i) & 0;
		pthread_mutex_lock(&mutex);
		sum += count(atoi(text)) - i;
		pthread_mutex_unlock(&mutex);
		free(text);
	}
	return arg;
}
int main(int argc, char **argv)
{
	pthread_t threads[3];
	volatile char *memory = malloc(8);
	volatile int large = INT_MAX;
	fault = argc > 1 ? atoi(argv[1]) : 0;
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	if (fault == 1)
		memory[8 + (argc > 5)] = 1;
	if (fault == 2)
		large += argc;
	if (fault == 4 && memory[3])
		puts("set");
	free((void *)memory);
	printf("sum %d, order %s\n", sum, getenv("ASAN_OPTIONS") ? getenv("ASAN_OPTIONS") : "-");
	return 3;
}
C
gcc -O1 -shared -fPIC -o liblib.so lib.c || fail gcc
first="--returns -t _:_"
second="--follow-fork --on-full block -t liblib:count"
compilers=$(for cc in gcc clang; do command -v $cc >/dev/null && echo $cc; done)
# With both compilers, the short form runs address with both, undefined and thread with gcc (their libraries are the same sources), memory
# with clang; each sanitizer meets each of the options, with its fault or without.
is_long=${TW_TEST_LONG:-}
[ "$compilers" != "${compilers#gcc?}" ] || is_long=1
# A program with races would sleep for a second at its end.
export TSAN_OPTIONS=atexit_sleep_ms=0
tried=0
for cc in $compilers; do
	fault=0
	for sanitizer in address undefined thread memory; do
		fault=$((fault + 1))
		[ "$cc$sanitizer" != gccmemory ] || continue
		case "$cc$sanitizer$tried${is_long:+ long}" in clangundefined4 | clangthread4) continue ;; esac
		"$cc" -w -O1 -g "-fsanitize=$sanitizer" -fno-sanitize-recover=undefined -o app app.c -L. -llib -pthread "-Wl,-rpath,$PWD" 2>/dev/null || continue
		tried=$((tried + 1))
		# A random address layout may be unsuitable for a sanitizer: such a run proves nothing.
		timeout 60 ./app >expected 2>/dev/null || [ $? = 3 ] || continue
		timeout 60 ./app $fault >/dev/null 2>alone
		code=$?
		found=$(grep -c 'ERROR: \|runtime error: \|WARNING: ' alone)
		for options in "$first" "$second"; do
			right=1 wrong=1
			if [ -z "$is_long" ]; then
				case "$cc$sanitizer $options" in
				"gccaddress $first" | "clangaddress $second") continue ;;
				"gccaddress $second" | "clangaddress $first") ;;
				"gccthread $second" | "gccundefined $first") wrong= ;;
				"gccundefined $second" | "clangmemory $first") right= ;;
				"clangmemory $second") wrong= ;;
				esac
			fi
			if [ -n "$right" ]; then
				# shellcheck disable=SC2086 # several words
				expect 3 timeout 120 "$tw" record -q --force $options -o s.tw -- ./app
				[ "$options" = "$second" ] || cmp -s out expected || fail "$cc $sanitizer '$options': $(diff out expected)"
				grep -q "sum 300" out || fail "$cc $sanitizer: $(cat out)"
				[ "$options" = "$first" ] || "$tw" report --json --top 0 s.tw >"$cc-$sanitizer.json" || fail "report"
			fi
			[ -n "$wrong" ] || continue
			# shellcheck disable=SC2086 # as above
			expect $code timeout 120 "$tw" record -q --force $options -o f.tw -- ./app $fault
			[ $fault = 3 ] || is "$(grep -c 'ERROR: \|runtime error: \|WARNING: ' err)" "$found" "$cc $sanitizer: what it finds"
		done
		[ "$cc$sanitizer" = gccaddress ] || continue
		# The user's own options stay.
		ASAN_OPTIONS=exitcode=9 expect 9 "$tw" record -q --force -t liblib:_ -o s.tw -- ./app 1
		ASAN_OPTIONS=exitcode=9 expect 3 "$tw" record -q --force -t liblib:_ -o s.tw -- ./app
		shows 'order exitcode=9$'
		"$tw" report --json --top 0 s.tw >options.json || fail "report"
	done
done
[ $tried -gt 0 ] || { echo "no compiler here has sanitizers: not tested" && exit 77; }
python3 -I -S - <<'EOT' || fail "calls of count"
import glob, json
for name in glob.glob("*.json"):
    calls = sum(f["calls"] for f in json.load(open(name))["by_function"] if f["name"].startswith("liblib:count/"))
    assert calls == 300, (name, calls)
EOT
