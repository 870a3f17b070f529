/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers on an alternate stack that is disarmed meanwhile (SS_AUTODISARM), or that lies above the thread's own. */
#include "edge.h"
#include <signal.h>
#include <sys/time.h>

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1U << 31)
#endif

static volatile int ticks;

static void on_alarm(int number)
{
	edge_calls(3);
	ticks++;
}

int main(void)
{
	const long all = edge_rounds(300, 100);
	struct itimerval every = {{0, 500}, {0, 500}};
	struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_ONSTACK};
	/* The first mapping of main(); the main thread's stack is above it, a thread's would be below. */
	stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16, .ss_flags = (int)SS_AUTODISARM};

	sigaltstack(&stack, NULL);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	while (ticks < all)
		edge_calls(500);
	signal(SIGALRM, SIG_IGN);
	return edge_end(1);
}
