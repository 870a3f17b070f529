/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - the options of `tracewheel record`. */
#ifndef TW_TOOLS_RECORD_OPTIONS_H
#define TW_TOOLS_RECORD_OPTIONS_H

#include "tools/tool.h"

enum {
	KEY_RING = 256,
	KEY_ON_FULL,
	KEY_FOLLOW,
	KEY_FORCE,
	KEY_DURABLE,
	KEY_LONG_SCHEDULE,
	KEY_ROTATE,
	KEY_SEGMENT_TIME,
	KEY_KEEP,
	KEY_LOCAL,
	KEY_CAREFUL,
	KEY_GLOBAL,
	KEY_CALLERS,
	KEY_CAP,
	KEY_MATCH,
	KEY_WHEN,
	KEY_ARGS,
	KEY_PROTOTYPES,
	KEY_RETURNS,
	KEY_EXCEPTIONS,
	KEY_RETURN_TO,
	KEY_STACK,
	KEY_ALLOW_NOTHING,
	KEY_UNTIL_FIRST,
	KEY_LOCKS,
	KEY_TRACER,
	KEY_PORTS,
	KEY_ERLANG
};

extern const struct tw_command tw_record_command;

#endif
