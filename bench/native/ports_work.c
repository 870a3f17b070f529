/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ports_work.c REQUESTS LOOPS - a server that reads a small request, works for so many turns of a loop, and writes an answer.
 *
 * A forked client keeps WINDOW requests under way.  Prints nanoseconds a read or write: of processor time (user and system) of
 * the server, and of wall time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WINDOW 64
#define BYTES  64

static double cpu_ns(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return 1e9 * (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       1e3 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static double wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static void ask(int fd, long requests)
{
	char text[BYTES] = "request";
	long sent = 0, answered = 0;

	while (answered < requests) {
		while (sent < requests && sent - answered < WINDOW && write(fd, text, sizeof text) > 0)
			sent++;
		if (read(fd, text, sizeof text) <= 0)
			_exit(1);
		answered++;
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	long requests = argc > 1 ? atol(argv[1]) : 50000, loops = argc > 2 ? atol(argv[2]) : 0;
	double cpu, wall, calls = 2 * (double)requests;
	char text[BYTES];
	int pair[2], status;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
		return 1;
	if (!fork())
		ask(pair[1], requests);
	close(pair[1]);
	cpu = cpu_ns();
	wall = wall_ns();
	for (long i = 0; i < requests; i++) {
		if (read(pair[0], text, sizeof text) <= 0)
			return 1;
		for (long j = 0; j < loops; j++)
			__asm__ volatile("" ::: "memory");
		if (write(pair[0], text, sizeof text) <= 0)
			return 1;
	}
	cpu = cpu_ns() - cpu;
	wall = wall_ns() - wall;
	wait(&status);
	printf("%.1f %.1f\n", cpu / calls, wall / calls);
	return status != 0;
}
