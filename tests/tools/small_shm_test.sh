#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Where the rings' file system is smaller than the ring asked for, the advice is more space or TRACEWHEEL_SHM, and not the option
#         that was already given; elsewhere it is an option.
build=$1
. "$(dirname "$0")/lib.sh"

cat >many.c <<'C'
__attribute__((noinline)) int leaf(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 3 + (x >> 2);
}
int main(void)
{
	int sum = 0;
	for (int i = 0; i < 3000000; i++)
		sum += leaf(i);
	return sum == 7;
}
C
gcc -O1 -o many many.c || fail "gcc"
mkdir small
code=0
# shellcheck disable=SC2016 # expanded inside
privately bash -c '
	mount -t tmpfs -o size=1m none small || exit 99
	TRACEWHEEL_SHM=$PWD/small "$0" record --on-full drop --ring 64M -t "many:leaf" -o a.tw -- ./many >out 2>err' "$tw" || code=$?
if [ "$code" = 99 ]; then
	echo "no file systems may be mounted here: not tested"
	exit 77
fi
is "$code" 0 "exit code"
says 'LOST .*a ring of 64.*MiB does not fit into .*/small, which has 1.*MiB: enlarge it, or name another folder in TRACEWHEEL_SHM'
! grep -q 'larger --ring' err || fail "advice that was followed already"
grep -q ' more than ' err && fail "advice that does not help"

# No space for anything: who has it, and what helps of what was not done.
# shellcheck disable=SC2016 # expanded inside
privately bash -c '
	mount -t tmpfs -o size=64k none small
	head -c 1M /dev/zero >small/full 2>/dev/null
	export TRACEWHEEL_SHM=$PWD/small
	"$0" record -t "many:leaf" -o b.tw -- ./many >out 2>err
	echo $? >code
	"$0" record --ring 64K -t "many:leaf" -o b.tw -- ./many >out 2>err64' "$tw"
is "$(cat code)" 125 "exit code"
says 'b.tw. cannot be made: no space in .*/small, which holds the rings: it has 0 B left, and a ring has 4.* MiB; another folder in TRACEWHEEL_SHM, or a smaller --ring, helps'
grep -q 'another folder in TRACEWHEEL_SHM helps' err64 || fail "said: $(cat err64)"
[ ! -e b.tw ] || fail "half a capture"

expect 0 "$tw" record --on-full drop --ring 64K -t many:leaf --force -o a.tw -- ./many
! grep -q TRACEWHEEL_SHM err || fail "advice that is of no use"
exit 0
