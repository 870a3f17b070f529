/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    Threads that are held for the recorder go on while the recorder is stopped, alone or with its process group, or is killed;
 *         while the holder is stopped, with a recorder that looks and with one that is stopped too; and each jump is there or
 *         not.  The holder is seen by no other code of the recorder's process, keeps none of its files, and ends with it.
 * Method  A forked child whose threads call a function and compare the answers.  The holder is made to stay in the middle of the hold
 *         until it is told to go on, which in most tests never happens.
 */
#include "base/atomic.h"
#include "base/cacheline.h"
#include "pipeline/recorder/holder.h"
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
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/common/child_memory.h"

#define THREADS 3

SLOW(slow);

static struct shared {
	struct calls calls;
	_Atomic uint32_t is_ready, is_held, may_go, holder, files, state;
} * shared;

/* ---- the program ---- */

static void *call(void *unused)
{
	call_slow(&shared->calls, slow);
	return unused;
}

static pid_t begin_program(void)
{
	const struct rlimit no_core = {0, 0};
	pthread_t threads[THREADS];
	pid_t child;

	memset(shared, 0, sizeof *shared);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setrlimit(RLIMIT_CORE, &no_core);
		for (unsigned i = 0; i < THREADS; i++)
			pthread_create(&threads[i], NULL, call, NULL);
		set(&shared->is_ready, 1);
		for (unsigned i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		_exit(get(&shared->calls.wrong) ? 1 : 0);
	}
	while (!get(&shared->is_ready))
		nap(1000);
	return child;
}

static void end_program(pid_t child)
{
	int status;

	set(&shared->calls.is_over, 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void wait_for_rounds(uint64_t more)
{
	/* RELAXED test.rounds: a sign of life. */
	uint64_t end = tw_load_relaxed(&shared->calls.rounds) + more;

	/* RELAXED test.rounds: as above. */
	while (tw_load_relaxed(&shared->calls.rounds) < end)
		nap(100);
}

/* ---- the holder ---- */

static void stay(const struct tw_hold *hold)
{
	(void)hold;
	set(&shared->holder, (uint32_t)getpid());
	set(&shared->is_held, 1);
	while (!get(&shared->may_go))
		nap(100);
}

static unsigned count_files(void)
{
	unsigned count = 0;

	for (int i = 0; i < 64; i++)
		count += fcntl(i, F_GETFD) >= 0;
	return count;
}

static void plant(struct tw_held *held, const struct tw_rs *rs, struct tw_holder_job *job)
{
	struct tw_rs_held_piece piece = piece_of(slow, slow_copy, true);
	char path[64];
	int memory;

	(void)rs;
	set(&shared->files, count_files());
	snprintf(path, sizeof path, "/proc/%d/mem", job->where.process_id);
	memory = open(path, O_RDWR | O_CLOEXEC);
	job->outcome = tw_held_write(held, job->where.process_id, memory, &piece, 1, NULL, NULL, &job->number);
	close(memory);
}

static void begin(struct tw_holder *holder, pid_t child)
{
	struct tw_holder_job job = {.run = plant, .where.process_id = child};

	holder->held.while_held = stay;
	set(&shared->is_held, 0);
	tw_holder_begin(holder, NULL, &job);
}

static void await_hold(void)
{
	while (!get(&shared->is_held))
		nap(100);
}

static enum tw_holder_state await_result(struct tw_holder *holder, struct tw_holder_job *job)
{
	enum tw_holder_state state;

	while ((state = tw_holder_look(holder, job)) == TW_HOLDER_BUSY)
		nap(1000);
	return state;
}

/* The jump or the function's own bytes, nothing else. */
static bool is_planted(pid_t child)
{
	struct tw_rs_held_piece piece = piece_of(slow, slow_copy, true);
	int memory = memory_of(child);
	uint8_t found[JUMP_BYTES];

	assert_int_equal(pread(memory, found, sizeof found, (off_t)piece.at), sizeof found);
	close(memory);
	if (memcmp(found, piece.after, sizeof found) == 0)
		return true;
	assert_memory_equal(found, piece.before, sizeof found);
	return false;
}

/* Writes until no thread is inside; the holder is in order. */
static void check_holder_works(struct tw_holder *holder, pid_t child)
{
	struct tw_holder_job job = {0};

	set(&shared->may_go, 1);
	for (unsigned i = 0; i < 100 && !is_planted(child); i++) {
		begin(holder, child);
		assert_int_equal(await_result(holder, &job), TW_HOLDER_DONE);
		assert_int_equal(job.outcome, TW_RS_HELD_WRITTEN);
	}
	assert_true(is_planted(child));
}

/* ---- the holder is stopped, or killed ---- */

/* Nobody looks: the recorder may be stopped too. */
static void test_a_stopped_holder_goes_on(void **state)
{
	struct tw_holder holder = {0};
	struct tw_holder_job job;
	pid_t child = begin_program();

	/* On a busy machine the time for a hold may be over before we have said that it may go on. */
	for (unsigned i = 0, done = 0; done < 5; i++) {
		set(&shared->may_go, 0);
		begin(&holder, child);
		await_hold();
		kill(holder.process_id, SIGSTOP);
		set(&shared->may_go, 1);
		wait_for_rounds(10);
		done += await_result(&holder, &job) == TW_HOLDER_DONE;
		assert_true(i < 100);
	}
	check_holder_works(&holder, child);
	tw_holder_end(&holder);
	end_program(child);
}

/* It stays in the hold, as if it waited for a device. */
static void test_a_holder_that_stands_still_is_ended(void **state)
{
	struct tw_holder holder = {0};
	struct tw_holder_job job;
	pid_t child = begin_program();

	begin(&holder, child);
	await_hold();
	wait_for_rounds(10);
	assert_int_equal(await_result(&holder, &job), TW_HOLDER_ENDED);
	assert_false(is_planted(child));
	check_holder_works(&holder, child);
	tw_holder_end(&holder);
	end_program(child);
}

static void test_stopped_between_jobs(void **state)
{
	struct tw_holder holder = {0};
	pid_t child = begin_program();

	set(&shared->may_go, 1);
	for (int signal = SIGKILL; signal; signal = signal == SIGKILL ? SIGSTOP : 0) {
		struct tw_holder_job job;
		siginfo_t info;

		begin(&holder, child);
		assert_int_equal(await_result(&holder, &job), TW_HOLDER_DONE);
		kill(holder.process_id, signal);
		/* As long as it can be seen to be there, it is given jobs. */
		waitid(P_PID, (id_t)holder.process_id, &info, WEXITED | WSTOPPED | WNOWAIT | __WALL);
	}
	check_holder_works(&holder, child);
	tw_holder_end(&holder);
	end_program(child);
}

/* ---- the recorder is stopped, or killed ---- */

/* A process in a group of its own with a holder in the middle of a hold. */
static pid_t begin_recorder(pid_t child)
{
	pid_t recorder = fork();

	if (!recorder) {
		struct tw_holder holder = {0};
		struct tw_holder_job job = {0};

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setpgid(0, 0);
		begin(&holder, child);
		while (tw_holder_look(&holder, &job) == TW_HOLDER_BUSY)
			nap(1000);
		set(&shared->state, job.outcome == TW_RS_HELD_WRITTEN ? 1 : 2);
		tw_holder_end(&holder);
		_exit(0);
	}
	await_hold();
	return recorder;
}

static void check_stopped_recorder(bool is_group)
{
	pid_t child = begin_program(), recorder = begin_recorder(child);
	int status;

	assert_int_equal(kill(is_group ? -recorder : recorder, SIGSTOP), 0);
	assert_int_equal(waitpid(recorder, &status, WUNTRACED), recorder);
	assert_true(WIFSTOPPED(status));
	set(&shared->may_go, 1);
	wait_for_rounds(50);
	assert_int_equal(get(&shared->state), 0);
	kill(recorder, SIGCONT);
	assert_int_equal(waitpid(recorder, &status, 0), recorder);
	assert_int_equal(get(&shared->state), 1);
	is_planted(child);
	end_program(child);
}

static void test_a_stopped_recorder(void **state)
{
	check_stopped_recorder(false);
}

static void test_a_stopped_group(void **state)
{
	check_stopped_recorder(true);
}

static void test_a_killed_recorder(void **state)
{
	pid_t child = begin_program(), recorder = begin_recorder(child);
	int status;

	kill(recorder, SIGKILL);
	waitpid(recorder, &status, 0);
	wait_for_rounds(10);
	assert_false(is_planted(child));
	/* Its number may be another process' by now, but not one that a signal of ours may reach by chance: signal 0 is none. */
	while (!kill((pid_t)get(&shared->holder), 0))
		nap(1000);
	end_program(child);
}

/* ---- no one else is concerned ---- */

static void test_no_other_code_sees_it(void **state)
{
	struct tw_holder holder = {0};
	struct tw_holder_job job;
	pid_t child = begin_program();
	siginfo_t info = {0};
	int pipe_ends[2];
	char byte;

	assert_int_equal(pipe(pipe_ends), 0);
	begin(&holder, child);
	await_hold();
	assert_int_equal(get(&shared->files), 3);
	/* A pipe of the recorder's ends when the recorder closes it. */
	close(pipe_ends[1]);
	assert_int_equal(read(pipe_ends[0], &byte, 1), 0);
	close(pipe_ends[0]);
	set(&shared->may_go, 1);
	assert_int_equal(await_result(&holder, &job), TW_HOLDER_DONE);
	kill(holder.process_id, SIGKILL);
	nap(10000);
	/* The program is our only child, as far as we are asked. */
	assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT), 0);
	assert_int_equal(info.si_pid, 0);
	tw_holder_end(&holder);
	end_program(child);
	assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | __WALL), -1);
	assert_int_equal(errno, ECHILD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_stopped_holder_goes_on),
		cmocka_unit_test(test_a_holder_that_stands_still_is_ended),
		cmocka_unit_test(test_stopped_between_jobs),
		cmocka_unit_test(test_a_stopped_recorder),
		cmocka_unit_test(test_a_stopped_group),
		cmocka_unit_test(test_a_killed_recorder),
		cmocka_unit_test(test_no_other_code_sees_it),
	};

	if (IS_SANITIZED)
		return 0;
	shared = mmap(NULL, TW_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return shared == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
