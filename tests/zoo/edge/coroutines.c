/* SPDX-License-Identifier: Apache-2.0 */
/* gcc: -pthread */
/* Coroutines (swapcontext) that move from thread to thread, each in the middle of its calls. */
#include "edge.h"
#include <pthread.h>
#include <ucontext.h>

enum { COROUTINES = 16, TURNS = 200 };

static struct coroutine {
	ucontext_t context, *back;
	char stack[1 << 16];
	long turns;
	int is_over;
} all[COROUTINES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int queue[COROUTINES * 2], first, count, over;

static __attribute__((noinline)) void body(struct coroutine *c, int depth)
{
	edge_call(depth);
	if (depth)
		body(c, depth - 1);
	else
		swapcontext(&c->context, c->back);
	edge_call(depth);
}

static void start(int number)
{
	struct coroutine *c = &all[number];

	for (; c->turns < TURNS; c->turns++)
		body(c, 5);
	c->is_over = 1;
	swapcontext(&c->context, c->back);
}

static void *run(void *arg)
{
	ucontext_t own;

	for (;;) {
		int which = -1;

		pthread_mutex_lock(&lock);
		if (count) {
			which = queue[first];
			first = (first + 1) % COROUTINES;
			count--;
		} else if (over == COROUTINES) {
			pthread_mutex_unlock(&lock);
			return arg;
		}
		pthread_mutex_unlock(&lock);
		if (which < 0)
			continue;
		all[which].back = &own;
		swapcontext(&own, &all[which].context);
		pthread_mutex_lock(&lock);
		if (all[which].is_over)
			over++;
		else
			queue[(first + count++) % COROUTINES] = which;
		pthread_mutex_unlock(&lock);
	}
}

int main(void)
{
	pthread_t threads[3];

	for (int i = 0; i < COROUTINES; i++) {
		getcontext(&all[i].context);
		all[i].context.uc_stack.ss_sp = all[i].stack;
		all[i].context.uc_stack.ss_size = sizeof all[i].stack;
		makecontext(&all[i].context, (void (*)(void))start, 1, i);
		queue[count++] = i;
	}
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	return edge_end(over == COROUTINES);
}
