/* SPDX-License-Identifier: Apache-2.0 */
/*
 * typed_put.h - single values in each form of typed.h, for typed.c (arguments, results) and typed_call.c (what calls have filled).
 */
#ifndef TW_VIEWS_TYPED_PUT_H
#define TW_VIEWS_TYPED_PUT_H

#include "views/names/typed.h"

#include "tracewheel/layout.h"

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
