/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	System events reach exactly the sessions whose limits are reached, with what OTP says of them, whatever flags a
 *	process has, never with a time, and at their place among the other events of the process.
 * Method	Two sessions with queues and other limits each, and a process that the test plays on threads of its own.  The
 *	numbers are those of docs/semantics.md.
 */
#include "tests/unit/system_help.h"

/* ---- schedules ---- */

static const struct tw_declared_function *where_out;

static void *run_for_a_while(void *arg)
{
	tw_scheduler_declare();
	tw_process_in_at(p, &step);
	sleep_ms(*(unsigned *)arg);
	tw_process_out_at(where_out);
	return NULL;
}

/* The value of a key in the first message's list, as text. */
static const char *item(const char *text, const char *key)
{
	static char value[64];
	char pattern[64];
	const char *at;

	snprintf(pattern, sizeof pattern, "{%s,", key);
	at = strstr(text, pattern);
	if (!at)
		return "none";
	at += strlen(pattern);
	snprintf(value, sizeof value, "%.*s", (int)strcspn(at, "}"), at);
	return value;
}

static void line_192_long_schedule(void **state)
{
	unsigned ms = 30;
	const char *text;

	received(one);
	assert_int_equal(set(one, "long_schedule", "10"), 0);
	assert_int_equal(set(two, "long_schedule", "60000"), 0);
	where_out = NULL;
	on_thread(run_for_a_while, &ms);
	text = received(one);
	assert_non_null(strstr(text, "{monitor,P,long_schedule,[{timeout,"));
	assert_in_range(atoi(item(text, "timeout")), 30, 60000);
	assert_non_null(strstr(text, ",{in,{vm,step,1}},{out,undefined}]}\n"));
	assert_string_equal(received(two), "");
	where_out = &stop;
	on_thread(run_for_a_while, &ms);
	assert_non_null(strstr(received(one), ",{in,{vm,step,1}},{out,{vm,stop,0}}]}\n"));
	ms = 0;
	assert_int_equal(set(one, "long_schedule", "60000"), 0);
	on_thread(run_for_a_while, &ms);
	assert_string_equal(received(one), "");
}

static void *run_port(void *arg)
{
	tw_port port = *(tw_port *)arg;

	tw_port_in(port, TW_PORT_OPEN);
	sleep_ms(20);
	tw_port_out(port, TW_PORT_COMMAND);
	tw_port_in(port, TW_PORT_CLOSE);
	sleep_ms(20);
	tw_port_out(port, TW_PORT_NOT_KNOWN);
	return NULL;
}

static void line_192_long_schedule_of_a_port(void **state)
{
	struct tw_port_options options = {.driver = "tcp_inet"};
	char expected[256];
	const char *text;
	tw_port port;

	assert_int_equal(tw_port_open(&options, &port), 0);
	snprintf(p_text, sizeof p_text, "#Port<0.%u>", (unsigned)tw_port_number(port));
	assert_int_equal(set(one, "long_schedule", "10"), 0);
	assert_int_equal(set(two, "long_schedule", "60000"), 0);
	on_thread(run_port, &port);
	text = received(one);
	snprintf(expected, sizeof expected, "{monitor,P,long_schedule,[{timeout,%s},{port_op,command}]}\n",
		 item(text, "timeout"));
	assert_int_equal(strncmp(text, expected, strlen(expected)), 0);
	assert_in_range(atoi(item(text, "timeout")), 20, 60000);
	assert_non_null(strstr(text, ",{port_op,undefined}]}\n"));
	assert_string_equal(received(two), "");
	assert_int_equal(set(one, "long_schedule", "false"), 0);
	on_thread(run_port, &port);
	assert_string_equal(received(one), "");
	assert_int_equal(tw_port_close(port, (struct tw_term){0}), 0);
}

/* A stretch that began before the monitor was set is not measured, nor one that began under an earlier setting. */
static void *set_while_in(void *arg)
{
	tw_scheduler_declare();
	assert_int_equal(set(one, "long_schedule", "1"), 0);
	tw_process_in(p);
	assert_int_equal(set(one, "long_schedule", "false"), 0);
	tw_process_out();
	tw_process_in(p);
	sleep_ms(5);
	assert_int_equal(set(one, "long_schedule", "1"), 0);
	tw_process_out();
	return NULL;
}

static void line_192_only_what_was_seen_from_its_beginning(void **state)
{
	on_thread(set_while_in, NULL);
	assert_string_equal(received(one), "");
}

/* ---- collections ---- */

static const struct tw_gc_sizes small = {.heap_size = 1,
					 .heap_block_size = 8000,
					 .old_heap_size = 3,
					 .old_heap_block_size = 8383,
					 .stack_size = 5,
					 .recent_size = 6,
					 .mbuf_size = 7},
				large = {.heap_size = 1,
					 .heap_block_size = 8000,
					 .old_heap_size = 3,
					 .old_heap_block_size = 8384,
					 .stack_size = 5,
					 .recent_size = 6,
					 .mbuf_size = 7},
				huge = {.heap_block_size = UINT64_MAX, .old_heap_block_size = 2};

static void *collect_small(void *arg)
{
	tw_scheduler_declare();
	tw_process_in(p);
	tw_process_gc(p, TW_GC_MINOR_START, &small);
	sleep_ms(*(unsigned *)arg);
	tw_process_gc(p, TW_GC_MINOR_END, &small);
	tw_process_out();
	return NULL;
}

static void *collect_large(void *arg)
{
	tw_process_gc(p, TW_GC_MAJOR_START, &small);
	tw_process_gc(p, TW_GC_MAJOR_END, &large);
	return NULL;
}

static void *collect_huge(void *arg)
{
	tw_process_gc(p, TW_GC_MAJOR_START, &small);
	tw_process_gc(p, TW_GC_MAJOR_END, &huge);
	return NULL;
}

static void *collect_and_die(void *arg)
{
	tw_process_gc(p, TW_GC_MAJOR_START, &large);
	sleep_ms(2);
	tw_process_gc(p, TW_GC_MAX_HEAP_SIZE, &large);
	tw_process_gc(p, TW_GC_MAJOR_END, &large);
	return NULL;
}

#define SIZES \
	"{old_heap_block_size,%s},{heap_block_size,8000},{mbuf_size,7},{stack_size,5},{old_heap_size,3},{heap_size,1}]}\n"

/* The end of one collection, and the beginning of the next, while nothing monitors. */
static void *set_in_collections(void *arg)
{
	assert_int_equal(set(one, "long_gc", "1"), 0);
	tw_process_gc(p, TW_GC_MINOR_START, &small);
	assert_int_equal(set(one, "long_gc", "false"), 0);
	tw_process_gc(p, TW_GC_MINOR_END, &small);
	sleep_ms(3);
	tw_process_gc(p, TW_GC_MINOR_START, &small);
	assert_int_equal(set(one, "long_gc", "1"), 0);
	tw_process_gc(p, TW_GC_MINOR_END, &small);
	return NULL;
}

static void line_192_only_collections_seen_from_their_beginning(void **state)
{
	on_thread(set_in_collections, NULL);
	assert_string_equal(received(one), "");
}

static void line_192_collections(void **state)
{
	unsigned ms = 20;
	char expected[512];
	const char *text;

	assert_int_equal(set(one, "long_gc", "10"), 0);
	assert_int_equal(set(one, "large_heap", "16384"), 0);
	assert_int_equal(set(two, "large_heap", "16385"), 0);
	on_thread(collect_small, &ms);
	text = received(one);
	snprintf(expected, sizeof expected, "{monitor,P,long_gc,[{timeout,%s}," SIZES, item(text, "timeout"), "8383");
	assert_string_equal(text, expected);
	assert_in_range(atoi(item(text, "timeout")), 20, 60000);
	assert_string_equal(received(two), "");
	/* From here on no collection is long, also if the machine pauses its thread. */
	assert_int_equal(set(one, "long_gc", "60000"), 0);
	on_thread(collect_large, NULL);
	snprintf(expected, sizeof expected, "{monitor,P,large_heap,[" SIZES, "8384");
	assert_string_equal(received(one), expected);
	assert_string_equal(received(two), "");
	on_thread(collect_huge, NULL);
	assert_non_null(strstr(received(one), "{heap_block_size,18446744073709551615}"));
	assert_non_null(strstr(received(two), "large_heap"));
	/* The limit of the process ends it before the collection is complete. */
	assert_int_equal(set(one, "long_gc", "1"), 0);
	on_thread(collect_and_die, NULL);
	assert_string_equal(received(one), "");
	/* The next collection is another one. */
	on_thread(collect_large, NULL);
	assert_non_null(strstr(received(one), "large_heap"));
}

/* ---- ports ---- */

static void *wait_for_ports(void *arg)
{
	char buffer[256];
	struct tw_arena own;

	tw_arena_init_fixed(&own, buffer, sizeof buffer);
	tw_process_busy_port(p, tw_term_port(&own, 7));
	tw_process_busy_dist_port(p, (struct tw_term){0});
	return NULL;
}

static void line_185_busy_ports(void **state)
{
	on_thread(wait_for_ports, NULL);
	assert_int_equal(set(one, "busy_port", "true"), 0);
	assert_int_equal(set(two, "busy_dist_port", "true"), 0);
	on_thread(wait_for_ports, NULL);
	assert_string_equal(received(one), "{monitor,P,busy_port,#Port<0.7>}\n");
	assert_string_equal(received(two), "{monitor,P,busy_dist_port,undefined}\n");
	assert_int_equal(set(one, "busy_port", "false"), 0);
	on_thread(wait_for_ports, NULL);
	assert_string_equal(received(one), "");
}

/* ---- every event ---- */

static void *make_all(void *arg)
{
	sleep_ms(1);
	wait_for_ports(NULL);
	lengths("10 5");
	collect_large(NULL);
	return NULL;
}

/* Stamps and flags of the process change nothing, nor that it is sensitive. */
static void line_193_never_a_time(void **state)
{
	char expected[512];
	uint32_t flags = TW_FLAG_TIMESTAMP | TW_FLAG_STRICT_MONOTONIC_TIMESTAMP | TW_FLAG_SCHEDULER_ID |
			 TW_FLAG_SILENT | TW_FLAG_SEND;

	received(one);
	assert_int_equal(set(one, "long_message_queue", "{5,10}"), 0);
	assert_int_equal(set(one, "large_heap", "1"), 0);
	assert_int_equal(set(one, "busy_port", "true"), 0);
	assert_int_equal(tw_trace_process(one, tw_process_pid(p), true, flags), 1);
	assert_int_equal(tw_trace_process(two, tw_process_pid(p), true, flags), 1);
	snprintf(
		expected, sizeof expected,
		"{monitor,P,busy_port,#Port<0.7>}\n{monitor,P,long_message_queue,true}\n{monitor,P,long_message_queue,false}\n"
		"{monitor,P,large_heap,[" SIZES,
		"8384");
	on_thread(make_all, NULL);
	assert_string_equal(received(one), expected);
	assert_string_equal(received(two), "");
	assert_int_equal(tw_process_sensitive(p, true), 0);
	on_thread(make_all, NULL);
	assert_string_equal(received(one), expected);
	tw_process_sensitive(p, false);
}

/* The events of a process keep their order, whichever thread reports them: a length by another thread stands between two calls. */
static _Atomic unsigned turn;

static void *call_in_turns(void *arg)
{
	tw_scheduler_declare();
	tw_process_in(p);
	for (unsigned i = 0; i < 50; i++) {
		while (atomic_load(&turn) != 2 * i)
			;
		tw_call1(&step, i);
		atomic_store(&turn, 2 * i + 1);
	}
	tw_process_out();
	return NULL;
}

static void *report_in_turns(void *arg)
{
	for (unsigned i = 0; i < 50; i++) {
		while (atomic_load(&turn) != 2 * i + 1)
			;
		tw_process_mailbox(p, i % 2 ? 1 : 10);
		atomic_store(&turn, 2 * i + 2);
	}
	return NULL;
}

static void line_194_events_keep_the_order_of_the_reports(void **state)
{
	struct tw_term message;
	pthread_t threads[2];
	char expected[128], text[256], *at;

	received(one);
	atomic_store(&turn, 0);
	assert_int_equal(set(one, "long_message_queue", "{5,10}"), 0);
	assert_int_equal(tw_trace_process(one, tw_process_pid(p), true, TW_FLAG_CALL), 1);
	assert_int_equal(tw_trace_function(one, "vm", "step", 1, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 1);
	assert_int_equal(pthread_create(&threads[0], NULL, call_in_turns, NULL), 0);
	assert_int_equal(pthread_create(&threads[1], NULL, report_in_turns, NULL), 0);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(tw_queue_receive(one, 0, &arena, &message), 0);
		tw_term_format(message, TW_PRINT_WRITE, text, sizeof text);
		if (i % 2)
			snprintf(expected, sizeof expected, "long_message_queue,%s}", i / 2 % 2 ? "false" : "true");
		else
			snprintf(expected, sizeof expected, "{vm,step,[%u]}}", i / 2);
		at = strstr(text, expected);
		if (!at)
			fail_msg("event %u: %s, not %s", i, text, expected);
	}
}

/* 191: nothing about the tracer itself. */
static void line_191_nothing_about_the_tracer(void **state)
{
	received(one);
	received(two);
	assert_int_equal(set(one, "large_heap", "1"), 0);
	assert_int_equal(set(one, "long_message_queue", "{0,1}"), 0);
	tw_process_gc(tw_process_current(), TW_GC_MAJOR_START, &large);
	tw_process_gc(tw_process_current(), TW_GC_MAJOR_END, &large);
	tw_process_mailbox(tw_process_current(), 10);
	assert_string_equal(received(one), "");
	assert_int_equal(set(two, "large_heap", "1"), 0);
	collect_large(NULL);
	assert_non_null(strstr(received(two), "large_heap"));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CASE(line_192_long_schedule),
		CASE(line_192_long_schedule_of_a_port),
		CASE(line_192_only_what_was_seen_from_its_beginning),
		CASE(line_192_only_collections_seen_from_their_beginning),
		CASE(line_192_collections),
		CASE(line_185_busy_ports),
		CASE(line_193_never_a_time),
		CASE(line_194_events_keep_the_order_of_the_reports),
		CASE(line_191_nothing_about_the_tracer),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
