#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    `report --locks` shows no wait where no thread waited: readers of a rwlock beside readers, tries that fail, and
#         locks whose holder released them in a gap.
# Method  Programs in which no call can wait for another thread, by construction: only readers hold the rwlock; a mutex is
#         tried, never locked, while another thread holds it; each thread locks a mutex of its own, or one that goes round by turns
#         outside of it, with rings so small that events are lost. Nobody may be shown as waiting, with losses or without; readers that wait for
#         a writer are shown.
build=$1
. "$(dirname "$0")/lib.sh"
cat >calm.c <<'EOT'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t tried = PTHREAD_MUTEX_INITIALIZER, hand = PTHREAD_MUTEX_INITIALIZER, own[4];
static pthread_barrier_t together;
static int turn, rounds;

static void *reader(void *unused)
{
	for (int i = 0; i < 300; i++) {
		pthread_rwlock_rdlock(&table);
		pthread_barrier_wait(&together); /* all four hold it */
		pthread_rwlock_unlock(&table);
	}
	return unused;
}

static void *tries(void *unused)
{
	for (int i = 0; i < 300; i++)
		if (pthread_mutex_trylock(&tried) == 0 || pthread_rwlock_trywrlock(&table) == 0)
			exit(3);
	return unused;
}

static void *alone(void *number)
{
	for (int i = 0; i < rounds; i++) {
		pthread_mutex_lock(&own[(long)number]);
		pthread_mutex_unlock(&own[(long)number]);
	}
	return NULL;
}

static void *by_turns(void *number)
{
	for (int i = 0; i < rounds / 4; i++) {
		while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != (long)number)
			usleep(0);
		pthread_mutex_lock(&hand);
		pthread_mutex_unlock(&hand);
		__atomic_store_n(&turn, !(long)number, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void run(void *(*work)(void *), int threads)
{
	pthread_t thread[4];
	for (long i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, work, (void *)i))
			exit(2);
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
}

static void *waits(void *at)
{
	__atomic_store_n((int *)at, 1, __ATOMIC_RELEASE);
	pthread_rwlock_rdlock(&table);
	pthread_rwlock_unlock(&table);
	return NULL;
}

int main(int argc, char **argv)
{
	for (int i = 0; i < 4; i++)
		pthread_mutex_init(&own[i], NULL);
	pthread_barrier_init(&together, NULL, 4);
	rounds = argc > 2 ? atoi(argv[2]) : 100;
	if (strcmp(argv[1], "readers") == 0)
		run(reader, 4);
	if (strcmp(argv[1], "tries") == 0) {
		pthread_mutex_lock(&tried);
		pthread_rwlock_rdlock(&table);
		run(tries, 2);
		pthread_rwlock_unlock(&table);
		pthread_mutex_unlock(&tried);
	}
	if (strcmp(argv[1], "losses") == 0) {
		run(alone, 4);
		run(by_turns, 2);
	}
	if (strcmp(argv[1], "writer") == 0) {
		pthread_t thread;
		int is_there = 0;
		pthread_rwlock_wrlock(&table);
		pthread_create(&thread, NULL, waits, &is_there);
		while (!__atomic_load_n(&is_there, __ATOMIC_ACQUIRE))
			usleep(100);
		usleep(50000);
		pthread_rwlock_unlock(&table);
		pthread_join(thread, NULL);
	}
	return 0;
}
EOT
${CC:-cc} -O2 -g -pthread calm.c -o calm || fail "no program"

# nobody_waits FILE: no lock of the program has a wait, or a pair of threads.
nobody_waits() {
	expect 0 "$tw" report --locks --json -n 0 "$1"
	is "$(json '[(l["symbol"], l["waits"], l["pairs"]) for l in d["locks"] if (l["symbol"] or "").startswith("calm") and (l["waits"] or l["pairs"])]')" '[]' "$1"
}

expect 0 "$tw" record -q --locks --on-full block -o readers.tw -- ./calm readers
nobody_waits readers.tw
is "$(json '[l["taken"] for l in d["locks"] if l["symbol"] == "calm:table"]')" '[1200]'
expect 0 "$tw" record -q --locks --on-full block -o tries.tw -- ./calm tries
nobody_waits tries.tw
is "$(json '{l["symbol"]: (l["taken"], l["not_taken"]) for l in d["locks"] if l["symbol"] == "calm:tried"}')" "{'calm:tried': (1, 600)}"
# The control: a reader does wait for a writer.
expect 0 "$tw" record -q --locks --on-full block -o writer.tw -- ./calm writer
expect 0 "$tw" report --locks --json -n 0 writer.tw
is "$(json '[(l["waits"], [p["times"] for p in l["pairs"]]) for l in d["locks"] if l["symbol"] == "calm:table"]')" '[(1, [1])]'
# More events are lost with each doubling, until there are enough gaps.
lost=0 rounds=20000
for _ in {1..6}; do
	expect 0 "$tw" record -q --force --locks --ring 64K --ring-cap 512K --on-full drop -o losses.tw -- ./calm losses "$rounds"
	nobody_waits losses.tw
	lost=$(json 'd["lock_gaps"]["gaps"]')
	[ "$lost" -lt 20 ] || break
	rounds=$((rounds * 2))
done
[ "$lost" -ge 20 ] || fail "nothing was lost: $lost gaps"
