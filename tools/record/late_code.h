/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late_code.h - answers what agents ask about objects that programs load after the start, by dlopen or by exec: how their
 * functions take arguments, and plans of their entries.
 *
 * The agent reports only that there is a new object; the command reads the process' maps. But the process has chosen what it maps: a file
 * is read only if it is certain that it is the mapped one, and that only root and this user may have written it; others are counted, and
 * reported at the end. Files are read on threads, one for each kind of question: rings are drained meanwhile, and debug information
 * does not delay a plan.
 */
#ifndef TW_TOOLS_LATE_CODE_H
#define TW_TOOLS_LATE_CODE_H

#include "tools/record/arguments.h"

struct tw_late_code;
struct tw_recorder;

/*
 * Adds where agents find plans, and the times that they wait for others; false: no memory.  For tests, the variable TRACEWHEEL_PLAN_WAIT_MS has another time
 * for both.
 */
bool tw_late_code_config(struct tw_config *config);

struct tw_late_options {
	const struct tw_arguments *arguments;
	const char *config;
	struct tw_recorder *recorder;
	bool has_plans;	   /* of entries */
	bool has_frames;   /* tables of frames, of all files */
	bool has_slots;	   /* functions without entries have slots */
	bool is_main_only; /* plans of programs, not of libraries */
};

/*
 * @options	borrows what it points to, until tw_late_code_end(). NULL: nothing has to be looked up, or no memory.
 */
struct tw_late_code *tw_late_code_begin(const struct tw_late_options *options);

/* Accepts questions, and delivers answers that are ready. Never waits. */
void tw_late_code_poll(struct tw_late_code *late);

/* Reports, unless @is_quiet, what could not be found. Called before the recorder ends. NULL is allowed. */
void tw_late_code_end(struct tw_late_code *late, bool is_quiet);

#endif
