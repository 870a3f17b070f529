/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: the time of a call divides into what its thread ran, was preempted and was off, without the tracer's own time; what
 * is not known is in none of these: before the first state, where one is missing, behind the last. States are no events, and
 * nobody sees them who does not ask.
 *
 * Method: handmade captures, whose sums are computed by hand.
 */
#include "views_help.h"

#include "views/folds/calltree.h"

enum { CALLS, STATES };

static void state_at(struct maker *maker, uint64_t ticks, enum tw_capture_thread_state state)
{
	maker_record(maker, STATES, ticks, TW_EVENT_THREAD_STATE, state, NULL, 0);
}

static struct maker *begin_states(void)
{
	struct maker *maker = begin_view(1, true);

	maker->streams[CALLS].tracee.tracee_id = maker->streams[STATES].tracee.tracee_id = 1;
	maker->streams[STATES].thread_id = 100;
	view_call(maker, CALLS, 1000, MAIN);
	view_call(maker, CALLS, 1500, STEP);
	return maker;
}

/* Ends the calls of begin_states(). */
static struct tw_calltree end_states(struct maker *maker, const struct tw_capture_filter *filter)
{
	struct tw_calltree tree = {0};

	view_return(maker, CALLS, 5500, STEP);
	view_return(maker, CALLS, 8000, MAIN);
	end_maker(maker, true);
	assert_int_equal(tw_calltree_make(&tree, open_capture(), filter), 0);
	return tree;
}

static void is_divided(const struct tw_calltree *tree, const char *name, uint64_t total, uint64_t ran,
		       uint64_t preempted, uint64_t off)
{
	for (uint32_t i = 0; i < tree->places.function_count; i++) {
		const struct tw_call_function *function = &tree->functions[i];

		if (strncmp(tree->places.names[i].text, name, strlen(name)) != 0)
			continue;
		assert_int_equal(function->total_ns, total);
		assert_int_equal(function->states.ns[TW_STATE_RAN], ran);
		assert_int_equal(function->states.ns[TW_STATE_PREEMPTED], preempted);
		assert_int_equal(function->states.ns[TW_STATE_OFF], off);
		return;
	}
	fail_msg("no function %s", name);
}

static void done(struct tw_calltree *tree)
{
	struct tw_capture *capture = tree->capture;

	tw_calltree_free(tree);
	tw_capture_close(capture);
}

static void put_usual(struct maker *maker)
{
	state_at(maker, 500, TW_CAPTURE_STATE_RUNNING);
	state_at(maker, 2000, TW_CAPTURE_STATE_OFF);
	state_at(maker, 5000, TW_CAPTURE_STATE_RUNNING);
	state_at(maker, 6000, TW_CAPTURE_STATE_PREEMPTED);
	state_at(maker, 6500, TW_CAPTURE_STATE_RUNNING);
}

static void all_is_known(void **state)
{
	const struct tw_capture_filter all = {.wants_own_time = true}, part = {.from_ns = 4000, .to_ns = 7000};
	struct maker *maker = begin_states();

	put_usual(maker);
	state_at(maker, 9000, TW_CAPTURE_STATE_UNKNOWN);
	struct tw_calltree tree = end_states(maker, &all);
	is_divided(&tree, "app:main", 7000, 3500, 500, 3000);
	is_divided(&tree, "app:step", 4000, 1000, 0, 3000);
	assert_int_equal(tw_state_sums_all(&tree.states), tree.outermost_ns);
	done(&tree);
	tree = (struct tw_calltree){0};
	assert_int_equal(tw_calltree_make(&tree, open_capture(), &part), 0);
	is_divided(&tree, "app:main", 3000, 1500, 500, 1000);
	is_divided(&tree, "app:step", 1500, 500, 0, 1000);
	done(&tree);
}

static void own_time_is_in_no_sum(void **state)
{
	const struct tw_capture_filter all = {.wants_own_time = true};
	const uint64_t ns = 1000;
	struct maker *maker = begin_states();

	/* From 1,800 to 2,800: it ran for a fifth of that. */
	maker_record(maker, CALLS, 1800, TW_EVENT_OWN_TIME, TW_OWN_TIME_WAIT, &ns, 1);
	put_usual(maker);
	state_at(maker, 9000, TW_CAPTURE_STATE_UNKNOWN);
	struct tw_calltree tree = end_states(maker, &all);
	is_divided(&tree, "app:main", 6000, 3300, 500, 2200);
	is_divided(&tree, "app:step", 3000, 800, 0, 2200);
	done(&tree);
}

static void the_rest_is_unknown(void **state)
{
	const struct tw_capture_filter all = {.wants_own_time = true};
	/* The stream begins late, and ends early. */
	struct maker *maker = begin_states();
	state_at(maker, 1200, TW_CAPTURE_STATE_RUNNING);
	state_at(maker, 2000, TW_CAPTURE_STATE_OFF);
	state_at(maker, 5000, TW_CAPTURE_STATE_RUNNING);
	struct tw_calltree tree = end_states(maker, &all);
	is_divided(&tree, "app:main", 7000, 800, 0, 3000);
	is_divided(&tree, "app:step", 4000, 500, 0, 3000);
	done(&tree);

	/* A block is missing: from its beginning on, and up to the next record. */
	maker = begin_states();
	state_at(maker, 500, TW_CAPTURE_STATE_RUNNING);
	maker_flush(maker, STATES);
	maker->streams[STATES].sequence += 3;
	maker->streams[STATES].pos += 48;
	state_at(maker, 5000, TW_CAPTURE_STATE_RUNNING);
	state_at(maker, 9000, TW_CAPTURE_STATE_UNKNOWN);
	tree = end_states(maker, &all);
	is_divided(&tree, "app:main", 7000, 3000, 0, 0);
	is_divided(&tree, "app:step", 4000, 500, 0, 0);
	/* No event is. */
	struct tw_capture_account account;
	tw_capture_account(tree.capture, &account);
	assert_true(account.is_whole);
	done(&tree);

	/* The recorder says so itself. */
	maker = begin_states();
	state_at(maker, 500, TW_CAPTURE_STATE_RUNNING);
	state_at(maker, 2000, TW_CAPTURE_STATE_UNKNOWN);
	state_at(maker, 5000, TW_CAPTURE_STATE_RUNNING);
	state_at(maker, 9000, TW_CAPTURE_STATE_UNKNOWN);
	tree = end_states(maker, &all);
	is_divided(&tree, "app:main", 7000, 4000, 0, 0);
	done(&tree);
}

static uint64_t count(const struct tw_capture_filter *filter)
{
	struct tw_capture *capture = open_capture();
	const struct tw_capture_event *batch;
	struct tw_capture_events *events;
	uint64_t all = 0;

	assert_int_equal(tw_capture_events_create(capture, filter, &events), 0);
	for (int64_t got; (got = tw_capture_events_next(events, &batch)) > 0;)
		all += (uint64_t)got;
	tw_capture_events_destroy(events);
	tw_capture_close(capture);
	return all;
}

static int add_records(void *context, const struct tw_capture_batch *batch)
{
	*(uint64_t *)context += batch->records;
	return 0;
}

static void states_are_no_events(void **state)
{
	const struct tw_capture_filter all = {0}, kind = {.kinds = UINT64_C(1) << TW_CAPTURE_THREAD_STATE},
				       states = {.wants_thread_states = true};
	struct maker *maker = begin_states();
	struct tw_capture_info info;
	uint64_t records = 0;

	put_usual(maker);
	struct tw_block_header header = maker_flush(maker, STATES);
	assert_int_equal(header.event_count, 0);
	assert_int_equal(header.own_count, 5);
	assert_true(header.flags & TW_BLOCK_FLAG_STATES);
	struct tw_calltree tree = end_states(maker, &all);
	tw_capture_info(tree.capture, &info);
	assert_int_equal(info.events, 4);
	assert_int_equal(info.threads, 1);
	assert_int_equal(info.zero_ns, 1000);
	assert_int_equal(info.end_ns, 8000);
	assert_true(info.has_thread_states);
	assert_int_equal(tree.events, 4);
	assert_int_equal(tw_capture_scan(tree.capture, NULL, add_records, &records), 0);
	assert_int_equal(records, 4);
	done(&tree);
	assert_int_equal(count(NULL), 4);
	assert_int_equal(count(&all), 4);
	assert_int_equal(count(&kind), 0);
	assert_int_equal(count(&states), 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_is_known),
		cmocka_unit_test(own_time_is_in_no_sum),
		cmocka_unit_test(the_rest_is_unknown),
		cmocka_unit_test(states_are_no_events),
	};

	return RUN_IN_DIRECTORY(tests);
}
