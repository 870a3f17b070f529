/* SPDX-License-Identifier: Apache-2.0 */
/* near.h - finds the name that a misspelled one may have meant. */
#ifndef TW_TOOLS_NEAR_H
#define TW_TOOLS_NEAR_H

#include <stdbool.h>
#include <stddef.h>

struct tw_pattern;
struct tw_symbols;

struct tw_near {
	const char *wanted;
	char best[128]; /* "": no name is near */
	size_t distance;
};

/* Considers one existing name: kept if none was nearer. Zeroed at first, except `wanted`. */
void tw_near_see(struct tw_near *near, const char *name);

/* The same for a name of C++ or Rust, by its last part: "deposit" is near "Account::deposit(int)". */
void tw_near_see_demangled(struct tw_near *near, const char *demangled);

/*
 * tw_near_library - is the library that a pattern's module names installed?
 *
 * Searches the folders that the loader searches, those of loaded objects, and the current folder.
 */
bool tw_near_library(const struct tw_symbols *symbols, const struct tw_pattern *pattern);

#endif
