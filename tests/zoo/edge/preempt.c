/* SPDX-License-Identifier: Apache-2.0 */
/* A timer's handler switches to the other coroutine at any instruction; later the first one continues there. */
#include "edge.h"
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>

static ucontext_t contexts[2], main_context;
static char stacks[2][1 << 17];
static volatile int current, switches;
static volatile long made[2];

static void on_alarm(int number)
{
	int from = current;

	switches++;
	current = 1 - from;
	swapcontext(&contexts[from], &contexts[1 - from]);
}

static void run(int number)
{
	while (made[0] + made[1] < 400000 || switches < 50) {
		edge_call(number);
		made[number]++;
	}
	signal(SIGALRM, SIG_IGN);
	setcontext(&main_context);
}

int main(void)
{
	struct itimerval every = {{0, 700}, {0, 700}};
	struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_NODEFER};
	volatile int is_back = 0;

	sigaction(SIGALRM, &action, NULL);
	for (int i = 0; i < 2; i++) {
		getcontext(&contexts[i]);
		contexts[i].uc_stack.ss_sp = stacks[i];
		contexts[i].uc_stack.ss_size = sizeof stacks[i];
		makecontext(&contexts[i], (void (*)(void))run, 1, i);
	}
	getcontext(&main_context);
	if (!is_back++) {
		setitimer(ITIMER_REAL, &every, NULL);
		setcontext(&contexts[0]);
	}
	return edge_end(switches >= 50);
}
