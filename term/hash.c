/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash.c - a hash that does not depend on addresses or atom indices.
 *
 * It goes no deeper than TW_TERM_DEPTH_FIXED levels, so it needs no memory; terms that differ only below that hash
 * alike.  Parts are visited in the order of compare.c.  Every block begins with its kind and size, so [[a],b] and
 * [[a,b]] differ.
 */
#include "term/walk.h"
#include "base/export.h"
#include "base/map.h"

static uint64_t hash_atom(struct tw_term atom, uint64_t hash)
{
	/* None stands for the local node in pids, ports and references. */
	return tw_hash_word(hash, tw_is_atom(atom) ? tw_atom_entry(tw_atom_index(atom))->hash : 1);
}

static uint64_t hash_leaf(struct tw_term t, uint64_t hash)
{
	const uint64_t *block = tw_block(t);
	const struct tw_block_identifier *identifier = (const struct tw_block_identifier *)block;
	const struct tw_block_fun *fun = (const struct tw_block_fun *)block;
	size_t size = tw_header_size(*block);

	switch (tw_header_kind(*block)) {
	case TW_BLOCK_BIG:
	case TW_BLOCK_FLOAT: return tw_hash_bytes(block + 1, size * 8, hash);
	case TW_BLOCK_BITS: return tw_hash_bytes(block + 1, size, hash);
	case TW_BLOCK_EXPORT: return hash_atom(tw_word(block[2]), hash_atom(tw_word(block[1]), hash));
	case TW_BLOCK_FUN: return tw_hash_bytes(fun->etf, size, hash_atom(fun->module, hash));
	default:
		hash = tw_hash_word(hash_atom(identifier->node, hash), identifier->creation);
		return tw_hash_bytes(identifier->words, size * sizeof(uint32_t), hash);
	}
}

static void push(struct tw_walk *walk, const struct tw_term *parts, size_t count)
{
	struct tw_walk_frame *frame = count ? tw_walk_push(walk, false) : NULL;

	if (frame) {
		frame->a = parts;
		frame->left = count;
	}
}

static uint64_t hash_one(struct tw_walk *walk, struct tw_term t, uint64_t hash)
{
	switch (tw_tag(t)) {
	case TW_TAG_ATOM: return hash_atom(t, tw_hash_word(hash, TW_TAG_ATOM));
	case TW_TAG_CONS: push(walk, &tw_cell(t)->head, 2); return tw_hash_word(hash, TW_TAG_CONS);
	case TW_TAG_BLOCK: break;
	default: return tw_hash_word(hash, t.word);
	}
	hash = tw_hash_word(hash, *tw_block(t));
	if (tw_is_tuple(t)) {
		push(walk, tw_elements(t), tw_block_size(t));
		return hash;
	}
	if (tw_is_map(t)) {
		push(walk, tw_elements(t), 2 * tw_block_size(t));
		return hash;
	}
	return hash_leaf(t, hash);
}

TW_API uint64_t tw_term_hash(struct tw_term term)
{
	struct tw_walk walk;
	struct tw_walk_frame *frame;
	uint64_t hash = 0;

	tw_walk_init(&walk);
	for (;;) {
		hash = hash_one(&walk, term, hash);
		frame = tw_walk_top(&walk);
		if (!frame)
			return hash ^ hash >> 32;
		term = *frame->a++;
		if (--frame->left == 0)
			walk.depth--;
	}
}
