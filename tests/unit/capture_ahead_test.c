/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: batches that are made ahead come in order, each once, and none changes while it is used; the last one ends the
 * sequence, whatever it holds, and the user may leave at any point.
 *
 * Method: sequences of 1 to 40 batches, of which both sides are fast or slow by turns; the user checks its batch before and
 * after it has been slow, and leaves after every number of batches. Also under the thread sanitizer.
 */
#include "pipeline/reader/ahead.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { WORDS = 64 };

struct sequence {
	uint64_t words[TW_AHEAD_BATCHES][WORDS];
	uint64_t made, count;
	unsigned maker_spins;
};

static void spin(unsigned times)
{
	for (unsigned i = 0; i < times * 2000; i++)
		__asm__ volatile("");
}

static bool make(void *context, unsigned number)
{
	struct sequence *sequence = context;

	spin(sequence->made % 7 == 3 ? sequence->maker_spins : 0);
	sequence->made++;
	for (unsigned i = 0; i < WORDS; i++)
		sequence->words[number][i] = sequence->made;
	return sequence->made < sequence->count;
}

static void expect(const struct sequence *sequence, unsigned number, uint64_t made)
{
	assert_in_range(number, 0, TW_AHEAD_BATCHES - 1);
	for (unsigned i = 0; i < WORDS; i++)
		assert_int_equal(sequence->words[number][i], made);
}

static void use(uint64_t count, uint64_t until, unsigned maker_spins, unsigned user_spins)
{
	struct sequence sequence = {.count = count, .maker_spins = maker_spins};
	struct tw_ahead *ahead = NULL;

	assert_int_equal(tw_ahead_create(make, &sequence, &ahead), 0);
	for (uint64_t i = 1; i <= until; i++) {
		unsigned number = tw_ahead_next(ahead);

		expect(&sequence, number, i < count ? i : count);
		spin(i % 5 == 2 ? user_spins : 0);
		expect(&sequence, number, i < count ? i : count);
	}
	tw_ahead_destroy(ahead);
	assert_in_range(sequence.made, until < count ? until : count, count);
	assert_true(sequence.made <= until + TW_AHEAD_BATCHES);
}

static void batches_come_in_order(void **state)
{
	for (uint64_t count = 1; count <= 40; count += 3) {
		for (uint64_t until = 0; until <= count + 2; until += 1 + count / 8) {
			use(count, until, 0, 0);
			use(count, until, 20, 0);
			use(count, until, 0, 20);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batches_come_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
