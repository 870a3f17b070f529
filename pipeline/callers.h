/* SPDX-License-Identifier: Apache-2.0 */
/*
 * callers.h - who called a native function: the function that holds an address, told in the middle of a hit.
 *
 * A sorted table of the functions whose extent is known: those with an entry sled, of objects that have been looked
 * at.  It is replaced whole, under the permit; hits read it inside their read section, without locks.
 */
#ifndef TW_PIPELINE_CALLERS_H
#define TW_PIPELINE_CALLERS_H

#include "breakpoints/breakpoints.h"

/*
 * Control, under the permit: functions have come, or gone.  Makes atoms of their names, and waits for thread progress.
 * Without memory the table stays as it was.
 */
void tw_callers_update(struct tw_permit *permit);

/*
 * In a hit: the function that goes on behind a call which returns to this address; NULL: not known.  Valid in the read
 * section; what its name says, for ever.
 */
const struct tw_function *tw_callers_find(uintptr_t return_address);

#endif
