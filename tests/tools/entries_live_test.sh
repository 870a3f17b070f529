#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Functions that are first wanted while a program has several threads, which run them, are traced by --local without
#         a wrong answer. Where the threads cannot be stopped, the capture says why, with the number of functions; the
#         program runs on, also if the recorder is killed or stopped at any moment.
# Method  A library whose constructor starts threads that call its functions and check the answers, before the agent can
#         begin. 600 threads; another tracer; a recorder that gets SIGKILL or SIGSTOP after growing times.
build=$1
. "$(dirname "$0")/lib.sh"
plant_with_traps

cat >busy.c <<'C'
#include "busy.h"
#include <stdlib.h>
__attribute__((constructor)) static void begin(void)
{
	busy_begin(atoi(getenv("THREADS")));
	usleep(10000);
}
C
cat >app.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int busy_end(void);
long busy_deep(long), busy_leaf(long, long);
int main(int argc, char **argv)
{
	long sum = 0;
	usleep(argc > 1 ? atoi(argv[1]) : 1000);
	int wrong = busy_end();
	for (int i = 0; i < 1000; i++)
		sum += busy_leaf(i, 1);
	printf("%s %ld\n", wrong ? "wrong" : "right", sum);
	return wrong;
}
C
gcc -O2 -I "$common" -shared -fPIC -s -o libbusy.so busy.c -Wl,--build-id -lpthread &&
	gcc -O2 -s -o app app.c -L. -lbusy -Wl,-rpath,"$work" || fail "the programs do not compile"
# The constructor's threads wait until main lets all of them call.
cat >idle.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_t threads[1000];
static pthread_barrier_t begin;
static int count;
__attribute__((noinline)) long idle_leaf(long a) { __asm__ volatile("" : "+r"(a)); return a + 1; }
long idle_run(void)
{
	long sum = 0;
	for (int i = 0; i < 1000; i++)
		sum += idle_leaf(i);
	return sum;
}
static void *idle(void *unused)
{
	pthread_barrier_wait(&begin);
	return (void *)idle_run();
}
__attribute__((constructor)) static void idle_begin(int argc, char **argv)
{
	pthread_attr_t small;
	count = atoi(argv[1]);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	pthread_barrier_init(&begin, NULL, (unsigned)count + 1);
	for (int i = 0; i < count; i++)
		if (pthread_create(&threads[i], &small, idle, NULL))
			_exit(9);
}
int idle_end(void)
{
	int wrong = idle_run() != 500500;
	pthread_barrier_wait(&begin);
	for (int i = 0; i < count; i++) {
		void *sum;
		pthread_join(threads[i], &sum);
		wrong |= (long)sum != 500500;
	}
	return wrong;
}
C
printf '#include <stdio.h>\nint idle_end(void);\nint main(void) { puts(idle_end() ? "wrong" : "right"); return 0; }\n' >idle_main.c
gcc -O2 -shared -fPIC -s -o libidle.so idle.c -Wl,--build-id -lpthread &&
	gcc -O2 -s -o idle idle_main.c -L. -lidle -Wl,-rpath,"$work" || fail "the programs do not compile"
export THREADS=3
./app >plain || fail "the program is wrong by itself"

# ---- planted while three threads run them; main's calls are known ----
expect 0 "$tw" record --local --returns --on-full block --ring 64K -t 'libbusy:busy_{leaf,deep,end}' -qo live.tw -- ./app
cmp -s out plain || fail "another answer: $(cat out)"
expect 0 "$tw" info live.tw
! grep -q 'are not traced' out || fail "not planted: $(grep 'are not traced' out)"
expect 0 "$tw" report --json -n 0 live.tw
is "$(json "[f['calls'] for f in d['by_function'] if f['function'] == 'busy_end']")" '[1]'
[ "$(json "sum(f['calls'] for f in d['by_function'] if f['function'] == 'busy_leaf')")" -gt 1000 ] || fail "few calls"

expect 0 "$tw" record --local -t 'libbusy:busy_{leaf,torn}' -qo torn.tw -- ./app
cmp -s out plain || fail "another answer: $(cat out)"
expect 0 "$tw" info torn.tw
shows '1 function of libbusy is not traced: .*the first instructions lie on two pages'
# The account has it: the recording is less than was asked for, though nothing of it was lost.
shows '^lost *nothing, but not everything was traced'
shows '^functions *1 function is traced only where other objects call it, or not at all: notes say why'
shows '^complete *no: functions were not armed'
expect 0 "$tw" report torn.tw
! grep -q '^Nothing was lost\.' out || fail "nothing was lost, of functions that were not traced"
for view in info report; do
	expect 0 "$tw" $view --json torn.tw
	is "$(json 'd["complete"], d["account"]["missing"]["functions"]["places"], d["account"]["missing"]["functions"]["more"]')" \
		"False 1 True" $view
done
json '[n for n in d["notes"] if n.startswith("1 function of libbusy is not traced")][0]' >note

# ---- hundreds of threads, most of which sleep ----
expect 0 "$tw" record --local --returns -t 'libidle:idle_{leaf,run}' -qo many.tw -- ./idle 600
is "$(cat out)" right
expect 0 "$tw" report --json -n 0 many.tw
is "$(json "sorted((f['function'], f['calls']) for f in d['by_function'])")" "[('idle_leaf', 601000), ('idle_run', 601)]"

# ---- where the threads are not stopped ----
if command -v strace >/dev/null; then
	expect 0 strace -f -o trace -e trace=none "$tw" record --local -t 'libbusy:busy_{leaf,deep,end}' -qo traced.tw -- ./app
	cmp -s out plain || fail "another answer: $(cat out)"
	expect 0 "$tw" info traced.tw
	shows '3 functions of libbusy are not traced: several threads were running, and a debugger or another tracer has them'
fi

# ---- the recorder is killed, or stopped for a while, at any moment ----
for us in 8000 10000 11000 12000 13000 14000 16000 20000; do
	for signal in KILL STOP; do
		rm -rf answer "stopped.tw"
		"$tw" record --local -t 'libbusy:_' -qo stopped.tw -- sh -c 'exec ./app 30000 >answer' &
		recorder=$!
		sleep "0.0$((us / 1000 + 10))"
		kill -$signal $recorder 2>/dev/null
		[ $signal = KILL ] || sleep 0.1
		kill -CONT $recorder 2>/dev/null
		wait $recorder 2>/dev/null
		# Killed before it has started the program, there is no answer.
		for _ in $(seq 500); do
			[ ! -e answer ] || [ -s answer ] && break
			sleep 0.01
		done
		[ ! -e answer ] || cmp -s answer plain || fail "SIG$signal for the recorder after $us us: $(cat answer)"
		# The rings of the killed recorder are not left in /dev/shm.
		[ ! -e stopped.tw/live ] || "$tw" recover -q stopped.tw || fail "recover after SIG$signal after $us us"
	done
done
