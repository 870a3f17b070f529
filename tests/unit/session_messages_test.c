/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Messages are reported as in OTP: send, receive, timeouts, and the effect of patterns on them.
 * Method	Processes that the test itself plays, with one session and with two; the rings hold what is expected.
 *		The numbers are lines of docs/semantics.md.
 */
#include "session/send_receive.h"
#include "session_two.h"

/* 52, 53, 56 */
static void f52_send_names_the_receiver_as_it_was_written(void **state)
{
	trace_in(&one, p, TW_FLAG_SEND);
	tw_process_in(p);
	tw_process_send(p, parse("{hello,1}"), pid_of(q));
	tw_process_send(p, parse("x"), parse("registered"));
	tw_process_send(p, parse("x"), parse("{name,other@host}"));
	tw_process_send_to_nobody(p, parse("[\"gone\"]"), pid_of(q));
	tw_process_out();
	EXPECT(&one, "p send {hello,1}, q", "p send x, registered", "p send x, {name,other@host}",
	       "p send_to_non_existing_process [[103,111,110,101]], q");
	EXPECT_NOTHING(&two);
	trace_in(&one, p, TW_FLAG_RECEIVE);
	trace_in(&two, p, TW_FLAG_RECEIVE);
	tw_process_in(p);
	tw_process_send(p, parse("me"), pid_of(p));
	tw_process_receive(p, parse("me"), pid_of(p));
	tw_process_out();
	EXPECT(&one, "p send me, p", "p receive me");
	EXPECT(&two, "p receive me");
}

/* 54, 55, 58: reported by the thread that delivers the message; the receiver need not run. */
static void f54_receive_is_when_the_message_enters_the_mailbox(void **state)
{
	trace_in(&one, q, TW_FLAG_RECEIVE);
	trace_in(&one, p, TW_FLAG_SEND);
	tw_process_in(p);
	tw_process_send(p, parse("a"), pid_of(q));
	tw_process_receive(q, parse("a"), pid_of(p));
	tw_process_send(p, parse("b"), pid_of(q));
	tw_process_out();
	tw_process_receive_timeout(q);
	tw_process_receive(q, parse("{'EXIT',gone,normal}"), (struct tw_term){0});
	EXPECT(&one, "p send a, q", "q receive a", "p send b, q", "q receive timeout",
	       "q receive {'EXIT',gone,normal}");
}

static const char any_true[] = "[{'_',[],[]}]";

/* 161 to 164, 168, 169 */
static void o162_patterns_of_send(void **state)
{
	static const struct {
		const char *spec, *a, *b; /* the effect on two messages, to q and to a name */
	} cases[] = {
		{any_true, "p send a, q", "p send b, qname"},
		{"[]", "p send a, q", "p send b, qname"},
		{"[{['_',a],[],[]}]", "p send a, q", NULL},
		{"[{[qname,'_'],[],[]}]", NULL, "p send b, qname"},
		{"[{['$1',a],[],[{message,{{hit,'$1'}}}]}]", "p send a, q, {hit,<0.Q.0>}", NULL},
		{"[{['$1','_'],[{is_atom,'$1'}],[{message,{self}}]}]", NULL, "p send b, qname, p"},
		{"[{'_',[],[{message,false}]}]", NULL, NULL},
		{"[{['_'],[],[]}]", NULL, NULL},
		{"[{['_','_','_'],[],[]}]", NULL, NULL},
		{"[{['_','_'],[{'=:=',{node},nonode@nohost}],[]}]", NULL, NULL},
	};
	struct tw_match_error error;

	trace_in(&one, p, TW_FLAG_SEND);
	trace_in(&two, p, TW_FLAG_SEND);
	tw_process_in(p);
	for (size_t i = 0; i < TW_COUNT_OF(cases); i++) {
		char with_pid[64];
		const char *lines[2];
		unsigned count = 0;

		assert_int_equal(tw_trace_send_text(one.session, cases[i].spec, strlen(cases[i].spec), &error), 1);
		tw_process_send(p, parse("a"), pid_of(q));
		tw_process_send(p, parse("b"), parse("qname"));
		if (cases[i].a) {
			snprintf(with_pid, sizeof with_pid, "%s", cases[i].a);
			if (strstr(with_pid, "<0.Q.0>"))
				sprintf(strstr(with_pid, "<0.Q.0>"), "<0.%u.0>}", (unsigned)tw_process_pid(q));
			lines[count++] = with_pid;
		}
		if (cases[i].b)
			lines[count++] = cases[i].b;
		check_lines(&one, lines, count);
		EXPECT(&two, "p send a, q", "p send b, qname");
	}
	assert_int_equal(tw_trace_send(one.session, TW_MATCH_FALSE), 1);
	tw_process_send(p, parse("a"), pid_of(q));
	EXPECT_NOTHING(&one);
	assert_int_equal(tw_trace_send(one.session, TW_MATCH_TRUE), 1);
	tw_process_send(p, parse("a"), pid_of(q));
	EXPECT(&one, "p send a, q");
	tw_process_out();
}

/* 162, 55: [Node, Sender, Msg] */
static void o162_patterns_of_receive(void **state)
{
	char own_node[128];
	static const struct {
		const char *spec, *a, *b, *timeout; /* a from p, b from far away, and a timeout */
	} cases[] = {
		{any_true, "q receive a", "q receive b", "q receive timeout"},
		{"[{['_','_',a],[],[]}]", "q receive a", NULL, NULL},
		{"[{[far@away,'_','_'],[],[{message,far}]}]", NULL, "q receive b, far", NULL},
		{"[{['$1',undefined,'_'],[],[{message,'$1'}]}]", NULL, NULL, "q receive timeout, clock_service"},
		{"[{['$1','$2','_'],[{'=:=','$1',{node}},{is_pid,'$2'}],[{message,{self}}]}]", "q receive a, q", NULL,
		 NULL},
	};
	struct tw_identifier far = {.node = tw_term_atom_z("far@away"),
				    .creation = 1,
				    .channel = 7,
				    .word_count = 2,
				    .words = {5, 0}};
	struct tw_term far_pid;
	struct tw_match_error error;

	(void)own_node;
	parse("[]");
	far_pid = tw_term_identifier(&terms, TW_TYPE_PID, &far);
	trace_in(&one, q, TW_FLAG_RECEIVE);
	tw_process_in(p);
	for (size_t i = 0; i < TW_COUNT_OF(cases); i++) {
		const char *lines[3];
		unsigned count = 0;

		assert_int_equal(tw_trace_recv_text(one.session, cases[i].spec, strlen(cases[i].spec), &error), 1);
		tw_process_receive(q, parse("a"), pid_of(p));
		tw_process_receive(q, parse("b"), far_pid);
		tw_process_receive_timeout(q);
		if (cases[i].a)
			lines[count++] = cases[i].a;
		if (cases[i].b)
			lines[count++] = cases[i].b;
		if (cases[i].timeout)
			lines[count++] = cases[i].timeout;
		check_lines(&one, lines, count);
	}
	tw_process_out();
}

/* 161, 165, 166: refused settings change nothing. */
static void o165_what_patterns_refuse(void **state)
{
	static const struct {
		const char *body;
		int send, recv;
	} cases[] = {
		{"{caller}", TW_EBADARG, TW_EBADARG},
		{"{current_stacktrace}", TW_EBADARG, TW_EBADARG},
		{"{silent,true}", 1, TW_EBADARG},
		{"{return_trace}", 1, 1},
		{"{exception_trace}", 1, 1},
		{"{enable_trace,call}", 1, TW_EBADARG},
		{"{disable_trace,call}", 1, TW_EBADARG},
		{"{trace,[],[call]}", 1, TW_EBADARG},
		{"{get_seq_token}", 1, TW_EBADARG},
		{"{set_seq_token,label,1}", 1, TW_EBADARG},
		{"{process_dump}", 1, TW_EBADARG},
		{"{message,x}", 1, 1},
		{"{set_tcw,1}", 1, 1},
		{"{get_tcw}", 1, 1},
		{"{display,x}", 1, 1},
	};
	struct tw_match_error error;
	struct tw_term spec;

	for (size_t i = 0; i < TW_COUNT_OF(cases); i++) {
		char text[128];

		snprintf(text, sizeof text, "[{'_',[],[%s]}]", cases[i].body);
		tw_trace_send(one.session, TW_MATCH_FALSE);
		tw_trace_recv(one.session, TW_MATCH_FALSE);
		assert_int_equal(tw_trace_send_spec(one.session, parse(text), &error), cases[i].send);
		assert_int_equal(tw_trace_recv_spec(one.session, parse(text), &error), cases[i].recv);
		assert_int_equal(tw_session_pattern(one.session, TW_WANT_SEND, &terms, &spec), 0);
		assert_true(tw_term_is_equal(spec, cases[i].send == 1 ? parse(text) : tw_term_bool(0)));
		assert_int_equal(tw_session_pattern(one.session, TW_WANT_RECEIVE, &terms, &spec), 0);
		assert_true(tw_term_is_equal(spec, cases[i].recv == 1 ? parse(text) : tw_term_bool(0)));
		tw_arena_fini(&terms);
		memset(&terms, 0, sizeof terms);
	}
	assert_int_equal(tw_trace_send(one.session, TW_MATCH_PAUSE), TW_EBADARG);
	assert_int_equal(tw_trace_recv(one.session, TW_MATCH_RESTART), TW_EBADARG);
	assert_int_equal(tw_trace_send(NULL, TW_MATCH_TRUE), TW_EBADARG);
	assert_int_equal(tw_trace_send_text(one.session, "foo", 3, &error), TW_EBADARG);
	assert_int_equal(tw_trace_send_spec(one.session, parse("[a]"), NULL), TW_EBADARG);
	assert_int_equal(tw_trace_recv_spec(one.session, parse("[]"), NULL), 1);
	assert_int_equal(tw_session_pattern(one.session, TW_WANT_RECEIVE, &terms, &spec), 0);
	assert_true(tw_term_is_equal(spec, tw_term_bool(1)));
}

/* 112: silent hides messages only if a specification is set. */
static void j112_silent_and_patterns(void **state)
{
	struct tw_match_error error;
	static const char loud[] = "[{['_',loud],[],[{silent,false}]}]";

	trace_in(&one, p, TW_FLAG_SEND | TW_FLAG_SILENT | TW_FLAG_PROCS);
	tw_process_in(p);
	tw_process_send(p, parse("a"), pid_of(q));
	EXPECT(&one, "p send a, q");
	assert_int_equal(tw_trace_send_text(one.session, any_true, strlen(any_true), &error), 1);
	tw_process_send(p, parse("a"), pid_of(q));
	assert_int_equal(tw_process_register(p, parse("name")), 0);
	EXPECT(&one, "p register name");
	assert_int_equal(tw_trace_send_text(one.session, loud, strlen(loud), &error), 1);
	tw_process_send(p, parse("loud"), pid_of(q));
	EXPECT(&one, "p send loud, q");
	assert_false(flags_of(&one, p) & TW_FLAG_SILENT);
	tw_process_out();
}

/* A message too large for a record is cut, and the cut is marked. */
static void large_messages_are_cut(void **state)
{
	struct tw_arena arena;
	struct tw_term list = tw_term_nil(), deep = tw_term_nil();
	struct lines *lines;

	tw_arena_init(&arena, SIZE_MAX);
	for (int i = 20000; i > 0; i--)
		list = tw_term_cons(&arena, tw_term_integer(&arena, i * 1000), list);
	for (int i = 0; i < 100; i++)
		deep = tw_term_cons(&arena, deep, tw_term_nil());
	trace_in(&one, p, TW_FLAG_SEND);
	tw_process_in(p);
	tw_process_send(p, list, pid_of(q));
	tw_process_send(p, deep, list);
	tw_process_send(p, tw_term_binary(&arena, term_room, sizeof term_room), pid_of(q));
	tw_process_out();
	lines = read_lines(&one);
	assert_int_equal(lines->count, 3);
	assert_int_equal(strncmp(lines->text[0], "p send [1000,2000,3000,", 23), 0);
	/* As many elements as fit the record, not as many as a copy would have. */
	assert_true(TW_RB_HEAD_BYTES(lines->record[0]->head) > 4500);
	assert_int_equal(strncmp(lines->text[1], "p send [[[[[[[", 14), 0);
	assert_int_equal(strncmp(lines->text[2], "p send {'...',<<", 16), 0);
	tw_arena_fini(&arena);
}

/* {M,F,Args} of a declared function needs no term from the caller. */
static void a_spawn_tells_its_function(void **state)
{
	static struct tw_declared_function begins = TW_DECLARED_FUNCTION("module", "begins", 2);
	const struct tw_term arguments[2] = {parse("x"), tw_term_integer(NULL, 7)};
	struct tw_spawn options = {.name = "c", .parent = p, .function = &begins};
	struct tw_process *child;

	trace_in(&one, p, TW_FLAG_PROCS);
	named[named_count].name = "c";
	assert_int_equal(tw_process_spawn(&options, &child), 0);
	name_process(child, "c");
	EXPECT(&one, "p spawn c, {module,begins,[]}");
	options.arguments = arguments;
	options.argument_count = 2;
	named[named_count].name = "d";
	assert_int_equal(tw_process_spawn(&options, &child), 0);
	name_process(child, "d");
	EXPECT(&one, "p spawn d, {module,begins,[x,7]}");
}

/* An event that does not fit is counted once, together with the switch that would have come before it. */
static void messages_that_find_no_room_are_counted(void **state)
{
	const uint64_t sent = 5000;
	uint64_t read;

	trace_in(&one, p, TW_FLAG_SEND);
	trace_in(&one, q, TW_FLAG_RECEIVE);
	tw_process_in(p);
	for (uint64_t i = 0; i < sent; i++) {
		tw_process_send(p, parse("a"), parse("b"));
		tw_process_receive(q, parse("a"), (struct tw_term){0});
		if (i % 64 == 0) {
			tw_arena_fini(&terms);
			memset(&terms, 0, sizeof terms);
		}
	}
	tw_process_out();
	read = count_records(&one);
	assert_true(read > 500);
	assert_int_equal(read + count_lost(&one), 2 * sent);
}

/* The address of a frame that has ended: below every later frame. */
static __attribute__((noinline)) uintptr_t deep_frame(void)
{
	char buffer[16384];
	uintptr_t address;

	/* A number, not a pointer that compilers follow. */
	__asm__ volatile("" : "=r"(address) : "0"(buffer) : "memory");
	return address;
}

/*
 * A handler inside a hit: counted.  A handler that jumped out of a hit for another process: the current process is
 * corrected.
 */
static void messages_inside_of_a_hit(void **state)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	uint64_t lost;

	trace_in(&one, p, TW_FLAG_SEND);
	tw_process_in(p);
	tw_process_send(p, parse("a"), parse("b"));
	EXPECT(&one, "p send a, b");
	lost = count_lost(&one);
	t->state = (uintptr_t)__builtin_frame_address(0);
	tw_process_send(p, parse("inside"), parse("b"));
	assert_int_equal(count_lost(&one), lost + 1);
	t->state = deep_frame();
	t->thread->saved_tracee = t->tracee;
	t->tracee = (struct tw_tracee *)q;
	tw_process_send(p, parse("later"), parse("b"));
	/* A loss record reports the counted one. */
	EXPECT(&one, "p kind 1", "p send later, b");
	assert_ptr_equal(t->tracee, p);
	assert_null(t->thread->saved_tracee);
	assert_int_equal(t->state, TW_THREAD_READY);
	tw_process_out();
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, begin, end)
	const struct CMUnitTest tests[] = {
		CASE(f52_send_names_the_receiver_as_it_was_written),
		CASE(f54_receive_is_when_the_message_enters_the_mailbox),
		CASE(o162_patterns_of_send),
		CASE(o162_patterns_of_receive),
		CASE(o165_what_patterns_refuse),
		CASE(j112_silent_and_patterns),
		CASE(large_messages_are_cut),
		CASE(a_spawn_tells_its_function),
		CASE(messages_that_find_no_room_are_counted),
		CASE(messages_inside_of_a_hit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
