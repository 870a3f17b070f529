/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Flags are set, counted, refused and inherited as in OTP: each session by itself.
 * Method	Processes that spawn and link; their flags from tw_trace_process_flags() in two sessions.
 */
#include "session_events.h"

static struct bed one, two;
static struct tw_process *p, *a, *b;

static int begin(void **state)
{
	open_bed(&one, "one");
	open_bed(&two, "two");
	tw_scheduler_declare();
	p = new_process("p");
	a = new_process("a");
	b = new_process("b");
	return 0;
}

static int end(void **state)
{
	tw_process_exit(p);
	tw_process_exit(a);
	tw_process_exit(b);
	close_bed(&two);
	close_bed(&one);
	forget_names();
	return 0;
}

static int change(struct bed *bed, const struct tw_process *process, bool how, uint32_t flags)
{
	return tw_trace_process(bed->session, tw_process_pid(process), how, flags);
}

#define SEND_CALL (TW_FLAG_SEND | TW_FLAG_CALL)

/* 69, 75, 76 */
static void g69_set_on_spawn_is_for_all_children(void **state)
{
	struct tw_process *c1, *c2, *grandchild, *later;

	change(&one, p, true, SEND_CALL | TW_FLAG_SET_ON_SPAWN);
	change(&two, p, true, TW_FLAG_RECEIVE | TW_FLAG_SET_ON_SPAWN);
	c1 = spawn(p, "c1", false);
	c2 = spawn(p, "c2", false);
	grandchild = spawn(c1, "g", false);
	assert_int_equal(flags_of(&one, p), SEND_CALL | TW_FLAG_SET_ON_SPAWN);
	assert_int_equal(flags_of(&one, c1), SEND_CALL | TW_FLAG_SET_ON_SPAWN);
	assert_int_equal(flags_of(&one, c2), SEND_CALL | TW_FLAG_SET_ON_SPAWN);
	assert_int_equal(flags_of(&one, grandchild), SEND_CALL | TW_FLAG_SET_ON_SPAWN);
	assert_int_equal(flags_of(&two, grandchild), TW_FLAG_RECEIVE | TW_FLAG_SET_ON_SPAWN);
	/* The parent's are removed: children keep theirs; the other session is not affected. */
	assert_int_equal(change(&one, p, false, TW_FLAG_ALL), 1);
	later = spawn(p, "later", false);
	assert_int_equal(flags_of(&one, c1), SEND_CALL | TW_FLAG_SET_ON_SPAWN);
	assert_int_equal(flags_of(&one, later), 0);
	assert_int_equal(flags_of(&two, later), TW_FLAG_RECEIVE | TW_FLAG_SET_ON_SPAWN);
	tw_process_exit(c1);
	tw_process_exit(c2);
	tw_process_exit(grandchild);
	tw_process_exit(later);
}

/* 70, 71 */
static void g70_set_on_first_spawn_is_for_one_child(void **state)
{
	const uint32_t kinds[] = {TW_FLAG_SET_ON_FIRST_SPAWN, TW_FLAG_SET_ON_FIRST_SPAWN | TW_FLAG_SET_ON_SPAWN};

	for (size_t i = 0; i < TW_COUNT_OF(kinds); i++) {
		struct tw_process *c1, *c2, *grandchild;

		change(&one, p, true, SEND_CALL | kinds[i]);
		c1 = spawn(p, "c1", false);
		c2 = spawn(p, "c2", false);
		grandchild = spawn(c1, "g", false);
		assert_int_equal(flags_of(&one, p), SEND_CALL);
		assert_int_equal(flags_of(&one, c1), SEND_CALL);
		assert_int_equal(flags_of(&one, c2), 0);
		assert_int_equal(flags_of(&one, grandchild), 0);
		assert_int_equal(flags_of(&two, c1), 0);
		tw_process_exit(c1);
		tw_process_exit(c2);
		tw_process_exit(grandchild);
	}
}

/* 72, 73, and 71 for links */
static void g72_links_pass_flags_in_one_direction(void **state)
{
	const struct {
		uint32_t flags, left, first, second, linked;
	} cases[] = {
		{TW_FLAG_SET_ON_LINK, TW_FLAG_SET_ON_LINK, TW_FLAG_SEND | TW_FLAG_SET_ON_LINK,
		 TW_FLAG_SEND | TW_FLAG_SET_ON_LINK, TW_FLAG_SEND | TW_FLAG_SET_ON_LINK},
		{TW_FLAG_SET_ON_FIRST_LINK, 0, TW_FLAG_SEND, 0, 0},
		{TW_FLAG_SET_ON_FIRST_LINK | TW_FLAG_SET_ON_LINK, 0, TW_FLAG_SEND, 0, 0},
	};

	for (size_t i = 0; i < TW_COUNT_OF(cases); i++) {
		struct tw_process *c;

		change(&one, a, false, TW_FLAG_ALL);
		change(&one, b, false, TW_FLAG_ALL);
		change(&one, p, false, TW_FLAG_ALL);
		change(&one, p, true, TW_FLAG_SEND | cases[i].flags);
		/* To the traced one: no effect. */
		tw_process_link(a, p);
		assert_int_equal(flags_of(&one, a), 0);
		tw_process_link(p, a);
		tw_process_link(p, b);
		c = spawn(p, "c", true);
		assert_int_equal(flags_of(&one, p), TW_FLAG_SEND | cases[i].left);
		assert_int_equal(flags_of(&one, a), cases[i].first);
		assert_int_equal(flags_of(&one, b), cases[i].second);
		assert_int_equal(flags_of(&one, c), cases[i].linked);
		assert_int_equal(flags_of(&two, a), 0);
		tw_process_exit(c);
	}
}

/* 74 */
static void g74_who_is_traced_gets_the_union(void **state)
{
	change(&one, p, true, TW_FLAG_SEND | TW_FLAG_SET_ON_LINK);
	change(&one, a, true, TW_FLAG_RECEIVE);
	change(&two, a, true, TW_FLAG_PROCS);
	tw_process_link(p, a);
	assert_int_equal(flags_of(&one, a), TW_FLAG_SEND | TW_FLAG_RECEIVE | TW_FLAG_SET_ON_LINK);
	assert_int_equal(flags_of(&two, a), TW_FLAG_PROCS);
}

/* 77, 38 */
static void g77_new_and_inherited_flags_combine(void **state)
{
	struct tw_process *c, *later;
	uint32_t flags = 1;

	assert_int_equal(tw_trace_process(one.session, TW_PID_NEW, true, TW_FLAG_RECEIVE), 0);
	assert_int_equal(tw_trace_process(two.session, TW_PID_NEW, true, TW_FLAG_PROCS), 0);
	change(&one, p, true, TW_FLAG_SEND | TW_FLAG_SET_ON_SPAWN);
	c = spawn(p, "c", false);
	assert_int_equal(flags_of(&one, c), TW_FLAG_SEND | TW_FLAG_RECEIVE | TW_FLAG_SET_ON_SPAWN);
	assert_int_equal(flags_of(&two, c), TW_FLAG_PROCS);
	EXPECT(&two, "c spawned p, {m,f,[x]}");
	assert_int_equal(flags_of(&one, a), 0);
	assert_int_equal(tw_trace_process(one.session, TW_PID_NEW, false, TW_FLAG_RECEIVE), 0);
	later = spawn(a, "later", false);
	assert_int_equal(flags_of(&one, later), 0);
	assert_int_equal(flags_of(&one, c), TW_FLAG_SEND | TW_FLAG_RECEIVE | TW_FLAG_SET_ON_SPAWN);
	assert_int_equal(tw_trace_process_flags(one.session, TW_PID_NEW, &flags), 0);
	assert_int_equal(flags, 0);
	tw_process_exit(c);
	tw_process_exit(later);
}

/* 31 to 36, 39, 41, 42, 45 */
static void d31_counts_and_errors(void **state)
{
	tw_pid dead;
	struct tw_process *c = new_process("c");
	int all;

	dead = tw_process_pid(c);
	all = tw_trace_process(one.session, TW_PID_ALL, true, TW_FLAG_CALL);
	assert_int_equal(tw_trace_process(one.session, TW_PID_EXISTING, true, TW_FLAG_CALL), all);
	tw_process_exit(c);
	assert_int_equal(tw_trace_process(one.session, TW_PID_ALL, false, TW_FLAG_CALL), all - 1);
	assert_int_equal(tw_trace_process(one.session, TW_PID_NEW, true, 0), 0);
	assert_int_equal(change(&one, p, true, 0), 1);
	assert_int_equal(change(&one, p, true, TW_FLAG_SEND), 1);
	assert_int_equal(change(&one, p, true, TW_FLAG_SEND), 1);
	assert_int_equal(tw_trace_process(one.session, dead, true, TW_FLAG_SEND), TW_EBADARG);
	/* Not even the valid part. */
	assert_int_equal(change(&one, p, true, TW_FLAG_CALL | 1u << 30), TW_EBADARG);
	assert_int_equal(change(&one, p, true, TW_FLAG_CALL | TW_FLAG_CPU_TIMESTAMP), TW_EBADARG);
	assert_int_equal(tw_trace_process(one.session, TW_PID_NEW, true, TW_FLAG_CALL | TW_FLAG_CPU_TIMESTAMP),
			 TW_EBADARG);
	assert_int_equal(tw_trace_process(one.session, TW_PID_EXISTING, true, 0), 0);
	assert_int_equal(tw_trace_process(one.session, TW_PID_ALL, true, TW_FLAG_CPU_TIMESTAMP), 0);
	assert_int_equal(tw_trace_process(one.session, TW_PID_ALL, false, TW_FLAG_CPU_TIMESTAMP), 0);
	assert_int_equal(flags_of(&one, p), TW_FLAG_SEND);
	/* Flags that are not set are no error; only listed ones are removed. */
	assert_int_equal(change(&one, p, false, TW_FLAG_CALL | TW_FLAG_RECEIVE), 1);
	assert_int_equal(flags_of(&one, p), TW_FLAG_SEND);
	assert_int_equal(change(&one, p, true, TW_FLAG_ALL), 1);
	assert_int_equal(flags_of(&one, p), TW_FLAG_ALL);
	assert_true(TW_FLAG_ALL & TW_FLAG_SILENT);
	assert_int_equal(flags_of(&two, p), 0);
	assert_int_equal(change(&one, p, false, TW_FLAG_ALL), 1);
	assert_int_equal(flags_of(&one, p), 0);
}

/* 44: complete when the call returns, though the process does not run; and removed at once. */
static void d44_the_effect_is_complete(void **state)
{
	change(&one, p, true, TW_FLAG_RECEIVE);
	tw_process_receive(p, parse("a"), (struct tw_term){0});
	change(&one, p, false, TW_FLAG_RECEIVE);
	tw_process_receive(p, parse("b"), (struct tw_term){0});
	EXPECT(&one, "p receive a");
	EXPECT_NOTHING(&two);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, begin, end)
	const struct CMUnitTest tests[] = {
		CASE(g69_set_on_spawn_is_for_all_children),
		CASE(g70_set_on_first_spawn_is_for_one_child),
		CASE(g72_links_pass_flags_in_one_direction),
		CASE(g74_who_is_traced_gets_the_union),
		CASE(g77_new_and_inherited_flags_combine),
		CASE(d31_counts_and_errors),
		CASE(d44_the_effect_is_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
