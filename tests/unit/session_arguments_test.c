/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Each of several sessions that trace one native function gets the parts of a call that it requested: arguments go
 *	to the session that wants them, and to no other.
 * Method	A slot of the test's own, and sessions that ask for none, two or four words; every pair of them, alone and
 *	together, in both orders.
 */
#include "base/filter.h"
#include "pipeline/hit/arguments.h"
#include "session/places.h"
#include "session_bed.h"
#include "slot_help.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t reached;
static void **slot;

__attribute__((noinline)) static uint64_t target(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	reached++;
	return a ^ b ^ c ^ d;
}

/* words < 0: the session does not trace the function. */
static void want(struct tw_session *session, struct tw_place *place, int words)
{
	const struct tw_bp_part part = {.actions = TW_ACTION_CALL, .slot_words = (uint8_t)words};
	struct tw_permit *permit;

	if (words < 0)
		return;
	assert_int_equal(tw_permit_seize(&permit), 0);
	assert_int_equal(tw_session_stage(session, permit, place, &part), 0);
	tw_bp_commit(permit);
	tw_permit_drop(permit);
}

/* Each call of a session has this many words, with these values. */
static void check(struct bed *bed, int words, unsigned calls)
{
	struct tw_rb_record *records[64];
	unsigned count = take(bed, records, 64), seen = 0;

	for (unsigned i = 0; i < count; i++) {
		if (TW_RB_HEAD_KIND(records[i]->head) != TW_EVENT_CALL)
			continue;
		seen++;
		assert_int_equal(tw_event_payload_words(records[i]->head), words);
		for (int word = 0; word < words; word++)
			assert_int_equal(tw_event_payload(records[i])[word], 0x1000u * (unsigned)(word + 1) + seen);
	}
	assert_int_equal(seen, words < 0 ? 0 : calls);
}

static void try(struct tw_place *place, int first, int second)
{
	enum { CALLS = 5 };
	uint64_t (*call)(uint64_t, uint64_t, uint64_t, uint64_t);
	struct bed beds[2];

	open_bed(&beds[0], "first");
	open_bed(&beds[1], "second");
	for (int i = 0; i < 2; i++)
		assert_int_equal(tw_trace_process(beds[i].session, TW_PID_NEW, true, TW_FLAG_CALL), 0);
	for (int i = 0; i < 2; i++)
		assert_true(tw_trace_process(beds[i].session, TW_PID_EXISTING, true, TW_FLAG_CALL) >= 0);
	want(beds[0].session, place, first);
	want(beds[1].session, place, second);
	reached = 0;
	for (uint64_t i = 1; i <= CALLS; i++) {
		call = (uint64_t(*)(uint64_t, uint64_t, uint64_t, uint64_t))(
			uintptr_t)__atomic_load_n(slot, __ATOMIC_RELAXED);
		assert_int_equal(call(0x1000 + i, 0x2000 + i, 0x3000 + i, 0x4000 + i),
				 (0x1000 + i) ^ (0x2000 + i) ^ (0x3000 + i) ^ (0x4000 + i));
	}
	assert_int_equal(reached, CALLS);
	check(&beds[0], first, CALLS);
	check(&beds[1], second, CALLS);
	close_bed(&beds[1]);
	close_bed(&beds[0]);
}

static void each_session_gets_what_it_asked_for(void **state)
{
	static const int asked[] = {-1, 0, 1, 2, 3, 4};
	struct tw_place *place = add_slot_place("arguments_slot", (void *)target, &slot);

	for (unsigned i = 0; i < TW_COUNT_OF(asked); i++)
		for (unsigned j = 0; j < TW_COUNT_OF(asked); j++)
			try(place, asked[i], asked[j]);
}

/*
 * A filter may end the program for the system call that reads strings: they are not read then, and all else is correct.
 */
static void strings_are_not_read_under_a_filter(void **state)
{
	char text[16];
	int status;
	pid_t child;

	assert_int_equal(tw_arg_read_string((uintptr_t) "hello", text, sizeof text), 5);
	assert_int_equal(tw_arg_read_string(0, text, sizeof text), -1);
	assert_true(tw_arg_is_string((uintptr_t) "hello", "hello", 5));
	child = fork();
	if (child == 0) {
		tw_filter_begin(TW_FILTER_ALL_THREADS);
		_exit(tw_arg_read_string((uintptr_t) "hello", text, sizeof text) != -1 ||
		      tw_arg_is_string((uintptr_t) "hello", "hello", 5));
	}
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
}

/* Strings of all lengths are compared right, also at the end of readable memory. */
static void strings_are_compared_in_pieces(void **state)
{
	const unsigned page = 4096;
	char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), expected[128];

	assert_true(memory != MAP_FAILED);
	assert_int_equal(mprotect(memory + page, page, PROT_NONE), 0);
	memset(expected, 'x', sizeof expected);
	for (unsigned bytes = 1; bytes < 100; bytes++) {
		char *whole = memory + page - bytes - 1, *open = memory + page - bytes;

		memset(memory, 'x', page);
		/* Without its zero, behind which nothing can be read. */
		assert_true(tw_arg_is_string((uintptr_t)open, expected, bytes));
		assert_false(tw_arg_is_string((uintptr_t)open, expected, bytes + 1));
		assert_false(tw_arg_is_string((uintptr_t)whole, expected, bytes));
		whole[bytes] = 0;
		assert_true(tw_arg_is_string((uintptr_t)whole, expected, bytes));
		assert_false(tw_arg_is_string((uintptr_t)whole, expected, bytes - 1));
		assert_false(tw_arg_is_string((uintptr_t)whole, expected, bytes + 1));
		whole[bytes - 1] = 'y';
		assert_false(tw_arg_is_string((uintptr_t)whole, expected, bytes));
	}
	munmap(memory, 2 * page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings_are_compared_in_pieces),
		cmocka_unit_test(each_session_gets_what_it_asked_for),
		cmocka_unit_test(strings_are_not_read_under_a_filter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
