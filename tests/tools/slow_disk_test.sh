#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    On a disk that takes 40 ms for each write of any size, a recording loses nothing with --on-full block, counts its
#         losses with drop exactly, and writes many blocks at once; the same with equally slow syncs.
# Method  A library preloaded into the command delays its writes and syncs, and reports how many blocks the largest write
#         had; a program that counts its calls. Sums and blocks, no times.
build=$1
. "$(dirname "$0")/lib.sh"

make_slow_disk
cat >busy.c <<'C'
#include <pthread.h>
#include <stdlib.h>
__attribute__((noipa)) long tick(long a) { return a + 1; }
static long count;
static void *run(void *arg) { long n = 0; for (long i = 0; i < count; i++) n = tick(n); return n == count ? arg : (void *)1; }
int main(int argc, char **argv)
{
	pthread_t other;
	void *failed = 0;
	count = atol(argv[1]);
	pthread_create(&other, 0, run, 0);
	failed = run(0);
	pthread_join(other, argc > 9 ? &failed : 0);
	return failed != 0;
}
C
gcc -w -O2 -fpatchable-function-entry=9 -o busy busy.c -lpthread || fail "gcc"
for how in "block 16M" "drop 16M" "block 1M --durable 50" "drop 1M --durable 50"; do
	set -- $how
	expect 0 env LARGEST=largest LD_PRELOAD="$PWD/slow.so" "$tw" record -q --force -o a.tw -t busy:tick --on-full "$1" \
		--rotate "$2" ${3:+"$3" "$4"} -- ./busy 600000
	largest=$(cat largest)
	expect 0 "$tw" info --json a.tw
	is "$(json 'd["events"] + sum(d["lost"].values()), d["complete"]')" "1200000 True" "$how"
	if [ "$1" = block ]; then
		is "$(json 'sum(d["lost"].values())')" 0 "$how"
		# Header and payload are two pieces, plus padding; gathered blocks are one each.
		[ "$largest" -ge 6 ] || fail "the largest of $how had $largest pieces"
	fi
	expect 0 "$tw" report --json a.tw
	is "$(json 'sum(f["calls"] for f in d["by_function"]) + sum(d["lost"].values())')" 1200000 "$how, read"
done
