/* SPDX-License-Identifier: Apache-2.0 */
/* shorten.h - names of functions in a column that is too narrow for them: see shorten.c. */
#ifndef TW_TOOLS_SHORTEN_H
#define TW_TOOLS_SHORTEN_H

#include <stddef.h>

/* What fits a screen, and what still says something. */
#define TW_NAME_SHORT_BYTES 4096
#define TW_NAME_WIDTH_MIN   8

/* MODULE:FUNCTION/ARITY, or another name, in at most `width` bytes. */
void tw_name_shorten(const char *name, size_t width, char *out, size_t room);
/* The same of the names of one table: different ones stay different.  tw_names_shorten_free(); NULL without memory. */
char **tw_names_shorten(const char *const *names, size_t count, size_t width);
void tw_names_shorten_free(char **texts, size_t count);

#endif
