/* SPDX-License-Identifier: Apache-2.0 */
/* patterns.h - the functions that a command selects: those matched by -t, without those matched by -N. */
#ifndef TW_TOOLS_PATTERNS_H
#define TW_TOOLS_PATTERNS_H

#include "tracewheel/pattern.h"

#include <stdbool.h>
#include <stddef.h>

/* The row of a command's table of options. */
#define TW_EXCLUDE_OPTION                                                             \
	{                                                                             \
		'N', "exclude", "PATTERN", "but not these functions; may be repeated" \
	}

struct tw_patterns {
	struct tw_pattern **wanted; /* none: all functions */
	char **conditions;	    /* of each of these; NULL: it has none of its own */
	size_t wanted_count;
	bool has_conditions;
	struct tw_pattern **excluded;
	size_t excluded_count;
};

/* A function to match against patterns; strings may be NULL. */
struct tw_patterns_subject {
	const char *module, *path, *soname;
	const char *alias; /* the name that the program was started by, if it is not its file's */
	const char *function;
	uint32_t arity;
};

struct tw_command;

/* Zeroed at first; tw_patterns_free() ends it. */
void tw_patterns_free(struct tw_patterns *patterns);
/* Adds a pattern of -t or -N, or "PATTERN if CONDITION". False: it is no pattern, which has been reported. */
bool tw_patterns_take(struct tw_patterns *patterns, const struct tw_command *command, bool is_excluded,
		      const char *text);
/* The pattern with an absolute path, if its module is a relative one; to be freed. NULL: no memory. */
char *tw_patterns_absolute(const char *text);
/* The lines `pattern TEXT`, `if NUMBER`, which is the condition of the pattern before, and `exclude TEXT` of a configuration.  False: no memory. */
bool tw_patterns_read(struct tw_patterns *patterns, const char *config);

/* Is the function selected? */
bool tw_patterns_match(const struct tw_patterns *patterns, const struct tw_patterns_subject *subject);
/* The same, whatever is excluded. */
bool tw_patterns_select(const struct tw_patterns *patterns, const struct tw_patterns_subject *subject);
/* The number of the first pattern of -t that matches, which decides about conditions; wanted_count: none does. */
size_t tw_patterns_first(const struct tw_patterns *patterns, const struct tw_patterns_subject *subject);
/* The same for a linkage name, MODULE:FUNCTION. */
size_t tw_patterns_first_linkage(const struct tw_patterns *patterns, const char *linkage);
/* Does one pattern match, by any name of the module? */
bool tw_pattern_is(const struct tw_pattern *pattern, const struct tw_patterns_subject *subject, const char *demangled);
bool tw_pattern_is_module(const struct tw_pattern *pattern, const struct tw_patterns_subject *subject);
/* Does any pattern, of -t or -N, ask for a number of arguments? */
bool tw_patterns_have_arity(const struct tw_patterns *patterns);

/*
 * tw_patterns_alias - the name of a program that was started by another name than its file's: "redis-server" for the
 * file "redis-check-rdb".
 *
 * @typed	the name that it was started by, with or without folders.
 *
 * Lends the end of @typed; NULL: it is the file's own name.
 */
const char *tw_patterns_alias(const char *typed, const char *file);

#endif
