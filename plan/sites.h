/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sites.h - the NOP of a probe in the middle of a function: can a jump be written over it, and where are its arguments.
 *
 * At a function's entry, no compiler leads an indirect jump behind the first byte.  In the middle of a function only the tables
 * of its jumps tell where they lead, so all of them must be found, in all parts of the function.
 *
 * Threads  any; a window belongs to one thread.
 */
#ifndef TW_PLAN_SITES_H
#define TW_PLAN_SITES_H

#include "plan/notes.h"
#include "plan/window.h"

/* @scan	with groups.  With a refusal only that is set. */
void tw_site_examine(const struct tw_scan *scan, const struct tw_note *note, struct tw_window *out);

/*
 * tw_site_operands - where the probe's arguments are, as the code at its NOP has them.
 *
 * Fills the first TW_ENTRY_OPERANDS_MAX; *argument_count: of the note.  Returns how many.
 */
unsigned tw_site_operands(const struct tw_scan *scan, const struct tw_notes *notes, const struct tw_note *note,
			  struct tw_entry_plan_operand out[TW_NOTE_ARGUMENTS_MAX], unsigned *argument_count);

#endif
