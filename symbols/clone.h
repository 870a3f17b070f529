/* SPDX-License-Identifier: Apache-2.0 */
/* clone.h - suffixes that compilers append to the names of parts and special versions of functions. */
#ifndef TW_SYMBOLS_CLONE_H
#define TW_SYMBOLS_CLONE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* The first suffix in a linkage name; NULL: none. */
static inline const char *tw_sym_clone_suffix(const char *name)
{
	static const char *const marks[] = {".cold", ".part.", ".isra.", ".constprop.", ".lto_priv.", ".llvm."};
	const char *found = NULL;

	/* Patterns ask for each function: most names have no point. */
	if (!strchr(name, '.'))
		return NULL;
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
		const char *at = strstr(name, marks[i]);

		if (at && at > name && (!found || at < found))
			found = at;
	}
	return found;
}

/* Is it a part or a special version, whose arguments may be others?  Link-time optimization only renames functions. */
static inline bool tw_sym_is_special_clone(const char *name)
{
	static const char *const marks[] = {".cold", ".part.", ".isra.", ".constprop."};

	for (size_t i = 0; i < sizeof marks / sizeof *marks && strchr(name, '.'); i++)
		if (strstr(name, marks[i]))
			return true;
	return false;
}

#endif
