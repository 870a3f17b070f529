/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Sequential tracing is as in OTP: tokens, serials, events, the system tracer.
 * Method	Processes that the test itself plays, with messages that it keeps in variables; the rings of the system tracer
 *		hold what is expected.  The numbers are lines of docs/semantics.md; the cases are those of a program that ran on
 *		Erlang/OTP 25.
 */
#include "session_events.h"
#include "tracewheel/seq.h"

#include <sys/wait.h>
#include <unistd.h>

static struct bed one, two;
static struct tw_process *a, *b, *c;

static int begin(void **state)
{
	open_bed(&one, "one");
	open_bed(&two, "two");
	tw_scheduler_declare();
	a = new_process("a");
	b = new_process("b");
	c = new_process("c");
	assert_int_equal(tw_seq_set_system_tracer(one.session, NULL), 0);
	tw_process_in(a);
	return 0;
}

static int end(void **state)
{
	tw_process_out();
	tw_seq_reset_trace();
	tw_process_exit(a);
	tw_process_exit(b);
	tw_process_exit(c);
	close_bed(&two);
	close_bed(&one);
	forget_names();
	return 0;
}

/* ---- a message ---- */

struct message {
	struct tw_seq_token token;
	const char *text;
};

static struct message send_to(struct tw_process *from, struct tw_process *to, const char *text)
{
	struct message message = {.text = text};

	tw_process_in(from);
	tw_seq_send(from, pid_of(to), parse(text), &message.token);
	return message;
}

static void receive(struct tw_process *to, const struct message *message)
{
	tw_process_in(to);
	tw_seq_receive(to, &message->token, parse(message->text));
}

static void pass(struct tw_process *from, struct tw_process *to, const char *text)
{
	struct message message = send_to(from, to, text);

	receive(to, &message);
}

static char token_text[256];

/* The token of the process, with names for pids. */
static const char *token_of(struct tw_process *process)
{
	struct tw_term token;
	char from[64] = "";

	tw_process_in(process);
	token = tw_seq_token_term(&terms);
	if (tw_term_tuple_count(token) != 5) {
		tw_term_format(token, TW_PRINT_WRITE, token_text, sizeof token_text);
		return token_text;
	}
	put_term(tw_term_element(token, 3), from, sizeof from);
	token_text[0] = '\0';
	for (unsigned i = 0; i < 5; i++) {
		size_t at = strlen(token_text);

		snprintf(token_text + at, sizeof token_text - at, "%s", i ? "," : "{");
		at = strlen(token_text);
		if (i == 3)
			snprintf(token_text + at, sizeof token_text - at, "%s", from);
		else
			tw_term_format(tw_term_element(token, i), TW_PRINT_WRITE, token_text + at,
				       sizeof token_text - at);
	}
	strcat(token_text, "}");
	return token_text;
}

/* set_token(Component,Value) of the running process: the old value as text, or the error's name. */
static const char *set(const char *component, const char *value)
{
	static char text[256];
	struct tw_term old;
	int error = tw_seq_set_component(&terms, parse(component), parse(value), &old);

	if (error == TW_EBADARG)
		return "badarg";
	assert_int_equal(error, 0);
	tw_term_format(old, TW_PRINT_WRITE, text, sizeof text);
	return text;
}

static const char *get(const char *component)
{
	static char text[256];
	struct tw_term value;
	int error = tw_seq_component(&terms, parse(component), &value);

	if (error == TW_EBADARG)
		return "badarg";
	assert_int_equal(error, 0);
	tw_term_format(value, TW_PRINT_WRITE, text, sizeof text);
	return text;
}

static void start(const char *label, unsigned flags)
{
	assert_int_equal(tw_seq_set_label(parse(label)), 0);
	assert_int_equal(tw_seq_set_flags(flags, true), 0);
}

#define BOTH (TW_SEQ_SEND | TW_SEQ_RECEIVE)

/* ---- cases ---- */

static void line_230_without_a_token(void **state)
{
	assert_string_equal(token_of(a), "[]");
	assert_string_equal(get("label"), "[]");
	assert_string_equal(get("serial"), "[]");
	assert_string_equal(get("send"), "{send,false}");
	assert_string_equal(get("'receive'"), "{'receive',false}");
	assert_string_equal(get("print"), "{print,false}");
	assert_string_equal(get("timestamp"), "{timestamp,false}");
	assert_string_equal(get("strict_monotonic_timestamp"), "{strict_monotonic_timestamp,false}");
	assert_string_equal(get("bogus"), "badarg");
	assert_false(tw_seq_is_active());
}

static void line_231_232_a_token_is_made_and_restored(void **state)
{
	static const char *const flags[] =
		{"send", "'receive'", "print", "timestamp", "strict_monotonic_timestamp", "monotonic_timestamp"};
	struct tw_seq_token old, none;
	struct tw_term term, was;
	char expected[64];

	assert_string_equal(set("label", "7"), "0");
	assert_string_equal(token_of(a), "{0,7,0,a,0}");
	for (unsigned i = 0; i < TW_COUNT_OF(flags); i++) {
		assert_string_equal(set(flags[i], "true"), "false");
		snprintf(expected, sizeof expected, "{%d,7,0,a,0}", (2 << i) - 1);
		assert_string_equal(token_of(a), expected);
		assert_string_equal(set(flags[i], "true"), "true");
	}
	assert_string_equal(set("serial", "{3,5}"), "{0,0}");
	assert_string_equal(get("serial"), "{serial,{3,5}}");
	assert_string_equal(get("label"), "{label,7}");
	assert_int_equal(tw_seq_set_token(NULL, &old), 0);
	assert_string_equal(token_of(a), "[]");
	assert_int_equal(tw_seq_set_token(&old, &none), 0);
	assert_true(tw_seq_token_is_empty(&none));
	assert_string_equal(token_of(a), "{63,7,5,a,3}");
	term = tw_seq_token_term(&terms);
	assert_int_equal(tw_seq_set_token_term(&terms, parse("[]"), &was), 0);
	assert_true(tw_term_is_equal(was, term));
	assert_int_equal(tw_seq_set_token_term(&terms, term, &was), 0);
	assert_true(tw_term_is_equal(was, parse("ok")));
	assert_string_equal(token_of(a), "{63,7,5,a,3}");
	/* A flag that is set to false begins a token as well. */
	tw_seq_reset_trace();
	assert_string_equal(set("send", "false"), "false");
	assert_string_equal(token_of(a), "{0,0,0,a,0}");
}

static void line_233_bad_arguments(void **state)
{
	static const char *const bad[][2] = {{"bogus", "true"},
					     {"send", "1"},
					     {"serial", "5"},
					     {"serial", "{a,b}"},
					     {"\"x\"", "true"},
					     {"serial", "{1,2,3}"},
					     {"serial", "{0,576460752303423488}"}};
	static const char *const tokens[] = {"foo", "{1,2}", "{a,0,0,b,0}", "{1,2,3,4,x}"};

	for (unsigned i = 0; i < TW_COUNT_OF(bad); i++)
		assert_string_equal(set(bad[i][0], bad[i][1]), "badarg");
	assert_string_equal(set("serial", "{-1,2}"), "{0,0}");
	for (unsigned i = 0; i < TW_COUNT_OF(tokens); i++)
		assert_int_equal(tw_seq_set_token_term(&terms, parse(tokens[i]), NULL), TW_EBADARG);
	assert_int_equal(tw_seq_set_flags(64, true), TW_EBADARG);
	assert_int_equal(tw_seq_set_label((struct tw_term){0}), TW_EBADARG);
}

static void line_235_a_chain(void **state)
{
	start("1", BOTH);
	pass(a, b, "m1");
	pass(b, c, "m2");
	pass(c, a, "m3");
	EXPECT(&one, "a seq_send 1, {0,1}, a, b, m1", "b seq_receive 1, {0,1}, a, b, m1",
	       "b seq_send 1, {1,2}, b, c, m2", "c seq_receive 1, {1,2}, b, c, m2", "c seq_send 1, {2,3}, c, a, m3",
	       "a seq_receive 1, {2,3}, c, a, m3");
	EXPECT_NOTHING(&two);
	assert_string_equal(token_of(a), "{3,1,3,c,2}");
}

static void line_236_a_fan_out(void **state)
{
	struct message to_b, to_c, from_b, from_c;

	start("2", BOTH);
	to_b = send_to(a, b, "x1");
	to_c = send_to(a, c, "x2");
	receive(b, &to_b);
	from_b = send_to(b, a, "ack1");
	receive(c, &to_c);
	from_c = send_to(c, a, "ack2");
	receive(a, &from_b);
	receive(a, &from_c);
	pass(a, b, "x3");
	pass(b, a, "ack3");
	EXPECT(&one, "a seq_send 2, {0,1}, a, b, x1", "a seq_send 2, {0,2}, a, c, x2",
	       "b seq_receive 2, {0,1}, a, b, x1", "b seq_send 2, {1,2}, b, a, ack1",
	       "c seq_receive 2, {0,2}, a, c, x2", "c seq_send 2, {2,3}, c, a, ack2",
	       "a seq_receive 2, {1,2}, b, a, ack1", "a seq_receive 2, {2,3}, c, a, ack2",
	       "a seq_send 2, {3,4}, a, b, x3", "b seq_receive 2, {3,4}, a, b, x3", "b seq_send 2, {4,5}, b, a, ack3",
	       "a seq_receive 2, {4,5}, b, a, ack3");
	assert_string_equal(token_of(a), "{3,2,5,b,4}");
}

/* 237, 238, 239, 248 */
static void line_238_print_wants_the_very_label(void **state)
{
	start("5", TW_SEQ_PRINT);
	tw_seq_print_label(parse("5"), parse("yes"));
	tw_seq_print_label(parse("5.0"), parse("no"));
	tw_seq_print_label(parse("6"), parse("no"));
	tw_seq_print(parse("any"));
	tw_seq_set_flags(TW_SEQ_PRINT, false);
	tw_seq_print(parse("silent"));
	assert_string_equal(get("serial"), "{serial,{0,3}}");
	start("{any,[116,101],#{a => 1}}", TW_SEQ_PRINT);
	tw_seq_print_label(parse("{any,\"te\",#{a => 1}}"), parse("map"));
	tw_seq_print_label(parse("{any,\"te\",#{a => 1.0}}"), parse("no"));
	EXPECT(&one, "a seq_print 5, {0,1}, a, [], yes", "a seq_print 5, {0,2}, a, [], any",
	       "a seq_print {any,[116,101],#{a => 1}}, {0,4}, a, [], map");
	assert_string_equal(get("label"), "{label,{any,[116,101],#{a => 1}}}");
}

static void line_240_an_untraced_message_clears_when_it_is_matched(void **state)
{
	struct message plain = send_to(b, a, "plain");

	tw_process_in(a);
	start("3", 0);
	assert_string_equal(token_of(a), "{0,3,0,a,0}");
	receive(a, &plain);
	assert_string_equal(token_of(a), "[]");
	start("3", 0);
	tw_seq_receive(a, NULL, parse("x"));
	assert_string_equal(token_of(a), "[]");
}

static void line_242_spawn(void **state)
{
	struct tw_process *child;
	char expected[4][256];
	const char *lines[4];
	unsigned pid;

	start("1", BOTH);
	child = spawn(a, "child", true);
	pid = (unsigned)tw_process_pid(a);
	snprintf(expected[0], 256, "a seq_send 1, {0,1}, a, child, {spawn_request,<0.%u.0>,{m,f,[x]},[link]}", pid);
	snprintf(expected[1], 256, "child seq_receive 1, {0,1}, a, child, {spawn_request,<0.%u.0>,{m,f,[x]},[link]}",
		 pid);
	pid = (unsigned)tw_process_pid(child);
	snprintf(expected[2], 256, "child seq_send 1, {1,2}, child, a, {spawn_reply,ok,<0.%u.0>}", pid);
	snprintf(expected[3], 256, "a seq_receive 1, {1,2}, child, a, {spawn_reply,ok,<0.%u.0>}", pid);
	for (unsigned i = 0; i < 4; i++)
		lines[i] = expected[i];
	check_lines(&one, lines, 4);
	assert_string_equal(token_of(child), "{3,1,2,child,1}");
	/* The reply does not change the parent's token. */
	assert_string_equal(token_of(a), "{3,1,1,a,0}");
	pass(a, b, "next");
	EXPECT(&one, "a seq_send 1, {2,3}, a, b, next", "b seq_receive 1, {2,3}, a, b, next");
	tw_process_exit(child);
}

static void line_244_reset_empties_all_and_an_empty_token_keeps_the_clock(void **state)
{
	struct tw_seq_token kept;
	struct message sent;

	start("1", TW_SEQ_SEND);
	pass(a, b, "x");
	pass(b, a, "ack");
	assert_int_equal(tw_seq_set_token(NULL, NULL), 0);
	start("9", TW_SEQ_SEND);
	assert_string_equal(token_of(a), "{1,9,0,a,2}");
	pass(a, b, "y");
	EXPECT(&one, "a seq_send 1, {0,1}, a, b, x", "b seq_send 1, {1,2}, b, a, ack", "a seq_send 9, {2,3}, a, b, y");
	sent = send_to(a, b, "late");
	EXPECT(&one, "a seq_send 9, {2,4}, a, b, late");
	tw_seq_get_token(&kept);
	assert_int_equal(tw_seq_reset_trace(), 0);
	assert_false(tw_seq_is_active());
	assert_string_equal(token_of(a), "[]");
	assert_string_equal(token_of(b), "[]");
	tw_process_in(a);
	start("1", BOTH);
	assert_string_equal(token_of(a), "{3,1,0,a,0}");
	/* The message in b's mailbox has none any more; nor has a copy that was kept. */
	receive(b, &sent);
	assert_string_equal(token_of(b), "[]");
	EXPECT_NOTHING(&one);
	assert_int_equal(tw_seq_set_token(&kept, NULL), 0);
	assert_string_equal(token_of(b), "[]");
}

/* 245, 246 */
static void line_245_serials_are_set_and_advance_without_a_tracer(void **state)
{
	assert_int_equal(tw_seq_set_system_tracer(NULL, NULL), 0);
	set("serial", "{7,8}");
	pass(a, b, "x");
	assert_string_equal(token_of(a), "{0,0,9,a,7}");
	assert_string_equal(token_of(b), "{0,0,9,a,7}");
	pass(b, a, "ack");
	assert_string_equal(token_of(a), "{0,0,10,b,9}");
	EXPECT_NOTHING(&one);
	assert_int_equal(tw_seq_set_system_tracer(one.session, NULL), 0);
}

static void line_247_another_trace_replaces_the_token(void **state)
{
	tw_process_in(b);
	start("bb", TW_SEQ_SEND);
	struct message message = send_to(b, a, "from_b");
	tw_process_in(a);
	start("aa", TW_SEQ_SEND | TW_SEQ_PRINT);
	receive(a, &message);
	assert_string_equal(token_of(a), "{1,bb,1,b,0}");
}

static void line_250_three_stamps(void **state)
{
	static const char *const stamps[] = {"monotonic_timestamp", "strict_monotonic_timestamp", "timestamp"};
	struct lines *lines;

	start("1", TW_SEQ_PRINT);
	for (unsigned i = 0; i < 3; i++)
		set(stamps[i], "true");
	for (unsigned i = 3; i--;) {
		tw_seq_print(parse("x"));
		set(stamps[i], "false");
	}
	tw_seq_print(parse("x"));
	lines = read_lines(&one);
	assert_int_equal(lines->count, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(TW_RB_HEAD_FLAGS(lines->record[i]->head) & TW_EVENT_FLAG_STAMP_MASK, 3 - i);
}

static void line_252_beyond_the_last_serial(void **state)
{
	struct tw_seq_stats before, after;
	struct tw_seq_token token;

	tw_seq_stats(&before);
	start("1", TW_SEQ_SEND);
	set("serial", "{0,576460752303423486}");
	pass(a, b, "last");
	tw_process_in(a);
	tw_seq_send(a, pid_of(b), parse("beyond"), &token);
	assert_true(tw_seq_token_is_empty(&token));
	assert_string_equal(token_of(a), "[]");
	EXPECT(&one, "a seq_send 1, {0,576460752303423487}, a, b, last");
	tw_seq_stats(&after);
	assert_int_equal(after.overflowed - before.overflowed, 1);
}

static void line_253_sensitive_processes_and_dead_tracers(void **state)
{
	struct tw_session *tracer;

	start("1", BOTH | TW_SEQ_PRINT);
	assert_int_equal(tw_process_sensitive(a, true), 0);
	pass(a, a, "x");
	tw_seq_print(parse("y"));
	assert_string_equal(token_of(a), "{7,1,2,a,1}");
	EXPECT_NOTHING(&one);
	assert_int_equal(tw_process_sensitive(a, false), 0);
	pass(a, b, "z");
	EXPECT(&one, "a seq_send 1, {1,3}, a, b, z", "b seq_receive 1, {1,3}, a, b, z");
	tracer = tw_seq_get_system_tracer();
	assert_ptr_equal(tracer, one.session);
	tw_session_put(tracer);
	tw_session_destroy(one.session);
	assert_null(tw_seq_get_system_tracer());
	pass(b, a, "w");
	assert_string_equal(token_of(a), "{7,1,4,b,3}");
	assert_int_equal(tw_seq_set_system_tracer(one.session, NULL), TW_EDEAD);
}

static void line_254_to_itself(void **state)
{
	start("1", BOTH);
	pass(a, a, "me");
	EXPECT(&one, "a seq_send 1, {0,1}, a, a, me", "a seq_receive 1, {0,1}, a, a, me");
	assert_string_equal(token_of(a), "{3,1,1,a,0}");
}

static void line_249_the_system_tracer(void **state)
{
	struct tw_session *counts, *previous = NULL;

	assert_int_equal(tw_session_create("counts", NULL, &counts), 0);
	assert_int_equal(tw_seq_set_system_tracer(counts, NULL), TW_EBADARG);
	assert_int_equal(tw_seq_set_system_tracer(two.session, &previous), 0);
	assert_ptr_equal(previous, one.session);
	tw_session_put(previous);
	start("1", TW_SEQ_PRINT);
	tw_seq_print(parse("x"));
	EXPECT(&two, "a seq_print 1, {0,1}, a, [], x");
	EXPECT_NOTHING(&one);
	assert_int_equal(tw_seq_set_system_tracer(NULL, &previous), 0);
	assert_ptr_equal(previous, two.session);
	tw_session_put(previous);
	tw_seq_print(parse("y"));
	EXPECT_NOTHING(&two);
	assert_null(tw_seq_get_system_tracer());
	tw_session_put(counts);
}

/* ---- a tracer module ---- */

static struct {
	enum tw_tracer_answer answer;
	unsigned asked, told;
	char text[256];
} ear;

static enum tw_tracer_answer ear_enabled(enum tw_tracer_tag tag, struct tw_term state, struct tw_term tracee)
{
	if (tag != TW_TRACER_TAG_SEQ_TRACE)
		return TW_TRACER_DISCARD;
	ear.asked++;
	return ear.answer;
}

static void ear_trace(enum tw_tracer_tag tag, struct tw_term state, struct tw_term tracee, struct tw_term term,
		      const struct tw_tracer_options *options)
{
	struct tw_arena arena;
	char buffer[1024];

	ear.told++;
	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	if (options->timestamp == TW_TRACER_STAMP_NONE)
		tw_term_format(tw_tracer_message(&arena, tag, tracee, term, options), TW_PRINT_WRITE, ear.text,
			       sizeof ear.text);
	else
		snprintf(ear.text, sizeof ear.text, "stamp %d", (int)options->timestamp);
}

static void line_228_a_tracer_module(void **state)
{
	static const struct tw_tracer_module module = {.bytes = sizeof module,
						       .name = "ear",
						       .enabled = ear_enabled,
						       .trace = ear_trace};
	struct tw_tracer tracer = {.kind = TW_TRACER_MODULE, .module = &module};
	struct tw_session *session;
	char expected[256];

	assert_int_equal(tw_session_create("ear", &tracer, &session), 0);
	assert_int_equal(tw_seq_set_system_tracer(session, NULL), 0);
	memset(&ear, 0, sizeof ear);
	ear.answer = TW_TRACER_TRACE;
	start("{l,1}", BOTH | TW_SEQ_PRINT);
	pass(a, b, "x");
	assert_int_equal(ear.asked, 2);
	assert_int_equal(ear.told, 2);
	snprintf(expected, sizeof expected, "{seq_trace,{l,1},{'receive',{0,1},<0.%u.0>,<0.%u.0>,x}}",
		 (unsigned)tw_process_pid(a), (unsigned)tw_process_pid(b));
	assert_string_equal(ear.text, expected);
	tw_seq_set_flags(TW_SEQ_STRICT_MONOTONIC_TIMESTAMP, true);
	tw_seq_print(parse("y"));
	assert_string_equal(ear.text, "stamp 2");
	ear.answer = TW_TRACER_DISCARD;
	tw_seq_print(parse("y"));
	assert_int_equal(ear.asked, 4);
	assert_int_equal(ear.told, 3);
	/* The module goes away: there is no system tracer any more. */
	ear.answer = TW_TRACER_REMOVE;
	tw_seq_print(parse("z"));
	tw_seq_print(parse("z"));
	assert_int_equal(ear.asked, 5);
	assert_int_equal(ear.told, 3);
	assert_null(tw_seq_get_system_tracer());
	EXPECT_NOTHING(&one);
	tw_session_destroy(session);
	tw_session_put(session);
}

/* ---- a queue ---- */

static void line_249_a_queue_and_its_tracer(void **state)
{
	struct tw_process *tracer = new_process("tracer");
	struct tw_tracer options = {.kind = TW_TRACER_QUEUE, .tracer_pid = tw_process_pid(tracer)};
	struct tw_session *session, *now;
	struct tw_term message;
	char text[256], expected[256];

	assert_int_equal(tw_session_create("queue", &options, &session), 0);
	assert_int_equal(tw_seq_set_system_tracer(session, NULL), 0);
	start("1", TW_SEQ_SEND);
	pass(a, tracer, "x");
	/* The tracer itself makes no events, and its token goes on. */
	pass(tracer, b, "y");
	assert_string_equal(token_of(b), "{1,1,2,tracer,1}");
	tw_process_in(tracer);
	assert_int_equal(tw_queue_receive(session, 0, &terms, &message), 0);
	tw_term_format(message, TW_PRINT_WRITE, text, sizeof text);
	snprintf(expected, sizeof expected, "{seq_trace,1,{send,{0,1},<0.%u.0>,<0.%u.0>,x}}",
		 (unsigned)tw_process_pid(a), (unsigned)tw_process_pid(tracer));
	assert_string_equal(text, expected);
	assert_int_not_equal(tw_queue_receive(session, 0, &terms, &message), 0);
	now = tw_seq_get_system_tracer();
	assert_ptr_equal(now, session);
	tw_session_put(now);
	/* 253: it exits. */
	tw_process_out();
	tw_process_exit(tracer);
	assert_null(tw_seq_get_system_tracer());
	assert_int_equal(tw_seq_set_system_tracer(session, NULL), TW_EBADARG);
	tw_process_in(a);
	tw_session_destroy(session);
	tw_session_put(session);
}

/* Tokens that are none are dropped and counted; their messages are as untraced ones. */
static void damaged_tokens(void **state)
{
	struct tw_seq_stats before, after;
	struct message message;

	start("1", BOTH);
	message = send_to(a, b, "x");
	EXPECT(&one, "a seq_send 1, {0,1}, a, b, x");
	tw_seq_stats(&before);
	for (unsigned word = 0; word < 8; word++) {
		struct message cut = message;

		memset(&cut.token.words[word], 0, (8 - word) * 8);
		receive(b, &cut);
		assert_string_equal(token_of(b), "[]");
		if (word == 6)
			break;
	}
	tw_seq_stats(&after);
	/* All but the one without any word, which is empty. */
	assert_int_equal(after.damaged - before.damaged + after.foreign - before.foreign, 6);
	message.token.words[0] ^= 2;
	receive(b, &message);
	message.token.words[0] ^= 2;
	message.token.words[6] ^= UINT64_C(1) << 40;
	receive(b, &message);
	assert_string_equal(token_of(b), "[]");
	tw_seq_stats(&before);
	assert_int_equal(before.foreign - after.foreign, 1);
	assert_int_equal(before.damaged - after.damaged, 1);
	EXPECT_NOTHING(&one);
}

/* A forked child begins anew: what its parent has means nothing there. */
static void a_forked_child(void **state)
{
	struct tw_seq_token kept;
	int status = 0;
	pid_t child;

	start("{a,label}", BOTH);
	tw_seq_get_token(&kept);
	child = fork();
	if (!child) {
		struct tw_seq_stats stats;
		struct tw_process *process = NULL;
		bool is_right = !tw_seq_get_system_tracer() && tw_process_create("child", &process) == 0;

		is_right = is_right && strcmp(token_of(process), "[]") == 0;
		is_right = is_right && tw_seq_set_token(&kept, NULL) == TW_EBADARG;
		tw_seq_stats(&stats);
		is_right = is_right && stats.foreign;
		is_right = is_right && tw_seq_set_label(parse("{a,label}")) == 0 &&
			   strcmp(get("label"), "{label,{a,label}}") == 0;
		_exit(is_right ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	pass(a, b, "x");
	EXPECT(&one, "a seq_send {a,label}, {0,1}, a, b, x", "b seq_receive {a,label}, {0,1}, a, b, x");
}

/* More labels than the table holds: those used last are known, tokens of others are dropped and counted. */
/* Labels and nodes that are no terms, though they look like words of some. */
static void words_that_are_no_terms(void **state)
{
	static const uint64_t words[] =
		{0x17, 0x1b | UINT64_C(0xffffff) << 4, UINT64_MAX & ~UINT64_C(4), 1, 2, 0x100000003, 0xe3, 5};
	struct tw_seq_stats before, after;
	struct message message;

	start("1", BOTH);
	message = send_to(a, b, "x");
	EXPECT(&one, "a seq_send 1, {0,1}, a, b, x");
	tw_seq_stats(&before);
	for (size_t i = 0; i < TW_COUNT_OF(words); i++) {
		struct message wrong = message;

		wrong.token.words[1] = words[i];
		receive(b, &wrong);
		assert_string_equal(token_of(b), "[]");
		wrong = message;
		wrong.token.words[5] = words[i];
		receive(b, &wrong);
		assert_string_equal(token_of(b), "[]");
	}
	tw_seq_stats(&after);
	assert_int_equal(after.damaged - before.damaged + after.forgotten - before.forgotten, 2 * TW_COUNT_OF(words));
	EXPECT_NOTHING(&one);
}

/* A label stays in the table while its tokens pass, also if they make no events. */
static void labels_in_use_stay(void **state)
{
	struct tw_seq_token token;
	struct tw_arena arena;
	char buffer[256], text[64];

	start("{in,use}", 0);
	tw_seq_send(a, pid_of(b), parse("x"), &token);
	for (int i = 0; i < 400000; i++) {
		int bytes = snprintf(text, sizeof text, "request %d", i);

		tw_arena_init_fixed(&arena, buffer, sizeof buffer);
		assert_int_equal(tw_seq_set_label(tw_term_binary(&arena, text, (size_t)bytes)), 0);
		if (i % 1000 == 0)
			tw_seq_receive(b, &token, parse("x"));
	}
	tw_seq_receive(b, &token, parse("x"));
	tw_process_in(b);
	assert_string_equal(get("label"), "{label,{in,use}}");
}

static void millions_of_labels(void **state)
{
	enum { LABELS = 300000 };
	struct tw_seq_stats before, after;
	struct tw_seq_token first;
	struct tw_arena arena;
	char buffer[256], text[64];

	tw_seq_stats(&before);
	for (int i = 0; i < LABELS; i++) {
		int bytes = snprintf(text, sizeof text, "request %d", i);

		tw_arena_init_fixed(&arena, buffer, sizeof buffer);
		assert_int_equal(tw_seq_set_label(tw_term_binary(&arena, text, (size_t)bytes)), 0);
		if (i == 0)
			tw_seq_send(a, pid_of(b), parse("x"), &first);
	}
	tw_seq_stats(&after);
	assert_in_range(after.labels_forgotten - before.labels_forgotten, LABELS - 131072 - 100, LABELS - 131072 + 100);
	assert_string_equal(get("label"), "{label,<<114,101,113,117,101,115,116,32,50,57,57,57,57,57>>}");
	tw_seq_receive(b, &first, parse("x"));
	assert_string_equal(token_of(b), "[]");
	tw_seq_stats(&before);
	assert_int_equal(before.forgotten - after.forgotten, 1);
	/* Integers and atoms need no table. */
	tw_process_in(a);
	for (int i = 0; i < LABELS; i++)
		assert_int_equal(tw_seq_set_label(tw_term_integer(NULL, i)), 0);
	tw_seq_stats(&after);
	assert_int_equal(after.labels_forgotten, before.labels_forgotten);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(line_230_without_a_token),
		CASE(line_231_232_a_token_is_made_and_restored),
		CASE(line_233_bad_arguments),
		CASE(line_235_a_chain),
		CASE(line_236_a_fan_out),
		CASE(line_238_print_wants_the_very_label),
		CASE(line_240_an_untraced_message_clears_when_it_is_matched),
		CASE(line_242_spawn),
		CASE(line_244_reset_empties_all_and_an_empty_token_keeps_the_clock),
		CASE(line_245_serials_are_set_and_advance_without_a_tracer),
		CASE(line_247_another_trace_replaces_the_token),
		CASE(line_228_a_tracer_module),
		CASE(line_249_the_system_tracer),
		CASE(line_249_a_queue_and_its_tracer),
		CASE(line_250_three_stamps),
		CASE(line_252_beyond_the_last_serial),
		CASE(line_253_sensitive_processes_and_dead_tracers),
		CASE(line_254_to_itself),
		CASE(damaged_tokens),
		CASE(a_forked_child),
		CASE(words_that_are_no_terms),
		CASE(millions_of_labels),
		CASE(labels_in_use_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
