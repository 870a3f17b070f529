/* SPDX-License-Identifier: Apache-2.0 */
/*
 * busy.c - the load for millions of events: as many tokens as actors, each goes to another actor at every step, and
 * each step is a message, two calls and sometimes a switch.
 */
#include "../loads.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Written before the first message is sent, and only read after. */
static struct value *pids;
static uint64_t pid_count;

/* work(N): a result that depends on N. */
static struct value work(struct actor *self, const struct value *arguments)
{
	return integer((number_of(arguments[0]) * 31 + 7) & 0xffffff);
}
static struct function work_function = LOCAL_FUNCTION("busy", "work", 1, work);

static struct function member_function;
/* member(Collector): receives {Steps, Number}. */
static struct value member(struct actor *self, const struct value *arguments)
{
	struct value token = receive(self);
	int64_t left = number_of(element(token, 0));
	if (left == 0 || is_time_over()) {
		send_to(self, arguments[0], TUPLE(heap_of(self), ATOM(OK), integer(left)));
	} else {
		struct value next = call(self, &work_function, element(token, 1));
		struct value to = pids[(uint64_t)number_of(next) % pid_count];
		send_to(self, to, TUPLE(heap_of(self), integer(left - 1), next));
	}
	return tail_call(self, &member_function, arguments[0]);
}
static struct function member_function = FUNCTION("busy", "member", 1, member);

static void declare(void)
{
	module_load((struct function *const[]){&work_function, &member_function}, 2);
}

static struct load_result run(struct actor *outside, const struct load_options *options)
{
	struct load_result result = {0};
	uint64_t count = options->actors, steps = options->messages / count, left = 0;
	pids = calloc(count, sizeof *pids);
	if (!pids)
		return result;
	pid_count = count;
	for (uint64_t i = 0; i < count; i++)
		pids[i] = spawn(outside, &member_function, self_pid(outside));
	for (uint64_t i = 0; i < count; i++)
		send_to(outside, pids[i], TUPLE(heap_of(outside), integer((int64_t)steps), integer((int64_t)i)));
	result.is_right = wait_for_done(outside, options, count, &left);
	result.is_right &= options->seconds > 0 || left == 0;
	result.messages = steps * count - left;
	result.calls = result.messages * 2;
	snprintf(result.text, sizeof result.text, "%" PRIu64 " tokens made %" PRIu64 " steps", count, result.messages);
	return result;
}

const struct load busy_load = {"busy", "messages and calls as fast as they go", 64, 5000000, run, declare};
