/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	A grace period is over when each read section that began before it has ended, and not sooner; a sleeping waiter
 *	is woken; readers that come and go delay no grace period; also on a kernel without membarrier().
 * Method	Threads read the object that a pointer leads to while another one replaces it, waits, and spoils the old
 *	one; under the thread sanitizer that checks the order too.  The kernel without membarrier() is a child with a
 *	filter.
 */
#include "progress/read_side.h"
#include "progress_help.h"
#include "sanitized_help.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <cmocka.h>

#define READERS 3
#define OBJECTS 2
#define CHANGES 300

/* Plain words: only the grace period separates writers from readers. */
struct object {
	uint64_t words[4];
};

static struct object objects[OBJECTS];
static struct object *_Atomic current;
static _Atomic bool stop;
static _Atomic unsigned wrong, sections;

static void *read_on(void *unused)
{
	static struct tw_progress_reader readers[READERS];
	static _Atomic unsigned next;
	struct tw_progress_reader *reader = &readers[tw_fetch_add_relaxed(&next, 1) % READERS];

	while (!tw_load_acquire(&stop)) {
		memset(reader, 0, sizeof *reader);
		join(reader);
		for (unsigned i = 0; i < 200; i++) {
			const struct object *seen;

			tw_progress_enter(reader);
			seen = tw_load_acquire(&current);
			if (seen->words[0] != seen->words[3] || !seen->words[0])
				tw_fetch_add_relaxed(&wrong, 1);
			tw_progress_exit(reader);
			tw_fetch_add_relaxed(&sections, 1);
		}
		leave(reader);
	}
	return NULL;
}

static void fill(struct object *object, uint64_t word)
{
	for (unsigned i = 0; i < TW_COUNT_OF(object->words); i++)
		object->words[i] = word;
}

static unsigned replace_often(void)
{
	pthread_t threads[READERS];
	unsigned seen, changes = 0;

	tw_store_relaxed(&stop, false);
	fill(&objects[0], 1);
	tw_store_release(&current, &objects[0]);
	for (unsigned i = 0; i < READERS; i++)
		pthread_create(&threads[i], NULL, read_on, NULL);
	/* While readers run, however slowly. */
	while (changes < CHANGES) {
		struct object *old = &objects[changes % OBJECTS], *new = &objects[(changes + 1) % OBJECTS];

		seen = tw_load_relaxed(&sections);
		fill(new, ++changes);
		tw_store_release(&current, new);
		tw_progress_wait();
		memset(old, 0, sizeof *old);
		for (unsigned i = 0; i < 1000 && tw_load_relaxed(&sections) == seen; i++)
			sched_yield();
	}
	tw_store_release(&stop, true);
	for (unsigned i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
	return tw_load_relaxed(&wrong);
}

static void nothing_is_replaced_under_a_reader(void **state)
{
	assert_int_equal(replace_often(), 0);
}

/* ---- a slow reader ---- */

static _Atomic unsigned step;

static void *read_long(void *unused)
{
	static struct tw_progress_reader reader;

	join(&reader);
	tw_progress_enter(&reader);
	tw_store_release(&step, 1);
	while (tw_load_acquire(&step) < 3)
		sched_yield();
	tw_store_release(&step, 4);
	tw_progress_exit(&reader);
	leave(&reader);
	return NULL;
}

static void *wait_long(void *unused)
{
	tw_store_release(&step, 2);
	tw_progress_wait();
	/* The reader announced the end of its section before. */
	if (tw_load_acquire(&step) != 4)
		tw_fetch_add_relaxed(&wrong, 1);
	return NULL;
}

static unsigned wait_for_one(void)
{
	pthread_t reader, waiter;

	tw_store_relaxed(&step, 0);
	pthread_create(&reader, NULL, read_long, NULL);
	while (tw_load_acquire(&step) != 1)
		sched_yield();
	pthread_create(&waiter, NULL, wait_long, NULL);
	/* Most likely asleep; if not, the test is easier. */
	while (tw_load_acquire(&step) != 2)
		sched_yield();
	for (unsigned i = 0; i < 2000 && !(tw_load_relaxed(&tw_progress_global.notes) & TW_PROGRESS_HAS_WAITER); i++)
		sched_yield();
	tw_store_release(&step, 3);
	pthread_join(waiter, NULL);
	pthread_join(reader, NULL);
	return tw_load_relaxed(&wrong);
}

static void a_waiter_sleeps_until_the_section_is_over(void **state)
{
	assert_int_equal(wait_for_one(), 0);
	assert_false(tw_load_relaxed(&tw_progress_global.notes) & TW_PROGRESS_HAS_WAITER);
}

static void readers_are_distinguished(void **state)
{
	static struct tw_progress_reader reader;
	uint64_t outer, inner;

	assert_false(tw_progress_is_reading());
	join(&reader);
	assert_false(tw_progress_is_reading());
	outer = tw_progress_enter_nested(&reader);
	assert_true(outer && tw_progress_is_reading());
	inner = tw_progress_enter_nested(&reader);
	tw_progress_exit_nested(&reader, inner);
	assert_true(!inner && tw_progress_is_reading());
	tw_progress_exit_nested(&reader, outer);
	assert_false(tw_progress_is_reading());
	/* A coroutine that was switched away from inside a nested section does not end the section that began since. */
	outer = tw_progress_enter_nested(&reader);
	tw_progress_enter(&reader);
	tw_progress_exit_nested(&reader, outer);
	assert_true(tw_progress_is_reading());
	tw_progress_exit(&reader);
	assert_false(tw_progress_is_reading());
	leave(&reader);
}

/* ---- barriers of the readers' own ---- */

/* Single-steps a section: how many full barriers (lock orl $0, (%rsp)) does its beginning execute? */
static volatile unsigned barriers;

static void on_step(int number, siginfo_t *info, void *context)
{
	const uint8_t *at = (const uint8_t *)(uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	barriers += memcmp(at, "\xf0\x83\x0c\x24", 4) == 0;
}

static __attribute__((noinline)) void enter_and_exit(struct tw_progress_reader *reader, bool is_nested)
{
	uint64_t entered = 0;

	__asm__ volatile("pushfq; orl $0x100, (%%rsp); popfq" ::: "memory", "cc");
	if (is_nested)
		entered = tw_progress_enter_nested(reader);
	else
		tw_progress_enter(reader);
	__asm__ volatile("pushfq; andl $~0x100, (%%rsp); popfq" ::: "memory", "cc");
	if (is_nested)
		tw_progress_exit_nested(reader, entered);
	else
		tw_progress_exit(reader);
}

/*
 * One if only the reader can execute them; none if the waiter can. Not asked under ThreadSanitizer, whose own code a step would
 * interrupt while it holds its locks.
 */
static bool has_right_barriers(bool is_fenced)
{
	struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO}, before;
	static struct tw_progress_reader reader;
	bool is_right = true;

	if (UNDER_TSAN)
		return true;
	join(&reader);
	sigaction(SIGTRAP, &action, &before);
	for (int is_nested = 0; is_nested < 2; is_nested++) {
		barriers = 0;
		enter_and_exit(&reader, is_nested);
		is_right &= barriers == is_fenced;
	}
	sigaction(SIGTRAP, &before, NULL);
	leave(&reader);
	return is_right;
}

static void readers_pass_no_barrier_of_their_own(void **state)
{
	assert_true(has_right_barriers(tw_load_relaxed(&tw_progress_global.epoch) & TW_PROGRESS_FENCED));
}

/* ---- without membarrier() ---- */

static int forbid_membarrier(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {TW_COUNT_OF(code), code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

enum { FINE = 0, WRONG, NOT_FENCED, NO_BARRIER, REFUSED };

/* Before any code here has queried the kernel. */
static int old_kernel(void)
{
	pid_t child = fork();
	int status = -1;

	if (child == 0) {
		if (forbid_membarrier())
			_exit(REFUSED);
		if (replace_often() || wait_for_one())
			_exit(WRONG);
		if (!has_right_barriers(true))
			_exit(NO_BARRIER);
		_exit(tw_load_relaxed(&tw_progress_global.epoch) & TW_PROGRESS_FENCED ? FINE : NOT_FENCED);
	}
	waitpid(child, &status, 0);
	return status;
}

static int status_of_old_kernel;

static void grace_periods_work_without_membarrier(void **state)
{
	if (WIFEXITED(status_of_old_kernel) && WEXITSTATUS(status_of_old_kernel) == REFUSED)
		skip();
	assert_int_equal(status_of_old_kernel, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_replaced_under_a_reader),
		cmocka_unit_test(a_waiter_sleeps_until_the_section_is_over),
		cmocka_unit_test(readers_are_distinguished),
		cmocka_unit_test(readers_pass_no_barrier_of_their_own),
		cmocka_unit_test(grace_periods_work_without_membarrier),
	};

	status_of_old_kernel = old_kernel();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
