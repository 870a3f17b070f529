/* SPDX-License-Identifier: Apache-2.0 */
/* ring.c - one token goes round a ring of actors: the cost of a message and a switch, without concurrency. */
#include "../loads.h"

#include <inttypes.h>
#include <stdio.h>

/* pass(Next, Left): one step of the token. */
static struct value pass(struct actor *self, const struct value *arguments)
{
	send_to(self, arguments[0], integer(number_of(arguments[1]) - 1));
	return ATOM(OK);
}
static struct function pass_function = FUNCTION("ring", "pass", 2, pass);

static struct function member_function;

/*
 * member(Next, Collector): passes the token on, decremented, until it is 0.  Then the end goes round, as {Left,Pid} of
 * the actor where it began: each passes it on and returns, and the last one reports.
 */
static struct value member(struct actor *self, const struct value *arguments)
{
	struct value token = receive(self);
	if (is_integer(token) && number_of(token) > 0 && !is_time_over()) {
		call(self, &pass_function, arguments[0], token);
		return tail_call(self, &member_function, arguments[0], arguments[1]);
	}
	if (is_integer(token))
		token = TUPLE(heap_of(self), token, self_pid(self));
	if (is_equal(element(token, 1), arguments[0]))
		send_to(self, arguments[1], TUPLE(heap_of(self), ATOM(OK), element(token, 0)));
	else
		send_to(self, arguments[0], token);
	return ATOM(OK);
}
static struct function member_function = FUNCTION("ring", "member", 2, member);

/* first(Collector): receives its left neighbour. */
static struct value first(struct actor *self, const struct value *arguments)
{
	struct value next = receive(self);
	return tail_call(self, &member_function, next, arguments[0]);
}
static struct function first_function = FUNCTION("ring", "first", 1, first);

static void declare(void)
{
	module_load((struct function *const[]){&member_function, &pass_function, &first_function}, 3);
}

static struct load_result run(struct actor *outside, const struct load_options *options)
{
	struct load_result result = {0};
	uint64_t left = 0;
	struct value collector = self_pid(outside), head = spawn(outside, &first_function, collector), next = head;
	for (uint64_t i = 1; i < options->actors; i++)
		next = spawn(outside, &member_function, next, collector);
	send_to(outside, head, next);
	send_to(outside, head, integer((int64_t)options->messages));
	result.is_right = wait_for_done(outside, options, 1, &left);
	result.messages = options->messages - left;
	result.calls = 2 * result.messages;
	result.is_right &= options->seconds > 0 || left == 0;
	snprintf(result.text, sizeof result.text, "the token made %" PRIu64 " steps through %" PRIu64 " actors",
		 result.messages, options->actors);
	return result;
}

const struct load ring_load = {"ring", "a token goes round a ring", 100, 1000000, run, declare};
