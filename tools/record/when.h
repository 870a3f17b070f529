/* SPDX-License-Identifier: Apache-2.0 */
/* when.h - the parameter names of --when, as debug information has them. */
#ifndef TW_TOOLS_WHEN_H
#define TW_TOOLS_WHEN_H

#include "tools/record/layouts.h"

#include <stdbool.h>
#include <stddef.h>

/* Are there any in it?  Without, it is a guard over registers as it stands. */
bool tw_when_has_names(const char *guard);

struct tw_when_left {
	size_t count;	  /* functions that have debug information, but not what the guard names */
	char reason[512]; /* of the first, or why there are none: a sentence without a full stop */
};

/*
 * tw_when_translate - a guard with the names of parameters and enumerators, as one over registers for each function.
 *
 * @layouts	of the functions that patterns name; borrows.
 * @guards	appended to: the text for the agents, a line `w VALUE GUARD` for each function of a module.
 *
 * Returns how many functions have one.
 */
size_t tw_when_translate(const struct tw_layouts *layouts, const char *guard, struct tw_layouts *guards,
			 struct tw_when_left *left);

/* The longest guard, as agents get it. */
#define TW_WHEN_TEXT_BYTES 16384

/*
 * tw_when_plain - the same of a guard without names: one for all functions.
 *
 * @are_words	no function is declared by the program itself, so all arguments are the six integer registers.
 *
 * False: @reason says why it is refused.
 */
bool tw_when_plain(const char *guard, bool are_words, char text[TW_WHEN_TEXT_BYTES], char reason[512]);

/* Is it one at all, whatever its names mean?  False: @reason says why not. */
bool tw_when_check(const char *guard, char reason[512]);

#endif
