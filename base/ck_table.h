/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ck_table.h - the only place that knows ConcurrencyKit: its hash table from a word (an address, an id) to a pointer.
 *
 * Threads   one writer at a time; concurrent readers, wait-free except while the table grows.
 * Limits    the words 0 and UINTPTR_MAX are not valid keys; NULL is not a valid value.
 * Memory    malloc, also for growing.  A growing table frees its old memory at once: concurrent readers must be in a
 *	     read section that the writer waits for before it adds more.
 */
#ifndef TW_BASE_CK_TABLE_H
#define TW_BASE_CK_TABLE_H

#include <ck_ht.h>

#include <stdint.h>

struct tw_ck_table {
	ck_ht_t table;
	int is_made;
};

/* Adds or replaces.  A zeroed table is an empty one.  TW_ENOMEM. */
int tw_ck_table_put(struct tw_ck_table *table, uintptr_t key, void *value);
/* NULL: not there. */
void *tw_ck_table_get(struct tw_ck_table *table, uintptr_t key);
/* Returns the removed value; NULL: none. */
void *tw_ck_table_remove(struct tw_ck_table *table, uintptr_t key);
void tw_ck_table_fini(struct tw_ck_table *table);

#endif
