/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    Jumps are written over the first instructions of functions that threads of another process run, and taken back,
 *         without a wrong answer: also where a signal handler will return into these instructions, while threads begin
 *         and end, and whenever the writer or the process is killed.  Nothing is written where threads cannot be stopped.
 * Method  A forked child with threads that call such functions and compare the answers.  The first instructions are slow, so
 *         that threads are stopped inside of them all the time.  The controls: without the stop, and without looking where
 *         threads are, the child ends by a fault or answers wrongly.
 */
#include "base/atomic.h"
#include "base/cacheline.h"
#include "pipeline/recorder/held.h"
#include "sanitized_help.h"
#include "slow_help.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/common/child_memory.h"

SLOW(first_slow);
SLOW(second_slow);

static struct shared {
	_Atomic uint32_t is_ready, is_over, wrong, interrupted, in_handler, may_return, ended_calls, is_wanted;
	_Atomic uint64_t rounds;
} * shared;

/* ---- the child ---- */

enum {
	CALLS = 1,
	COMES_AND_GOES = 2,
	SLEEPS = 4,
	HANDLES = 8,
	HANDLES_ELSEWHERE = 16,
	MANY = 32,
	STARTS_PROCESS = 64,
	HAS_OLD_WORDS = 128
};

static void *call(void *unused)
{
	for (unsigned x = 0; !get(&shared->is_over); x++) {
		unsigned leaf = 0, other;

		if (first_slow(x) != x + 5 || second_slow(x) != x + 5)
			set(&shared->wrong, 1);
		/* Threads must also be outside now and then. */
		for (int i = 0; i < 6; i++)
			__asm__ volatile("cpuid" : "+a"(leaf), "=c"(other) : : "rbx", "rdx");
		/* RELAXED test.rounds: a sign of life. */
		tw_fetch_add_relaxed(&shared->rounds, 1);
	}
	return unused;
}

static void *end_at_once(void *unused)
{
	first_slow(1);
	return unused;
}

static void *come_and_go(void *unused)
{
	while (!get(&shared->is_over)) {
		pthread_t thread;

		if (!pthread_create(&thread, NULL, end_at_once, NULL))
			pthread_join(thread, NULL);
	}
	return unused;
}

/* Calls that the kernel does not start again after a stop, and others. */
static void *sleep_in_calls(void *unused)
{
	int fd = epoll_create1(0);
	struct epoll_event event;

	while (!get(&shared->is_over)) {
		const struct timespec time = {0, 30000000};
		const sigset_t none = {{0}};

		if (epoll_wait(fd, &event, 1, 30) < 0 || nanosleep(&time, NULL) ||
		    (sigtimedwait(&none, NULL, &time) < 0 && errno != EAGAIN))
			set(&shared->ended_calls, 1);
	}
	close(fd);
	return unused;
}

/* Stays until it is told to go, if it has interrupted the first instructions. */
static void on_signal(int number, siginfo_t *info, void *context)
{
	uintptr_t pc = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	if (pc - (uintptr_t)first_slow - 1 >= JUMP_BYTES - 1 || get(&shared->in_handler))
		return;
	set(&shared->in_handler, 1);
	while (!get(&shared->may_return))
		nap(1000);
}

static void prepare_handler(bool is_elsewhere)
{
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | (is_elsewhere ? SA_ONSTACK : 0)};
	stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};

	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
}

static void *sleep_until_over(void *unused)
{
	while (!get(&shared->is_over))
		nap(10000);
	return unused;
}

/* The stack has addresses inside of the first instructions, and no thread will return to them. */
static void sleep_on_old_words(void)
{
	const volatile uintptr_t words[4] = {0, (uintptr_t)first_slow + 2, 0x246, 0};

	set(&shared->is_ready, 1);
	sleep_until_over((void *)(uintptr_t)words);
	_exit(0);
}

static void start(void *(*run)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, NULL))
		_exit(99);
}

static void run_child(unsigned what)
{
	const struct rlimit no_core = {0, 0};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_CORE, &no_core);
	if (what & CALLS) {
		start(call);
		start(call);
	}
	if (what & COMES_AND_GOES)
		start(come_and_go);
	if (what & SLEEPS)
		start(sleep_in_calls);
	for (unsigned i = 0; what & MANY && i < 70; i++)
		start(sleep_until_over);
	if (what & HAS_OLD_WORDS)
		sleep_on_old_words();
	if (what & (HANDLES | HANDLES_ELSEWHERE))
		prepare_handler(what & HANDLES_ELSEWHERE);
	set(&shared->is_ready, 1);
	if (what & STARTS_PROCESS && !vfork()) {
		while (!get(&shared->is_over))
			nap(1000);
		_exit(0);
	}
	if (what & (HANDLES | HANDLES_ELSEWHERE))
		call(NULL);
	sleep_until_over(NULL);
	_exit(get(&shared->wrong) ? 1 : 0);
}

static pid_t begin_child(unsigned what)
{
	pid_t child;

	memset(shared, 0, sizeof *shared);
	child = fork();
	if (!child)
		run_child(what);
	while (!get(&shared->is_ready))
		nap(1000);
	return child;
}

/* Ends it, or finds it ended; returns what wait() says. */
static int end_child(pid_t child)
{
	int status;

	set(&shared->is_over, 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

/* ---- writing ---- */

static enum tw_rs_held_outcome write_both(struct tw_held *held, pid_t child, int memory, bool is_planting)
{
	struct tw_rs_held_piece pieces[] = {piece_of(second_slow, second_slow_copy, is_planting),
					    piece_of(first_slow, first_slow_copy, is_planting)};
	uint32_t number;

	return tw_held_write(held, child, memory, pieces, 2, NULL, NULL, &number);
}

/* 1: the jump; 0: the function's own bytes; -1: anything else. */
static int state_of(int memory, unsigned (*function)(unsigned), const uint8_t *copy)
{
	struct tw_rs_held_piece piece = piece_of(function, copy, true);
	uint8_t found[JUMP_BYTES];

	assert_int_equal(pread(memory, found, sizeof found, (off_t)piece.at), sizeof found);
	return !memcmp(found, piece.after, sizeof found) ? 1 : !memcmp(found, piece.before, sizeof found) ? 0 : -1;
}

static void wait_for_rounds(uint64_t more)
{
	/* RELAXED test.rounds: a sign of life. */
	uint64_t end = tw_load_relaxed(&shared->rounds) + more;

	/* RELAXED test.rounds: as above. */
	while (tw_load_relaxed(&shared->rounds) < end)
		nap(100);
}

static void test_threads_run_on_rightly(void **state)
{
	struct tw_held held = {0};
	pid_t child = begin_child(CALLS | COMES_AND_GOES | SLEEPS);
	int memory = memory_of(child);
	unsigned written = 0;

	/* Threads stand inside more often than not, and each cycle adds to the count. */
	for (unsigned i = 0; i < 400 && (i < 40 || held.inside_count < 10); i++) {
		assert_int_equal(write_both(&held, child, memory, i % 2 == 0), TW_RS_HELD_WRITTEN);
		written += state_of(memory, first_slow, first_slow_copy) == (i % 2 == 0);
		assert_int_not_equal(state_of(memory, second_slow, second_slow_copy), -1);
		wait_for_rounds(2);
	}
	assert_true(written >= 20);
	assert_true(held.inside_count >= 10);
	assert_int_equal(end_child(child), 0);
	assert_int_equal(get(&shared->ended_calls), 0);
	close(memory);
}

/* How many children of `count` go wrong. */
static unsigned count_wrong(struct tw_held *held, unsigned count)
{
	unsigned wrong = 0;

	for (unsigned n = 0; n < count; n++) {
		pid_t child = begin_child(CALLS);
		int memory = memory_of(child), status = 0;
		pid_t ended = 0;

		for (unsigned i = 0; i < 2000 && !ended && !get(&shared->wrong); i++) {
			write_both(held, child, memory, i % 2 == 0);
			nap(100);
			ended = waitpid(child, &status, WNOHANG);
		}
		if (!ended)
			status = end_child(child);
		wrong += status != 0;
		close(memory);
	}
	return wrong;
}

static void test_without_the_stop_it_goes_wrong(void **state)
{
	struct tw_held held = {.is_running = true};

	assert_int_equal(count_wrong(&held, 3), 3);
}

static void test_without_looking_it_goes_wrong(void **state)
{
	struct tw_held held = {.is_unchecked = true};

	assert_int_equal(count_wrong(&held, 3), 3);
}

/* A handler has interrupted the first instructions, and returns to them when it is told to. */
static void check_handler(unsigned what)
{
	struct tw_held held = {0};
	pid_t child = begin_child(what);
	int memory = memory_of(child);

	while (!get(&shared->in_handler)) {
		assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
		kill(child, SIGUSR1);
		nap(50);
	}
	assert_int_equal(write_both(&held, child, memory, true), TW_RS_HELD_WRITTEN);
	assert_int_equal(state_of(memory, first_slow, first_slow_copy), 0);
	assert_int_equal(state_of(memory, second_slow, second_slow_copy), 1);
	set(&shared->may_return, 1);
	wait_for_rounds(10);
	/* It is in and out now. */
	for (unsigned i = 0; i < 100 && state_of(memory, first_slow, first_slow_copy) != 1; i++)
		write_both(&held, child, memory, true);
	assert_int_equal(state_of(memory, first_slow, first_slow_copy), 1);
	wait_for_rounds(10);
	kill(child, SIGKILL);
	end_child(child);
	assert_int_equal(get(&shared->wrong), 0);
	close(memory);
}

static void test_a_handler_returns_to_its_instruction(void **state)
{
	check_handler(HANDLES);
}

static void test_a_handler_on_its_own_stack_too(void **state)
{
	check_handler(HANDLES_ELSEWHERE);
}

static void test_an_old_word_is_no_frame(void **state)
{
	struct tw_held held = {0};
	pid_t child = begin_child(HAS_OLD_WORDS);
	int memory = memory_of(child);

	assert_int_equal(write_both(&held, child, memory, true), TW_RS_HELD_WRITTEN);
	assert_int_equal(held.inside_count, 0);
	assert_int_equal(state_of(memory, first_slow, first_slow_copy), 1);
	end_child(child);
	close(memory);
}

/* Another process writes in turn, for ever. */
static pid_t begin_writer(pid_t child)
{
	pid_t writer = fork();

	if (!writer) {
		struct tw_held held = {0};
		int memory = memory_of(child);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (unsigned i = 0;; i++)
			write_both(&held, child, memory, i % 2 == 0);
	}
	return writer;
}

static void test_the_writer_is_killed(void **state)
{
	struct tw_held held = {0};
	pid_t child = begin_child(CALLS | COMES_AND_GOES);
	int memory = memory_of(child), status;

	srand(1);
	for (unsigned i = 0; i < 40; i++) {
		pid_t writer = begin_writer(child);

		nap(1000 + rand() % 4000);
		kill(writer, SIGKILL);
		waitpid(writer, &status, 0);
		assert_int_not_equal(state_of(memory, first_slow, first_slow_copy), -1);
		assert_int_not_equal(state_of(memory, second_slow, second_slow_copy), -1);
		wait_for_rounds(5);
	}
	/* Nobody is left stopped, or traced. */
	assert_int_equal(tw_hold_begin(&held.hold, child), TW_HOLD_OK);
	tw_hold_end(&held.hold);
	assert_int_equal(end_child(child), 0);
	close(memory);
}

static void test_the_process_is_killed(void **state)
{
	for (unsigned i = 0; i < 10; i++) {
		struct tw_held held = {0};
		pid_t child = begin_child(CALLS | COMES_AND_GOES), killer = fork();
		int memory, status;

		if (!killer) {
			nap(1000 + i * 300);
			kill(child, SIGKILL);
			_exit(0);
		}
		memory = memory_of(child);
		for (unsigned k = 0; write_both(&held, child, memory, k % 2 == 0) == TW_RS_HELD_WRITTEN; k++)
			;
		while (tw_hold_end_late(&held.hold))
			nap(1000);
		/* Its end is there for whoever waits for it. */
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		waitpid(killer, &status, 0);
		close(memory);
	}
}

static enum tw_hold_outcome hold_once(pid_t child)
{
	struct tw_hold hold = {0};
	enum tw_hold_outcome outcome = tw_hold_begin(&hold, child);

	if (outcome == TW_HOLD_OK)
		tw_hold_end(&hold);
	while (tw_hold_end_late(&hold))
		nap(1000);
	return outcome;
}

static void test_too_many_threads(void **state)
{
	struct tw_held held = {.hold.most = 64};
	pid_t child = begin_child(MANY);
	int memory = memory_of(child);
	struct tw_rs_held_piece piece = piece_of(first_slow, first_slow_copy, true);
	uint32_t number;

	assert_int_equal(tw_held_write(&held, child, memory, &piece, 1, NULL, NULL, &number), TW_RS_HELD_TOO_MANY);
	assert_int_equal(number, 71);
	assert_int_equal(state_of(memory, first_slow, first_slow_copy), 0);
	held.hold.most = 71;
	assert_int_equal(tw_held_write(&held, child, memory, &piece, 1, NULL, NULL, &number), TW_RS_HELD_WRITTEN);
	assert_int_equal(number, 71);
	assert_int_equal(state_of(memory, first_slow, first_slow_copy), 1);
	assert_int_equal(end_child(child), 0);
	close(memory);
}

static void test_another_tracer(void **state)
{
	pid_t child = begin_child(CALLS), tracer = fork();
	int status;

	if (!tracer) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!ptrace(PTRACE_SEIZE, child, NULL, NULL))
			set(&shared->is_wanted, 1);
		for (;;)
			pause();
	}
	while (!get(&shared->is_wanted))
		nap(1000);
	assert_int_equal(hold_once(child), TW_HOLD_TRACED);
	wait_for_rounds(5);
	kill(tracer, SIGKILL);
	waitpid(tracer, &status, 0);
	assert_int_equal(hold_once(child), TW_HOLD_OK);
	assert_int_equal(end_child(child), 0);
}

static void test_no_permission(void **state)
{
	pid_t child = begin_child(CALLS), stranger = fork();
	int status;

	if (!stranger)
		_exit(geteuid() || setgid(65534) || setuid(65534) ? 77 : (int)hold_once(child));
	waitpid(stranger, &status, 0);
	if (status >> 8 != 77)
		assert_int_equal(status >> 8, TW_HOLD_DENIED);
	wait_for_rounds(5);
	assert_int_equal(end_child(child), 0);
}

/* The child of vfork() runs in the same memory, and its parent cannot be stopped. */
static void test_a_process_is_being_started(void **state)
{
	pid_t child = begin_child(CALLS | STARTS_PROCESS);
	struct tw_hold hold = {0};

	nap(10000);
	assert_int_equal(tw_hold_begin(&hold, child), TW_HOLD_STUCK);
	wait_for_rounds(5);
	set(&shared->is_over, 1);
	while (tw_hold_end_late(&hold))
		nap(1000);
	assert_int_equal(end_child(child), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_run_on_rightly),
		cmocka_unit_test(test_without_the_stop_it_goes_wrong),
		cmocka_unit_test(test_without_looking_it_goes_wrong),
		cmocka_unit_test(test_a_handler_returns_to_its_instruction),
		cmocka_unit_test(test_a_handler_on_its_own_stack_too),
		cmocka_unit_test(test_an_old_word_is_no_frame),
		cmocka_unit_test(test_the_writer_is_killed),
		cmocka_unit_test(test_the_process_is_killed),
		cmocka_unit_test(test_too_many_threads),
		cmocka_unit_test(test_another_tracer),
		cmocka_unit_test(test_no_permission),
		cmocka_unit_test(test_a_process_is_being_started),
	};

	if (IS_SANITIZED)
		return 0;
	shared = mmap(NULL, TW_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return shared == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
