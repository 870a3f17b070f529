/* SPDX-License-Identifier: Apache-2.0 */
/* typed_numbers.h - floating-point numbers, and integers of two words. */
#ifndef TW_VIEWS_TYPED_NUMBERS_H
#define TW_VIEWS_TYPED_NUMBERS_H

#include "views/names/typed.h"

#define TW_TYPED_FLOAT_BYTES 64

/*
 * The digits of a floating-point number, or "nan", "inf", "-inf": false.
 *
 * @bytes	4, in the low half of the first word, 8, or TW_LAYOUT_X87_BYTES, of which the first ten count.
 */
bool tw_typed_float_text(unsigned bytes, const uint64_t words[2], char text[TW_TYPED_FLOAT_BYTES]);
void tw_typed_put_float(struct tw_out *out, enum tw_typed_form form, unsigned bytes, const uint64_t words[2]);
void tw_typed_put_wide(struct tw_out *out, bool is_signed, const uint64_t words[2]);

#endif
