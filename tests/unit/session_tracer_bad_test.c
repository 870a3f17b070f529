/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Forbidden actions of a callback have no effect outside it: recursion, messages to the tracee and control calls
 *		end in the first call, prevented events are counted, and changes wait for a callback that sleeps.
 * Method	Callbacks that do these things, on processes that this thread runs; with one session and with two.
 */
#include "sanitized_help.h"
#include "session_ears.h"

#include <limits.h>

static void call_again(struct ear *ear)
{
	tw_call1(&step, 8);
	tw_call0(&inner);
}

static void line_224_recursion_ends_in_the_first_call(void **state)
{
	hear_calls(&general);
	ears[0].inside = call_again;
	call_step();
	expect("enabled call;trace call {vm,step,[7]};");
	for (unsigned i = 0; i < session_count; i++)
		assert_int_equal(stats_of(i).nested, 1);
	call_step();
	expect("enabled call;trace call {vm,step,[7]};");
	close_sessions();
}

/* Nothing is lost uncounted: a queue beside it counts the calls that the callback made. */
static void other_sessions_count_what_a_callback_calls(void **state)
{
	struct tw_tracer tracer = {.kind = TW_TRACER_QUEUE, .tracer_pid = tw_process_self()};
	struct tw_session *queue;
	struct tw_queue_stats stats;
	struct tw_arena arena;
	struct tw_term message;
	unsigned calls = 0;

	hear_calls(&general);
	tw_arena_init(&arena, SIZE_MAX);
	assert_int_equal(tw_session_create("queue", &tracer, &queue), 0);
	assert_int_equal(tw_trace_function(queue, "vm", "step", 1, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 1);
	assert_int_equal(tw_trace_process(queue, tw_process_pid(p), true, TW_FLAG_CALL), 1);
	/* The first call takes a ring. */
	call_step();
	ears[0].inside = call_again;
	call_step();
	while (!tw_queue_receive(queue, 0, &arena, &message)) {
		char text[256];

		tw_term_format(message, TW_PRINT_WRITE, text, sizeof text);
		calls += strstr(text, "{vm,step,[7]}") != NULL;
	}
	assert_int_equal(calls, 2);
	assert_int_equal(tw_queue_stats(queue, &stats), 0);
	assert_int_equal(stats.lost[TW_LOST_NESTED], 1);
	tw_session_destroy(queue);
	tw_session_put(queue);
	tw_arena_fini(&arena);
	close_sessions();
}

static jmp_buf out_of_it;

static void jump_out(struct ear *ear)
{
	longjmp(out_of_it, 1);
}

/* Not allowed, and yet: the next call of the thread gives the hit up, and is heard; changes end. */
static void a_hit_that_a_callback_jumped_out_of_is_given_up(void **state)
{
	hear_calls(&general);
	ears[0].inside = jump_out;
	tw_process_in(p);
	if (!setjmp(out_of_it))
		tw_call1(&step, 7);
	ears[0].inside = NULL;
	forget();
	tw_call1(&step, 8);
	expect("enabled call;trace call {vm,step,[8]};");
	tw_process_out();
	close_sessions();
}

static void send_to_the_tracee(struct ear *ear)
{
	tw_process_receive(p, tw_term_atom_z("from the callback"), (struct tw_term){0});
}

static void messages_to_the_tracee_make_no_events(void **state)
{
	hear_calls(&general);
	set_flags(tw_process_pid(p), TW_FLAG_RECEIVE);
	ears[0].inside = send_to_the_tracee;
	forget();
	call_step();
	expect("enabled call;trace call {vm,step,[7]};");
	for (unsigned i = 0; i < session_count; i++)
		assert_int_equal(stats_of(i).nested, 1);
	close_sessions();
}

static void call_control(struct ear *ear)
{
	struct tw_tracer tracer = {.kind = TW_TRACER_MODULE, .module = &general};
	struct tw_session *session;
	uint64_t reference;
	uint32_t flags;

	ear->result =
		tw_session_destroy(sessions[0]) == TW_EDEADLK &&
		tw_trace_process(sessions[0], tw_process_pid(p), false, TW_FLAG_CALL) == TW_EDEADLK &&
		tw_trace_function(sessions[0], "vm", "step", 1, TW_MATCH_FALSE, TW_FUNCTION_LOCAL) == TW_EDEADLK &&
		tw_session_create("x", &tracer, &session) == TW_EDEADLK && tw_trace_begin() == TW_EDEADLK &&
		tw_trace_send(sessions[0], TW_MATCH_FALSE) == TW_EDEADLK &&
		tw_delivered(sessions[0], TW_PID_ALL, &reference) == TW_EDEADLK &&
		tw_trace_process_flags(sessions[0], tw_process_pid(p), &flags) == 0;
	errno = EBADF;
}

static void control_calls_are_refused_and_errno_is_kept(void **state)
{
	hear_calls(&general);
	ears[0].inside = call_control;
	errno = ENOENT;
	call_step();
	assert_int_equal(errno, ENOENT);
	assert_true(ears[0].result);
	assert_int_equal(flags_of(0, tw_process_pid(p)), TW_FLAG_CALL);
	close_sessions();
}

static atomic_int sleeper;

static void sleep_inside(struct ear *ear)
{
	atomic_store(&sleeper, 1);
	while (atomic_load(&sleeper) == 1)
		usleep(1000);
	atomic_store(&sleeper, 3);
}

static void *call_on_thread(void *arg)
{
	call_step();
	return NULL;
}

static void *wake_it(void *arg)
{
	usleep(20000);
	atomic_store(&sleeper, 2);
	return NULL;
}

/* Destroying waits for the callback: when it returns none is running. */
static void destroying_waits_for_a_callback_that_sleeps(void **state)
{
	pthread_t caller, waker;

	hear_calls(&general);
	atomic_store(&sleeper, 0);
	ears[0].inside = sleep_inside;
	pthread_create(&caller, NULL, call_on_thread, NULL);
	while (atomic_load(&sleeper) != 1)
		usleep(1000);
	pthread_create(&waker, NULL, wake_it, NULL);
	assert_int_equal(tw_session_destroy(sessions[0]), 1);
	assert_int_equal(atomic_load(&sleeper), 3);
	pthread_join(caller, NULL);
	pthread_join(waker, NULL);
	/* Its counts stay. */
	assert_int_equal(stats_of(0).nested, 0);
	close_sessions();
}

static pthread_key_t late_key;

static void call_late(void *round)
{
	if ((uintptr_t)round < PTHREAD_DESTRUCTOR_ITERATIONS)
		pthread_setspecific(late_key, (char *)round + 1);
	tw_call1(&step, 9);
}

static void *call_until_the_end(void *arg)
{
	tw_call1(&step, 8);
	pthread_setspecific(late_key, (void *)1);
	return arg;
}

/* The last destructors of a thread run when it has left the library. */
static void calls_of_a_thread_that_has_ended_are_counted(void **state)
{
	pthread_t thread;

	/* Thread sanitizers forget a thread before its last destructors, and so the join. */
	if (IS_SANITIZED)
		skip();
	hear_calls(&general);
	assert_int_equal(pthread_key_create(&late_key, call_late), 0);
	pthread_create(&thread, NULL, call_until_the_end, NULL);
	pthread_join(thread, NULL);
	pthread_key_delete(late_key);
	expect("");
	for (unsigned i = 0; i < session_count; i++) {
		assert_in_range(stats_of(i).no_thread, 1, PTHREAD_DESTRUCTOR_ITERATIONS);
		assert_int_equal(stats_of(i).nested, 0);
	}
	close_sessions();
}

static void delivered_means_that_callbacks_are_over(void **state)
{
	uint64_t reference;

	hear_calls(&general);
	call_step();
	for (unsigned i = 0; i < session_count; i++) {
		assert_int_equal(tw_delivered(sessions[i], tw_process_pid(p), &reference), 0);
		assert_int_equal(tw_delivered_wait(sessions[i], reference, 0), 0);
	}
	close_sessions();
}

static void a_forked_child_is_silent(void **state)
{
	int status;
	pid_t child;

	hear_calls(&general);
	child = fork();
	if (!child) {
		tw_call1(&step, 1);
		_exit(ears[0].used || tw_session_destroy(sessions[0]) != 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	call_step();
	expect("enabled call;trace call {vm,step,[7]};");
	close_sessions();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(line_224_recursion_ends_in_the_first_call),
		BOTH(other_sessions_count_what_a_callback_calls),
		BOTH(a_hit_that_a_callback_jumped_out_of_is_given_up),
		BOTH(messages_to_the_tracee_make_no_events),
		BOTH(control_calls_are_refused_and_errno_is_kept),
		BOTH(destroying_waits_for_a_callback_that_sleeps),
		BOTH(calls_of_a_thread_that_has_ended_are_counted),
		BOTH(delivered_means_that_callbacks_are_over),
		BOTH(a_forked_child_is_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
