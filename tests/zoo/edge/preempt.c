/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A timer's handler switches to the other coroutine at any instruction; later the first one continues there.  The signal is blocked
 * during a switch, as a context that is half saved or restored must not be switched to; a recorded swapcontext() takes long.
 */
#include "edge.h"
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>

static ucontext_t contexts[2], main_context;
static char stacks[2][1 << 17];
static volatile int current, switches;
static volatile long made[2];
static sigset_t alarm_signal;

static void on_alarm(int number)
{
	int from = current;

	switches++;
	current = 1 - from;
	swapcontext(&contexts[from], &contexts[1 - from]);
}

static void run(int number)
{
	sigprocmask(SIG_UNBLOCK, &alarm_signal, NULL);
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
	struct sigaction action = {.sa_handler = on_alarm};
	volatile int is_back = 0;

	/* All contexts begin with the signal blocked. */
	sigemptyset(&alarm_signal);
	sigaddset(&alarm_signal, SIGALRM);
	sigprocmask(SIG_BLOCK, &alarm_signal, NULL);
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
