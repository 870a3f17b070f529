/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opener.c - opens and closes a plugin while a timer's handler makes traced calls; prints their number.
 *
 *	opener HOW FILE
 *
 * HOW is `plain`, `again` (the handler may interrupt itself: nothing is blocked while it runs) or `stack` (it has a
 * stack of its own).
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#define TIMES 300

static const char *volatile seven = "7";
static _Atomic long calls;
static _Atomic int handled;

static void on_alarm(int number)
{
	for (int i = 0; i < 10; i++) {
		if (strtol(seven, NULL, 10) != 7)
			abort();
		calls++;
	}
	handled++;
}

int main(int argc, char **argv)
{
	const struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
	struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	static char stack[1 << 16];
	const stack_t set = {.ss_sp = stack, .ss_size = sizeof stack};

	if (argc < 3)
		return 2;
	if (!strcmp(argv[1], "again"))
		action.sa_flags |= SA_NODEFER;
	if (!strcmp(argv[1], "stack"))
		action.sa_flags |= SA_ONSTACK;
	sigaltstack(&set, NULL);
	sigaction(SIGALRM, &action, NULL);
	/* The thread already has a ring. */
	on_alarm(0);
	setitimer(ITIMER_REAL, &often, NULL);
	while (handled < TIMES) {
		void *handle = dlopen(argv[2], RTLD_NOW);

		if (!handle || dlclose(handle))
			return 1;
	}
	setitimer(ITIMER_REAL, &never, NULL);
	printf("calls %ld\n", calls);
	return 0;
}
