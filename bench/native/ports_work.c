/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ports_work.c REQUESTS LOOPS [each | batch] - a server that reads a small request, works for so many turns of a loop, and writes an
 *						answer.
 * ports_work.c sleep			      - sleeps 1 ms at a time until it is ended.
 *
 * A forked client keeps up to WINDOW requests under way.  `each`: it waits for every answer, so that the server's write wakes it.
 * `batch`: it sleeps, takes all answers that are there, and sends as many requests.  Prints nanoseconds a read or write: of processor
 * time (user and system) of the server, and of wall time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WINDOW	 200
#define BYTES	 64
#define PAUSE_NS 200000 /* shorter than the server needs for WINDOW requests of 20 us */

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

static void pause_for(long ns)
{
	const struct timespec pause = {0, ns};

	nanosleep(&pause, NULL);
}

static void ask(int fd, long requests, int wait_each)
{
	const int flags = wait_each ? 0 : MSG_DONTWAIT;
	char text[BYTES] = "request";
	long sent = 0, answered = 0;

	while (answered < requests) {
		while (sent < requests && sent - answered < WINDOW && send(fd, text, sizeof text, MSG_DONTWAIT) > 0)
			sent++;
		while (answered < sent && recv(fd, text, sizeof text, flags) > 0) {
			answered++;
			if (wait_each)
				break;
		}
		if (!wait_each && answered < requests)
			pause_for(PAUSE_NS);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	long requests = argc > 1 ? atol(argv[1]) : 50000, loops = argc > 2 ? atol(argv[2]) : 0;
	double cpu, wall, calls = 2 * (double)requests;
	char text[BYTES];
	int pair[2], status;

	if (argc > 1 && !strcmp(argv[1], "sleep"))
		for (;;)
			pause_for(1000000);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
		return 1;
	if (!fork())
		ask(pair[1], requests, argc < 4 || !strcmp(argv[3], "each"));
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
