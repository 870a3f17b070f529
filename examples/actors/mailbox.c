/* SPDX-License-Identifier: Apache-2.0 */
/* mailbox.c - signals on their way to an actor. */
#include "run.h"

#include "trace.h"

#include <stdio.h>
#include <stdlib.h>

/* Small signals are reused by the thread that freed them. */
#define SMALL_WORDS 16
#define FREE_MAX    1024

static void queue_init(struct queue *queue)
{
	queue->first = NULL;
	queue->last = &queue->first;
}

void queue_push(struct queue *queue, struct signal *signal)
{
	signal->next = NULL;
	*queue->last = signal;
	queue->last = &signal->next;
}

void mailbox_init(struct mailbox *mailbox)
{
	queue_init(&mailbox->outer);
	queue_init(&mailbox->inner);
	mailbox->is_waiting = false;
	/* RELAXED actors.closed: under the lock, here and where it decides. */
	store_relaxed(&mailbox->is_closed, false);
	mailbox->taken = 0;
	mailbox->inner_count = 0;
	/* RELAXED actors.news: no other thread has the mailbox yet. */
	store_relaxed(&mailbox->pushed, 0);
}

static void free_all(struct signal *signal)
{
	while (signal) {
		struct signal *next = signal->next;
		signal_free(NULL, signal);
		signal = next;
	}
}

void mailbox_fini(struct mailbox *mailbox)
{
	free_all(take_outer(mailbox));
	free_all(mailbox->inner.first);
	queue_init(&mailbox->inner);
}

struct signal *signal_make(struct scheduler *scheduler, enum signal_kind kind, struct value from, struct value value)
{
	size_t words = value_words(value);
	struct signal *signal;
	if (words <= SMALL_WORDS && scheduler && scheduler->free_signals) {
		signal = scheduler->free_signals;
		scheduler->free_signals = signal->next;
		scheduler->free_count--;
	} else {
		size_t capacity = words > SMALL_WORDS ? words : SMALL_WORDS;
		signal = malloc(sizeof *signal + capacity * 8);
		if (!signal) {
			fputs("actors: no memory for a message\n", stderr);
			abort();
		}
		signal->words.capacity = capacity;
	}
	signal->kind = kind;
	signal->from = from;
	signal->number = 0;
	trace_signal_made(signal);
	signal->words.block = signal;
	signal->words.used = words;
	uint64_t *at = signal->words.data;
	signal->value = value_copy(value, &at);
	return signal;
}

void signal_free(struct scheduler *scheduler, struct signal *signal)
{
	if (scheduler && signal->words.capacity == SMALL_WORDS && scheduler->free_count < FREE_MAX) {
		signal->next = scheduler->free_signals;
		scheduler->free_signals = signal;
		scheduler->free_count++;
	} else {
		free(signal);
	}
}

bool signal_push(struct runtime *runtime, struct scheduler *by, struct value to, struct signal *signal)
{
	struct actor *actor = slot_of(runtime, to);
	if (!actor)
		goto nobody;
	struct mailbox *mailbox = &actor->mailbox;
	lock_take(&mailbox->lock);
	/* RELAXED actors.pid, actors.closed: written under this lock only. */
	if (load_relaxed(&mailbox->is_closed) || load_relaxed(&actor->pid) != to.word) {
		lock_give(&mailbox->lock);
		goto nobody;
	}
	trace_signal(actor, signal);
	queue_push(&mailbox->outer, signal);
	/* RELAXED actors.news: a hint for readers; written under the lock. */
	store_relaxed(&mailbox->pushed, load_relaxed(&mailbox->pushed) + 1);
	bool is_waiting = mailbox->is_waiting;
	mailbox->is_waiting = false;
	lock_give(&mailbox->lock);
	if (is_waiting)
		make_runnable(runtime, by, actor);
	return true;
nobody:
	signal_free(by, signal);
	return false;
}

struct signal *take_outer(struct mailbox *mailbox)
{
	lock_take(&mailbox->lock);
	struct signal *first = mailbox->outer.first;
	queue_init(&mailbox->outer);
	/* RELAXED actors.news: under the lock. */
	mailbox->taken = load_relaxed(&mailbox->pushed);
	lock_give(&mailbox->lock);
	return first;
}

bool mailbox_wait(struct mailbox *mailbox)
{
	lock_take(&mailbox->lock);
	bool is_empty = mailbox->outer.first == NULL;
	mailbox->is_waiting = is_empty;
	lock_give(&mailbox->lock);
	return is_empty;
}
