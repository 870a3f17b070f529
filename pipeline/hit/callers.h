/* SPDX-License-Identifier: Apache-2.0 */
/*
 * callers.h - finds the native function that holds an address, in the middle of a hit.
 *
 * Two sorted tables: the functions whose extent is known (those with an entry sled, of objects that have been read),
 * and the objects. They are replaced as a whole, under the permit; hits read them inside their read section, without
 * locks. An address outside of such functions is given by its offset in its object, from which a reader of the
 * recording resolves it.
 */
#ifndef TW_PIPELINE_CALLERS_H
#define TW_PIPELINE_CALLERS_H

#include "breakpoints/breakpoints.h"

/*
 * Control, under the permit: functions or objects have been added or removed. Interns their names and waits for thread progress.
 * Without memory the table stays as it was.
 *
 * @has_functions	false: nobody asks for functions, only for objects.
 */
void tw_callers_update(struct tw_permit *permit, bool has_functions);

struct tw_caller {
	const struct tw_module *module;	    /* NULL: not known, nor are the other fields */
	const struct tw_function *function; /* NULL: not known */
	uint64_t offset;		    /* of the return address, in the object */
};

/* The addresses of an object, and how callers are found in its code. */
struct tw_caller_code {
	uintptr_t base, end;
	const struct tw_frame_rows *rows; /* NULL: not known */
};

/* From now on no table is freed: threads that are in no read section may search, once this has returned.  Signal handlers: yes. */
void tw_callers_keep(void);

/* In a hit: the object at an address; false: none is known, and *out is untouched. Valid in the read section. */
bool tw_callers_code(uintptr_t address, struct tw_caller_code *out);

/* In a hit: the call that returns to this address. Valid in the read section; the names are valid forever. */
struct tw_caller tw_callers_find(uintptr_t return_address);

#endif
