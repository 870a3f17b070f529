/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - the options of `tracewheel attach`. */
#ifndef TW_TOOLS_ATTACH_OPTIONS_H
#define TW_TOOLS_ATTACH_OPTIONS_H

#include "tools/record/options.h"

/* Beside those of `record`. */
enum { KEY_NAME = 1000, KEY_MAY_STOP, KEY_DRY_RUN };

/* The command, with the options of `record` that make sense for a program that runs. */
const struct tw_command *tw_attach_command(void);

#endif
