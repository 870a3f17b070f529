/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Life, links, names, scheduling and collections of processes are reported as in OTP, in its order.
 * Method	Processes that the test itself plays, with one session and with two; the rings hold what is expected.
 */
#include "session_two.h"

#include <pthread.h>

static struct tw_declared_function step = TW_DECLARED_FUNCTION("actor", "step", 2);

/* 59, 63, 69, 79 */
static void f59_spawn_link_gives_the_child_its_first_events(void **state)
{
	struct tw_process *c;

	trace_in(&one, p, TW_FLAG_PROCS | TW_FLAG_SET_ON_SPAWN | TW_FLAG_SEND);
	trace_in(&two, p, TW_FLAG_PROCS);
	tw_process_in(p);
	c = spawn(p, "c", true);
	tw_process_out();
	EXPECT(&one, "p spawn c, {m,f,[x]}", "p link c", "c spawned p, {m,f,[x]}", "c getting_linked p");
	EXPECT(&two, "p spawn c, {m,f,[x]}", "p link c");
	/* The child exists, whatever it does next. */
	tw_process_in(c);
	tw_process_send(c, parse("a"), pid_of(p));
	tw_process_out();
	EXPECT(&one, "c send a, p");
	tw_process_exit(c);
	EXPECT(&one, "c exit normal");
	EXPECT_NOTHING(&two);
}

/* 60, 62: exit first, then unregister; names belong to the process named. */
static void f60_exit_then_unregister(void **state)
{
	trace_in(&one, p, TW_FLAG_PROCS);
	tw_process_in(q);
	assert_int_equal(tw_process_register(p, parse("nnn")), 0);
	assert_int_equal(tw_process_unregister(p), 0);
	assert_int_equal(tw_process_unregister(p), TW_EBADARG);
	assert_int_equal(tw_process_register(p, parse("nnn2")), 0);
	assert_int_equal(tw_process_register(p, parse("nnn3")), TW_EBADARG);
	assert_int_equal(tw_process_register(q, parse("nnn2")), TW_EBADARG);
	assert_int_equal(tw_process_register(q, parse("17")), TW_EBADARG);
	tw_process_out();
	EXPECT(&one, "p register nnn", "p unregister nnn", "p register nnn2");
	tw_process_in(p);
	tw_process_exiting(p, parse("{because,1}"));
	tw_process_out();
	tw_process_exit(p);
	p = NULL;
	EXPECT(&one, "p exit {because,1}", "p unregister nnn2");
	/* The name is free. */
	assert_int_equal(tw_process_register(q, parse("nnn2")), 0);
}

/* 59, 61 */
static void f61_links_and_the_exit_of_a_linked_process(void **state)
{
	tw_pid gone = tw_process_pid(q);

	trace_in(&one, p, TW_FLAG_PROCS);
	trace_in(&one, q, TW_FLAG_PROCS);
	trace_in(&two, q, TW_FLAG_PROCS);
	tw_process_in(p);
	tw_process_link(p, q);
	tw_process_getting_linked(q, tw_process_pid(p));
	tw_process_unlink(p, gone);
	tw_process_getting_unlinked(q, tw_process_pid(p));
	tw_process_exiting(q, parse("bad"));
	tw_process_getting_unlinked(p, gone);
	tw_process_exiting(p, parse("bad"));
	tw_process_out();
	EXPECT(&one, "p link q", "q getting_linked p", "p unlink q", "q getting_unlinked p", "q exit bad",
	       "p getting_unlinked q", "p exit bad");
	EXPECT(&two, "q getting_linked p", "q getting_unlinked p", "q exit bad");
}

/* 66: in and out alternate, whatever the run-time calls. */
static void f66_running_alternates(void **state)
{
	trace_in(&one, p, TW_FLAG_RUNNING);
	trace_in(&two, q, TW_FLAG_RUNNING_PROCS);
	tw_process_in_at(p, &step);
	tw_process_in_at(p, &step);
	tw_process_out_at(&step);
	tw_process_out();
	tw_process_in(p);
	tw_process_in(q);
	tw_process_out();
	EXPECT(&one, "p in {actor,step,2}", "p out {actor,step,2}", "p in 0", "p out 0");
	EXPECT(&two, "q in 0", "q out 0");
}

/* 67, 66: a process that exits is scheduled in its own way, and its very last event is out_exited. */
static void f67_exiting(void **state)
{
	trace_in(&one, p, TW_FLAG_EXITING | TW_FLAG_RUNNING | TW_FLAG_PROCS);
	trace_in(&two, p, TW_FLAG_RUNNING);
	tw_process_in_at(p, &step);
	tw_process_exiting(p, parse("done"));
	tw_process_out();
	tw_process_in(p);
	tw_process_exit(p);
	p = NULL;
	EXPECT(&one, "p in {actor,step,2}", "p exit done", "p out_exiting 0", "p in_exiting 0", "p out_exited 0");
	EXPECT(&two, "p in {actor,step,2}");
	assert_int_equal(tw_process_self(), 0);
}

/* 64, 65 */
static void f64_collections_have_twelve_sizes(void **state)
{
	struct tw_gc_sizes sizes = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
	struct lines *lines;

	trace_in(&one, p, TW_FLAG_GARBAGE_COLLECTION);
	trace_in(&one, p, TW_FLAG_STRICT_MONOTONIC_TIMESTAMP);
	trace_in(&two, p, TW_FLAG_GARBAGE_COLLECTION);
	tw_process_in(p);
	for (int event = TW_GC_MINOR_START; event <= TW_GC_MAX_HEAP_SIZE; event++)
		tw_process_gc(p, (enum tw_gc_event)event, &sizes);
	tw_process_out();
	lines = read_lines(&one);
	assert_int_equal(lines->count, 5);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(tw_event_payload_words(lines->record[i]->head), 13);
		assert_memory_equal(tw_event_payload(lines->record[i]) + 1, &sizes, sizeof sizes);
	}
	lines = read_lines(&two);
	assert_int_equal(lines->count, 5);
	assert_string_equal(lines->text[1], "p gc_minor_end");
	assert_int_equal(tw_event_payload_words(lines->record[1]->head), 12);
	assert_memory_equal(tw_event_payload(lines->record[1]), &sizes, sizeof sizes);
}

/* 68 */
static void f68_a_sensitive_process_makes_no_events(void **state)
{
	uint32_t all = TW_FLAG_ALL & ~(uint32_t)TW_FLAG_SILENT;

	trace_in(&one, p, all);
	trace_in(&two, p, TW_FLAG_CALL);
	assert_int_equal(tw_trace_function(one.session, "actor", "step", 2, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 1);
	assert_int_equal(tw_trace_function(two.session, "actor", "step", 2, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 1);
	assert_int_equal(tw_process_sensitive(p, true), 0);
	tw_process_in(p);
	tw_call2(&step, 1, 1);
	tw_process_send(p, parse("a"), pid_of(q));
	tw_process_receive(p, parse("a"), pid_of(q));
	trace_in(&two, p, TW_FLAG_SEND);
	tw_process_send(p, parse("a"), pid_of(q));
	EXPECT_NOTHING(&one);
	EXPECT_NOTHING(&two);
	assert_int_equal(flags_of(&one, p), all);
	assert_int_equal(tw_process_sensitive(p, false), 0);
	tw_call2(&step, 2, 2);
	tw_process_send(p, parse("b"), pid_of(q));
	EXPECT(&one, "p call", "p send b, q");
	EXPECT(&two, "p call", "p send b, q");
	tw_process_out();
}

/* 43, first half: no flag, no word; the last process that is wanted clears the word. */
static void the_word_is_zero_without_wanted_events(void **state)
{
	struct tw_process *c = new_process("c");

	assert_int_equal(tw_runtime_wanted, 0);
	trace_in(&one, c, TW_FLAG_SEND | TW_FLAG_SET_ON_LINK);
	trace_in(&two, p, TW_FLAG_SEND);
	assert_int_equal(tw_runtime_wanted, TW_WANTS_SEND | TW_WANTS_LINKS);
	assert_true(tw_process_wants(c, TW_WANTS_SEND));
	assert_false(tw_process_wants(q, TW_WANTS_SEND));
	assert_false(tw_process_wants(NULL, TW_WANTS_SEND));
	tw_process_exit(c);
	assert_int_equal(tw_runtime_wanted, TW_WANTS_SEND);
	assert_int_equal(tw_trace_process(two.session, TW_PID_ALL, false, TW_FLAG_SEND) > 1, 1);
	assert_int_equal(tw_runtime_wanted, 0);
	assert_int_equal(tw_trace_process(two.session, TW_PID_ALL, true, TW_FLAG_ALL) > 1, 1);
	tw_session_destroy(two.session);
	assert_int_equal(tw_runtime_wanted, 0);
}

/* Match specifications name processes by their registered names. */
static void q_names_serve_in_match_specs(void **state)
{
	struct tw_match_program *program;
	struct tw_match_error error;
	static const char spec[] =
		"[{['_','_'],[],[{message,{{{enable_trace,qreg,send},{enable_trace,nobody,send}}}}]}]";

	assert_int_equal(tw_match_compile_text(spec, strlen(spec), NULL, &program, &error), 0);
	assert_int_equal(tw_process_register(q, parse("qreg")), 0);
	trace_in(&one, p, TW_FLAG_CALL);
	assert_int_equal(tw_trace_function_match(one.session, "actor", "step", 2, program, TW_FUNCTION_LOCAL), 1);
	tw_process_in(p);
	tw_call2(&step, 1, 2);
	tw_process_out();
	assert_int_equal(flags_of(&one, q), TW_FLAG_SEND);
	assert_int_equal(flags_of(&two, q), 0);
	assert_int_equal(tw_trace_function(one.session, "actor", "step", 2, TW_MATCH_FALSE, TW_FUNCTION_LOCAL), 1);
	tw_match_destroy(program);
}

/* 46 to 48: stamps are remembered, the stronger one is shown. */
static void e48_stamps_and_their_precedence(void **state)
{
	static const struct {
		bool how;
		uint32_t flags;
		unsigned stamp;
	} cases[] = {
		{true, TW_FLAG_SEND, TW_STAMP_NONE},
		{true, TW_FLAG_MONOTONIC_TIMESTAMP, TW_STAMP_MONOTONIC},
		{true, TW_FLAG_TIMESTAMP | TW_FLAG_STRICT_MONOTONIC_TIMESTAMP, TW_STAMP_TIMESTAMP},
		{false, TW_FLAG_TIMESTAMP, TW_STAMP_STRICT_MONOTONIC},
		{false, TW_FLAG_STRICT_MONOTONIC_TIMESTAMP, TW_STAMP_MONOTONIC},
		{true, TW_FLAG_SCHEDULER_ID, TW_STAMP_MONOTONIC | TW_EVENT_FLAG_SCHEDULER_ID},
		{false, TW_FLAG_MONOTONIC_TIMESTAMP, TW_STAMP_NONE | TW_EVENT_FLAG_SCHEDULER_ID},
	};

	trace_in(&two, p, TW_FLAG_SEND);
	tw_process_in(p);
	for (size_t i = 0; i < TW_COUNT_OF(cases); i++) {
		struct lines *lines;
		unsigned shown;

		assert_int_equal(tw_trace_process(one.session, tw_process_pid(p), cases[i].how, cases[i].flags), 1);
		tw_process_send(p, parse("a"), parse("b"));
		lines = read_lines(&one);
		assert_int_equal(lines->count, 1);
		assert_string_equal(lines->text[0], "p send a, b");
		shown = TW_RB_HEAD_FLAGS(lines->record[0]->head);
		assert_int_equal(shown & (TW_EVENT_FLAG_STAMP_MASK | TW_EVENT_FLAG_SCHEDULER_ID), cases[i].stamp);
		EXPECT(&two, "p send a, b");
	}
	tw_process_out();
}

/* An event's stamp lies between two of the program's own: the integer strictly. */
static void e_strict_stamps_are_the_programs_own_integers(void **state)
{
	int64_t before, after, last = 0;
	struct lines *lines;

	trace_in(&one, p, TW_FLAG_SEND | TW_FLAG_STRICT_MONOTONIC_TIMESTAMP);
	trace_in(&two, p, TW_FLAG_SEND | TW_FLAG_STRICT_MONOTONIC_TIMESTAMP);
	tw_process_in(p);
	for (int i = 0; i < 100; i++) {
		before = tw_unique_integer_monotonic();
		tw_process_send(p, parse("a"), parse("b"));
		after = tw_unique_integer_monotonic();
		assert_true(before > last);
		lines = read_lines(&one);
		assert_int_equal(lines->count, 1);
		last = (int64_t)tw_event_payload(lines->record[0])[0];
		assert_in_range(last, before + 1, after - 1);
		lines = read_lines(&two);
		assert_in_range(tw_event_payload(lines->record[0])[0], before + 1, after - 1);
		assert_int_not_equal(tw_event_payload(lines->record[0])[0], last);
		last = after;
	}
	tw_process_out();
}

static void *live(void *unused)
{
	struct tw_process *self = tw_process_current();

	name_process(self, "thread");
	tw_process_send(self, parse("a"), parse("b"));
	return NULL;
}

static void *be_a_scheduler(void *unused)
{
	assert_int_equal(tw_scheduler_declare(), 0);
	return NULL;
}

/* Threads that are not declared are processes from their first event; schedulers are none. */
static void f_threads_are_spawned_and_exit(void **state)
{
	pthread_t thread;

	assert_int_equal(tw_trace_process(one.session, TW_PID_NEW, true, TW_FLAG_PROCS | TW_FLAG_SEND), 0);
	assert_int_equal(tw_trace_process(two.session, TW_PID_NEW, true, TW_FLAG_PROCS), 0);
	pthread_create(&thread, NULL, live, NULL);
	pthread_join(thread, NULL);
	EXPECT(&one, "thread spawned undefined, {undefined,undefined,[]}", "thread send a, b", "thread exit normal");
	EXPECT(&two, "thread spawned undefined, {undefined,undefined,[]}", "thread exit normal");
	pthread_create(&thread, NULL, be_a_scheduler, NULL);
	pthread_join(thread, NULL);
	EXPECT_NOTHING(&one);
}

/* Flags by name, as commands and messages write them. */
static void d_flags_have_names(void **state)
{
	assert_string_equal(tw_process_flag_name(TW_FLAG_SET_ON_FIRST_LINK), "set_on_first_link");
	assert_string_equal(tw_process_flag_name(TW_FLAG_CPU_TIMESTAMP), "cpu_timestamp");
	assert_null(tw_process_flag_name(TW_FLAG_CALL | TW_FLAG_SEND));
	for (uint32_t bit = 1; bit <= TW_FLAG_CPU_TIMESTAMP; bit <<= 1)
		assert_int_equal(tw_process_flag_named(tw_process_flag_name(bit)), bit);
	assert_int_equal(tw_process_flag_named("all"), TW_FLAG_ALL);
	assert_int_equal(tw_process_flag_named("foo"), 0);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, begin, end)
	const struct CMUnitTest tests[] = {
		CASE(f59_spawn_link_gives_the_child_its_first_events),
		CASE(f60_exit_then_unregister),
		CASE(f61_links_and_the_exit_of_a_linked_process),
		CASE(f66_running_alternates),
		CASE(f67_exiting),
		CASE(f64_collections_have_twelve_sizes),
		CASE(f68_a_sensitive_process_makes_no_events),
		CASE(the_word_is_zero_without_wanted_events),
		CASE(q_names_serve_in_match_specs),
		CASE(e48_stamps_and_their_precedence),
		CASE(e_strict_stamps_are_the_programs_own_integers),
		CASE(f_threads_are_spawned_and_exit),
		cmocka_unit_test(d_flags_have_names),
	};

	assert_int_equal(tw_function_declare(&step), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
