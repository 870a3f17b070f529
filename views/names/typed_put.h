/* SPDX-License-Identifier: Apache-2.0 */
/*
 * typed_put.h - single values in each form of typed.h, for typed.c (arguments, results) and typed_call.c (what calls have filled).
 */
#ifndef TW_VIEWS_TYPED_PUT_H
#define TW_VIEWS_TYPED_PUT_H

#include "views/names/typed.h"

#include "tracewheel/layout.h"

/* A number as its type says: bits of a register above the type's size are undefined. */
uint64_t tw_typed_unsigned(const struct tw_layout_value *value, uint64_t word);
int64_t tw_typed_signed(const struct tw_layout_value *value, uint64_t word);
/* The number of an enumeration, and its name; NULL: it has none. */
int64_t tw_typed_enum(const struct tw_layout_value *value, uint64_t word);
const char *tw_typed_enumerator(const struct tw_layout_value *value, uint64_t word);
/* Is enough known of the fields of a structure? */
bool tw_typed_has_fields(const struct tw_layout_item *item);
/* Has the payload of a return an error, or anything that the call has filled? */
bool tw_typed_has_more(const struct tw_layout *layout, const uint64_t *words, uint32_t count);
/* A string, or memory; that of a socket's address as people write it, in `address`.  NULL: it has no text. */
#define TW_TYPED_ADDRESS_BYTES 160
const char *tw_typed_text(const struct tw_layout_item *item, char address[TW_TYPED_ADDRESS_BYTES], size_t *bytes);
/* A byte between quotes; @escape: the format of those that are no printable ASCII and have no escape of their own. */
void tw_typed_put_char(struct tw_out *out, const char *escape, unsigned char c);

void tw_typed_put_item(struct tw_out *out, enum tw_typed_form form, const struct tw_layout_item *item);
/* A string, or memory, between quotes; its address if it has no text. */
void tw_typed_put_string(struct tw_out *out, enum tw_typed_form form, const struct tw_layout_item *item);
/* What a call has filled. */
void tw_typed_put_content(struct tw_out *out, enum tw_typed_form form, const struct tw_layout_item *item);
void tw_typed_put_unknown(struct tw_out *out, enum tw_typed_form form);
/* errno by its name. */
void tw_typed_put_error(struct tw_out *out, enum tw_typed_form form, int error);
/* A result, its error, and what the call has filled; @result is of tw_layout_result(). False: there is nothing to show. */
bool tw_typed_put_result(struct tw_out *out, enum tw_typed_form form, const struct tw_layout *layout,
			 const struct tw_layout_item *result, const uint64_t *words, uint32_t count);

#endif
