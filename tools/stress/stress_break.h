/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stress_break.h - steps that `tracewheel stress` can break in its own process, to show that it would notice.
 *
 * The mistakes are inserted between the object files of tracewheel-stress when it is linked (--wrap;
 * tools/stress/CMakeLists.txt). Nothing else contains them: neither the command `tracewheel`, nor the libraries, nor the
 * agent, which runs in traced programs.
 */
#ifndef TW_TOOLS_STRESS_BREAK_H
#define TW_TOOLS_STRESS_BREAK_H

#include "tools/stress/stress.h"

#include <stddef.h>

enum tw_stress_break {
	TW_BREAK_NOTHING,
	TW_BREAK_NO_WAIT,
	TW_BREAK_FREE_EARLY,
	TW_BREAK_SWITCH_FIRST,
	TW_BREAK_ONE_BY_ONE,
	TW_BREAK_FORGOTTEN_PLACE,
	TW_BREAK_TORN_SLED,
	TW_BREAK_TORN_SLOT,
	TW_BREAK_HALF_WRITTEN,
	TW_BREAK_LOST_RECORD,
	TW_BREAK_STAMP_ORDER,
	TW_BREAKS
};

struct tw_stress_break_kind {
	const char *name;
	const char *what; /* a clause: what goes wrong */
};
extern const struct tw_stress_break_kind tw_stress_breaks[TW_BREAKS];

/* Breaks that step in this process from here on, forever. Called before other threads are started. */
void tw_stress_break(enum tw_stress_break kind);

/* ---- stress_proof.c ---- */

/* Returns TW_BREAKS if there is none of that name. */
enum tw_stress_break tw_stress_find_break(const char *name);

/*
 * tw_stress_run_broken - run with that step broken, again and again for as long as the options say, until it is
 * noticed.
 *
 * Returns the exit code: TW_EXIT_FAILURE if the mistake was noticed, as for a run that fails; TW_EXIT_OK if not.
 */
int tw_stress_run_broken(const struct tw_stress_options *options, enum tw_stress_break kind, bool is_json);
/*
 * Runs all of them, for a moment each, and once with nothing broken. TW_EXIT_OK if all mistakes were noticed, and
 * nothing else.
 */
int tw_stress_self_test(const struct tw_stress_options *options, bool is_json);

#endif
