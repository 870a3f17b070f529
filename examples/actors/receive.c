/* SPDX-License-Identifier: Apache-2.0 */
/* receive.c - sending and receiving messages. */
#include "run.h"

#include "trace.h"

#include <errno.h>
#include <time.h>

/* ---- sending ---- */

static void spend(struct actor *self, int reductions)
{
	self->reductions -= reductions;
	if (self->reductions <= 0 && !self->is_outside)
		yield(self);
}

void send_to(struct actor *self, struct value to, struct value message)
{
	struct value pid = to;
	spend(self, 1);
	if (tag_of(to) == TAG_ATOM)
		pid = name_find(self->runtime, to);
	trace_send(self, to, pid, message);
	if (!is_pid(pid))
		raise_error(self, ATOM(BADARG));
	struct signal *signal = signal_make(self->scheduler, SIGNAL_MESSAGE, pid_of(self), message);
	trace_token_sent(self, pid, signal);
	signal_push(self->runtime, self->scheduler, pid, signal);
}

/* ---- receiving ---- */

/* Takes the message out of the signal: small ones move to the heap, big ones become part of it. */
static struct value open_signal(struct actor *self, struct signal *signal)
{
	struct value value = signal->value;
	size_t words = signal->words.used;
	if (words > (size_t)(self->heap.young.end - self->heap.young.at)) {
		heap_adopt(&self->heap, &signal->words);
		return value;
	}
	if (words) {
		uint64_t *at = heap_take(&self->heap, words);
		value = value_copy(value, &at);
	}
	signal_free(self->scheduler, signal);
	return value;
}

static struct value take_message(struct actor *self, struct signal **at)
{
	struct queue *inner = &self->mailbox.inner;
	struct signal *signal = *at;
	*at = signal->next;
	if (!*at)
		inner->last = at;
	trace_mailbox(self, --self->mailbox.inner_count);
	trace_token_received(self, signal);
	return open_signal(self, signal);
}

/*
 * The first matching message from *at on, which moves over the others and counts them; takes signals at the end of the
 * queue.
 */
static struct value look_for(struct actor *self, struct signal ***at, uint64_t *skipped, wanted *wanted,
			     struct value context)
{
	for (;;) {
		for (; **at; *at = &(**at)->next, ++*skipped) {
			if (!wanted || wanted((**at)->value, context)) {
				if (!self->is_outside)
					trace_take(*skipped);
				return take_message(self, *at);
			}
		}
		if (!mailbox_has_news(&self->mailbox))
			return NONE;
		take_signals(self);
	}
}

static void start_timeout(struct actor *self, int64_t timeout_ms)
{
	struct signal *signal = signal_make(self->scheduler, SIGNAL_TIMEOUT, NONE, NONE);
	self->has_timed_out = false;
	self->timeout = timer_start(self->runtime, timeout_ms, pid_of(self), signal);
}

static void stop_timeout(struct actor *self)
{
	if (self->timeout)
		timer_cancel(self->runtime, self->timeout);
	self->timeout = 0;
}

struct value receive_match(struct actor *self, wanted *wanted, struct value context, int64_t timeout_ms)
{
	struct signal **at = &self->mailbox.inner.first;
	uint64_t skipped = 0;
	KEEP(self, context);
	spend(self, 1);
	if (heap_is_full(&self->heap))
		collect(self, false);
	for (;;) {
		struct value message = look_for(self, &at, &skipped, wanted, context);
		if (!is_none(message)) {
			stop_timeout(self);
			return message;
		}
		if (timeout_ms == 0 || self->has_timed_out)
			break;
		if (timeout_ms > 0 && !self->timeout)
			start_timeout(self, timeout_ms);
		trace_wait();
		if (!mailbox_has_news(&self->mailbox))
			leave(self, LEAVE_WAIT);
	}
	self->has_timed_out = false;
	self->timeout = 0;
	trace_timeout(self);
	return NONE;
}

struct value receive(struct actor *self)
{
	return receive_match(self, NULL, NONE, FOREVER);
}

struct value receive_value(struct actor *self, struct value value, int64_t timeout_ms)
{
	return receive_match(self, is_equal, value, timeout_ms);
}

void yield(struct actor *self)
{
	leave(self, LEAVE_YIELD);
	take_signals(self);
}

/* ---- outside ---- */

static bool is_waiting(struct mailbox *mailbox)
{
	lock_take(&mailbox->lock);
	bool is = mailbox->is_waiting;
	lock_give(&mailbox->lock);
	return is;
}

/* Waits until a signal comes; false: the time is over. */
static bool wait_outside(struct actor *self, const struct timespec *until)
{
	int error = 0;
	if (!mailbox_wait(&self->mailbox))
		return true;
	pthread_mutex_lock(&self->outside_lock);
	while (is_waiting(&self->mailbox) && error != ETIMEDOUT) {
		error = until ? pthread_cond_clockwait(&self->called, &self->outside_lock, CLOCK_MONOTONIC, until)
			      : pthread_cond_wait(&self->called, &self->outside_lock);
	}
	pthread_mutex_unlock(&self->outside_lock);
	lock_take(&self->mailbox.lock);
	self->mailbox.is_waiting = false;
	lock_give(&self->mailbox.lock);
	return error != ETIMEDOUT || mailbox_has_news(&self->mailbox);
}

static struct timespec in_so_long(int64_t ms)
{
	struct timespec at;
	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_sec += ms / 1000;
	at.tv_nsec += ms % 1000 * 1000000;
	if (at.tv_nsec >= 1000000000) {
		at.tv_sec++;
		at.tv_nsec -= 1000000000;
	}
	return at;
}

static struct value receive_outside(struct actor *self, wanted *wanted, struct value context, int64_t timeout_ms)
{
	struct timespec until = in_so_long(timeout_ms > 0 ? timeout_ms : 0);
	struct signal **at = &self->mailbox.inner.first;
	uint64_t skipped = 0;
	KEEP(self, context);
	if (heap_is_full(&self->heap))
		collect(self, false);
	for (;;) {
		struct value message = look_for(self, &at, &skipped, wanted, context);
		if (!is_none(message))
			return message;
		if (timeout_ms == 0 || !wait_outside(self, timeout_ms < 0 ? NULL : &until))
			return NONE;
	}
}

bool outside_receive(struct actor *self, int64_t timeout_ms, struct value *message)
{
	struct value found = receive_outside(self, NULL, NONE, timeout_ms);
	if (is_none(found))
		return false;
	*message = found;
	return true;
}

/* ---- the runner ---- */

static bool is_answer(struct value message, struct value pid)
{
	return is_tagged(message, ATOM(RAN), 3) && is_same(element(message, 1), pid);
}

struct value outside_run(struct actor *self, struct value pid, fun_code *code, struct value environment,
			 int64_t timeout_ms)
{
	struct value work = fun(&self->heap, code, environment);
	send_to(self, pid, TUPLE(&self->heap, ATOM(RUN), pid_of(self), work));
	return element(receive_outside(self, is_answer, pid, timeout_ms), 2);
}

static struct value call_it(struct actor *self, struct value work)
{
	return fun_call(self, work);
}

static bool is_work(struct value message, struct value context)
{
	return is_same(message, ATOM(STOP)) || is_tagged(message, ATOM(RUN), 3);
}

/* loop() -> receive {run, P, F} -> P ! {ran, self(), catch F()}, loop(); stop -> ok end. */
static struct value run_what_is_sent(struct actor *self, const struct value *arguments)
{
	struct value message = receive_match(self, is_work, NONE, FOREVER);
	if (is_same(message, ATOM(STOP)))
		return ATOM(OK);
	KEEP(self, message);
	struct value result = catch_call(self, call_it, element(message, 2));
	send_to(self, element(message, 1), TUPLE(&self->heap, ATOM(RAN), pid_of(self), result));
	return tail_call(self, &run_loop);
}

struct function run_loop = FUNCTION("runner", "loop", 0, run_what_is_sent);
