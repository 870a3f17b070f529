/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loading.c - a traced program that opens libraries at critical moments.
 *
 *	loading nested OUTER	a library whose constructor opens another
 *	loading beside OUTER	while another thread sleeps on a full ring: its recorder, our parent, is stopped
 */
#include "tests/crash/work.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static _Atomic uint64_t begun, made;
static _Atomic int stops;

static void *call(void *unused)
{
	while (!atomic_load(&stops)) {
		uint64_t number = atomic_fetch_add(&begun, 1);

		crash_step(number, ~number);
		atomic_fetch_add(&made, 1);
	}
	return NULL;
}

/* Until a thread has made no call for 30 ms. */
static void wait_until_it_sleeps(void)
{
	uint64_t before;

	do {
		before = atomic_load(&made);
		usleep(30000);
	} while (before != atomic_load(&made));
}

static int load(const char *name)
{
	void *library = dlopen(name, RTLD_NOW);
	const int *calls = library ? dlsym(library, "plugin_calls") : NULL;

	if (!calls)
		return -1;
	atomic_fetch_add(&begun, (uint64_t)*calls);
	atomic_fetch_add(&made, (uint64_t)*calls);
	return 0;
}

static int load_beside(const char *name)
{
	pthread_t thread;
	uint64_t before;
	int failed;

	pthread_create(&thread, NULL, call, NULL);
	usleep(100000);
	kill(getppid(), SIGSTOP);
	wait_until_it_sleeps();
	before = atomic_load(&made);
	failed = load(name);
	printf("meanwhile=%d\n", (int)(atomic_load(&made) - before));
	kill(getppid(), SIGCONT);
	usleep(100000);
	atomic_store(&stops, 1);
	pthread_join(thread, NULL);
	return failed;
}

int main(int argc, char **argv)
{
	int failed;

	if (argc < 3)
		return 2;
	alarm(300);
	crash_step(0, 0);
	atomic_fetch_add(&begun, 1);
	atomic_fetch_add(&made, 1);
	failed = strcmp(argv[1], "beside") == 0 ? load_beside(argv[2]) : load(argv[2]);
	printf("made=%llu begun=%llu\n", (unsigned long long)atomic_load(&made),
	       (unsigned long long)atomic_load(&begun));
	return failed ? 1 : 0;
}
