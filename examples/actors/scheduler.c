/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scheduler.c - threads that run actors.
 *
 * Each has a queue.  One that finds its own empty takes half of another's, and if all are empty it sleeps.  No actor is
 * missed: a sleeper counts itself and then checks every queue under its lock, and a thread that queues an actor checks
 * the count after it had that lock; one of the two sees the other.
 */
#include "run.h"

#include "trace.h"

#include <stdlib.h>
#include <unistd.h>

static void queue_actor(struct run_queue *queue, struct actor *first, struct actor **last, unsigned count)
{
	*last = NULL;
	lock_take(&queue->lock);
	*queue->last = first;
	queue->last = last;
	/* RELAXED actors.queued: written under the lock; without it, a hint. */
	store_relaxed(&queue->count, load_relaxed(&queue->count) + count);
	lock_give(&queue->lock);
}

/* Takes up to `most`; returns their number. */
static unsigned unqueue(struct run_queue *queue, unsigned most, struct actor **first, struct actor ***last)
{
	unsigned count = 0;
	lock_take(&queue->lock);
	*first = queue->first;
	struct actor **at = &queue->first;
	while (*at && count < most) {
		at = &(*at)->next;
		count++;
	}
	if (count) {
		*last = at;
		queue->first = *at;
		if (!queue->first)
			queue->last = &queue->first;
		**last = NULL;
		/* RELAXED actors.queued: under the lock. */
		store_relaxed(&queue->count, load_relaxed(&queue->count) - count);
	}
	lock_give(&queue->lock);
	return count;
}

static void call_sleeper(struct runtime *runtime)
{
	/* RELAXED actors.sleepers: ordered by the locks of the queues, see the top of this file. */
	if (load_relaxed(&runtime->sleepers) == 0)
		return;
	pthread_mutex_lock(&runtime->idle_lock);
	/* RELAXED actors.sleepers: under the lock. */
	unsigned sleepers = load_relaxed(&runtime->sleepers);
	if (sleepers) {
		store_relaxed(&runtime->sleepers, sleepers - 1);
		runtime->calls++;
		pthread_cond_signal(&runtime->idle);
	}
	pthread_mutex_unlock(&runtime->idle_lock);
}

void make_runnable(struct runtime *runtime, struct scheduler *by, struct actor *actor)
{
	if (actor->is_outside) {
		pthread_mutex_lock(&actor->outside_lock);
		pthread_cond_signal(&actor->called);
		pthread_mutex_unlock(&actor->outside_lock);
		return;
	}
	struct scheduler *to = by;
	if (!to || runtime->options.is_restless) {
		/* RELAXED actors.turn: any scheduler will do. */
		unsigned turn = add_relaxed(&runtime->next_scheduler, 1);
		to = runtime->schedulers[turn % runtime->options.schedulers];
	}
	queue_actor(&to->queue, actor, &actor->next, 1);
	/*
	 * The next actor in a scheduler's own queue runs when the present one waits: other schedulers help from two on.
	 */
	/* RELAXED actors.queued: a hint. */
	if (to != by || load_relaxed(&to->queue.count) > 1)
		call_sleeper(runtime);
}

static struct actor *steal(struct scheduler *self)
{
	struct runtime *runtime = self->runtime;
	unsigned schedulers = runtime->options.schedulers;
	for (unsigned i = 1; i < schedulers; i++) {
		struct run_queue *queue = &runtime->schedulers[(self->index + i) % schedulers]->queue;
		struct actor *first, **last;
		/* RELAXED actors.queued: a hint. */
		unsigned count = unqueue(queue, (load_relaxed(&queue->count) + 1) / 2, &first, &last);
		if (count == 0)
			continue;
		count_up(&self->stolen, count);
		if (count > 1) {
			queue_actor(&self->queue, first->next, last, count - 1);
			call_sleeper(runtime);
		}
		return first;
	}
	return NULL;
}

static struct actor *own(struct scheduler *self)
{
	struct actor *actor, **last;
	return unqueue(&self->queue, 1, &actor, &last) ? actor : NULL;
}

/* With the idle lock held and counted as a sleeper: is any actor queued? */
static bool is_work_there(struct runtime *runtime)
{
	bool is_there = false;
	for (unsigned i = 0; i < runtime->options.schedulers && !is_there; i++) {
		struct run_queue *queue = &runtime->schedulers[i]->queue;
		lock_take(&queue->lock);
		is_there = queue->first != NULL;
		lock_give(&queue->lock);
	}
	return is_there;
}

/* False: the run-time stops. */
static bool sleep_until_called(struct scheduler *self)
{
	struct runtime *runtime = self->runtime;
	pthread_mutex_lock(&runtime->idle_lock);
	/* RELAXED actors.sleepers: under the lock, and see the top of this file. */
	add_relaxed(&runtime->sleepers, 1);
	if (is_work_there(runtime) || runtime->is_stopping) {
		/* It was counted a moment ago, and cannot have been called meanwhile. */
		add_relaxed(&runtime->sleepers, -1u);
	} else {
		count_up(&self->sleeps, 1);
		while (runtime->calls == 0 && !runtime->is_stopping)
			pthread_cond_wait(&runtime->idle, &runtime->idle_lock);
		if (runtime->calls)
			runtime->calls--;
	}
	bool goes_on = !runtime->is_stopping;
	pthread_mutex_unlock(&runtime->idle_lock);
	return goes_on;
}

static void run(struct scheduler *self, struct actor *actor)
{
	count_up(&self->switches, 1);
	self->running = actor;
	actor->scheduler = self;
	actor->reductions = (int)self->runtime->options.reductions;
	trace_in(actor);
	fiber_switch(&self->fiber, &actor->fiber);
	self->running = NULL;
	if (actor->leave == LEAVE_END) {
		actor_bury(actor);
		return;
	}
	trace_out(actor);
	if (actor->leave == LEAVE_YIELD || !mailbox_wait(&actor->mailbox))
		make_runnable(self->runtime, self, actor);
}

static void *run_actors(void *context)
{
	struct scheduler *self = context;
	trace_scheduler();
	fiber_init_thread(&self->fiber);
	do {
		struct actor *actor;
		while ((actor = own(self)) || (actor = steal(self)))
			run(self, actor);
	} while (sleep_until_called(self));
	return NULL;
}

void leave(struct actor *self, enum leave why)
{
	self->leave = why;
	if (why == LEAVE_END)
		fiber_leave(&self->fiber, &self->scheduler->fiber);
	fiber_switch(&self->fiber, &self->scheduler->fiber);
}

int schedulers_start(struct runtime *runtime)
{
	unsigned count = runtime->options.schedulers;
	for (unsigned i = 0; i < count; i++) {
		struct scheduler *scheduler = aligned_alloc(64, (sizeof *scheduler + 63) / 64 * 64);
		if (!scheduler)
			return 0;
		*scheduler = (struct scheduler){.runtime = runtime, .index = i};
		scheduler->queue.last = &scheduler->queue.first;
		runtime->schedulers[i] = scheduler;
	}
	for (unsigned i = 0; i < count; i++) {
		if (pthread_create(&runtime->schedulers[i]->thread, NULL, run_actors, runtime->schedulers[i]) != 0)
			return 0;
		runtime->started++;
	}
	return 1;
}

void schedulers_stop(struct runtime *runtime)
{
	pthread_mutex_lock(&runtime->idle_lock);
	runtime->is_stopping = true;
	pthread_cond_broadcast(&runtime->idle);
	pthread_mutex_unlock(&runtime->idle_lock);
	for (unsigned i = 0; i < runtime->started; i++)
		pthread_join(runtime->schedulers[i]->thread, NULL);
	for (unsigned i = 0; i < SCHEDULERS_MAX; i++) {
		struct scheduler *scheduler = runtime->schedulers[i];
		while (scheduler && scheduler->free_signals) {
			struct signal *signal = scheduler->free_signals;
			scheduler->free_signals = signal->next;
			free(signal);
		}
		free(scheduler);
	}
}
