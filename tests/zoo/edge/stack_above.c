/* SPDX-License-Identifier: Apache-2.0 */
/* gcc: -pthread */
/* A thread handles signals on the stack that main() gave it: it lies above the thread's own stack. */
#include "edge.h"
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

static volatile int ticks;
static char *above, *below;
static long all;

static void on_signal(int number)
{
	edge_calls(2);
	ticks++;
}

static void *run(void *arg)
{
	stack_t stack = {.ss_sp = above, .ss_size = 1 << 16};

	sigaltstack(&stack, NULL);
	while (ticks < all)
		edge_calls(200);
	return arg;
}

int main(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
	pthread_attr_t attributes;
	pthread_t thread;

	all = edge_rounds(200, 70);
	below = mmap(NULL, 1 << 21, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	above = below + (1 << 20);
	sigaction(SIGUSR1, &action, NULL);
	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, below, 1 << 19);
	pthread_create(&thread, &attributes, run, NULL);
	while (ticks < all) {
		pthread_kill(thread, SIGUSR1);
		usleep(300);
	}
	pthread_join(thread, NULL);
	return edge_end(1);
}
