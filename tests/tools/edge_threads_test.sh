#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    For unusual threads, each call is an event or counted, and each end if ends are recorded: hundreds at once and
#         in turn, detached ones that outlive the first, destructors that run after our own, the smallest stacks,
#         coroutines that move between threads; dropped, waited for, and overwritten, also if the rings of ended threads
#         are given up.
# Method  The program counts its calls; events and losses of the capture must be as many, or twice as many with
#         --returns.
build=$1
. "$(dirname "$0")/lib.sh"

cat >threads.c <<'C'
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

enum { COROUTINES = 32 };
static atomic_long calls;
static atomic_int go, done, taken[COROUTINES];
static pthread_barrier_t all;
static pthread_key_t key;
static ucontext_t coroutines[COROUTINES], *back[COROUTINES];
static int left[COROUTINES];
static pthread_t threads[1000];

__attribute__((noinline)) int leaf(int a)
{
	__asm__ volatile("" : "+r"(a));
	return a;
}

static void call(int times)
{
	for (int i = 0; i < times; i++)
		leaf(i);
	calls += times;
}

static void *once(void *arg)
{
	pthread_barrier_wait(&all);
	call(50);
	return NULL;
}

static void *few(void *arg)
{
	call(50);
	return NULL;
}

static void *outlive(void *arg)
{
	while (!go)
		usleep(500);
	call(100);
	if (++done == 20) {
		printf("calls %ld\n", (long)calls);
		fflush(stdout);
		_exit(0);
	}
	return NULL;
}

static void destroy(void *value)
{
	long rounds = (long)value;

	call(7);
	if (rounds > 1)
		pthread_setspecific(key, (void *)(rounds - 1));
}

static void *leave(void *arg)
{
	pthread_setspecific(key, (void *)((long)arg % 5 + 1));
	call((long)arg % 2 * 3);
	return NULL;
}

static void body(int number)
{
	for (int i = 0; i < 40; i++) {
		call(3);
		swapcontext(&coroutines[number], back[number]);
		call(2);
	}
	left[number] = 0;
	swapcontext(&coroutines[number], back[number]);
}

static void *schedule(void *arg)
{
	ucontext_t own;

	for (int i = 0, idle = 0; idle < COROUTINES; i = (i + 1) % COROUTINES) {
		int is_free = 0;

		idle = left[i] ? 0 : idle + 1;
		if (!left[i] || !atomic_compare_exchange_strong(&taken[i], &is_free, 1))
			continue;
		if (left[i]) {
			back[i] = &own;
			call(1);
			swapcontext(&own, &coroutines[i]);
		}
		taken[i] = 0;
	}
	return NULL;
}

static void run(void *(*function)(void *), long count, const pthread_attr_t *attr)
{
	for (long i = 0; i < count; i++)
		if (pthread_create(&threads[i], attr, function, (void *)i))
			exit(9);
	for (long i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	const char *kind = argv[1];
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, strcmp(kind, "small") ? 1 << 16 : PTHREAD_STACK_MIN);
	pthread_barrier_init(&all, NULL, 500);
	if (!strcmp(kind, "once"))
		run(once, 500, &attr);
	for (int i = 0; !strcmp(kind, "turn") && i < 500; i++)
		run(few, 1, &attr);
	if (!strcmp(kind, "small"))
		run(few, 50, &attr);
	if (!strcmp(kind, "destroy")) {
		pthread_key_create(&key, destroy);
		run(leave, 100, &attr);
	}
	for (int i = 0; i < COROUTINES && !strcmp(kind, "coroutines"); i++) {
		getcontext(&coroutines[i]);
		coroutines[i].uc_stack.ss_sp = malloc(1 << 16);
		coroutines[i].uc_stack.ss_size = 1 << 16;
		makecontext(&coroutines[i], (void (*)(void))body, 1, i);
		left[i] = 1;
	}
	if (!strcmp(kind, "coroutines"))
		run(schedule, 4, &attr);
	if (!strcmp(kind, "outlive")) {
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
		for (int i = 0; i < 20; i++)
			pthread_create(&threads[i], &attr, outlive, NULL);
		go = 1;
		pthread_exit(NULL);
	}
	printf("calls %ld\n", (long)calls);
	return 0;
}
C
gcc -O1 -fpatchable-function-entry=9 -pthread -o threads threads.c || fail "no program"

# Each kind with every second option, and each option with every second kind; with --long each with each. captures has a line
# for each: its number, the calls that were made, and what it is.
step=$(rounds 2 1)
options=("" --returns "--on-full block --ring 64K" "--on-full overwrite --ring 1M --ring-cap 4M"
	"--returns --on-full overwrite --ring 64K --ring-cap 1M" "--returns --on-full drop --ring 64K --ring-cap 1M")
first=0 number=0
for kind in once turn outlive destroy small coroutines; do
	for ((at = first; at < ${#options[@]}; at += step)); do
		option=${options[at]}
		# shellcheck disable=SC2086
		"$tw" record -q --force -o a.tw $option -t _:leaf -- ./threads $kind >out 2>said.$number || fail "record $option of $kind"
		read -r _ made <out
		[[ $option != *--returns* ]] || made=$((made * 2))
		"$tw" info --json a.tw >info.$number 2>err || fail "info of $kind $option"
		echo "$number $made $kind $option" >>captures
		number=$((number + 1))
	done
	first=$(((first + 1) % step))
done
is "$number" "$((36 / step))" "recordings"
python3 -I -S - <<'P' || fail "not all calls and ends are in a capture"
import json, re
for line in open("captures"):
    number, made, name = line.rstrip().split(" ", 2)
    d, said = json.load(open("info." + number)), open("said." + number).read()
    # An end that could not be watched is no event; a note has the number.
    unseen = sum(int(n.split()[0].replace(",", "")) for p in d["processes"] for n in p["notes"] if " not seen to return: " in n)
    found = d["events"] + sum(d["lost"].values()) + unseen
    assert found == int(made) > 0, f"{name}: {found} events, losses and unseen ends, not {made}"
    # Those of threads after their last destructor are told apart.
    assert not d["lost"]["no_ring"] or re.search("LOST.* (no_ring|ended) [0-9]", said), f"{name}: threads without a ring: {said}"
P
echo PASS
