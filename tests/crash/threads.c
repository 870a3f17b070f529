/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.c - a traced program whose threads come, go and die in every way.
 *
 *	threads short N		N threads, eight at a time, 25 calls each
 *	threads cancel N	N threads, cancelled asynchronously at any instruction
 *	threads raw N		N threads that end by the bare system call, unknown to libc
 *	threads fill FILE N	a few calls; FILE fills its file system; 3000 calls; N threads
 *	threads calls N [CODE]	N calls from one thread
 *	threads beat SECONDS	calls until it has worked for that long; prints the longest pause and the waits
 *
 * Prints how many calls certainly finished and how many began: "made=N begun=M".  At the end the loader is used once
 * more: no dead thread may hold its locks.
 */
#include "tests/crash/work.h"
#include "tests/common/clock.h"

#include <tracewheel/function.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CALLS_EACH 25
#define AT_ONCE	   8

TW_DEFINE_FUNCTION(declared, "crash", "two", 2);

struct worker {
	_Atomic uint64_t begun, made;
	_Atomic bool is_calling;
	pthread_t thread;
};

static uint64_t begun, made; /* of ended workers */

static void call_once(struct worker *worker, uint64_t number)
{
	atomic_store_explicit(&worker->begun, number, memory_order_release);
	if (number % 2)
		crash_step(number, ~number);
	else
		tw_call2(&declared, number, ~number);
	atomic_store_explicit(&worker->made, number, memory_order_release);
}

static void *make_calls(void *arg)
{
	for (uint64_t i = 1; i <= CALLS_EACH; i++)
		call_once(arg, i);
	return NULL;
}

static void *leave_raw(void *arg)
{
	make_calls(arg);
	syscall(SYS_exit, 0);
	return NULL;
}

static void *call_until_cancelled(void *arg)
{
	struct worker *worker = arg;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	for (uint64_t i = 1; i; i++) {
		call_once(worker, i);
		atomic_store_explicit(&worker->is_calling, true, memory_order_relaxed);
	}
	return NULL;
}

static void start(struct worker *worker, void *(*run)(void *))
{
	if (pthread_create(&worker->thread, NULL, run, worker) != 0)
		exit(3);
}

static void add_up(const struct worker *worker)
{
	begun += atomic_load(&worker->begun);
	made += atomic_load(&worker->made);
}

static void run_short(unsigned threads)
{
	for (unsigned done = 0; done < threads; done += AT_ONCE) {
		struct worker workers[AT_ONCE] = {0};

		for (unsigned i = 0; i < AT_ONCE; i++)
			start(&workers[i], make_calls);
		for (unsigned i = 0; i < AT_ONCE; i++) {
			pthread_join(workers[i].thread, NULL);
			add_up(&workers[i]);
		}
	}
}

static void run_cancelled(unsigned threads)
{
	for (unsigned i = 0; i < threads; i++) {
		struct worker worker = {0};

		start(&worker, call_until_cancelled);
		while (!atomic_load(&worker.is_calling))
			sched_yield();
		for (unsigned spin = (unsigned)rand() % 20000; spin; spin--)
			__asm__ volatile("");
		pthread_cancel(worker.thread);
		pthread_join(worker.thread, NULL);
		add_up(&worker);
	}
}

/* Their stacks stay: libc does not know that the threads have ended. */
static void run_raw(unsigned threads)
{
	struct worker *workers = calloc(threads, sizeof *workers);

	for (unsigned i = 0; i < threads; i++) {
		start(&workers[i], leave_raw);
		while (atomic_load(&workers[i].made) != CALLS_EACH)
			sched_yield();
		add_up(&workers[i]);
	}
}

static pthread_barrier_t all_called;

static void *call_and_stay(void *arg)
{
	make_calls(arg);
	pthread_barrier_wait(&all_called);
	return NULL;
}

/* All alive at one time: no thread gets the ring of an ended one. */
static void run_many(unsigned threads)
{
	struct worker *workers = calloc(threads, sizeof *workers);

	pthread_barrier_init(&all_called, NULL, threads);
	for (unsigned i = 0; i < threads; i++)
		start(&workers[i], call_and_stay);
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(workers[i].thread, NULL);
		add_up(&workers[i]);
	}
}

static void fill(const char *path)
{
	static char bytes[1 << 16];
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		exit(3);
	for (size_t bytes_each = sizeof bytes; bytes_each; bytes_each /= 2) {
		while (write(fd, bytes, bytes_each) == (ssize_t)bytes_each)
			;
	}
	close(fd);
}

/* A thread that has a ring, and others that come later. */
static void run_full(const char *path, struct worker *own, unsigned count)
{
	uint64_t number = 0;

	while (number < 10)
		call_once(own, ++number);
	fill(path);
	while (number < 3010)
		call_once(own, ++number);
	run_many(count);
}

/* The number of times this thread gave up its processor voluntarily. */
static long waits(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

/* A pause is a wait if the thread gave up its processor; on a busy machine there are others. */
static void run_beat(double seconds)
{
	struct worker own = {0};
	uint64_t last_ns = now_ns(), longest_ns = 0;
	unsigned long_waits = 0;
	long waits_before = waits();

	for (uint64_t i = 1; i % 1024 || (double)worked_ns() < seconds * 1e9; i++) {
		uint64_t at_ns;

		call_once(&own, i);
		at_ns = now_ns();
		if (at_ns - last_ns > 100000000u && waits() != waits_before) {
			longest_ns = at_ns - last_ns > longest_ns ? at_ns - last_ns : longest_ns;
			long_waits++;
		}
		if (at_ns - last_ns > 1000000u || i % 1024 == 0)
			waits_before = waits();
		last_ns = at_ns;
	}
	add_up(&own);
	printf("longest_wait_ms=%llu long_waits=%u\n", (unsigned long long)(longest_ns / 1000000), long_waits);
}

int main(int argc, char **argv)
{
	unsigned count = argc > 2 ? (unsigned)atoi(argv[argc > 3 && !strcmp(argv[1], "fill") ? 3 : 2]) : 0;
	struct worker own = {0};

	if (argc < 3)
		return 2;
	alarm(300);
	if (!strcmp(argv[1], "short"))
		run_short(count);
	else if (!strcmp(argv[1], "cancel"))
		run_cancelled(count);
	else if (!strcmp(argv[1], "raw"))
		run_raw(count);
	else if (!strcmp(argv[1], "beat"))
		run_beat(atof(argv[2]));
	else if (!strcmp(argv[1], "fill"))
		run_full(argv[2], &own, count);
	for (uint64_t i = 1; !strcmp(argv[1], "calls") && i <= count; i++)
		call_once(&own, i);
	add_up(&own);
	if (!dlopen("libsqlite3.so.0", RTLD_NOW) && !dlopen("libm.so.6", RTLD_NOW))
		return 3;
	printf("made=%llu begun=%llu\n", (unsigned long long)made, (unsigned long long)begun);
	fflush(stdout);
	return !strcmp(argv[1], "calls") && argc > 3 ? atoi(argv[3]) : 0;
}
