/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Numbers that the library gives out (pids, ids of sessions, references, tokens) may be passed on in any way: the thread that
 *	uses one need not be ordered after the thread that got it. The same for functions, which need not be passed on at all.
 * Method	Two threads hand words over by relaxed accesses only, and the memory behind them is reused at once. Thread sanitizers see
 *	each read or write that nothing orders; the numbers of events and answers are compared as well.
 */
#include "sanitized_help.h"
#include "session_events.h"
#include "tracewheel/info.h"
#include "tracewheel/queue.h"
#include "tracewheel/seq.h"
#include "tracewheel/tracer.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#define ROUNDS test_rounds(500, 4)

static struct tw_declared_function f = TW_DECLARED_FUNCTION("handed", "f", 1);

/* ---- handing over ---- */

static _Atomic uint64_t there, back;

/* Waits until the last word was taken. */
static void put(_Atomic uint64_t *to, uint64_t word)
{
	while (word && atomic_load_explicit(to, memory_order_relaxed))
		sched_yield();
	atomic_store_explicit(to, word, memory_order_relaxed);
}

static uint64_t take_word(_Atomic uint64_t *from)
{
	uint64_t word;

	while (!(word = atomic_load_explicit(from, memory_order_relaxed)))
		sched_yield();
	put(from, 0);
	return word;
}

#define OVER UINT64_MAX

/* @other: gets words until OVER. */
static pthread_t begin_other(void *(*other)(void *))
{
	pthread_t thread;

	put(&there, 0);
	put(&back, 0);
	assert_int_equal(pthread_create(&thread, NULL, other, NULL), 0);
	return thread;
}

static void end_other(pthread_t thread)
{
	put(&there, OVER);
	pthread_join(thread, NULL);
}

static struct bed one;

static int begin(void **state)
{
	open_bed(&one, "one");
	return 0;
}

static int end(void **state)
{
	close_bed(&one);
	return 0;
}

/* ---- pids ---- */

static void *flag_processes(void *arg)
{
	char memory[4096];
	struct tw_process *own;
	uint64_t pid;

	while ((pid = take_word(&there)) != OVER) {
		struct tw_term info;
		struct tw_arena arena;
		uint64_t reference;
		uint32_t flags = 0;

		tw_arena_init_fixed(&arena, memory, sizeof memory);
		assert_int_equal(tw_trace_process(one.session, pid, true, TW_FLAG_CALL | TW_FLAG_PROCS | TW_FLAG_SEND),
				 1);
		assert_int_equal(tw_trace_process_flags(one.session, pid, &flags), 0);
		assert_true(flags & TW_FLAG_SEND);
		assert_int_equal(tw_session_info(tw_term_pid(&arena, (uint32_t)pid, 0), &arena, &info), 0);
		assert_int_equal(tw_delivered(one.session, pid, &reference), 0);
		put(&back, 1);
		/* This process gets the memory of the other. */
		while (tw_trace_process(one.session, pid, false, TW_FLAG_PROCS) == 1)
			sched_yield();
		assert_int_equal(tw_process_create("own", &own), 0);
		tw_process_exit(own);
		put(&back, 1);
	}
	return arg;
}

static void pids_of_a_run_time(void **state)
{
	pthread_t other = begin_other(flag_processes);

	tw_scheduler_declare();
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct tw_process *process;

		assert_int_equal(tw_process_create("handed", &process), 0);
		tw_process_in(process);
		put(&there, tw_process_pid(process));
		while (!atomic_load_explicit(&back, memory_order_relaxed)) {
			tw_call1(&f, i);
			tw_process_send(process, tw_small(1), tw_small(2));
			sched_yield();
		}
		put(&back, 0);
		tw_process_register(process, tw_term_atom_z("handed"));
		tw_process_out();
		tw_process_exit(process);
		take_word(&back);
	}
	end_other(other);
}

static void *be_a_thread(void *arg)
{
	put(&there, tw_process_self());
	for (unsigned i = 0; i < 20; i++)
		tw_call1(&f, i);
	return arg;
}

static void pids_of_threads(void **state)
{
	put(&there, 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t pid;
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, be_a_thread, NULL), 0);
		pid = take_word(&there);
		while (tw_trace_process(one.session, pid, true, TW_FLAG_CALL | TW_FLAG_PROCS) == 1)
			tw_trace_process(one.session, pid, false, TW_FLAG_CALL);
		/* The next thread has the memory of this one, which may be not joined yet. */
		pthread_detach(thread);
	}
}

/* ---- sessions ---- */

static void *use_sessions(void *arg)
{
	char memory[4096];
	uint64_t weak;

	while ((weak = take_word(&there)) != OVER) {
		struct tw_session *session;
		struct tw_arena arena;
		struct tw_term message;

		tw_arena_init_fixed(&arena, memory, sizeof memory);
		assert_int_equal(tw_session_lock(weak, &session), 0);
		put(&back, 1);
		assert_true(tw_session_name(session)[0] == 'h');
		if (tw_trace_process(session, tw_process_self(), true, TW_FLAG_CALL) == 1) {
			tw_trace_function(session, "handed", "f", 1, TW_MATCH_TRUE,
					  TW_FUNCTION_LOCAL | TW_FUNCTION_CALL_COUNT);
			tw_call1(&f, 1);
			tw_queue_receive(session, 0, &arena, &message);
		}
		tw_session_destroy_weak(weak);
		tw_session_put(session);
		put(&back, 1);
	}
	return arg;
}

static void ids_of_sessions(void **state)
{
	const struct tw_tracer tracer = {.kind = TW_TRACER_QUEUE};
	pthread_t other = begin_other(use_sessions);

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct tw_session *session;
		uint64_t count;

		assert_int_equal(tw_session_create("handed", &tracer, &session), 0);
		put(&there, tw_session_weak_of(session));
		take_word(&back);
		tw_trace_send(session, TW_MATCH_FALSE);
		tw_trace_call_count(session, "handed", "f", 1, &count);
		if (i % 2)
			tw_session_destroy(session);
		tw_session_put(session);
		take_word(&back);
	}
	end_other(other);
}

static struct tw_session *marked;

static void *wait_for_marks(void *arg)
{
	uint64_t reference;

	while ((reference = take_word(&there)) != OVER) {
		assert_int_equal(tw_delivered_wait(marked, reference, UINT64_MAX), 0);
		put(&back, 1);
	}
	return arg;
}

static void references(void **state)
{
	const struct tw_tracer tracer = {.kind = TW_TRACER_QUEUE};
	char memory[4096];
	pthread_t other;

	assert_int_equal(tw_session_create("handed", &tracer, &marked), 0);
	other = begin_other(wait_for_marks);
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct tw_arena arena;
		struct tw_term message;
		uint64_t reference;

		tw_arena_init_fixed(&arena, memory, sizeof memory);
		assert_int_equal(tw_delivered(marked, TW_PID_ALL, &reference), 0);
		put(&there, reference);
		assert_int_equal(tw_queue_receive(marked, UINT64_MAX, &arena, &message), 0);
		take_word(&back);
	}
	end_other(other);
	tw_session_destroy(marked);
	tw_session_put(marked);
}

/* ---- tokens ---- */

#define TOKEN_WORDS (sizeof(struct tw_seq_token) / 8)

static _Atomic uint64_t token_words[TOKEN_WORDS];

static void *accept_tokens(void *arg)
{
	uint64_t number;

	while ((number = take_word(&there)) != OVER) {
		char memory[4096], text[64], expected[64];
		struct tw_seq_token token;
		struct tw_arena arena;

		tw_arena_init_fixed(&arena, memory, sizeof memory);
		for (unsigned i = 0; i < TOKEN_WORDS; i++)
			token.words[i] = atomic_load_explicit(&token_words[i], memory_order_relaxed);
		tw_seq_accept(&token, tw_small(5));
		snprintf(expected, sizeof expected, "{label,%s%d}", number % 2 ? "new_" : "", (int)number);
		tw_term_format(tw_term_element(tw_seq_token_term(&arena), 1), TW_PRINT_WRITE, text, sizeof text);
		assert_string_equal(text, expected);
		put(&back, 1);
	}
	tw_seq_set_token(NULL, NULL);
	return arg;
}

static void tokens(void **state)
{
	pthread_t other;

	assert_int_equal(tw_seq_set_system_tracer(one.session, NULL), 0);
	/* The first token watches pthread_create(): here, since a thread sanitizer does not see that a slot orders anything. */
	assert_int_equal(tw_seq_set_label(tw_small(1)), 0);
	other = begin_other(accept_tokens);
	for (unsigned i = 1; i < ROUNDS; i++) {
		char memory[512], name[32];
		struct tw_seq_token token;
		struct tw_term parts[2];
		struct tw_arena arena;

		tw_arena_init_fixed(&arena, memory, sizeof memory);
		snprintf(name, sizeof name, "new_%u", i);
		parts[0] = tw_term_atom_z("label");
		parts[1] = i % 2 ? tw_term_atom_z(name) : tw_small((int)i);
		assert_int_equal(tw_seq_set_label(tw_term_tuple(&arena, parts, 2)), 0);
		tw_seq_set_flags(TW_SEQ_SEND | TW_SEQ_RECEIVE, true);
		tw_seq_pass(&token, (struct tw_term){0}, tw_small(5));
		for (unsigned w = 0; w < TOKEN_WORDS; w++)
			atomic_store_explicit(&token_words[w], token.words[w], memory_order_relaxed);
		put(&there, i);
		take_word(&back);
	}
	end_other(other);
	tw_seq_reset_trace();
	tw_seq_set_system_tracer(NULL, NULL);
}

/* ---- functions, and callbacks ---- */

static struct tw_declared_function loaded[4] = {TW_DECLARED_FUNCTION("loaded", "f0", 1),
						TW_DECLARED_FUNCTION("loaded", "f1", 1),
						TW_DECLARED_FUNCTION("loaded", "f2", 1),
						TW_DECLARED_FUNCTION("loaded", "f3", 1)};

static void *call_all(void *arg)
{
	put(&back, tw_process_self());
	while (atomic_load_explicit(&there, memory_order_relaxed) != OVER) {
		for (unsigned i = 0; i < 4; i++)
			tw_call1(&loaded[i], i);
		tw_call1(&f, 1);
		tw_process_send(tw_process_current(), tw_small(1), tw_small(2));
	}
	return arg;
}

static void functions_are_loaded_beside_calls(void **state)
{
	pthread_t other = begin_other(call_all);

	assert_int_equal(tw_trace_process(one.session, take_word(&back), true, TW_FLAG_CALL), 1);
	tw_trace_on_load(one.session, TW_MATCH_TRUE, NULL, TW_FUNCTION_LOCAL | TW_FUNCTION_CALL_COUNT);
	for (unsigned i = 0; i < ROUNDS; i++) {
		for (unsigned j = 0; j < 4; j++)
			assert_int_equal(tw_function_declare(&loaded[j]), 0);
		assert_int_equal(tw_module_unload("loaded"), 4);
	}
	end_other(other);
}

static _Atomic unsigned called;

static enum tw_tracer_answer enabled(enum tw_tracer_tag tag, struct tw_term tracer_state, struct tw_term tracee)
{
	assert_int_equal(tw_term_tuple_count(tracer_state), 2);
	return TW_TRACER_TRACE;
}

static void trace(enum tw_tracer_tag tag, struct tw_term tracer_state, struct tw_term tracee, struct tw_term term,
		  const struct tw_tracer_options *options)
{
	called++;
}

static void tracer_modules_come_beside_calls(void **state)
{
	static const struct tw_tracer_module module = {.bytes = sizeof module,
						       .name = "handed",
						       .enabled = enabled,
						       .trace = trace};
	pthread_t other = begin_other(call_all);
	uint64_t pid = take_word(&back);

	for (unsigned i = 0; i < ROUNDS; i++) {
		char memory[256];
		struct tw_arena arena;
		struct tw_tracer tracer = {.kind = TW_TRACER_MODULE, .module = &module};
		struct tw_session *session;

		tw_arena_init_fixed(&arena, memory, sizeof memory);
		tracer.state = tw_term_tuple(&arena, (struct tw_term[]){tw_small(1), tw_small((int)i)}, 2);
		assert_int_equal(tw_session_create("module", &tracer, &session), 0);
		if (i % 2)
			assert_int_equal(tw_trace_process(session, pid, true, TW_FLAG_CALL | TW_FLAG_SEND), 1);
		assert_int_equal(tw_trace_function(session, "handed", "f", 1, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 1);
		if (i % 2 == 0)
			assert_int_equal(tw_trace_process(session, pid, true, TW_FLAG_CALL | TW_FLAG_SEND), 1);
		if (i % 8 == 0)
			usleep(200);
		tw_session_destroy(session);
		tw_session_put(session);
	}
	end_other(other);
	assert_true(called > 0);
}

/* ---- several threads for one process ---- */

static struct tw_process *p;
static tw_port port;

static void *report_all(void *arg)
{
	static const struct tw_gc_sizes sizes = {.heap_block_size = 100000, .wordsize = 8};
	const unsigned number = (unsigned)(uintptr_t)arg;
	char name[8];
	struct tw_term atom;

	snprintf(name, sizeof name, "p%u", number);
	atom = tw_term_atom_z(name);
	for (unsigned i = 0; i < 10 * ROUNDS; i++) {
		tw_process_send(p, tw_small(1), tw_small(2));
		tw_process_receive(p, tw_small(1), (struct tw_term){0});
		tw_process_receive_timeout(p);
		tw_process_unlink(p, 7);
		tw_process_getting_linked(p, 7);
		tw_process_mailbox(p, i % 20);
		tw_process_busy_port(p, (struct tw_term){0});
		tw_process_gc(p, i % 2 ? TW_GC_MINOR_END : TW_GC_MINOR_START, &sizes);
		if (tw_process_register(p, atom) == 0)
			tw_process_unregister(p);
		tw_process_sensitive(p, i % 8 == 0);
		tw_process_wants(p, TW_WANTS_SEND);
		tw_port_in(port, TW_PORT_COMMAND);
		tw_port_out(port, TW_PORT_COMMAND);
	}
	return NULL;
}

static void several_threads_report_one_process(void **state)
{
	const struct tw_tracer tracer = {.kind = TW_TRACER_QUEUE};
	const struct tw_port_options options = {.driver = "handed"};
	struct tw_session *monitor;
	pthread_t threads[3];

	tw_scheduler_declare();
	assert_int_equal(tw_process_create("p", &p), 0);
	assert_int_equal(tw_session_create("monitor", &tracer, &monitor), 0);
	assert_int_equal(tw_port_open(&options, &port), 0);
	assert_int_equal(tw_trace_port(one.session, port, true, TW_FLAG_RUNNING_PORTS), 1);
	assert_int_equal(tw_trace_system(monitor, tw_term_atom_z("long_gc"), tw_small(1)), 0);
	assert_int_equal(tw_trace_system(monitor, tw_term_atom_z("long_schedule"), tw_small(1)), 0);
	for (uintptr_t i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, report_all, (void *)i), 0);
	for (unsigned i = 0; i < 100; i++) {
		tw_trace_process(one.session, tw_process_pid(p), i % 2 == 0,
				 TW_FLAG_SEND | TW_FLAG_RECEIVE | TW_FLAG_PROCS | TW_FLAG_GARBAGE_COLLECTION);
		tw_trace_system(monitor, tw_term_atom_z("large_heap"), tw_small(1000 + (int)i));
		tw_trace_system(monitor, tw_term_atom_z("long_gc"), tw_small(1));
		tw_trace_system(monitor, tw_term_atom_z("busy_port"), tw_term_bool(i % 2));
	}
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	tw_session_destroy(monitor);
	tw_session_put(monitor);
	tw_port_close(port, (struct tw_term){0});
	tw_process_exit(p);
}

static _Atomic bool is_killed;

static void *kill_process(void *arg)
{
	tw_process_exiting(arg, tw_term_atom_z("killed"));
	is_killed = true;
	return NULL;
}

static void a_process_is_killed_while_it_runs(void **state)
{
	struct tw_process *process;
	pthread_t thread;

	tw_scheduler_declare();
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(tw_process_create("killed", &process), 0);
		tw_trace_process(one.session, tw_process_pid(process), true,
				 TW_FLAG_PROCS | TW_FLAG_RUNNING | TW_FLAG_EXITING);
		is_killed = false;
		assert_int_equal(pthread_create(&thread, NULL, kill_process, process), 0);
		do {
			tw_process_in(process);
			tw_process_out();
		} while (!is_killed);
		tw_process_exit(process);
		pthread_join(thread, NULL);
	}
}

int main(int argc, char **argv)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		CASE(pids_of_threads),
		CASE(ids_of_sessions),
		CASE(references),
		CASE(tokens),
		CASE(functions_are_loaded_beside_calls),
		CASE(tracer_modules_come_beside_calls),
		CASE(pids_of_a_run_time),
		CASE(several_threads_report_one_process),
		CASE(a_process_is_killed_while_it_runs),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	assert_int_equal(tw_function_declare(&f), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
