/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Whichever function of the library a program calls first works, and so does all that follows.
 * Method	Children of a process that has called nothing: each makes another first call, and then a session traces
 *	it.
 */
#include "tracewheel/error.h"
#include "tracewheel/runtime.h"
#include "tracewheel/tracewheel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static struct tw_declared_function step = TW_DECLARED_FUNCTION("first", "step", 0);

/* Each returns 0 on success. */
static int declare_a_scheduler(void)
{
	return tw_scheduler_declare();
}

static int make_a_process(void)
{
	struct tw_process *process;

	return tw_process_create("p", &process);
}

static int spawn_a_process(void)
{
	const struct tw_spawn options = {.name = "p"};
	struct tw_process *process;

	return tw_process_spawn(&options, &process);
}

static int ask_who_it_is(void)
{
	return tw_process_self() == 0;
}

static int make_a_session(void)
{
	struct tw_session *session;

	return tw_session_create("first", NULL, &session);
}

static int declare_a_function(void)
{
	return tw_function_declare(&step);
}

static int call_a_function(void)
{
	tw_call0(&step);
	return 0;
}

static int (*const calls[])(void) = {declare_a_scheduler, make_a_process,     spawn_a_process, ask_who_it_is,
				     make_a_session,	  declare_a_function, call_a_function};
enum { CALLS = sizeof calls / sizeof *calls };

static int statuses[CALLS];

static void count_a_call(int status)
{
	struct tw_process *process;
	struct tw_session *session;
	uint64_t count = 0;

	if (status)
		_exit(1);
	if (tw_function_declare(&step) || tw_process_create("counted", &process) ||
	    tw_session_create("next", NULL, &session))
		_exit(2);
	if (tw_trace_function(session, "first", "step", 0, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT) != 1 ||
	    tw_trace_process(session, tw_process_pid(process), true, TW_FLAG_CALL) != 1)
		_exit(3);
	tw_process_in(process);
	tw_call0(&step);
	tw_process_out();
	_exit(tw_trace_call_count(session, "first", "step", 0, &count) < 0 || count != 1 ? 4 : 0);
}

static void any_call_may_be_the_first(void **state)
{
	for (int i = 0; i < CALLS; i++)
		assert_int_equal(statuses[i], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_call_may_be_the_first),
	};

	for (int i = 0; i < CALLS; i++) {
		pid_t child = fork();

		if (child == 0)
			count_a_call(calls[i]());
		waitpid(child, &statuses[i], 0);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
