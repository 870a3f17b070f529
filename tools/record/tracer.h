/* SPDX-License-Identifier: Apache-2.0 */
/* tracer.h - the tracer module of --tracer, checked before the program starts. */
#ifndef TW_TOOLS_TRACER_H
#define TW_TOOLS_TRACER_H

#include "tools/record/config.h"

#include <limits.h>
#include <stdbool.h>

struct tw_command;

/* FILE.so[:STATE] of the command line. */
struct tw_tracer_file {
	char path[PATH_MAX]; /* absolute; "": none */
};

/*
 * Adds the module and its state to the configuration.  The file is read, not loaded: its code runs in the traced
 * program only.  False: it is refused, which has been reported.
 */
bool tw_tracer_file_set(struct tw_tracer_file *tracer, const struct tw_command *command, const char *value,
			struct tw_config *config);

#endif
