/* SPDX-License-Identifier: Apache-2.0 */
/* self.c - actors that send to themselves: the path of a message, without a switch and without a call. */
#include "../loads.h"

#include <inttypes.h>
#include <stdio.h>

/* talker(Collector, Messages) */
static struct value talker(struct actor *self, const struct value *arguments)
{
	int64_t left = number_of(arguments[1]), lost = 0;
	for (; left > 0 && !is_time_over(); left--) {
		send_to(self, self_pid(self), integer(left));
		lost += number_of(receive(self)) != left;
	}
	left = lost ? -1 : left;
	send_to(self, arguments[0], TUPLE(heap_of(self), ATOM(OK), integer(left)));
	return ATOM(OK);
}
static struct function talker_function = FUNCTION("self", "talker", 2, talker);

static void declare(void)
{
	module_load((struct function *const[]){&talker_function}, 1);
}

static struct load_result run(struct actor *outside, const struct load_options *options)
{
	struct load_result result = {0};
	uint64_t each = options->messages / options->actors, left = 0;
	for (uint64_t i = 0; i < options->actors; i++)
		spawn(outside, &talker_function, self_pid(outside), integer((int64_t)each));
	result.is_right = wait_for_done(outside, options, options->actors, &left);
	result.is_right &= options->seconds > 0 || left == 0;
	result.messages = each * options->actors - left;
	snprintf(result.text, sizeof result.text, "%" PRIu64 " actors sent %" PRIu64 " messages to themselves",
		 options->actors, result.messages);
	return result;
}

const struct load self_load = {"self", "actors send to themselves", 1, 5000000, run, declare};
