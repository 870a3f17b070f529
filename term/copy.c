/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.c - copies terms from one arena to another, and cuts them where they are too large.
 *
 * The budget is the memory that may still be used.  A block is copied whole or not at all, then its parts in order
 * while the budget lasts; the remaining parts become the mark, which needs no memory.  Keys of a map must stay
 * different and in order, so a map is copied only if all its keys fit.
 */
#include "term/walk.h"
#include "base/export.h"

struct copying {
	struct tw_arena *arena;
	size_t budget_bytes;
	bool may_allocate;
	bool is_cut;
	bool is_out_of_memory;
	struct tw_walk walk;
};

static size_t rounded(size_t bytes)
{
	return (bytes + 15) & ~(size_t)15;
}

/* The memory of a block without its parts. */
static size_t block_bytes(struct tw_term t)
{
	size_t size = tw_block_size(t);

	switch (tw_header_kind(*tw_block(t))) {
	case TW_BLOCK_BIG:
	case TW_BLOCK_FLOAT:
	case TW_BLOCK_TUPLE: return 8 + size * 8;
	case TW_BLOCK_MAP: return 8 + size * 16;
	case TW_BLOCK_BITS: return 8 + size;
	case TW_BLOCK_EXPORT: return 24;
	case TW_BLOCK_FUN: return sizeof(struct tw_block_fun) + size;
	default: return sizeof(struct tw_block_identifier) + size * sizeof(uint32_t);
	}
}

static bool push(struct copying *c, const struct tw_term *from, struct tw_term *to, size_t count)
{
	struct tw_walk_frame *frame;

	if (count == 0)
		return true;
	frame = tw_walk_push(&c->walk, c->may_allocate);
	if (!frame) {
		c->is_out_of_memory = c->may_allocate;
		return false;
	}
	frame->a = from;
	frame->to = to;
	frame->left = count;
	return true;
}

/* ---- the size of the keys of a map ---- */

/* The parts of a term; returns their number. */
static size_t parts_of(struct tw_term t, const struct tw_term **parts)
{
	if (tw_is_cons(t)) {
		*parts = &tw_cell(t)->head;
		return 2;
	}
	if (!tw_is_tuple(t) && !tw_is_map(t))
		return 0;
	*parts = tw_elements(t);
	return tw_is_map(t) ? 2 * tw_block_size(t) : tw_block_size(t);
}

/* For a map, copying takes two frames where this walk takes one. */
static bool has_depth(const struct copying *c, size_t bottom)
{
	return c->may_allocate || bottom + 2 * (c->walk.depth - bottom) <= TW_TERM_DEPTH_FIXED;
}

/* True if the terms fit whole, after @bytes of the budget are used, and on the stack. */
static bool do_fit(struct copying *c, const struct tw_term *terms, size_t count, size_t bytes)
{
	size_t bottom = c->walk.depth;
	bool fits = push(c, terms, NULL, count) && has_depth(c, bottom);

	while (fits && c->walk.depth > bottom) {
		struct tw_walk_frame *frame = tw_walk_top(&c->walk);
		struct tw_term t = *frame->a++;
		const struct tw_term *parts = NULL;
		size_t part_count;

		if (--frame->left == 0)
			c->walk.depth--;
		if (tw_is_cons(t))
			bytes += sizeof(struct tw_cell);
		else if (tw_is_block(t))
			bytes += rounded(block_bytes(t));
		part_count = parts_of(t, &parts);
		fits = bytes <= c->budget_bytes && push(c, parts, NULL, part_count) && has_depth(c, bottom);
	}
	c->walk.depth = bottom;
	return fits && bytes <= c->budget_bytes;
}

/* ---- copying ---- */

static struct tw_term cut(struct copying *c)
{
	c->is_cut = true;
	return tw_atom(TW_ATOM_CUT);
}

/* Allocates a block within the budget; NULL if it does not fit. */
static void *take(struct copying *c, size_t bytes)
{
	void *block;

	if (rounded(bytes) > c->budget_bytes)
		return NULL;
	block = tw_arena_take(c->arena, bytes);
	if (!block) {
		c->is_out_of_memory = true;
		return NULL;
	}
	c->budget_bytes -= rounded(bytes);
	return block;
}

/* {'...', FirstBytes, Size}, with as many bytes as fit. */
static struct tw_term cut_bits(struct copying *c, struct tw_term t)
{
	struct tw_term parts[3], tuple;
	size_t bytes;

	cut(c);
	if (c->budget_bytes < 32 + 16)
		return tw_atom(TW_ATOM_CUT);
	bytes = ((c->budget_bytes - 32) & ~(size_t)15) - 8;
	parts[0] = tw_atom(TW_ATOM_CUT);
	parts[1] = tw_term_binary(c->arena, tw_bits_data(t), bytes);
	parts[2] = tw_small((int64_t)tw_block_size(t));
	tuple = tw_term_tuple(c->arena, parts, 3);
	if (tw_term_is_none(tuple)) {
		c->is_out_of_memory = true;
		return parts[0];
	}
	c->budget_bytes -= 32 + rounded(8 + bytes);
	return tuple;
}

static struct tw_term copy_map(struct copying *c, struct tw_term t)
{
	const struct tw_term *from = tw_elements(t);
	size_t count = tw_block_size(t);
	struct tw_term *to;
	uint64_t *block;

	/* The frame of the values lies below that of the keys. */
	if (!push(c, from + count, NULL, count))
		return cut(c);
	if (!do_fit(c, from, count, rounded(block_bytes(t))) || !(block = take(c, block_bytes(t)))) {
		c->walk.depth -= count != 0;
		return cut(c);
	}
	block[0] = *tw_block(t);
	to = (struct tw_term *)(block + 1);
	if (count == 0)
		return tw_term_of_block(block);
	tw_walk_top(&c->walk)->to = to + count;
	TW_ASSERT(push(c, from, to, count));
	return tw_term_of_block(block);
}

static struct tw_term copy_cell(struct copying *c, struct tw_term t)
{
	struct tw_cell *cell = take(c, sizeof *cell);

	if (!cell || !push(c, &tw_cell(t)->head, &cell->head, 2))
		return cut(c);
	return tw_term_of_cell(cell);
}

static struct tw_term copy_one(struct copying *c, struct tw_term t)
{
	uint64_t *block;

	if (tw_is_cons(t))
		return copy_cell(c, t);
	if (!tw_is_block(t))
		return t;
	if (tw_is_map(t))
		return copy_map(c, t);
	block = take(c, block_bytes(t));
	if (!block)
		return tw_is_bits(t) ? cut_bits(c, t) : cut(c);
	if (!tw_is_tuple(t)) {
		memcpy(block, tw_block(t), block_bytes(t));
		return tw_term_of_block(block);
	}
	block[0] = *tw_block(t);
	if (!push(c, tw_elements(t), (struct tw_term *)(block + 1), tw_block_size(t)))
		return cut(c);
	return tw_term_of_block(block);
}

TW_API int tw_term_copy(struct tw_arena *arena, struct tw_term term, size_t max_bytes, struct tw_term *out)
{
	struct copying c;
	struct tw_walk_frame *frame;
	struct tw_term copy;

	c.arena = arena;
	c.may_allocate = !arena->fixed || arena->cap_bytes > arena->held_bytes;
	c.budget_bytes = max_bytes;
	if (!c.may_allocate && (size_t)(arena->end - arena->at) < max_bytes)
		c.budget_bytes = (size_t)(arena->end - arena->at);
	c.is_cut = false;
	c.is_out_of_memory = false;
	tw_walk_init(&c.walk);
	copy = copy_one(&c, term);
	while (!c.is_out_of_memory && (frame = tw_walk_top(&c.walk))) {
		struct tw_term part = *frame->a++, *to = frame->to++;

		if (--frame->left == 0)
			c.walk.depth--;
		*to = copy_one(&c, part);
	}
	tw_walk_fini(&c.walk);
	if (c.is_out_of_memory)
		return TW_ENOMEM;
	*out = copy;
	return c.is_cut;
}
