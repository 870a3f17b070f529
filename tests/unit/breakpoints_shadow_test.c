/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	The data of a watched call lies in its own entry and in no other, and tail calls add to it; the shadow of a
 *	stack exists for every thread that requests it for the first time at the same moment.
 * Method	Adjacent slots in memory that is no stack, opened in each way, with the neighbours' entries compared
 *	word by word; threads (pthread_create) that request the shadow of one fresh chunk after another at once.
 */
#include "breakpoints/returns.h"
#include "base/atomic.h"
#include "sanitized_help.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

enum { CHUNKS = 300, THREADS = 2, SLOTS = 16 };

#define CHUNK_BYTES (UINT64_C(1) << TW_SHADOW_CHUNK_BITS)

static uint64_t *memory;

static void fill(tw_return_word *words, uint64_t tag)
{
	for (unsigned i = 0; i < TW_RETURNS_LONG_WORDS; i++)
		words[i] = tag + i;
}

/* The way in which a call is opened on a slot. */
enum way { SIMPLE, LONG, TAIL_CALL, AFTER_JUMP, AFTER_JUMP_LONG, COPIED, WAYS };

static void open_slot(uint64_t *slot, enum way way, uint64_t tag)
{
	tw_return_word words[TW_RETURNS_LONG_WORDS];
	const char *stub = NULL;
	bool is_long = way == LONG || way == AFTER_JUMP_LONG;

	fill(words, tag);
	if (way >= TAIL_CALL) {
		/* An earlier call used this slot. */
		*slot = 0x1234;
		assert_true(tw_returns_open(slot, words, false, false, &stub));
	}
	if (way == AFTER_JUMP || way == AFTER_JUMP_LONG)
		*slot = 0x5678;
	/* From COPIED on, permanently: a frame that was copied away is back, with its call open. */
	if (way == COPIED)
		tw_returns_stacks_are_copied();
	if (way < TAIL_CALL || way == COPIED)
		*slot = 0x1234;
	assert_true(tw_returns_open(slot, words, is_long, false, &stub));
}

static void an_entry_is_written_by_its_own_slot_only(void **state)
{
	static struct tw_return_entry before[SLOTS];
	const char *reason;

	if (tw_returns_init(&reason) != 0)
		skip();
	for (enum way way = 0; way < WAYS; way++) {
		for (unsigned at = 0; at < SLOTS; at++) {
			uint64_t *slots = memory + way * CHUNK_BYTES / 8 / WAYS;

			/* All 8 bytes, of both halves of each 16, have an entry; all but one hold an open call. */
			for (unsigned i = 0; i < SLOTS; i++) {
				slots[i] = 0x1000 + i;
				assert_true(tw_returns_has_shadow(&slots[i]) || tw_returns_map(&slots[i]));
				memset(tw_returns_entry(&slots[i]), 0, sizeof(struct tw_return_entry));
				if (i != at)
					open_slot(&slots[i], SIMPLE, 100 * i);
			}
			for (unsigned i = 0; i < SLOTS; i++)
				before[i] = *tw_returns_entry(&slots[i]);
			open_slot(&slots[at], way, 7000);
			for (unsigned i = 0; i < SLOTS; i++)
				if (i != at)
					assert_memory_equal(&before[i], tw_returns_entry(&slots[i]), sizeof *before);
		}
	}
}

/* If calls end together and one requests exceptions, the stub is the one at which unwinders stop. */
static void a_tail_call_that_requests_exceptions_gets_them(void **state)
{
	uint64_t *slot = memory + CHUNK_BYTES / 16;
	tw_return_word words[TW_RETURNS_LONG_WORDS];
	const char *reason, *way;

	if (tw_returns_init(&reason) != 0)
		skip();
	fill(words, 1);
	assert_true(tw_returns_has_shadow(slot) || tw_returns_map(slot));
	for (int is_catching = 0; is_catching < 2; is_catching++) {
		memset(tw_returns_entry(slot), 0, sizeof(struct tw_return_entry));
		*slot = 0x1234;
		assert_true(tw_returns_open(slot, words, false, is_catching, &way));
		assert_ptr_equal((void *)*slot, is_catching ? tw_return_stub_catching : tw_return_stub);
		assert_true(tw_returns_open(slot, words, false, false, &way));
		assert_ptr_equal((void *)*slot, is_catching ? tw_return_stub_catching : tw_return_stub);
		assert_true(tw_returns_open(slot, words, false, true, &way));
		assert_ptr_equal((void *)*slot, tw_return_stub_catching);
		assert_int_equal(tw_returns_count(tw_returns_entry(slot)), 3);
	}
}

static _Atomic unsigned arrived;
static unsigned missing[THREADS];

static void meet(unsigned round)
{
	atomic_fetch_add(&arrived, 1);
	while (atomic_load(&arrived) < THREADS * (round + 1))
		tw_cpu_relax();
}

static void *ask(void *arg)
{
	unsigned number = (unsigned)(uintptr_t)arg;

	for (unsigned i = 1; i <= CHUNKS; i++) {
		const uint64_t *slot = memory + i * CHUNK_BYTES / 8 + 8 * number;

		meet(i - 1);
		/* The same check as in tw_returns_open(). */
		if (!tw_returns_has_shadow(slot) && !tw_returns_map(slot))
			missing[number]++;
	}
	return NULL;
}

static void all_first_users_of_a_shadow_find_it(void **state)
{
	pthread_t thread[THREADS];
	const char *reason;

	if (tw_returns_init(&reason) != 0)
		skip();
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, ask, (void *)i), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(missing[i], 0);
	assert_int_equal(atomic_load(&tw_returns_lost.no_memory), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tail_call_that_requests_exceptions_gets_them),
		cmocka_unit_test(an_entry_is_written_by_its_own_slot_only),
		cmocka_unit_test(all_first_users_of_a_shadow_find_it),
	};
	char *at = mmap(NULL, (CHUNKS + 3) * CHUNK_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return 1;
	memory = (uint64_t *)(((uintptr_t)at + CHUNK_BYTES - 1) & -CHUNK_BYTES);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
