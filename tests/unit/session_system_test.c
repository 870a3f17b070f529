/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Monitors of the system are set, shown and ended as OTP's, and end with their session; a queue is long and short
 *	again for each session by itself; what cannot be monitored is refused.
 * Method	Two sessions with queues and other limits each, and a process that the test plays.  The numbers are those of
 *	docs/semantics.md.
 */
#include "tests/unit/system_help.h"

/* ---- settings ---- */

static void line_185_186_187_178_what_is_set_and_shown(void **state)
{
	static const struct {
		const char *event, *value;
		int result;
	} cases[] = {
		{"long_gc", "10", 0},
		{"long_gc", "0", 0},
		{"long_gc", "true", TW_EBADARG},
		{"long_gc", "-1", TW_EBADARG},
		{"long_gc", "18446744073709551616", TW_EBADARG},
		{"long_gc", "1.0", TW_EBADARG},
		{"long_schedule", "0", 0},
		{"long_schedule", "18446744073709551615", 0},
		{"large_heap", "1000", 0},
		{"large_heap", "true", TW_EBADARG},
		{"large_heap", "0", 0},
		{"large_heap", "18446744073709551616", TW_EBADARG},
		{"long_schedule", "123456789012345678901234567890", TW_EBADARG},
		{"long_schedule", "-18446744073709551616", TW_EBADARG},
		{"long_message_queue", "{18446744073709551614,18446744073709551615}", 0},
		{"long_message_queue", "{18446744073709551616,18446744073709551617}", TW_EBADARG},
		{"busy_port", "true", 0},
		{"busy_port", "1", TW_EBADARG},
		{"busy_dist_port", "true", 0},
		{"busy_dist_port", "0", TW_EBADARG},
		{"long_message_queue", "{1,2}", 0},
		{"long_message_queue", "{2,2}", TW_EBADARG},
		{"long_message_queue", "{0,0}", TW_EBADARG},
		{"long_message_queue", "{-1,1}", TW_EBADARG},
		{"long_message_queue", "5", TW_EBADARG},
		{"long_message_queue", "true", TW_EBADARG},
		{"long_message_queue", "{1,2,3}", TW_EBADARG},
		{"long_message_queue", "{1,18446744073709551616}", TW_EBADARG},
		{"long_message_queue", "{0,1}", 0},
		{"foo", "true", TW_EBADARG},
		{"foo", "false", TW_EBADARG},
		{"1", "true", TW_EBADARG},
	};
	static const char *const events[] = {"long_gc",	  "long_schedule",  "large_heap",
					     "busy_port", "busy_dist_port", "long_message_queue"};
	struct tw_term answer;

	assert_string_equal(settings(one), "{system,[]}");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (set(one, cases[i].event, cases[i].value) != cases[i].result)
			fail_msg("%s %s", cases[i].event, cases[i].value);
	assert_string_equal(settings(one),
			    "{system,[busy_dist_port,busy_port,{large_heap,16384},{long_schedule,18446744073709551615},"
			    "{long_gc,1},{long_message_queue,{0,1}}]}");
	assert_string_equal(settings(two), "{system,[]}");
	assert_int_equal(set(two, "long_gc", "7"), 0);
	for (size_t i = 0; i < sizeof events / sizeof *events; i++)
		assert_int_equal(set(one, events[i], "false"), 0);
	assert_string_equal(settings(one), "{system,[]}");
	assert_string_equal(settings(two), "{system,[{long_gc,7}]}");
	assert_int_equal(tw_trace_info(one, parse("system"), parse("flags"), &arena, &answer), TW_EBADARG);
	assert_int_equal(tw_session_info(parse("system"), &arena, &answer), TW_EBADARG);
	assert_int_equal(set(two, "long_gc", "false"), 0);
	assert_false(tw_runtime_wants(~UINT32_C(0)));
}

static enum tw_tracer_answer always(enum tw_tracer_tag tag, struct tw_term state, struct tw_term tracee)
{
	return TW_TRACER_TRACE;
}

static void hear(enum tw_tracer_tag tag, struct tw_term state, struct tw_term tracee, struct tw_term term,
		 const struct tw_tracer_options *options)
{
}

/* Another tracer than a queue; one that is gone; a session that is dead; in the middle of a transaction. */
static void line_186_only_a_queue_is_told(void **state)
{
	char path[] = "/tmp/tw-system-XXXXXX", capture[64], command[64];
	struct tw_tracer tracer = {.kind = TW_TRACER_CAPTURE, .capture_path = capture};
	const struct tw_tracer_module module = {.bytes = sizeof module, .name = "m", .enabled = always, .trace = hear};
	struct tw_term answer;
	struct tw_session *other;
	int ends[2];

	/* Linked in, and so found by sessions. */
	assert_int_not_equal((uintptr_t)tw_recorder_create, 0);
	assert_int_equal(tw_session_create("none", NULL, &other), 0);
	assert_int_equal(set(other, "busy_port", "true"), TW_EBADARG);
	assert_int_equal(set(other, "busy_port", "false"), TW_EBADARG);
	end_session(other);
	assert_non_null(mkdtemp(path));
	snprintf(capture, sizeof capture, "%s/c.tw", path);
	assert_int_equal(tw_session_create("capture", &tracer, &other), 0);
	assert_int_equal(set(other, "busy_port", "true"), TW_EBADARG);
	assert_string_equal(settings(other), "{system,[]}");
	end_session(other);
	assert_int_equal(pipe(ends), 0);
	tracer = (struct tw_tracer){.kind = TW_TRACER_STREAM, .stream_fd = ends[1]};
	assert_int_equal(tw_session_create("stream", &tracer, &other), 0);
	assert_int_equal(set(other, "long_gc", "1"), TW_EBADARG);
	end_session(other);
	close(ends[0]);
	close(ends[1]);
	tracer = (struct tw_tracer){.kind = TW_TRACER_MODULE, .module = &module};
	assert_int_equal(tw_session_create("module", &tracer, &other), 0);
	assert_int_equal(set(other, "long_gc", "1"), TW_EBADARG);
	end_session(other);
	assert_int_equal(tw_trace_system(NULL, parse("busy_port"), parse("true")), TW_EBADARG);
	assert_int_equal(tw_trace_begin(), 0);
	assert_int_equal(set(one, "busy_port", "true"), 0);
	assert_int_equal(tw_trace_abort(), 0);
	assert_string_equal(settings(one), "{system,[busy_port]}");
	other = new_session();
	assert_int_equal(set(other, "busy_port", "true"), 0);
	assert_int_equal(tw_queue_close(other), 0);
	assert_string_equal(settings(other), "{system,[]}");
	assert_int_equal(set(other, "busy_port", "true"), 0);
	assert_string_equal(settings(other), "{system,[]}");
	tw_session_destroy(other);
	assert_int_equal(set(other, "busy_port", "true"), TW_EDEAD);
	assert_int_equal(tw_trace_info(other, parse("system"), parse("all"), &arena, &answer), TW_EDEAD);
	tw_session_put(other);
	snprintf(command, sizeof command, "rm -rf %s", path);
	assert_int_equal(system(command), 0);
}

/* 18: what a session has set goes with it, also where another gets its bit. */
static void line_18_monitors_end_with_their_session(void **state)
{
	struct tw_session *other = new_session();

	assert_int_equal(set(other, "long_message_queue", "{1,2}"), 0);
	assert_true(tw_runtime_wants(TW_WANTS_MAILBOX));
	lengths("5");
	assert_string_equal(received(other), "{monitor,P,long_message_queue,true}\n");
	end_session(other);
	assert_false(tw_runtime_wants(~UINT32_C(0)));
	other = new_session();
	assert_int_equal(set(other, "busy_port", "true"), 0);
	lengths("1 6");
	assert_string_equal(received(other), "");
	assert_int_equal(set(other, "long_message_queue", "{1,2}"), 0);
	lengths("6");
	assert_string_equal(received(other), "{monitor,P,long_message_queue,true}\n");
	end_session(other);
}

/* ---- queues ---- */

static void line_188_189_each_session_has_its_own_hysteresis(void **state)
{
	assert_int_equal(set(one, "long_message_queue", "{5,10}"), 0);
	lengths("1 9 4 9");
	assert_string_equal(received(one), "");
	lengths("10");
	assert_string_equal(received(one), "{monitor,P,long_message_queue,true}\n");
	lengths("11 300 6 10 6");
	assert_string_equal(received(one), "");
	lengths("5");
	assert_string_equal(received(one), "{monitor,P,long_message_queue,false}\n");
	lengths("4 9 5");
	assert_string_equal(received(one), "");
	lengths("10");
	assert_string_equal(received(one), "{monitor,P,long_message_queue,true}\n");
	assert_int_equal(set(two, "long_message_queue", "{2,4}"), 0);
	lengths("10");
	assert_string_equal(received(one), "");
	assert_string_equal(received(two), "{monitor,P,long_message_queue,true}\n");
	lengths("5 4 3 4");
	assert_string_equal(received(one), "{monitor,P,long_message_queue,false}\n");
	assert_string_equal(received(two), "");
	lengths("2 4 2 10 0");
	assert_string_equal(received(one),
			    "{monitor,P,long_message_queue,true}\n{monitor,P,long_message_queue,false}\n");
	assert_string_equal(received(two), "{monitor,P,long_message_queue,false}\n{monitor,P,long_message_queue,true}\n"
					   "{monitor,P,long_message_queue,false}\n{monitor,P,long_message_queue,true}\n"
					   "{monitor,P,long_message_queue,false}\n");
	/* A new setting begins anew; one that is off says nothing. */
	lengths("4");
	assert_int_equal(set(two, "long_message_queue", "{2,4}"), 0);
	lengths("4");
	assert_string_equal(received(two),
			    "{monitor,P,long_message_queue,true}\n{monitor,P,long_message_queue,true}\n");
	assert_int_equal(set(two, "long_message_queue", "false"), 0);
	lengths("2 4");
	assert_string_equal(received(two), "");
	lengths("18446744073709551615");
	assert_string_equal(received(one), "{monitor,P,long_message_queue,true}\n");
}

static void line_190_an_exit_says_nothing_of_the_queue(void **state)
{
	assert_int_equal(set(one, "long_message_queue", "{5,10}"), 0);
	assert_int_equal(set(two, "long_message_queue", "{0,1}"), 0);
	lengths("10");
	tw_process_exiting(p, parse("normal"));
	lengths("0");
	tw_process_exit(p);
	p = NULL;
	assert_string_equal(received(one), "{monitor,P,long_message_queue,true}\n");
	assert_string_equal(received(two), "{monitor,P,long_message_queue,true}\n");
	/* Its memory is another's now, whose queue is short. */
	assert_int_equal(tw_process_create("p", &p), 0);
	snprintf(p_text, sizeof p_text, "<0.%u.0>", (unsigned)tw_process_pid(p));
	lengths("0 10");
	assert_string_equal(received(one), "{monitor,P,long_message_queue,true}\n");
}

/* Threads report the same process at once: for each session true and false alternate, whatever limits are set meanwhile. */
#define REPORTS 20000
static _Atomic bool is_over;

static void *report_lengths(void *arg)
{
	for (unsigned i = 0; i < REPORTS; i++)
		tw_process_mailbox(p, i * 7 % 12);
	return NULL;
}

static void *change_other(void *arg)
{
	for (unsigned i = 0; !atomic_load(&is_over); i++) {
		struct tw_term pair[2];
		struct tw_arena own;
		char buffer[256];

		tw_arena_init_fixed(&own, buffer, sizeof buffer);
		pair[0] = tw_term_unsigned(&own, i % 3);
		pair[1] = tw_term_unsigned(&own, 4 + i % 3);
		tw_trace_system(two, tw_term_atom_z("long_message_queue"),
				i % 4 ? tw_term_tuple(&own, pair, 2) : tw_term_atom_z("false"));
	}
	return NULL;
}

static unsigned count_events(uint64_t *balance)
{
	struct tw_term message;
	unsigned events = 0;

	*balance = 0;
	while (tw_queue_receive(one, 0, &arena, &message) == 0) {
		struct tw_term value = tw_term_element(message, 3);

		if (tw_term_tuple_count(message) != 4)
			continue;
		*balance += value.word == tw_term_bool(true).word ? 1 : UINT64_MAX;
		events++;
	}
	return events;
}

static void line_189_reports_at_once(void **state)
{
	struct tw_queue_stats stats;
	pthread_t threads[2], changer;
	uint64_t balance;
	unsigned events;

	atomic_store(&is_over, false);
	assert_int_equal(set(one, "long_message_queue", "{2,9}"), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, report_lengths, NULL), 0);
	assert_int_equal(pthread_create(&changer, NULL, change_other, NULL), 0);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	atomic_store(&is_over, true);
	pthread_join(changer, NULL);
	tw_process_mailbox(p, 0);
	events = count_events(&balance);
	assert_int_equal(tw_queue_stats(one, &stats), 0);
	if (!stats.lost[0] && !stats.lost[1] && !stats.lost[2] && !stats.lost[3]) {
		assert_true(events > 0);
		assert_int_equal(balance, 0);
	}
}

/* A forked child makes none of its parent's events, and its own sessions begin anew. */
static void line_18_a_forked_child_has_none(void **state)
{
	pid_t child;
	int status;

	assert_int_equal(set(one, "long_message_queue", "{0,1}"), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		bool is_wanted = tw_runtime_wants(~UINT32_C(0));
		int result = set(one, "busy_port", "true");

		_exit(is_wanted ? 2 : result == TW_EBADARG || result == TW_EPIPE ? 0 : 3);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	lengths("1");
	assert_string_equal(received(one), "{monitor,P,long_message_queue,true}\n");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CASE(line_185_186_187_178_what_is_set_and_shown),
		CASE(line_186_only_a_queue_is_told),
		CASE(line_18_monitors_end_with_their_session),
		CASE(line_188_189_each_session_has_its_own_hysteresis),
		CASE(line_190_an_exit_says_nothing_of_the_queue),
		CASE(line_189_reports_at_once),
		CASE(line_18_a_forked_child_has_none),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
