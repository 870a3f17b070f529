/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold_bench.c - how long do the threads of a process stand still while a jump is written over a function's first instructions?
 *
 * hold_write/N	a process of N threads that sleep in the kernel, below 4 KiB of stack each: one write, from the list of its threads on.
 *		The column stand_us is the part in which threads stand still, each of them or some: the median over the writes of a run.
 *		pause_us is that in which all stand still, and threads that run would wait: the median, and what 99 of 100 do not exceed.
 * hold_work/N	the same where ten of the threads work for 200 us each millisecond.
 *
 * Unit	nanoseconds for one write; microseconds in the column.
 * Peers	none: docs/decisions/0032 has the design.
 */
#include "base/clock.h"
#include "base/sys.h"
#include "bench/bench.h"
#include "pipeline/recorder/held.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES (64u << 10)
#define STANDS_MAX  4096u
#define TRIES_MAX   100u
#define WORK_NS	    200000u
#define REST_US	    800

static uint8_t code[TW_PAGE_BYTES] __attribute__((aligned(TW_PAGE_BYTES)));

static void *sleep_for_ever(void *unused)
{
	char used[4096];

	tw_bench_keep(used);
	for (;;)
		pause();
	return unused;
}

static void *work_at_times(void *unused)
{
	for (;;) {
		uint64_t until = tw_clock_monotonic_ns() + WORK_NS;

		while (tw_clock_monotonic_ns() < until)
			;
		usleep(REST_US);
	}
	return unused;
}

static void run_child(int threads, int working, int ready)
{
	pthread_attr_t attributes;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	for (int i = 1; i < threads; i++) {
		pthread_t thread;

		if (pthread_create(&thread, &attributes, i <= working ? work_at_times : sleep_for_ever, NULL))
			_exit(1);
	}
	if (write(ready, "", 1) != 1)
		_exit(1);
	sleep_for_ever(NULL);
}

static pid_t start_child(int threads, int working)
{
	int ready[2];
	char byte;
	pid_t child;

	TW_BENCH_MUST(!pipe(ready));
	child = fork();
	if (!child) {
		close(ready[0]);
		run_child(threads, working, ready[1]);
	}
	close(ready[1]);
	TW_BENCH_MUST(child > 0 && read(ready[0], &byte, 1) == 1);
	close(ready[0]);
	return child;
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void measure(struct tw_bench *bench, int working)
{
	static struct tw_held held;
	static uint64_t stands[STANDS_MAX], pauses[STANDS_MAX];
	pid_t child = start_child((int)bench->value, working);
	struct tw_rs_held_piece piece = {.at = (uintptr_t)code, .count = 5, .before = {0}, .after = {1, 2, 3, 4, 5}};
	uint64_t written = 0, stopped = 0, n;
	char path[64];
	int memory;

	snprintf(path, sizeof path, "/proc/%d/mem", child);
	memory = open(path, O_RDWR | O_CLOEXEC);
	TW_BENCH_MUST(memory >= 0);
	memset(&held, 0, sizeof held);
	n = tw_bench_start(bench);
	for (uint64_t i = 0; i < n; i++) {
		struct tw_rs_held_piece now = piece;
		unsigned tries = 0;
		uint32_t number;

		if (i % 2) {
			memcpy(now.before, piece.after, piece.count);
			memcpy(now.after, piece.before, piece.count);
		}
		/* A machine that has much other work may not stop all threads in time. */
		while (tw_held_write(&held, child, memory, &now, 1, NULL, NULL, &number) != TW_RS_HELD_WRITTEN)
			TW_BENCH_MUST(tries++ < TRIES_MAX);
		written++;
		stopped += number;
		stands[i % STANDS_MAX] = held.hold.stood_ns;
		pauses[i % STANDS_MAX] = held.hold.paused_ns;
	}
	tw_bench_stop(bench);
	tw_bench_happened(bench, "writes", written, 1);
	tw_bench_happened(bench, "threads stopped", stopped, (uint64_t)bench->value);
	n = n < STANDS_MAX ? n : STANDS_MAX;
	qsort(stands, n, sizeof *stands, compare);
	qsort(pauses, n, sizeof *pauses, compare);
	tw_bench_counter(bench, "stand_us", n ? (double)stands[n / 2] / 1e3 : 0);
	tw_bench_counter(bench, "pause_us", n ? (double)pauses[n / 2] / 1e3 : 0);
	tw_bench_counter(bench, "pause_p99_us", n ? (double)pauses[n * 99 / 100] / 1e3 : 0);
	close(memory);
	kill(child, SIGKILL);
	TW_BENCH_MUST(waitpid(child, NULL, 0) == child);
}

TW_BENCH(hold_write, .values = {20, 64, 500, 2000}, .repetitions = 3)
{
	measure(bench, 0);
}

TW_BENCH(hold_work, .values = {500}, .repetitions = 3)
{
	measure(bench, 10);
}
