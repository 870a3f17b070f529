/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counters.c - call_count: numbers of calls, in words of each thread.  Compiled without vector registers, as hit.c.
 *
 *	counter i	word i % 64 of block i / 64, in the blocks of each thread and in those of all threads together;
 *			further blocks for how many of its calls were recorded (TW_COUNT_RECORDED)
 *	private		blocks are memory of the process, which threads that come later continue
 *	shared		blocks are memory of a ring set, where another process reads them, by thread (ringbuf/counts.h)
 *
 * A process has private counters or shared ones.
 */
#include "base/error.h"
#include "base/export.h"
#include "base/filter.h"
#include "base/sys.h"
#include "breakpoints/own_stack.h"
#include "pipeline/hit/account.h"
#include "pipeline/thread/thread.h"
#include "ringbuf/counts.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

struct tw_counter tw_counters[TW_COUNTERS_MAX];
/*
 * The first counter that may be free: those of a session that ends are given back by any thread, others are taken under the
 * permit.  A hint: if both happen at once, one below it may be free.
 */
static _Atomic uint32_t first_free_counter;

/* Private blocks are cut from pieces of this many. */
#define PIECE_BLOCKS 128

/* Shared counters: set under the permit, before the first of them is used. */
static struct tw_rs *_Atomic shared_set;
/* The blocks of all threads together, and the end of those that are there, of calls. */
static struct tw_rs_count_words *_Atomic shared_blocks[2 * TW_COUNT_GROUPS];
static _Atomic uint32_t shared_end;

/* ---- the counts of a thread ---- */

/* By the thread itself. */
static void map_counts(void *arg)
{
	struct tw_thread *thread = arg;
	int saved_errno = errno;
	uint64_t signals;
	void *own;

	tw_sys_block_signals(&signals);
	own = mmap(NULL, sizeof(struct tw_thread_counts), PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	thread->has_no_counts = own == MAP_FAILED;
	if (!thread->has_no_counts) {
		/* PAIR count.thread: release; acquire in add_ring(), add_rows(). */
		tw_store_release(&thread->own_counts, own);
		tw_hit_tls.own_counts = own;
	}
	tw_sys_restore_signals(&signals);
	errno = saved_errno;
}

struct tw_thread_counts *tw_counts_map(struct tw_thread *thread)
{
	if (!thread->has_no_counts && tw_thread_may_call_system())
		tw_own_stack_try(map_counts, thread);
	/* RELAXED count.thread_own: written by this thread. */
	return tw_load_relaxed(&thread->own_counts);
}

/* ---- the blocks of a thread ---- */

static struct tw_rs_count_words *take_private(struct tw_thread_counts *own)
{
	if (!own->free_blocks) {
		void *piece = mmap(NULL, PIECE_BLOCKS * sizeof *own->free_at, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (piece == MAP_FAILED)
			return NULL;
		own->free_at = piece;
		own->free_blocks = PIECE_BLOCKS;
	}
	own->free_blocks--;
	return own->free_at++;
}

static struct tw_rs_count_words *take_shared(struct tw_rs *rs, struct tw_thread_counts *own,
					     const struct tw_thread *thread, uint32_t group)
{
	const struct tw_tracee *tracee = thread->own_tracee;
	struct tw_rs_count_claim claim = {tracee ? tracee->tracee_id : 0, tw_sys_thread_id(), tracee != NULL};

	/* A child that shares this memory has no row of its own. */
	if (!own->row && tw_rs_is_own_process(rs))
		own->row = tw_rs_counts_claim(rs, &claim);
	return own->row ? tw_rs_counts_take(rs, own->row, group) : NULL;
}

struct wanted_block {
	struct tw_thread *thread;
	struct tw_thread_counts *own;
	uint32_t group;
	struct tw_rs_count_words *block; /* NULL: there is none */
};

static void take_block(void *arg)
{
	struct wanted_block *wanted = arg;
	struct tw_thread_counts *own = wanted->own;
	/* RELAXED count.shared: set before the counter was. */
	struct tw_rs *rs = tw_load_relaxed(&shared_set);
	int saved_errno = errno;
	uint64_t signals;

	tw_sys_block_signals(&signals);
	wanted->block = rs ? take_shared(rs, own, wanted->thread, wanted->group) : take_private(own);
	/* A child that shares this memory leaves no mark. */
	own->has_no_blocks = !wanted->block && tw_thread_is_own_process();
	tw_sys_restore_signals(&signals);
	errno = saved_errno;
}

struct tw_rs_count_words *tw_counts_take_block(struct tw_thread *thread, struct tw_thread_counts *own, uint32_t group)
{
	struct wanted_block wanted = {thread, own, group, NULL};

	if (!own->has_no_blocks && tw_thread_may_call_system())
		tw_own_stack_try(take_block, &wanted);
	return wanted.block;
}

_Atomic uint64_t *tw_counter_word(struct tw_thread *thread, uint32_t index)
{
	struct tw_thread_counts *own = tw_counts_of_thread(thread);
	_Atomic uint64_t *word = own ? tw_count_word(own, index) : NULL;
	struct tw_rs_count_words *block;

	if (word || !own)
		return word;
	block = tw_counts_take_block(thread, own, index / TW_RS_COUNT_GROUP);
	if (!block)
		return NULL;
	/* PAIR count.block: release; acquire in add_ring().  The words are zeros. */
	tw_store_release(&own->blocks[index / TW_RS_COUNT_GROUP], block);
	return &block->words[index % TW_RS_COUNT_GROUP];
}

/* ---- counters ---- */

struct tw_counter *tw_counter_create(void)
{
	/* The lowest one: each thread has memory for the words up to the highest. */
	/* RELAXED count.used: a hint. */
	uint32_t first = tw_load_relaxed(&first_free_counter);

	for (uint32_t i = 0; i < TW_COUNTERS_MAX; i++) {
		uint32_t index = (first + i) % TW_COUNTERS_MAX;
		struct tw_counter *counter = &tw_counters[index];
		bool is_used = false;

		/* RELAXED count.used: one thread takes counters at a time, and their words are atomic. */
		if (!tw_load_relaxed(&counter->is_used) && tw_cas_relaxed(&counter->is_used, &is_used, true)) {
			/* RELAXED count.used: as above. */
			tw_store_relaxed(&first_free_counter, index + 1);
			tw_counter_take(counter);
			return counter;
		}
	}
	return NULL;
}

/* The block of all threads together that holds the words of a group. */
static int open_block(struct tw_rs *rs, uint32_t group)
{
	int error = tw_rs_counts_open(rs);
	struct tw_rs_count_words *block = error ? NULL : tw_rs_counts_take(rs, 0, group);

	if (!block)
		return error ? error : TW_ENOSPC;
	/* PAIR count.base: release; acquire in tw_counter_word_of_all().  The words are zeros. */
	tw_store_release(&shared_blocks[group], block);
	return 0;
}

int tw_counter_share(struct tw_rs *rs, uint32_t number, bool has_recorded, struct tw_counter **out)
{
	uint32_t group = number / TW_RS_COUNT_GROUP;
	int error = 0;

	if (number >= TW_COUNTERS_MAX)
		return TW_ELIMIT;
	/* RELAXED count.base: under the permit. */
	if (!tw_load_relaxed(&shared_blocks[group]))
		error = open_block(rs, group);
	/* RELAXED count.base: as above. */
	if (!error && has_recorded && !tw_load_relaxed(&shared_blocks[TW_COUNT_GROUPS + group]))
		error = open_block(rs, TW_COUNT_GROUPS + group);
	if (error)
		return error;
	/* RELAXED count.shared: hits find the counter by its generation, PAIR bp.active. */
	tw_store_relaxed(&shared_set, rs);
	/* RELAXED count.shared: under the permit. */
	if (group >= tw_load_relaxed(&shared_end)) {
		/* RELAXED count.shared: as above. */
		tw_store_relaxed(&shared_end, group + 1);
	}
	/* RELAXED count.used: as above. */
	tw_store_relaxed(&tw_counters[number].is_used, true);
	*out = &tw_counters[number];
	return 0;
}

void tw_counter_destroy(struct tw_counter *counter)
{
	uint32_t index, first;

	if (!counter)
		return;
	index = (uint32_t)(counter - tw_counters);
	/* RELAXED count.used: the session that used it has ended. */
	tw_store_relaxed(&counter->is_used, false);
	/* RELAXED count.used: a hint. */
	first = tw_load_relaxed(&first_free_counter);
	while (index < first && !tw_cas_relaxed(&first_free_counter, &first, index))
		;
}

_Atomic uint64_t *tw_counter_word_of_all(uint32_t index)
{
	/* PAIR count.base: acquire; release in open_block(). */
	struct tw_rs_count_words *block = tw_load_acquire(&shared_blocks[index / TW_RS_COUNT_GROUP]);

	return block ? &block->words[index % TW_RS_COUNT_GROUP] : &tw_counters[index % TW_COUNTERS_MAX].base;
}

static _Atomic uint64_t *base_of(const struct tw_counter *counter)
{
	return tw_counter_word_of_all((uint32_t)(counter - tw_counters));
}

struct sum {
	uint32_t index;
	uint64_t value;
};

static void add_ring(struct tw_thread *thread, void *arg)
{
	struct sum *sum = arg;
	/* PAIR count.thread: acquire; release in map_counts(). */
	struct tw_thread_counts *own = tw_load_acquire(&thread->own_counts);
	/* PAIR count.block: acquire; release in tw_counter_word(). */
	struct tw_rs_count_words *block = own ? tw_load_acquire(&own->blocks[sum->index / TW_RS_COUNT_GROUP]) : NULL;

	if (block) {
		/* RELAXED count.add: calls in progress may or may not be counted. */
		sum->value += tw_load_relaxed(&block->words[sum->index % TW_RS_COUNT_GROUP]);
	}
}

uint64_t tw_counter_value(const struct tw_counter *counter)
{
	/* RELAXED count.add: as above. */
	struct sum sum = {(uint32_t)(counter - tw_counters), tw_load_relaxed(base_of(counter))};

	tw_threads_each(add_ring, &sum);
	return sum.value;
}

void tw_counter_add(struct tw_counter *counter, uint64_t value)
{
	/* RELAXED count.add: as above. */
	tw_fetch_add_relaxed(base_of(counter), value);
}

uint64_t tw_counter_take(struct tw_counter *counter)
{
	uint64_t value = tw_counter_value(counter);

	tw_counter_add(counter, 0 - value);
	return value;
}

void tw_counter_count(struct tw_hit_tls *t, struct tw_counter *counter)
{
	_Atomic uint64_t *word = tw_counter_word(t->thread, (uint32_t)(counter - tw_counters));

	if (tw_likely(word))
		tw_count_add(word, 1);
	else
		tw_counter_add(counter, 1);
}

/* ---- threads and children ---- */

static void forget_blocks(struct tw_thread *thread)
{
	/* RELAXED count.thread_own: the structure has no thread but the calling one. */
	struct tw_thread_counts *own = tw_load_relaxed(&thread->own_counts);
	size_t bytes;

	if (!own)
		return;
	/* RELAXED count.shared: one that grows now is not this thread's. */
	bytes = tw_load_relaxed(&shared_end) * sizeof own->blocks[0];
	memset(own->blocks, 0, bytes);
	memset(own->blocks + TW_COUNT_GROUPS, 0, bytes);
	if (own->aggregates.count)
		memset(&own->aggregates, 0, sizeof own->aggregates);
	own->row = 0;
	own->has_no_blocks = false;
}

static void forget_shared(struct tw_thread *thread, void *unused)
{
	(void)unused;
	forget_blocks(thread);
}

bool tw_counters_unshare(void)
{
	/* RELAXED count.shared: the caller is the only one who changes it. */
	uint32_t end = tw_load_relaxed(&shared_end);

	for (uint32_t i = 0; i < end * TW_RS_COUNT_GROUP; i++) {
		/* RELAXED count.used: a session that begins to count now waits for the permit. */
		if (tw_load_relaxed(&tw_counters[i].is_used))
			return false;
	}
	tw_threads_each(forget_shared, NULL);
	for (uint32_t group = 0; group < end; group++) {
		/* RELAXED count.base: nothing is counted. */
		tw_store_relaxed(&shared_blocks[group], NULL);
		/* RELAXED count.base: as above. */
		tw_store_relaxed(&shared_blocks[TW_COUNT_GROUPS + group], NULL);
	}
	/* RELAXED count.shared: as above. */
	tw_store_relaxed(&shared_end, 0);
	/* RELAXED count.shared: as above. */
	tw_store_relaxed(&shared_set, NULL);
	return true;
}

void tw_counts_leave(struct tw_thread *thread)
{
	/* RELAXED count.shared: set before any counter of its. */
	struct tw_rs *rs = tw_load_relaxed(&shared_set);
	/* RELAXED count.thread_own: written by this thread, or by one that is dead. */
	struct tw_thread_counts *own = tw_load_relaxed(&thread->own_counts);

	if (!rs || !own)
		return;
	tw_rs_counts_end(rs, own->row);
	forget_blocks(thread);
}

void tw_counts_after_fork_in_child(struct tw_thread *thread)
{
	/* RELAXED count.shared: the child has one thread. */
	if (tw_load_relaxed(&shared_set))
		forget_blocks(thread);
}

int tw_counters_continue_in_child(struct tw_rs *rs)
{
	int error = 0;

	/* RELAXED count.shared: the child has one thread. */
	for (uint32_t group = 0; group < tw_load_relaxed(&shared_end) && !error; group++) {
		/* RELAXED count.base: as above. */
		if (tw_load_relaxed(&shared_blocks[group]))
			error = open_block(rs, group);
		/* RELAXED count.base: as above. */
		if (!error && tw_load_relaxed(&shared_blocks[TW_COUNT_GROUPS + group]))
			error = open_block(rs, TW_COUNT_GROUPS + group);
	}
	return error;
}
