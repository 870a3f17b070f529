/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - tables that any thread searches without a lock, and that only grow.
 *
 * Keys are one to three words of the VM: immediate terms, which stay valid as long as what they name.  An entry, once added,
 * stays where it is until the table ends.
 */
#ifndef TRACEWHEEL_ERLANG_TABLE_H
#define TRACEWHEEL_ERLANG_TABLE_H

#include <erl_nif.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* The start of each entry. */
struct entry {
	ERL_NIF_TERM key[3];
};

struct slots {
	struct slots *older; /* kept: a thread may still search it */
	size_t mask;
	_Atomic(struct entry *) entries[];
};

struct table {
	_Atomic(struct slots *) slots;
	ErlNifMutex *lock;
	size_t count; /* under the lock */
	size_t count_max;
	size_t entry_bytes;
};

static inline uint64_t table_hash(ERL_NIF_TERM a, ERL_NIF_TERM b, ERL_NIF_TERM c)
{
	uint64_t hash = (a ^ b << 21 ^ b >> 43 ^ c << 42 ^ c >> 22) * UINT64_C(0x9e3779b97f4a7c15);

	return hash ^ hash >> 32;
}

/* NULL: no such entry.  Wait-free. */
static inline struct entry *table_find(struct table *table, ERL_NIF_TERM a, ERL_NIF_TERM b, ERL_NIF_TERM c)
{
	struct slots *slots = atomic_load_explicit(&table->slots, memory_order_acquire);

	for (uint64_t at = table_hash(a, b, c);; at++) {
		struct entry *entry = atomic_load_explicit(&slots->entries[at & slots->mask], memory_order_acquire);

		if (!entry || (entry->key[0] == a && entry->key[1] == b && entry->key[2] == c))
			return entry;
	}
}

/* False: no memory. */
int table_init(struct table *table, size_t entry_bytes, size_t count_max, char *name);
void table_fini(struct table *table);

/* Fills a new entry behind its key; false: there is none. */
typedef int (*table_fill)(struct entry *entry, void *arg);

/*
 * table_add - find an entry, or add it.
 *
 * @fill	called under the table's lock.
 * NULL: no memory, the table has count_max entries, or fill refused.
 */
struct entry *table_add(struct table *table, const ERL_NIF_TERM key[3], table_fill fill, void *arg);

#endif
