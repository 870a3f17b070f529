/* SPDX-License-Identifier: Apache-2.0 */
/* near.h - what a misspelled name may have meant. */
#ifndef TW_TOOLS_NEAR_H
#define TW_TOOLS_NEAR_H

#include <stdbool.h>
#include <stddef.h>

struct tw_pattern;
struct tw_symbols;

struct tw_near {
	const char *wanted;
	char best[128]; /* "": nothing is near */
	size_t distance;
};

/* One of the names that there are: kept if none was nearer.  Zeroed at first, but for wanted. */
void tw_near_see(struct tw_near *near, const char *name);

/*
 * tw_near_library - is a library installed that the module of a pattern names?
 *
 * Looks where the loader does, beside the objects that are loaded, and in the current folder.
 */
bool tw_near_library(const struct tw_symbols *symbols, const struct tw_pattern *pattern);

#endif
