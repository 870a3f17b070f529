/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	A function that is demoted from recorded to counted under load loses no call and counts none twice, on any thread, also in
 *	signal handlers that interrupt a hit; the owner of the rings reads whose calls they were, while they are made.
 * Method	Threads call functions and count their calls themselves, while another demotes one after the other; then for each function
 *	events and counts are the calls.  Rings hold all events.
 */
#include "session/change.h"
#include "session/places.h"
#include "tests/unit/session_bed.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FUNCTIONS = 4, THREADS = 4, CALLS = 60000, ROUNDS = 3 };

static struct tw_declared_function f[FUNCTIONS] = {
	TW_DECLARED_FUNCTION("counted", "a", 0),
	TW_DECLARED_FUNCTION("counted", "b", 0),
	TW_DECLARED_FUNCTION("counted", "c", 0),
	TW_DECLARED_FUNCTION("counted", "d", 0),
};

static struct bed bed;
static uint64_t events[FUNCTIONS], counts[FUNCTIONS], of_all;
static _Atomic uint64_t in_handlers, reads;
static _Atomic bool is_over;

static unsigned index_of(uint32_t place_id)
{
	for (unsigned i = 0; i < FUNCTIONS; i++)
		if (f[i].place->place_id == place_id)
			return i;
	return FUNCTIONS;
}

static void take_event(struct tw_rb_record *record, void *unused)
{
	if (TW_RB_HEAD_KIND(record->head) == TW_EVENT_CALL)
		events[index_of(TW_RB_HEAD_ID(record->head))]++;
}

static int add_counts(void *arg, const struct tw_rs_seen_counts *seen)
{
	uint64_t *sums = arg;

	for (unsigned i = 0; i < TW_RS_COUNT_GROUP; i++) {
		unsigned function = index_of(seen->first_place + i);

		if (function == FUNCTIONS)
			continue;
		sums[function] += seen->words[i];
		if (sums == counts)
			of_all += seen->lease ? 0 : seen->words[i];
	}
	return 0;
}

static void read_counts(uint64_t *sums, bool recycles)
{
	static struct tw_rs_count_choice choice;

	tw_rs_scan(&bed.rs);
	tw_rs_counts_choose(&bed.rs, 0, recycles, &choice);
	tw_rs_counts_each(&bed.rs, 0, &choice, add_counts, sums);
	if (recycles)
		tw_rs_counts_recycle(&bed.rs, 0, &choice);
}

/* Another reader, at the same time: its numbers only grow. */
static void *read_all_the_time(void *arg)
{
	uint64_t before = 0;

	while (!is_over) {
		struct tw_rs_count_choice choice;
		uint64_t sums[FUNCTIONS] = {0}, sum = 0;

		tw_rs_counts_choose(&bed.rs, 0, false, &choice);
		tw_rs_counts_each(&bed.rs, 0, &choice, add_counts, sums);
		for (unsigned i = 0; i < FUNCTIONS; i++)
			sum += sums[i];
		if (sum < before)
			abort();
		before = sum;
		reads++;
		usleep(200);
	}
	return arg;
}

static void *call(void *arg)
{
	for (unsigned i = 0; i < CALLS; i++)
		tw_call0(&f[i % (FUNCTIONS - 1)]);
	return arg;
}

/* d is called by handlers only, which interrupt hits of the others. */
static void on_alarm(int signal)
{
	tw_call0(&f[FUNCTIONS - 1]);
	in_handlers++;
}

static void demote(unsigned function)
{
	struct tw_permit *permit;

	assert_int_equal(tw_change_begin(&permit), 0);
	assert_int_equal(tw_session_stage_counted(bed.session, permit, f[function].place), 0);
	tw_change_commit(permit);
	assert_int_equal(tw_change_end(permit, 0), 0);
}

static void *demote_one_after_the_other(void *arg)
{
	for (unsigned i = 0; i < FUNCTIONS - 1; i++) {
		usleep(2000);
		demote(i);
	}
	return arg;
}

static void no_call_is_lost_nor_counted_twice(void **state)
{
	const struct tw_rs_options options = {.ring_bytes = 1 << 21, .cap_bytes = 1 << 25, .has_fixed_rings = true};
	const struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	pthread_t thread[THREADS], demoter, reader;
	uint64_t called = ROUNDS * THREADS * CALLS / (FUNCTIONS - 1);

	for (unsigned i = 0; i < FUNCTIONS; i++)
		assert_int_equal(tw_function_declare(&f[i]), 0);
	open_bed_with(&bed, "counted", &options);
	tw_hit_host.pinned_rs = &bed.rs;
	tw_hit_host.pinned_session = bed.session->slot;
	assert_true(tw_trace_process(bed.session, TW_PID_ALL, true, TW_FLAG_CALL) >= 0);
	assert_int_equal(tw_trace_function(bed.session, "counted", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_LOCAL),
			 FUNCTIONS);
	demote(FUNCTIONS - 1);
	tw_rs_scan(&bed.rs);
	sigaction(SIGALRM, &action, NULL);
	ualarm(1000, 200);
	assert_int_equal(pthread_create(&reader, NULL, read_all_the_time, NULL), 0);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < THREADS; i++)
			assert_int_equal(pthread_create(&thread[i], NULL, call, NULL), 0);
		if (!round)
			assert_int_equal(pthread_create(&demoter, NULL, demote_one_after_the_other, NULL), 0);
		for (unsigned i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
		if (!round)
			pthread_join(demoter, NULL);
	}
	ualarm(0, 0);
	is_over = true;
	pthread_join(reader, NULL);
	for_each_record(&bed, take_event, NULL);
	read_counts(counts, false);
	for (unsigned i = 0; i < FUNCTIONS - 1; i++) {
		assert_int_equal(events[i] + counts[i], called);
		assert_true(counts[i] >= called / ROUNDS * (ROUNDS - 1));
	}
	assert_int_equal(count_lost(&bed), 0);
	assert_int_equal(events[FUNCTIONS - 1], 0);
	assert_int_equal(counts[FUNCTIONS - 1], in_handlers);
	/* Most calls have a thread; those that interrupted a hit have none. */
	assert_true(of_all <= in_handlers);
	assert_true(in_handlers > 0 && reads > 0);
	/* The threads have ended: their rows are taken once, and the rest are the calls of all threads together, and of this one. */
	memset(counts, 0, sizeof counts);
	read_counts(counts, true);
	read_counts(counts, false);
	for (unsigned i = 0; i < FUNCTIONS - 1; i++)
		assert_int_equal(events[i] + counts[i], called);
	assert_int_equal(counts[FUNCTIONS - 1], in_handlers);
	tw_session_destroy(bed.session);
	tw_hit_host.pinned_rs = NULL;
	tw_session_put(bed.session);
	tw_rs_destroy(&bed.rs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(no_call_is_lost_nor_counted_twice)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
