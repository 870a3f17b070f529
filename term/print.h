/* SPDX-License-Identifier: Apache-2.0 */
/* print.h - pieces of printed text, shared by files of this room. */
#ifndef TW_TERM_PRINT_H
#define TW_TERM_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each of 255 characters may take four bytes, plus two quotes. */
#define TW_ATOM_PRINTED_BYTES_MAX (255 * 4 + 2)

/* The shortest text of a float has at most 17 digits, plus a sign, a point and an exponent. */
#define TW_FLOAT_PRINTED_BYTES_MAX 32

/* Writes a character for use between @quote marks, escaped if necessary; at most 4 bytes.  Returns their number. */
size_t tw_print_quoted(char *at, uint32_t character, char quote);

/*
 * Writes an atom as Erlang text, quoted if necessary.
 *
 * @name	valid UTF-8 of at most 255 characters.
 * @at		a buffer of TW_ATOM_PRINTED_BYTES_MAX.
 */
size_t tw_print_atom_name(const char *name, size_t bytes, char *at);

/* True for Erlang's reserved words, which need quotes as atoms. */
bool tw_is_reserved_word(const char *name, size_t bytes);

/*
 * Writes the shortest text that reads back as the same double, with a point, as float_to_list(F, [short]).
 *
 * @at		a buffer of TW_FLOAT_PRINTED_BYTES_MAX.
 */
size_t tw_print_float(char *at, double value);

/* Writes an unsigned integer in decimal, at most 20 digits. */
size_t tw_print_uint64(char *at, uint64_t value);

#endif
