/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account.h - the inside of count.h, for the two that count in hits: count.c and, in one piece, counted.c.
 *
 *	tw_tracee.accounts[i]	{since, on: id, row}	whose time, or words, run now; id 0: nobody's
 *	.further_accounts	blocks of more of them, a session and kind each; none is ever taken back
 *	tw_thread_counts.rows[]	{key, count, value}	of one thread; key: id and process
 *
 * The row of an account is a number (the upper half of `on`), and a hint: whoever uses it compares the key, which is in the line that is
 * written next.  So it may be of another thread, or be another's by now, and a frame may keep it.
 *
 * Threads  in a hit.  Compiled without vector registers.
 */
#ifndef TW_PIPELINE_ACCOUNT_H
#define TW_PIPELINE_ACCOUNT_H

#include "base/clock.h"
#include "pipeline/hit/count.h"
#include "pipeline/hit/hit.h"

enum { TW_COUNTERS = 65536, TW_COUNT_ROWS = 65536 };

/* One process' share of one account, on one thread.  Written by that thread only. */
struct tw_count_row {
	_Alignas(32) _Atomic uint64_t key; /* id << 32 | pid; 0: free */
	_Atomic uint64_t count;
	_Atomic uint64_t value; /* ticks or words */
};

/* What a thread counts with. */
struct tw_thread_counts {
	_Atomic uint64_t counters[TW_COUNTERS];
	struct tw_count_row rows[TW_COUNT_ROWS];
};

struct tw_counter {
	_Atomic uint64_t base; /* what is not in the counts of threads; modulo 2^64 */
	bool is_used;
};
extern struct tw_counter tw_counters[TW_COUNTERS];

struct tw_counts {
	_Atomic uint32_t id; /* generation << 16 | index; 0: not used */
	uint16_t generation;
};

/* A word that only this thread writes. */
static inline void tw_count_add(_Atomic uint64_t *word, uint64_t value)
{
	/* RELAXED count.add: one writer; readers take what is there. */
	uint64_t old = tw_load_relaxed(word);

	/* RELAXED count.add: as above. */
	tw_store_relaxed(word, old + value);
}

static inline uint64_t tw_count_key(uint32_t id, uint32_t pid)
{
	return (uint64_t)id << 32 | pid;
}

static inline uint32_t tw_count_row_number(uint64_t key)
{
	return (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 48) % TW_COUNT_ROWS;
}

/* What the thread counts with: mapped by its first count; NULL: there is no memory. */
struct tw_thread_counts *tw_counts_map(struct tw_thread *thread);
static inline struct tw_thread_counts *tw_counts_of_thread(struct tw_thread *thread)
{
	/* RELAXED count.thread_own: written by this thread. */
	struct tw_thread_counts *rings = tw_load_relaxed(&thread->own_counts);

	return tw_likely(rings) ? rings : tw_counts_map(thread);
}

/* Finds or makes the row of a key on this thread, where it is not at its first place; NULL: refused, and counted. */
struct tw_count_row *tw_count_row_find(struct tw_thread *thread, uint64_t key);
/* The same for what was spent: of an account that is over there is nothing to find. */
void tw_count_row_spend(struct tw_thread *thread, uint64_t key, uint64_t value);

/* A call that finds no room to be counted in whole. */
void tw_counts_refuse(void);

/* Ticks or words. */
static inline uint64_t tw_account_reading(const struct tw_tracee *tracee, uint8_t key)
{
	return key & 1 ? tw_clock_ticks() : tracee->allocated_words;
}

/* What was spent since goes to the account that was on. */
static inline __attribute__((always_inline)) void tw_account_settle(struct tw_thread *thread,
								    struct tw_thread_counts *rings,
								    const struct tw_tracee *tracee,
								    struct tw_account *account, uint64_t now)
{
	struct tw_count_row *row = &rings->rows[account->on >> 32];
	uint64_t key = tw_count_key((uint32_t)account->on, tracee->pid_number);

	/* RELAXED counts.row: this thread's own. */
	if (tw_likely(tw_load_relaxed(&row->key) == key))
		tw_count_add(&row->value, now - account->since);
	else if ((uint32_t)account->on)
		tw_count_row_spend(thread, key, now - account->since);
	account->since = now;
}

/* Accounts beyond those in the process' structure, in the words of a block. */
enum { TW_FURTHER_ACCOUNTS = 9 };
struct tw_further_accounts {
	struct tw_block *next;
	struct tw_account accounts[TW_FURTHER_ACCOUNTS];
};
_Static_assert(sizeof(struct tw_further_accounts) <= TW_BLOCK_WORDS * 8, "they fit a block");

/* The process' account of this session and kind: found, or made; NULL: there is no memory for it, and none is made. */
struct tw_account *tw_account_find(struct tw_tracee *tracee, uint8_t key);
struct tw_account *tw_account_look_further(struct tw_tracee *tracee, uint8_t key);

static inline struct tw_account *tw_account_of(struct tw_tracee *tracee, uint8_t key)
{
	return tw_likely(tracee->accounts[0].key == key) ? &tracee->accounts[0] : tw_account_find(tracee, key);
}

/* The same without taking one; NULL: there is none. */
static inline struct tw_account *tw_account_look(struct tw_tracee *tracee, uint8_t key)
{
	for (unsigned i = 0; i < TW_ACCOUNTS; i++)
		if (tw_likely(tracee->accounts[i].key == key))
			return &tracee->accounts[i];
	return tw_account_look_further(tracee, key);
}

/* Which session's, and what it counts: the lowest bit is 1 for time. */
static inline uint8_t tw_account_key(unsigned session, bool is_time)
{
	return (uint8_t)(2 * session + 2 + is_time);
}

static inline unsigned tw_account_session(uint8_t key)
{
	return (key - 2u) / 2;
}

/*
 * The process enters a function: its account goes on from here.  Returns which one that is; NULL: the call is counted
 * only, or refused.  *before is what goes on when the call ends.
 */
static inline __attribute__((always_inline)) struct tw_account *tw_account_enter(struct tw_thread *thread,
										 struct tw_thread_counts *rings,
										 struct tw_tracee *tracee,
										 const struct tw_counts *counts,
										 uint8_t account_key, uint64_t *before)
{
	/* RELAXED counts.id: of a part that is active. */
	uint32_t id = tw_load_relaxed(&counts->id);
	uint64_t key = tw_count_key(id, tracee->pid_number);
	struct tw_count_row *row = &rings->rows[tw_count_row_number(key)];
	struct tw_account *account = tw_account_of(tracee, account_key);

	/* RELAXED counts.row: this thread's own. */
	if (tw_unlikely(tw_load_relaxed(&row->key) != key)) {
		row = tw_count_row_find(thread, key);
		if (!row)
			return NULL;
	}
	tw_count_add(&row->count, 1);
	if (tw_unlikely(!account)) {
		tw_counts_refuse();
		return NULL;
	}
	tracee->has_accounts = true;
	tw_account_settle(thread, rings, tracee, account, tw_account_reading(tracee, account_key));
	*before = account->on;
	account->on = (uint64_t)(row - rings->rows) << 32 | id;
	return account;
}

/* The call ends. */
static inline __attribute__((always_inline)) void tw_account_resume(struct tw_thread *thread,
								    struct tw_thread_counts *rings,
								    struct tw_tracee *tracee,
								    struct tw_account *account, uint8_t account_key,
								    uint64_t before)
{
	tw_account_settle(thread, rings, tracee, account, tw_account_reading(tracee, account_key));
	account->on = before;
}

#endif
