/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account.h - the internals of count.h, for the files that count in hits: counters.c, count.c and counted.c.
 *
 *	tw_tracee.accounts[i]	{since, on: id, row}	the account that runs now; id 0: none
 *	.further_accounts	blocks of more of them, a session and kind each; kept until the process exits
 *	tw_thread_counts.rows[]	{key, count, value}	of one thread; key: id and process
 *
 * An account's row (the upper half of `on`) is a hint: each user compares the key, which is in the cache line that is
 * written next. Thus it may belong to another thread or key by now, and a frame may keep it.
 *
 * Threads  in a hit.  Compiled without vector registers.
 */
#ifndef TW_PIPELINE_ACCOUNT_H
#define TW_PIPELINE_ACCOUNT_H

#include "base/clock.h"
#include "base/limits.h"
#include "pipeline/hit/count.h"
#include "pipeline/hit/hit.h"
#include "ringbuf/counts.h"

/* The share of one process in one account, on one thread. Written by that thread only. */
struct tw_count_row {
	_Alignas(32) _Atomic uint64_t key; /* id << 32 | pid; 0: free */
	_Atomic uint64_t count;
	_Atomic uint64_t value; /* ticks or words */
};

/* The aggregates of a thread, by a hash of place, key and number: aggregate.h. */
struct tw_aggregates {
	struct tw_rs_aggregate *slots[TW_AGGREGATE_SLOTS];
	uint32_t count;		       /* of slots that are used */
	uint32_t free_count;	       /* of its last block */
	struct tw_rs_aggregate *block; /* the last one */
};

#define TW_COUNT_GROUPS (TW_COUNTERS_MAX / TW_RS_COUNT_GROUP)

/* The counts of a thread. */
struct tw_thread_counts {
	/* Of counters, and then of their recorded calls; NULL: not used yet. */
	struct tw_rs_count_words *_Atomic blocks[2 * TW_COUNT_GROUPS];
	struct tw_count_row rows[TW_COUNT_ROWS];
	/* Written by the thread. */
	uint32_t row;	    /* of shared counters: in the ring set; 0: none */
	bool has_no_blocks; /* without success: it counts together with other threads */
	uint32_t free_blocks;
	struct tw_rs_count_words *free_at; /* private ones, not used yet */
	struct tw_aggregates aggregates;
};

struct tw_counter {
	_Atomic uint64_t base; /* private: calls that are not in the counts of threads; modulo 2^64 */
	_Atomic bool is_used;
};
extern struct tw_counter tw_counters[TW_COUNTERS_MAX];

struct tw_counts {
	_Atomic uint32_t id; /* generation << TW_COUNTERS_BITS | index; 0: not used */
	uint32_t generation;
};

/* A word that only this thread writes; readers accept any recent value. */
static inline void tw_count_add(_Atomic uint64_t *word, uint64_t value)
{
	tw_add_own(word, value);
}

/*
 * If calls of a shared counter may be recorded later (longer.h), TW_COUNT_RECORDED added to its number gives the number of those that
 * were.  Both only grow.
 */
#define TW_COUNT_RECORDED TW_COUNTERS_MAX
_Static_assert(TW_COUNT_RECORDED == TW_RS_COUNT_RECORDED_GROUP * TW_RS_COUNT_GROUP, "as in ring sets");

/* The thread's word of a number; NULL: it has none. */
static inline __attribute__((always_inline)) _Atomic uint64_t *tw_count_word(const struct tw_thread_counts *own,
									     uint32_t index)
{
	/* RELAXED count.thread_own: written by this thread. */
	struct tw_rs_count_words *block = tw_load_relaxed(&own->blocks[index / TW_RS_COUNT_GROUP]);

	return tw_likely(block) ? &block->words[index % TW_RS_COUNT_GROUP] : NULL;
}

/* The same, made if it can be. */
_Atomic uint64_t *tw_counter_word(struct tw_thread *thread, uint32_t number);
/* The word of all threads together. */
_Atomic uint64_t *tw_counter_word_of_all(uint32_t number);

static inline uint64_t tw_count_key(uint32_t id, uint32_t pid)
{
	return (uint64_t)id << 32 | pid;
}

static inline uint32_t tw_count_row_number(uint64_t key)
{
	return (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 48) % TW_COUNT_ROWS;
}

/* A block of the thread, of zeros; NULL: there is none.  In a hit. */
struct tw_rs_count_words *tw_counts_take_block(struct tw_thread *thread, struct tw_thread_counts *own, uint32_t group);

/* The counts of a thread, mapped at its first count; NULL: there is no memory. */
struct tw_thread_counts *tw_counts_map(struct tw_thread *thread);
static inline struct tw_thread_counts *tw_counts_of_thread(struct tw_thread *thread)
{
	/* RELAXED count.thread_own: written by this thread. */
	struct tw_thread_counts *own = tw_load_relaxed(&thread->own_counts);

	return tw_likely(own) ? own : tw_counts_map(thread);
}

/* Finds or makes the row of a key on this thread, if it is not at its first position; NULL: refused, and counted. */
struct tw_count_row *tw_count_row_find(struct tw_thread *thread, uint64_t key);
/* The same for time or words spent. An account that is destroyed has no row. */
void tw_count_row_spend(struct tw_thread *thread, uint64_t key, uint64_t value);

/* A call that cannot be counted in full for want of memory. */
void tw_counts_refuse(void);

/* Ticks or words. */
static inline uint64_t tw_account_reading(const struct tw_tracee *tracee, uint8_t key)
{
	return key & 1 ? tw_clock_ticks() : tracee->allocated_words;
}

/* Adds what was spent since the last reading to the current account. */
static inline __attribute__((always_inline)) void tw_account_charge(struct tw_thread *thread,
								    struct tw_thread_counts *own,
								    const struct tw_tracee *tracee,
								    struct tw_account *account, uint64_t now)
{
	struct tw_count_row *row = &own->rows[account->on >> 32];
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

/* The process' account of this session and kind, found or made; NULL: there is no memory. */
struct tw_account *tw_account_find(struct tw_tracee *tracee, uint8_t key);
struct tw_account *tw_account_lookup_further(struct tw_tracee *tracee, uint8_t key);

static inline struct tw_account *tw_account_of(struct tw_tracee *tracee, uint8_t key)
{
	return tw_likely(tracee->accounts[0].key == key) ? &tracee->accounts[0] : tw_account_find(tracee, key);
}

/* The same without making one; NULL: there is none. */
static inline struct tw_account *tw_account_lookup(struct tw_tracee *tracee, uint8_t key)
{
	for (unsigned i = 0; i < TW_ACCOUNTS; i++)
		if (tw_likely(tracee->accounts[i].key == key))
			return &tracee->accounts[i];
	return tw_account_lookup_further(tracee, key);
}

/* Session and kind: the lowest bit is 1 for time. */
static inline uint8_t tw_account_key(unsigned session, bool is_time)
{
	return (uint8_t)(2 * session + 2 + is_time);
}

static inline unsigned tw_account_session(uint8_t key)
{
	return (key - 2u) / 2;
}

/*
 * The process enters a function, whose account runs from here on. Returns the process' struct tw_account; NULL: the
 * call is only counted, or refused. *before is the account to resume when the call ends.
 */
static inline __attribute__((always_inline)) struct tw_account *tw_account_enter(struct tw_thread *thread,
										 struct tw_thread_counts *own,
										 struct tw_tracee *tracee,
										 const struct tw_counts *counts,
										 uint8_t account_key, uint64_t *before)
{
	/* RELAXED counts.id: of a part that is active. */
	uint32_t id = tw_load_relaxed(&counts->id);
	uint64_t key = tw_count_key(id, tracee->pid_number);
	struct tw_count_row *row = &own->rows[tw_count_row_number(key)];
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
	tw_account_charge(thread, own, tracee, account, tw_account_reading(tracee, account_key));
	*before = account->on;
	account->on = (uint64_t)(row - own->rows) << 32 | id;
	return account;
}

/* The call ends: charges its account and resumes the one before. */
static inline __attribute__((always_inline)) void tw_account_resume(struct tw_thread *thread,
								    struct tw_thread_counts *own,
								    struct tw_tracee *tracee,
								    struct tw_account *account, uint8_t account_key,
								    uint64_t before)
{
	tw_account_charge(thread, own, tracee, account, tw_account_reading(tracee, account_key));
	account->on = before;
}

#endif
