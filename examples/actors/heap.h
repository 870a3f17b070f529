/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap.h - the memory of one actor, and its collections.
 *
 *	old:    [ survived two collections            |   free   ]
 *	young:  [ survived one | made since            |   free   ]
 *	                       ^mark                   ^at        ^end
 *	fragments: objects that did not fit young: big messages, and those made while it was full
 *
 * heap_take() never collects, so a value in a C variable stays valid between two safe points.  Safe points are
 * receive() and garbage_collect(); a function names the values that it holds across one with KEEP (actors.h).  A minor
 * collection copies the reachable objects of young and of the fragments: those below the mark go to old.  A major one
 * copies everything to a new young heap.  Copying is Cheney's: the copies form the queue of objects still to be
 * scanned.
 *
 * Threads  the actor's.
 * Source   C. J. Cheney, "A nonrecursive list compacting algorithm", 1970; OTP's collector for the
 *	    generations and for the twelve sizes.
 */
#ifndef ACTORS_HEAP_H
#define ACTORS_HEAP_H

#include "value.h"

#define HEAP_WORDS_MIN	   256
#define FULLSWEEP_AFTER	   16 /* minor collections between two major ones */
#define FRAGMENT_WORDS_MIN 256

struct fragment {
	struct fragment *next;
	void *block; /* the pointer for free() */
	size_t used, capacity;
	uint64_t data[];
};

struct space {
	uint64_t *start, *at, *end;
};

struct heap {
	struct space young, old;
	uint64_t *mark; /* in young: objects below it have survived a collection */
	struct fragment *fragments;
	size_t fragment_words;
	size_t max_words; /* 0: no limit */
	unsigned minors;
	uint64_t collections;
	uint64_t words_gone;	 /* freed by collections, from young and fragments: see heap_taken() */
	uint64_t words_reported; /* reported so far */
};

/* Visits the variables that hold values: calls look for each. */
struct collection;
typedef void look(struct collection *collection, struct value *variable);
typedef void visit_roots(void *context, struct collection *collection, look *look);

void heap_init(struct heap *heap);
void heap_fini(struct heap *heap);

uint64_t *heap_take_slow(struct heap *heap, size_t words);

/* Takes words, not cleared; never NULL: the program ends if memory is short. */
static inline uint64_t *heap_take(struct heap *heap, size_t words)
{
	uint64_t *at = heap->young.at;
	if (__builtin_expect((size_t)(heap->young.end - at) < words, 0))
		return heap_take_slow(heap, words);
	heap->young.at = at + words;
	return at;
}

/* Makes a fragment from elsewhere the heap's own. */
void heap_adopt(struct heap *heap, struct fragment *fragment);

/* Did young overflow since the last collection? */
static inline bool heap_is_full(const struct heap *heap)
{
	return heap->fragment_words != 0;
}

/* Would a minor collection not suffice? */
bool heap_needs_major(const struct heap *heap);

/* Collects; returns the words that it reclaimed. */
size_t heap_collect(struct heap *heap, bool is_major, visit_roots *visit, void *context);

/* All words ever taken, and values that came from elsewhere. */
static inline uint64_t heap_taken(const struct heap *heap)
{
	return heap->words_gone + (uint64_t)(heap->young.at - heap->young.start) + heap->fragment_words;
}

static inline size_t heap_words(const struct heap *heap)
{
	return (size_t)(heap->young.at - heap->young.start) + (size_t)(heap->old.at - heap->old.start) +
	       heap->fragment_words;
}

#endif
