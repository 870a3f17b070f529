/* SPDX-License-Identifier: Apache-2.0 */
/* print.h - pieces of printed text that other files of the room need too. */
#ifndef TW_TERM_PRINT_H
#define TW_TERM_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Every one of 255 characters may need four bytes, and two quotes. */
#define TW_ATOM_PRINTED_BYTES_MAX (255 * 4 + 2)

/* The shortest text of a float has 17 digits at most, a sign, a point and an exponent. */
#define TW_FLOAT_PRINTED_BYTES_MAX 32

/* A character as it stands between @quote marks: itself or an escape, at most 4 bytes.  Returns how many. */
size_t tw_print_quoted(char *at, uint32_t character, char quote);

/*
 * An atom as Erlang text, quoted where that is needed.
 *
 * @name	valid UTF-8 of at most 255 characters.
 * @at		room for TW_ATOM_PRINTED_BYTES_MAX.
 */
size_t tw_print_atom_name(const char *name, size_t bytes, char *at);

/* Whether the name is a reserved word of Erlang, which as an atom needs quotes. */
bool tw_is_reserved_word(const char *name, size_t bytes);

/*
 * The shortest text that reads back as the same double, with a point, as float_to_list(F, [short]).
 *
 * @at		room for TW_FLOAT_PRINTED_BYTES_MAX.
 */
size_t tw_print_float(char *at, double value);

/* An unsigned integer in decimal, at most 20 digits. */
size_t tw_print_uint64(char *at, uint64_t value);

#endif
