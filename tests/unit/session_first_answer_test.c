/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Whichever function of the library a program calls first answers as it does later: nothing is copied before it is
 *		made.
 * Method	Children of a process that has called nothing.  Each makes one call twice over, as its first call of all, and after
 *		sessions, processes, ports and tokens; both say the same.  Tokens come from another child.
 */
#include "tracewheel/error.h"
#include "tracewheel/match.h"
#include "tracewheel/runtime.h"
#include "tracewheel/seq.h"
#include "tracewheel/tracewheel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#define TEXT_BYTES 2000

/* Made by another process, which has called all that it wants. */
static struct {
	unsigned char bytes[TW_SEQ_ENCODED_BYTES_MAX], erlang[TW_SEQ_ENCODED_BYTES_MAX];
	size_t count, erlang_count;
	struct tw_seq_headers headers;
} token;

static char text[TEXT_BYTES];
static size_t used;

static __attribute__((format(printf, 1, 2))) void say(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	used += (size_t)vsnprintf(text + used, sizeof text - used, format, arguments);
	va_end(arguments);
}

static void say_term(struct tw_term term)
{
	struct tw_sink sink = {.start = text + used, .at = text + used, .end = text + sizeof text - 1};

	if (tw_term_is_none(term) || tw_term_print(term, TW_PRINT_WRITE, &sink))
		say("none ");
	used = (size_t)(sink.at - text);
	say(" ");
}

/* ---- tokens ---- */

/* What leaves the process after it has accepted the token. */
static void pass_on(int error, const struct tw_seq_token *from)
{
	struct tw_seq_headers headers = {0};
	struct tw_seq_token out;

	tw_seq_accept(from, tw_term_atom_z("request"));
	tw_seq_pass(&out, tw_term_atom_z("next"), tw_term_atom_z("request"));
	say("%d empty %d, ", error, tw_seq_token_is_empty(&out));
	say("%d ", tw_seq_to_traceparent(&out, NULL, NULL, &headers));
	say("%.36s ", headers.traceparent);
	struct tw_seq_stats stats;
	tw_seq_stats(&stats);
	say("%d %d %d", (int)stats.foreign, (int)stats.damaged, (int)stats.refused_damaged);
}

static void take_a_foreign_header(void)
{
	struct tw_seq_token out = {{0}};

	pass_on(tw_seq_from_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", NULL, &out), &out);
}

static void take_our_headers(void)
{
	struct tw_seq_token out = {{0}};

	pass_on(tw_seq_from_traceparent(token.headers.traceparent, token.headers.tracestate, &out), &out);
}

static void decode_a_token(void)
{
	struct tw_seq_token out = {{0}};

	pass_on(tw_seq_decode(token.bytes, token.count, NULL, &out), &out);
}

static void take_a_token_of_erlang(void)
{
	struct tw_seq_token out = {{0}};

	pass_on(tw_seq_from_erlang(token.erlang, token.erlang_count, &out), &out);
}

static void set_a_decoded_token(void)
{
	struct tw_seq_token out = {{0}}, own;

	say("%d ", tw_seq_decode(token.bytes, token.count, NULL, &out));
	say("%d ", tw_seq_set_token(&out, NULL));
	tw_seq_get_token(&own);
	say("empty %d", tw_seq_token_is_empty(&own));
}

static void set_a_label(void)
{
	struct tw_seq_token out;

	say("%d ", tw_seq_set_label(tw_term_atom_z("order")));
	tw_seq_pass(&out, tw_term_atom_z("next"), tw_term_atom_z("request"));
	pass_on(tw_seq_set_flags(TW_SEQ_SEND, true), &out);
}

static void set_a_component(void)
{
	char buffer[4096];
	struct tw_arena arena;
	struct tw_term old = {0}, now = {0};

	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	say("%d ", tw_seq_set_component(&arena, tw_term_atom_z("label"), tw_term_atom_z("order"), &old));
	say_term(old);
	say("%d ", tw_seq_component(&arena, tw_term_atom_z("label"), &now));
	say_term(now);
}

static void have_no_token(void)
{
	char buffer[4096];
	struct tw_arena arena;
	struct tw_seq_token out = {{0}};

	unsigned char bytes[100];
	size_t count = 0;

	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	tw_seq_print(tw_term_atom_z("nothing"));
	say("%d ", tw_seq_set_token(NULL, NULL));
	say("%d ", tw_seq_encode(&out, bytes, sizeof bytes, &count));
	say("%zu ", count);
	say_term(tw_seq_token_term(&arena));
	say("%d", tw_seq_get_system_tracer() == NULL);
}

static void begin_anew(void)
{
	struct tw_seq_token out = {{0}};

	say("%d ", tw_seq_reset_trace());
	pass_on(tw_seq_decode(token.bytes, token.count, NULL, &out), &out);
}

/* ---- sessions, functions, match specifications ---- */

static struct tw_declared_function step = TW_DECLARED_FUNCTION("first", "step", 1);

static void set_what_no_session_needs(void)
{
	uint32_t before = tw_trace_control_word_set(17), depth = tw_backtrace_depth_set(7);

	say("%u %u %u %u ", before, tw_trace_control_word_get(), depth, tw_backtrace_depth_get());
	say("%d ", (int)tw_counts_refused());
	say("%d", tw_progress());
	tw_trace_control_word_set(before);
	tw_backtrace_depth_set(depth);
}

static void change_nothing_in_one_step(void)
{
	say("%d ", tw_trace_begin());
	say("%d ", tw_trace_commit());
	say("%d ", tw_trace_begin());
	say("%d", tw_trace_abort());
}

static void ask_for_sessions(void)
{
	char buffer[4096];
	struct tw_arena arena;
	struct tw_term out = {0};

	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	say("%d ", tw_session_info(tw_term_atom_z("all"), &arena, &out));
	say_term(out);
	say("%d ", tw_trace_info(NULL, tw_term_atom_z("new"), tw_term_atom_z("flags"), &arena, &out));
}

static void trace_into_a_queue(void)
{
	const struct tw_tracer tracer = {.kind = TW_TRACER_QUEUE};
	struct tw_session *session = NULL;
	struct tw_arena arena;
	struct tw_term message;
	uint64_t reference = 0;

	tw_arena_init(&arena, 1 << 20);
	say("%d ", tw_session_create("first", &tracer, &session));
	say("%d ", tw_function_declare(&step));
	say("%d ", tw_trace_function(session, "first", "step", 1, TW_MATCH_TRUE, 0));
	say("%d ", tw_trace_process(session, tw_process_self(), true, TW_FLAG_CALL));
	tw_call1(&step, 4);
	say("%d ", tw_delivered(session, tw_process_self(), &reference) == 0);
	while (tw_queue_receive(session, 0, &arena, &message) == 0)
		say("message ");
	say("%d ", tw_trace_on_load(session, TW_MATCH_TRUE, NULL, 0));
	say("%d", tw_session_destroy(session));
	tw_arena_fini(&arena);
}

static void run_a_specification(void)
{
	static const char spec[] = "[{['$1'],[{'>','$1',1}],[{message,{self}},{return_trace}]}]";
	struct tw_match_program *program = NULL;
	struct tw_match_error error = {0};

	say("%d", tw_match_compile_text(spec, sizeof spec - 1, NULL, &program, &error));
	tw_match_destroy(program);
}

static void tell_the_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	say("%d ", tw_monotonic_time_ns() / 1000000000 - now.tv_sec <= 1);
	int64_t one = tw_unique_integer_monotonic();
	say("%d", tw_unique_integer_monotonic() > one);
}

/* ---- processes and ports ---- */

static void ask_of_nobody(void)
{
	say("%d ", tw_process_current() == NULL);
	say("%d ", tw_process_self() != 0);
	say("%d ", tw_process_wants_any(NULL, ~0u));
	say("%d ", tw_port_of_fd(12345) == 0);
	say("%d ", tw_trace_process(NULL, 1, true, TW_FLAG_CALL));
	tw_runtime_send(NULL, tw_term_atom_z("x"), tw_term_atom_z("y"), false);
	tw_runtime_receive(NULL, tw_term_atom_z("x"), tw_term_atom_z("y"));
	tw_runtime_timeout(NULL);
}

static void live_as_a_process(void)
{
	const struct tw_spawn options = {.name = "child"};
	struct tw_process *process = NULL, *child = NULL;
	struct tw_seq_token out;

	say("%d ", tw_process_create("first", &process));
	say("%d ", tw_process_register(process, tw_term_atom_z("first")));
	tw_process_in(process);
	say("%d %d ", tw_process_current() == process, tw_process_self() == tw_process_pid(process));
	say("%d ", tw_process_spawn(&options, &child));
	say("%d ", tw_seq_set_label(tw_term_atom_z("order")));
	tw_seq_pass(&out, tw_term_atom_z("next"), tw_term_atom_z("request"));
	say("%d ", tw_seq_token_is_empty(&out));
	say("%d ", tw_process_sensitive(process, true));
	tw_process_out();
	say("%d", tw_process_unregister(process));
	tw_process_exit(child);
	tw_process_exit(process);
}

static void use_a_port(void)
{
	tw_port port = 0;

	say("%d ", tw_port_declare_fd(0, NULL, &port));
	say("%d %d ", tw_port_of_fd(0) == port, tw_port_wants_any(port, ~0u));
	say("%d", tw_port_close(port, tw_term_atom_z("normal")));
}

static void (*const calls[])(void) = {take_a_foreign_header,
				      take_our_headers,
				      decode_a_token,
				      take_a_token_of_erlang,
				      set_a_decoded_token,
				      set_a_label,
				      set_a_component,
				      have_no_token,
				      begin_anew,
				      set_what_no_session_needs,
				      ask_for_sessions,
				      trace_into_a_queue,
				      change_nothing_in_one_step,
				      run_a_specification,
				      tell_the_time,
				      ask_of_nobody,
				      live_as_a_process,
				      use_a_port};
enum { CALLS = sizeof calls / sizeof *calls };

static char answers[2][CALLS][TEXT_BYTES];

/* Everything has been used once, and nothing of it is left. */
static void warm_up(void)
{
	for (int i = 0; i < CALLS; i++)
		calls[i]();
	tw_seq_set_token(NULL, NULL);
	used = 0;
}

static void answer(void (*call)(void), bool is_first, char out[TEXT_BYTES])
{
	int ends[2], status;

	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		if (!is_first)
			warm_up();
		call();
		_exit(write(ends[1], text, used + 1) != (ssize_t)used + 1);
	}
	close(ends[1]);
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	assert_true(read(ends[0], out, TEXT_BYTES - 1) > 0);
	close(ends[0]);
}

static void a_first_answer_is_as_good_as_a_later_one(void **state)
{
	for (int i = 0; i < CALLS; i++) {
		print_message("%d: %s\n", i, answers[0][i]);
		assert_string_equal(answers[0][i], answers[1][i]);
	}
	/* The first token that a program takes is passed on. */
	for (int i = 0; i < 4; i++)
		assert_memory_equal(answers[0][i], "0 empty 0, 0 00-", 16);
}

static void make_token(int out)
{
	struct tw_seq_token made;

	if (tw_seq_set_label(tw_term_atom_z("order")) || tw_seq_set_flags(TW_SEQ_SEND | TW_SEQ_RECEIVE, true))
		_exit(1);
	tw_seq_pass(&made, tw_term_atom_z("peer"), tw_term_atom_z("request"));
	if (tw_seq_encode(&made, token.bytes, sizeof token.bytes, &token.count) ||
	    tw_seq_to_erlang(&made, token.erlang, sizeof token.erlang, &token.erlang_count) ||
	    tw_seq_to_traceparent(&made, NULL, NULL, &token.headers))
		_exit(2);
	_exit(write(out, &token, sizeof token) != sizeof token);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_first_answer_is_as_good_as_a_later_one),
	};
	int ends[2], status;

	if (pipe(ends))
		return 1;
	pid_t child = fork();
	if (child == 0)
		make_token(ends[1]);
	waitpid(child, &status, 0);
	if (status || read(ends[0], &token, sizeof token) != sizeof token)
		return 1;
	for (int i = 0; i < CALLS; i++)
		for (int is_late = 0; is_late < 2; is_late++)
			answer(calls[i], !is_late, answers[is_late][i]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
