#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A program that keeps opening and closing libraries is traced at constant cost and memory: a library that is
#         loaded again keeps its identity, and another one at its address is another.
# Method  Rounds of dlopen, a call through sleds and slots, dlclose; 2,000 of one library, 600 of two in turn, and of a
#         file that is replaced half-way. The program prints its memory after 200 rounds and at the end; the capture has
#         the names.
build=$1
. "$(dirname "$0")/lib.sh"

cat >app.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "memory.h"
int main(int argc, char **argv)
{
	int rounds = atoi(argv[1]);
	long before = 0, sum = 0;
	for (int i = 0; i < rounds; i++) {
		void *handle;
		if (argc > 3 && i == rounds / 2 && argv[3][0] == '+')
			rename(argv[3] + 1, argv[2]);
		handle = dlopen(argc > 3 && argv[3][0] != '+' && i % 2 ? argv[3] : argv[2], RTLD_NOW);
		sum += ((long (*)(const char *))dlsym(handle, "enter"))("word");
		dlclose(handle);
		if (i == rounds / 10)
			before = memory();
	}
	fprintf(stderr, "%ld\n", memory() - before);
	printf("%ld\n", sum);
	return 0;
}
C
for name in a b; do
	cat >$name.c <<C
#include <string.h>
__attribute__((noinline)) long inner_$name(const char *text) { return (long)strlen(text); }
$([ $name = b ] && echo 'long more(int n) { __asm__ volatile("" : "+r"(n)); return n; }')
long enter(const char *text) { return inner_$name(text) + 1$([ $name = b ] && echo ' + more(1)'); }
C
	gcc -O1 -fno-builtin -fPIC -shared -fpatchable-function-entry=9 -Wl,--build-id -o $name.so $name.c || fail gcc
done
gcc -w -O1 -I "$common" -o app app.c -ldl || fail gcc

# record ROUNDS FILE...: nothing is lost
record() {
	./app "$@" >expected 2>/dev/null
	cp keep.so a.so 2>/dev/null
	expect 0 "$tw" record -q --force --on-full block -t '{a,b}:_' -t libc:strlen -o r.tw -- ./app "$@"
	cmp -s out expected || fail "another answer: $*"
	grown=$(grep -E '^-?[0-9]+$' err)
	[ "$grown" -lt 300 ] || fail "$*: the program has grown by $grown kB"
	expect 0 "$tw" report --json --top 0 r.tw
}
# calls FUNCTION: the number of its calls
calls() {
	json "sum(f['calls'] for f in d['by_function'] if f['name'].startswith('$1/'))"
}

record 2000 ./a.so
is "$(calls a:enter)" 2000
is "$(calls a:inner_a)" 2000
is "$(calls libc:strlen)" 2000
expect 0 "$tw" info r.tw
shows '^functions  *3 in [23] modules'

record 600 ./a.so ./b.so
is "$(calls a:enter) $(calls b:enter) $(calls a:inner_a) $(calls b:inner_b) $(calls b:more)" "300 300 300 300 300"
is "$(calls libc:strlen)" 600
expect 0 "$tw" info r.tw
shows '^functions  *6 in [34] modules'

# Another library under the name of the first.
cp a.so keep.so
cp b.so other.so
cp b.so other2.so
./app 200 ./a.so +other.so >/dev/null 2>&1
cp keep.so a.so
expect 0 "$tw" record -q --force --on-full block -t a:_ -o r.tw -- ./app 200 ./a.so +other2.so
expect 0 "$tw" report --json --top 0 r.tw
is "$(calls a:enter) $(calls a:inner_a) $(calls a:inner_b) $(calls a:more)" "200 100 100 100"
