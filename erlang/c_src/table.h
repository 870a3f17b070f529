/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - tables that any thread searches and extends without a lock, and that only grow, by a few words at a time.
 *
 * A tree by the bits of a hash: a slot is empty, an entry, or a node of 16 more slots.  If two entries meet, a node takes
 * their place: so adding never moves what is there, and takes as long in a large table as in a small one.
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

#define TABLE_ROOT_BITS 8
#define TABLE_NODE_BITS 4

/* 0, a struct entry *, or a struct node * plus TABLE_IS_NODE. */
typedef _Atomic uintptr_t table_slot;
#define TABLE_IS_NODE ((uintptr_t)1)

struct node {
	table_slot slots[1 << TABLE_NODE_BITS];
};

struct table {
	table_slot slots[1 << TABLE_ROOT_BITS];
	_Atomic size_t count; /* of entries, and of those that are being added */
	size_t count_max;
};

static inline uint64_t table_hash(ERL_NIF_TERM a, ERL_NIF_TERM b, ERL_NIF_TERM c)
{
	uint64_t hash = a * UINT64_C(0x9e3779b97f4a7c15);

	hash = (hash ^ hash >> 29 ^ b) * UINT64_C(0xbf58476d1ce4e5b9);
	hash = (hash ^ hash >> 32 ^ c) * UINT64_C(0x94d049bb133111eb);
	return hash ^ hash >> 31;
}

static inline struct node *table_node(uintptr_t word)
{
	return (struct node *)(word - TABLE_IS_NODE);
}

/* NULL: no such entry.  Wait-free. */
static inline struct entry *table_find(struct table *table, ERL_NIF_TERM a, ERL_NIF_TERM b, ERL_NIF_TERM c)
{
	uint64_t hash = table_hash(a, b, c);
	uintptr_t word = atomic_load_explicit(&table->slots[hash % (1 << TABLE_ROOT_BITS)], memory_order_acquire);
	struct entry *entry;

	for (hash >>= TABLE_ROOT_BITS; word & TABLE_IS_NODE; hash >>= TABLE_NODE_BITS)
		word = atomic_load_explicit(&table_node(word)->slots[hash % (1 << TABLE_NODE_BITS)],
					    memory_order_acquire);
	entry = (struct entry *)word;
	return entry && entry->key[0] == a && entry->key[1] == b && entry->key[2] == c ? entry : NULL;
}

/* Frees the entries, too.  No other call may run. */
void table_fini(struct table *table);

/* Makes the entry of a key, by enif_alloc(), but for the key; NULL: there is none. */
typedef struct entry *(*table_make)(const ERL_NIF_TERM key[3], void *arg);

/*
 * table_add - find an entry, or add it.
 *
 * @make	threads that add the same key at once may each call theirs: one entry stays, and the others are freed.  The caller of
 *		a make that does more than to fill its entry holds a lock of its own.
 * NULL: no memory, the table has count_max entries, or make refused.
 * Threads	any.  Lock-free: a thread tries again only if another has added an entry meanwhile.
 */
struct entry *table_add(struct table *table, const ERL_NIF_TERM key[3], table_make make, void *arg);

#endif
