#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Whatever a program is made of, its entries are traced rightly or refused with a sentence, and it answers as by itself.
# Method  Programs built for one difficulty each, recorded with --local; their calls are known by construction. The bytes behind
#         planted jumps are int3.
build=$1
. "$(dirname "$0")/lib.sh"
export XDG_CACHE_HOME=$work/cache TRACEWHEEL_ENTRY_TRAPS=1
mkdir cache

# calls NAME.tw FUNCTION: how often it was called.
calls() {
	expect 0 "$tw" report --json -n 0 "$1"
	json "sum(f['calls'] for f in d['by_function'] if f['function'] == '$2')"
}

# ---- at a fixed low address: no space below, and jumps to code far below their function ----
cat >low.c <<'C'
#include <stdio.h>
int near(int), far(int);
__asm__(".globl near\n.type near, @function\nnear: .cfi_startproc\nlea 1(%rdi), %eax\nret\nnop\n.cfi_endproc\n.size near, .-near\n"
	".skip 0x400000, 0xcc\n"
	".globl far\n.type far, @function\nfar: .cfi_startproc\njmp near\n.cfi_endproc\n.size far, .-far\n");
int main(void)
{
	int sum = 0;
	for (int i = 0; i < 100; i++)
		sum += far(i);
	printf("%d\n", sum);
	return 0;
}
C
gcc -O2 -no-pie -o low low.c -Wl,--build-id -Wl,-Ttext-segment=0x10000 || fail "the program does not compile"
if [ "$(./low 2>/dev/null)" = 5050 ]; then
	expect 0 "$tw" record --local --returns --on-full block -t 'low:far' -o far.tw -- ./low
	is "$(cat out)" 5050
	is "$(calls far.tw far)" 100
	expect 0 "$tw" record --local --returns --on-full block -t 'low:_' -o low.tw -- ./low
	is "$(cat out)" 5050
	is "$(calls low.tw far)" 100
	is "$(calls low.tw near)" 100
fi
