/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - adding to tables: under a lock, published by one store. */
#include "table.h"

#include <string.h>

#define SLOTS_FIRST 256

static struct slots *slots_create(size_t count)
{
	size_t bytes = sizeof(struct slots) + count * sizeof(struct entry *);
	struct slots *slots = enif_alloc(bytes);

	if (slots) {
		memset(slots, 0, bytes);
		slots->mask = count - 1;
	}
	return slots;
}

int table_init(struct table *table, size_t entry_bytes, size_t count_max, char *name)
{
	struct slots *slots = slots_create(SLOTS_FIRST);

	table->lock = slots ? enif_mutex_create(name) : NULL;
	if (!table->lock) {
		enif_free(slots);
		return 0;
	}
	atomic_init(&table->slots, slots);
	table->count = 0;
	table->count_max = count_max;
	table->entry_bytes = entry_bytes;
	return 1;
}

void table_fini(struct table *table)
{
	struct slots *slots, *older;

	if (!table->lock)
		return;
	slots = atomic_load_explicit(&table->slots, memory_order_relaxed);
	for (size_t i = 0; i <= slots->mask; i++)
		enif_free(atomic_load_explicit(&slots->entries[i], memory_order_relaxed));
	for (; slots; slots = older) {
		older = slots->older;
		enif_free(slots);
	}
	enif_mutex_destroy(table->lock);
	table->lock = NULL;
}

/* Under the lock.  The release publishes the entry's bytes to table_find(). */
static void insert(struct slots *slots, struct entry *entry)
{
	uint64_t at = table_hash(entry->key[0], entry->key[1], entry->key[2]);

	while (atomic_load_explicit(&slots->entries[at & slots->mask], memory_order_relaxed))
		at++;
	atomic_store_explicit(&slots->entries[at & slots->mask], entry, memory_order_release);
}

/* Under the lock: at most half of the slots are used, so that every search ends. */
static int grow(struct table *table)
{
	struct slots *old = atomic_load_explicit(&table->slots, memory_order_relaxed), *slots;

	if ((table->count + 1) * 2 <= old->mask)
		return 1;
	slots = slots_create((old->mask + 1) * 2);
	if (!slots)
		return 0;
	for (size_t i = 0; i <= old->mask; i++) {
		struct entry *entry = atomic_load_explicit(&old->entries[i], memory_order_relaxed);

		if (entry)
			insert(slots, entry);
	}
	slots->older = old;
	atomic_store_explicit(&table->slots, slots, memory_order_release);
	return 1;
}

static struct entry *add(struct table *table, const ERL_NIF_TERM key[3], table_fill fill, void *arg)
{
	struct entry *entry;

	if (table->count >= table->count_max || !grow(table))
		return NULL;
	entry = enif_alloc(table->entry_bytes);
	if (!entry)
		return NULL;
	memset(entry, 0, table->entry_bytes);
	memcpy(entry->key, key, sizeof entry->key);
	if (!fill(entry, arg)) {
		enif_free(entry);
		return NULL;
	}
	table->count++;
	insert(atomic_load_explicit(&table->slots, memory_order_relaxed), entry);
	return entry;
}

struct entry *table_add(struct table *table, const ERL_NIF_TERM key[3], table_fill fill, void *arg)
{
	struct entry *entry = table_find(table, key[0], key[1], key[2]);

	if (entry)
		return entry;
	enif_mutex_lock(table->lock);
	entry = table_find(table, key[0], key[1], key[2]);
	if (!entry)
		entry = add(table, key, fill, arg);
	enif_mutex_unlock(table->lock);
	return entry;
}
