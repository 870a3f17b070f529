/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signals.c - signals between actors: links, exits, monitors.
 *
 * Both sides of a link know it; each side changes its own list only, when it links itself or takes the signal.  An
 * ending actor notifies all in its list.
 */
#include "run.h"

#include "trace.h"

#include <stdio.h>
#include <stdlib.h>

bool signal_to(struct actor *self, struct value to, enum signal_kind kind, struct value value, uint64_t number)
{
	struct signal *signal = signal_make(self->scheduler, kind, pid_of(self), value);
	signal->number = number;
	return signal_push(self->runtime, self->scheduler, to, signal);
}

/* ---- relations ---- */

void add_relation(struct actor *self, struct value pid, uint64_t number, bool is_link)
{
	struct relation *relation = malloc(sizeof *relation);
	if (!relation) {
		fputs("actors: no memory for a link\n", stderr);
		abort();
	}
	*relation = (struct relation){self->relations, pid, number, is_link};
	self->relations = relation;
}

static struct relation **find_relation(struct actor *self, struct value pid, uint64_t number, bool is_link)
{
	struct relation **at = &self->relations;
	while (*at && !(is_same((*at)->pid, pid) && (*at)->number == number && (*at)->is_link == is_link))
		at = &(*at)->next;
	return *at ? at : NULL;
}

static bool remove_relation(struct actor *self, struct value pid, uint64_t number, bool is_link)
{
	struct relation **at = find_relation(self, pid, number, is_link);
	if (!at)
		return false;
	struct relation *relation = *at;
	*at = relation->next;
	free(relation);
	return true;
}

void link_to(struct actor *self, struct value pid)
{
	if (is_same(pid, pid_of(self))) {
		trace_link_to_nobody(self, pid);
		return;
	}
	/* Linking twice is reported twice, and changes nothing. */
	if (!find_relation(self, pid, 0, true))
		add_relation(self, pid, 0, true);
	/* The number is the linker itself, for the event that is made when the signal arrives. */
	if (signal_to(self, pid, SIGNAL_LINK, NONE, (uintptr_t)self))
		return;
	trace_link_to_nobody(self, pid);
	signal_to(self, pid_of(self), SIGNAL_LINK_EXIT, ATOM(NOPROC), (uint64_t)number_of(pid));
}

void unlink_from(struct actor *self, struct value pid)
{
	trace_unlink(self, pid);
	if (remove_relation(self, pid, 0, true))
		signal_to(self, pid, SIGNAL_UNLINK, NONE, 0);
}

struct value monitor(struct actor *self, struct value pid)
{
	uint64_t number = next_number(self->runtime);
	if (!signal_to(self, pid, SIGNAL_MONITOR, NONE, number)) {
		struct value ended = TUPLE(&self->heap, pid, ATOM(NOPROC));
		signal_to(self, pid_of(self), SIGNAL_DOWN, ended, number);
	}
	add_relation(self, pid, number, false);
	return immediate(number, TAG_REFERENCE);
}

void demonitor(struct actor *self, struct value reference)
{
	uint64_t number = (uint64_t)number_of(reference);
	for (struct relation *at = self->relations; at; at = at->next) {
		if (!at->is_link && at->number == number) {
			struct value pid = at->pid;
			remove_relation(self, pid, number, false);
			signal_to(self, pid, SIGNAL_DEMONITOR, NONE, number);
			return;
		}
	}
}

void exit_signal(struct actor *self, struct value pid, struct value reason)
{
	struct signal *signal = signal_make(self->scheduler, SIGNAL_EXIT, pid_of(self), reason);
	trace_token_none(signal);
	signal_push(self->runtime, self->scheduler, pid, signal);
	if (is_same(pid, pid_of(self)))
		take_signals(self);
}

/* ---- taking signals ---- */

/* The message is where the actor finds it. */
static void fetch_message(struct actor *self, struct signal *signal)
{
	queue_push(&self->mailbox.inner, signal);
	trace_mailbox(self, ++self->mailbox.inner_count);
}

/*
 * A message from the run-time itself.  cause: the signal whose token it carries; NULL: none.  Its event is made under the
 * mailbox's lock, as those of senders are: all sessions see the messages of an actor in the same order.
 */
static void message_to_self(struct actor *self, struct value message, struct value from, const struct signal *cause)
{
	struct signal *signal = signal_make(self->scheduler, SIGNAL_MESSAGE, from, message);
	if (cause)
		signal->traced = cause->traced;
	lock_take(&self->mailbox.lock);
	trace_signal(self, signal);
	lock_give(&self->mailbox.lock);
	fetch_message(self, signal);
}

/* The value of a signal on the actor's own heap, where it outlives the signal. */
static struct value own_copy(struct actor *self, struct value value)
{
	size_t words = value_words(value);
	uint64_t *at = words ? heap_take(&self->heap, words) : NULL;
	return value_copy(value, &at);
}

/*
 * Handles an exit signal: returns the reason for which the actor ends, or NONE if it lives. kill of exit/2 ends every
 * actor, normal only the sender itself, and other reasons become a message if the actor traps exits.
 */
static struct value take_exit(struct actor *self, struct signal *signal)
{
	struct value reason = own_copy(self, signal->value), from = signal->from;
	bool is_link = signal->kind == SIGNAL_LINK_EXIT, was_linked = is_link;
	if (is_link) {
		if (is_same(from, pid_of(self))) {
			from = immediate(signal->number, TAG_PID);
			was_linked = false;
		}
		if (!remove_relation(self, from, 0, true))
			return NONE;
	} else if (is_same(reason, ATOM(KILL)) && !self->is_outside) {
		return ATOM(KILLED);
	}
	bool is_ignored = is_same(reason, ATOM(NORMAL)) && (is_link || !is_same(from, pid_of(self)));
	if (!self->is_trapping && !is_ignored)
		return reason;
	/* An actor that dies of it reports its exit only. */
	if (was_linked)
		trace_getting_unlinked(self, from);
	if (self->is_trapping)
		message_to_self(self, TUPLE(&self->heap, ATOM(EXIT), from, reason), from, signal);
	return NONE;
}

static void take_down(struct actor *self, struct signal *signal)
{
	struct value pid = element(signal->value, 0), reason = own_copy(self, element(signal->value, 1));
	if (!remove_relation(self, pid, signal->number, false))
		return;
	struct value reference = immediate(signal->number, TAG_REFERENCE);
	message_to_self(self, TUPLE(&self->heap, ATOM(DOWN), reference, ATOM(PROCESS), pid, reason), pid, NULL);
}

/* Handles everything but messages.  Returns the reason to end, or NONE. */
static struct value take_signal(struct actor *self, struct signal *signal)
{
	switch (signal->kind) {
	case SIGNAL_LINK:
		if (!find_relation(self, signal->from, 0, true)) {
			add_relation(self, signal->from, 0, true);
			if (!self->is_ending)
				trace_getting_linked(self, signal->from);
		}
		return NONE;
	case SIGNAL_UNLINK:
		if (remove_relation(self, signal->from, 0, true) && !self->is_ending)
			trace_getting_unlinked(self, signal->from);
		return NONE;
	case SIGNAL_EXIT:
	case SIGNAL_LINK_EXIT: return take_exit(self, signal);
	case SIGNAL_MONITOR:
		/* The number's highest bit: the watched side of a monitor. */
		add_relation(self, signal->from, signal->number | 1ull << 63, false);
		return NONE;
	case SIGNAL_DEMONITOR: remove_relation(self, signal->from, signal->number | 1ull << 63, false); return NONE;
	case SIGNAL_DOWN: take_down(self, signal); return NONE;
	case SIGNAL_TIMEOUT: self->has_timed_out |= signal->number == self->timeout; return NONE;
	case SIGNAL_MESSAGE: break;
	}
	return NONE;
}

void take_signals(struct actor *self)
{
	if (!mailbox_has_news(&self->mailbox))
		return;
	struct signal *signal = take_outer(&self->mailbox), *next;
	for (; signal; signal = next) {
		next = signal->next;
		if (signal->kind == SIGNAL_MESSAGE) {
			fetch_message(self, signal);
			continue;
		}
		struct value reason = take_signal(self, signal);
		signal_free(self->scheduler, signal);
		if (!is_none(reason)) {
			self->unheard = next;
			actor_end(self, reason);
		}
	}
}

/* ---- the end ---- */

static void tell_end(struct actor *self, const struct relation *relation, struct value reason)
{
	if (relation->is_link) {
		struct signal *signal = signal_make(self->scheduler, SIGNAL_LINK_EXIT, pid_of(self), reason);
		trace_token_exits(self, relation->pid, signal);
		signal_push(self->runtime, self->scheduler, relation->pid, signal);
	} else if (relation->number >> 63) {
		struct value ended = TUPLE(&self->heap, pid_of(self), reason);
		signal_to(self, relation->pid, SIGNAL_DOWN, ended, relation->number & ~(1ull << 63));
	} else {
		signal_to(self, relation->pid, SIGNAL_DEMONITOR, NONE, relation->number);
	}
}

/* Actors that linked or want to watch, and whose signals came too late, are notified as well. */
static void hear_last(struct actor *self, struct signal *signal)
{
	while (signal) {
		struct signal *next = signal->next;
		if (signal->kind == SIGNAL_LINK || signal->kind == SIGNAL_UNLINK || signal->kind == SIGNAL_MONITOR ||
		    signal->kind == SIGNAL_DEMONITOR)
			take_signal(self, signal);
		signal_free(self->scheduler, signal);
		signal = next;
	}
}

void say_goodbye(struct actor *self, struct value reason)
{
	lock_take(&self->mailbox.lock);
	/* RELAXED actors.closed: under the lock. */
	store_relaxed(&self->mailbox.is_closed, true);
	lock_give(&self->mailbox.lock);
	self->is_ending = true;
	trace_exiting(self, reason);
	names_forget(self);
	ports_forget(self);
	hear_last(self, self->unheard);
	hear_last(self, take_outer(&self->mailbox));
	while (self->relations) {
		struct relation *relation = self->relations;
		self->relations = relation->next;
		tell_end(self, relation, reason);
		free(relation);
	}
}
