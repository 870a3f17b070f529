/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trigger.h - --snapshot-on 'PATTERN' and 'PATTERN if EXPR': calls for which a flight recorder writes a snapshot.
 *
 * Messages go to standard error.  Threads  the command's.
 */
#ifndef TW_TOOLS_RECORD_TRIGGER_H
#define TW_TOOLS_RECORD_TRIGGER_H

#include "tools/common/patterns.h"
#include "tools/record/arguments.h"
#include "tools/record/config.h"

#include <stdbool.h>

struct tw_command;

/* Is the value of --snapshot-on a pattern? */
bool tw_trigger_is_pattern(const char *value);

/* Adds one, and to @config its pattern: its calls are recorded.  False: reported. */
bool tw_triggers_take(struct tw_patterns *triggers, const struct tw_command *command, const char *value,
		      struct tw_config *config);

struct tw_triggers_target {
	const struct tw_command *command;
	const char *program;		/* borrows */
	struct tw_arguments *arguments; /* get the conditions of each function, where types decide */
	struct tw_config *config;	/* lines for agents are added */
	bool is_quiet;
};
/* False: one is refused, which has been reported. */
bool tw_triggers_config(const struct tw_patterns *triggers, const struct tw_triggers_target *target);

#endif
