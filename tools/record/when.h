/* SPDX-License-Identifier: Apache-2.0 */
/* when.h - parameter names in --when, resolved by debug information. */
#ifndef TW_TOOLS_WHEN_H
#define TW_TOOLS_WHEN_H

#include "tools/record/layouts.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Does it contain names? Without names it is a guard over registers. */
bool tw_when_has_names(const char *guard);

/* A condition with names. */
struct tw_guard {
	const char *text; /* borrows */
	uint32_t number;  /* that of -t conditions, which lines `c` of the layouts say; 0: of --when */
	/*
	 * The end of the call decides: result, duration, errno and exception are values, which become $7 and up (pipeline/hit/condition.h), names of
	 * errors are numbers, and as many argument registers are kept until then.
	 */
	bool is_of_end;
	uint8_t kept_max;
	bool is_errno_typed; /* errno is of functions whose types are known */
};
/* The registers that a snapshot's condition keeps of a call, and one that decides what is recorded. */
#define TW_WHEN_KEPT_OF_SNAPSHOTS 3
#define TW_WHEN_KEPT_MAX	  6

/* Does it name this value? */
bool tw_when_names(const char *guard, const char *name);
/* Does it name anything whose type has to be known? */
bool tw_when_needs_types(const struct tw_guard *guard);

struct tw_when_left {
	size_t count;	  /* functions with debug information, but without the names of the guard */
	char reason[512]; /* of the first, or why there are no functions: a sentence without a full stop */
};

/*
 * tw_when_translate - translate a guard with the names of parameters and enumerators to one over registers for each
 * function.
 *
 * @layouts	of the functions that patterns name; borrows.
 * @guard	for those that have its number.
 * @guards	appended to: the text for the agents, a line `w VALUE NUMBER GUARD` for each function of a module.
 *
 * Returns the number of functions with a guard.
 */
size_t tw_when_translate(const struct tw_layouts *layouts, const struct tw_guard *guard, struct tw_layouts *guards,
			 struct tw_when_left *left);

/* The longest guard in the form for agents. */
#define TW_WHEN_TEXT_BYTES 16384

/*
 * tw_when_plain - the same for a guard without names: one for all functions.
 *
 * @are_words	the program declares no functions, so all arguments are the six integer registers.
 *
 * False: @reason says why it is refused.
 */
bool tw_when_plain(const struct tw_guard *guard, bool are_words, char text[TW_WHEN_TEXT_BYTES], char reason[512]);

/* Is the text a valid guard, whatever its names mean? False: @reason says why not. */
bool tw_when_check(const char *guard, char reason[512]);

#endif
