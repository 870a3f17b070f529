/* SPDX-License-Identifier: Apache-2.0 */
/* timer.c - a binary heap of timers, under the poller's lock. */
#include "poller.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void swap(struct timer *a, struct timer *b)
{
	struct timer old = *a;
	*a = *b;
	*b = old;
}

static void sift_up(struct poller *poller, size_t at)
{
	struct timer *timers = poller->timers;
	for (; at && timers[at].at_ms < timers[(at - 1) / 2].at_ms; at = (at - 1) / 2)
		swap(&timers[at], &timers[(at - 1) / 2]);
}

static void sift_down(struct poller *poller, size_t at)
{
	struct timer *timers = poller->timers;
	for (;;) {
		size_t least = at;
		for (size_t child = at * 2 + 1; child <= at * 2 + 2 && child < poller->timer_count; child++) {
			if (timers[child].at_ms < timers[least].at_ms)
				least = child;
		}
		if (least == at)
			return;
		swap(&timers[at], &timers[least]);
		at = least;
	}
}

static struct timer take_timer(struct poller *poller, size_t at)
{
	struct timer timer = poller->timers[at];
	poller->timers[at] = poller->timers[--poller->timer_count];
	if (at < poller->timer_count) {
		sift_up(poller, at);
		sift_down(poller, at);
	}
	return timer;
}

static void make_space(struct poller *poller)
{
	if (poller->timer_count < poller->timer_capacity)
		return;
	poller->timer_capacity = poller->timer_capacity ? poller->timer_capacity * 2 : 64;
	poller->timers = realloc(poller->timers, poller->timer_capacity * sizeof *poller->timers);
	if (!poller->timers) {
		fputs("actors: no memory for a timer\n", stderr);
		abort();
	}
}

uint64_t timer_start(struct runtime *runtime, int64_t ms, struct value to, struct signal *signal)
{
	struct poller *poller = runtime->poller;
	uint64_t number = next_number(runtime);
	signal->number = number;
	pthread_mutex_lock(&poller->lock);
	make_space(poller);
	size_t at = poller->timer_count++;
	/* A millisecond has begun already: at least this long. */
	poller->timers[at] = (struct timer){now_ms() + ms + 1, number, to, signal};
	sift_up(poller, at);
	bool is_next = poller->timers[0].number == number;
	pthread_mutex_unlock(&poller->lock);
	if (is_next)
		poller_wake(poller);
	return number;
}

bool timer_cancel(struct runtime *runtime, uint64_t number)
{
	struct poller *poller = runtime->poller;
	struct signal *signal = NULL;
	pthread_mutex_lock(&poller->lock);
	for (size_t at = 0; at < poller->timer_count && !signal; at++) {
		if (poller->timers[at].number == number)
			signal = take_timer(poller, at).signal;
	}
	pthread_mutex_unlock(&poller->lock);
	if (signal)
		signal_free(NULL, signal);
	return signal != NULL;
}

int timers_run(struct poller *poller)
{
	for (;;) {
		struct timer due = {0};
		int64_t wait_ms = -1;
		pthread_mutex_lock(&poller->lock);
		if (poller->timer_count) {
			wait_ms = poller->timers[0].at_ms - now_ms();
			if (wait_ms <= 0)
				due = take_timer(poller, 0);
		}
		pthread_mutex_unlock(&poller->lock);
		if (!due.signal)
			return wait_ms > INT_MAX ? INT_MAX : (int)wait_ms;
		struct value to = due.to;
		if (tag_of(to) == TAG_ATOM)
			to = name_find(poller->runtime, to);
		signal_push(poller->runtime, NULL, to, due.signal);
	}
}

void timers_fini(struct poller *poller)
{
	for (size_t i = 0; i < poller->timer_count; i++)
		signal_free(NULL, poller->timers[i].signal);
	free(poller->timers);
}

struct value send_after(struct actor *self, int64_t ms, struct value to, struct value message)
{
	struct signal *signal = signal_make(self->scheduler, SIGNAL_MESSAGE, NONE, message);
	return immediate(timer_start(self->runtime, ms, to, signal), TAG_REFERENCE);
}

bool cancel_timer(struct actor *self, struct value reference)
{
	return timer_cancel(self->runtime, (uint64_t)number_of(reference));
}
