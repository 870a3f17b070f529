/* SPDX-License-Identifier: Apache-2.0 */
/* ck_table.c - keys and values are words: ck_ht's direct mode. */
#include "base/ck_table.h"
#include "base/error.h"

#include <stdlib.h>

#define FIRST_ENTRIES 256

static void *allocate(size_t bytes)
{
	return malloc(bytes);
}

static void release(void *p, size_t bytes, bool is_deferred)
{
	free(p);
}

static struct ck_malloc allocator = {.malloc = allocate, .free = release};

int tw_ck_table_put(struct tw_ck_table *table, uintptr_t key, void *value)
{
	ck_ht_entry_t entry;
	ck_ht_hash_t hash;

	if (!table->is_made && !ck_ht_init(&table->table, CK_HT_MODE_DIRECT, NULL, &allocator, FIRST_ENTRIES, 1))
		return TW_ENOMEM;
	table->is_made = 1;
	ck_ht_hash_direct(&hash, &table->table, key);
	ck_ht_entry_set_direct(&entry, hash, key, (uintptr_t)value);
	return ck_ht_set_spmc(&table->table, hash, &entry) ? 0 : TW_ENOMEM;
}

void *tw_ck_table_get(struct tw_ck_table *table, uintptr_t key)
{
	ck_ht_entry_t entry;
	ck_ht_hash_t hash;

	if (!table->is_made)
		return NULL;
	ck_ht_hash_direct(&hash, &table->table, key);
	ck_ht_entry_key_set_direct(&entry, key);
	return ck_ht_get_spmc(&table->table, hash, &entry) ? (void *)ck_ht_entry_value_direct(&entry) : NULL;
}

void *tw_ck_table_remove(struct tw_ck_table *table, uintptr_t key)
{
	ck_ht_entry_t entry;
	ck_ht_hash_t hash;

	if (!table->is_made)
		return NULL;
	ck_ht_hash_direct(&hash, &table->table, key);
	ck_ht_entry_key_set_direct(&entry, key);
	return ck_ht_remove_spmc(&table->table, hash, &entry) ? (void *)ck_ht_entry_value_direct(&entry) : NULL;
}

void tw_ck_table_fini(struct tw_ck_table *table)
{
	if (table->is_made)
		ck_ht_destroy(&table->table);
	table->is_made = 0;
}
