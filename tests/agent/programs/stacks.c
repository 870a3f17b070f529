/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stacks.c - signal handlers that make traced calls, on stacks of every kind; prints the number of all calls.
 *
 *	stacks signal			on an alternate stack that lies above the thread's own
 *	stacks disarmed			the same, disarmed while a handler runs (SS_AUTODISARM)
 *	stacks within			on an array of a function of the thread
 *	stacks coroutines		the handler switches between two coroutines in the midst of their calls
 *	stacks jump			the handler jumps out of calls, and then comes a call from deeper than that (strtoul)
 *
 * The handler runs at most once per a number of the program's own calls, a number of times: the end does not depend on
 * time.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1u << 31)
#endif

#define TIMES	    400
#define STACK_BYTES (1 << 18)

static const char *volatile seven = "7";
static volatile long calls;
static volatile sig_atomic_t handled;
static char *above;

static __attribute__((noinline)) void call(void)
{
	if (strtol(seven, NULL, 10) != 7)
		abort();
	calls++;
}

/* The handlers' calls have a counter of their own: a handler may run between load and store of the other. */
static volatile long handler_calls;

static void on_signal(int number)
{
	for (int i = 0; i < 3; i++) {
		if (strtol(seven, NULL, 10) != 7)
			abort();
		handler_calls++;
	}
	handled++;
}

static void hear(void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags | SA_RESTART};
	const struct itimerval often = {{0, 200}, {0, 200}};

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
}

static void hear_no_more(void)
{
	const struct itimerval never = {0};

	setitimer(ITIMER_REAL, &never, NULL);
}

/* ---- alternate stacks ---- */

static int set_stack(void *stack, unsigned flags)
{
	stack_t set = {.ss_sp = stack, .ss_size = STACK_BYTES, .ss_flags = (int)flags};

	return sigaltstack(&set, NULL);
}

static void call_until_heard(void)
{
	while (handled < TIMES)
		for (int i = 0; i < 100; i++)
			call();
}

static void set_mask(int how)
{
	sigset_t alarm;

	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_sigmask(how, &alarm, NULL);
}

static void *above_thread(void *flags)
{
	if (above < (char *)__builtin_frame_address(0) || set_stack(above, *(unsigned *)flags))
		return above;
	set_mask(SIG_UNBLOCK);
	call_until_heard();
	return NULL;
}

/* The thread's stack is mapped below earlier mappings. */
static int on_stack_above(unsigned flags)
{
	pthread_t thread;
	void *failed;

	set_mask(SIG_BLOCK);
	above = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	hear(on_signal, SA_ONSTACK);
	pthread_create(&thread, NULL, above_thread, &flags);
	pthread_join(thread, &failed);
	return failed != NULL;
}

static __attribute__((noinline)) int on_stack_within(void)
{
	volatile char array[STACK_BYTES];

	if (set_stack((void *)(uintptr_t)array, 0))
		return 1;
	hear(on_signal, SA_ONSTACK);
	call_until_heard();
	array[0] = 0;
	return 0;
}

/* ---- coroutines ---- */

#define CALLS_OF_EACH 400000

static ucontext_t contexts[2], home;
static volatile int running;
static volatile long calls_of[2];

static void switch_over(int number)
{
	int from = running;

	running = 1 - from;
	handled++;
	swapcontext(&contexts[from], &contexts[running]);
}

/* A switch is not interrupted: its signal is blocked in every context that is switched to. */
static void work(int self)
{
	set_mask(SIG_UNBLOCK);
	while (calls_of[self] < CALLS_OF_EACH) {
		if (strtol(seven, NULL, 10) != 7)
			abort();
		calls_of[self]++;
	}
	/* The last one returns to main(); the other one is switched away from for good. */
	while (calls_of[1 - self] < CALLS_OF_EACH)
		pause();
	set_mask(SIG_BLOCK);
	setcontext(&home);
}

static int switch_coroutines(void)
{
	volatile int is_over = 0;

	set_mask(SIG_BLOCK);
	for (int i = 0; i < 2; i++) {
		getcontext(&contexts[i]);
		contexts[i].uc_stack.ss_sp =
			mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		contexts[i].uc_stack.ss_size = STACK_BYTES;
		makecontext(&contexts[i], (void (*)(void))work, 1, i);
	}
	getcontext(&home);
	if (!is_over) {
		is_over = 1;
		hear(switch_over, 0);
		setcontext(&contexts[0]);
	}
	hear_no_more();
	calls = calls_of[0] + calls_of[1];
	return 0;
}

/* ---- jumps ---- */

static sigjmp_buf back;
static volatile int may_jump;

static void jump_back(int number)
{
	handled++;
	if (may_jump)
		siglongjmp(back, 1);
}

static __attribute__((noinline)) void call_deeper(int depth, int is_after_jump)
{
	volatile char buffer[256] = {0};

	if (depth)
		call_deeper(depth - 1, is_after_jump);
	else if (is_after_jump)
		calls += strtoul(seven, NULL, 10) == 7;
	else if (strtol(seven, NULL, 10) != 7)
		abort();
	(void)buffer[0];
}

/* Counts the calls after each jump, undisturbed, from deeper than those that were left. */
static int jump_out(void)
{
	volatile int depth = 0;

	hear(jump_back, 0);
	sigsetjmp(back, 1);
	set_mask(SIG_BLOCK);
	call_deeper(30, 1);
	may_jump = 1;
	set_mask(SIG_UNBLOCK);
	while (handled < TIMES) {
		depth = depth < 20 ? depth + 1 : 0;
		call_deeper(depth, 0);
	}
	may_jump = 0;
	hear_no_more();
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int status = 2;

	if (!strcmp(what, "signal"))
		status = on_stack_above(0);
	else if (!strcmp(what, "disarmed"))
		status = on_stack_above(SS_AUTODISARM);
	else if (!strcmp(what, "within"))
		status = on_stack_within();
	else if (!strcmp(what, "coroutines"))
		status = switch_coroutines();
	else if (!strcmp(what, "jump"))
		status = jump_out();
	hear_no_more();
	printf("calls %ld\n", calls + handler_calls);
	return status;
}
