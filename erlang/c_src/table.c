/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - adding to tables: under a lock, published by one store. */
#include "table.h"

#include <string.h>

#define HASH_BITS 64

int table_init(struct table *table, size_t count_max, char *name)
{
	table->lock = enif_mutex_create(name);
	table->count_max = count_max;
	return table->lock != NULL;
}

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
	if (!table->lock)
		return;
	for (unsigned i = 0; i < sizeof table->slots / sizeof *table->slots; i++)
		free_slot(atomic_load_explicit(&table->slots[i], memory_order_relaxed));
	enif_mutex_destroy(table->lock);
	table->lock = NULL;
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

/* Under the lock.  The release publishes the entry's bytes, and nodes above it, to table_find(). */
static int insert(struct table *table, struct entry *entry)
{
	uint64_t hash = hash_of(entry);
	table_slot *slot = &table->slots[hash % (1 << TABLE_ROOT_BITS)];
	unsigned shift = TABLE_ROOT_BITS;
	uintptr_t word;

	while ((word = atomic_load_explicit(slot, memory_order_relaxed)) & TABLE_IS_NODE) {
		slot = &table_node(word)->slots[index_at(hash, shift)];
		shift += TABLE_NODE_BITS;
	}
	word = word ? part((struct entry *)word, entry, shift) : (uintptr_t)entry;
	if (!word)
		return 0;
	atomic_store_explicit(slot, word, memory_order_release);
	table->count++;
	return 1;
}

static struct entry *add(struct table *table, const ERL_NIF_TERM key[3], table_make make, void *arg)
{
	struct entry *entry = table->count < table->count_max ? make(key, arg) : NULL;

	if (!entry)
		return NULL;
	memcpy(entry->key, key, sizeof entry->key);
	if (insert(table, entry))
		return entry;
	enif_free(entry);
	return NULL;
}

struct entry *table_add(struct table *table, const ERL_NIF_TERM key[3], table_make make, void *arg)
{
	struct entry *entry = table_find(table, key[0], key[1], key[2]);

	if (entry)
		return entry;
	enif_mutex_lock(table->lock);
	entry = table_find(table, key[0], key[1], key[2]);
	if (!entry)
		entry = add(table, key, make, arg);
	enif_mutex_unlock(table->lock);
	return entry;
}
