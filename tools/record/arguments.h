/* SPDX-License-Identifier: Apache-2.0 */
/* arguments.h - what --args and --when ask for, by names and types that debug information has. */
#ifndef TW_TOOLS_ARGUMENTS_H
#define TW_TOOLS_ARGUMENTS_H

#include "tools/record/config.h"
#include "tools/record/layouts.h"

#include <stdint.h>

struct tw_command;

struct tw_arguments {
	bool is_wanted;		   /* --args */
	uint64_t string_bytes;	   /* 0: words only */
	bool has_arities;	   /* patterns ask for a number of arguments */
	const char *guard;	   /* of --when, with names in it; borrows; NULL: none */
	struct tw_layouts layouts; /* for the agents */
};

/* The value of --args, or NULL.  False: it is none, which is said. */
bool tw_arguments_set(struct tw_arguments *arguments, const struct tw_command *command, const char *value);

/*
 * tw_arguments_find - look into the program, and the libraries it needs, for what was asked for.
 *
 * @config	has the patterns; lines are added.
 * Says what is missing.  False: there is no memory.
 */
bool tw_arguments_find(struct tw_arguments *arguments, const char *program, struct tw_config *config, bool is_quiet);

/* Where patterns ask for a number of arguments: how many the functions have.  False: there is no memory. */
bool tw_arguments_find_arities(struct tw_arguments *arguments, const char *program, const struct tw_config *config);

/* The same for the guard.  False: it is refused, which is said. */
bool tw_arguments_find_guard(struct tw_arguments *arguments, const struct tw_command *command, const char *program,
			     struct tw_config *config, bool is_quiet);

/* Is anything of this to be looked up in what the program opens later?  Then the agents ask. */
bool tw_arguments_config_late(const struct tw_arguments *arguments, struct tw_config *config);

#endif
