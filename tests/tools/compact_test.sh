#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    `tracewheel compact` changes only the sleds' NOPs: the program answers as before, every call of it can still
#         be recorded, and a file that cannot be changed is left as it was.
build=$1
. "$(dirname "$0")/lib.sh"

cat >app.c <<'C'
#include <stdio.h>
/* Short, and followed by NOPs of its own to which a jump leads. */
__attribute__((noinline)) int looping(int n)
{
	int sum = 0;
	__asm__ volatile("jmp 2f\n1: addl $1, %0\n2: .fill 6, 1, 0x90\nsubl $1, %1\njns 1b" : "+r"(sum), "+r"(n));
	return sum;
}
__attribute__((noinline)) static int add(int a, int b) { __asm__ volatile("" : "+r"(a)); return a + b; }
int main(void)
{
	int sum = 0;
	for (int i = 0; i < 100; i++)
		sum = add(sum, looping(i));
	printf("%d\n", sum);
	return 3;
}
C
# loose: functions whose sled still begins with two NOPs of one byte
loose() {
	objdump -d --no-show-raw-insn "$1" | awk '/^[0-9a-f]+ <(looping|add|main)>:/ { n = 0; in_it = 1; next }
		in_it && /endbr64/ { next }
		in_it { if ($2 == "nop" && NF == 2) { if (++n == 2) { loose++; in_it = 0 } } else in_it = 0 } END { print loose + 0 }'
}

for flags in "-O2" "-O2 -fcf-protection=full" "-Os -fno-pie -no-pie" "-O0"; do
	gcc $flags -g -fpatchable-function-entry=9 -o app app.c
	[ "$(loose app)" = 3 ] || fail "$flags: the compiler did not emit the sleds that this test needs: $(loose app)"
	cp app before
	ln -sf app link
	expect 0 "$tw" compact link
	grep -q "app\|link" err || fail "$flags: compact says nothing: $(cat err)"
	[ "$(loose app)" = 0 ] || fail "$flags: $(loose app) sleds are as they were"
	[ -L link ] && [ -x app ] || fail "$flags: the link or the mode is another"
	./before >out1; ./app >out2
	cmp -s out1 out2 || fail "$flags: another answer"
	[ "$(cmp -l before app | wc -l)" -le 27 ] || fail "$flags: more than three sleds of nine bytes was changed"
	expect 0 "$tw" compact --quiet app
	[ -s err ] && fail "--quiet says: $(cat err)"
	expect 3 "$tw" record --force --local --on-full block -o app.tw -- ./app
	expect 0 "$tw" report --json --top 0 app.tw
	for count in looping:100 add:100 main:1; do
		found=$(json "sum(f['calls'] for f in d['by_function'] if f['name'].startswith('app:${count%:*}/'))")
		[ "$found" = "${count#*:}" ] || fail "$flags: ${count%:*} was called $found times, not ${count#*:}"
	done
done

gcc -O2 -o plain app.c
expect 1 "$tw" compact plain
grep -q "has no entry sleds" err || fail "a program without sleds: $(cat err)"
echo "no program" >text
expect 1 "$tw" compact text missing
grep -q "'text' is not a program" err || fail "a text: $(cat err)"
grep -q "no file 'missing'" err || fail "a missing file: $(cat err)"
[ "$(cat text)" = "no program" ] || fail "the text was changed"
expect 2 "$tw" compact
if ls | grep -q '^app\.......$'; then
	fail "a temporary file is left: $(ls)"
fi
