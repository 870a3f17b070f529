/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    The threads of a process that runs, and those that it starts while and after it is followed, are told once each: what a thread got
 *	   it loses before it gets it again.
 * Method  A child whose threads sleep again and again, and start threads that do the same.  Records of one thread are looked at in their order.
 */
#include "base/clock.h"
#include "base/switches.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#define MS	   1000000L
#define TOLD_MOST  4096
#define ROUNDS	   200
#define IDLE	   150
#define NO_PROCESS 0x3fffffff

static void rest(long ns)
{
	nanosleep(&(struct timespec){0, ns}, NULL);
}

static void *rests(void *arg)
{
	for (int i = 0; i < 20; i++)
		rest(MS / 2);
	return arg;
}

/* It starts threads that start threads. */
static void *starts(void *arg)
{
	for (;;) {
		pthread_t threads[3];

		for (int i = 0; i < 3; i++)
			pthread_create(&threads[i], NULL, rests, NULL);
		for (int i = 0; i < 3; i++)
			pthread_join(threads[i], NULL);
	}
	return arg;
}

static void *waits(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static pid_t start_child(void)
{
	pthread_t threads[2], more;
	pid_t child = fork();

	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, starts, NULL);
	/* So that a search takes its time, in which others start threads. */
	for (int i = 0; i < IDLE; i++)
		pthread_create(&more, NULL, waits, NULL);
	for (;;)
		rest(MS);
}

static struct told {
	int32_t thread_id;
	uint32_t source;
	enum tw_switch_kind kind;
	uint64_t switches;
} told[TOLD_MOST];
static unsigned told_count;

static struct told *find(int32_t thread_id)
{
	for (unsigned i = told_count; i-- > 0;)
		if (told[i].thread_id == thread_id && told[i].kind != TW_SWITCH_EXIT)
			return &told[i];
	assert_true(told_count < TOLD_MOST);
	told[told_count] = (struct told){.thread_id = thread_id, .source = UINT32_MAX};
	return &told[told_count++];
}

static void take(const struct tw_switch *taken)
{
	struct told *thread;

	/* A machine that is too busy to be read in time. */
	if (taken->kind == TW_SWITCH_GAP)
		skip();
	thread = find(taken->thread_id);
	if (thread->source != UINT32_MAX && thread->source != taken->source)
		return;
	if (thread->switches && taken->kind != TW_SWITCH_EXIT)
		assert_int_not_equal(thread->kind == TW_SWITCH_IN, taken->kind == TW_SWITCH_IN);
	thread->source = taken->source;
	thread->kind = taken->kind;
	thread->switches++;
}

static void threads_of_a_process_that_runs_are_told_once(void **state)
{
	struct tw_switches *switches = NULL;
	const struct tw_switches_thread *threads;
	uint32_t count, ended = 0;
	pid_t child = start_child();
	int error;

	(void)state;
	rest(20 * MS);
	error = tw_switches_open_process(&switches, child);
	if (error == -EPERM || error == -EACCES || error == -ENOSYS || error == -EMFILE || error == -ENOBUFS) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		skip();
	}
	assert_int_equal(error, 0);
	threads = tw_switches_threads(switches, &count);
	assert_true(count >= 3);
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t j = 0; j < i; j++)
			assert_int_not_equal(threads[i].thread_id, threads[j].thread_id);
	for (int i = 0; i < ROUNDS; i++) {
		struct tw_switch taken;

		rest(MS);
		tw_switches_begin(switches);
		while (tw_switches_next(switches, &taken))
			take(&taken);
		tw_switches_end(switches);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	for (unsigned i = 0; i < told_count; i++)
		ended += told[i].kind == TW_SWITCH_EXIT && told[i].switches > 10;
	/* Most were started later, and each has slept twenty times. */
	assert_true(ended > 10);
	tw_switches_close(switches);
}

static void a_process_that_is_not_there(void **state)
{
	struct tw_switches *switches = NULL;
	int error = tw_switches_open_process(&switches, NO_PROCESS);

	(void)state;
	assert_true(error < 0);
	assert_null(switches);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_of_a_process_that_runs_are_told_once),
		cmocka_unit_test(a_process_that_is_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
