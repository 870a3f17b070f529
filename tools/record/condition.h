/* SPDX-License-Identifier: Apache-2.0 */
/*
 * condition.h - which calls of a function are recorded: those of which -t 'PATTERN if EXPR' says so, or else --when, or --match.
 *
 * Messages go to standard error.  Threads  the command's.
 */
#ifndef TW_TOOLS_CONDITION_H
#define TW_TOOLS_CONDITION_H

#include "tools/common/patterns.h"
#include "tools/record/config.h"

#include <stdbool.h>
#include <stdint.h>

struct tw_arguments;
struct tw_command;

/* Zeroed at first; tw_conditions_free() ends it. */
struct tw_conditions {
	struct tw_patterns asked; /* -t, with conditions */
	const char **texts;	  /* the different ones of these; number N is [N - 1] */
	uint32_t count;
	const char *when, *match; /* borrow; NULL: none */
	/* Checked: */
	uint64_t least_ns; /* --longer, or one condition on the duration is all that there is; 0: neither */
	bool are_of_end;   /* how calls end decides, of all of them */
	bool name_exceptions;
	uint64_t longer_ns; /* --longer */
	bool have_children; /* --children */
	char **made;	    /* texts of these that the user did not write */
	size_t made_count;
};

/* Is it decided by how a call ends: by its duration, result, errno or exception? */
bool tw_condition_is_of_end(const char *text);

/* -t: adds the pattern to @config, and the number of its condition. False: reported. */
bool tw_conditions_take(struct tw_conditions *conditions, const struct tw_command *command, const char *pattern,
			struct tw_config *config);
/* --when and --match, which borrow. False: reported. */
bool tw_conditions_set_when(struct tw_conditions *conditions, const struct tw_command *command, const char *text);
bool tw_conditions_set_match(struct tw_conditions *conditions, const struct tw_command *command, const char *text);
/* Can all be decided in the program, and when? @longer_ns: of --longer; 0: not given. False: reported. */
bool tw_conditions_check(struct tw_conditions *conditions, const struct tw_command *command, uint64_t longer_ns);
/* Does a condition choose among calls, beyond their length? */
bool tw_conditions_are_there(const struct tw_conditions *conditions);
/* After a pattern by linkage name, which stands for one of -t: that one's condition. False: no memory. */
bool tw_conditions_take_linkage(const struct tw_conditions *conditions, const char *linkage, struct tw_config *config);

struct tw_conditions_target {
	const struct tw_command *command;
	struct tw_config *config;	/* lines are added */
	struct tw_arguments *arguments; /* get conditions with names */
	bool are_words;			/* the program declares no functions: arguments are the six integer registers */
};

/* False: one is refused, which has been reported. */
bool tw_conditions_config(struct tw_conditions *conditions, const struct tw_conditions_target *target);
void tw_conditions_free(struct tw_conditions *conditions);

#endif
