/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: a stream is also in order of time if handlers lost events inside a hit: the interrupted record first, then the
 * loss.
 *
 * Method: records are reserved with the time at which their hits began, and refusals are counted between that and the
 * reservation, as a handler would; the ring is read back.  Losses before and during one hit in one record, a call and
 * its stack, waiting.
 */
#include "base/sys.h"
#include "ringbuf/ringbuf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { DATA = 65536, KIND = 5 };

static struct tw_rb_shared *shared;
static struct tw_rb_producer producer;

static void begin(enum tw_rb_policy policy)
{
	free(shared);
	shared = aligned_alloc(TW_PAGE_BYTES, TW_PAGE_BYTES + DATA);
	assert_non_null(shared);
	memset(shared, 0, TW_PAGE_BYTES + DATA);
	tw_rb_shared_init(shared, 0, DATA);
	tw_rb_producer_init(&producer, shared, policy);
}

static void put(uint64_t ticks)
{
	struct tw_rb_record *record;

	assert_int_equal(tw_rb_reserve(&producer, 16, ticks, (void **)&record), TW_RB_OK);
	*record = (struct tw_rb_record){ticks, TW_RB_HEAD(KIND, 0, 16, 0)};
	tw_rb_commit(&producer, 16);
}

/* The ticks of all records in turn; of losses negative. */
static void expect(const int64_t *ticks, size_t count)
{
	const uint8_t *raw;
	uint64_t end;
	int64_t bytes = tw_rb_peek(shared, 0, DATA, &raw, &end), at = 0, latest = 0;

	for (size_t i = 0; i < count; i++) {
		const struct tw_rb_record *record = (const void *)(raw + at);
		bool is_loss = TW_RB_HEAD_KIND(record->head) == TW_RB_KIND_LOSS;

		assert_true(at < bytes);
		assert_int_equal(is_loss ? -(int64_t)record->ticks : (int64_t)record->ticks, ticks[i]);
		assert_true((int64_t)record->ticks >= latest);
		latest = (int64_t)record->ticks;
		at += TW_RB_HEAD_BYTES(record->head);
	}
	assert_int_equal(at, bytes);
}

static void the_interrupted_record_comes_first(void **state)
{
	begin(TW_RB_DROP);
	put(10);
	/* A hit began at 20, and its handler's events at 30 and 40 were refused before its own reservation. */
	tw_rb_refuse(&producer, TW_RB_LOST_NESTED, 30);
	tw_rb_refuse(&producer, TW_RB_LOST_NESTED, 40);
	put(20);
	put(20); /* the stack of that call */
	put(50);
	put(60);
	expect((const int64_t[]){10, 20, 20, -40, 50, 60}, 6);
}

static void older_losses_stand_before_it(void **state)
{
	begin(TW_RB_DROP);
	tw_rb_refuse(&producer, TW_RB_LOST_FULL, 10);
	tw_rb_refuse(&producer, TW_RB_LOST_NESTED, 30);
	put(20);
	put(50);
	expect((const int64_t[]){-20, 20, 50}, 3);
}

/* The hit waited, and gave up: its own loss is the oldest. */
static void a_hit_that_gave_up_is_older_than_its_handlers(void **state)
{
	begin(TW_RB_BLOCK);
	tw_rb_refuse(&producer, TW_RB_LOST_NESTED, 30);
	tw_rb_refuse(&producer, TW_RB_LOST_NESTED, 40);
	tw_rb_refuse(&producer, TW_RB_LOST_FULL, 20);
	put(50);
	expect((const int64_t[]){-40, 50}, 2);
	assert_int_equal(((const struct tw_rb_loss_record *)(const void *)tw_rb_data(shared))->first_ticks, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_interrupted_record_comes_first),
		cmocka_unit_test(older_losses_stand_before_it),
		cmocka_unit_test(a_hit_that_gave_up_is_older_than_its_handlers),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(shared);
	return failed;
}
