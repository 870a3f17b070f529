/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    What was written into a process that lives on is taken back whole when the recording ends, while its threads run
 *         there and the process changes its list; but nothing that it wants to keep, nothing that it is in the middle of
 *         writing, and nothing in a process that only says that it is one of the ring set's.
 * Method  A forked child is a member of the test's ring set; its threads call a function and compare the answers.  Jumps are
 *         planted and taken back in turn.  The control: without the stop, the child goes wrong.
 */
#include "base/atomic.h"
#include "base/cacheline.h"
#include "pipeline/recorder/restore.h"
#include "ringbuf/inside.h"
#include "sanitized_help.h"
#include "slow_help.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/common/child_memory.h"

#define THREADS 2

SLOW(slow);

static struct shared {
	struct calls calls;
	_Atomic uint32_t is_ready, is_changing, has_changed;
} * shared;

static struct tw_rs rs;
/* The child's, at the same addresses as here. */
static struct tw_rs_written written;
static struct tw_rs_held_piece block[TW_RS_WRITTEN_BLOCK_PIECES];

static struct tw_rs_held_piece planting(void)
{
	return piece_of(slow, slow_copy, true);
}

/* ---- the child ---- */

enum { CALLS = 1, CHANGES = 2, KEEPS = 4, STOPS_CHANGING = 8 };

static void *call(void *unused)
{
	call_slow(&shared->calls, slow);
	return unused;
}

/* As an agent that arms one library after another: now and then for longer than the owner takes to read. */
static void *change(void *unused)
{
	for (unsigned i = 0; !get(&shared->calls.is_over); i++) {
		tw_rs_written_begin(&written);
		block[1].count = i % 2;
		if (i % 64 == 0)
			nap(2000);
		block[1].count = 0;
		tw_rs_written_end(&written);
		nap(300);
	}
	return unused;
}

static void run_child(unsigned what)
{
	const struct rlimit no_core = {0, 0};
	struct tw_rs member = {0};
	pthread_t thread;
	uint32_t slot;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_CORE, &no_core);
	if (tw_rs_attach(&member, rs.path) || tw_rs_image_claim(&member, &slot))
		_exit(98);
	block[0] = planting();
	block[0].is_kept = what & KEEPS;
	written.blocks[0] = (uintptr_t)block;
	tw_rs_written_show(&member, &written);
	for (unsigned i = 0; what & CALLS && i < THREADS; i++)
		pthread_create(&thread, NULL, call, NULL);
	if (what & CHANGES)
		pthread_create(&thread, NULL, change, NULL);
	if (what & STOPS_CHANGING)
		tw_rs_written_begin(&written);
	set(&shared->is_ready, 1);
	while (!get(&shared->calls.is_over)) {
		nap(1000);
		if (what & STOPS_CHANGING && get(&shared->is_changing)) {
			nap(20000);
			set(&shared->has_changed, 1);
			tw_rs_written_end(&written);
			what = 0;
		}
	}
	_exit(get(&shared->calls.wrong) ? 1 : 0);
}

static pid_t begin_child(unsigned what)
{
	struct tw_rs_options options = {.config = "", .ring_bytes = TW_RB_BYTES_MIN};
	pid_t child;

	memset(shared, 0, sizeof *shared);
	memset(&rs, 0, sizeof rs);
	assert_int_equal(tw_rs_create(&rs, &options), 0);
	child = fork();
	if (!child)
		run_child(what);
	while (!get(&shared->is_ready))
		nap(1000);
	tw_rs_scan(&rs);
	return child;
}

static int end_child(pid_t child)
{
	int status;

	set(&shared->calls.is_over, 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	tw_rs_destroy(&rs);
	return status;
}

/* ---- writing ---- */

/* 1: the jump; 0: the function's own bytes; -1: anything else. */
static int state_of(int memory)
{
	struct tw_rs_held_piece piece = planting();
	uint8_t found[JUMP_BYTES];

	assert_int_equal(pread(memory, found, sizeof found, (off_t)piece.at), sizeof found);
	return !memcmp(found, piece.after, sizeof found) ? 1 : !memcmp(found, piece.before, sizeof found) ? 0 : -1;
}

static void plant(pid_t child, int memory)
{
	struct tw_held held = {0};
	struct tw_rs_held_piece piece = planting();
	uint32_t number;

	for (unsigned i = 0; i < 100 && state_of(memory) != 1; i++)
		tw_held_write(&held, child, memory, &piece, 1, NULL, NULL, &number);
	assert_int_equal(state_of(memory), 1);
}

static void wait_for_rounds(uint64_t more)
{
	/* RELAXED test.rounds: a sign of life. */
	uint64_t end = tw_load_relaxed(&shared->calls.rounds) + more;

	/* RELAXED test.rounds: as above. */
	while (tw_load_relaxed(&shared->calls.rounds) < end)
		nap(100);
}

static void run_rounds(unsigned what, unsigned rounds)
{
	struct tw_restore_failure failure;
	struct tw_holder holder = {0};
	pid_t child = begin_child(CALLS | what);
	int memory = memory_of(child);

	for (unsigned i = 0; i < rounds; i++) {
		plant(child, memory);
		wait_for_rounds(3);
		tw_restore_all(&holder, &rs, &failure);
		assert_int_equal(failure.processes, 0);
		assert_int_equal(state_of(memory), 0);
		wait_for_rounds(3);
	}
	tw_holder_end(&holder);
	close(memory);
	assert_int_equal(end_child(child), 0);
}

static void test_threads_run_on_rightly(void **state)
{
	run_rounds(0, 100);
}

static void test_the_list_changes(void **state)
{
	run_rounds(CHANGES, 40);
}

static void test_without_the_stop_it_goes_wrong(void **state)
{
	struct tw_holder holder = {.held.is_running = true};
	struct tw_held held = {.is_running = true};
	pid_t child = begin_child(CALLS), ended = 0;
	struct tw_rs_held_piece piece;
	struct tw_restore_failure failure;
	int memory = memory_of(child), status = 0;
	uint32_t number;

	for (unsigned i = 0; i < 5000 && !ended && !get(&shared->calls.wrong); i++) {
		piece = planting();
		tw_held_write(&held, child, memory, &piece, 1, NULL, NULL, &number);
		nap(50);
		tw_restore_all(&holder, &rs, &failure);
		ended = waitpid(child, &status, WNOHANG);
	}
	tw_holder_end(&holder);
	close(memory);
	if (ended)
		tw_rs_destroy(&rs);
	else
		status = end_child(child);
	assert_int_not_equal(status, 0);
}

static void test_what_is_kept(void **state)
{
	struct tw_restore_failure failure;
	struct tw_holder holder = {0};
	pid_t child = begin_child(KEEPS);
	int memory = memory_of(child);

	plant(child, memory);
	tw_restore_all(&holder, &rs, &failure);
	assert_int_equal(failure.processes, 0);
	assert_int_equal(state_of(memory), 1);
	tw_holder_end(&holder);
	close(memory);
	assert_int_equal(end_child(child), 0);
}

/* The list is complete only some time after the recording has ended. */
static void test_in_the_middle_of_writing(void **state)
{
	struct tw_restore_failure failure;
	struct tw_holder holder = {0};
	pid_t child = begin_child(STOPS_CHANGING);
	int memory = memory_of(child);

	plant(child, memory);
	set(&shared->is_changing, 1);
	tw_restore_all(&holder, &rs, &failure);
	assert_int_equal(get(&shared->has_changed), 1);
	assert_int_equal(failure.processes, 0);
	assert_int_equal(state_of(memory), 0);
	tw_holder_end(&holder);
	close(memory);
	assert_int_equal(end_child(child), 0);
}

static void claim(pid_t process)
{
	rs.images[0].process_id = process;
	/* RELAXED test.claim: its process sleeps. */
	tw_store_relaxed(&rs.control->slots[0].state, tw_rs_slot_word(TW_RS_IMAGE_LIVE, process));
}

/* A member says that it is another process, in whose memory a list lies. */
static void test_another_process(void **state)
{
	struct tw_restore_failure failure;
	struct tw_holder holder = {0};
	pid_t child = begin_child(0), other = fork();
	int memory, status;

	if (!other) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		written = (struct tw_rs_written){.magic = TW_RS_WRITTEN_MAGIC, .lease = rs.images[0].lease};
		block[0] = planting();
		written.blocks[0] = (uintptr_t)block;
		set(&shared->is_changing, 1);
		for (;;)
			pause();
	}
	while (!get(&shared->is_changing))
		nap(1000);
	memory = memory_of(other);
	plant(other, memory);
	claim(other);
	tw_restore_all(&holder, &rs, &failure);
	assert_int_equal(state_of(memory), 1);
	claim(child);
	tw_holder_end(&holder);
	close(memory);
	kill(other, SIGKILL);
	waitpid(other, &status, 0);
	assert_int_equal(end_child(child), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_run_on_rightly),	       cmocka_unit_test(test_the_list_changes),
		cmocka_unit_test(test_without_the_stop_it_goes_wrong), cmocka_unit_test(test_what_is_kept),
		cmocka_unit_test(test_in_the_middle_of_writing),       cmocka_unit_test(test_another_process),
	};

	if (IS_SANITIZED)
		return 0;
	shared = mmap(NULL, TW_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return shared == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
