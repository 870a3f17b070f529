/* SPDX-License-Identifier: Apache-2.0 */
/*
 * typed.h - arguments and results as their types say: size = 4096, mode = READ|WRITE, name = "users".
 *
 * Threads  one.  Nothing in a payload is trusted; what does not fit its layout ends the list.
 */
#ifndef TW_TOOLS_TYPED_H
#define TW_TOOLS_TYPED_H

#include "tools/tool.h"

#include "tracewheel/capture.h"

enum tw_typed_form { TW_TYPED_TEXT, TW_TYPED_ERLANG, TW_TYPED_JSON };

/* The layout of an event's function, where its payload follows it: typed calls, and their returns.  NULL: words. */
const struct tw_layout *tw_typed_layout(const struct tw_capture *capture, const struct tw_capture_event *event);

/*
 * The arguments of a call: "(a = 1, b = \"x\")", "[1,<<\"x\">>]", and for JSON
 * "args":[1,"x"],"names":["a","b"] without anything around.
 */
void tw_typed_arguments(struct tw_out *out, enum tw_typed_form form, const struct tw_layout *layout,
			const uint64_t *words, uint32_t count);

/* The same as members of an object, for a viewer: "a":1,"b":"x","p":"0x7f12"; without a name "$3". */
void tw_typed_members(struct tw_out *out, const struct tw_layout *layout, const uint64_t *words, uint32_t count);

/* What was returned, in these words.  False: they say nothing of the value, and nothing was written. */
bool tw_typed_result(struct tw_out *out, enum tw_typed_form form, const struct tw_layout *layout, const uint64_t *words,
		     uint32_t count);
/* The same for a viewer: as JSON, addresses in hexadecimal. */
bool tw_typed_shown_result(struct tw_out *out, const struct tw_layout *layout, const uint64_t *words, uint32_t count);

#endif
