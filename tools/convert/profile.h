/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.h - the calls of a capture, summed up, as files of profilers.
 *
 *	pprof		profile.proto: a sample for each stack, with its calls and its own time; not compressed
 *	callgrind	a text: each function with its own time, and what it called how often, for how long
 *	folded		a text: a line for each stack with its own time
 *
 * Without returns there are no times: only calls.
 *
 * Source	github.com/google/pprof, proto/profile.proto; valgrind.org, "Callgrind Format Specification".
 * Threads	one.
 */
#ifndef TW_TOOLS_CONVERT_PROFILE_H
#define TW_TOOLS_CONVERT_PROFILE_H

#include "views/output/output.h"

#include "tracewheel/capture.h"

/* A form, by the name of --to.  NULL: there is none of that name. */
struct tw_profile_form;
const struct tw_profile_form *tw_profile_form(const char *name);

/* Writes a whole capture.  @events: of the capture.  Returns 0 or an error. */
int tw_profile_write(const struct tw_profile_form *form, struct tw_capture *capture, struct tw_out *out,
		     uint64_t *events);

#endif
