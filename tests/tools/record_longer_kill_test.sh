#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    With `record --longer`, recorded and counted calls are together those that the program made, when the program, or first the
#         recorder and then the program, is killed at any moment, and the capture is recovered.
# Method  Threads write down calls before they make them and when these have returned: the sum lies between the two numbers. One call in 64
#         is long, with the one around it.
build=$1
. "$(dirname "$0")/lib.sh"

cat >work.c <<'C'
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#define FN __attribute__((noinline)) void
enum { THREADS = 3 };
/* Of each thread: calls that it was about to make, and that it has made. */
static volatile unsigned long *own;
FN leaf(unsigned i)
{
	struct timespec t = {0, 300000};
	if (i % 64 == 0)
		nanosleep(&t, 0);
	__asm__ volatile("nop;nop;nop;nop;nop;nop;nop;nop");
}
FN both(unsigned i)
{
	leaf(i);
	__asm__ volatile("nop;nop;nop;nop;nop;nop;nop;nop");
}
static void *run(void *arg)
{
	volatile unsigned long *mine = own + 2 * (long)arg;
	for (unsigned i = 0;; i++) {
		mine[0] += 2;
		both(i);
		mine[1] += 2;
		own[2 * THREADS] = (unsigned long)getpid();
	}
	return arg;
}
int main(int c, char **v)
{
	int fd = open(v[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
	pthread_t t;
	if (ftruncate(fd, 64))
		return 1;
	own = mmap(0, 64, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&t, 0, run, (void *)i);
	pause();
}
C
gcc -O2 -fno-inline -fno-ipa-icf -fno-ipa-ra -o work work.c -lpthread || fail "no compiler"

own() {
	python3 -c "import struct; print(struct.unpack_from('7Q', open('numbers', 'rb').read())[$1])"
}
record() {
	rm -f numbers
	"$tw" record -q --longer 200us -t 'work:{leaf,both}' --force -o k.tw -- ./work numbers >out 2>err &
	recorder=$!
	until [ "$(own 6 2>/dev/null || echo 0)" != 0 ]; do
		kill -0 $recorder 2>/dev/null || fail "no recording"
		sleep 0.02
	done
	sleep 0.0$((RANDOM % 10))
}
judge() {
	expect 0 "$tw" report --json -n 0 k.tw
	python3 -c "
import json, struct
n, d = struct.unpack_from('7Q', open('numbers', 'rb').read()), json.load(open('out'))
lost = sum(m['events'] for m in d['account']['missing'].values())
calls, counted = sum(f['calls'] for f in d['by_function']), d['counted_calls']
print('recorded', calls, 'counted', counted, 'lost', lost)
assert not lost and calls > 1 and sum(n[1:6:2]) <= calls + counted <= sum(n[0:6:2]), (n, calls, counted, lost)" >judged 2>&1 ||
		fail "$1: $(cat judged)"
	cat judged
}
for round in $(seq "$(rounds 2 30)"); do
	record
	kill -9 "$(own 6)"
	wait $recorder
	judge "the program was killed, round $round"
	record
	kill -9 $recorder
	sleep 0.0$((RANDOM % 10))
	kill -9 "$(own 6)"
	wait $recorder 2>/dev/null
	expect 0 "$tw" recover k.tw
	judge "the recorder was killed, round $round"
done
exit 0
