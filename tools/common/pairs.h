/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pairs.h - `--pair 'NEW($SIZE)=FREE($BLOCK)'`: functions of a program that allocate and free, for views of memory.
 *
 * Both are patterns of functions. $SIZE and $BLOCK are numbers of arguments; without the first a block counts as one byte, without the
 * second the first argument is what is freed.
 */
#ifndef TW_TOOLS_PAIRS_H
#define TW_TOOLS_PAIRS_H

#include "tools/common/patterns.h"
#include "views/folds/memory.h"

enum { TW_KEY_PAIR = 544, TW_PAIRS_MAX = TW_MEMORY_FUNCTIONS_MAX / 2 };

/* A row for a command's table of options. */
#define TW_PAIR_OPTION                                                                                                        \
	{                                                                                                                     \
		TW_KEY_PAIR, "pair", "NEW($N)=FREE",                                                                          \
			"--memory: follow these functions, not malloc and its kin: NEW returns a block of as\n"               \
			"many bytes as its argument N says (1 without it), FREE takes it as its first\n"                      \
			"argument, or FREE($N); recorded with --returns --args=raw --stack; may be repeated (docs/memory.md)" \
	}

/* Zeroed at first; tw_pairs_free() ends it. */
struct tw_pairs {
	struct tw_patterns patterns; /* by number of a function */
	struct tw_memory_function list[2 * TW_PAIRS_MAX];
	struct tw_memory_functions functions;
};

/* Adds a pair. False: it is none, which has been reported. */
bool tw_pairs_take(struct tw_pairs *pairs, const struct tw_command *command, const char *text);
/* NULL: there are none. Lends until the next one. */
const struct tw_memory_functions *tw_pairs_functions(struct tw_pairs *pairs);
void tw_pairs_free(struct tw_pairs *pairs);

#endif
