/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seq_label.c - the table of labels.
 *
 *	word of an entry	generation << 32 | block << 4 | 3
 *	entry			a chain of blocks; the first says how many bytes there are
 *
 * A reader copies the bytes and then looks whether the first block still has the generation of its word. Writers, under the
 * lock, make the generation odd while they change the blocks. All accesses to blocks are atomic, and the memory is never
 * given back, so that a reader that comes too late reads something wrong, and knows it.
 *
 * Which label is forgotten: a hand goes round over the blocks, and spares once each label that was used since it last came by.
 */
#include "pipeline/thread/seq_label.h"
#include "base/quiet_lock.h"
#include "term/etf.h"

#include <string.h>
#include <sys/mman.h>

#define BLOCK_WORDS 13
#define BLOCK_BYTES (BLOCK_WORDS * 8)
#define BUCKETS	    65536
#define TAG	    3
#define END	    UINT32_MAX

struct block {
	_Atomic uint32_t generation; /* odd: being changed; of the first block of a label */
	_Atomic uint32_t next;	     /* of the chain, or of the free ones; END: none */
	_Atomic uint32_t bytes;	     /* of the label; 0: no first block */
	_Atomic uint32_t is_used;    /* since the hand came by */
	/* Under the lock. */
	uint32_t next_of_bucket;
	uint32_t hash;
	_Atomic uint64_t words[BLOCK_WORDS];
};
_Static_assert(sizeof(struct block) == 128, "whole cache lines");

static struct tw_quiet_lock lock = TW_QUIET_LOCK_INIT;
/* Set once, under the lock. */
static struct block *_Atomic table;
static uint32_t *buckets;
static uint32_t fresh, hand, free_blocks = END, free_count;
static _Atomic uint64_t forgotten;

void tw_seq_labels_before_fork(void)
{
	tw_quiet_lock_before_fork(&lock);
}

void tw_seq_labels_after_fork(void)
{
	tw_quiet_unlock_after_fork(&lock);
}

uint64_t tw_seq_labels_forgotten(void)
{
	/* RELAXED seq.counts: a number for people. */
	return tw_load_relaxed(&forgotten);
}

static uint64_t word_of(uint32_t number, uint32_t generation)
{
	return (uint64_t)generation << 32 | (uint64_t)number << 4 | TAG;
}

/* Not every word with such a tag is a term: the word may come from a damaged token. */
static bool is_own_word(uint64_t word)
{
	struct tw_term term = tw_word(word);

	return tw_is_small(term) || tw_is_nil(term) || tw_atom_is_known(term);
}

/* ---- reading ---- */

/* The first block of the label; NULL: no word of this table, or forgotten. */
static struct block *first_of(uint64_t word)
{
	/* PAIR seq.table: acquire; release in make_table(). */
	struct block *blocks = tw_load_acquire(&table);
	uint32_t number = (uint32_t)word >> 4;

	if ((word & 15) != TAG || !(word >> 32) || !blocks || number >= TW_SEQ_LABEL_BLOCKS)
		return NULL;
	/* PAIR seq.label: acquire; release in write_label(): the blocks of this generation are written. */
	return tw_load_acquire(&blocks[number].generation) == word >> 32 ? &blocks[number] : NULL;
}

static void mark_used(struct block *first)
{
	/* RELAXED seq.used: a hint. */
	if (!tw_load_relaxed(&first->is_used)) {
		/* RELAXED seq.used: as above. */
		tw_store_relaxed(&first->is_used, 1);
	}
}

/* Every token that passes comes here: its label is in use, also if it makes no event. */
int tw_seq_label_is_known(uint64_t word)
{
	struct block *first;

	if (is_own_word(word))
		return true;
	first = first_of(word);
	if (first)
		mark_used(first);
	return first != NULL;
}

size_t tw_seq_label_encode(uint64_t word, uint8_t *at, size_t capacity)
{
	struct block *first, *block, *blocks;
	uint32_t bytes, done = 0, next;

	if (is_own_word(word))
		return tw_etf_try_encode(tw_word(word), at, capacity);
	first = block = first_of(word);
	if (!first)
		return 0;
	/* PAIR seq.table: acquire; release in make_table(). */
	blocks = tw_load_acquire(&table);
	/* PAIR seq.blocks: acquire, each: the generation is read after them. Release in write_label() and forget(). */
	bytes = tw_load_acquire(&first->bytes);
	if (bytes > capacity || bytes > TW_SEQ_LABEL_BYTES_MAX)
		return 0;
	for (;;) {
		for (unsigned i = 0; i < BLOCK_WORDS && done < bytes; i++, done += 8) {
			/* PAIR seq.blocks: acquire; as above. */
			uint64_t piece = tw_load_acquire(&block->words[i]);

			memcpy(at + done, &piece, bytes - done < 8 ? bytes - done : 8);
		}
		if (done >= bytes)
			break;
		/* PAIR seq.blocks: acquire; as above. */
		next = tw_load_acquire(&block->next);
		if (next >= TW_SEQ_LABEL_BLOCKS)
			return 0;
		block = &blocks[next];
	}
	/* RELAXED seq.label: after the loads above, which acquire. */
	if (tw_load_relaxed(&first->generation) != word >> 32)
		return 0;
	mark_used(first);
	return bytes;
}

struct tw_term tw_seq_label_term(struct tw_arena *arena, uint64_t word)
{
	uint8_t bytes[TW_SEQ_LABEL_BYTES_MAX];
	struct tw_term term;
	size_t count;

	if (is_own_word(word))
		return tw_word(word);
	count = tw_seq_label_encode(word, bytes, sizeof bytes);
	return count && tw_etf_decode(arena, bytes, count, NULL, NULL, &term) == 0 ? term : tw_word(0);
}

/* ---- writing: under the lock ---- */

static bool make_table(void)
{
	size_t bytes = TW_SEQ_LABEL_BLOCKS * sizeof(struct block), bucket_bytes = BUCKETS * sizeof *buckets;
	char *memory = mmap(NULL, bytes + bucket_bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return false;
	buckets = (uint32_t *)(void *)(memory + bytes);
	/* PAIR seq.table: release; acquire in first_of(). */
	tw_store_release(&table, (struct block *)(void *)memory);
	return true;
}

static struct block *blocks_locked(void)
{
	/* RELAXED seq.table: set under the lock. */
	return tw_load_relaxed(&table);
}

/* Buckets hold 1 + the number of a block. */
static void unlink_label(struct block *blocks, uint32_t number)
{
	uint32_t *link = &buckets[blocks[number].hash % BUCKETS];

	while (*link != number + 1)
		link = &blocks[*link - 1].next_of_bucket;
	*link = blocks[number].next_of_bucket;
}

static void forget(struct block *blocks, uint32_t number)
{
	struct block *first = &blocks[number];
	/* RELAXED seq.label: written under the lock. */
	uint32_t generation = tw_load_relaxed(&first->generation), last = number;

	unlink_label(blocks, number);
	/* RELAXED seq.label: the stores below are releases: a reader that sees one of them sees this. */
	tw_store_relaxed(&first->generation, generation + 1);
	/* PAIR seq.blocks: release; acquire in tw_seq_label_encode(). */
	tw_store_release(&first->bytes, 0);
	free_count++;
	for (;;) {
		/* RELAXED seq.blocks: written under the lock. */
		uint32_t next = tw_load_relaxed(&blocks[last].next);

		if (next == END)
			break;
		last = next;
		free_count++;
	}
	/* PAIR seq.blocks: release; as above. */
	tw_store_release(&blocks[last].next, free_blocks);
	free_blocks = number;
	/* RELAXED seq.counts: a number for people. */
	tw_fetch_add_relaxed(&forgotten, 1);
}

/* Moves the hand by one block. */
static void make_room(struct block *blocks)
{
	struct block *block = &blocks[hand];

	/* RELAXED seq.blocks, seq.used: written under the lock; a hint. */
	if (tw_load_relaxed(&block->bytes)) {
		/* RELAXED seq.used: as above. */
		if (tw_load_relaxed(&block->is_used))
			/* RELAXED seq.used: as above. */
			tw_store_relaxed(&block->is_used, 0);
		else
			forget(blocks, hand);
	}
	hand = (hand + 1) % TW_SEQ_LABEL_BLOCKS;
}

static uint32_t take_block(struct block *blocks)
{
	uint32_t number = free_blocks;

	if (number == END)
		return fresh++;
	/* RELAXED seq.blocks: written under the lock. */
	free_blocks = tw_load_relaxed(&blocks[number].next);
	free_count--;
	return number;
}

static uint64_t write_label(struct block *blocks, const uint8_t *data, uint32_t bytes, uint32_t hash)
{
	uint32_t count = (bytes + BLOCK_BYTES - 1) / BLOCK_BYTES, number, at, done = 0, generation;

	while (free_count + (TW_SEQ_LABEL_BLOCKS - fresh) < count)
		make_room(blocks);
	number = at = take_block(blocks);
	/* RELAXED seq.label: written under the lock. Odd already, if the block was a first one. */
	generation = tw_load_relaxed(&blocks[number].generation) | 1;
	/* RELAXED seq.label: as in forget(). */
	tw_store_relaxed(&blocks[number].generation, generation);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t next = i + 1 < count ? take_block(blocks) : END;

		for (unsigned w = 0; w < BLOCK_WORDS && done < bytes; w++, done += 8) {
			uint64_t piece = 0;

			memcpy(&piece, data + done, bytes - done < 8 ? bytes - done : 8);
			/* PAIR seq.blocks: release; acquire in tw_seq_label_encode(). */
			tw_store_release(&blocks[at].words[w], piece);
		}
		if (i) {
			/* PAIR seq.blocks: release; as above. */
			tw_store_release(&blocks[at].bytes, 0);
		}
		/* PAIR seq.blocks: release; as above. */
		tw_store_release(&blocks[at].next, next);
		at = next;
	}
	/* PAIR seq.blocks: release; as above. */
	tw_store_release(&blocks[number].bytes, bytes);
	/* RELAXED seq.used: a hint. */
	tw_store_relaxed(&blocks[number].is_used, 1);
	blocks[number].hash = hash;
	blocks[number].next_of_bucket = buckets[hash % BUCKETS];
	buckets[hash % BUCKETS] = number + 1;
	/* PAIR seq.label: release; acquire in first_of(). */
	tw_store_release(&blocks[number].generation, generation + 1);
	return word_of(number, generation + 1);
}

static bool is_label(struct block *blocks, uint32_t number, const uint8_t *data, uint32_t bytes)
{
	/* RELAXED seq.blocks: written under the lock, here and below. */
	bool is_same = tw_load_relaxed(&blocks[number].bytes) == bytes;

	for (uint32_t done = 0, w = 0; is_same && done < bytes; done += 8) {
		/* RELAXED seq.blocks: as above. */
		uint64_t piece = tw_load_relaxed(&blocks[number].words[w]);

		is_same = !memcmp(&piece, data + done, bytes - done < 8 ? bytes - done : 8);
		w = (w + 1) % BLOCK_WORDS;
		if (!w && done + 8 < bytes) {
			/* RELAXED seq.blocks: as above. */
			number = tw_load_relaxed(&blocks[number].next);
		}
	}
	return is_same;
}

static uint64_t find(struct block *blocks, const uint8_t *data, uint32_t bytes, uint32_t hash)
{
	for (uint32_t link = buckets[hash % BUCKETS]; link; link = blocks[link - 1].next_of_bucket)
		if (blocks[link - 1].hash == hash && is_label(blocks, link - 1, data, bytes)) {
			mark_used(&blocks[link - 1]);
			/* RELAXED seq.label: written under the lock. */
			return word_of(link - 1, tw_load_relaxed(&blocks[link - 1].generation));
		}
	return 0;
}

int tw_seq_label_of(struct tw_term label, uint64_t *word)
{
	uint8_t data[TW_SEQ_LABEL_BYTES_MAX];
	size_t bytes;
	uint32_t hash = 0;
	int error = 0;

	if (is_own_word(label.word)) {
		*word = label.word;
		return 0;
	}
	if (tw_term_is_none(label))
		return TW_EBADARG;
	bytes = tw_etf_try_encode(label, data, sizeof data);
	if (!bytes)
		return TW_ELIMIT;
	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ data[i]) * UINT32_C(0x01000193);
	hash ^= hash >> 15;
	tw_quiet_lock(&lock);
	if (!blocks_locked() && !make_table())
		error = TW_ENOMEM;
	if (!error) {
		*word = find(blocks_locked(), data, (uint32_t)bytes, hash);
		if (!*word)
			*word = write_label(blocks_locked(), data, (uint32_t)bytes, hash);
	}
	tw_quiet_unlock(&lock);
	return error;
}
