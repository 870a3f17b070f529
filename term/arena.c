/* SPDX-License-Identifier: Apache-2.0 */
/* arena.c - memory that is allocated in blocks and freed all at once. */
#include "term/term.h"
#include "base/export.h"

#include <stdlib.h>

#define CHUNK_BYTES_FIRST ((size_t)4 << 10)
#define CHUNK_BYTES_MAX	  ((size_t)1 << 20)

struct tw_arena_chunk {
	struct tw_arena_chunk *next;
	size_t bytes; /* including this head */
};

_Static_assert(sizeof(struct tw_arena_chunk) == 16, "the first block of a chunk is aligned");

TW_API void tw_arena_init_fixed(struct tw_arena *arena, void *buffer, size_t bytes)
{
	size_t skip = -(uintptr_t)buffer & 15;
	size_t usable = bytes > skip ? (bytes - skip) & ~(size_t)15 : 0;
	char *start = usable ? (char *)buffer + skip : (char *)buffer;

	/* The buffer is all there is: already at its cap. */
	*arena = (struct tw_arena){.at = start,
				   .end = start + usable,
				   .fixed = start,
				   .held_bytes = usable,
				   .cap_bytes = usable};
}

TW_API void tw_arena_init_buffer(struct tw_arena *arena, void *buffer, size_t bytes, size_t cap_bytes)
{
	tw_arena_init_fixed(arena, buffer, bytes);
	if (cap_bytes > arena->cap_bytes)
		arena->cap_bytes = cap_bytes;
}

TW_API void tw_arena_init(struct tw_arena *arena, size_t cap_bytes)
{
	*arena = (struct tw_arena){.cap_bytes = cap_bytes};
}

static void use_chunk(struct tw_arena *arena, struct tw_arena_chunk *chunk)
{
	arena->chunks = chunk;
	arena->at = (char *)(chunk + 1);
	arena->end = (char *)chunk + chunk->bytes;
}

/* Adds a chunk that can hold @bytes; false at the cap or if memory is short. */
static bool grow(struct tw_arena *arena, size_t bytes)
{
	size_t needed = bytes + sizeof(struct tw_arena_chunk);
	size_t capacity = arena->cap_bytes - arena->held_bytes;
	size_t wanted = arena->chunks ? arena->chunks->bytes * 2 : CHUNK_BYTES_FIRST;
	struct tw_arena_chunk *chunk;

	if (needed < bytes || needed > capacity)
		return false;
	if (wanted > CHUNK_BYTES_MAX)
		wanted = CHUNK_BYTES_MAX;
	if (wanted < needed)
		wanted = needed;
	if (wanted > capacity)
		wanted = needed + ((capacity - needed) & ~(size_t)15);
	chunk = malloc(wanted);
	if (!chunk)
		return false;
	chunk->next = arena->chunks;
	chunk->bytes = wanted;
	arena->held_bytes += wanted;
	use_chunk(arena, chunk);
	return true;
}

TW_API void *tw_arena_alloc(struct tw_arena *arena, size_t bytes)
{
	size_t rounded = (bytes + 15) & ~(size_t)15;
	char *at;

	if (rounded < bytes)
		return NULL;
	if (rounded > (size_t)(arena->end - arena->at) && !grow(arena, rounded))
		return NULL;
	at = arena->at;
	arena->at = at + rounded;
	return at;
}

void tw_arena_trim(struct tw_arena *arena, void *block, size_t taken_bytes, size_t bytes)
{
	size_t taken = (taken_bytes + 15) & ~(size_t)15;

	if ((char *)block + taken == arena->at)
		arena->at = (char *)block + ((bytes + 15) & ~(size_t)15);
}

TW_API void tw_arena_reset(struct tw_arena *arena)
{
	struct tw_arena_chunk *kept = arena->chunks;
	struct tw_arena_chunk *chunk, *next;

	/* Keeps the newest chunk, which is the largest; with a buffer of the caller none is kept. */
	for (chunk = kept && !arena->fixed ? kept->next : kept; chunk; chunk = next) {
		next = chunk->next;
		arena->held_bytes -= chunk->bytes;
		free(chunk);
	}
	if (arena->fixed) {
		arena->chunks = NULL;
		arena->at = arena->fixed;
		arena->end = arena->fixed + arena->held_bytes;
	} else if (kept) {
		kept->next = NULL;
		use_chunk(arena, kept);
	}
}

TW_API void tw_arena_fini(struct tw_arena *arena)
{
	struct tw_arena_chunk *chunk, *next;

	for (chunk = arena->chunks; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	*arena = (struct tw_arena){0};
}
