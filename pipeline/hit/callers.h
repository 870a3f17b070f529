/* SPDX-License-Identifier: Apache-2.0 */
/*
 * callers.h - who called a native function: the function that holds an address, told in the middle of a hit.
 *
 * Two sorted tables: the functions whose extent is known (those with an entry sled, of objects that have been looked
 * at), and the objects.  They are replaced whole, under the permit; hits read them inside their read section, without
 * locks.  Of an address in no such function there is the distance in its object, from which a reader of the
 * recording finds the rest.
 */
#ifndef TW_PIPELINE_CALLERS_H
#define TW_PIPELINE_CALLERS_H

#include "breakpoints/breakpoints.h"

/*
 * Control, under the permit: functions have come, or gone.  Makes atoms of their names, and waits for thread progress.
 * Without memory the table stays as it was.
 */
void tw_callers_update(struct tw_permit *permit);

struct tw_caller {
	const struct tw_module *module;	    /* NULL: not known, and so is the rest */
	const struct tw_function *function; /* NULL: not known */
	uint64_t offset;		    /* of the return address, in the object */
};

/*
 * In a hit: where a call lies that returns to this address.  Valid in the read section; what the names say, for
 * ever.
 */
struct tw_caller tw_callers_find(uintptr_t return_address);

#endif
