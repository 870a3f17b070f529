/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Counters in shared memory are exact whatever ends: rows and blocks are given once, an owner finds each with its thread, gets
 *	the memory of ended threads back, and where rows or blocks run out the member learns it.
 * Method	One process is owner and member of a ring set; its threads add known numbers; a child is killed while it counts.
 */
#include "sanitized_help.h"
#include "base/sys.h"
#include "ringbuf/counts.h"
#include "ringbuf/ringset.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static struct tw_rs owner, member;
static uint32_t slot;

static void open_set(void)
{
	char name[40];

	snprintf(name, sizeof name, "counts-%d", (int)getpid());
	assert_int_equal(tw_rs_create(&owner, &(struct tw_rs_options){.name = name, .cap_bytes = 64 << 20}), 0);
	assert_int_equal(tw_rs_attach(&member, owner.path), 0);
	assert_int_equal(tw_rs_image_claim(&member, &slot), 0);
	assert_int_equal(tw_rs_counts_open(&member), 0);
	tw_rs_scan(&owner);
}

static void close_set(void)
{
	tw_rs_detach(&member);
	tw_rs_destroy(&owner);
}

struct sums {
	uint64_t total, of_all, blocks, by_lease[64], recorded;
	uint32_t recorded_place;
};

static int add(void *arg, const struct tw_rs_seen_counts *counts)
{
	struct sums *sums = arg;

	sums->blocks++;
	if (counts->is_recorded) {
		assert_int_equal(sums->total, 0);
		sums->recorded += counts->words[5];
		sums->recorded_place = counts->first_place + 5;
		return 0;
	}
	for (unsigned i = 0; i < TW_RS_COUNT_GROUP; i++) {
		sums->total += counts->words[i];
		sums->of_all += counts->lease ? 0 : counts->words[i];
		if (counts->lease < 64)
			sums->by_lease[counts->lease] += counts->words[i];
	}
	return 0;
}

static struct sums read_all(bool only_ended, bool recycles)
{
	static struct tw_rs_count_choice choice;
	struct sums sums = {0};

	tw_rs_counts_choose(&owner, slot, only_ended, &choice);
	assert_int_equal(tw_rs_counts_each(&owner, slot, &choice, add, &sums), 0);
	if (recycles)
		tw_rs_counts_recycle(&owner, slot, &choice);
	return sums;
}

enum { THREADS = 4, GROUPS = 5, ADDS = 20000 };

static void *count(void *arg)
{
	uint32_t row = tw_rs_counts_claim(&member, &(struct tw_rs_count_claim){.thread_id = tw_sys_thread_id()});
	struct tw_rs_count_words *blocks[GROUPS];

	for (uint32_t g = 0; g < GROUPS; g++) {
		blocks[g] = tw_rs_counts_take(&member, row, g);
		if (!row || !blocks[g])
			abort();
	}
	for (uint32_t i = 0; i < ADDS; i++)
		tw_add_own(&blocks[i % GROUPS]->words[i % TW_RS_COUNT_GROUP], 1);
	tw_rs_counts_end(&member, row);
	return arg;
}

/* What is left of rows that were given back counts no more, and nothing counts twice. */
static void ended_threads_are_read_once_and_their_memory_is_used_again(void **state)
{
	uint32_t blocks_before = 0, blocks;
	uint64_t total = 0;

	open_set();
	for (unsigned round = 0; round < 20; round++) {
		pthread_t thread[THREADS];
		struct sums sums;

		for (unsigned i = 0; i < THREADS; i++)
			assert_int_equal(pthread_create(&thread[i], NULL, count, NULL), 0);
		for (unsigned i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
		sums = read_all(true, true);
		assert_int_equal(sums.total, THREADS * ADDS);
		assert_int_equal(sums.blocks, THREADS * GROUPS);
		total += sums.total;
		blocks = tw_load_relaxed(&member.own.head->counting.block_count);
		assert_true(!blocks_before || blocks == blocks_before);
		blocks_before = blocks;
		assert_int_equal(read_all(false, false).total, 0);
	}
	assert_int_equal(total, 20 * THREADS * ADDS);
	assert_int_equal(tw_rs_counts_ended(&owner, slot), 20 * THREADS);
	close_set();
}

/* More threads than rows, and more blocks than there are: no, and never a block of another. */
static void what_runs_out_is_told(void **state)
{
	struct tw_rs_count_claim claim = {.thread_id = 1};
	struct tw_rs_count_words *block, *all;
	uint64_t taken = 0;

	open_set();
	all = tw_rs_counts_take(&member, 0, 7);
	assert_non_null(all);
	for (unsigned i = 0; i < TW_RS_COUNT_ROWS_MAX; i++)
		assert_int_equal(tw_rs_counts_claim(&member, &claim), i + 1);
	assert_int_equal(tw_rs_counts_claim(&member, &claim), 0);
	tw_rs_counts_end(&member, 17);
	assert_int_equal(tw_rs_counts_claim(&member, &claim), 0);
	read_all(true, true);
	assert_int_equal(tw_rs_counts_claim(&member, &claim), 17);
	/* The last blocks; those before are not touched, which would take 64 MiB. */
	tw_store_relaxed(&member.own.head->counting.block_count, TW_RS_COUNT_BLOCKS_MAX - 10);
	while ((block = tw_rs_counts_take(&member, 1, (uint32_t)taken))) {
		tw_add_own(&block->words[0], 1);
		taken++;
	}
	assert_int_equal(taken, 10);
	tw_add_own(&all->words[3], 5);
	assert_int_equal(read_all(false, false).of_all, 5);
	assert_int_equal(read_all(false, false).total, 15);
	close_set();
}

/* A word has 64 bits. */
static void large_numbers_are_exact(void **state)
{
	struct tw_rs_count_words *block;

	open_set();
	block = tw_rs_counts_take(&member, 0, 0);
	tw_store_relaxed(&block->words[9], UINT32_MAX);
	tw_add_own(&block->words[9], 1);
	assert_int_equal(read_all(false, false).total, UINT64_C(1) << 32);
	close_set();
}

/* An owner believes no number that a member can write. */
static void forged_tables_are_harmless(void **state)
{
	struct tw_rs_counts *section;

	open_set();
	assert_non_null(tw_rs_counts_take(&member, 0, 0));
	section = (struct tw_rs_counts *)(void *)member.own.counts.mapped;
	tw_store_relaxed(&member.own.head->counting.block_count, UINT32_MAX);
	tw_store_relaxed(&member.own.head->counting.row_count, UINT32_MAX);
	tw_store_relaxed(&section->blocks[0], TW_RS_COUNT_BLOCK(TW_RS_COUNT_LIVE, TW_RS_COUNT_ROWS_MAX + 1, 0));
	assert_int_equal(read_all(false, true).blocks, 0);
	tw_store_relaxed(&section->blocks[0], TW_RS_COUNT_BLOCK(TW_RS_COUNT_LIVE, 0, UINT32_MAX));
	assert_int_equal(read_all(false, true).blocks, 0);
	close_set();
}

/* kill -9 at any moment: what the owner reads then is what the child had counted, but for the one that it was about to write down. */
static void a_killed_process_leaves_its_counts(void **state)
{
	_Atomic uint64_t *own = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char name[40];

	snprintf(name, sizeof name, "killed-%d", (int)getpid());
	for (unsigned round = 0; round < test_rounds(100, 4); round++) {
		struct sums sums;
		int status;
		pid_t child;

		assert_int_equal(tw_rs_create(&owner, &(struct tw_rs_options){.name = name, .cap_bytes = 16 << 20}), 0);
		tw_store_relaxed(own, 0);
		child = fork();
		if (!child) {
			struct tw_rs_count_words *block;

			if (tw_rs_attach(&member, owner.path) || tw_rs_image_claim(&member, &slot) ||
			    tw_rs_counts_open(&member))
				_exit(1);
			block = tw_rs_counts_take(&member,
						  tw_rs_counts_claim(&member,
								     &(struct tw_rs_count_claim){.thread_id = 1}),
						  3);
			for (;;) {
				tw_add_own(&block->words[5], 1);
				tw_add_own(own, 1);
			}
		}
		while (!tw_load_relaxed(own))
			usleep(100);
		usleep(round * 10);
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status));
		tw_rs_scan(&owner);
		slot = 0;
		assert_true(tw_rs_image_reap(&owner, slot));
		tw_rs_scan(&owner);
		sums = read_all(false, false);
		assert_true(sums.total - tw_load_relaxed(own) <= 1);
		tw_rs_destroy(&owner);
	}
	munmap((void *)own, 4096);
}

/* Calls that are recorded after all, of the same places: read before the calls, so that they are never more. */
static void recorded_calls_are_apart_and_first(void **state)
{
	struct tw_rs_count_claim claim = {.thread_id = 1};
	struct tw_rs_count_words *calls, *recorded;
	struct sums sums;

	open_set();
	assert_int_equal(tw_rs_counts_claim(&member, &claim), 1);
	calls = tw_rs_counts_take(&member, 1, 7);
	recorded = tw_rs_counts_take(&member, 1, TW_RS_COUNT_RECORDED_GROUP + 7);
	assert_true(calls && recorded);
	tw_add_own(&calls->words[5], 9);
	tw_add_own(&recorded->words[5], 4);
	sums = read_all(false, false);
	assert_int_equal(sums.total, 9);
	assert_int_equal(sums.recorded, 4);
	assert_int_equal(sums.recorded_place, 7 * TW_RS_COUNT_GROUP + 5);
	close_set();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ended_threads_are_read_once_and_their_memory_is_used_again),
		cmocka_unit_test(what_runs_out_is_told),
		cmocka_unit_test(large_numbers_are_exact),
		cmocka_unit_test(recorded_calls_are_apart_and_first),
		cmocka_unit_test(forged_tables_are_harmless),
		cmocka_unit_test(a_killed_process_leaves_its_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
