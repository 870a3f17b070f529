/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crash.h - the signal that ended the program, and the stack of its thread: of a capture that was written for that.
 *
 * Threads  one.
 */
#ifndef TW_VIEWS_CRASH_H
#define TW_VIEWS_CRASH_H

#include "tracewheel/capture.h"

#include <stdbool.h>

struct tw_json;
struct tw_out;

/*
 * Writes a line with the signal behind the title, and one for each function of the stack, the innermost first, each behind the indent.  False:
 * nothing is known, and nothing was written.
 */
bool tw_crash_put(struct tw_out *out, const struct tw_capture *capture, const char *title, const char *indent);

/* The member "crash" (docs/json.md); nothing if it is not known. */
void tw_json_crash(struct tw_json *json, const struct tw_capture *capture);

#endif
