/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.c - Erlang's term order.
 *
 * Walks two terms in lock-step. compare_here() decides what two words or block heads can decide, and pushes a frame for
 * parts that must be compared in turn; the first difference ends the walk.  A frame with one part left is popped before
 * that part is compared, so the length of a list adds no depth.
 *
 * Identifiers are ordered as in OTP: pids by serial, number, then node; ports and references by node, then number.  A
 * node is its name, then its creation; the local node, whose name is unknown here, counts as 'nonode@nohost'.
 */
#include "term/integer.h"
#include "term/walk.h"
#include "base/export.h"

static int order_of(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_bytes(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
	size_t common = a_bytes < b_bytes ? a_bytes : b_bytes;
	int order = common ? memcmp(a, b, common) : 0;

	return order ? order : order_of(a_bytes, b_bytes);
}

static int compare_atoms(struct tw_term a, struct tw_term b)
{
	const struct tw_atom_entry *x, *y;

	if (a.word == b.word)
		return 0;
	x = tw_atom_entry(tw_atom_index(a));
	y = tw_atom_entry(tw_atom_index(b));
	return compare_bytes(x->name, x->name_bytes, y->name, y->name_bytes);
}

/* ---- numbers ---- */

/* Exact: -0.0 comes before 0.0; they differ since OTP 27. */
static int compare_floats(double a, double b, bool is_exact)
{
	uint64_t a_bits, b_bits;

	if (a != b || !is_exact)
		return (a > b) - (a < b);
	memcpy(&a_bits, &a, sizeof a_bits);
	memcpy(&b_bits, &b, sizeof b_bits);
	return order_of(b_bits, a_bits);
}

static int compare_numbers(struct tw_term a, struct tw_term b, bool is_exact)
{
	if (tw_is_float(a) && tw_is_float(b))
		return compare_floats(tw_float_value(a), tw_float_value(b), is_exact);
	if (!tw_is_float(a) && !tw_is_float(b))
		return tw_integer_compare(a, b);
	if (is_exact)
		return tw_is_float(a) ? 1 : -1;
	if (tw_is_float(a))
		return -tw_integer_compare_double(b, tw_float_value(a));
	return tw_integer_compare_double(a, tw_float_value(b));
}

/* ---- bit strings ---- */

static int compare_bits(struct tw_term a, struct tw_term b)
{
	/* Unused bits are 0, so a partial last byte never sorts after a byte that it is a prefix of. */
	size_t a_bytes = tw_block_size(a), b_bytes = tw_block_size(b), common = a_bytes < b_bytes ? a_bytes : b_bytes;
	int order = common ? memcmp(tw_bits_data(a), tw_bits_data(b), common) : 0;

	return order ? order : order_of(tw_bits_count(a), tw_bits_count(b));
}

/* ---- pids, ports, references, funs ---- */

static int compare_nodes(const struct tw_block_identifier *a, const struct tw_block_identifier *b)
{
	bool a_here = tw_term_is_none(a->node), b_here = tw_term_is_none(b->node);
	int order =
		compare_atoms(a_here ? tw_atom(TW_ATOM_NONODE) : a->node, b_here ? tw_atom(TW_ATOM_NONODE) : b->node);

	if (!order)
		order = order_of(a->creation, b->creation);
	/* An identifier read from text has no node, but may have another node's channel. */
	if (!order)
		order = a_here && b_here ? order_of(a->channel, b->channel) : order_of(b_here, a_here);
	return order;
}

/* Compares from the last word; the shorter one is extended with 0. */
static int compare_words(const struct tw_block_identifier *a, const struct tw_block_identifier *b)
{
	size_t a_count = tw_header_size(a->header), b_count = tw_header_size(b->header);
	size_t at = a_count > b_count ? a_count : b_count;

	while (at-- > 0) {
		uint32_t x = at < a_count ? a->words[at] : 0, y = at < b_count ? b->words[at] : 0;

		if (x != y)
			return x < y ? -1 : 1;
	}
	return order_of(a_count, b_count);
}

static int compare_identifiers(struct tw_term a, struct tw_term b)
{
	const struct tw_block_identifier *x = (const struct tw_block_identifier *)tw_block(a);
	const struct tw_block_identifier *y = (const struct tw_block_identifier *)tw_block(b);
	bool is_pid = tw_header_kind(x->header) == TW_BLOCK_PID;
	int order = is_pid ? compare_words(x, y) : compare_nodes(x, y);

	if (order)
		return order;
	return is_pid ? compare_nodes(x, y) : compare_words(x, y);
}

/* Opaque funs come before fun M:F/A. */
static int compare_funs(struct tw_term a, struct tw_term b)
{
	const struct tw_block_fun *x, *y;
	int order;

	if (tw_is_kind(a, TW_BLOCK_EXPORT) != tw_is_kind(b, TW_BLOCK_EXPORT))
		return tw_is_kind(a, TW_BLOCK_EXPORT) ? 1 : -1;
	if (tw_is_kind(a, TW_BLOCK_EXPORT)) {
		order = compare_atoms(tw_word(tw_block(a)[1]), tw_word(tw_block(b)[1]));
		if (!order)
			order = compare_atoms(tw_word(tw_block(a)[2]), tw_word(tw_block(b)[2]));
		return order ? order : order_of(tw_block_size(a), tw_block_size(b));
	}
	x = (const struct tw_block_fun *)tw_block(a);
	y = (const struct tw_block_fun *)tw_block(b);
	order = compare_atoms(x->module, y->module);
	if (!order)
		order = order_of(x->index, y->index);
	if (!order)
		order = order_of(x->uniq, y->uniq);
	return order ? order : compare_bytes(x->etf, tw_block_size(a), y->etf, tw_block_size(b));
}

/* ---- the walk ---- */

struct comparison {
	struct tw_walk walk;
	bool may_allocate;
	bool is_too_deep; /* set when a frame did not fit */
};

/* Pushes parts to be compared next, in order; returns 0 for now. */
static int push(struct comparison *c, const struct tw_term *a, const struct tw_term *b, size_t count, bool is_exact)
{
	struct tw_walk_frame *frame;

	if (count == 0)
		return 0;
	frame = tw_walk_push(&c->walk, c->may_allocate);
	if (!frame) {
		c->is_too_deep = true;
		return order_of((uintptr_t)a, (uintptr_t)b);
	}
	frame->a = a;
	frame->b = b;
	frame->left = count;
	frame->flag = is_exact;
	return 0;
}

static int compare_maps(struct comparison *c, struct tw_term a, struct tw_term b, bool is_exact)
{
	size_t count = tw_block_size(a);
	int order = order_of(count, tw_block_size(b));

	if (order)
		return order;
	order = push(c, tw_elements(a) + count, tw_elements(b) + count, count, is_exact);
	return order ? order : push(c, tw_elements(a), tw_elements(b), count, true);
}

static int compare_here(struct comparison *c, struct tw_term a, struct tw_term b, bool is_exact)
{
	enum tw_term_type a_type = tw_term_type(a), b_type = tw_term_type(b);
	int order;

	a_type = a_type == TW_TYPE_FLOAT ? TW_TYPE_INTEGER : a_type;
	b_type = b_type == TW_TYPE_FLOAT ? TW_TYPE_INTEGER : b_type;
	if (a_type != b_type)
		return a_type < b_type ? -1 : 1;
	switch (a_type) {
	case TW_TYPE_INTEGER: return compare_numbers(a, b, is_exact);
	case TW_TYPE_ATOM: return compare_atoms(a, b);
	case TW_TYPE_REFERENCE:
	case TW_TYPE_PORT:
	case TW_TYPE_PID: return compare_identifiers(a, b);
	case TW_TYPE_FUN: return compare_funs(a, b);
	case TW_TYPE_TUPLE:
		order = order_of(tw_block_size(a), tw_block_size(b));
		return order ? order : push(c, tw_elements(a), tw_elements(b), tw_block_size(a), is_exact);
	case TW_TYPE_MAP: return compare_maps(c, a, b, is_exact);
	case TW_TYPE_CONS: return push(c, &tw_cell(a)->head, &tw_cell(b)->head, 2, is_exact);
	case TW_TYPE_BITSTRING: return compare_bits(a, b);
	default: return 0;
	}
}

static int run(struct comparison *c, struct tw_term a, struct tw_term b, bool is_exact)
{
	struct tw_walk_frame *frame;
	int order;

	for (;;) {
		if (a.word != b.word) {
			if (tw_is_small(a) && tw_is_small(b))
				return (int64_t)a.word < (int64_t)b.word ? -1 : 1;
			order = compare_here(c, a, b, is_exact);
			if (order)
				return order;
		}
		frame = tw_walk_top(&c->walk);
		if (!frame)
			return 0;
		a = *frame->a++;
		b = *frame->b++;
		is_exact = frame->flag;
		if (--frame->left == 0)
			c->walk.depth--;
	}
}

static int compare(struct tw_term a, struct tw_term b, bool is_exact)
{
	struct comparison c;
	int order;

	if (a.word == b.word)
		return 0;
	tw_walk_init(&c.walk);
	c.may_allocate = true;
	c.is_too_deep = false;
	order = run(&c, a, b, is_exact);
	tw_walk_fini(&c.walk);
	return order;
}

TW_API int tw_term_compare(struct tw_term a, struct tw_term b)
{
	return compare(a, b, false);
}

TW_API int tw_term_compare_exact(struct tw_term a, struct tw_term b)
{
	return compare(a, b, true);
}

TW_API int tw_term_is_equal(struct tw_term a, struct tw_term b)
{
	return compare(a, b, true) == 0;
}

TW_API int tw_term_try_compare(struct tw_term a, struct tw_term b, int is_exact, int *order)
{
	struct comparison c;
	int result;

	tw_walk_init(&c.walk);
	c.may_allocate = false;
	c.is_too_deep = false;
	result = run(&c, a, b, is_exact);
	if (c.is_too_deep)
		return TW_ELIMIT;
	*order = result;
	return 0;
}
