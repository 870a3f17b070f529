/* SPDX-License-Identifier: Apache-2.0 */
/* typed_numbers.h - floating-point numbers, and integers of two words, in each form of typed.h. */
#ifndef TW_VIEWS_TYPED_NUMBERS_H
#define TW_VIEWS_TYPED_NUMBERS_H

#include "views/names/typed.h"

/* @bytes	4 or 8; a float lies in the low half of its word. */
void tw_typed_put_float(struct tw_out *out, enum tw_typed_form form, unsigned bytes, uint64_t word);
/* A long double, in the first ten bytes. */
void tw_typed_put_x87(struct tw_out *out, enum tw_typed_form form, const uint64_t words[2]);
void tw_typed_put_wide(struct tw_out *out, bool is_signed, const uint64_t words[2]);

#endif
