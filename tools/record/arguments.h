/* SPDX-License-Identifier: Apache-2.0 */
/* arguments.h - names and types that --args and --when take from debug information. */
#ifndef TW_TOOLS_ARGUMENTS_H
#define TW_TOOLS_ARGUMENTS_H

#include "tools/record/config.h"
#include "tools/record/layouts.h"
#include "tools/record/prototypes.h"
#include "tools/record/when.h"

#include <stdint.h>

struct tw_command;

struct tw_arguments {
	bool is_wanted;			  /* --args */
	uint64_t string_bytes;		  /* 0: words only */
	struct tw_prototypes *prototypes; /* of functions without debug information; NULL: none are asked for */
	bool has_given;			  /* some are of the command line */
	bool has_arities;		  /* patterns specify a number of arguments */
	struct tw_guard *guards;	  /* the conditions that contain names */
	size_t guard_count;
	struct tw_layouts layouts; /* for the agents */
};

/* The value of --args, or NULL; may be given several times. False: it is not valid, which has been reported. */
bool tw_arguments_set(struct tw_arguments *arguments, const struct tw_command *command, const char *value);

/* A file of --prototypes. */
bool tw_arguments_set_file(struct tw_arguments *arguments, const struct tw_command *command, const char *path);
/* --syscalls: all functions of the prototypes of system calls, as patterns for @config. False: reported. */
bool tw_arguments_set_syscalls(struct tw_arguments *arguments, struct tw_config *config);
void tw_arguments_free(struct tw_arguments *arguments);

/*
 * tw_arguments_find - read layouts from the debug information of the program and the libraries it needs, and from prototypes.
 *
 * @config	has the patterns; lines are added.
 *
 * Reports what is missing. False: there is no memory.
 */
bool tw_arguments_find(struct tw_arguments *arguments, const char *program, struct tw_config *config, bool is_quiet);

/* If patterns specify a number of arguments: reads those of the functions. False: there is no memory. */
bool tw_arguments_find_arities(struct tw_arguments *arguments, const char *program, const struct tw_config *config);

/* One more condition with names. False: there is no memory, which has been reported. */
bool tw_arguments_add_guard(struct tw_arguments *arguments, const struct tw_guard *guard);
/* The same for the guards. False: one is refused, which has been reported. */
bool tw_arguments_find_guards(struct tw_arguments *arguments, const struct tw_command *command, const char *program,
			      const struct tw_config *config, bool is_quiet);

/* Conditions of triggers, whose patterns and numbers are in a configuration of their own.  All borrow. */
struct tw_triggers_search {
	const struct tw_guard *guards;
	size_t count;
	const struct tw_command *command;
	const char *program, *config;
	bool is_quiet;
};
/* As tw_arguments_find_guards(); functions of objects that are opened later have none of these. */
bool tw_arguments_find_triggers(struct tw_arguments *arguments, const struct tw_triggers_search *triggers);

/* Must any of this be looked up in objects that the program opens later? Then agents ask for it. */
bool tw_arguments_config_late(const struct tw_arguments *arguments, struct tw_config *config);

#endif
