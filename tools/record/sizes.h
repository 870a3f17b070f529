/* SPDX-License-Identifier: Apache-2.0 */
/* sizes.h - options of `record` that are a size, a time or a number of the recorder. */
#ifndef TW_TOOLS_SIZES_H
#define TW_TOOLS_SIZES_H

#include "tools/tool.h"

#include "tracewheel/consumer.h"

/* Sets what the option of that name says. False: the value is refused, which has been reported. */
bool tw_sizes_set(struct tw_recorder_options *recorder, const struct tw_command *command, const char *option,
		  const char *value);

/* Does this system count what --long-schedule asks for, and is it recorded? False: no, which has been reported. */
bool tw_sizes_check_run_delay(const struct tw_recorder_options *recorder, const struct tw_command *command);

#endif
