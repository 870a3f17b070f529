/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forkhandler.c - a timer's handler creates children, by fork, _Fork, syscall() or a system call instruction, in the
 * middle of traced calls.
 *
 * Usage: forkhandler fork|_Fork|clone|instruction CHILDREN.  A child continues where its parent was, makes some calls,
 * and ends.
 * Prints the parent's number of calls; fails if a child dies of a signal.
 */
#include "edgelib.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t is_child, made;
static int wanted;
static char way;
static volatile int sum;

/* No function is called, so no wrapper can notice. */
static long make_child(void)
{
	register long stack __asm__("r10") = 0;
	register long tls __asm__("r8") = 0;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"((long)SYS_clone), "D"((long)SIGCHLD), "S"(0L), "d"(0L), "r"(stack), "r"(tls)
			 : "rcx", "r11", "memory");
	return result;
}

static void on_timer(int number)
{
	long child;

	if (is_child || made >= wanted)
		return;
	child = way == 'f'   ? fork()
		: way == '_' ? _Fork()
		: way == 'c' ? syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)
			     : make_child();
	if (child == 0)
		is_child = 1;
	else
		made++;
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
	struct itimerval timer = {{0, 400}, {0, 400}};
	long calls = 0, dead = 0;
	int status;

	way = argc > 1 ? argv[1][0] : 'f';
	wanted = argc > 2 ? atoi(argv[2]) : 100;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	while (made < wanted && !is_child) {
		sum = edge_add(sum, 1);
		calls += !is_child;
		if (calls % 1000 == 0)
			while (waitpid(-1, &status, WNOHANG) > 0)
				dead += WIFSIGNALED(status);
	}
	if (is_child) {
		for (int i = 0; i < 100; i++)
			sum = edge_add(i, 1);
		_exit(0);
	}
	while (waitpid(-1, &status, 0) > 0)
		dead += WIFSIGNALED(status);
	printf("%ld\n", calls);
	return dead != 0;
}
