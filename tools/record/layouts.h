/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layouts.h - derives the layouts of arguments to record from debug information.
 *
 * Input: the program's file, the patterns. Output: the text for the agents (for each module that was read a line,
 * then the lines of its functions: tracewheel/consumer.h's `layouts`), and sentences about modules without debug
 * information. A line `c NUMBER` is no line for agents: the functions behind it have that condition.
 */
#ifndef TW_TOOLS_LAYOUTS_H
#define TW_TOOLS_LAYOUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tw_prototypes;

struct tw_layouts {
	char *text; /* NULL: none */
	size_t bytes, capacity;
	size_t function_count;
	/*
	 * Functions that patterns name with another number of arguments: their count, and the number of arguments of
	 * one of them.
	 */
	size_t other_count;
	uint32_t other_arity;
	bool is_for_arities;			/* input: only for patterns that specify a number of arguments */
	bool hides_strings;			/* input: --no-strings: what arguments point to is not read */
	const struct tw_prototypes *prototypes; /* input: of functions without debug information; NULL: none */
	size_t bare_count;			/* functions that patterns name of which nothing is known */
	char problem[4400]; /* of the first module that patterns name and that has no debug information; "" */
	bool has_others;    /* a pattern names a module that the program does not have: it may be opened
			      * later */
	const int *stop;    /* set by another thread to end the search; NULL: never */
};

/*
 * tw_layouts_find - find the functions of a program, and of the libraries it needs, that patterns name.
 *
 * @config	borrows: lines, of which those that begin with "pattern ", "if ", "exclude " or "alias " count; without a
 *		"pattern ": all functions.
 * @layouts	zeroed at first; tw_layouts_free() ends it.
 *
 * Reports what is missing, unless @is_quiet: then arguments are raw words.
 */
void tw_layouts_find(const char *program, const char *config, bool is_quiet, struct tw_layouts *layouts);

/*
 * tw_layouts_find_file - the same for one file that a program has opened, without the libraries it needs.
 *
 * @known	borrows: modules that were read before are skipped.
 *
 * Reports nothing: @layouts has the first problem. False: patterns do not name it, it is known, or cannot be read.
 */
bool tw_layouts_find_file(const char *path, const char *config, const struct tw_layouts *known,
			  struct tw_layouts *layouts);

struct tw_patterns;
struct tw_symbols;
struct tw_symbols_object;

/* The line of a module; of a function of the last one, by its value. False: no memory. */
bool tw_layouts_put_module(struct tw_layouts *layouts, const struct tw_symbols_object *object);
bool tw_layouts_put_function(struct tw_layouts *layouts, uint64_t value, const char *layout);

/* Adds the probes of one object that patterns select and prototypes describe; layout_probes.c. TW_ENOMEM. */
int tw_layouts_take_probes(struct tw_layouts *layouts, const struct tw_symbols *symbols, size_t index,
			   const struct tw_patterns *patterns);

/* Can patterns name functions of the file, by its name alone?  @is_for_arities: as of struct tw_layouts. */
bool tw_layouts_are_wanted(const char *path, const char *config, bool is_for_arities);

/* Appends to the text.  False: no memory. */
bool tw_layouts_append(struct tw_layouts *layouts, const char *text, size_t bytes);
void tw_layouts_free(struct tw_layouts *layouts);

#endif
