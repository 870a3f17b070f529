/* SPDX-License-Identifier: Apache-2.0 */
/*
 * typed_put.h - single values in each form of typed.h, for typed.c (arguments, results), typed_numbers.c, and typed_call.c (what
 * calls have filled).
 */
#ifndef TW_VIEWS_TYPED_PUT_H
#define TW_VIEWS_TYPED_PUT_H

#include "views/names/typed.h"

#include "tracewheel/layout.h"

/* The destination of values: they are printed in a form, or made terms, which are Erlang's form. */
struct tw_typed {
	enum tw_typed_form form;
	struct tw_out *out; /* NULL: terms */
	struct tw_arena *arena;
	struct tw_term *items; /* values of the open lists and tuples, the inner ones last */
	uint32_t count, capacity;
};

static inline void tw_typed_put_text(struct tw_typed *typed, const char *text)
{
	if (typed->out)
		tw_out_text(typed->out, text);
}
static inline void tw_typed_reserve(struct tw_typed *typed)
{
	if (typed->out)
		tw_out_reserve(typed->out);
}
/* Bits of a register above the type's size are undefined. */
static inline uint64_t tw_typed_unsigned(const struct tw_layout_value *value, uint64_t word)
{
	return value->bytes && value->bytes < 8 ? word & ((UINT64_C(1) << 8 * value->bytes) - 1) : word;
}
static inline int64_t tw_typed_signed(const struct tw_layout_value *value, uint64_t word)
{
	unsigned unused = value->bytes && value->bytes < 8 ? 64 - 8 * value->bytes : 0;
	return (int64_t)(word << unused) >> unused;
}
/* Behind the values before; '_' in place of none, a name or number that Erlang does not have. */
void tw_typed_put_term(struct tw_typed *typed, struct tw_term term);
/* Erlang's form of a name, which of a plain one is the name. */
void tw_typed_put_atom(struct tw_typed *typed, const char *name);
/* Prints the bracket; the items from `start` on, a count of that time, are a tuple or a list. */
void tw_typed_close(struct tw_typed *typed, uint32_t start, const char *bracket);

/* typed_numbers.c.  @bytes: 4, in the low half of the first word, 8, or TW_LAYOUT_X87_BYTES, of which the first ten count. */
void tw_typed_put_float(struct tw_typed *typed, unsigned bytes, const uint64_t words[2]);
void tw_typed_put_wide(struct tw_typed *typed, bool is_signed, const uint64_t words[2]);

void tw_typed_put_item(struct tw_typed *typed, const struct tw_layout_item *item);
/* A string, or memory, between quotes; its address if it has no text. */
void tw_typed_put_string(struct tw_typed *typed, const struct tw_layout_item *item);
/* The memory that a call has filled. */
void tw_typed_put_content(struct tw_typed *typed, const struct tw_layout_item *item);
void tw_typed_put_unknown(struct tw_typed *typed);
/* errno by its name. */
void tw_typed_put_error(struct tw_typed *typed, int error);
/* A result, its error, and what the call has filled; @result is of tw_layout_result(). False: there is nothing to show. */
bool tw_typed_put_result(struct tw_typed *typed, const struct tw_layout *layout, const struct tw_layout_item *result,
			 const uint64_t *words, uint32_t count);

#endif
