/* SPDX-License-Identifier: Apache-2.0 */
/* count.c - call_time, call_memory.  Compiled without vector registers, as hit.c. */
#include "pipeline/hit/account.h"
#include "base/export.h"
#include "base/filter.h"
#include "base/sys.h"
#include "breakpoints/own_stack.h"
#include "tracewheel/function.h"
#include "tracewheel/session.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { PROBES = 32 };

static struct tw_counts all_counts[TW_COUNTERS_MAX]; /* the first is never used */
static unsigned next_counts = 1; /* Control, under the permit: the account after the one made last. */
static _Atomic uint64_t refused;

/* ---- ids of accounts ---- */

struct tw_counts *tw_counts_create(void)
{
	/* In turn, so that an id comes again as late as possible: rows of threads may still have it. */
	for (unsigned i = 0; i < TW_COUNTERS_MAX; i++) {
		unsigned index = next_counts++ % TW_COUNTERS_MAX;
		struct tw_counts *counts = &all_counts[index];

		/* RELAXED counts.id: control's, under the permit. */
		if (!index || tw_load_relaxed(&counts->id))
			continue;
		/* RELAXED counts.id: hits find it by the part, PAIR bp.active. */
		tw_store_relaxed(&counts->id, ++counts->generation << TW_COUNTERS_BITS | index);
		return counts;
	}
	return NULL;
}

void tw_counts_destroy(struct tw_counts *counts)
{
	if (counts) {
		/* RELAXED counts.id: rows and frames with this id are found dead now or a little later. */
		tw_store_relaxed(&counts->id, 0);
	}
}

static inline bool is_alive(uint32_t id)
{
	/* RELAXED counts.id: as above. */
	return id && tw_load_relaxed(&all_counts[id % TW_COUNTERS_MAX].id) == id;
}

void tw_counts_refuse(void)
{
	/* RELAXED counts.refused: a count. */
	tw_fetch_add_relaxed(&refused, 1);
}

TW_API uint64_t tw_counts_refused(void)
{
	/* RELAXED counts.refused: a count. */
	return tw_load_relaxed(&refused);
}

/* ---- rows ---- */

static struct tw_count_row *row_of(struct tw_thread *thread, uint64_t key)
{
	/* RELAXED count.thread_own: written by this thread, before there is a row. */
	struct tw_thread_counts *own = tw_load_relaxed(&thread->own_counts);
	struct tw_count_row *free_row = NULL;

	for (unsigned i = 0; i < PROBES; i++) {
		struct tw_count_row *row = &own->rows[(tw_count_row_number(key) + i) % TW_COUNT_ROWS];
		/* RELAXED counts.row: this thread's own. */
		uint64_t found = tw_load_relaxed(&row->key);

		if (found == key)
			return row;
		if (!free_row && !is_alive((uint32_t)(found >> 32)))
			free_row = row;
		if (!found)
			break;
	}
	if (!free_row)
		return NULL;
	/*
	 * PAIR counts.row: release; acquire in add_rows(): a reader that sees the new key sees no value of the old
	 * one.
	 */
	tw_store_release(&free_row->key, 0);
	/* PAIR counts.row: release; as above. */
	tw_store_release(&free_row->count, 0);
	/* PAIR counts.row: release; as above. */
	tw_store_release(&free_row->value, 0);
	/* PAIR counts.row: release; as above. */
	tw_store_release(&free_row->key, key);
	return free_row;
}

struct tw_count_row *tw_count_row_find(struct tw_thread *thread, uint64_t key)
{
	struct tw_count_row *row = row_of(thread, key);

	if (!row)
		tw_counts_refuse();
	return row;
}

void tw_count_row_spend(struct tw_thread *thread, uint64_t key, uint64_t value)
{
	struct tw_count_row *row = is_alive((uint32_t)(key >> 32)) ? row_of(thread, key) : NULL;

	if (row)
		tw_count_add(&row->value, value);
}

struct reading {
	uint32_t id;
	uint64_t pid;
	uint64_t count, value;
	uint64_t next; /* the smallest pid above `pid` */
};

/* Adds the rows of one process on one thread, and finds the next process. */
static void add_rows(struct tw_thread *thread, void *arg)
{
	struct reading *reading = arg;
	/* PAIR count.thread: acquire; release in map_counts(). */
	struct tw_thread_counts *own = tw_load_acquire(&thread->own_counts);

	for (size_t i = 0; own && i < TW_COUNT_ROWS; i++) {
		struct tw_count_row *row = &own->rows[i];
		/* PAIR counts.row: acquire; release in row_of(). */
		uint64_t key = tw_load_acquire(&row->key), count, value;

		if (key >> 32 != reading->id)
			continue;
		/* PAIR counts.row: acquire; the key that is read again is not older than these. */
		count = tw_load_acquire(&row->count);
		/* PAIR counts.row: acquire; as above. */
		value = tw_load_acquire(&row->value);
		/* RELAXED counts.row: compared only. */
		if (tw_load_relaxed(&row->key) != key)
			continue;
		key = (uint32_t)key;
		if (key == reading->pid) {
			reading->count += count;
			reading->value += value;
		} else if (key > reading->pid && key < reading->next) {
			reading->next = key;
		}
	}
}

static uint64_t ns_of(uint64_t ticks)
{
	return (uint64_t)((unsigned __int128)ticks * 1000000000 / tw_clock_ticks_per_second());
}

/* One pass for each process: a reader needs no memory. There are few processes, or the reader can wait. */
void tw_counts_each(const struct tw_counts *counts, bool is_time, tw_counts_fn fn, void *arg)
{
	struct reading reading = {.next = 0};

	if (!counts)
		return;
	do {
		/* RELAXED counts.id: control's, under the permit. */
		reading = (struct reading){tw_load_relaxed(&counts->id), reading.next, 0, 0, UINT64_MAX};
		tw_threads_each(add_rows, &reading);
		if (reading.count)
			fn(arg, reading.pid, reading.count, is_time ? ns_of(reading.value) : reading.value);
	} while (reading.next != UINT64_MAX);
}

/* ---- accounts ---- */

static struct tw_further_accounts *further_of(struct tw_block *block)
{
	return (struct tw_further_accounts *)block->words;
}

struct tw_account *tw_account_lookup_further(struct tw_tracee *tracee, uint8_t key)
{
	for (struct tw_block *block = tracee->further_accounts; block; block = further_of(block)->next)
		for (unsigned i = 0; i < TW_FURTHER_ACCOUNTS; i++)
			if (further_of(block)->accounts[i].key == key)
				return &further_of(block)->accounts[i];
	return NULL;
}

/* Finds an unused account: in place, or in a block. */
static struct tw_account *free_account(struct tw_tracee *tracee)
{
	struct tw_account *found = tw_account_lookup_further(tracee, 0);
	struct tw_block *block;

	for (unsigned i = 0; i < TW_ACCOUNTS; i++)
		if (!tracee->accounts[i].key)
			return &tracee->accounts[i];
	if (found)
		return found;
	block = tw_block_take(&tracee->memory, 0);
	if (!block)
		return NULL;
	memset(block->words, 0, sizeof block->words);
	further_of(block)->next = tracee->further_accounts;
	tw_compiler_barrier();
	tracee->further_accounts = block;
	return &further_of(block)->accounts[0];
}

struct tw_account *tw_account_find(struct tw_tracee *tracee, uint8_t key)
{
	struct tw_account *account = tw_account_lookup(tracee, key);

	if (account)
		return account;
	account = free_account(tracee);
	if (account)
		*account = (struct tw_account){.key = key};
	return account;
}

/* ---- what a frame resumes ---- */

/* The accounts of one frame that do not fit the frame, in the words of a block. */
enum { PAIRS = TW_BLOCK_WORDS - 2 };
struct pairs {
	struct tw_block *next;
	uint64_t count;
	struct {
		uint32_t key, before;
	} pairs[PAIRS];
};
_Static_assert(sizeof(struct pairs) == TW_BLOCK_WORDS * 8, "they fit a block");

static struct pairs *pairs_of(struct tw_block *block)
{
	return (struct pairs *)block->words;
}

static struct tw_block *block_of(const struct tw_tracee *tracee, const struct tw_frame_wants *frame)
{
	uint32_t reference = (uint32_t)(frame->more >> TW_COUNTS_BLOCK_SHIFT);

	return reference ? tw_block_find(&tracee->memory, reference) : NULL;
}

static bool put_pair(struct tw_tracee *tracee, struct tw_frame_wants *frame, uint32_t key, uint32_t before)
{
	struct tw_block *block = block_of(tracee, frame), *next = block;

	if (!block || pairs_of(block)->count == PAIRS) {
		block = tw_block_take(&tracee->memory, 0);
		if (!block)
			return false;
		pairs_of(block)->next = next;
		pairs_of(block)->count = 0;
		frame->more = (uint32_t)frame->more | (uint64_t)tw_block_reference(block) << TW_COUNTS_BLOCK_SHIFT;
	}
	pairs_of(block)->pairs[pairs_of(block)->count].key = key;
	pairs_of(block)->pairs[pairs_of(block)->count++].before = before;
	return true;
}

static bool has_pair(const struct tw_tracee *tracee, const struct tw_frame_wants *frame, uint32_t key)
{
	for (struct tw_block *block = block_of(tracee, frame); block; block = pairs_of(block)->next)
		for (uint64_t i = 0; i < pairs_of(block)->count; i++)
			if (pairs_of(block)->pairs[i].key == key)
				return true;
	return false;
}

static void give_pairs(struct tw_tracee *tracee, const struct tw_frame_wants *frame)
{
	struct tw_block *block = block_of(tracee, frame), *next;

	for (; block; block = next) {
		next = pairs_of(block)->next;
		tw_block_give(&tracee->memory, block);
	}
}

static void enter(struct tw_hit_tls *t, struct tw_thread_counts *own, const struct tw_counts *counts, uint8_t key,
		  struct tw_frame_wants *frame)
{
	uint64_t before;
	struct tw_account *account = tw_account_enter(t->thread, own, t->tracee, counts, key, &before);
	size_t index = account ? (size_t)(account - t->tracee->accounts) : 0;

	if (!account || !frame)
		return;
	/* The row is found again by its key. */
	if (index < TW_ACCOUNTS) {
		frame->resume[index] = (uint32_t)before;
		frame->more |= UINT64_C(1) << (TW_COUNTS_SHIFT + index);
	} else if (!put_pair(t->tracee, frame, key, (uint32_t)before)) {
		account->on = before;
		tw_counts_refuse();
	}
}

void tw_counts_enter(struct tw_hit_tls *t, const struct tw_bp_part *part, struct tw_frame_wants *frame)
{
	struct tw_thread_counts *own;

	/* RELAXED tracee.words: a change is seen by this call or by the next. */
	if (t->tracee == &tw_hit_nobody || !(tw_load_relaxed(&t->tracee->counts_call) >> part->session & 1))
		return;
	own = tw_counts_of_thread(t->thread);
	if (!own) {
		tw_counts_refuse();
		return;
	}
	if ((part->actions & TW_ACTION_TIME) && part->times)
		enter(t, own, part->times, tw_account_key(part->session, true), frame);
	if ((part->actions & TW_ACTION_MEMORY) && part->memories)
		enter(t, own, part->memories, tw_account_key(part->session, false), frame);
}

/* Gives an account back to its previous owner, unless its slot has another session by now. */
static void resume(struct tw_hit_tls *t, struct tw_thread_counts *own, struct tw_account *account, uint64_t newer,
		   uint32_t before)
{
	if (account && account->key && !(newer >> tw_account_session(account->key) & 1))
		tw_account_resume(t->thread, own, t->tracee, account, account->key, before);
}

void tw_counts_resume(struct tw_hit_tls *t, const struct tw_frame_wants *frame)
{
	struct tw_thread_counts *own = tw_counts_of_thread(t->thread);
	uint64_t newer = tw_hit_newer_than(frame->epoch);

	if (!own)
		return;
	for (unsigned i = 0; i < TW_ACCOUNTS; i++)
		if (frame->more >> (TW_COUNTS_SHIFT + i) & 1)
			resume(t, own, &t->tracee->accounts[i], newer, frame->resume[i]);
	if (tw_likely(!(frame->more >> TW_COUNTS_BLOCK_SHIFT)))
		return;
	for (struct tw_block *block = block_of(t->tracee, frame); block; block = pairs_of(block)->next)
		for (uint64_t i = 0; i < pairs_of(block)->count; i++)
			resume(t, own, tw_account_lookup_further(t->tracee, (uint8_t)pairs_of(block)->pairs[i].key),
			       newer, pairs_of(block)->pairs[i].before);
	give_pairs(t->tracee, frame);
}

/* Accounts of both the frame and the callee stay the frame's; those of the callee only are added. */
static void add_pairs(struct tw_tracee *tracee, struct tw_frame_wants *kept, const struct tw_frame_wants *callee)
{
	for (struct tw_block *block = block_of(tracee, callee); block; block = pairs_of(block)->next)
		for (uint64_t i = 0; i < pairs_of(block)->count; i++) {
			uint32_t key = pairs_of(block)->pairs[i].key;

			if (!has_pair(tracee, kept, key) &&
			    !put_pair(tracee, kept, key, pairs_of(block)->pairs[i].before))
				tw_counts_refuse();
		}
	give_pairs(tracee, callee);
}

void tw_counts_hand_over(struct tw_frame_wants *frame, struct tw_frame_wants *callee, struct tw_frame_wants *kept)
{
	kept->more = frame->more & TW_COUNTS_RESUMES;
	for (unsigned i = 0; i < TW_ACCOUNTS; i++) {
		uint64_t bit = UINT64_C(1) << (TW_COUNTS_SHIFT + i);

		kept->resume[i] = (frame->more & bit ? frame : callee)->resume[i];
		kept->more |= callee->more & bit;
	}
	if (callee->more >> TW_COUNTS_BLOCK_SHIFT)
		add_pairs(tw_hit_tls.tracee, kept, callee);
	frame->more &= ~TW_COUNTS_RESUMES;
	callee->more &= ~TW_COUNTS_RESUMES;
}

void tw_counts_keep(struct tw_frame_wants *frame, const struct tw_frame_wants *kept)
{
	if (!kept->more)
		return;
	/* Until then `more` is 0: the other words are not valid. */
	if (!frame->more)
		frame->meta_returns = frame->meta_exceptions = 0;
	frame->more |= kept->more;
	for (unsigned i = 0; i < TW_ACCOUNTS; i++)
		frame->resume[i] = kept->resume[i];
}

/* ---- a process is scheduled out and in ---- */

static void charge(struct tw_thread *thread, struct tw_thread_counts *own, struct tw_tracee *tracee,
		   struct tw_account *account)
{
	if ((uint32_t)account->on)
		tw_account_charge(thread, own, tracee, account, tw_account_reading(tracee, account->key));
}

void tw_counts_out(struct tw_thread *thread, struct tw_tracee *tracee)
{
	struct tw_thread_counts *own = tw_counts_of_thread(thread);

	if (!own)
		return;
	for (unsigned i = 0; i < TW_ACCOUNTS; i++)
		charge(thread, own, tracee, &tracee->accounts[i]);
	for (struct tw_block *block = tracee->further_accounts; block; block = further_of(block)->next)
		for (unsigned i = 0; i < TW_FURTHER_ACCOUNTS; i++)
			charge(thread, own, tracee, &further_of(block)->accounts[i]);
}

static void go_on(struct tw_tracee *tracee, struct tw_account *account)
{
	if (account->key)
		account->since = tw_account_reading(tracee, account->key);
}

void tw_counts_in(struct tw_tracee *tracee)
{
	for (unsigned i = 0; i < TW_ACCOUNTS; i++)
		go_on(tracee, &tracee->accounts[i]);
	for (struct tw_block *block = tracee->further_accounts; block; block = further_of(block)->next)
		for (unsigned i = 0; i < TW_FURTHER_ACCOUNTS; i++)
			go_on(tracee, &further_of(block)->accounts[i]);
}

/* ---- allocations ---- */

TW_API void tw_hit_allocation(uint64_t words)
{
	struct tw_hit_tls *t = &tw_hit_tls;

	/* &tw_hit_nobody is shared by all threads. */
	if (t->state == TW_THREAD_READY && t->tracee != &tw_hit_nobody)
		t->tracee->allocated_words += words;
}

void tw_hit_allocated(uint64_t bytes)
{
	tw_hit_allocation((bytes + 7) / 8);
}
