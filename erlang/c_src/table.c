/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - adding to tables: published by one compare-and-swap of a slot. */
#include "table.h"

#include <string.h>

#define HASH_BITS 64

static void free_slot(uintptr_t word)
{
	struct node *node;

	if (!(word & TABLE_IS_NODE)) {
		enif_free((void *)word);
		return;
	}
	node = table_node(word);
	for (unsigned i = 0; i < sizeof node->slots / sizeof *node->slots; i++)
		free_slot(atomic_load_explicit(&node->slots[i], memory_order_relaxed));
	enif_free(node);
}

void table_fini(struct table *table)
{
	for (unsigned i = 0; i < sizeof table->slots / sizeof *table->slots; i++)
		free_slot(atomic_load_explicit(&table->slots[i], memory_order_relaxed));
}

static uint64_t hash_of(const struct entry *entry)
{
	return table_hash(entry->key[0], entry->key[1], entry->key[2]);
}

static unsigned index_at(uint64_t hash, unsigned shift)
{
	return hash >> shift & ((1 << TABLE_NODE_BITS) - 1);
}

/*
 * The nodes that part two entries whose hashes agree below @shift; as a slot's word.  0: no memory, or the hashes are the same.
 * No thread sees them yet.
 */
static uintptr_t part(struct entry *old, struct entry *new, unsigned shift)
{
	struct node *node = shift < HASH_BITS ? enif_alloc(sizeof *node) : NULL;
	uintptr_t below;
	unsigned i, j;

	if (!node)
		return 0;
	i = index_at(hash_of(old), shift);
	j = index_at(hash_of(new), shift);
	memset(node, 0, sizeof *node);
	if (i != j) {
		atomic_init(&node->slots[i], (uintptr_t)old);
		atomic_init(&node->slots[j], (uintptr_t) new);
		return (uintptr_t)node + TABLE_IS_NODE;
	}
	below = part(old, new, shift + TABLE_NODE_BITS);
	if (!below) {
		enif_free(node);
		return 0;
	}
	atomic_init(&node->slots[i], below);
	return (uintptr_t)node + TABLE_IS_NODE;
}

/* Frees what part() made, and not the entries. */
static void free_nodes(uintptr_t word)
{
	struct node *node;

	if (!(word & TABLE_IS_NODE))
		return;
	node = table_node(word);
	for (unsigned i = 0; i < sizeof node->slots / sizeof *node->slots; i++)
		free_nodes(atomic_load_explicit(&node->slots[i], memory_order_relaxed));
	enif_free(node);
}

static int has_key(const struct entry *entry, const ERL_NIF_TERM key[3])
{
	return memcmp(entry->key, key, sizeof entry->key) == 0;
}

/*
 * The entry, or that of another thread, which came first; NULL: no memory.
 *
 * The release publishes the entry's bytes, and nodes above it, to table_find() and to other threads here.  The acquires are for
 * the nodes, and for the key of the entry found, which part() hashes.  A slot goes from empty to an entry to a node, and never back.
 */
static struct entry *insert(struct table *table, struct entry *entry)
{
	uint64_t hash = hash_of(entry);
	table_slot *slot = &table->slots[hash % (1 << TABLE_ROOT_BITS)];
	uintptr_t word = atomic_load_explicit(slot, memory_order_acquire), new;
	unsigned shift = TABLE_ROOT_BITS;

	for (;;) {
		for (; word & TABLE_IS_NODE; word = atomic_load_explicit(slot, memory_order_acquire)) {
			slot = &table_node(word)->slots[index_at(hash, shift)];
			shift += TABLE_NODE_BITS;
		}
		if (word && has_key((struct entry *)word, entry->key))
			return (struct entry *)word;
		new = word ? part((struct entry *)word, entry, shift) : (uintptr_t)entry;
		if (!new)
			return NULL;
		if (atomic_compare_exchange_strong_explicit(slot, &word, new, memory_order_acq_rel,
							    memory_order_acquire))
			return entry;
		free_nodes(new);
	}
}

static struct entry *add(struct table *table, const ERL_NIF_TERM key[3], table_make make, void *arg)
{
	struct entry *entry = make(key, arg), *stays = NULL;

	if (entry) {
		memcpy(entry->key, key, sizeof entry->key);
		stays = insert(table, entry);
	}
	if (entry && stays == entry)
		return entry;
	enif_free(entry);
	/* Relaxed: as in table_add(). */
	atomic_fetch_sub_explicit(&table->count, 1, memory_order_relaxed);
	return stays;
}

struct entry *table_add(struct table *table, const ERL_NIF_TERM key[3], table_make make, void *arg)
{
	struct entry *entry = table_find(table, key[0], key[1], key[2]);

	if (entry)
		return entry;
	/* Relaxed: a limit, which says nothing of the entries. */
	if (atomic_fetch_add_explicit(&table->count, 1, memory_order_relaxed) < table->count_max)
		return add(table, key, make, arg);
	atomic_fetch_sub_explicit(&table->count, 1, memory_order_relaxed);
	return NULL;
}
