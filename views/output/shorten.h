/* SPDX-License-Identifier: Apache-2.0 */
/* shorten.h - shortens names of functions to the width of a column: see shorten.c. */
#ifndef TW_VIEWS_SHORTEN_H
#define TW_VIEWS_SHORTEN_H

#include <stddef.h>

/* Limits of a column's width. */
#define TW_NAME_SHORT_BYTES 4096
#define TW_NAME_WIDTH_MIN   8

/* MODULE:FUNCTION/ARITY, or another name, in at most `width` bytes. */
void tw_name_shorten(const char *name, size_t width, char *out, size_t capacity);
/* The same for the names of one table: different names stay different. tw_names_shorten_free(); NULL: no memory. */
char **tw_names_shorten(const char *const *names, size_t count, size_t width);
/* Leaves out template arguments of the standard library that are the default; in place. */
void tw_name_drop_defaults(char *name);
void tw_names_shorten_free(char **texts, size_t count);

#endif
