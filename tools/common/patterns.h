/* SPDX-License-Identifier: Apache-2.0 */
/* patterns.h - the functions that a command is about: those that -t names, without those that -N names. */
#ifndef TW_TOOLS_PATTERNS_H
#define TW_TOOLS_PATTERNS_H

#include "tracewheel/pattern.h"

#include <stdbool.h>
#include <stddef.h>

/* The row of a command's table of options. */
#define TW_EXCLUDE_OPTION                                                                \
	{                                                                                \
		'N', "exclude", "PATTERN", "but not these functions; may be given often" \
	}

struct tw_patterns {
	struct tw_pattern **wanted; /* none: all functions */
	size_t wanted_count;
	struct tw_pattern **excluded;
	size_t excluded_count;
};

/* What patterns are held against; strings may be NULL. */
struct tw_patterns_subject {
	const char *module, *path, *soname;
	const char *alias; /* what the program was called, where that is not its file's name */
	const char *function;
	uint32_t arity;
};

struct tw_command;

/* Zeroed at first; tw_patterns_free() ends it. */
void tw_patterns_free(struct tw_patterns *patterns);
/* -t, or -N.  False: it is no pattern, which is said. */
bool tw_patterns_take(struct tw_patterns *patterns, const struct tw_command *command, bool is_excluded,
		      const char *text);
/* The same text with a module that is a path from here on as one from the root: free().  NULL: no memory. */
char *tw_patterns_absolute(const char *text);
/* The lines `pattern TEXT` and `exclude TEXT` of a configuration.  False: no memory. */
bool tw_patterns_read(struct tw_patterns *patterns, const char *config);

/* Is it wanted, and not excluded? */
bool tw_patterns_match(const struct tw_patterns *patterns, const struct tw_patterns_subject *subject);
/* Does one pattern match, in any of the names that a module has? */
bool tw_pattern_is(const struct tw_pattern *pattern, const struct tw_patterns_subject *subject, const char *demangled);
bool tw_pattern_is_module(const struct tw_pattern *pattern, const struct tw_patterns_subject *subject);
/* Does any of them, wanted or not, ask for a number of arguments? */
bool tw_patterns_have_arity(const struct tw_patterns *patterns);

/*
 * tw_patterns_alias - what a program is called by a name that leads to its file: "redis-server" of "redis-check-rdb".
 *
 * @typed	how it was started, with or without folders.
 * Lends the end of @typed; NULL: that is the file's own name.
 */
const char *tw_patterns_alias(const char *typed, const char *file);

#endif
