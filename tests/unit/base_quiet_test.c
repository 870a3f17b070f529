/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    In quiet sections no handler runs and no cancellation acts, until the last one ends, in whatever order they end; the thread
 *         then has the mask and the cancellation state of before, in a forked child too.
 * Method  A signal is sent to the thread at each depth, and its handler takes sections itself; threads are cancelled inside.
 */
#include "base/quiet_lock.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

static struct tw_quiet_lock locks[2] = {TW_QUIET_LOCK_INIT, TW_QUIET_LOCK_INIT};
static volatile sig_atomic_t handled;

static void handle(int number)
{
	(void)number;
	tw_quiet_lock(&locks[0]);
	tw_quiet_begin();
	handled++;
	tw_quiet_end();
	tw_quiet_unlock(&locks[0]);
}

static void setup_handler(void)
{
	struct sigaction action = {.sa_handler = handle};

	handled = 0;
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
}

static bool is_blocked(int number)
{
	sigset_t set;

	assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &set), 0);
	return sigismember(&set, number);
}

static void sections_nest_and_overlap(void **state)
{
	sigset_t own;

	(void)state;
	setup_handler();
	sigemptyset(&own);
	sigaddset(&own, SIGUSR2);
	pthread_sigmask(SIG_SETMASK, &own, NULL);

	tw_quiet_lock(&locks[0]);
	raise(SIGUSR1);
	tw_quiet_begin();
	tw_quiet_lock(&locks[1]);
	assert_int_equal(tw_quiet.depth, 3);
	tw_quiet_unlock(&locks[0]);
	assert_int_equal(handled, 0);
	tw_quiet_end();
	assert_int_equal(handled, 0);
	assert_true(is_blocked(SIGUSR1));
	tw_quiet_unlock(&locks[1]);
	assert_int_equal(handled, 1);
	for (int number = 1; number < 32; number++)
		assert_int_equal(is_blocked(number), number == SIGUSR2);
	raise(SIGUSR1);
	assert_int_equal(handled, 2);
	assert_int_equal(tw_quiet.depth, 0);
}

static void a_forked_child_is_in_the_section(void **state)
{
	int status;
	pid_t child;

	(void)state;
	setup_handler();
	tw_quiet_lock_before_fork(&locks[0]);
	tw_quiet_lock_before_fork(&locks[1]);
	child = fork();
	if (!child) {
		raise(SIGUSR1);
		/* Taken again by the thread that forks. */
		tw_quiet_lock(&locks[1]);
		tw_quiet_unlock(&locks[1]);
		tw_quiet_unlock_after_fork(&locks[0]);
		if (handled)
			_exit(1);
		tw_quiet_unlock_after_fork(&locks[1]);
		_exit(handled == 1 && !tw_quiet.depth ? 0 : 2);
	}
	tw_quiet_unlock_after_fork(&locks[0]);
	tw_quiet_unlock_after_fork(&locks[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static sem_t inside, go;
static volatile bool has_ended_inner, is_left;

/* Its frame is left by the cancellation, which address sanitizers do not know. */
__attribute__((no_sanitize_address)) static void *be_cancelled(void *arg)
{
	(void)arg;
	tw_quiet_begin();
	tw_quiet_begin();
	sem_post(&inside);
	while (sem_trywait(&go))
		;
	tw_quiet_end();
	pthread_testcancel();
	has_ended_inner = true;
	tw_quiet_end();
	pthread_testcancel();
	is_left = true;
	return NULL;
}

static void a_thread_is_cancelled_at_the_last_end(void **state)
{
	pthread_t thread;

	(void)state;
	sem_init(&inside, 0, 0);
	sem_init(&go, 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, be_cancelled, NULL), 0);
	while (sem_wait(&inside))
		;
	assert_int_equal(pthread_cancel(thread), 0);
	sem_post(&go);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(has_ended_inner);
	assert_false(is_left);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sections_nest_and_overlap),
		cmocka_unit_test(a_forked_child_is_in_the_section),
		cmocka_unit_test(a_thread_is_cancelled_at_the_last_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
