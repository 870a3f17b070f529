/* SPDX-License-Identifier: Apache-2.0 */
/* heap.c - memory for values, and collections. */
#include "heap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *must_have(void *memory)
{
	if (!memory) {
		fputs("actors: no memory for a heap\n", stderr);
		abort();
	}
	return memory;
}

static struct space new_space(size_t words)
{
	uint64_t *start = must_have(malloc(words * 8));
	return (struct space){start, start, start + words};
}

void heap_init(struct heap *heap)
{
	*heap = (struct heap){.young = new_space(HEAP_WORDS_MIN)};
	heap->mark = heap->young.start;
}

static void free_fragments(struct fragment *fragment)
{
	while (fragment) {
		struct fragment *next = fragment->next;
		free(fragment->block);
		fragment = next;
	}
}

void heap_fini(struct heap *heap)
{
	free(heap->young.start);
	free(heap->old.start);
	free_fragments(heap->fragments);
	*heap = (struct heap){0};
}

uint64_t *heap_take_slow(struct heap *heap, size_t words)
{
	struct fragment *fragment = heap->fragments;
	if (!fragment || fragment->capacity - fragment->used < words) {
		size_t capacity = words > FRAGMENT_WORDS_MIN ? words : FRAGMENT_WORDS_MIN;
		fragment = must_have(malloc(sizeof *fragment + capacity * 8));
		*fragment = (struct fragment){heap->fragments, fragment, 0, capacity};
		heap->fragments = fragment;
	}
	uint64_t *at = fragment->data + fragment->used;
	fragment->used += words;
	heap->fragment_words += words;
	return at;
}

void heap_adopt(struct heap *heap, struct fragment *fragment)
{
	/* After the first, which may have free space. */
	struct fragment **place = heap->fragments ? &heap->fragments->next : &heap->fragments;
	fragment->next = *place;
	*place = fragment;
	heap->fragment_words += fragment->used;
}

/* ---- collections ---- */

struct collection {
	struct space from_old;			       /* during a minor collection: not moved */
	const uint64_t *promoted_start, *promoted_end; /* the part that goes to old */
	struct space *to_young, *to_old;
};

static bool is_within(const uint64_t *at, const uint64_t *start, const uint64_t *end)
{
	return at >= start && at < end;
}

/* Moves the object that the variable points to, unless it was moved or need not be. */
static void move(struct collection *collection, struct value *variable)
{
	if (tag_of(*variable) != TAG_BOXED)
		return;
	uint64_t *from = box_of(*variable);
	if (is_within(from, collection->from_old.start, collection->from_old.at))
		return;
	if (*from & 1) {
		size_t words = 1 + words_of_header(*from);
		bool is_promoted = is_within(from, collection->promoted_start, collection->promoted_end);
		struct space *space = is_promoted ? collection->to_old : collection->to_young;
		uint64_t *to = space->at;
		memcpy(to, from, words * 8);
		space->at += words;
		*from = (uintptr_t)to;
	}
	variable->word = *from | TAG_BOXED;
}

/* Scans the copies from at on; returns their present end. */
static uint64_t *scan(struct collection *collection, uint64_t *at, const struct space *space)
{
	while (at < space->at) {
		uint64_t header = *at;
		size_t words = words_of_header(header);
		unsigned box = (header & 0xff) >> 1;
		for (size_t i = box == BOX_FUN ? 2 : 1; box != BOX_BINARY && i <= words; i++)
			move(collection, (struct value *)(at + i));
		at += 1 + words;
	}
	return at;
}

bool heap_needs_major(const struct heap *heap)
{
	bool has_space = !heap->old.start || heap->mark - heap->young.start <= heap->old.end - heap->old.at;
	return heap->minors >= FULLSWEEP_AFTER || !has_space;
}

/* The first promotion creates the old heap, of twice the size. */
static void grow_old(struct heap *heap)
{
	size_t need = (size_t)(heap->mark - heap->young.start);
	if (!heap->old.start && need)
		heap->old = new_space(need * 2 > HEAP_WORDS_MIN ? need * 2 : HEAP_WORDS_MIN);
}

size_t heap_collect(struct heap *heap, bool is_major, visit_roots *visit, void *context)
{
	size_t before = heap_words(heap);
	uint64_t taken = heap_taken(heap);
	is_major |= heap_needs_major(heap);
	if (!is_major)
		grow_old(heap);
	size_t bound = (size_t)(heap->young.at - heap->young.start) + heap->fragment_words +
		       (is_major ? (size_t)(heap->old.at - heap->old.start) : 0);
	struct space young = new_space(bound * 2 + HEAP_WORDS_MIN);
	struct collection collection = {.to_young = &young, .to_old = &heap->old};
	uint64_t *old_scanned = heap->old.at;
	if (!is_major) {
		collection.from_old = heap->old;
		collection.promoted_start = heap->young.start;
		collection.promoted_end = heap->mark;
	}
	visit(context, &collection, move);
	uint64_t *scanned = young.start;
	while (scanned < young.at || (!is_major && old_scanned < heap->old.at)) {
		scanned = scan(&collection, scanned, &young);
		if (!is_major)
			old_scanned = scan(&collection, old_scanned, &heap->old);
	}
	free(heap->young.start);
	free_fragments(heap->fragments);
	heap->fragments = NULL;
	heap->fragment_words = 0;
	if (is_major) {
		free(heap->old.start);
		heap->old = (struct space){0};
	}
	/* Space for as much again as is alive; memory reserved beyond was never touched. */
	size_t live = (size_t)(young.at - young.start);
	size_t capacity = live * 2 > HEAP_WORDS_MIN ? live * 2 : HEAP_WORDS_MIN;
	young.end = young.start + capacity;
	heap->young = young;
	heap->mark = young.at;
	heap->words_gone = taken - (uint64_t)(young.at - young.start);
	heap->minors = is_major ? 0 : heap->minors + 1;
	heap->collections++;
	return before - heap_words(heap);
}
