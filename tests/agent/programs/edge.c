/* SPDX-License-Identifier: Apache-2.0 */
/* edge.c - calls with unusual conventions and unusual control flow, all through the GOT; prints what went wrong. */
#include "edgelib.h"

#include <complex.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static int wrong;

static void check(const char *what, int is_right)
{
	if (!is_right) {
		printf("WRONG: %s\n", what);
		wrong = 1;
	}
}

static jmp_buf jump;
static sigjmp_buf signal_jump;

static __attribute__((noinline)) int deep(int n)
{
	char buffer[200];

	if (n < 0)
		return n;
	if (!n)
		longjmp(jump, 5);
	memset(buffer, n, sizeof buffer);
	return deep(n - 1) + buffer[n & 31];
}

static int jumper(int x)
{
	if (x == 3)
		longjmp(jump, 9);
	return x;
}

static __attribute__((noinline)) int use_setjmp(void)
{
	volatile int kept = 42;
	int r = setjmp(jump);

	if (!r) {
		edge_many(1, 2, 3, 4, 5, 6, 7, 8);
		deep(6);
	}
	return r * 100 + kept;
}

static __attribute__((noinline)) int use_setjmp_through(void)
{
	int r = setjmp(jump);

	if (!r)
		edge_call_back(jumper, 3);
	return r;
}

static void on_signal(int number)
{
	siglongjmp(signal_jump, 2);
}

static volatile sig_atomic_t ticks;

static void on_tick(int number)
{
	edge_add(1, 2);
	ticks++;
}

static void on_jumping_tick(int number)
{
	ticks++;
	siglongjmp(signal_jump, 1);
}

static void *thread(void *arg)
{
	for (uint64_t i = 0; i < 1000; i++)
		edge_add(i, 1);
	pthread_exit((char *)arg + 1);
}

static ucontext_t main_context, co_context;
static int co_steps;

static void coroutine(void)
{
	for (int i = 0; i < 3; i++) {
		edge_add(1, 2);
		co_steps++;
		swapcontext(&co_context, &main_context);
	}
}

static long again(long n)
{
	return edge_recurse(n, again);
}

static void conventions(void)
{
	check("struct in memory", edge_make_big(5).v[7] == 12);
	check("variable arguments", edge_sum(9, 1., 2., 3., 4., 5., 6., 7., 8., 9.) == 45);
	check("stack arguments", edge_many(1, 2, 3, 4, 5, 6, 7, 8) == 21 + 70 + 800);
	check("int128", (long)(edge_wide(3) >> 64) == 3 && (long)edge_wide(3) == 7);
	check("long double", edge_twice(1.25L) == 2.5L);
	check("complex", cimag(edge_complex(1, 2)) == 2 && creal(edge_complex(1, 2)) == 1);
	check("mixed", edge_mix(1, 2, 3, 4, 5, 6, 7, 8, 9, 10) == 55);
	check("recursion", again(500) == 500);
	check("a function named and called by two objects", edge_number("42") == 42 && strtol("7", NULL, 10) == 7);
	check("its address is one",
	      edge_address() == (void *)strtol && dlsym(RTLD_DEFAULT, "strtol") == (void *)strtol);
}

static void jumps(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_NODEFER};

	check("setjmp", use_setjmp() == 542);
	check("longjmp through a hooked frame", use_setjmp_through() == 9);
	check("after longjmp", edge_many(1, 2, 3, 4, 5, 6, 7, 8) == 891);
	sigaction(SIGUSR1, &action, NULL);
	if (sigsetjmp(signal_jump, 1) == 0) {
		raise(SIGUSR1);
		check("not reached", 0);
	}
}

static void processes(char **argv)
{
	int status;
	pid_t pid = vfork();

	if (pid == 0) {
		edge_many(1, 2, 3, 4, 5, 6, 7, 8);
		execl("/bin/true", "true", NULL);
		_exit(3);
	}
	waitpid(pid, &status, 0);
	check("vfork and exec", WIFEXITED(status) && WEXITSTATUS(status) == 0);
	pid = fork();
	if (pid == 0) {
		edge_add(1, 2);
		_exit(7);
	}
	waitpid(pid, &status, 0);
	check("fork", WEXITSTATUS(status) == 7);
	check("system", system("exit 3") == 3 << 8);
}

static void threads(char **argv)
{
	static char stack[65536];
	pthread_t id;
	void *result;

	pthread_create(&id, NULL, thread, argv);
	pthread_join(id, &result);
	check("pthread_exit", result == (char *)argv + 1);
	getcontext(&co_context);
	co_context.uc_stack.ss_sp = stack;
	co_context.uc_stack.ss_size = sizeof stack;
	co_context.uc_link = &main_context;
	makecontext(&co_context, coroutine, 0);
	for (int i = 0; i < 3; i++)
		swapcontext(&main_context, &co_context);
	check("coroutine", co_steps == 3);
}

/*
 * One signal, in so many nanoseconds.  A timer that repeats could be faster than this machine runs its handler: then the
 * program itself would not go on, or frames of handlers would fill its stack.
 */
static void set_timer(long ns)
{
	struct itimerspec spec = {{0, 0}, {0, ns}};
	static timer_t timer;
	static int is_made;

	if (!is_made)
		is_made = timer_create(CLOCK_MONOTONIC, NULL, &timer) == 0;
	timer_settime(timer, 0, &spec, NULL);
}

/* Handlers interrupt hits, and make traced calls; some never return. */
static void signals(void)
{
	struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
	uint64_t sum = 0;
	int seen = -1;

	sigaction(SIGALRM, &action, NULL);
	for (uint64_t i = 0; ticks < 1000; i++) {
		if (seen != ticks) {
			seen = ticks;
			set_timer(20000);
		}
		sum = edge_add(sum, i) - i;
	}
	check("sum under signals", sum == 0);
	ticks = 0;
	action.sa_handler = on_jumping_tick;
	action.sa_flags = SA_NODEFER;
	while (ticks < 1000) {
		if (sigsetjmp(signal_jump, 1))
			continue;
		/* Only now: the buffer that a handler jumps to must be filled. */
		sigaction(SIGALRM, &action, NULL);
		set_timer(20000);
		for (;;)
			edge_add(1, 2);
	}
	signal(SIGALRM, SIG_IGN);
	check("after jumps out of hits", edge_add(40, 2) == 42);
}

static void rest(void)
{
	char *text = NULL;

	errno = 12345;
	for (int i = 0; i < 1000; i++)
		edge_add(1, 2);
	check("errno kept", errno == 12345);
	check("errno set", open("/nonexistent", O_RDONLY) == -1 && errno == ENOENT);
	check("dlsym(RTLD_NEXT)", dlsym(RTLD_NEXT, "malloc") != NULL);
	check("dlopen", dlopen("libm.so.6", RTLD_NOW) != NULL);
	check("dlopen of nothing", dlopen("libnothing.so.77", RTLD_NOW) == NULL && strstr(dlerror(), "libnothing"));
	check("asprintf", asprintf(&text, "%d %.2f %s", 1, 2.5, "x") == 8 && !strcmp(text, "1 2.50 x"));
	free(text);
}

int main(int argc, char **argv)
{
	conventions();
	jumps();
	processes(argv);
	threads(argv);
	signals();
	rest();
	printf("edge: done\n");
	return wrong;
}
