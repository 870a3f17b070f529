/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layouts.h - from debug information to what a program is told of the arguments to record.
 *
 * Enters: the program's file, the patterns.  Leaves: the text for the agents (a module's line, then its
 * functions': tracewheel/consumer.h's `layouts`; modules without any as well: they were looked at), and sentences about modules without debug information.
 */
#ifndef TW_TOOLS_LAYOUTS_H
#define TW_TOOLS_LAYOUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tw_layouts {
	char *text; /* NULL: none */
	size_t bytes, room;
	size_t function_count;
	/* Functions that patterns name, but with another number of arguments: how many, and the number of one of them. */
	size_t other_count;
	uint32_t other_arity;
	bool is_for_arities; /* set before: only for patterns that ask for a number of arguments */
	char problem[4400];  /* of the first module that patterns name and that has no debug information; "" */
	bool has_others;     /* a pattern names a module that is none of the program's: it may be opened later */
	const int *stop;     /* another thread raises it: no more functions; NULL: nobody does */
};

/*
 * tw_layouts_find - the functions of a program, and of the libraries it needs, that patterns name.
 *
 * @config	borrows: lines, of which those that begin with "pattern ", "exclude " or "alias " count; without the first: all
 *		functions.
 * @layouts	zeroed at first; tw_layouts_free() ends it.
 * Says what is missing, unless @is_quiet: arguments are raw words then.
 */
void tw_layouts_find(const char *program, const char *config, bool is_quiet, struct tw_layouts *layouts);

/*
 * tw_layouts_find_file - the same of one file, that a program has opened; the libraries it needs are not looked at.
 *
 * @known	borrows: modules that were looked at before are not again.
 * Says nothing: @layouts has the first problem.  False: patterns do not name it, it is known, or cannot be read.
 */
bool tw_layouts_find_file(const char *path, const char *config, const struct tw_layouts *known,
			  struct tw_layouts *layouts);

/* Appends to the text.  False: no memory. */
bool tw_layouts_append(struct tw_layouts *layouts, const char *text, size_t bytes);
void tw_layouts_free(struct tw_layouts *layouts);

#endif
