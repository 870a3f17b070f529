#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Calls of threads after their last destructor are recorded, as many threads as there are, one after the other or at once. Where the
#         thread's exit is recorded before them, they are lost, and told from those of threads that found no ring: `record`, `info`, `report`
#         and JSON say how many they are, and the advice is not to give more memory.
# Method  A program's destructor of thread-specific data sets itself again in each round, so that it also runs after the recorder's. Later
#         threads have the memory, and the numbers, of earlier ones.
#         The control: threads that get no ring because they run under a filter of system calls.
build=$1
. "$(dirname "$0")/lib.sh"

cat >ended.c <<'C'
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#define THREADS 40
static pthread_key_t keys[8];
static pthread_barrier_t barrier;
static int is_late, is_only_last;
static _Thread_local int round_of_thread;
static void again(void *key)
{
	if (!is_only_last || ++round_of_thread == PTHREAD_DESTRUCTOR_ITERATIONS)
		getppid();
	pthread_setspecific(*(pthread_key_t *)key, key);
}
static void *run(void *arg)
{
	if (!is_only_last)
		getppid();
	for (int i = 0; i < (is_only_last ? 1 : 8) && is_late; i++)
		pthread_setspecific(keys[i], &keys[i]);
	pthread_barrier_wait(&barrier);
	return NULL;
}
int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	int rounds = argc > 2 ? atoi(argv[2]) : 1;
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog filter = {1, &allow};
	FILE *status = fopen("/proc/self/status", "r");
	char line[200];
	long kib;
	is_only_last = !strcmp(argv[1], "last");
	is_late = !strcmp(argv[1], "late") || is_only_last;
	if (!is_late && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)))
		return 2;
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (int i = 0; i < 8; i++)
		pthread_key_create(&keys[i], again);
	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < THREADS; i++)
			pthread_create(&threads[i], NULL, run, NULL);
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
	}
	while (status && fgets(line, sizeof line, status))
		if (sscanf(line, "RssAnon: %ld", &kib) == 1)
			dprintf(3, "%ld\n", kib);
	return 0;
}
C
gcc -O2 -pthread -o ended ended.c || fail gcc
exec 3>/dev/null

# A call, and one in each of four rounds for each of eight keys. In a few rings, so that those of dead threads are used again.
rounds=$(rounds 25 500)
for options in "" "--returns --ring 64K --ring-cap 16M"; do
    expect 0 "$tw" record --force $options -t libc:getppid -o late.tw -- ./ended late $rounds
    expect 0 "$tw" report --json late.tw
    is "$(json 'd["by_function"][0]["calls"], sum(d["lost"].values()), len(d["by_thread"])')" "$((1320 * rounds)) 0 $((40 * rounds))"
done

# Threads whose first call is one of the last round leave nothing in the program's memory (it was 14 KiB each).
for rounds in 5 50; do
    expect 0 "$tw" record --force -t libc:getppid -o last.tw -- ./ended last $rounds 3>rss
    expect 0 "$tw" report --json last.tw
    is "$(json 'd["by_function"][0]["calls"], sum(d["lost"].values())')" "$((40 * rounds)) 0"
    memory+=("$(cat rss)")
done
[ $((memory[1] - memory[0])) -lt 4000 ] || fail "2,000 threads took ${memory[1]} KiB, 200 took ${memory[0]}"

expect 0 "$tw" record --force -p call,procs -t libc:getppid -o late.tw -- ./ended late
cp err said
expect 0 "$tw" info --json late.tw
lost=$(json 'd["lost"]["no_ring"]')
# Spawned and exit are two events of each thread.
is "$(json 'd["events"] + d["lost"]["no_ring"], d["account"]["missing"]["ended"]["events"] - d["lost"]["no_ring"], d["account"]["missing"]["no_ring"]["events"]')" "1400 0 0"
[ "$lost" -gt 0 ] || fail "no call came after the recorder's destructor"
grep -q "LOST.* ended $lost\..* ended are calls of threads.*without -p procs" said || fail "record says: $(cat said)"
! grep -q ring-cap said || fail "record advises more memory: $(cat said)"
expect 0 "$tw" info late.tw
shows "^lost  *ended $lost$"
expect 0 "$tw" report late.tw
shows "LOST $lost .*: ended $lost"

expect 0 "$tw" record --force -t libc:getppid -o filter.tw -- ./ended filter
cp err said
expect 0 "$tw" info --json filter.tw
is "$(json 'd["lost"]["no_ring"] > 0, d["account"]["missing"]["ended"]["events"]')" "True 0"
grep -q 'LOST.* no_ring [0-9]*\..*--ring-cap' said || fail "record says: $(cat said)"
