/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Collections keep reachable terms unchanged and free the rest; an actor that grows beyond its limit is killed.
 * Method	An actor changes a table of random values, most of which share parts, and compares each with a second
 *	copy built from the same numbers, over hundreds of collections.  The seed is printed, and taken as an argument.
 */
#include "bed.h"

#include <stdlib.h>
#include <time.h>

#define VALUES 40
#define STEPS  20000

static unsigned seed;

static uint32_t draw(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

/* The same value for the same number, in any heap. */
static struct value build(struct heap *heap, uint32_t number, unsigned depth)
{
	uint32_t state = number;
	uint32_t what = draw(&state) % (depth ? 5 : 2);
	char bytes[40];
	switch (what) {
	case 0: return integer(draw(&state));
	case 1: memset(bytes, (int)number, sizeof bytes); return binary(heap, bytes, draw(&state) % sizeof bytes);
	case 2: return cons(heap, build(heap, number + 1, depth - 1), build(heap, number + 2, depth - 1));
	case 3: return fun(heap, NULL, build(heap, number + 3, depth - 1));
	default: {
		struct value part = build(heap, number + 4, depth - 1);
		return TUPLE(heap, part, atom("shared"), part);
	}
	}
}

static struct value churn(struct actor *self, struct value environment)
{
	uint32_t state = (uint32_t)number_of(environment), numbers[VALUES];
	struct value list = NIL, values[VALUES];
	struct kept kept[VALUES];
	for (int i = 0; i < VALUES; i++) {
		values[i] = build(heap_of(self), numbers[i] = draw(&state), 5);
		kept[i] = keep(self, &values[i], &kept[i]);
	}
	int64_t wrong = 0;
	for (int step = 0; step < STEPS; step++) {
		uint32_t at = draw(&state) % VALUES;
		wrong += !is_equal(values[at], build(heap_of(self), numbers[at], 5));
		values[at] = build(heap_of(self), numbers[at] = draw(&state), 5);
		/* A safe point; and sometimes a message, which is a fragment when the heap is full. */
		if (step % 7 == 0)
			send_to(self, self_pid(self), TUPLE(heap_of(self), values[at]));
		receive_match(self, NULL, NIL, 0);
	}
	for (int i = 0; i < VALUES; i++)
		wrong += !is_equal(values[i], build(heap_of(self), numbers[i], 5));
	for (int i = VALUES; i-- > 0;)
		unkeep(&kept[i]);
	return TUPLE(heap_of(self), integer(wrong), integer((int64_t)collections_of(self)), list);
}

static void test_churn(void **state)
{
	print_message("seed %u\n", seed);
	struct value result = run(spawn(me, &run_loop), churn, integer(seed));
	assert_int_equal(number_of(element(result, 0)), 0);
	assert_true(number_of(element(result, 1)) > 100);
}

static struct value long_list(struct actor *self, struct value environment)
{
	struct value list = NIL;
	KEEP(self, list);
	for (int64_t i = 0; i < 200000; i++) {
		list = cons(heap_of(self), integer(i), list);
		if (i % 1000 == 0)
			garbage_collect(self);
	}
	int64_t sum = 0;
	for (struct value rest = list; is_box(rest, BOX_CONS); rest = tail(rest))
		sum += number_of(head(rest));
	return integer(sum);
}

static void test_long_list(void **state)
{
	assert_int_equal(number_of(run(spawn(me, &run_loop), long_list, NIL)), 199999ll * 200000 / 2);
}

static struct value grow(struct actor *self, struct value environment)
{
	struct value list = NIL;
	KEEP(self, list);
	process_flag(self, FLAG_MAX_HEAP_WORDS, 100000);
	for (;;) {
		list = cons(heap_of(self), integer(1), list);
		receive_match(self, NULL, NIL, 0);
	}
	return NIL;
}

static void test_limit(void **state)
{
	struct value pid = spawn(me, &run_loop), reference = monitor(me, pid);
	send_to(me, pid, TUPLE(heap_of(me), ATOM(RUN), self_pid(me), fun(heap_of(me), grow, NIL)));
	struct value down = next_message();
	assert_true(is_same(element(down, 1), reference));
	assert_text(element(down, 4), "killed");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_churn), cmocka_unit_test(test_long_list),
					   cmocka_unit_test(test_limit)};
	seed = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : (unsigned)time(NULL);
	return cmocka_run_group_tests(tests, bed_setup, bed_teardown);
}
