/* SPDX-License-Identifier: Apache-2.0 */
/*
 * atom.c - the table of atoms.
 *
 * Entries lie in chunks by index and never move.  A hash table of indices, filled under the lock and read without it,
 * finds them by name.  When it is half full a larger one replaces it.  Smaller tables are kept, because a reader may
 * still be using one: it misses only names added since, then takes the lock and finds them there.  All smaller tables
 * together are smaller than the last.
 *
 * A fork while another thread adds an atom would leave the lock taken in the child forever, so handlers around fork()
 * hold it.
 */
#include "term/atom.h"
#include "term/print.h"
#include "term/term.h"
#include "term/utf8.h"
#include "base/atomic.h"
#include "base/map.h"
#include "base/export.h"
#include "base/lock.h"

#include <pthread.h>
#include <stdlib.h>

#define CHUNK_ENTRIES	1024u
#define CHUNKS		(TW_ATOMS_MAX / CHUNK_ENTRIES)
#define TABLE_SLOTS_MIN 2048u

_Static_assert(TW_ATOMS_KNOWN * 2 <= TABLE_SLOTS_MIN, "the known names leave the first table half empty");
_Static_assert(TW_ATOMS_KNOWN <= CHUNK_ENTRIES, "the known names fit the first chunk");

struct table {
	struct table *smaller;
	uint32_t mask;
	_Atomic uint32_t slots[]; /* index + 1; 0 is empty */
};

static const char *const known_names[] = {
#define KNOWN_NAME(identifier, name)				   name,
#define KNOWN_KIND(identifier, number, word, group, first, second) word,
#define KNOWN_SIZE(identifier, field)				   #field,
	TW_ATOM_NAMES(KNOWN_NAME) TW_TRACE_KINDS(KNOWN_KIND) TW_SYSTEM_KINDS(KNOWN_KIND) TW_GC_SIZES(KNOWN_SIZE)
#undef KNOWN_NAME
#undef KNOWN_KIND
#undef KNOWN_SIZE
};

static _Atomic(struct table *) current_table;
static _Atomic(struct tw_atom_entry *) chunks[CHUNKS];
static _Atomic uint32_t atom_count;
static _Atomic bool has_known_names; /* the table has all of them */

/* Accessed under the lock. */
static struct tw_lock lock = TW_LOCK_INIT;
static struct tw_arena texts;
static bool has_fork_handlers;

static const struct tw_atom_entry *entry_at(uint32_t index)
{
	/*
	 * PAIR term.atom_chunk: acquire; release in entry_for_next().  The chunk pointer is loaded before the entry in
	 * the chunk.
	 */
	return &tw_load_acquire(&chunks[index / CHUNK_ENTRIES])[index % CHUNK_ENTRIES];
}

static bool is_entry(const struct tw_atom_entry *entry, const char *name, size_t bytes, uint64_t hash)
{
	return entry->hash == hash && entry->name_bytes == bytes && (!bytes || memcmp(entry->name, name, bytes) == 0);
}

/* The index + 1 of a name; 0 if the table lacks it. */
static uint32_t look_up(const struct table *table, const char *name, size_t bytes, uint64_t hash)
{
	uint32_t at = (uint32_t)hash & table->mask;

	for (;; at = (at + 1) & table->mask) {
		/*
		 * PAIR term.atom_slot: acquire; release in put().  The entry was written before its index was stored in
		 * the slot.
		 */
		uint32_t slot = tw_load_acquire(&table->slots[at]);

		if (!slot || is_entry(entry_at(slot - 1), name, bytes, hash))
			return slot;
	}
}

/* ---- under the lock ---- */

static void put(struct table *table, uint32_t index, uint64_t hash)
{
	uint32_t at = (uint32_t)hash & table->mask;

	/* RELAXED term.atom_probe: slots are written under the lock that the caller holds. */
	while (tw_load_relaxed(&table->slots[at]))
		at = (at + 1) & table->mask;
	/*
	 * PAIR term.atom_slot: release; acquire in look_up().  Publishes the entry.  Without it a reader could find the
	 * index before the name is written.
	 */
	tw_store_release(&table->slots[at], index + 1);
}

/* Makes a table of @slots with all present atoms the current one. */
static bool install_table(uint32_t slots)
{
	struct table *table = calloc(1, sizeof *table + slots * sizeof table->slots[0]);
	uint32_t i, count;

	if (!table)
		return false;
	/* RELAXED term.atom_table_own: written under the lock that the caller holds. */
	table->smaller = tw_load_relaxed(&current_table);
	table->mask = slots - 1;
	/* RELAXED term.atom_count_own: written under the lock that the caller holds. */
	count = tw_load_relaxed(&atom_count);
	for (i = 0; i < count; i++)
		put(table, i, entry_at(i)->hash);
	/*
	 * PAIR term.atom_table: release; acquire in table_in_use().
	 * Publishes the mask and the slots of the new table.
	 */
	tw_store_release(&current_table, table);
	return true;
}

/* The memory of the next index's entry; NULL if memory is short. */
static struct tw_atom_entry *entry_for_next(uint32_t index)
{
	struct tw_atom_entry *chunk;

	/* RELAXED term.atom_chunk_own: written under the lock that the caller holds. */
	chunk = tw_load_relaxed(&chunks[index / CHUNK_ENTRIES]);
	if (!chunk) {
		chunk = calloc(CHUNK_ENTRIES, sizeof *chunk);
		if (!chunk)
			return NULL;
		/* PAIR term.atom_chunk: release; acquire in entry_at(). */
		tw_store_release(&chunks[index / CHUNK_ENTRIES], chunk);
	}
	return &chunk[index % CHUNK_ENTRIES];
}

static char *keep_text(const char *text, size_t bytes)
{
	char *kept = tw_arena_take(&texts, bytes + 1);

	if (kept) {
		memcpy(kept, text, bytes);
		kept[bytes] = '\0';
	}
	return kept;
}

/* The name of a known atom is not copied. */
static bool fill_entry(struct tw_atom_entry *entry, const char *name, size_t bytes, bool is_known)
{
	char printed[TW_ATOM_PRINTED_BYTES_MAX];
	size_t printed_bytes = tw_print_atom_name(name, bytes, printed);

	entry->name = is_known ? name : keep_text(name, bytes);
	if (!entry->name)
		return false;
	entry->printed = printed_bytes == bytes ? entry->name : keep_text(printed, printed_bytes);
	if (!entry->printed)
		return false;
	entry->name_bytes = (uint32_t)bytes;
	entry->printed_bytes = (uint32_t)printed_bytes;
	entry->hash = tw_hash_bytes(name, bytes, 0);
	return true;
}

/* Adds a new name; returns its index + 1, or 0. */
static uint32_t add(const char *name, size_t bytes, bool is_known)
{
	struct tw_atom_entry *entry;
	struct table *table;
	uint32_t index;

	/* RELAXED term.atom_count_own: written under the lock that the caller holds. */
	index = tw_load_relaxed(&atom_count);
	/* RELAXED term.atom_table_own: written under the lock that the caller holds. */
	table = tw_load_relaxed(&current_table);
	if (index >= TW_ATOMS_MAX)
		return 0;
	if (index >= table->mask / 2) {
		if (!install_table((table->mask + 1) * 2))
			return 0;
		/* RELAXED term.atom_table_own: written under the lock that the caller holds. */
		table = tw_load_relaxed(&current_table);
	}
	entry = entry_for_next(index);
	if (!entry || !fill_entry(entry, name, bytes, is_known))
		return 0;
	/*
	 * PAIR term.atom_count: release; acquire in tw_atom_entry() and tw_atom_count().  Publishes the entry.  Before the
	 * name can be found: a signal handler of this thread that finds it would wait for the count forever.
	 */
	tw_store_release(&atom_count, index + 1);
	put(table, index, entry->hash);
	return index + 1;
}

static void lock_for_fork(void)
{
	tw_lock_seize(&lock);
}

static void unlock_after_fork(void)
{
	tw_lock_drop(&lock);
}

/* Creates the first table with the known names; aborts if memory is short. */
static void set_up(void)
{
	uint32_t i, slot;

	tw_arena_init(&texts, TW_ATOM_TEXT_BYTES_MAX);
	TW_ASSERT(install_table(TABLE_SLOTS_MIN));
	for (i = 0; i < TW_ATOMS_KNOWN; i++) {
		slot = add(known_names[i], strlen(known_names[i]), true);
		TW_ASSERT(slot == i + 1);
	}
	/* PAIR term.atom_known: release; acquire in ready_table().  Publishes the table with these names. */
	tw_store_release(&has_known_names, true);
	if (!has_fork_handlers)
		has_fork_handlers = pthread_atfork(lock_for_fork, unlock_after_fork, unlock_after_fork) == 0;
}

/* ---- without the lock ---- */

static struct table *table_in_use(void)
{
	/*
	 * PAIR term.atom_table: acquire; release in install_table().  An older table is as good: names it lacks are
	 * found under the lock.
	 */
	return tw_load_acquire(&current_table);
}

/*
 * Runs when the library is loaded, so that the first lookup in a signal handler finds the table.  Earlier callers
 * create it through ready_table().
 */
__attribute__((constructor)) static void set_up_early(void)
{
	tw_lock_seize(&lock);
	if (!table_in_use())
		set_up();
	tw_lock_drop(&lock);
}

/*
 * The table with all known names.  While another thread is still setting it up some are missing; that thread holds the
 * lock.
 */
static struct table *ready_table(void)
{
	/* PAIR term.atom_known: acquire; release in set_up().  An older value only leads to the lock. */
	if (tw_unlikely(!tw_load_acquire(&has_known_names)))
		set_up_early();
	return table_in_use();
}

const struct tw_atom_entry *tw_atom_entry(uint32_t index)
{
	if (tw_unlikely(index < TW_ATOMS_KNOWN))
		ready_table();
	/*
	 * PAIR term.atom_count: acquire; release in add().  A thread may have got the index as a mere number, without any
	 * order, from the thread that added the atom: on a machine weaker than x86 the count may arrive after it.
	 */
	while (tw_unlikely(tw_load_acquire(&atom_count) <= index))
		tw_cpu_relax();
	return entry_at(index);
}

uint32_t tw_atom_count(void)
{
	ready_table();
	/* PAIR term.atom_count: acquire; release in add().  A reader of a smaller index finds its entry. */
	return tw_load_acquire(&atom_count);
}

bool tw_atom_table_is_half_full(void)
{
	bool is_half = tw_atom_count() > TW_ATOMS_MAX / 2;

	tw_lock_seize(&lock);
	is_half |= texts.held_bytes > TW_ATOM_TEXT_BYTES_MAX / 2;
	tw_lock_drop(&lock);
	return is_half;
}

static bool is_name(const char *name, size_t bytes)
{
	uint32_t character;
	size_t at = 0, count = 0;

	while (at < bytes) {
		size_t step = tw_utf8_next(name + at, name + bytes, &character);

		if (!step || ++count > TW_ATOM_CHARACTERS_MAX)
			return false;
		at += step;
	}
	return true;
}

static struct tw_term atom_of_slot(uint32_t slot)
{
	return slot ? tw_atom(slot - 1) : tw_word(0);
}

TW_API struct tw_term tw_term_atom_existing(const char *name, size_t bytes)
{
	return atom_of_slot(look_up(ready_table(), name, bytes, tw_hash_bytes(name, bytes, 0)));
}

TW_API struct tw_term tw_term_atom(const char *name, size_t bytes)
{
	uint64_t hash = tw_hash_bytes(name, bytes, 0);
	uint32_t slot = look_up(ready_table(), name, bytes, hash);

	if (tw_likely(slot))
		return atom_of_slot(slot);
	if (!is_name(name, bytes))
		return tw_word(0);
	tw_lock_seize(&lock);
	slot = look_up(table_in_use(), name, bytes, hash);
	if (!slot)
		slot = add(name, bytes, false);
	tw_lock_drop(&lock);
	return atom_of_slot(slot);
}

TW_API struct tw_term tw_term_atom_z(const char *name)
{
	return tw_term_atom(name, strlen(name));
}

void tw_atom_table_fini(void)
{
	struct table *table, *smaller;
	uint32_t i;

	tw_lock_seize(&lock);
	for (table = table_in_use(); table; table = smaller) {
		smaller = table->smaller;
		free(table);
	}
	/* RELAXED term.atom_fini: no other thread is using terms. */
	tw_store_relaxed(&current_table, NULL);
	/* RELAXED term.atom_fini: no other thread is using terms. */
	tw_store_relaxed(&has_known_names, false);
	/* RELAXED term.atom_fini: no other thread is using terms. */
	tw_store_relaxed(&atom_count, 0);
	for (i = 0; i < CHUNKS; i++) {
		/* RELAXED term.atom_fini: no other thread is using terms. */
		free(tw_load_relaxed(&chunks[i]));
		/* RELAXED term.atom_fini: no other thread is using terms. */
		tw_store_relaxed(&chunks[i], NULL);
	}
	tw_arena_fini(&texts);
	tw_lock_drop(&lock);
}
