/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	The reported waits for thread progress are true: their number, their total and longest time, and the bucket of
 *	each.
 * Method	Waits that a reader (pthread_create) delays, of many lengths; after each one the counts are compared
 *	with those before: one bucket grew, and it is the one whose bounds hold the added time.
 */
#include "base/atomic.h"
#include "progress/read_side.h"
#include "progress_help.h"
#include "tracewheel/progress.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

enum { WAITS = 60 };

/*
 * 3n + 1: the reader is in its section n; 3n + 2: it may leave it after `held_us`; 3n + 3: the wait is over.  It begins none before:
 * a wait that begins late would wait for the next section, and that one for the wait.
 */
static _Atomic int turn;
static _Atomic unsigned held_us;

static void spin_until(int value)
{
	while (atomic_load(&turn) < value)
		usleep(10);
}

static void *read_and_hold(void *unused)
{
	static struct tw_progress_reader reader;

	join(&reader);
	for (int n = 0; n < WAITS; n++) {
		tw_progress_enter(&reader);
		atomic_store(&turn, 3 * n + 1);
		spin_until(3 * n + 2);
		usleep(atomic_load(&held_us));
		tw_progress_exit(&reader);
		spin_until(3 * n + 3);
	}
	leave(&reader);
	return unused;
}

static void each_wait_is_told_once_in_its_bucket(void **state)
{
	pthread_t reader;

	tw_progress_init();
	assert_int_equal(pthread_create(&reader, NULL, read_and_hold, NULL), 0);
	for (int n = 0; n < WAITS; n++) {
		struct tw_progress_waits before, after;
		uint64_t ns, sum = 0;
		unsigned grown = 0;

		assert_int_equal(tw_progress_waits(&before), 0);
		spin_until(3 * n + 1);
		atomic_store(&held_us, (unsigned)(n * n));
		atomic_store(&turn, 3 * n + 2);
		if (n % 3)
			tw_progress_wait();
		else
			tw_progress_wait_code();
		atomic_store(&turn, 3 * n + 3);
		assert_int_equal(tw_progress_waits(&after), 0);
		assert_int_equal(after.count, before.count + 1);
		assert_int_equal(after.code_count, before.code_count + !(n % 3));
		ns = after.total_ns - before.total_ns;
		assert_int_equal(after.longest_ns, ns > before.longest_ns ? ns : before.longest_ns);
		for (unsigned i = 0; i < TW_PROGRESS_BUCKETS; i++) {
			sum += after.by_duration[i];
			if (after.by_duration[i] == before.by_duration[i])
				continue;
			grown++;
			assert_int_equal(after.by_duration[i], before.by_duration[i] + 1);
			assert_true(tw_progress_bucket_ns(i) <= ns);
			assert_true(ns < tw_progress_bucket_ns(i + 1));
		}
		assert_int_equal(grown, 1);
		assert_int_equal(sum, after.count);
	}
	pthread_join(reader, NULL);
}

/* Without it the waiter would check again after a while: only its time would tell the difference. */
static void a_reader_that_leaves_wakes_the_waiter(void **state)
{
	static struct tw_progress_reader reader;

	tw_progress_init();
	join(&reader);
	tw_progress_enter(&reader);
	atomic_fetch_or(&tw_progress_global.notes, TW_PROGRESS_HAS_WAITER);
	tw_progress_exit(&reader);
	assert_int_equal(atomic_load(&tw_progress_global.notes) & TW_PROGRESS_HAS_WAITER, 0);
	leave(&reader);
}

static _Atomic unsigned stage; /* 1: the reader reads; 2: it may end */
static _Atomic unsigned asked_at, forked_at;

static void *read_until_told(void *unused)
{
	static struct tw_progress_reader reader;

	join(&reader);
	tw_progress_enter(&reader);
	atomic_store(&stage, 1);
	while (atomic_load(&stage) < 2)
		usleep(100);
	tw_progress_exit(&reader);
	leave(&reader);
	return unused;
}

static void *wait_for_it(void *unused)
{
	tw_progress_wait();
	return unused;
}

static void *ask(void *unused)
{
	struct tw_progress_waits waits;

	tw_progress_waits(&waits);
	atomic_store(&asked_at, atomic_load(&stage));
	return unused;
}

static void *prepare_fork(void *unused)
{
	tw_progress_before_fork();
	atomic_store(&forked_at, atomic_load(&stage));
	tw_progress_after_fork_in_parent();
	return unused;
}

/* No grace period is half done when memory is copied, or when its account is read. */
static void others_wait_for_a_wait_in_progress(void **state)
{
	pthread_t reader, waiter, asker, forker;

	tw_progress_init();
	assert_int_equal(pthread_create(&reader, NULL, read_until_told, NULL), 0);
	while (atomic_load(&stage) < 1)
		usleep(100);
	assert_int_equal(pthread_create(&waiter, NULL, wait_for_it, NULL), 0);
	/* The waiter announces its sleep, and then holds the lock that the others want. */
	while (!(atomic_load(&tw_progress_global.notes) & TW_PROGRESS_HAS_WAITER))
		usleep(100);
	assert_int_equal(pthread_create(&asker, NULL, ask, NULL), 0);
	assert_int_equal(pthread_create(&forker, NULL, prepare_fork, NULL), 0);
	/* Long enough for a thread that does not wait; the others are right however long it is. */
	usleep(50000);
	assert_int_equal(atomic_load(&asked_at), 0);
	assert_int_equal(atomic_load(&forked_at), 0);
	atomic_store(&stage, 2);
	pthread_join(reader, NULL);
	pthread_join(waiter, NULL);
	pthread_join(asker, NULL);
	pthread_join(forker, NULL);
	assert_int_equal(atomic_load(&asked_at), 2);
	assert_int_equal(atomic_load(&forked_at), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_wait_is_told_once_in_its_bucket),
		cmocka_unit_test(a_reader_that_leaves_wakes_the_waiter),
		cmocka_unit_test(others_wait_for_a_wait_in_progress),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
