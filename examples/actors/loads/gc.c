/* SPDX-License-Identifier: Apache-2.0 */
/* gc.c - actors that keep a list over many messages and drop another, so that their heaps are collected. */
#include "../loads.h"

#include <inttypes.h>
#include <stdio.h>

#define KEPT_COUNT 200

static struct value build(struct heap *heap, int64_t count, int64_t seed)
{
	struct value list = NIL;
	for (int64_t i = 0; i < count; i++)
		list = cons(heap, TUPLE(heap, integer(i), integer(seed + i)), list);
	return list;
}

static int64_t sum_of(struct value list)
{
	int64_t sum = 0;
	for (; is_box(list, BOX_CONS); list = tail(list))
		sum += number_of(element(head(list), 1)) - number_of(element(head(list), 0));
	return sum;
}

static struct function keeper_function;
/* keeper(Kept, Collector): answers {ok, Steps} when N is 0; else throws a list away and sends N - 1 to
 * itself. */
static struct value keeper(struct actor *self, const struct value *arguments)
{
	int64_t left = number_of(receive(self));
	struct value garbage = build(heap_of(self), 20, left);
	if (sum_of(arguments[0]) != KEPT_COUNT * 7 || sum_of(garbage) != 20 * left)
		raise_error(self, ATOM(BADARG));
	if (left == 0 || is_time_over()) {
		send_to(self, arguments[1], TUPLE(heap_of(self), ATOM(OK), integer(left)));
		return ATOM(OK);
	}
	send_to(self, self_pid(self), integer(left - 1));
	/* At times the kept list is replaced, and the old one becomes garbage in the old heap. */
	struct value kept = left % 64 ? arguments[0] : build(heap_of(self), KEPT_COUNT, 7);
	return tail_call(self, &keeper_function, kept, arguments[1]);
}
static struct function keeper_function = FUNCTION("gc", "keeper", 2, keeper);

static void declare(void)
{
	module_load((struct function *const[]){&keeper_function}, 1);
}

static struct load_result run(struct actor *outside, const struct load_options *options)
{
	struct load_result result = {0};
	uint64_t steps = options->messages / options->actors, left = 0;
	struct value kept = build(heap_of(outside), KEPT_COUNT, 7);
	for (uint64_t i = 0; i < options->actors; i++) {
		struct value pid = spawn(outside, &keeper_function, kept, self_pid(outside));
		send_to(outside, pid, integer((int64_t)steps));
	}
	result.is_right = wait_for_done(outside, options, options->actors, &left);
	result.is_right &= options->seconds > 0 || left == 0;
	result.messages = steps * options->actors - left;
	result.calls = result.messages;
	snprintf(result.text, sizeof result.text, "every list was whole after %" PRIu64 " collections",
		 runtime_figures(runtime_of(outside)).collections);
	return result;
}

const struct load gc_load = {"gc", "heaps that are collected", 20, 200000, run, declare};
