/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	A call of a declared function gives one event to each session that wants it of this process, and none to others;
 *	changes are atomic; destroyed sessions leave nothing behind; weak ids are harmless.
 * Method	Sessions over ring sets of this process, drained by the test itself: the contents of a ring are compared
 *	word by word.
 */
#include "tests/unit/sanitized_help.h"
#include "tests/unit/session_bed.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static struct tw_declared_function f0 = TW_DECLARED_FUNCTION("m", "f0", 0);
static struct tw_declared_function f1 = TW_DECLARED_FUNCTION("m", "f1", 1);
static struct tw_declared_function f2 = TW_DECLARED_FUNCTION("m", "f2", 2);
static struct tw_declared_function other = TW_DECLARED_FUNCTION("n", "f2", 2);

static void trace_all_of_me(struct bed *bed, uint32_t flags)
{
	assert_int_equal(tw_trace_process(bed->session, tw_process_self(), true, TW_FLAG_CALL | flags), 1);
	assert_int_equal(tw_trace_function(bed->session, "m", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 3);
}

static void a_call_is_recorded_with_its_words(void **state)
{
	struct bed bed;
	struct tw_rb_record *r[8];

	open_bed(&bed, "words");
	tw_call2(&f2, 1, 2);
	assert_int_equal(take(&bed, r, 8), 0);
	trace_all_of_me(&bed, 0);
	tw_call0(&f0);
	tw_call1(&f1, 11);
	tw_call2(&f2, 21, 22);
	tw_call2(&other, 3, 4);
	tw_call_words(&f2, (uint64_t[]){31, 32, 33}, 3);
	assert_int_equal(take(&bed, r, 8), 4);
	assert_int_equal(TW_RB_HEAD_BYTES(r[0]->head), 16);
	assert_int_equal(tw_event_payload_words(r[0]->head), 0);
	assert_int_equal(tw_event_payload_words(r[1]->head), 1);
	assert_int_equal(tw_event_payload(r[1])[0], 11);
	assert_int_equal(tw_event_payload_words(r[2]->head), 2);
	assert_int_equal(tw_event_payload(r[2])[1], 22);
	assert_int_equal(tw_event_payload_words(r[3]->head), 3);
	assert_int_equal(tw_event_payload(r[3])[2], 33);
	assert_int_equal(TW_RB_HEAD_KIND(r[2]->head), TW_EVENT_CALL);
	assert_true(r[0]->ticks <= r[1]->ticks && r[1]->ticks <= r[2]->ticks);
	assert_int_equal(TW_RB_HEAD_ID(r[2]->head), TW_RB_HEAD_ID(r[3]->head));
	close_bed(&bed);
	assert_int_equal(f2.armed, 0);
}

static void sessions_do_not_see_each_other(void **state)
{
	struct bed a, b;

	open_bed(&a, "a");
	open_bed(&b, "b");
	trace_all_of_me(&a, 0);
	tw_call0(&f0);
	trace_all_of_me(&b, 0);
	tw_call0(&f0);
	assert_int_equal(tw_trace_function(a.session, "m", "f0", 0, TW_MATCH_FALSE, TW_FUNCTION_LOCAL), 1);
	tw_call0(&f0);
	assert_int_equal(count_events(&a), 2);
	assert_int_equal(count_events(&b), 2);
	assert_int_equal(tw_session_destroy(a.session), 1);
	tw_call0(&f0);
	tw_call1(&f1, 1);
	assert_int_equal(count_events(&a), 0);
	assert_int_equal(count_events(&b), 2);
	close_bed(&a);
	close_bed(&b);
}

static void function_counts_and_bad_arguments(void **state)
{
	struct bed bed;
	struct tw_session *s;

	open_bed(&bed, "counts");
	s = bed.session;
	assert_int_equal(tw_trace_function(s, "m", "f2", 2, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 1);
	assert_int_equal(tw_trace_function(s, "m", "f2", 3, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 0);
	assert_int_equal(tw_trace_function(s, "m", "f2", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 1);
	assert_int_equal(tw_trace_function(s, "no", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 0);
	assert_int_equal(tw_trace_function(s, "_", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 4);
	assert_int_equal(tw_trace_function(s, "_", "f2", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), TW_EBADARG);
	assert_int_equal(tw_trace_function(s, "_", "_", 1, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), TW_EBADARG);
	assert_int_equal(tw_trace_function(s, "m", "_", 1, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), TW_EBADARG);
	assert_int_equal(tw_trace_function(s, "m", "f2", 256, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 0);
	assert_int_equal(tw_trace_function(s, "m", "f2", 2, TW_MATCH_TRUE, 64), TW_EBADARG);
	assert_int_equal(tw_trace_function(s, "m", "f2", 2, (enum tw_match)7, 1), TW_EBADARG);
	assert_int_equal(tw_trace_process(s, TW_PID_NEW, true, TW_FLAG_CALL), 0);
	assert_int_equal(tw_trace_process(s, 999999, true, TW_FLAG_CALL), TW_EBADARG);
	assert_int_equal(tw_trace_process(s, tw_process_self(), true, 1u << 31), TW_EBADARG);
	assert_int_equal(tw_trace_process(s, tw_process_self(), true, 0), 1);
	assert_true(tw_trace_process(s, TW_PID_ALL, true, TW_FLAG_CALL) >= 1);
	tw_session_destroy(s);
	assert_int_equal(tw_trace_function(s, "m", "f2", 2, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), TW_EDEAD);
	assert_int_equal(tw_trace_process(s, TW_PID_ALL, true, TW_FLAG_CALL), TW_EDEAD);
	close_bed(&bed);
}

static void time_stamps_have_a_precedence_and_are_remembered(void **state)
{
	static const struct {
		bool how;
		uint32_t flags;
		enum tw_stamp shown;
	} steps[] = {
		{true, TW_FLAG_MONOTONIC_TIMESTAMP, TW_STAMP_MONOTONIC},
		{true, TW_FLAG_TIMESTAMP, TW_STAMP_TIMESTAMP},
		{true, TW_FLAG_STRICT_MONOTONIC_TIMESTAMP, TW_STAMP_TIMESTAMP},
		{false, TW_FLAG_TIMESTAMP, TW_STAMP_STRICT_MONOTONIC},
		{false, TW_FLAG_STRICT_MONOTONIC_TIMESTAMP, TW_STAMP_MONOTONIC},
		{false, TW_FLAG_MONOTONIC_TIMESTAMP, TW_STAMP_NONE},
	};
	struct bed bed;
	struct tw_rb_record *r[4];

	open_bed(&bed, "stamps");
	trace_all_of_me(&bed, 0);
	for (size_t i = 0; i < TW_COUNT_OF(steps); i++) {
		bool is_strict = steps[i].shown == TW_STAMP_STRICT_MONOTONIC;

		tw_trace_process(bed.session, tw_process_self(), steps[i].how, steps[i].flags);
		tw_call1(&f1, 77);
		tw_call1(&f1, 78);
		assert_int_equal(take(&bed, r, 4), 2);
		assert_int_equal(TW_RB_HEAD_FLAGS(r[0]->head) & TW_EVENT_FLAG_STAMP_MASK, steps[i].shown);
		assert_int_equal(tw_event_payload_words(r[0]->head), 1 + is_strict);
		assert_int_equal(tw_event_payload(r[0])[is_strict], 77);
		if (is_strict)
			assert_true(tw_event_payload(r[0])[0] < tw_event_payload(r[1])[0]);
	}
	close_bed(&bed);
}

static void several_changes_become_visible_at_once(void **state)
{
	struct bed bed;

	open_bed(&bed, "transaction");
	tw_trace_process(bed.session, TW_PID_ALL, true, TW_FLAG_CALL);
	assert_int_equal(tw_trace_commit(), TW_EBADARG);
	assert_int_equal(tw_trace_begin(), 0);
	assert_int_equal(tw_trace_begin(), TW_EDEADLK);
	assert_int_equal(tw_trace_function(bed.session, "m", "f0", 0, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 1);
	assert_int_equal(tw_trace_function(bed.session, "n", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 1);
	tw_call0(&f0);
	tw_call2(&other, 1, 2);
	assert_int_equal(count_events(&bed), 0);
	assert_int_equal(tw_trace_commit(), 2);
	tw_call0(&f0);
	tw_call2(&other, 1, 2);
	assert_int_equal(count_events(&bed), 2);
	assert_int_equal(tw_trace_begin(), 0);
	tw_trace_function(bed.session, "m", "f0", 0, TW_MATCH_FALSE, TW_FUNCTION_LOCAL);
	assert_int_equal(tw_trace_abort(), 0);
	tw_call0(&f0);
	assert_int_equal(count_events(&bed), 1);
	close_bed(&bed);
}

static void counters_count_everybody_and_can_rest(void **state)
{
	struct tw_session *s, *t;
	uint64_t n = 99;

	assert_int_equal(tw_session_create("counters", NULL, &s), 0);
	assert_int_equal(tw_session_create("counters too", NULL, &t), 0);
	assert_int_equal(tw_trace_call_count(s, "m", "f1", 1, &n), 0);
	assert_int_equal(tw_trace_function(s, "m", "f1", 1, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT), 1);
	for (int i = 0; i < 10; i++)
		tw_call1(&f1, 1);
	assert_int_equal(tw_trace_call_count(s, "m", "f1", 1, &n), 1);
	assert_int_equal(n, 10);
	tw_trace_function(t, "m", "f1", 1, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT);
	tw_trace_function(s, "m", "f1", 1, TW_MATCH_PAUSE, TW_FUNCTION_CALL_COUNT);
	tw_call1(&f1, 1);
	assert_int_equal(tw_trace_call_count(s, "m", "f1", 1, &n), 1);
	assert_int_equal(n, 10);
	assert_int_equal(tw_trace_call_count(t, "m", "f1", 1, &n), 1);
	assert_int_equal(n, 1);
	tw_trace_function(s, "m", "f1", 1, TW_MATCH_RESTART, TW_FUNCTION_CALL_COUNT);
	tw_call1(&f1, 1);
	tw_trace_call_count(s, "m", "f1", 1, &n);
	assert_int_equal(n, 1);
	tw_trace_function(s, "m", "f1", 1, TW_MATCH_FALSE, TW_FUNCTION_CALL_COUNT);
	assert_int_equal(tw_trace_call_count(s, "m", "f1", 1, &n), 0);
	assert_int_equal(tw_trace_call_count(s, "m", "nobody", 1, &n), TW_EBADARG);
	tw_session_destroy(s);
	tw_call1(&f1, 1);
	tw_trace_call_count(t, "m", "f1", 1, &n);
	assert_int_equal(n, 3);
	tw_session_put(s);
	tw_session_put(t);
}

static void handles_weak_ids_and_the_last_put(void **state)
{
	struct tw_session *s, *again;
	tw_session_weak weak;

	assert_int_equal(tw_session_create("weak", NULL, &s), 0);
	weak = tw_session_weak_of(s);
	tw_trace_function(s, "m", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT);
	assert_int_not_equal(f0.armed, 0);
	assert_int_equal(tw_session_lock(weak, &again), 0);
	assert_ptr_equal(again, s);
	tw_session_put(again);
	tw_session_put(s);
	assert_int_equal(tw_session_lock(weak, &again), TW_EDEAD);
	assert_true(tw_progress() >= 1);
	assert_int_equal(f0.armed, 0);
	assert_int_equal(tw_session_destroy_weak(weak), TW_EBADARG);
	assert_int_equal(tw_session_create("destroyed", NULL, &s), 0);
	assert_int_equal(tw_session_destroy_weak(tw_session_weak_of(s)), 1);
	assert_int_equal(tw_session_destroy(s), 0);
	assert_int_equal(tw_session_destroy_weak(tw_session_weak_of(s)), TW_EBADARG);
	assert_string_equal(tw_session_name(s), "destroyed");
	tw_session_put(s);
}

static void sixty_four_sessions_set_something_and_not_one_more(void **state)
{
	struct tw_session *s[TW_SESSIONS_MAX], *more;
	uint64_t n;

	for (int i = 0; i < TW_SESSIONS_MAX; i++) {
		assert_int_equal(tw_session_create("many", NULL, &s[i]), 0);
		tw_trace_function(s[i], "m", "f0", 0, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT);
	}
	assert_int_equal(tw_session_create("too many", NULL, &more), 0);
	assert_int_equal(tw_trace_function(more, "m", "f0", 0, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT), TW_ELIMIT);
	assert_int_equal(tw_trace_process(more, TW_PID_ALL, true, TW_FLAG_CALL), TW_ELIMIT);
	assert_int_equal(tw_trace_on_load(more, TW_MATCH_TRUE, NULL, 0), TW_ELIMIT);
	assert_int_equal(tw_trace_send(more, TW_MATCH_FALSE), TW_ELIMIT);
	tw_session_put(more);
	tw_call0(&f0);
	for (int i = 0; i < TW_SESSIONS_MAX; i++) {
		tw_trace_call_count(s[i], "m", "f0", 0, &n);
		assert_int_equal(n, 1);
		if (i % 2)
			tw_session_destroy(s[i]);
		tw_session_put(s[i]);
	}
	tw_progress();
	assert_int_equal(tw_session_create("again", NULL, &more), 0);
	assert_int_equal(tw_trace_function(more, "m", "f0", 0, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT), 1);
	tw_session_put(more);
	tw_progress();
}

static void *call_from_a_thread(void *arg)
{
	for (int i = 0; i < 100; i++)
		tw_call2(&f2, (uint64_t)i, 0);
	return NULL;
}

static void threads_come_and_go(void **state)
{
	struct bed bed;
	unsigned seen = 0;
	uint64_t log = 0;

	open_bed(&bed, "threads");
	tw_trace_process(bed.session, TW_PID_ALL, true, TW_FLAG_CALL);
	tw_trace_function(bed.session, "m", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_LOCAL);
	for (int round = 0; round < 40; round++) {
		pthread_t t[3];

		for (int i = 0; i < 3; i++)
			pthread_create(&t[i], NULL, call_from_a_thread, NULL);
		for (int i = 0; i < 3; i++)
			pthread_join(t[i], NULL);
		seen += count_events(&bed);
		for (uint32_t i = 0; i < tw_rs_scan(&bed.rs); i++) {
			if (tw_rs_ring_state(&bed.rs, i) != TW_RB_ENDED)
				continue;
			tw_rs_ring_recycle(&bed.rs, i);
		}
		if (!round)
			log = bed.rs.own.head->defs_committed_bytes;
	}
	/* The log of definitions only grows: threads leave nothing there. */
	assert_int_equal(bed.rs.own.head->defs_committed_bytes, log);
	assert_int_equal(seen + bed.rs.own.head->no_ring_lost, 12000);
	assert_int_equal(bed.rs.own.head->no_ring_lost, 0);
	close_bed(&bed);
}

/* Sanitizers' own frames are several times as large. */
#define LITTLE_STACK_BYTES ((size_t)PTHREAD_STACK_MIN * (IS_SANITIZED ? 8 : 1))

static void the_first_call_needs_little_stack(void **state)
{
	struct bed bed;
	pthread_attr_t attributes;
	pthread_t t;

	open_bed(&bed, "small stack");
	tw_trace_process(bed.session, TW_PID_ALL, true, TW_FLAG_CALL);
	tw_trace_function(bed.session, "m", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_LOCAL);
	pthread_attr_init(&attributes);
	assert_int_equal(pthread_attr_setstacksize(&attributes, LITTLE_STACK_BYTES), 0);
	assert_int_equal(pthread_create(&t, &attributes, call_from_a_thread, NULL), 0);
	pthread_join(t, NULL);
	pthread_attr_destroy(&attributes);
	assert_int_equal(count_events(&bed), 100);
	close_bed(&bed);
}

static void threads_without_rings_are_counted(void **state)
{
	struct tw_rs_options options = {.ring_bytes = 1 << 16, .cap_bytes = (1 << 16) + 4096, .has_fixed_rings = true};
	struct bed bed;
	pthread_t t;

	open_bed_with(&bed, "no rings", &options);
	trace_all_of_me(&bed, 0);
	tw_call0(&f0);
	tw_trace_process(bed.session, TW_PID_ALL, true, TW_FLAG_CALL);
	pthread_create(&t, NULL, call_from_a_thread, NULL);
	pthread_join(t, NULL);
	assert_int_equal(count_events(&bed), 1);
	assert_int_equal(bed.rs.own.head->no_ring_lost, 100);
	close_bed(&bed);
}

/* ---- signals ---- */

static sigjmp_buf away;
static volatile int handled;

static void on_signal_call(int number)
{
	tw_call0(&f0);
	handled++;
}

static void on_signal_jump(int number)
{
	tw_call0(&f0);
	siglongjmp(away, 1);
}

static void install(void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler};

	sigaction(SIGALRM, &action, NULL);
}

/* As a handler's call inside of the thread's first one, which has no ring yet. */
static void call_before_there_is_a_ring(void)
{
	uintptr_t before = tw_hit_tls.state;

	tw_hit_tls.state = (uintptr_t)__builtin_frame_address(0);
	tw_call0(&f0);
	tw_hit_tls.state = before;
}

static void handlers_record_or_are_counted(void **state)
{
	struct tw_rs_options options = {.ring_bytes = 1 << 24, .cap_bytes = 1 << 25, .has_fixed_rings = true};
	struct itimerval every = {{0, 50}, {0, 50}}, off = {0};
	struct bed bed;
	unsigned called = 0, events = 0, got;

	open_bed_with(&bed, "signals", &options);
	trace_all_of_me(&bed, 0);
	call_before_there_is_a_ring();
	assert_int_equal(bed.rs.own.head->no_ring_lost, 1);
	handled = 1;
	install(on_signal_call);
	setitimer(ITIMER_REAL, &every, NULL);
	while (handled < 2000) {
		for (int i = 0; i < 50; i++, called++)
			tw_call2(&f2, 1, 2);
		if (called % 1000 == 0)
			events += count_events(&bed);
	}
	setitimer(ITIMER_REAL, &off, NULL);
	while ((got = count_events(&bed)))
		events += got;
	assert_int_equal(events + count_lost(&bed) + bed.rs.own.head->no_ring_lost, called + (unsigned)handled);
	assert_true(tw_rs_ring(&bed.rs, 0)->lost[TW_RB_LOST_NESTED] > 0);
	install(on_signal_jump);
	for (volatile int i = 0; i < 2000; i++) {
		if (sigsetjmp(away, 1) == 0) {
			/* Not before: a handler that jumps needs the whole of `away`. */
			if (i == 0)
				setitimer(ITIMER_REAL, &every, NULL);
			for (;;)
				tw_call2(&f2, 1, 2);
		}
	}
	setitimer(ITIMER_REAL, &off, NULL);
	while (count_events(&bed))
		;
	/* The thread does not stay inside a hit that was left by a jump. */
	tw_call0(&f0);
	tw_call0(&f0);
	assert_true(count_events(&bed) >= 1);
	close_bed(&bed);
}

static void a_forked_child_is_silent(void **state)
{
	struct bed bed;
	int status;
	pid_t child;

	open_bed(&bed, "fork");
	trace_all_of_me(&bed, 0);
	tw_call0(&f0);
	child = fork();
	if (child == 0) {
		for (int i = 0; i < 1000; i++)
			tw_call0(&f0);
		_exit(0);
	}
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	tw_call0(&f0);
	assert_int_equal(count_events(&bed), 2);
	close_bed(&bed);
}

/* ---- processes that move ---- */

static void processes_of_a_run_time_have_switch_records(void **state)
{
	struct bed bed;
	struct tw_process *a, *b;
	struct tw_rb_record *r[16];
	unsigned n;

	open_bed(&bed, "processes");
	tw_trace_function(bed.session, "m", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_LOCAL);
	tw_trace_process(bed.session, TW_PID_NEW, true, TW_FLAG_CALL);
	assert_int_equal(tw_process_create("a", &a), 0);
	assert_int_equal(tw_process_create("b", &b), 0);
	tw_process_in(a);
	tw_call1(&f1, 1);
	tw_process_in(b);
	tw_call1(&f1, 2);
	tw_call1(&f1, 3);
	tw_process_in(a);
	tw_call1(&f1, 4);
	tw_process_out();
	tw_call1(&f1, 5);
	n = take(&bed, r, 16);
	assert_int_equal(n, 7);
	assert_int_equal(TW_RB_HEAD_KIND(r[0]->head), TW_EVENT_SWITCH);
	assert_int_equal(TW_RB_HEAD_ID(r[0]->head), tw_process_pid(a));
	assert_int_equal(tw_event_payload(r[0])[0], 1);
	assert_int_equal(TW_RB_HEAD_ID(r[2]->head), tw_process_pid(b));
	assert_int_equal(TW_RB_HEAD_ID(r[5]->head), tw_process_pid(a));
	assert_int_equal(tw_event_payload(r[5])[0], 2);
	assert_int_equal(tw_event_payload(r[6])[0], 4);
	tw_process_exit(a);
	tw_process_exit(b);
	close_bed(&bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_is_recorded_with_its_words),
		cmocka_unit_test(sessions_do_not_see_each_other),
		cmocka_unit_test(function_counts_and_bad_arguments),
		cmocka_unit_test(time_stamps_have_a_precedence_and_are_remembered),
		cmocka_unit_test(several_changes_become_visible_at_once),
		cmocka_unit_test(counters_count_everybody_and_can_rest),
		cmocka_unit_test(handles_weak_ids_and_the_last_put),
		cmocka_unit_test(sixty_four_sessions_set_something_and_not_one_more),
		cmocka_unit_test(threads_come_and_go),
		cmocka_unit_test(the_first_call_needs_little_stack),
		cmocka_unit_test(threads_without_rings_are_counted),
		cmocka_unit_test(handlers_record_or_are_counted),
		cmocka_unit_test(a_forked_child_is_silent),
		cmocka_unit_test(processes_of_a_run_time_have_switch_records),
	};

	assert_int_equal(tw_function_declare(&f0), 0);
	assert_int_equal(tw_function_declare(&f1), 0);
	assert_int_equal(tw_function_declare(&f2), 0);
	assert_int_equal(tw_function_declare(&other), 0);
	assert_int_equal(tw_function_declare(&f0), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
